// Reader of Nsight Systems' SQLite exports, every schema from before 2022 to 3.25
// (docs/formats/nsys-sqlite.md).
#pragma once

#include "read/reader.hpp"

namespace rangescope::read::nsys_sqlite {

extern const Reader kReader;

/// The same through the SQLite library alone: what tests compare the page decoder with.
[[nodiscard]] base::Result<model::Session> read_through_library(const std::filesystem::path& path,
                                                                const Options& options);

}  // namespace rangescope::read::nsys_sqlite
