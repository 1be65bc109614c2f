// Counter records, in the GPU stream of a native capture (wire/gpu.hpp, types 64 to 95): measured
// values, their ranges and occurrences, and what happened to the other occurrences. Written by
// inject/cupti/counters, read by read/native.
//
// Metrics and targets are defined before they are used. A Round is one complete set of values of a
// range, or, with `kernel` set, of one of its kernels; `count` doubles follow, in the order of the
// metrics' ids, NaN if CUPTI computed none. Names are the stream's Name records.
#pragma once

#include <cstdint>

#include "wire/gpu.hpp"

namespace rangescope::wire::counters {

enum class Type : std::uint8_t {
  kMetric = 64,    ///< Metric, then the name's bytes
  kTarget = 65,    ///< Target, then `names` ids of Name records (32 bit), bottom to top
  kRound = 66,     ///< Round, then `count` doubles
  kTally = 67,     ///< Tally
  kActivity = 68,  ///< Activity: the timeline was paused for the counters, or goes on
};

/// Round::kernel of a range as a whole.
inline constexpr std::uint32_t kWholeRange = 0xffffffffu;

struct Metric {
  gpu::RecordHeader head;  ///< id: index of the metric
  std::uint32_t bytes;
  std::uint32_t reserved;
};

struct Target {
  gpu::RecordHeader head;  ///< id: the target; small: 0 push/pop, 1 start/end
  std::uint32_t domain;    ///< a Name
  std::uint32_t names;
};

struct Round {
  gpu::RecordHeader head;  ///< id: the target
  std::uint32_t device;    ///< CUDA ordinal
  std::uint32_t kernel;    ///< position among the kernels of an occurrence, or kWholeRange
  std::uint32_t name;      ///< of the kernel (a Name, mangled), 0 for a range
  std::uint32_t passes;
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::uint32_t first;  ///< first occurrence that took part, from 0
  std::uint32_t count;
};

struct Tally {
  gpu::RecordHeader head;  ///< id: the target; small: 1 if kernels could not be distinguished (CUDA
                           ///< graphs), 2 if it stopped coming while passes were missing
  std::uint32_t occurrences, skipped_first, skipped_arming, measured, discarded, varied, rounds,
      passes, needed, device;
  std::uint32_t waits, waited_ms;  ///< how often and how long the program waited for the hardware
  std::uint32_t passed_over, unused;  ///< occurrences that the plan's `every` left out
};

struct Activity {
  gpu::RecordHeader head;  ///< small: 0 paused, 1 resumed
  std::int64_t at_ns;
};

static_assert(sizeof(Metric) == 16 && sizeof(Target) == 16 && sizeof(Round) == 56 &&
              sizeof(Tally) == 64 && sizeof(Activity) == 16);

}  // namespace rangescope::wire::counters
