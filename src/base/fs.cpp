#include "base/fs.hpp"

#include <fcntl.h>
#include <fmt/format.h>
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

Descriptor::~Descriptor() {
  if (fd_ >= 0)
    ::close(fd_);
}

namespace {

std::string reason() {
  return std::strerror(errno);
}

Result<int> open_for_reading(const std::filesystem::path& path, int more_flags = 0) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | more_flags);
  if (fd >= 0)
    return fd;
  Code code = Code::kNoInput;
  if (is_permission_error(errno))
    code = Code::kPermission;
  return fail(code, "cannot open the file: " + reason(), path.string());
}

/// A regular file, open; kNoInput for a pipe, a terminal, a device. O_NONBLOCK lets the open of a
/// pipe without a writer return, and the read of what only looks like a file (/proc/kmsg, tracefs's
/// trace_pipe): others do not know it.
Result<int> open_regular(const std::filesystem::path& path, struct stat& status) {
  const auto fd = open_for_reading(path, O_NONBLOCK | O_NOCTTY);
  if (!fd || (::fstat(*fd, &status) == 0 && S_ISREG(status.st_mode)))
    return fd;
  ::close(*fd);
  return fail(Code::kNoInput, "is not a regular file", path.string());
}

/// Pieces of a file until it ends or `piece` returns false.
Result<void> read_open(int fd,
                       const std::filesystem::path& path,
                       std::string& buffer,
                       const std::function<bool(std::string_view)>& piece) {
  for (;;) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0 && errno == EAGAIN)
      return fail(Code::kNoInput, "gives nothing now, and reading it would wait", path.string());
    if (n < 0)
      return fail(Code::kIo, "reading failed: " + reason(), path.string());
    if (n == 0 || !piece({buffer.data(), static_cast<std::size_t>(n)}))
      return {};
  }
}

/// `expected`: bytes that it probably has.
Result<std::string> read_from(int fd,
                              const std::filesystem::path& path,
                              std::size_t most,
                              std::size_t expected = 0) {
  const Descriptor file(fd);
  std::string bytes, buffer(std::min(std::size_t{64 * 1024}, most), '\0');
  bytes.reserve(std::min(expected, std::size_t{64} << 20));
  TRY(read_open(fd, path, buffer, [&](std::string_view piece) {
    bytes.append(piece);
    buffer.resize(std::min(buffer.size(), most - bytes.size()));
    return !buffer.empty();
  }));
  return bytes;
}

tl::unexpected<Error> cannot_write(const std::filesystem::path& path) {
  Code code = Code::kIo;
  if (is_write_permission_error(errno))
    code = Code::kPermission;
  std::string hint;
  if (errno == EFBIG)
    hint = "Raise the limit on the size of files: ulimit -f unlimited";
  if (errno == ENOSPC || errno == EDQUOT)
    hint = "Free some space, or write elsewhere";
  return fail(code, "cannot write the file: " + reason(), path.string(), std::move(hint));
}

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path) {
  std::error_code error;
  int flags = O_NOCTTY;
  if (std::filesystem::is_regular_file(path, error))
    flags |= O_NONBLOCK;
  const int fd = TRY(open_for_reading(path, flags));
  return read_from(fd, path, SIZE_MAX);
}

Result<std::string> read_head(const std::filesystem::path& path, std::size_t size) {
  struct stat status {};
  const int fd = TRY(open_regular(path, status));
  return read_from(fd, path, size);
}

Result<std::string> read_regular(const std::filesystem::path& path, std::size_t most) {
  struct stat status {};
  const int fd = TRY(open_regular(path, status));
  if (static_cast<std::uint64_t>(status.st_size) <= most)
    return read_from(fd, path, most, static_cast<std::size_t>(status.st_size));
  ::close(fd);
  return fail(Code::kBadData, "has more than " + std::to_string(most) + " bytes", path.string());
}

Result<void> read_pieces(const std::filesystem::path& path,
                         const std::function<void(std::string_view)>& piece) {
  struct stat status {};
  const Descriptor file(TRY(open_regular(path, status)));
  std::string buffer(1 << 18, '\0');
  return read_open(
      file.get(), path, buffer, [&](std::string_view read) { return piece(read), true; });
}

