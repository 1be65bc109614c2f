// JSON of the small files in a run directory: written whole, indented, always valid UTF-8.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/result.hpp"

namespace rangescope::runs {

using OrderedJson = nlohmann::ordered_json;  ///< what is written: keys stay in the order given

/// Indented by two, with a newline at the end; bytes that are not UTF-8 were made printable before.
[[nodiscard]] base::Result<void> write_json(const std::filesystem::path& path, const OrderedJson& json);
/// Writes over what is there, padded with blanks to its length: where a full disk has no room for a file beside it.
[[nodiscard]] bool overwrite_json(const std::filesystem::path& path, const OrderedJson& json);
/// A regular file of at most 256 MiB. kNoInput, or kBadData with the byte where it stops being JSON, or kBadData where
/// `schema` is another one.
[[nodiscard]] base::Result<nlohmann::json> read_json(const std::filesystem::path& path, std::string_view schema);

/// Does this name of a file, written in a run's JSON, lie in the run: relative, without `..`? Whoever made the run may
/// have written it.
[[nodiscard]] bool lies_in_run(const std::filesystem::path& name);

}  // namespace rangescope::runs
