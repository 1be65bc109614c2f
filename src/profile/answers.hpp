// What the doctor answers of this machine and of a command line, as `rangescope doctor` prints it.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.hpp"
#include "doctor/answer.hpp"

namespace rangescope::profile {

/// `runs`: folder of the runs, whose room on the disk is asked for.
[[nodiscard]] doctor::Answer machine_answer(const std::filesystem::path& runs);

/// Nothing on the line is run; the tool that it names is asked what it can do, where it is installed, else the newest
/// version that is known. kUsage for a line that names no tool.
[[nodiscard]] base::Result<doctor::Answer> command_answer(const std::string& command);

/// What a log says of nsys, ncu, CUDA or PyTorch. `line`: the command line that was run, "" where nobody says; one that
/// stands in the log is found. kBadData where nothing in it is understood.
[[nodiscard]] base::Result<doctor::Answer> log_answer(std::string_view log, const std::string& line);

}  // namespace rangescope::profile