namespace {

/// Of one that is no plain file.
const char* kind_of_file(mode_t mode) {
  if (S_ISDIR(mode))
    return "a folder";
  if (S_ISLNK(mode))
    return "a symbolic link";
  return "a device, pipe or socket";
}

}  // namespace

Result<Replacement> Replacement::begin(const std::filesystem::path& path) {
  Replacement file;
  struct stat status {};
  file.target_ = in_place(path);
  const bool exists = ::lstat(file.target_.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) {
    std::string hint = "Name a file, or - for standard output.";
    if (S_ISDIR(status.st_mode))
      hint = "Name a file in it.";
    return fail(Code::kUsage,
                std::string("it is ") + kind_of_file(status.st_mode) +
                    ", and only a plain file is replaced",
                path.string(),
                std::move(hint));
  }
  file.path_ = path;
  auto name = std::make_unique<std::string>(file.target_.string() + ".XXXXXX");
  file.fd_ = Descriptor(::mkostemp(name->data(), O_CLOEXEC));
  if (file.fd_.get() < 0)
    return cannot_write(path);
  file.temporary_.reset(name.release());
  const mode_t mask = ::umask(0);
  ::umask(mask);
  file.mode_ = exists ? status.st_mode & 0777 : 0666 & ~mask;
  return file;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

void Replacement::Remove::operator()(std::string* name) const {
  ::unlink(name->c_str());
  delete name;
}

Result<void> Replacement::write(std::string_view bytes) {
  if (!write_all(fd_.get(), bytes))
    return cannot_write(path_);
  return {};
}

Result<void> Replacement::commit() {
  if (::fchmod(fd_.get(), mode_) != 0)
    return cannot_write(path_);
  if (::close(fd_.release()) != 0)
    return cannot_write(path_);  // a full disk may show only here
  if (::rename(temporary_->c_str(), target_.c_str()) != 0)
    return cannot_write(path_);
  delete temporary_.release();
  return {};
}

Result<void> write_file(const std::filesystem::path& path, std::string_view bytes) {
  auto file = TRY(Replacement::begin(path));
  TRY(file.write(bytes));
  return file.commit();
}

Result<Mapping> Mapping::open(const std::filesystem::path& path) {
  struct stat status {};
  const Descriptor file(TRY(open_regular(path, status)));
  const auto size = static_cast<std::size_t>(status.st_size);
  Mapping mapping;
  if (size == 0)
    return mapping;
  void* const data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED)
    return fail(Code::kIo, "cannot map the file: " + reason(), path.string());
  mapping.data_ = {static_cast<char*>(data), Unmap{size}};
  return mapping;
}

void Mapping::Unmap::operator()(char* data) const {
  ::munmap(data, size);
}

bool runnable(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

std::optional<std::filesystem::path> find_on_path(std::string_view name) {
  if (name.empty())
    return std::nullopt;
  if (name.find('/') != std::string_view::npos) {
    std::filesystem::path path(name);
    if (!runnable(path))
      return std::nullopt;
    return path;
  }
  const char* list = std::getenv("PATH");
  if (list == nullptr)
    list = "/usr/local/bin:/usr/bin:/bin";
  for (const std::string_view folder : split(list, ':')) {
    std::filesystem::path path = std::filesystem::path(folder.empty() ? "." : folder) / name;
    if (runnable(path))
      return path;
  }
  return std::nullopt;
}

std::filesystem::path self_path() {
  std::error_code error;
  auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error)
    return path;
  const auto* started_as =
      reinterpret_cast<const char*>(::getauxval(AT_EXECFN));  // where there is no /proc
  if (started_as == nullptr)
    return path;
  return std::filesystem::weakly_canonical(started_as, error);
}

std::filesystem::path state_folder() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/')
    return std::filesystem::path(state) / "rangescope";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/')
    return std::filesystem::path(home) / ".local/state/rangescope";
  return {};
}

std::string sanitize_component(std::string_view name) {
  constexpr std::size_t kMost = 100;
  std::string out;
  for (const char c : name.substr(0, kMost)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_' || c == '-';
    out += plain ? c : '_';
  }
  if (out.starts_with('.') || out.starts_with('-'))
    out.front() = '_';  // hidden, or an option to `rm *`
  if (out == name && !out.empty())
    return out;
  return fmt::format("{}-{:08x}", out, fnv1a(name) & 0xffffffff);
}

}  // namespace rangescope::base
