// The writer of the native capture, for the rest of the injected library: records events in the
// thread's stream, lists its open ranges and notifies an observer of ranges. Recording a range
// takes no lock, no malloc and no system call, except at the end of a chunk.
//
// Cost: a push and pop are two clock reads, one hash of the name, one table look-up and 16 bytes of
// capture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "inject/nvtx/capture.hpp"
#include "wire/native.hpp"

namespace rangescope::inject {

/// Text with its hash. Does not own the bytes.
struct Name {
  const char* text = nullptr;
  std::uint32_t bytes = 0;
  std::uint32_t hash = 0;
  bool registered = false;
  bool cut = false;
};
/// Null is the empty name. A name that is too long is cut. The hash mixes eight bytes a step, as
/// wyhash does, because names are short.
[[nodiscard]] inline Name name_of(const char* text, std::size_t bytes) {
  Name name;
  if (text == nullptr)
    return name;
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
  const auto word_at = [](const char* position) {
    std::uint64_t word;
    std::memcpy(&word, position, 8);
    return word;
  };
  const auto half_word_at = [](const char* position) {
    std::uint32_t word;
    std::memcpy(&word, position, 4);
    return std::uint64_t{word};
  };
  if (bytes >= 8) {
    for (std::size_t i = 0; i + 8 < bytes; i += 8)
      mix(word_at(text + i));
    mix(word_at(text + bytes - 8));  // overlaps the previous word
  } else if (bytes >= 4) {
    mix(half_word_at(text) << 32 | half_word_at(text + bytes - 4));
  } else if (bytes > 0) {
    const auto byte = [text](std::size_t i) {
      return std::uint64_t{static_cast<unsigned char>(text[i])};
    };
    mix(byte(0) << 16 | byte(bytes / 2) << 8 | byte(bytes - 1));
  }
  name.hash = static_cast<std::uint32_t>(hash ^ hash >> 32);
  return name;
}
/// The same of a text that ends with 0.
[[nodiscard]] inline Name name_of(const char* text) {
  if (text == nullptr)
    return {};
  return name_of(text, strnlen(text, wire::native::kMaxNameBytes + 1));
}

struct Payload {
  std::uint32_t type = 0;  ///< nvtxPayloadType_t, 0: none
  std::uint64_t bits = 0;
};

/// The attributes of a range or mark.
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
  bool recorded;        ///< its push is in the capture
  bool inherited;       ///< pushed before fork, by the parent
  bool gone;            ///< popped, but ranges of other domains above it are still open
  std::uint8_t chunk;   ///< of its stream, when it was pushed
  Payload payload;
  std::int64_t start_ns;  ///< 0 if it is not recorded
};

/// Called around ranges: `push` and `start` before the range's time begins, `pop` and `end` after
/// it has ended, so that the observer's time is not in the range. Called on the range's thread,
/// without a lock; NVTX calls made inside are recorded. `level` is the nesting level within the
/// domain. Each function may be null.
struct RangeObserver {
  void (*push)(const Event& event, int level);
  void (*pop)(std::uint32_t domain, int level);
  void (*start)(const Event& event, std::uint64_t id);
  void (*end)(std::uint64_t id);
};
/// Null removes the observer. An observer stays valid until the process ends. Without one the cost
/// is a predictable branch.
void set_range_observer(const RangeObserver* observer);

/// The open push/pop ranges of the calling thread, bottom to top over all domains (skip those that
/// are `gone`). The array is valid until the thread's next NVTX call. Null and 0 if the thread has
/// none. Async-signal-safe.
[[nodiscard]] const OpenRange* open_ranges(std::size_t& count);

/// Name of a domain by id ("" for the default domain).
[[nodiscard]] const char* domain_name(std::uint32_t domain);

/// Starts recording in this process; false if no capture is wanted or possible. May be called any
/// number of times, on any thread.
bool writer_start();

int record_push(const Event& event);
int record_pop(std::uint32_t domain);
std::uint64_t record_start(const Event& event, std::uint64_t wanted_id);
void record_end(std::uint64_t id);
void record_mark(const Event& event);
void record_category(std::uint32_t domain, std::uint32_t category, const Name& name);
void record_thread_name(std::uint32_t tid, const Name& name);
void record_resource(std::uint32_t domain,
                     std::uint32_t type,
                     std::uint64_t identifier,
                     const Name& name);

struct PayloadLayout;  // inject/nvtx/payloads.hpp
/// A payload of that layout (`layout_id` below kMostLayouts) for the innermost open range of the
/// domain on this thread.
void record_payload(std::uint32_t domain,
                    const PayloadLayout& layout,
                    std::uint32_t layout_id,
                    const void* bytes);

/// What NVTX itself returns without a tool: the event was not taken.
inline constexpr int kNotTracked = -2;

}  // namespace rangescope::inject
