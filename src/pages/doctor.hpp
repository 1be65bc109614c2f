// What `rangescope doctor` prints, whatever it was asked: findings, for people or as one object of rangescope.doctor/1.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/program/advice.hpp"
#include "doctor/program/program.hpp"
#include "model/finding.hpp"
#include "report/exporter.hpp"

namespace rangescope::pages {

struct DoctorAnswer {
  std::string_view asked;  ///< "machine", "command", "program"
  std::vector<model::Finding> findings;
  std::optional<std::string> corrected = {};     ///< the command line that was meant; the last line for people
  const doctor::ProgramLook* program = nullptr;  ///< what was seen of a program, with every way to measure it
  std::span<const doctor::Way> ways = {};
};

void print_doctor(const DoctorAnswer& answer, bool json, bool color, report::Sink& sink);

}  // namespace rangescope::pages
