// Reader of what AMD's profilers write (docs/formats/rocm.md):
//
//   results.stats.csv, *_kernel_stats.csv   totals by name, of rocprof and rocprofv3 (stats.cpp)
//   results.json                            rocprof's trace for chrome://tracing (trace.cpp)
//   results.db, *.rpd, *_results.db         SQLite of rocprof, of rocmProfileData and of rocprofv3
//   (database.cpp)
//
// Events become those of read/kineto, which builds the session: kernels, copies, HIP's calls, roctx
// ranges.
#pragma once

#include "read/reader.hpp"

namespace rangescope::read::rocm {

extern const Reader kReader;

/// A table (the file's name tells of which functions) or a trace.
[[nodiscard]] base::Result<model::Session> read_text(std::string_view text,
                                                     const std::string& name);

[[nodiscard]] bool is_stats(std::string_view head);
[[nodiscard]] bool is_trace(std::string_view head);
[[nodiscard]] bool is_database(const std::filesystem::path& path);
[[nodiscard]] base::Result<model::Session> read_stats(std::string_view text,
                                                      const std::string& name);
[[nodiscard]] base::Result<model::Session> read_trace(std::string_view text,
                                                      const std::string& name);
[[nodiscard]] base::Result<model::Session> read_database(const std::filesystem::path& path);

}  // namespace rangescope::read::rocm
