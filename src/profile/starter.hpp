// A starting rangescope.yaml for a program: which of the ranges that were seen are worth measuring, and which metric
// groups fit their occurrences.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.hpp"
#include "doctor/program/program.hpp"

namespace rangescope::profile {

/// The text of the file; "" where no range could be measured.
[[nodiscard]] std::string starter(const doctor::ProgramLook& look);

/// Writes it under its name once it composes like any other file; kInternal, and no file, where it does not.
[[nodiscard]] base::Result<void> write_starter(const std::string& text, const std::filesystem::path& to);

}  // namespace rangescope::profile
