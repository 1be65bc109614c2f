// What the counters collector keeps of a range path and of a CUDA context.
#pragma once

#include <cstdint>

#include "inject/counters/multiplexer.hpp"
#include "inject/cupti/cache_flush.hpp"
#include "inject/cupti/range_profiler.hpp"
#include "inject/cupti/recorder.hpp"

namespace rangescope::inject::cupti {

// A range path that is to be measured. Its names are in the stream before its first round.
struct Target {
  std::uint64_t path = 0;           // hash of domain and names
  bool has_graphs = false;          // kernels cannot be told apart in it
  std::uint32_t begun = 0;          // occurrences, in all contexts
  std::uint32_t launches = 0;       // of the last recorded occurrence
  std::int64_t last_ns = 0;         // begin of the last occurrence
  std::int64_t longest_gap_ns = 0;  // between two of them
};

// What befell occurrences of a target before the multiplexer heard of them; written with its tally.
struct Before {
  std::uint32_t early = 0;  // the profiler was not ready, or a graph was being captured
  std::uint32_t waits = 0;  // for the hardware
  std::int64_t waited_ns = 0;
};

// One context that ranges are measured in.
struct Context {
  enum class State : std::uint8_t { kNew, kReady, kLeaving, kFailed, kGone } state = State::kNew;
  CUcontext context = nullptr;
  CUdevice device = 0;
  RangeProfiler profiler;
  Recorder recorder;
  bool kernels = false;  // this phase measures kernels one by one
  counters::Multiplexer* mux = nullptr;
  Image images[counters::kMaxTargets][counters::kMaxConfigurations];
  std::uint32_t in_session = 0;
  std::int64_t armed_at = 0;
  CacheFlush flush;  // ready where it is asked for
  Before before[counters::kMaxTargets];
  std::uint32_t first[counters::kMaxTargets] = {};  // occurrence that the round under way began with
  Image finished[counters::kMaxConfigurations];     // kernels: complete images that wait for the worker
  std::uint32_t finished_target = counters::kNoTarget;
};

}  // namespace rangescope::inject::cupti
