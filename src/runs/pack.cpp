// ustar: 512-byte headers (name 100, mode 8, uid 8, gid 8, size 12 octal, mtime 12, checksum 8, type 1, link 100,
// "ustar\0" "00", ..., prefix 155 at 345), file bytes padded to 512, two zero blocks at the end.
#include "runs/pack.hpp"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "runs/layout.hpp"

namespace rangescope::runs {
namespace {

namespace fs = std::filesystem;
using base::Code;

constexpr std::size_t kBlock = 512;

struct FreeC {
  void operator()(ZSTD_CCtx* c) const { ZSTD_freeCCtx(c); }
};
struct FreeD {
  void operator()(ZSTD_DCtx* d) const { ZSTD_freeDCtx(d); }
};

class Writer {
 public:
  explicit Writer(const fs::path& path)
      : file_(path, std::ios::binary), path_(path), context_(ZSTD_createCCtx()), buffer_(ZSTD_CStreamOutSize()) {
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, 6);
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
  }
  base::Result<void> write(const char* data, std::size_t size, bool end = false) {
    ZSTD_inBuffer in{data, size, 0};
    while (true) {
      ZSTD_outBuffer out{buffer_.data(), buffer_.size(), 0};
      const std::size_t left = ZSTD_compressStream2(context_.get(), &out, &in, end ? ZSTD_e_end : ZSTD_e_continue);
      if (ZSTD_isError(left)) return base::fail(Code::kInternal, ZSTD_getErrorName(left), path_.string());
      file_.write(buffer_.data(), static_cast<std::streamsize>(out.pos));
      if (!file_) return base::fail(Code::kIo, "cannot write", path_.string(), "Is the disk full?");
      if (end ? left == 0 : in.pos == in.size) break;
    }
    if (end) {
      file_.close();
      if (!file_) return base::fail(Code::kIo, "cannot write", path_.string(), "Is the disk full?");
    }
    return {};
  }

 private:
  std::ofstream file_;
  fs::path path_;
  std::unique_ptr<ZSTD_CCtx, FreeC> context_;
  std::vector<char> buffer_;
};

class Reader {
 public:
  explicit Reader(const fs::path& path)
      : file_(path, std::ios::binary), path_(path), context_(ZSTD_createDCtx()), raw_(ZSTD_DStreamInSize()) {
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, 27);
  }
  [[nodiscard]] bool open() const { return file_.is_open(); }
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
    std::array<char, kBlock> rest{};
    while (left_ != 0) {
      ZSTD_outBuffer out{rest.data(), rest.size(), 0};
      if (auto ok = decode(out); !ok) return ok;
    }
    return {};
  }

 private:
  base::Result<void> decode(ZSTD_outBuffer& out) {
    if (in_.pos == in_.size && !pending_) {
      file_.read(raw_.data(), static_cast<std::streamsize>(raw_.size()));
      in_ = {raw_.data(), static_cast<std::size_t>(file_.gcount()), 0};
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
  std::ifstream file_;
  fs::path path_;
  std::unique_ptr<ZSTD_DCtx, FreeD> context_;
  std::vector<char> raw_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
};

using Header = std::array<char, kBlock>;

void octal(char* field, std::size_t size, std::uint64_t value) {
  for (std::size_t i = size - 1; i-- > 0; value >>= 3) field[i] = static_cast<char>('0' + (value & 7));
}

std::uint64_t checksum(const Header& header) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kBlock; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(header[i]);
  return sum;
}

base::Result<Header> header_of(std::string name, std::uint64_t size, char type, std::int64_t mtime) {
  Header header{};
  std::string prefix;
  if (name.size() > 100) {  // the prefix takes whole folders
    const auto slash = name.rfind('/', 155);
    if (slash == std::string::npos || name.size() - slash - 1 > 100)
      return base::fail(Code::kIo, "the path is too long for a tar file", name,
                        "Pack a run whose paths have at most 255 bytes.");
    prefix = name.substr(0, slash);
    name = name.substr(slash + 1);
  }
  std::memcpy(header.data(), name.data(), name.size());
  octal(&header[100], 8, type == '5' ? 0755 : 0644);
  octal(&header[108], 8, 0);
  octal(&header[116], 8, 0);
  octal(&header[124], 12, size);
  octal(&header[136], 12, static_cast<std::uint64_t>(std::max<std::int64_t>(0, mtime)));
  header[156] = type;
  std::memcpy(&header[257], "ustar\00000", 8);
  std::memcpy(&header[345], prefix.data(), prefix.size());
  octal(&header[148], 7, checksum(header));
  header[155] = ' ';
  return header;
}

std::string field(const Header& header, std::size_t at, std::size_t size) {
  const char* begin = &header[at];
  return {begin, static_cast<std::size_t>(std::find(begin, begin + size, '\0') - begin)};
}

std::optional<std::uint64_t> number(const Header& header, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  bool any = false;
  for (std::size_t i = at; i < at + size; ++i) {
    const char c = header[i];
    if (c >= '0' && c <= '7')
      value = value * 8 + static_cast<std::uint64_t>(c - '0'), any = true;
    else if (c == ' ' || c == '\0') {
      if (any) break;
    } else
      return std::nullopt;
  }
  return value;
}

/// A path that stays below the folder into which it is unpacked.
bool safe(const std::string& name) {
  if (name.empty() || name.front() == '/') return false;
  for (const std::string_view part : base::split(name, '/'))
    if (part == "..") return false;
  return name.find('\0') == std::string::npos;
}

