// What the doctor answers, whatever it was asked: of this machine, of a command line, or of a program.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/program/advice.hpp"
#include "doctor/program/program.hpp"
#include "model/finding.hpp"

namespace rangescope::doctor {

struct Answer {
  std::string_view asked;  ///< "machine", "command", "program"
  std::vector<model::Finding> findings;
  std::optional<std::string> corrected = {};  ///< the command line that was meant; the last line for people
  const ProgramLook* program = nullptr;       ///< what was seen of a program, with every way to measure it
  std::span<const Way> ways = {};
};

}  // namespace rangescope::doctor
