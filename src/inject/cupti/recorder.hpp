// Records what an occurrence launches, from CUPTI's driver callbacks: the sequence of kernels with
// their launch configurations. Each context has one recorder and one recording at a time, of all
// threads: other threads may launch a range's kernels, as in PyTorch's backward pass. A measured
// occurrence takes the recorder over from one that is not measured.
//
// Cost: one relaxed load a launch without a recording, about 0.1 us a launch with one.
#pragma once

#include <cupti.h>

#include <atomic>
#include <cstdint>

#include "inject/counters/multiplexer.hpp"

namespace rangescope::inject::cupti {

struct RecordedKernel {
  const char* name = nullptr;  ///< mangled; a copy that is never freed
  std::uint32_t grid[3] = {}, block[3] = {};
};

class Recorder {
 public:
  static constexpr std::uint32_t kMostKernels = 8192;

  /// Whether observe() needs the callbacks of this driver function.
  [[nodiscard]] static bool wants(std::uint32_t cbid);
  /// The call launches a kernel of NCCL.
  [[nodiscard]] static bool launches_nccl(std::uint32_t cbid, const CUpti_CallbackData& call);

  /// Starts a recording; `keep` also stores the kernels one by one. Returns the recording's number,
  /// or 0 if another recording runs and is not to be taken over (`take`).
  [[nodiscard]] std::uint32_t begin(bool keep, bool take);
  /// Ends a recording and sets its signature; false if another has taken over.
  [[nodiscard]] bool end(std::uint32_t recording, counters::Signature& signature);
  /// From the callback of a driver function, on any thread. True if a kernel that is measured
  /// individually is about to be launched, into `stream`.
  bool observe(std::uint32_t cbid, const CUpti_CallbackData& call, CUstream& stream);

  /// The kernels of the last recording with `keep`; at most kMostKernels.
  [[nodiscard]] const RecordedKernel* kernels() const { return kernels_; }
  [[nodiscard]] std::uint32_t count() const { return count_; }

 private:
  void lock();
  void unlock() { busy_.clear(std::memory_order_release); }
  const char* copy_of(const char* name);

  std::atomic<bool> on_{false};
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  bool keep_ = false;
  std::uint32_t recording_ = 0;
  counters::Signature signature_;
  std::uint32_t count_ = 0;
  RecordedKernel* kernels_ = nullptr;  ///< allocated when first needed, never freed

  static constexpr std::uint32_t kNames = 4096;
  /// Our copy of a name that CUPTI passed.
  struct Copy {
    const char* theirs = nullptr;
    const char* ours = nullptr;
  };
  Copy names_[kNames];
};

}  // namespace rangescope::inject::cupti
