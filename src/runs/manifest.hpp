// manifest.json: what was run, and the proof that the files are those that were written.
//
//   { "schema": "rangescope.run/1",
//     "id": "...",
//     "tool": "rangescope 0.1.0",
//     "argv": [...],
//     "arguments": [...],
//     "cwd": "/...",
//     "start": "2026-01-02T03:04:05.678Z",
//     "start_unix_ns": N,
//     "end": ...,
//     "end_unix_ns": N,
//     "usage": { "user_ns": N, "system_ns": N, "peak_rss_bytes": N | null },
//     "exit": { "code": 0 } | { "signal": 11, "signal_name": "SIGSEGV" } | null,
//     "files": { "native/123.0.rstrace": { "bytes": N, "sha256": "..." } } }
//
// "usage" is absent if unknown, "exit" is null until the program ended, "files" is filled when the
// run is finished. Arguments that are not UTF-8 are written with \xNN in place of each foreign
// byte. Secrets among the arguments are redacted (base/redact.hpp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/report.hpp"

namespace rangescope::runs {

inline constexpr std::string_view kManifestSchema = "rangescope.run/1";

struct FileProof {
  std::uint64_t bytes = 0;
  std::string sha256;
};

struct Manifest {
  std::string id;
  std::string tool;
  std::vector<std::string> argv;       ///< the profiled program and its arguments
  std::vector<std::string> arguments;  ///< rangescope's own arguments
  std::string cwd;
  std::int64_t start_unix_ns = 0, end_unix_ns = 0;
  std::optional<int> exit_code, signal;
  std::optional<model::ProcessUsage> usage;
  std::map<std::string, FileProof> files;  ///< by path within the run
};

[[nodiscard]] base::Result<void> write_manifest(const std::filesystem::path& run,
                                                const Manifest& manifest);
/// kNoInput, kBadData with the place, or kBadData for a schema that is not ours.
[[nodiscard]] base::Result<Manifest> read_manifest(const std::filesystem::path& run);

/// Hashes every file of the run but manifest.json and status.json. O(bytes).
[[nodiscard]] base::Result<std::map<std::string, FileProof>> prove_files(
    const std::filesystem::path& run);

/// Bytes of a file that its writer has filled: a capture of a process that still runs ends in a
/// hole of up to 4 GiB.
[[nodiscard]] std::uint64_t written_bytes(const std::filesystem::path& file);

struct Difference {
  std::string path;
  std::string kind;  ///< "changed", "missing", "new", "size 12 instead of 10"
};
/// Compares the files with the manifest's proofs. Empty when all is as it was written. Reports
/// written later (report.*) that the manifest does not know are not a difference.
[[nodiscard]] base::Result<std::vector<Difference>> verify(const std::filesystem::path& run);

/// What a report contains about the run: from manifest.json and env.json, as far as they can be
/// read.
[[nodiscard]] model::RunInfo run_info(const std::filesystem::path& run);

/// "2026-01-02T03:04:05.678Z"
[[nodiscard]] std::string utc_text(std::int64_t unix_ns);
/// By the system's clock.
[[nodiscard]] std::int64_t unix_now_ns();

}  // namespace rangescope::runs
