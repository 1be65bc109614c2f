#include "runs/pack.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <vector>

#include "base/fs.hpp"
#include "base/temporary_folder.hpp"
#include "base/text.hpp"
#include "runs/layout.hpp"
#include "runs/manifest.hpp"
#include "runs/retention.hpp"
#include "runs/ustar.hpp"
#include "runs/zstd_writer.hpp"

namespace rangescope::runs {
namespace {

namespace fs = std::filesystem;
using base::Code;

using ustar::kBlock;

bool is_nsys_report(const fs::path& path) {
  const std::string extension = (path.extension() == ".zst" ? path.stem() : path).extension().string();
  return extension == ".nsys-rep" || extension == ".qdrep" || extension == ".qdstrm";
}

}  // namespace

base::Result<Packed> pack_run(const fs::path& run, const fs::path& archive, bool with_reports) {
  if (!is_run_dir(run))
    return base::fail(Code::kUsage, "this is no run directory", run.string(),
                      "Name a folder that rangescope made; `rangescope runs list` shows them.");
  // Neither hidden nor an option where it is unpacked.
  std::string root = fs::weakly_canonical(run).filename().string();
  if (root.starts_with('.') || root.starts_with('-') || base::printable(root) != root)
    root = "run" + base::sanitize_component(root);
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::recursive_directory_iterator it(run, error), end; it != end && !error; it.increment(error))
    if (!it->is_symlink()) paths.push_back(it->path());
  if (error) return base::fail(Code::kIo, "cannot list the run: " + error.message(), run.string());
  std::sort(paths.begin(), paths.end());
  auto file_out = base::Replacement::begin(archive);
  if (!file_out) return base::fail(std::move(file_out));
  Packed packed;
  packed.path = archive;
  const auto write = [&]() -> base::Result<void> {
    ZstdWriter writer(*file_out);
    std::vector<char> buffer(1 << 16);
    for (const fs::path& path : paths) {
      const bool folder = fs::is_directory(path, error);
      if (!folder && !fs::is_regular_file(path, error)) continue;
      if (!folder && !with_reports && is_nsys_report(path)) continue;
      std::string name = root + "/" + path.lexically_relative(run).generic_string();
      if (folder) name += "/";
      const std::uint64_t size = folder ? 0 : fs::file_size(path, error);
      auto header = ustar::write({name, size, folder ? '5' : '0'});
      if (!header) return base::fail(std::move(header));
      if (auto ok = writer.write(header->data(), kBlock); !ok) return ok;
      if (folder) continue;
      std::ifstream file(path, std::ios::binary);
      if (!file) return base::fail(Code::kIo, "cannot read", path.string());
      for (std::uint64_t left = size; left > 0;) {
        const auto part = static_cast<std::streamsize>(std::min<std::uint64_t>(left, buffer.size()));
        file.read(buffer.data(), part);
        if (file.gcount() != part)
          return base::fail(Code::kIo, "the file changed while it was packed", path.string(),
                            "Pack the run when nothing writes into it.");
        if (auto ok = writer.write(buffer.data(), static_cast<std::size_t>(part)); !ok) return ok;
        left -= static_cast<std::uint64_t>(part);
      }
      const std::array<char, kBlock> zeros{};
      if (size % kBlock)
        if (auto ok = writer.write(zeros.data(), kBlock - size % kBlock); !ok) return ok;
      ++packed.files;
      packed.bytes += size;
    }
    const std::array<char, 2 * kBlock> last{};
    return writer.write(last.data(), last.size(), true);
  };
  if (auto ok = write(); !ok) return base::fail(std::move(ok));
  if (auto ok = file_out->commit(); !ok) return base::fail(std::move(ok));
  packed.packed_bytes = fs::file_size(archive, error);
  return packed;
}

base::Result<void> replace_run(const std::filesystem::path& run, const std::filesystem::path& archive) {
  const base::TemporaryFolder again("rangescope-pack");
  const auto whole = unpack_run(archive, again.path(), UnpackLimits{});
  if (!whole) return tl::make_unexpected(whole.error());
  const auto differences = verify(whole->path);
  if (!differences) return tl::make_unexpected(differences.error());
  if (differences->empty()) return remove_run(run);
  return base::fail(base::Code::kBadData,
                    differences->front().path + " is not as it was written (" + differences->front().what + ")",
                    run.string(), "The run was packed and stays; see `rangescope runs verify`");
}

}  // namespace rangescope::runs
