#include "base/fs.hpp"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>

#include "base/hash.hpp"
#include "base/held_folder.hpp"
#include "base/text.hpp"

namespace rangescope::base {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

std::string reason() {
  return std::strerror(errno);
}

Result<int> open_for_reading(const std::filesystem::path& path, int more_flags = 0) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | more_flags);
  if (fd >= 0) return fd;
  const Code code = errno == EACCES || errno == EPERM ? Code::kPermission : Code::kNoInput;
  return fail(code, "cannot open the file: " + reason(), path.string());
}

/// A regular file, open; kNoInput for a pipe, a terminal, a device. O_NONBLOCK lets the open of a pipe without a writer
/// return, and the read of what only looks like a file (/proc/kmsg, tracefs's trace_pipe): others do not know it.
Result<int> open_regular(const std::filesystem::path& path, struct stat& status) {
  const auto fd = open_for_reading(path, O_NONBLOCK | O_NOCTTY);
  if (!fd || (::fstat(*fd, &status) == 0 && S_ISREG(status.st_mode))) return fd;
  ::close(*fd);
  return fail(Code::kNoInput, "is not a regular file", path.string());
}

/// Pieces of a file until it ends or `piece` says false.
Result<void> read_open(int fd, const std::filesystem::path& path, std::string& buffer,
                       const std::function<bool(std::string_view)>& piece) {
  for (;;) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN)
      return fail(Code::kNoInput, "gives nothing now, and reading it would wait", path.string());
    if (n < 0) return fail(Code::kIo, "reading failed: " + reason(), path.string());
    if (n == 0 || !piece({buffer.data(), static_cast<std::size_t>(n)})) return {};
  }
}

/// `expected`: bytes that it probably has.
Result<std::string> read_from(int fd, const std::filesystem::path& path, std::size_t most, std::size_t expected = 0) {
  const Descriptor file(fd);
  std::string bytes, buffer(std::min(std::size_t{64 * 1024}, most), '\0');
  bytes.reserve(std::min(expected, std::size_t{64} << 20));
  const auto read = read_open(fd, path, buffer, [&](std::string_view piece) {
    bytes.append(piece);
    buffer.resize(std::min(buffer.size(), most - bytes.size()));
    return !buffer.empty();
  });
  if (!read) return fail(Result<void>(read));
  return bytes;
}

tl::unexpected<Error> cannot_write(const std::filesystem::path& path) {
  const Code code = errno == EACCES || errno == EPERM || errno == EROFS ? Code::kPermission : Code::kIo;
  return fail(code, "cannot write the file: " + reason(), path.string());
}

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path) {
  std::error_code error;
  const bool regular = std::filesystem::is_regular_file(path, error);
  const auto fd = open_for_reading(path, O_NOCTTY | (regular ? O_NONBLOCK : 0));
  if (!fd) return fail(Result<int>(fd));
  return read_from(*fd, path, SIZE_MAX);
}

Result<std::string> read_head(const std::filesystem::path& path, std::size_t size) {
  struct stat status {};
  const auto fd = open_regular(path, status);
  if (!fd) return fail(Result<int>(fd));
  return read_from(*fd, path, size);
}

Result<std::string> read_regular(const std::filesystem::path& path, std::size_t most) {
  struct stat status {};
  const auto fd = open_regular(path, status);
  if (!fd) return fail(Result<int>(fd));
  if (static_cast<std::uint64_t>(status.st_size) <= most)
    return read_from(*fd, path, most, static_cast<std::size_t>(status.st_size));
  ::close(*fd);
  return fail(Code::kBadData, "has more than " + std::to_string(most) + " bytes", path.string());
}

Result<void> read_pieces(const std::filesystem::path& path, const std::function<void(std::string_view)>& piece) {
  struct stat status {};
  const auto fd = open_regular(path, status);
  if (!fd) return fail(Result<int>(fd));
  const Descriptor file(*fd);
  std::string buffer(1 << 18, '\0');
  return read_open(*fd, path, buffer, [&](std::string_view read) { return piece(read), true; });
}

