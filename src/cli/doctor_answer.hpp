// What `rangescope doctor` prints, whatever it was asked: findings for people or for machines.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/check.hpp"
#include "report/json_writer.hpp"

namespace rangescope::cli {

struct DoctorAnswer {
  std::string_view asked;  ///< "machine", "command", "program"
  std::vector<model::Finding> findings;
  std::optional<std::string> command;  ///< the command line that was meant; the last line of what is printed
  std::string more_text;               ///< printed behind the findings
  std::function<void(report::JsonWriter&)> more_json;  ///< further keys of the object
};

/// Prints it to standard output; the exit code (docs/manual/exit-codes.md). `json`: one object, rangescope.doctor/1.
[[nodiscard]] int answer(const DoctorAnswer& told, bool json);

}  // namespace rangescope::cli
