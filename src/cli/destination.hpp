// Where a document goes: what -o means, and the style of a table there.
#pragma once

#include <filesystem>
#include <functional>

#include "base/result.hpp"
#include "cli/arguments.hpp"
#include "cli/bind.hpp"
#include "profile/analyzed.hpp"
#include "report/document/document.hpp"

namespace rangescope::profile {
struct Talk;
}

namespace rangescope::cli {

/// May a person have an output written to this path? kUsage for what is no plain file (device,
/// pipe, link, folder), for a file that another word of this command line names (an input, a
/// script), for what rangescope reads (a recording, a report of a tool, a baseline, an archive of a
/// run) and for the files that a run consists of.
[[nodiscard]] base::Result<void> check_output(const std::filesystem::path& to);

/// -o, --color, --width
void bind_destination(const Arguments& app, ReportChoice& choice);

/// Calls `write` with a sink for what `choice.to` means ("-" standard output, "" the descriptor
/// given, else a file) and the style for it, and finishes the sink.
[[nodiscard]] base::Result<void> write_to(
    const ReportChoice& choice,
    int default_fd,
    const std::function<base::Result<void>(report::Sink&, const report::Style&)>& write,
    bool may_leave = false);

/// `may_leave`: the reader of the descriptor may close it early (report::DescriptorSink).
[[nodiscard]] base::Result<void> write_report(const profile::Analyzed& analyzed,
                                              const ReportChoice& choice,
                                              int default_fd,
                                              bool may_leave = false);

/// Where a report goes whose program had standard output: there too on a terminal, else to standard
/// error.
[[nodiscard]] int beside_a_program();
/// The same, unless a document was asked for by its format (-f json): then it has standard output,
/// and what the program prints there goes to standard error from now on.
[[nodiscard]] int descriptor_beside_a_program(const ReportChoice& choice);
/// What a person sees of a run whose report goes to `fd` or where the choice says. The choice lives
/// as long.
[[nodiscard]] profile::Talk talk_of(const ReportChoice& choice, int fd);
/// Says where a run is kept, and how to see it again.
void say_kept(const std::filesystem::path& run, bool in_default_root);
/// kUsage for a value to sort by or to show that no report can have.
[[nodiscard]] base::Result<void> check_values(const report::Style& style);
/// Style of a table on this descriptor: its terminal's width, colour only there, NO_COLOR and
/// TERM=dumb respected.
[[nodiscard]] report::Style style_on(int fd, const ReportChoice& choice);
/// A list on standard output, which is as wide as it is where that is no terminal; 0, or why it was
/// not written.
[[nodiscard]] base::Result<int> put(report::Grid list);

}  // namespace rangescope::cli
