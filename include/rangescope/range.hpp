// Ranges for programs that want to be measured: `rangescope::Range range("decode");` lasts until
// the end of its block.
//
// Header-only C++17 over NVTX 3: <nvtx3/nvToolsExt.h> where it is there, else nvtx_client.hpp
// beside this file, which needs nothing but the C library (-ldl before glibc 2.34). Any profiler
// that reads NVTX sees these ranges, and without one a range costs a few nanoseconds.
//
//   rangescope::Range step("step");                          in NVTX's default domain
//   rangescope::Range decode("decode", {.payload = tokens}); a number that belongs to this
//   occurrence (C++20 spelling) rangescope::Range layer("layer", options); options.domain =
//   &domain, a rangescope::Domain
//
// Is a synchronization needed at the end? No: GPU work belongs to the range that launched it,
// whenever it runs. Ask for one
// (`options.sync_after = [] { cudaDeviceSynchronize(); }`) only where the *wall time* of a range is
// to hold its GPU work: it keeps the CPU from running ahead, so the program becomes slower by what
// it had overlapped.
#pragma once

#if __has_include(<nvtx3/nvToolsExt.h>) && !defined(RANGESCOPE_WITHOUT_NVTX_HEADERS)
#include <nvtx3/nvToolsExt.h>
#else
#include "nvtx_client.hpp"
#endif

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace rangescope {
namespace detail {

/// A pop closes the latest push of its thread: of ranges that do not nest, in coroutines, it closes
/// another one. Said once, under rangescope.
inline void say_crossing() {
  static bool said = false;
  const char* library = std::getenv("NVTX_INJECTION64_PATH");
  if (said || library == nullptr || std::strstr(library, "librangescope_inject") == nullptr) return;
  said = true;
  std::fputs(
      "rangescope: warning: a rangescope::Range ends while another one of its thread, which began "
      "later, is open: "
      "both are recorded with wrong times. In a coroutine use nvtxRangeStartA and nvtxRangeEnd\n",
      stderr);
}

}  // namespace detail

/// An NVTX domain: the ranges of one library or layer, apart from others'. Make one that lives as
/// long as the program.
class Domain {
 public:
  explicit Domain(const char* name) : handle_(nvtxDomainCreateA(name)) {}
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;
  nvtxDomainHandle_t handle() const { return handle_; }

 private:
  nvtxDomainHandle_t handle_;
};

struct RangeOptions {
  std::optional<std::uint64_t> payload =
      std::nullopt;  ///< tokens, batch size, ...: `--bucket-by payload` tells them apart
  const Domain* domain = nullptr;  ///< the default domain where none is given
  void (*sync_after)() = nullptr;  ///< called before the range ends: see above for what it costs
};

/// A push/pop range of the calling thread, from construction to destruction. Ranges of a thread
/// nest.
class Range {
 public:
  explicit Range(const char* name, const RangeOptions& options = {})
      : domain_(options.domain ? options.domain->handle() : nullptr),
        sync_after_(options.sync_after) {
    nvtxEventAttributes_t event{};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_ASCII;
    event.message.ascii = name;
    if (options.payload) {
      event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
      event.payload.ullValue = *options.payload;
    }
    level_ = nvtxDomainRangePushEx(domain_, &event);
  }
  ~Range() {
    if (sync_after_) sync_after_();
    const int ended_level = nvtxDomainRangePop(domain_);
    const bool is_tracked = level_ >= 0 && ended_level >= 0;  // else nobody records
    if (is_tracked && ended_level != level_) detail::say_crossing();
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  nvtxDomainHandle_t domain_;
  void (*sync_after_)();
  int level_ = 0;
};

}  // namespace rangescope
