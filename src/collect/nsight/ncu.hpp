// Plans Nsight Compute: one command line from a request, the options of pipeline.ncu.ncu_cli and
// what this ncu can do.
//
// Everything that was asked for is checked against the probed abilities before a program starts,
// because ncu itself often answers a mistake with exit code 0 and nothing measured. Every default
// that some version of ncu changed is passed explicitly: replay mode, clock and cache control,
// target processes, application replay matching, graph profiling, push/pop scope, kernel renaming,
// source import; with `--print-units base`, `--config-file off` and LC_ALL=C.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collect/nsight/planning.hpp"

namespace rangescope::collect::ncu {

struct Options : ToolOptions {
  Options() { gating = true; }
  std::string replay_mode = "kernel";  ///< kernel, application, range, app-range; never auto
  std::vector<std::string> kernels;    ///< names chosen by rangescope; one regex of them all
  std::string report = "ncu";          ///< base name of the report below <run_dir>/ncu
};

/// kConfig for what this ncu cannot do or what cannot go together, with what it can.
[[nodiscard]] base::Result<Plan> plan(const Abilities& can,
                                      const Options& options,
                                      const Request& request);

/// The report file of a plan, without extension.
[[nodiscard]] std::filesystem::path report_base(const Request& request, const Options& options);

/// The extension that this ncu gives the report: ".ncu-rep", or ".ncu-repz".
[[nodiscard]] std::string_view report_extension(const Abilities& can);

/// One of ncu's own files of a report: what it prints with --import.
struct PageFile {
  std::string_view name;  ///< of the file
  std::string_view page;  ///< "raw", "details"
  bool csv = false;       ///< a table in base units; else text in the units that ncu chooses
};
inline constexpr PageFile kRawCsv{"raw.csv", "raw", true};
inline constexpr PageFile kDetailsCsv{"details.csv", "details", true};
inline constexpr PageFile kSectionsText{"sections_report.txt", "details", false};

/// The file for a page of a report, in its folder: details.csv of ncu.ncu-rep, ncu-2-details.csv of
/// ncu-2.ncu-rep.
[[nodiscard]] std::filesystem::path page_path(const std::filesystem::path& report,
                                              const PageFile& page);
/// `ncu --import REPORT --page PAGE`, into that file. ncu writes its own errors there too, and ends
/// with 1.
[[nodiscard]] Plan page_plan(const Abilities& can,
                             const std::filesystem::path& report,
                             const PageFile& page);

/// What --kernel-name can express of a selection.
struct KernelFilter {
  std::string name;  ///< "" for every kernel
  std::string base;  ///< for --kernel-name-base: function, demangled, mangled
  std::string note;  ///< what it cannot express: only the report applies that
};
[[nodiscard]] KernelFilter kernel_filter(const model::KernelSelection& kernels);

/// `regex:^(a|b)$` with the names escaped.
[[nodiscard]] std::string kernel_regex(std::span<const std::string> names);
/// The names in groups whose expressions have at most `longest` characters each (a longer name
/// is a group).
[[nodiscard]] std::vector<std::vector<std::string>> split_kernels(
    std::span<const std::string> names, std::size_t longest = 8000);

/// False for a metric (with or without suffix) that this ncu certainly lacks; true if its metrics
/// are unknown.
[[nodiscard]] bool knows_metric(const Abilities& abilities, const std::string& metric);

/// `dram__bytes*`, a pattern without `regex:`, as ncu takes it; "" if it is not a pattern.
[[nodiscard]] std::string metric_regex(std::string_view metric);

/// The numbers 1, N+1, 2N+1 ... as an expression for ncu's invocations and instances of ranges.
/// Where N does not divide 1,000 it is a list of the first 1,000 of them.
[[nodiscard]] std::string every_regex(std::uint32_t every);

/// What ncu refuses of a --kernel-id, or "". `nvtx`: --nvtx is passed, so that contexts and streams
/// may have names.
[[nodiscard]] std::string kernel_id_mistake(std::string_view id, bool nvtx = true);
/// What is wrong with the expression behind a `regex:` of ncu, or "": also where there is no
/// `regex:`.
[[nodiscard]] std::string regex_mistake(std::string_view value);
/// The expression that a pattern without `regex:` was meant to be: `*gemm*` of files, or `.*gemm.*`
/// as it stands.
[[nodiscard]] std::string meant_regex(std::string_view pattern);

}  // namespace rangescope::collect::ncu
