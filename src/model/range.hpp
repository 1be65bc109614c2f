// One occurrence of an NVTX range, as recorded, and what can hang on it.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "model/strings.hpp"

namespace rangescope::model {

/// "no such index" in any index field of the session
inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
/// `end_ns` of a range or launch that had not ended when recording stopped
inline constexpr std::int64_t kOpen = std::numeric_limits<std::int64_t>::max();

enum class RangeKind : std::uint8_t { kPushPop, kStartEnd };

/// As people call it: "push/pop", "start/end".
[[nodiscard]] constexpr std::string_view range_kind_text(RangeKind kind) {
  if (kind == RangeKind::kStartEnd)
    return "start/end";
  return "push/pop";
}
/// As files spell it: "push_pop", "start_end".
[[nodiscard]] constexpr std::string_view range_kind_key(RangeKind kind) {
  if (kind == RangeKind::kStartEnd)
    return "start_end";
  return "push_pop";
}

/// One occurrence. Times are nanoseconds of the session clock, ends inclusive. 40 bytes: there may
/// be fifty million. Within a thread, Session::ranges holds them in the order in which they were
/// pushed; that order decides nesting where start times are equal.
struct Range {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = kOpen;
  StringId name = 0;
  std::uint32_t thread = 0;  ///< index into Session::threads: where it began
  std::uint32_t end_thread =
      kNone;                 ///< start/end ranges: where it ended, if that is known and different
  std::uint32_t domain = 0;  ///< index into Session::domains; 0 is the default domain
  std::uint32_t attributes = kNone;  ///< index into Session::attributes
  RangeKind kind = RangeKind::kPushPop;
  bool registered = false;  ///< its name was an NVTX registered string
  bool module =
      false;  ///< no range of the program: a module's call, from its first to its last launch
};

enum class PayloadType : std::uint8_t {
  kAbsent,
  kUint64,
  kInt64,
  kDouble,
  kUint32,
  kInt32,
  kFloat
};

/// Category, colour and payload of a range or mark; most have none.
struct Attributes {
  std::uint32_t category = 0;
  std::uint32_t color_argb = 0;
  bool has_color = false;
  PayloadType payload_type = PayloadType::kAbsent;
  StringId text =
      0;  ///< what else the recording says: shapes of an operator's inputs; "" where nothing
  union {
    std::uint64_t payload_u64 = 0;
    std::int64_t payload_i64;
    double payload_double;  ///< kFloat is widened into this
  };

  /// The payload as a number; 0 when there is none.
  [[nodiscard]] double payload() const {
    switch (payload_type) {
      case PayloadType::kAbsent: return 0;
      case PayloadType::kUint64:
      case PayloadType::kUint32: return static_cast<double>(payload_u64);
      case PayloadType::kInt64:
      case PayloadType::kInt32: return static_cast<double>(payload_i64);
      case PayloadType::kDouble:
      case PayloadType::kFloat: return payload_double;
    }
    return 0;
  }
};

struct Mark {
  std::int64_t at_ns = 0;
  StringId name = 0;
  std::uint32_t thread = 0;
  std::uint32_t domain = 0;
  std::uint32_t attributes = kNone;
};

struct Domain {
  StringId name = 0;  ///< "" for the default domain
};

struct Category {
  std::uint32_t domain = 0;
  std::uint32_t process = 0;
  std::uint32_t id = 0;
  StringId name = 0;
};

/// A resource that the program named through NVTX (nvtxNameCuStreamA, nvtxDomainResourceCreate,
/// ...).
struct NamedResource {
  std::uint32_t process = 0;
  std::uint32_t domain = 0;
  std::uint32_t type = 0;  ///< NVTX identifierType, e.g. NVTX_RESOURCE_TYPE_CUDA_STREAM
  std::uint64_t identifier = 0;
  StringId name = 0;
};

}  // namespace rangescope::model