Result<Replacement> Replacement::begin(const std::filesystem::path& path) {
  Replacement file;
  struct stat status {};
  file.target_ = in_place(path);
  const bool exists = ::lstat(file.target_.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) {
    const char* what = S_ISDIR(status.st_mode)   ? "a folder"
                       : S_ISLNK(status.st_mode) ? "a symbolic link"
                                                 : "a device, pipe or socket";
    return fail(Code::kUsage, std::string("it is ") + what + ", and only a plain file is replaced", path.string(),
                S_ISDIR(status.st_mode) ? "Name a file in it." : "Name a file, or - for standard output.");
  }
  file.path_ = path;
  file.temporary_ = file.target_.string() + ".XXXXXX";
  file.fd_ = ::mkostemp(file.temporary_.data(), O_CLOEXEC);
  if (file.fd_ < 0) return file.temporary_.clear(), cannot_write(path);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  file.mode_ = exists ? status.st_mode & 0777 : 0666 & ~mask;
  return file;
}

Replacement::Replacement(Replacement&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      mode_(other.mode_),
      fd_(std::exchange(other.fd_, -1)) {}

Replacement& Replacement::operator=(Replacement&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(target_, other.target_);
  std::swap(temporary_, other.temporary_);
  std::swap(mode_, other.mode_);
  std::swap(fd_, other.fd_);
  return *this;
}

Replacement::~Replacement() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<void> Replacement::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return cannot_write(path_);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Result<void> Replacement::commit() {
  if (::fchmod(fd_, mode_) != 0) return cannot_write(path_);
  if (::close(std::exchange(fd_, -1)) != 0) return cannot_write(path_);  // a full disk may show only here
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) return cannot_write(path_);
  temporary_.clear();
  return {};
}

Result<void> write_file(const std::filesystem::path& path, std::string_view bytes) {
  auto file = Replacement::begin(path);
  if (!file) return fail(std::move(file));
  if (auto written = file->write(bytes); !written) return written;
  return file->commit();
}

Result<Mapping> Mapping::open(const std::filesystem::path& path) {
  struct stat status {};
  const auto fd = open_regular(path, status);
  if (!fd) return fail(Result<int>(fd));
  const Descriptor file(*fd);
  Mapping mapping;
  mapping.size_ = static_cast<std::size_t>(status.st_size);
  if (mapping.size_ == 0) return mapping;
  mapping.data_ = ::mmap(nullptr, mapping.size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (mapping.data_ == MAP_FAILED) {
    mapping.data_ = nullptr;
    mapping.size_ = 0;
    return fail(Code::kIo, "cannot map the file: " + reason(), path.string());
  }
  return mapping;
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

std::optional<std::filesystem::path> find_on_path(std::string_view name) {
  const auto usable = [](const std::filesystem::path& path) {
    std::error_code error;
    return std::filesystem::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
  };
  if (name.empty()) return std::nullopt;
  if (name.find('/') != std::string_view::npos) {
    std::filesystem::path path(name);
    return usable(path) ? std::optional(path) : std::nullopt;
  }
  const char* list = std::getenv("PATH");
  for (const std::string_view folder : split(list == nullptr ? "/usr/local/bin:/usr/bin:/bin" : list, ':')) {
    std::filesystem::path path = std::filesystem::path(folder.empty() ? "." : folder) / name;
    if (usable(path)) return path;
  }
  return std::nullopt;
}

std::filesystem::path self_path() {
  std::error_code error;
  auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) return path;
  const auto* started_as = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));  // where there is no /proc
  return started_as == nullptr ? path : std::filesystem::weakly_canonical(started_as, error);
}

std::string sanitize_component(std::string_view name) {
  constexpr std::size_t kMost = 100;
  std::string out;
  for (const char c : name.substr(0, kMost)) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    out += plain ? c : '_';
  }
  if (out.starts_with('.') || out.starts_with('-')) out.front() = '_';  // hidden, or an option to `rm *`
  if (out == name && !out.empty()) return out;
  constexpr char kDigits[] = "0123456789abcdef";
  out += '-';
  const std::uint64_t hash = fnv1a(name);
  for (int shift = 28; shift >= 0; shift -= 4) out += kDigits[(hash >> shift) & 15];
  return out;
}

}  // namespace rangescope::base
