#include "report/sink.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace rangescope::report {

FileSink::FileSink(std::filesystem::path path) : path_(std::move(path)) {
  // A device or pipe (/dev/stdout, /dev/null, a FIFO) is written as it is: renaming would replace it.
  std::error_code ignored;
  const auto status = std::filesystem::status(path_, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    file_ = std::fopen(path_.c_str(), "we");
  } else {
    temporary_ = path_.string() + ".XXXXXX";
    const int fd = ::mkostemp(temporary_.data(), O_CLOEXEC);
    file_ = fd < 0 ? nullptr : ::fdopen(fd, "w");
    if (fd < 0) temporary_.clear();
  }
  if (file_ == nullptr) error_ = errno;
}

FileSink::~FileSink() {
  if (file_ != nullptr) std::fclose(file_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void FileSink::write(std::string_view bytes) {
  if (error_ != 0 || bytes.empty()) return;
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) error_ = errno;
}

base::Result<void> FileSink::finish() {
  if (file_ != nullptr && error_ == 0 && !temporary_.empty()) {
    const mode_t mask = ::umask(0);
    ::umask(mask);
    if (::fchmod(::fileno(file_), 0666 & ~mask) != 0) error_ = errno;
  }
  if (file_ != nullptr && std::fclose(std::exchange(file_, nullptr)) != 0 && error_ == 0) error_ = errno;
  if (error_ == 0 && !temporary_.empty()) {
    if (::rename(temporary_.c_str(), path_.c_str()) != 0)
      error_ = errno;
    else
      temporary_.clear();
  }
  if (error_ == 0) return {};
  const base::Code code = error_ == EACCES || error_ == EROFS ? base::Code::kPermission : base::Code::kIo;
  return base::fail(code, std::string("cannot write the file: ") + std::strerror(error_), path_.string());
}

void DescriptorSink::flush() {
  std::string_view left = buffer_;
  while (!left.empty() && error_ == 0) {
    const ssize_t n = ::write(fd_, left.data(), left.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      error_ = errno;
    else
      left.remove_prefix(static_cast<std::size_t>(n));
  }
  buffer_.clear();
}

void DescriptorSink::write(std::string_view bytes) {
  buffer_ += bytes;
  if (buffer_.size() >= 64 * 1024) flush();
}

base::Result<void> DescriptorSink::finish() {
  flush();
  if (error_ == 0) return {};
  return base::fail(base::Code::kIo, std::string("writing failed: ") + std::strerror(error_), name_);
}

}  // namespace rangescope::report
