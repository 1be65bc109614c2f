#include "inject/cupti/gpu_stream.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>

#include "inject/nvtx/quiet.hpp"

namespace rangescope::inject::cupti {
namespace {

// Beyond the program's own RLIMIT_FSIZE the kernel would send SIGXFSZ, which ends the program.
bool is_allowed(std::uint64_t size) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0)
    return true;
  return limit.rlim_cur == RLIM_INFINITY || size <= limit.rlim_cur;
}

bool write_all(int file, const void* data, std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t written = ::write(file, static_cast<const char*>(data) + done, bytes - done);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      break;
    done += static_cast<std::size_t>(written);
  }
  return done == bytes;
}

}  // namespace

bool GpuStream::open(const char* path, const wire::gpu::FileHeader& header, std::uint64_t limit) {
  if (!is_allowed(sizeof header))
    return false;
  const int file = ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0)
    return false;
  const bool is_written = write_all(file, &header, sizeof header);
  ::close(file);
  if (!is_written || std::strlen(path) >= sizeof path_) {
    ::unlink(path);
    return false;
  }
  std::strcpy(path_, path);
  written_ = sizeof header;
  limit_ = limit;
  beyond_limit_ = failed_bytes_ = used_ = 0;
  return true;
}

unsigned char* GpuStream::room(const wire::gpu::RecordHeader& head, std::size_t bytes) {
  if (!is_open() || bytes > kCapacity)
    return nullptr;
  if (used_ + bytes > kCapacity)
    flush();
  const bool exceeds_limit = limit_ != 0 && written_ + used_ + bytes > limit_;
  const bool is_always_written =
      head.type == wire::gpu::Type::kLoss || head.type == wire::gpu::Type::kInfo;
  if (exceeds_limit && !is_always_written) {
    ++beyond_limit_;
    return nullptr;
  }
  unsigned char* record = block_ + sizeof(wire::gpu::BlockHeader) + used_;
  used_ += bytes;
  return record;
}

void GpuStream::put(const void* record, std::size_t bytes) {
  unsigned char* out = room(*static_cast<const wire::gpu::RecordHeader*>(record), bytes);
  if (out != nullptr)
    std::memcpy(out, record, bytes);
}

void GpuStream::put_with(wire::gpu::RecordHeader& head,
                         std::size_t bytes,
                         const void* extra,
                         std::size_t extra_bytes) {
  const std::size_t padded_bytes = (bytes + extra_bytes + 7) / 8 * 8;
  head.words = static_cast<std::uint16_t>(padded_bytes / 8);
  unsigned char* out = room(head, padded_bytes);
  if (out == nullptr)
    return;
  std::memcpy(out, &head, bytes);
  std::memcpy(out + bytes, extra, extra_bytes);
  std::memset(out + bytes + extra_bytes, 0, padded_bytes - bytes - extra_bytes);
}

bool GpuStream::append_block(std::size_t bytes) {
  if (!is_allowed(written_ + bytes))
    return false;
  const int file = ::open(path_, O_WRONLY | O_CLOEXEC);
  if (file < 0)
    return false;
  const bool is_written =
      ::lseek(file, static_cast<off_t>(written_), SEEK_SET) >= 0 && write_all(file, block_, bytes);
  if (!is_written && ::ftruncate(file, static_cast<off_t>(written_)) != 0) {
    // The torn block stays: the reader cuts it off, or the next block overwrites it.
  }
  ::close(file);
  return is_written;
}

void GpuStream::flush() {
  if (!is_open() || used_ == 0)
    return;
  const Quiet quiet;
  const std::size_t bytes = sizeof(wire::gpu::BlockHeader) + used_;
  const wire::gpu::BlockHeader header{wire::gpu::kBlockMagic,
                                      static_cast<std::uint32_t>(used_),
                                      wire::gpu::checksum(block_ + sizeof header, used_)};
  std::memcpy(block_, &header, sizeof header);
  if (append_block(bytes))
    written_ += bytes;
  else
    failed_bytes_ += bytes;
  used_ = 0;
}

void GpuStream::close() {
  flush();
  path_[0] = '\0';
}

}  // namespace rangescope::inject::cupti
