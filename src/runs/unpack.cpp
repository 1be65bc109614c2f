// Unpacking what somebody sent: every name is checked, every file made new below a folder that is held open, and the
// run gets its name when all of it is there and its checksum is right.
#include <archive.h>
#include <archive_entry.h>
#include <unistd.h>
#include <zstd.h>

#include <fmt/format.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fs.hpp"
#include "base/owned.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "base/unpacked.hpp"
#include "runs/folder.hpp"
#include "runs/layout.hpp"
#include "runs/pack.hpp"

namespace rangescope::runs {
namespace {

namespace fs = std::filesystem;
using base::Code;

/// The members of a tar in a zstd frame. libarchive reads the tar; the frame is ours, because its checksum comes
/// behind the last member, and an archive that lacks it was cut.
class ArchiveReader {
 public:
  ArchiveReader(std::string_view archive, fs::path path)
      : archive_(archive), path_(std::move(path)), context_(ZSTD_createDCtx()), tar_(::archive_read_new()) {
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, 27);
    ::archive_read_support_format_tar(tar_.get());
    const auto read = [](struct archive*, void* self, const void** piece) {
      return static_cast<ArchiveReader*>(self)->decode(piece);
    };
    ::archive_read_open(tar_.get(), this, nullptr, read, nullptr);
  }
  /// The next member; null at the end of the tar.
  base::Result<archive_entry*> next() {
    archive_entry* entry = nullptr;
    const int got = ::archive_read_next_header(tar_.get(), &entry);
    if (got == ARCHIVE_OK || got == ARCHIVE_WARN) return entry;
    if (got == ARCHIVE_EOF && ::archive_filter_bytes(tar_.get(), 0) > 0) return nullptr;
    return damaged();
  }
  /// Exactly `size` bytes of it; fewer are damage.
  base::Result<void> read(char* data, std::size_t size) {
    const auto got = ::archive_read_data(tar_.get(), data, size);
    return got == static_cast<la_ssize_t>(size) ? base::Result<void>() : damaged();
  }
  /// Reads on to the end of the frame.
  base::Result<void> finish() {
    constexpr std::size_t kMost = std::size_t{1} << 20;  // tar pads to 10 KiB, some writers to more
    for (std::size_t rest = 0; left_ != 0;) {
      const void* piece = nullptr;
      const auto got = decode(&piece);
      if (got < 0) return damaged();
      if ((rest += static_cast<std::size_t>(got)) > kMost)
        return base::fail(Code::kBadData, "data follows its end", path_.string());
    }
    return {};
  }

 private:
  tl::unexpected<base::Error> damaged() const {
    if (damage_) return tl::make_unexpected(*damage_);
    return base::fail(Code::kBadData, "this is not a tar archive, or it is damaged", path_.string(),
                      "Unpack only archives that `rangescope runs pack` made.");
  }
  /// The next bytes of the frame: none at its end, -1 where it is damaged.
  la_ssize_t decode(const void** piece) {
    *piece = buffer_.data();
    ZSTD_outBuffer out{buffer_.data(), buffer_.size(), 0};
    while (left_ != 0 && out.pos == 0) {
      if (in_.pos == in_.size && !pending_) {
        in_ = {archive_.data(), std::min(archive_.size(), buffer_.size()), 0};
        archive_.remove_prefix(in_.size);
        if (in_.size == 0) {
          damage_ = {Code::kBadData, "the archive ends in the middle", path_.string(), "Copy it again."};
          return -1;
        }
      }
      left_ = ZSTD_decompressStream(context_.get(), &out, &in_);
      pending_ = out.pos == out.size;  // there may be more where this came from, without further input
      if (!ZSTD_isError(left_)) continue;
      damage_ = {Code::kBadData,
                 std::string("not a zstd archive, or damaged: ") + ZSTD_getErrorName(left_),
                 path_.string(),
                 {}};
      return -1;
    }
    return static_cast<la_ssize_t>(out.pos);
  }

  std::size_t left_ = 1;  // 0 at the end of the frame
  bool pending_ = false;
  std::string_view archive_;
  fs::path path_;
  std::optional<base::Error> damage_;
  std::vector<char> buffer_ = std::vector<char>(std::size_t{1} << 17);
  ZSTD_inBuffer in_{nullptr, 0, 0};
  base::Owned<ZSTD_DCtx, &ZSTD_freeDCtx> context_;
  base::Owned<archive, &::archive_read_free> tar_;  // last: it uses all the others
};

/// The components of a member's name, the run's own first; nothing for a name that no run has: absolute, with an empty,
/// `.` or `..` component, a control character, or a run that would be hidden or an option.
std::optional<std::vector<std::string>> components(std::string_view name, bool folder) {
  if (folder && name.ends_with('/')) name.remove_suffix(1);
  if (base::printable(name) != name) return std::nullopt;
  std::vector<std::string> parts;
  for (const std::string_view part : base::split(name, '/')) {
    if (part.empty() || part == "." || part == ".." || part.size() > 255) return std::nullopt;
    parts.emplace_back(part);
  }
  if (parts.front().front() == '.' || parts.front().front() == '-') return std::nullopt;
  return parts;
}

/// Owns the hidden folder until the run has its name.
class Unpacker {
 public:
  Unpacker(fs::path archive, Folder root, UnpackLimits limits)
      : archive_(std::move(archive)), root_(std::move(root)), limits_(limits) {}

