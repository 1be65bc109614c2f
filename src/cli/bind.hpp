// Options of the command line, one bind_*.cpp a room: each declares the options that fill that room's Options.
//
// Values are checked here, so that nothing runs on a command line that is wrong.
#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analyze/analyze.hpp"
#include "collect/native/native.hpp"
#include "read/reader.hpp"
#include "report/exporter.hpp"

namespace rangescope::cli {

/// Largest count that an option takes; CLI::Range(0, kMost) refuses what is negative.
inline constexpr int kMost = 1'000'000'000;

/// An option that takes one value each time it stands, and all of them count.
CLI::Option* repeated_option(CLI::App& app, const std::string& name, std::vector<std::string>& into,
                             const std::string& type, const std::string& text);

/// --include, --exclude, --kernel, --no-aggregate, --per-thread, --push-pop-scope, --domains ...
void bind_analyze(CLI::App& app, analyze::Options& options);
/// --max-capture-size, --chain-injection
void bind_native(CLI::App& app, collect::native::Options& options);

/// --nsys, --number-format
void bind_read(CLI::App& app, read::Options& options);

/// Where a report goes, as it was asked for.
struct ReportChoice {
  std::string format = "table";
  std::string to;              ///< "" by default, "-" standard output, else a file
  std::string color = "auto";  ///< auto, always, never
  std::optional<std::size_t> width;
  report::Style style;
};
/// kIo where `choice.to` names a file that cannot be written, before what takes long: a folder, or in a folder that
/// does not exist.
[[nodiscard]] base::Result<void> check_destination(const ReportChoice& choice);
/// -f, -o, --depth, --sort, --top, --columns, --explain, --color, --width
void bind_report(CLI::App& app, ReportChoice& choice);

/// Written expressions into ncu's grammar, with what was changed said on stderr under -v. The parser's errors pass on.
[[nodiscard]] base::Result<void> normalize_expressions(analyze::Options& options);

}  // namespace rangescope::cli
