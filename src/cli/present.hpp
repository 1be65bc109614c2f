// From a report to where it is wanted.
#pragma once

#include "base/result.hpp"
#include "cli/bind.hpp"
#include "profile/analyzed.hpp"
#include "report/exporter.hpp"

namespace rangescope::cli {

/// Where a report goes whose program had standard output: there too on a terminal, else to standard error.
[[nodiscard]] int beside_a_program();
/// What `to` means: "-" standard output, "" the descriptor given, else a file.
[[nodiscard]] base::Result<void> write_report(const profile::Analyzed& analyzed, const ReportChoice& choice,
                                              int default_fd);

/// Style of a table on this descriptor: its terminal's width, colour only there, NO_COLOR and TERM=dumb respected.
[[nodiscard]] report::Style style_on(int fd, const ReportChoice& choice);

}  // namespace rangescope::cli
