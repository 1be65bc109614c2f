#include "sample/stream.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <limits>
#include <utility>

namespace rangescope::sample {
namespace {

namespace format = wire::samples;

constexpr std::size_t kMostItems = 4096;  // a block; also flushed once a second

std::int64_t read_clock(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

bool write_all(int fd, const char* data, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t done = ::write(fd, data, bytes);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    data += done;
    bytes -= static_cast<std::size_t>(done);
  }
  return true;
}

/// Values byte by byte: the lowest byte of all, then the next.
template <class T>
void append_transposed(const std::vector<T>& values, std::string& out) {
  const std::size_t at = out.size(), count = values.size();
  out.resize(at + count * sizeof(T));
  for (std::size_t i = 0; i < count; ++i) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &values[i], sizeof(T));
    for (std::size_t b = 0; b < sizeof(T); ++b) out[at + b * count + i] = bytes[b];
  }
}

std::vector<std::int64_t> differences(const std::vector<std::int64_t>& values) {
  std::vector<std::int64_t> out(values.size());
  std::int64_t before = 0;
  for (std::size_t i = 0; i < values.size(); ++i) out[i] = values[i] - std::exchange(before, values[i]);
  return out;
}

std::string text_of(const Description& description) {
  std::string text = "source " + description.source + "\nclock " + description.clock + "\ndevice " +
                     std::to_string(description.device) + "\nuuid " + description.uuid + "\nname " + description.name +
                     "\nchip " + description.chip + "\ninterval_ns " + std::to_string(description.interval_ns) + "\n";
  for (const std::string& metric : description.metrics) text += "metric " + metric + "\n";
  return text;
}

}  // namespace

std::int64_t now_ns() {
  return read_clock(CLOCK_MONOTONIC);
}

base::Result<Stream> Stream::create(const std::filesystem::path& file, Description description,
                                    std::uint64_t most_bytes) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return base::fail(base::Code::kIo, std::string("cannot be written: ") + std::strerror(errno), file);
  Stream stream(fd, std::move(description), most_bytes);
  format::FileHeader header{};
  std::memcpy(header.magic, format::kMagic, sizeof header.magic);
  header.version = format::kVersion;
  header.header_bytes = sizeof header;
  header.pid = static_cast<std::uint32_t>(::getpid());
  header.monotonic_ns = read_clock(CLOCK_MONOTONIC);
  header.realtime_ns = read_clock(CLOCK_REALTIME);
  char bytes[sizeof header];
  std::memcpy(bytes, &header, sizeof header);
  stream.failed_ = !write_all(fd, bytes, sizeof bytes);
  stream.put(format::Type::kDescription, text_of(stream.description_), 0);
  return stream;
}

Stream::Stream(int fd, Description description, std::uint64_t most_bytes)
    : fd_(fd),
      description_(std::move(description)),
      most_bytes_(most_bytes),
      sums_(description_.metrics.size()),
      columns_(description_.metrics.size()) {}

Stream::Stream(Stream&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      description_(std::move(other.description_)),
      most_bytes_(other.most_bytes_),
      bytes_(other.bytes_),
      samples_(other.samples_),
      merge_(other.merge_),
      merged_(other.merged_),
      failed_(other.failed_),
      merged_start_ns_(other.merged_start_ns_),
      merged_end_ns_(other.merged_end_ns_),
      covered_ns_(other.covered_ns_),
      sums_(std::move(other.sums_)),
      starts_(std::move(other.starts_)),
      ends_(std::move(other.ends_)),
      columns_(std::move(other.columns_)) {}

Stream::~Stream() {
  if (fd_ >= 0) ::close(fd_);
}

void Stream::add(std::int64_t start_ns, std::int64_t end_ns, const double* values) {
  // What lies before a gap is no part of the sample behind it.
  if (merged_ > 0 && start_ns - merged_end_ns_ > 1000) take(merged_start_ns_, merged_end_ns_);
  const auto length = static_cast<double>(std::max<std::int64_t>(end_ns - start_ns, 1));
  if (merged_ == 0) {
    merged_start_ns_ = start_ns;
    covered_ns_ = 0;
    std::fill(sums_.begin(), sums_.end(), 0);
  }
  for (std::size_t m = 0; m < sums_.size(); ++m) sums_[m] += values[m] * (description_.adds_up[m] ? 1 : length);
  covered_ns_ += static_cast<std::int64_t>(length);
  merged_end_ns_ = end_ns;
  if (++merged_ >= merge_) take(merged_start_ns_, merged_end_ns_);
}

void Stream::take(std::int64_t start_ns, std::int64_t end_ns) {
  merged_ = 0;
  ++samples_;
  starts_.push_back(start_ns);
  ends_.push_back(end_ns);
  for (std::size_t m = 0; m < sums_.size(); ++m)
    columns_[m].push_back(
        static_cast<float>(description_.adds_up[m] ? sums_[m] : sums_[m] / static_cast<double>(covered_ns_)));
  if (starts_.size() >= kMostItems) flush(false);
}

void Stream::event(format::EventKind kind, std::string_view text, std::uint32_t count) {
  const format::Event event{kind, count, now_ns()};
  std::string raw(sizeof event, '\0');
  std::memcpy(raw.data(), &event, sizeof event);
  raw += text;
  put(format::Type::kEvent, raw, 1);
}

void Stream::flush(bool last) {
  if (last && merged_ > 0) take(merged_start_ns_, merged_end_ns_);
  if (!starts_.empty()) {
    std::string raw;
    raw.reserve(format::raw_bytes(starts_.size(), columns_.size()));
    append_transposed(differences(starts_), raw);
    append_transposed(differences(ends_), raw);
    for (const auto& column : columns_) append_transposed(column, raw);
    put(format::Type::kSamples, raw, static_cast<std::uint32_t>(starts_.size()));
    starts_.clear();
    ends_.clear();
    for (auto& column : columns_) column.clear();
    // Merging doubles each time that half of what was left is gone: what follows fits, however long it takes.
    if (bytes_ > most_bytes_ - most_bytes_ / (2ull * merge_) && merge_ < (1u << 20)) {
      merge_ *= 2;
      event(format::EventKind::kCoarser, "the file of samples came near its bound", merge_);
    }
  }
  if (last) put(format::Type::kEnd, "cpu_ns " + std::to_string(read_clock(CLOCK_PROCESS_CPUTIME_ID)), 0);
}

void Stream::put(format::Type type, std::string_view raw, std::uint32_t items) {
  if (failed_) return;
  std::string packed(ZSTD_compressBound(raw.size()), '\0');
  const std::size_t size = ZSTD_compress(packed.data(), packed.size(), raw.data(), raw.size(), 1);
  if (ZSTD_isError(size)) return;
  const format::BlockHeader head{format::kBlockMagic,
                                 type,
                                 static_cast<std::uint32_t>(raw.size()),
                                 static_cast<std::uint32_t>(size),
                                 items,
                                 format::checksum(packed.data(), size)};
  std::string block(sizeof head, '\0');
  std::memcpy(block.data(), &head, sizeof head);
  block.append(packed.data(), size);
  failed_ = !write_all(fd_, block.data(), block.size());
  bytes_ += block.size();
}

}  // namespace rangescope::sample
