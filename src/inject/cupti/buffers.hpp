// The memory that CUPTI writes activity records into: a pool of equal buffers that are given out and taken back.
//
// Bounded: when kMost buffers are out, a request is declined, CUPTI drops the records and counts them. Buffers are
// handed over zeroed (CUPTI would otherwise zero them on the launching thread); the zeroing is done where they come
// back, on CUPTI's worker thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace rangescope::inject::cupti {

class BufferPool {
 public:
  static constexpr std::size_t kBytes = std::size_t{1}
                                        << 20;  ///< 4,800 kernels; 256 KiB to 8 MiB cost the same a launch
  static constexpr std::size_t kMost = 40;

  /// A zeroed buffer of kBytes, or null when all are out or memory is short.
  [[nodiscard]] std::uint8_t* take();
  void give_back(std::uint8_t* buffer);

 private:
  std::mutex lock_;
  std::uint8_t* free_[kMost] = {};
  std::size_t free_count_ = 0;
  std::size_t made_ = 0;
};

}  // namespace rangescope::inject::cupti