  base::Result<Packed> run(std::string_view bytes) {
    packed_.packed_bytes = bytes.size();
    ArchiveReader reader(bytes, archive_);
    auto done = members(reader);
    if (done && (name_.empty() || !is_run_dir(root_.path() / hidden_))) done = bad("it holds no run of rangescope");
    if (done) done = root_.rename(hidden_, name_);
    if (done) return packed_;
    top_.reset();
    if (!hidden_.empty()) (void)root_.remove(hidden_);
    return base::fail(std::move(done));
  }

 private:
  [[nodiscard]] tl::unexpected<base::Error> bad(const std::string& what) const {
    return base::fail(Code::kBadData, what, archive_.string(),
                      "Unpack only archives that `rangescope runs pack` made.");
  }

  base::Result<void> members(ArchiveReader& reader) {
    for (std::uint64_t count = 0;; ++count) {
      const auto member = TRY(reader.next());
      archive_entry* const entry = member;
      if (entry == nullptr) return reader.finish();
      const char* path = ::archive_entry_pathname(entry);
      const std::string name = path != nullptr ? path : "";
      const auto type = ::archive_entry_filetype(entry);
      const bool folder = type == AE_IFDIR, linked = ::archive_entry_hardlink(entry) != nullptr;
      const auto parts = components(name, folder);
      const auto bytes = ::archive_entry_size(entry);
      if (!parts || (!folder && type != AE_IFREG) || linked || (!folder && parts->size() == 1) || bytes < 0)
        return bad("it holds '" + base::printable(name) + "', which no run has");
      const auto size = static_cast<std::uint64_t>(bytes);
      if (count >= limits_.members || (!folder && size > limits_.bytes - packed_.bytes))
        return base::fail(
            Code::kBadData,
            fmt::format("it unpacks to more than {} in {}", base::format_bytes(static_cast<double>(limits_.bytes)),
                        base::counted(limits_.members, "file")),
            archive_.string(), "Pass --no-limit if you trust it and have the space.");
      TRY(begin(parts->front()));
      TRY(one(reader, *parts, folder ? std::nullopt : std::optional(size)));
    }
  }

  /// Makes the hidden folder at the first member.
  base::Result<void> begin(const std::string& name) {
    if (!name_.empty()) return name == name_ ? base::Result<void>() : bad("it holds more than one run");
    std::error_code error;
    packed_.path = root_.path() / name;
    if (fs::exists(fs::symlink_status(packed_.path, error)))
      return base::fail(Code::kUsage, "the run is there already", packed_.path.string(),
                        "Remove it, or unpack into another folder with --runs.");
    auto made = TRY(root_.make_new("." + name + ".unpacking-"));
    hidden_ = made.path().filename().string();
    top_ = std::move(made);
    name_ = name;
    return {};
  }

  base::Result<void> one(ArchiveReader& reader, const std::vector<std::string>& parts,
                         std::optional<std::uint64_t> size) {
    std::optional<Folder> at;
    const auto here = [&]() -> const Folder& { return at ? *at : *top_; };
    const std::size_t folders = size ? parts.size() - 1 : parts.size();
    for (std::size_t i = 1; i < folders; ++i) {
      auto below = here().make(parts[i]);
      if (!below) return bad("'" + base::join(parts, "/") + "' is both a file and a folder");
      at = std::move(*below);
    }
    if (!size) return {};
    const auto file = here().create(parts.back());
    if (!file)
      return file.error().what.find(std::strerror(EEXIST)) != std::string::npos
                 ? bad("it holds '" + base::join(parts, "/") + "' twice")
                 : base::fail(base::Result<int>(file));
    auto ok = fill(reader, *file, *size);
    if (::close(*file) != 0 && ok) ok = base::fail(Code::kIo, "cannot write", parts.back(), "Is the disk full?");
    ++packed_.files;
    packed_.bytes += *size;
    return ok;
  }

  base::Result<void> fill(ArchiveReader& reader, int file, std::uint64_t size) {
    for (std::uint64_t left = size; left > 0;) {
      const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(left, buffer_.size()));
      TRY(reader.read(buffer_.data(), part));
      if (!base::write_all(file, {buffer_.data(), part}))
        return base::fail(Code::kIo, std::string("cannot write: ") + std::strerror(errno), packed_.path.string(),
                          "Is the disk full?");
      left -= part;
    }
    return {};
  }

  fs::path archive_;
  Folder root_;
  UnpackLimits limits_;
  std::optional<Folder> top_;
  std::string name_, hidden_;
  std::vector<char> buffer_ = std::vector<char>(1 << 16);
  Packed packed_;
};

}  // namespace

base::Result<Packed> unpack_run(const fs::path& archive, const fs::path& root, std::optional<UnpackLimits> limits) {
  const auto file = TRY(base::Mapping::open(archive));
  std::error_code error;
  fs::create_directories(root, error);
  auto folder = TRY(Folder::open(fs::weakly_canonical(root, error)));
  const std::string_view bytes = file.text();
  if (!limits) limits = {.bytes = base::most_unpacked(bytes.size()), .members = 100'000};
  return Unpacker(archive, std::move(folder), *limits).run(bytes);
}

}  // namespace rangescope::runs
