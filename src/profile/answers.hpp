// What the doctor answers of this machine and of a command line, as `rangescope doctor` prints it.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.hpp"
#include "pages/doctor.hpp"

namespace rangescope::profile {

/// `runs`: folder of the runs, whose room on the disk is asked for.
[[nodiscard]] pages::DoctorAnswer machine_answer(const std::filesystem::path& runs);

/// Nothing on the line is run; the tool that it names is asked what it can do, where it is installed, else the newest
/// version that is known. kUsage for a line that names no tool.
[[nodiscard]] base::Result<pages::DoctorAnswer> command_answer(const std::string& command);

}  // namespace rangescope::profile
