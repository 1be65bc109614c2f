// Files that other tools left, taken into a run directory.
//
// They are copied, never moved or changed; copies of nsys' exports lose the environments that nsys writes into them
// (profile/redact.hpp).
#pragma once

#include <filesystem>

#include "base/result.hpp"
#include "model/session.hpp"
#include "read/reader.hpp"
#include "runs/imports.hpp"

namespace rangescope::profile {

struct Given {
  std::filesystem::path path;
  std::filesystem::path database;  ///< nsys' SQLite: the file itself or its export, "" for other files
  const read::Reader* reader = nullptr;
  model::Source source;
};

/// Reads it once, to know that it can be read and what it is. kUsage for a run; the readers' errors.
[[nodiscard]] base::Result<Given> examine(const std::filesystem::path& path, const read::Options& options);

/// Copies it into the run.
[[nodiscard]] base::Result<runs::Import> take_in(const Given& one, const std::filesystem::path& run);

}  // namespace rangescope::profile
