// From a report to where it is wanted.
#pragma once

#include <filesystem>

#include "base/result.hpp"
#include "cli/bind.hpp"
#include "profile/analyzed.hpp"
#include "report/exporter.hpp"

namespace rangescope::cli {

/// Where a report goes whose program had standard output: there too on a terminal, else to standard error.
[[nodiscard]] int beside_a_program();
/// The same, unless a document was asked for by its format (-f json): then it has standard output, and what the program
/// prints there goes to standard error from now on.
[[nodiscard]] int descriptor_beside_a_program(const ReportChoice& choice);
/// Says where a run is kept, and how to see it again.
void say_kept(const std::filesystem::path& run, bool in_default_root);
/// What `to` means: "-" standard output, "" the descriptor given, else a file.
[[nodiscard]] base::Result<void> write_report(const profile::Analyzed& analyzed, const ReportChoice& choice,
                                              int default_fd);

/// Style of a table on this descriptor: its terminal's width, colour only there, NO_COLOR and TERM=dumb respected.
[[nodiscard]] report::Style style_on(int fd, const ReportChoice& choice);

}  // namespace rangescope::cli
