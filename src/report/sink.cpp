#include "report/sink.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/progress.hpp"

namespace rangescope::report {
namespace {

constexpr std::size_t kSinkBuffer = 64 * 1024;

}  // namespace

void FileSink::flush() {
  if (!file_)
    return;
  base::Work::done(buffer_.size());
  if (auto written = file_->write(buffer_); !written)
    file_ = tl::make_unexpected(written.error());
  buffer_.clear();
}

void FileSink::write(std::string_view bytes) {
  buffer_ += bytes;
  if (buffer_.size() >= kSinkBuffer)
    flush();
}

base::Result<void> FileSink::finish() {
  flush();
  if (!file_)
    return tl::make_unexpected(file_.error());
  return file_->commit();
}

void DescriptorSink::flush() {
  std::string_view left = buffer_;
  while (!left.empty() && error_ == 0) {
    const ssize_t n = ::write(fd_, left.data(), left.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      error_ = errno;
    else
      left.remove_prefix(static_cast<std::size_t>(n));
  }
  buffer_.clear();
}

void DescriptorSink::write(std::string_view bytes) {
  buffer_ += bytes;
  if (buffer_.size() >= kSinkBuffer)
    flush();
}

base::Result<void> DescriptorSink::finish() {
  flush();
  if (error_ == 0 || (error_ == EPIPE && may_leave_))
    return {};
  return base::fail(
      base::Code::kIo, std::string("writing failed: ") + std::strerror(error_), name_);
}

}  // namespace rangescope::report
