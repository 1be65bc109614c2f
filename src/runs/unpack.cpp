// Unpacking what somebody sent: every name is checked, every file made new below a folder that is held open, and the
// run gets its name when all of it is there and its checksum is right.
#include <unistd.h>
#include <zstd.h>

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fs.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "runs/folder.hpp"
#include "runs/layout.hpp"
#include "runs/pack.hpp"
#include "runs/ustar.hpp"

namespace rangescope::runs {
namespace {

namespace fs = std::filesystem;
using base::Code;
using ustar::kBlock;

struct FreeD {
  void operator()(ZSTD_DCtx* d) const { ZSTD_freeDCtx(d); }
};

class ArchiveReader {
 public:
  ArchiveReader(std::string_view archive, fs::path path)
      : archive_(archive), path_(std::move(path)), context_(ZSTD_createDCtx()) {
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, 27);
  }
  /// Exactly `size` bytes; fewer are damage.
  base::Result<void> read(char* data, std::size_t size) {
    ZSTD_outBuffer out{data, size, 0};
    while (out.pos < out.size) {
      if (auto ok = decode(out); !ok) return ok;
    }
    return {};
  }
  /// Reads on to the end of the frame: its checksum stands there, and an archive that lacks it was cut.
  base::Result<void> finish() {
    constexpr int kMostBlocks = 2048;  // tar pads to 20, some writers to more
    std::array<char, kBlock> rest{};
    for (int block = 0; left_ != 0; ++block) {
      ZSTD_outBuffer out{rest.data(), rest.size(), 0};
      if (auto ok = decode(out); !ok) return ok;
      if (block == kMostBlocks) return base::fail(Code::kBadData, "there is more behind its end", path_.string());
    }
    return {};
  }

 private:
  base::Result<void> decode(ZSTD_outBuffer& out) {
    if (in_.pos == in_.size && !pending_) {
      const auto part = archive_.substr(0, kMostInput);
      archive_.remove_prefix(part.size());
      in_ = {part.data(), part.size(), 0};
      if (in_.size == 0)
        return base::fail(Code::kBadData, "the archive ends in the middle", path_.string(), "Copy it again.");
    }
    left_ = ZSTD_decompressStream(context_.get(), &out, &in_);
    pending_ = out.pos == out.size;  // there may be more where this came from, without further input
    if (ZSTD_isError(left_))
      return base::fail(Code::kBadData, std::string("not a zstd archive, or damaged: ") + ZSTD_getErrorName(left_),
                        path_.string());
    return {};
  }

  std::size_t left_ = 1;  // 0 at the end of the frame
  bool pending_ = false;
  static constexpr std::size_t kMostInput = std::size_t{1} << 17;
  std::string_view archive_;
  fs::path path_;
  std::unique_ptr<ZSTD_DCtx, FreeD> context_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
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
      ustar::Header header{};
      if (auto ok = reader.read(header.data(), kBlock); !ok) return ok;
      if (std::all_of(header.begin(), header.end(), [](char c) { return c == '\0'; })) return reader.finish();
      const auto member = ustar::read(header);
      if (!member) return bad("this is no tar header");
      const bool folder = member->type == '5';
      const auto parts = components(member->name, folder);
      if (!parts || (!folder && member->type != '0' && member->type != '\0') || (!folder && parts->size() == 1))
        return bad("it holds '" + base::printable(member->name) + "', which no run has");
      if (count >= limits_.members || (!folder && member->size > limits_.bytes - packed_.bytes))
        return base::fail(
            Code::kBadData,
            fmt::format("it unpacks to more than {} in {}", base::format_bytes(static_cast<double>(limits_.bytes)),
                        base::counted(limits_.members, "file")),
            archive_.string(), "Say --no-limit if you trust it and have the space.");
      if (auto ok = begin(parts->front()); !ok) return ok;
      if (auto ok = one(reader, *parts, folder ? std::nullopt : std::optional(member->size)); !ok) return ok;
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
    auto made = root_.make_new("." + name + ".unpacking-");
    if (!made) return base::fail(std::move(made));
    hidden_ = made->path().filename().string();
    top_ = std::move(*made);
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
      if (auto ok = reader.read(buffer_.data(), part); !ok) return ok;
      for (std::size_t written = 0; written < part;) {
        const ssize_t n = ::write(file, buffer_.data() + written, part - written);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
          return base::fail(Code::kIo, std::string("cannot write: ") + std::strerror(errno), packed_.path.string(),
                            "Is the disk full?");
        written += static_cast<std::size_t>(n);
      }
      left -= part;
    }
    return size % kBlock ? reader.read(buffer_.data(), kBlock - size % kBlock) : base::Result<void>();
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

UnpackLimits unpack_limits(std::uint64_t packed_bytes) {
  constexpr std::uint64_t kAlways = std::uint64_t{256} << 20, kRatio = 100;
  return {.bytes = std::max(kAlways, packed_bytes * kRatio), .members = 100'000};
}

base::Result<Packed> unpack_run(const fs::path& archive, const fs::path& root, std::optional<UnpackLimits> limits) {
  const auto file = base::Mapping::open(archive);
  if (!file) return base::fail(base::Result<base::Mapping>(tl::make_unexpected(file.error())));
  std::error_code error;
  fs::create_directories(root, error);
  auto folder = Folder::open(fs::weakly_canonical(root, error));
  if (!folder) return base::fail(std::move(folder));
  return Unpacker(archive, std::move(*folder), limits.value_or(unpack_limits(file->text().size()))).run(file->text());
}

}  // namespace rangescope::runs
