#include "inject/cupti/gpu_stream.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>

#include "inject/nvtx/quiet.hpp"

namespace rangescope::inject::cupti {
namespace {

// Beyond the program's own RLIMIT_FSIZE the kernel would send SIGXFSZ, which ends it.
bool allowed(std::uint64_t size) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
         size <= limit.rlim_cur;
}

// The whole of it or nothing: the number of bytes that were taken.
std::size_t write_all(int file, const void* data, std::size_t bytes) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t taken = ::write(file, static_cast<const char*>(data) + done, bytes - done);
    if (taken < 0 && errno == EINTR) continue;
    if (taken <= 0) break;
    done += static_cast<std::size_t>(taken);
  }
  return done;
}

}  // namespace

bool GpuStream::open(const char* path, const wire::gpu::FileHeader& header, std::uint64_t limit) {
  if (!allowed(sizeof header)) return false;
  const int file = ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) return false;
  const bool whole = write_all(file, &header, sizeof header) == sizeof header;
  ::close(file);
  if (!whole || std::strlen(path) >= sizeof path_) {
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
  if (!is_open() || bytes > kCapacity) return nullptr;
  if (used_ + bytes > kCapacity) flush();
  if (limit_ != 0 && written_ + used_ + bytes > limit_ && head.type != wire::gpu::Type::kLoss &&
      head.type != wire::gpu::Type::kInfo) {
    ++beyond_limit_;
    return nullptr;
  }
  unsigned char* at = block_ + sizeof(wire::gpu::BlockHeader) + used_;
  used_ += bytes;
  return at;
}

void GpuStream::put(const void* record, std::size_t bytes) {
  if (unsigned char* at = room(*static_cast<const wire::gpu::RecordHeader*>(record), bytes);
      at != nullptr)
    std::memcpy(at, record, bytes);
}

void GpuStream::put_with(wire::gpu::RecordHeader& head, std::size_t bytes, const void* extra,
                         std::size_t extra_bytes) {
  const std::size_t all = (bytes + extra_bytes + 7) / 8 * 8;
  head.words = static_cast<std::uint16_t>(all / 8);
  if (unsigned char* at = room(head, all); at != nullptr) {
    std::memcpy(at, &head, bytes);
    std::memcpy(at + bytes, extra, extra_bytes);
    std::memset(at + bytes + extra_bytes, 0, all - bytes - extra_bytes);
  }
}

void GpuStream::flush() {
  if (!is_open() || used_ == 0) return;
  const Quiet quiet;
  const std::size_t bytes = sizeof(wire::gpu::BlockHeader) + used_;
  const wire::gpu::BlockHeader header{wire::gpu::kBlockMagic, static_cast<std::uint32_t>(used_),
                                      wire::gpu::checksum(block_ + sizeof header, used_)};
  std::memcpy(block_, &header, sizeof header);
  const int file = allowed(written_ + bytes) ? ::open(path_, O_WRONLY | O_CLOEXEC) : -1;
  bool whole = false;
  if (file >= 0) {
    whole = ::lseek(file, static_cast<off_t>(written_), SEEK_SET) >= 0 &&
            write_all(file, block_, bytes) == bytes;
    if (!whole && ::ftruncate(file, static_cast<off_t>(written_)) != 0) {
      // The torn block stays: the reader cuts it, or the next one overwrites it.
    }
    ::close(file);
  }
  if (whole)
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
