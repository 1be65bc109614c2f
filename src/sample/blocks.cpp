#include "sample/blocks.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <zstd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>

#include "base/fs.hpp"
#include "base/held_folder.hpp"
#include "wire/clock.hpp"

namespace rangescope::sample {
namespace {

namespace format = wire::samples;

std::int64_t read_clock(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

std::int64_t now_ns() {
  static const std::int64_t ahead = wire::clock_ahead_ns();
  return read_clock(CLOCK_MONOTONIC) - ahead;
}

base::Result<BlockFile> BlockFile::create(const std::filesystem::path& file,
                                          const char (&magic)[sizeof(format::FileHeader::magic)],
                                          std::uint32_t version) {
  const int fd =
      ::open(base::in_place(file).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0)
    return base::fail(
        base::Code::kIo, std::string("cannot be written: ") + std::strerror(errno), file);
  BlockFile out(fd);
  format::FileHeader header{};
  std::memcpy(header.magic, magic, sizeof header.magic);
  header.version = version;
  header.header_bytes = sizeof header;
  header.pid = static_cast<std::uint32_t>(::getpid());
  header.monotonic_ns = now_ns();
  header.realtime_ns = read_clock(CLOCK_REALTIME);
  char bytes[sizeof header];
  std::memcpy(bytes, &header, sizeof header);
  out.failed_ = !base::write_all(fd, {bytes, sizeof bytes});
  return out;
}

BlockFile::BlockFile(BlockFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), bytes_(other.bytes_), failed_(other.failed_) {}

BlockFile::~BlockFile() {
  if (fd_ >= 0)
    ::close(fd_);
}

void BlockFile::put(format::Type type, std::string_view raw, std::uint32_t items) {
  if (failed_)
    return;
  std::string packed(ZSTD_compressBound(raw.size()), '\0');
  const std::size_t size = ZSTD_compress(packed.data(), packed.size(), raw.data(), raw.size(), 1);
  if (ZSTD_isError(size))
    return;
  const format::BlockHeader head{format::kBlockMagic,
                                 type,
                                 static_cast<std::uint32_t>(raw.size()),
                                 static_cast<std::uint32_t>(size),
                                 items,
                                 format::checksum(packed.data(), size)};
  std::string block(sizeof head, '\0');
  std::memcpy(block.data(), &head, sizeof head);
  block.append(packed.data(), size);
  failed_ = !base::write_all(fd_, block);
  bytes_ += block.size();
}

void BlockFile::event(format::EventKind kind, std::string_view text, std::uint32_t count) {
  const format::Event event{kind, count, now_ns()};
  std::string raw(sizeof event, '\0');
  std::memcpy(raw.data(), &event, sizeof event);
  raw += text;
  put(format::Type::kEvent, raw, 1);
}

}  // namespace rangescope::sample
