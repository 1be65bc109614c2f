// The writer of the native capture, as the rest of the injected library uses it: a thread's stream,
// its open ranges, and the observers of ranges. No lock, no malloc and no system call on the way of
// a range (a chunk's end aside).
//
// Cost: a push+pop pair is two clock reads, one hash of the name, one table look-up and 16 bytes of
// capture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "inject/nvtx/capture.hpp"
#include "wire/native.hpp"

namespace rangescope::inject {

/// Text with its hash; the bytes belong to the caller.
struct Name {
  const char* text = nullptr;
  std::uint32_t bytes = 0;
  std::uint32_t hash = 0;
  bool registered = false;
  bool cut = false;
};
/// Null is the empty name; what is too long is cut. The hash mixes eight bytes a step as wyhash
/// does: names are short.
[[nodiscard]] inline Name name_of(const char* text, std::size_t bytes) {
  Name name;
  if (text == nullptr) return name;
  if (bytes > wire::native::kMaxNameBytes) {
    bytes = wire::native::kMaxNameBytes;
    name.cut = true;
  }
  name.text = text;
  name.bytes = static_cast<std::uint32_t>(bytes);
  std::uint64_t hash = 0x9e3779b97f4a7c15ull ^ bytes;
  const auto mix = [&hash](std::uint64_t word) {
    const auto product = static_cast<unsigned __int128>(hash ^ word) * 0xa0761d6478bd642full;
    hash = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  };
  const auto word_at = [](const char* at) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    return word;
  };
  const auto half_at = [](const char* at) {
    std::uint32_t word;
    std::memcpy(&word, at, 4);
    return std::uint64_t{word};
  };
  if (bytes >= 8) {
    for (std::size_t at = 0; at + 8 < bytes; at += 8) mix(word_at(text + at));
    mix(word_at(text + bytes - 8));  // overlaps the word before it
  } else if (bytes >= 4) {
    mix(half_at(text) << 32 | half_at(text + bytes - 4));
  } else if (bytes > 0) {
    const auto byte = [text](std::size_t at) {
      return std::uint64_t{static_cast<unsigned char>(text[at])};
    };
    mix(byte(0) << 16 | byte(bytes / 2) << 8 | byte(bytes - 1));
  }
  name.hash = static_cast<std::uint32_t>(hash ^ hash >> 32);
  return name;
}

struct Payload {
  std::uint32_t type = 0;  ///< nvtxPayloadType_t, 0: none
  std::uint64_t bits = 0;
};

/// What a range or mark was given.
struct Event {
  Name name;
  std::uint32_t domain = 0;
  std::uint32_t category = 0;
  std::uint32_t color = 0;
  bool has_color = false;
  Payload payload;
};

/// An open push/pop range of a thread.
struct OpenRange {
  const char* name;  ///< in the stream's memory: valid while the range is open, not terminated
  std::uint32_t name_bytes;
  std::uint32_t domain;
  std::uint32_t below;  ///< index + 1 of the range below it in its domain, 0: none
  bool recorded;        ///< its push stands in the capture
  bool inherited;       ///< pushed before fork, by the parent
  bool gone;            ///< popped, though ranges of other domains above it are still open
  std::uint8_t chunk;   ///< of its stream, when it was pushed
  Payload payload;
  std::int64_t start_ns;  ///< 0 where it is not recorded
};

/// Called around ranges: `push` and `start` before the range's time begins, `pop` and `end` after
/// it has ended, so that what an observer does is not in the range. On the thread of the range,
/// with no lock held; NVTX calls made inside are recorded. `level` is the nesting level within the
/// domain. Any may be null.
struct RangeObserver {
  void (*push)(const Event& event, int level);
  void (*pop)(std::uint32_t domain, int level);
  void (*start)(const Event& event, std::uint64_t id);
  void (*end)(std::uint64_t id);
};
/// Null takes it away. The observer must live for ever. Costs one predictable branch where there is
/// none.
void set_range_observer(const RangeObserver* observer);

/// The open push/pop ranges of the calling thread, bottom to top over all domains (skip those that
/// are `gone`). The array is valid until the thread's next NVTX call. Null and 0 for a thread that
/// never opened one. Async-signal-safe.
[[nodiscard]] const OpenRange* open_ranges(std::size_t& count);

/// Name of a domain by id ("" for the default domain).
[[nodiscard]] const char* domain_name(std::uint32_t domain);

/// Starts recording in this process; false when no capture is wanted or possible. Any number of
/// times, on any thread.
bool writer_start();

int record_push(const Event& event);
int record_pop(std::uint32_t domain);
std::uint64_t record_start(const Event& event, std::uint64_t wanted_id);
void record_end(std::uint64_t id);
void record_mark(const Event& event);
void record_category(std::uint32_t domain, std::uint32_t category, const Name& name);
void record_thread_name(std::uint32_t tid, const Name& name);
void record_resource(std::uint32_t domain, std::uint32_t type, std::uint64_t identifier,
                     const Name& name);

struct PayloadLayout;  // inject/nvtx/payloads.hpp
/// A payload of that layout (`layout_id` below kMostLayouts) for the innermost open range of the
/// domain on this thread.
void record_payload(std::uint32_t domain, const PayloadLayout& layout, std::uint32_t layout_id,
                    const void* bytes);

/// What NVTX itself answers where no tool is: an event that was not taken.
inline constexpr int kNotTracked = -2;

}  // namespace rangescope::inject
