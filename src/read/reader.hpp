// A reader turns one kind of file (or capture directory) into a session. Readers are strangers to
// each other.
//
// To add one: a folder next to the others, its kReader, one line in registry.cpp, a page in
// docs/formats/.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/session.hpp"

namespace rangescope::read {

struct Options {
  int threads = 0;        ///< worker threads; 0: one a core
  bool kernels = true;    ///< GPU activity wanted; false reads NVTX only
  std::string nsys_path;  ///< nsys executable for formats that only it can export; "" looks for one
  std::vector<std::uint32_t>
      ranks;  ///< native: only processes of these ranks of a parallel job; empty: all
  /// native: occurrences of a range path and thread that are listed singly where captures are
  /// larger than `list_all_below` bytes; 0: all.
  std::size_t listed = 4096;
  std::size_t list_all_below = std::size_t{64} << 20;
  bool keep_begins = false;   ///< native: ranges that began before a window keep their begin
  std::string number_format;  ///< CSV: "", "C", "de", "fr": how numbers are written when the file
                              ///< is ambiguous
};

struct Reader {
  std::string_view name;  ///< short and stable: "native", "nsys-sqlite", "ncu-report"
  /// True when the first bytes (up to 4 KiB) or the directory layout are of this format. Content
  /// decides, not the name.
  bool (*sniff)(std::span<const std::byte> head, const std::filesystem::path& path);
  /// Reads all of it. Damage that can be skipped becomes a Loss; what cannot be read at all is
  /// kBadData with the place.
  base::Result<model::Session> (*read)(const std::filesystem::path& path, const Options& options);
  /// The SQLite database that is read in its place: the file itself, or an export that is kept or
  /// made. Null: none is.
  base::Result<std::filesystem::path> (*database)(const std::filesystem::path& path,
                                                  const Options& options) = nullptr;
};

}  // namespace rangescope::read