bool is_nsys_report(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".nsys-rep" || extension == ".qdrep" || extension == ".qdstrm";
}

}  // namespace

base::Result<Packed> pack_run(const fs::path& run, const fs::path& archive, bool with_reports) {
  if (!is_run_dir(run))
    return base::fail(Code::kUsage, "this is no run directory", run.string(),
                      "Name a folder that rangescope made; `rangescope runs list` shows them.");
  const std::string root = fs::weakly_canonical(run).filename().string();
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::recursive_directory_iterator it(run, error), end; it != end && !error; it.increment(error))
    if (!it->is_symlink()) paths.push_back(it->path());
  if (error) return base::fail(Code::kIo, "cannot list the run: " + error.message(), run.string());
  std::sort(paths.begin(), paths.end());
  const fs::path temporary = archive.string() + ".part";
  Packed packed;
  packed.path = archive;
  const auto write = [&]() -> base::Result<void> {
    Writer writer(temporary);
    std::vector<char> buffer(1 << 16);
    for (const fs::path& path : paths) {
      const bool folder = fs::is_directory(path, error);
      if (!folder && !fs::is_regular_file(path, error)) continue;
      if (!folder && !with_reports && is_nsys_report(path)) continue;
      std::string name = root + "/" + path.lexically_relative(run).generic_string();
      if (folder) name += "/";
      const std::uint64_t size = folder ? 0 : fs::file_size(path, error);
      auto header = header_of(name, size, folder ? '5' : '0', 0);
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
  if (auto ok = write(); !ok) {
    fs::remove(temporary, error);
    return base::fail(std::move(ok));
  }
  fs::rename(temporary, archive, error);
  if (error) return base::fail(Code::kIo, "cannot write: " + error.message(), archive.string());
  packed.packed_bytes = fs::file_size(archive, error);
  return packed;
}

base::Result<Packed> unpack_run(const fs::path& archive, const fs::path& root) {
  std::error_code error;
  Reader reader(archive);
  if (!reader.open()) return base::fail(Code::kNoInput, "cannot be opened", archive.string());
  Packed packed;
  packed.packed_bytes = fs::file_size(archive, error);
  std::string name_of_run;
  fs::path temporary;
  const auto bad = [&](const std::string& what) {
    return base::fail(Code::kBadData, what, archive.string(), "Unpack only archives that `rangescope runs pack` made.");
  };
  const auto read = [&]() -> base::Result<void> {
    std::vector<char> buffer(1 << 16);
    while (true) {
      Header header{};
      if (auto ok = reader.read(header.data(), kBlock); !ok) return ok;
      if (std::all_of(header.begin(), header.end(), [](char c) { return c == '\0'; })) return reader.finish();
      const auto sum = number(header, 148, 8);
      if (field(header, 257, 5) != "ustar" || !sum || *sum != checksum(header)) return bad("this is no tar header");
      const std::string prefix = field(header, 345, 155);
      const std::string name = prefix.empty() ? field(header, 0, 100) : prefix + "/" + field(header, 0, 100);
      const auto size = number(header, 124, 12);
      const char type = header[156];
      if (!safe(name) || !size || (type != '0' && type != '5' && type != '\0'))
        return bad("it holds '" + base::printable(name) + "', which no run has");
      const std::string top = name.substr(0, name.find('/'));
      if (name_of_run.empty()) {
        name_of_run = top;
        packed.path = root / top;
        if (fs::exists(packed.path, error))
          return base::fail(Code::kUsage, "the run is there already", packed.path.string(),
                            "Remove it, or unpack into another folder with --root.");
        temporary = root / ("." + top + ".unpacking");
        fs::remove_all(temporary, error);
        fs::create_directories(temporary, error);
        if (error) return base::fail(Code::kIo, "cannot make the folder: " + error.message(), temporary.string());
      }
      if (top != name_of_run) return bad("it holds more than one run");
      const fs::path target = name == top || name == top + "/" ? temporary : temporary / name.substr(top.size() + 1);
      if (type == '5') {
        fs::create_directories(target, error);
        if (error) return base::fail(Code::kIo, "cannot make the folder: " + error.message(), target.string());
        continue;
      }
      fs::create_directories(target.parent_path(), error);
      std::ofstream file(target, std::ios::binary);
      for (std::uint64_t left = *size; left > 0;) {
        const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(left, buffer.size()));
        if (auto ok = reader.read(buffer.data(), part); !ok) return ok;
        file.write(buffer.data(), static_cast<std::streamsize>(part));
        left -= part;
      }
      if (*size % kBlock)
        if (auto ok = reader.read(buffer.data(), kBlock - *size % kBlock); !ok) return ok;
      file.close();
      if (!file) return base::fail(Code::kIo, "cannot write", target.string(), "Is the disk full?");
      ++packed.files;
      packed.bytes += *size;
    }
  };
  auto done = read();
  if (done && (name_of_run.empty() || !is_run_dir(temporary))) done = bad("it holds no run of rangescope");
  if (done) {
    fs::rename(temporary, packed.path, error);
    if (error) done = base::fail(Code::kIo, "cannot rename: " + error.message(), packed.path.string());
  }
  if (!done) {
    if (!temporary.empty()) fs::remove_all(temporary, error);
    return base::fail(std::move(done));
  }
  return packed;
}

}  // namespace rangescope::runs
