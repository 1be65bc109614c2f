// The one list of readers, and the choice among them.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "read/reader.hpp"

namespace rangescope::read {

/// Every reader, in the order in which they are asked.
[[nodiscard]] std::span<const Reader* const> readers();

/// The reader that recognises `path`. kNoInput when it does not exist, kBadData when no reader
/// does (the first bytes are shown, with what would have been understood).
[[nodiscard]] base::Result<const Reader*> find_reader(const std::filesystem::path& path);

/// find_reader and read.
[[nodiscard]] base::Result<model::Session> read_any(const std::filesystem::path& path,
                                                    const Options& options = {});

/// Inputs by recording, in the order in which they first appear: tables of nsys stats that belong
/// together stand together (nsys_csv::same_recording), everything else alone.
[[nodiscard]] std::vector<std::vector<std::filesystem::path>> recordings(
    std::span<const std::filesystem::path> paths);

/// The one of `paths` that holds all that the tables `parts` do (nsys_csv::table_of); null where
/// there is none.
[[nodiscard]] const std::filesystem::path* whole_of(std::span<const std::filesystem::path> parts,
                                                    std::span<const std::filesystem::path> paths);

/// What recordings() put together, as one session.
[[nodiscard]] base::Result<model::Session> read_recording(
    std::span<const std::filesystem::path> parts, const Options& options = {});

}  // namespace rangescope::read
