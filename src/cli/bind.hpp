// Options of the command line, one bind_*.cpp a room: each declares the options that fill that
// room's Options.
//
// Values are checked here, so that nothing runs on a command line that is wrong.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/analyze.hpp"
#include "analyze/compare/compare.hpp"
#include "cli/arguments.hpp"
#include "collect/native/counter_plan.hpp"
#include "collect/native/native.hpp"
#include "profile/look.hpp"
#include "profile/sampling.hpp"
#include "profile/sides.hpp"
#include "read/reader.hpp"
#include "report/exporter.hpp"

namespace rangescope::cli {

/// An option that takes range expressions, each parsed where it stands.
void bind_terms(const Arguments& app,
                const std::string& name,
                std::vector<model::RangeTerm>& into,
                std::vector<std::string>& notes);
/// --include, --exclude
void bind_ranges(const Arguments& app, model::RangeSelection& ranges);
/// --kernel, --exclude-kernel
void bind_kernels(const Arguments& app, model::KernelSelection& kernels);
/// --no-aggregate, --per-thread, --push-pop-scope, --domains ...
void bind_regions(const Arguments& app, analyze::Options& options);
/// The same, with --include, --exclude, --kernel and --exclude-kernel.
void bind_analyze(const Arguments& app, analyze::Options& options);
/// --max-capture-size, --chain-injection
void bind_native(const Arguments& app, collect::native::Options& options);
/// --cpu
void bind_cpu(const Arguments& app, profile::SampleChoice& choice);
/// --sample, --sample-metrics, --cpu, --cpu-counters
void bind_sampling(const Arguments& app, profile::SampleChoice& choice);

/// --per, --rounds, --chip, --passes, --flush-caches, --arm-wait, --skip-first, --trace-first; the
/// metrics and ranges come from elsewhere.
void bind_counters(const Arguments& app, collect::native::CounterRequest& request);
/// --include, --for, --chain-injection
void bind_look(const Arguments& app, profile::LookRequest& request);

/// --nsys, --number-format
void bind_read(const Arguments& app, read::Options& options);

/// Where a report goes, as it was asked for.
struct ReportChoice {
  std::string format{report::kDefaultFormat};
  std::string to;              ///< "" by default, "-" standard output, else a file
  std::string color = "auto";  ///< auto, always, never
  std::optional<std::size_t> width;
  bool raw_cells =
      false;  ///< CSV in a file without apostrophes before what a spreadsheet would compute
  report::Style style;
};
/// Called before the work that takes long. kIo if `choice.to` cannot be written: it is a folder, or
/// its folder does not exist. kUsage for a binary format on a terminal, or mixed with the output of
/// the program. `fd` is where the report goes without -o.
[[nodiscard]] base::Result<void> check_destination(const ReportChoice& choice, int fd);
/// --json, which every command that prints numbers takes
void bind_json(const Arguments& app, std::string& format);
/// A format as -f names it, and the file extension of -o that chooses it.
struct FormatName {
  std::string_view name, extension;
};
/// Without -f and --json the file extension of -o decides; usage where no format has it.
void choose_format_by_ending(const Arguments& app,
                             const std::vector<FormatName>& formats,
                             ReportChoice& choice);
/// -f and --json; without either the file extension of -o decides.
void bind_format(const Arguments& app,
                 const std::vector<FormatName>& formats,
                 ReportChoice& choice);
/// -f, --json, -o, --depth, --sort, --top, --columns, --explain, --color, --width
void bind_report(const Arguments& app, ReportChoice& choice);

/// kUsage for --flops that cannot be parsed. Says on stderr under -v which ranges were taken for
/// what.
[[nodiscard]] base::Result<void> check_analysis(analyze::Options& options);

/// --runs, --nsys, --metric, --region, --include, --exclude, --rename
void bind_comparison(const Arguments& app,
                     profile::SideOptions& from,
                     analyze::CompareOptions& options,
                     std::vector<std::string>& renames);
/// Expressions into ncu's grammar, and renames into the options. kUsage.
[[nodiscard]] base::Result<void> finish_comparison(analyze::CompareOptions& options,
                                                   const std::vector<std::string>& renames);

}  // namespace rangescope::cli
