#include "runs/pack.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "base/fs.hpp"
#include "base/owned.hpp"
#include "base/temporary_folder.hpp"
#include "base/text.hpp"
#include "runs/layout.hpp"
#include "runs/manifest.hpp"
#include "runs/retention.hpp"
#include "runs/zstd_writer.hpp"

namespace rangescope::runs {
namespace {

namespace fs = std::filesystem;
using base::Code;

/// A ustar, whose bytes go into a zstd frame with a checksum.
class TarWriter {
 public:
  explicit TarWriter(base::Replacement& file) : frame_(file), tar_(::archive_write_new()) {
    ::archive_write_set_format_ustar(tar_.get());
    const auto write = [](archive*, void* self, const void* bytes, std::size_t size) -> la_ssize_t {
      auto& done = static_cast<TarWriter*>(self)->written_;
      done = static_cast<TarWriter*>(self)->frame_.write(static_cast<const char*>(bytes), size);
      return done ? static_cast<la_ssize_t>(size) : -1;
    };
    ::archive_write_open(tar_.get(), this, nullptr, write, nullptr);
  }
  base::Result<void> begin(const std::string& name, bool folder, std::uint64_t size) {
    const std::unique_ptr<archive_entry, void (*)(archive_entry*)> entry(::archive_entry_new(), ::archive_entry_free);
    ::archive_entry_set_pathname(entry.get(), name.c_str());
    ::archive_entry_set_filetype(entry.get(), folder ? AE_IFDIR : AE_IFREG);
    ::archive_entry_set_perm(entry.get(), folder ? 0700 : 0600);
    ::archive_entry_set_size(entry.get(), static_cast<la_int64_t>(size));
    return check(::archive_write_header(tar_.get(), entry.get()) == ARCHIVE_OK, name);
  }
  base::Result<void> write(const char* bytes, std::size_t size) {
    return check(::archive_write_data(tar_.get(), bytes, size) == static_cast<la_ssize_t>(size), {});
  }
  base::Result<void> end() {
    TRY(check(::archive_write_close(tar_.get()) == ARCHIVE_OK, {}));
    return frame_.write(nullptr, 0, true);
  }

 private:
  base::Result<void> check(bool done, const std::string& name) const {
    if (done || !written_) return written_;
    const char* why = ::archive_error_string(tar_.get());
    return base::fail(Code::kIo, why != nullptr ? why : "it cannot be packed", name,
                      "Pack a run whose paths have at most 255 bytes.");
  }
  ZstdWriter frame_;
  base::Result<void> written_;
  base::Owned<archive, &::archive_write_free> tar_;
};

bool is_nsys_report(const fs::path& path) {
  const std::string extension = (path.extension() == ".zst" ? path.stem() : path).extension().string();
  return extension == ".nsys-rep" || extension == ".qdrep" || extension == ".qdstrm";
}

}  // namespace

base::Result<Packed> pack_run(const fs::path& run, const fs::path& archive, bool with_reports) {
  if (!is_run_dir(run))
    return base::fail(Code::kUsage, "this is not a run directory", run.string(),
                      "Name a folder that rangescope made; `rangescope runs list` shows them.");
  // Neither hidden nor an option where it is unpacked.
  std::error_code error;
  std::string root = fs::weakly_canonical(run, error).filename().string();
  if (root.starts_with('.') || root.starts_with('-') || base::printable(root) != root)
    root = "run" + base::sanitize_component(root);
  std::vector<fs::path> paths;
  for (fs::recursive_directory_iterator it(run, error), end; it != end && !error; it.increment(error))
    if (!it->is_symlink()) paths.push_back(it->path());
  if (error) return base::fail(Code::kIo, "cannot list the run: " + error.message(), run.string());
  std::sort(paths.begin(), paths.end());
  auto file_out = TRY(base::Replacement::begin(archive));
  Packed packed;
  packed.path = archive;
  const auto write = [&]() -> base::Result<void> {
    TarWriter writer(file_out);
    std::vector<char> buffer(1 << 16);
    for (const fs::path& path : paths) {
      const bool folder = fs::is_directory(path, error);
      if (!folder && !fs::is_regular_file(path, error)) continue;
      if (!folder && !with_reports && is_nsys_report(path)) continue;
      const std::string name = root + "/" + path.lexically_relative(run).generic_string() + (folder ? "/" : "");
      const std::uint64_t size = folder ? 0 : written_bytes(path);
      TRY(writer.begin(name, folder, size));
      if (folder) continue;
      std::ifstream file(path, std::ios::binary);
      if (!file) return base::fail(Code::kIo, "cannot read", path.string());
      for (std::uint64_t left = size; left > 0;) {
        const auto part = static_cast<std::streamsize>(std::min<std::uint64_t>(left, buffer.size()));
        file.read(buffer.data(), part);
        if (file.gcount() != part)
          return base::fail(Code::kIo, "the file changed while it was packed", path.string(),
                            "Pack the run when nothing writes into it.");
        TRY(writer.write(buffer.data(), static_cast<std::size_t>(part)));
        left -= static_cast<std::uint64_t>(part);
      }
      ++packed.files;
      packed.bytes += size;
    }
    return writer.end();
  };
  TRY(write());
  TRY(file_out.commit());
  packed.packed_bytes = fs::file_size(archive, error);
  return packed;
}

base::Result<void> replace_run(const std::filesystem::path& run, const std::filesystem::path& archive) {
  const base::TemporaryFolder again("rangescope-pack");
  const auto whole = TRY(unpack_run(archive, again.path(), UnpackLimits{}));
  const auto differences = TRY(verify(whole.path));
  if (differences.empty()) return remove_run(run);
  return base::fail(base::Code::kBadData,
                    differences.front().path + " has changed since it was written (" + differences.front().what + ")",
                    run.string(), "The run was packed and stays; see `rangescope runs verify`");
}

}  // namespace rangescope::runs
