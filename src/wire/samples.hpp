// Samples of a device: `<run>/samples/*.samples`, written by sample/ in rangescope's own process,
// read by read/samples. Little-endian.
//
//   FileHeader
//   repeat: BlockHeader, `packed_bytes` bytes: a zstd frame of `raw_bytes` bytes
//
// A block is appended with one write, so that it survives the death of the process. A block that
// does not end inside the file, or whose checksum differs, is a torn tail: it and everything after
// it are cut off and counted.
//
// kDescription is the first block. It is text, one `key value` a line: source, clock, device, uuid,
// name, chip, interval_ns, and `metric <name>` for each column, in order. `clock` is `gpu`
// (nanoseconds of the GPU's timer, about the time since 1970) or `monotonic`.
//
// kSamples has `items` samples by column: start_ns and end_ns as 64-bit integers, then each metric
// as 32-bit floats (NaN if it was not read). The integers are differences to the previous item; the
// first one is whole. Every column is stored byte by byte, first the lowest byte of all items, then
// the next, so that similar values compress well.
//
// kEvent is an Event and a text. kEnd is the last block of a sampler that was stopped in an orderly
// way. Its text has the CPU time that sampling took, `cpu_ns N`, and on a second line, `lead_ns N`,
// the minimum by which CLOCK_MONOTONIC was ahead of a sample's end when the sample was read. That
// and the time until the sample was read is the offset of the clocks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rangescope::wire::samples {

inline constexpr char kMagic[8] = {'R', 'S', 'S', 'M', 'P', '\r', '\n', '\0'};
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint32_t kBlockMagic = 0x53535352;  // "RSSS"
inline constexpr const char* kFolder = "samples";
inline constexpr const char* kSuffix = ".samples";
/// Next to the streams: a process that counts asks the sampler to release the device.
inline constexpr const char* kAsideFile = "aside";
/// A block holds at most this many bytes unpacked, and a stream this many metrics.
inline constexpr std::uint32_t kMostRawBytes = 16u << 20;
inline constexpr std::uint32_t kMostMetrics = 64;

struct FileHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t header_bytes;  ///< blocks begin here
  std::uint32_t pid;           ///< of the sampler
  std::uint32_t reserved;
  std::int64_t monotonic_ns;  ///< CLOCK_MONOTONIC
  std::int64_t realtime_ns;   ///< the same moment, CLOCK_REALTIME
};
static_assert(sizeof(FileHeader) == 40);

enum class Type : std::uint32_t { kDescription = 1, kSamples = 2, kEvent = 3, kEnd = 4 };

struct BlockHeader {
  std::uint32_t magic;
  Type type;
  std::uint32_t raw_bytes;
  std::uint32_t packed_bytes;
  std::uint32_t items;
  std::uint32_t checksum;  ///< checksum() of the packed bytes
};
static_assert(sizeof(BlockHeader) == 24);

enum class EventKind : std::uint32_t {
  kOverflow = 1,     ///< the hardware's buffer was full: samples are missing
  kFailed = 2,       ///< sampling ended before the program did; the text says why
  kCoarser = 3,      ///< the file approached its bound: from now on `count` samples are merged
  kUnavailable = 4,  ///< nothing was sampled; the text says why
  kAside = 5         ///< sampling pauses because the program itself counts; `count` 0: it continues
};

/// In front of the text of a kEvent block.
struct Event {
  EventKind kind;
  std::uint32_t count;
  std::int64_t at_ns;  ///< CLOCK_MONOTONIC
};
static_assert(sizeof(Event) == 16);

/// FNV-1a.
[[nodiscard]] inline std::uint32_t checksum(const void* data, std::size_t bytes) {
  std::uint32_t sum = 0x811c9dc5u;
  const auto* begin = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; ++i)
    sum = (sum ^ begin[i]) * 0x01000193u;
  return sum;
}

/// Bytes of `items` samples of `metrics` columns, unpacked.
[[nodiscard]] constexpr std::size_t raw_bytes(std::size_t items, std::size_t metrics) {
  return items * (16 + 4 * metrics);
}

}  // namespace rangescope::wire::samples
