// Where a run lives: <root>/<timestamp>-<pid>[-<host>]/, with
//
//   manifest.json   what was run, by which version, when, and how it ended; SHA-256 of every file
//                   (runs/manifest.hpp)
//   status.json     what rangescope made of it; there from the first moment (runs/status.hpp)
//   env.json        machine and software, allow-listed and redacted (runs/provenance.hpp)
//   cmd.txt         the command as one shell line that runs as it is
//   native/         captures of the native collector, one set of files a process; nsys/ and ncu/
//                   likewise
//   import.json     where the captures came from, when they were imported (runs/imports.hpp)
//   report.*        the reports that were written
//   marks/          of `profile --keep-last`: each mark, a run directory of its own
//   repeats/        of `profile --repeat`: each repetition, a run directory of its own; the outer
//                   one has no captures
//
// Making the directory is the arbiter: two runs that start in the same second in one root get
// different names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace rangescope::runs {

inline constexpr std::string_view kDefaultRoot = "rangescope-runs";
/// Where runs go when the folder that we are in cannot be written (XDG Base Directory Specification
/// 0.8); "" for nowhere.
[[nodiscard]] std::string state_root();

/// Makes a new run directory under `root` (which is made too). kIo or kPermission with the path.
[[nodiscard]] base::Result<std::filesystem::path> make_run_dir(const std::filesystem::path& root);

/// kPermission for an errno that says that the folder cannot be written, kIo for others.
[[nodiscard]] base::Code code_of_unwritable(int error);

/// The same name without making it, for --dry-run.
[[nodiscard]] std::filesystem::path next_run_dir(const std::filesystem::path& root);

/// True for a directory that rangescope made, by its manifest.json.
[[nodiscard]] bool is_run_dir(const std::filesystem::path& path);

/// The folders in `root` of which a start is known (Unix time, ns), oldest first. Nothing when the
/// root does not exist.
[[nodiscard]] std::vector<std::filesystem::path> folders_by_start(
    const std::filesystem::path& root,
    const std::function<std::optional<std::int64_t>(const std::filesystem::path&)>& start_of);

/// The runs of a root, oldest first. Nothing when the root does not exist.
[[nodiscard]] std::vector<std::filesystem::path> list_runs(const std::filesystem::path& root);

/// A run by its name on a command line: a path, the name of a run in `root` or the beginning of
/// one, or `latest`. kNoInput with the nearest names, kUsage where several begin so.
[[nodiscard]] base::Result<std::filesystem::path> find_run(const std::filesystem::path& root,
                                                           std::string_view said);

/// The repetitions inside `run`, in the order in which they ran; none where it is one run.
[[nodiscard]] std::vector<std::filesystem::path> repeats_of(const std::filesystem::path& run);

/// The repetition that took the median time (of an even number the shorter middle one), by the
/// manifests; the one that represents all where a single run is to be shown. `repeats` is not
/// empty.
[[nodiscard]] std::filesystem::path median_repeat(std::vector<std::filesystem::path> repeats);

/// What of `run` is to be read, in this order: the folder native, SQLite exports of nsys, reports
/// of ncu; or the files that were imported. Tables and logs that were made from them are not
/// captures.
[[nodiscard]] std::vector<std::filesystem::path> captures_of(const std::filesystem::path& run);

/// The run directory in which `path` (a file or folder of it) lies; "" where there is none.
[[nodiscard]] std::filesystem::path run_of(const std::filesystem::path& path);

}  // namespace rangescope::runs
