// What an occurrence launched: the sequence of kernels with their launch configurations, as CUPTI's
// driver callbacks tell it. One recorder a context and one recording at a time, of all threads (a
// range's kernels may come from others, as in PyTorch's backward pass). A measured occurrence takes
// the recorder from one that is only looked at.
//
// Cost: nothing but one relaxed load a launch while nothing is recorded; about 0.1 us a launch
// while something is.
#pragma once

#include <cupti.h>

#include <atomic>
#include <cstdint>

#include "inject/counters/multiplexer.hpp"

namespace rangescope::inject::cupti {

struct RecordedKernel {
  const char* name = nullptr;  ///< mangled; a copy that lives for ever
  std::uint32_t grid[3] = {}, block[3] = {};
};

class Recorder {
 public:
  static constexpr std::uint32_t kMostKernels = 8192;

  /// Driver functions whose callbacks observe() wants.
  [[nodiscard]] static bool wants(std::uint32_t cbid);
  /// The call launches a kernel of NCCL.
  [[nodiscard]] static bool launches_nccl(std::uint32_t cbid, const CUpti_CallbackData& call);

  /// Starts anew; `keep` also stores the kernels one by one. Answers with the recording's number, 0
  /// while another one runs that is not taken over (`take`).
  [[nodiscard]] std::uint32_t begin(bool keep, bool take);
  /// Ends it and gives what was launched; false when the recording was taken over by another.
  [[nodiscard]] bool end(std::uint32_t recording, counters::Signature& signature);
  /// From the callback of a driver function, any thread. True: a kernel that is measured by itself
  /// is about to be launched, into `stream`.
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
  RecordedKernel* kernels_ = nullptr;  ///< allocated at the first need, never freed

  static constexpr std::uint32_t kNames = 4096;
  struct Known {
    const char* theirs = nullptr;
    const char* ours = nullptr;
  };
  Known names_[kNames];
};

}  // namespace rangescope::inject::cupti
