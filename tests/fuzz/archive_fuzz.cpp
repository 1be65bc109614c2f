// Archives of runs from strangers: the bytes are a tar (packed here, so that a change is one of a header or member and
// not of the compression), and the bytes are the whole file. Whatever is in them, nothing appears but a run in the
// root.
#include <zstd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/fs.hpp"
#include "runs/layout.hpp"
#include "runs/pack.hpp"
#include "share.hpp"

namespace {

namespace fs = std::filesystem;

bool try_unpack(const fs::path& folder, std::string_view bytes) {
  using namespace rangescope;
  if (!base::write_file(folder / "x.tar.zst", bytes)) __builtin_trap();
  const auto done = runs::unpack_run(folder / "x.tar.zst", folder / "root", runs::UnpackLimits{1 << 20, 100});
  if (!done && done.error().what.empty()) __builtin_trap();
  if (done && !runs::is_run_dir(done->path)) __builtin_trap();
  std::size_t runs = 0, outside = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder / "root", error)) {
    ++runs;
    if (entry.is_symlink()) __builtin_trap();
  }
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto name = entry.path().filename();
    outside += name != "root" && name != "x.tar.zst" && name != "kept" ? 1 : 0;
  }
  // The folder beside the root is what `..` would reach.
  if (runs != (done ? 1u : 0u) || outside != 0 || base::read_file(folder / "kept").value_or("") != "kept")
    __builtin_trap();
  fs::remove_all(folder / "root");
  return done.has_value();
}

/// Gone when the process ends.
struct Folder {
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "rangescope-fuzz-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) __builtin_trap();
    path = pattern;
    if (!rangescope::base::write_file(path / "kept", "kept")) __builtin_trap();
  }
  ~Folder() { fs::remove_all(path); }
  fs::path path;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  bool read = try_unpack(folder.path, bytes);
  std::string packed(ZSTD_compressBound(size), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), data, size, 1));
  read |= try_unpack(folder.path, packed);
  return ::fuzz::count(read);
}
