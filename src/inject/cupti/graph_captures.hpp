// Streams that are being captured into CUDA graphs. CUDA allows nobody to wait for their context
// meanwhile, and who does breaks the capture. So counters neither measure nor program the hardware
// until all captures have ended; what a range launches into a capture is not executed, and counters
// of it would be of nothing.
#pragma once

#include <cupti.h>

#include <atomic>
#include <cstdint>

namespace rangescope::inject::cupti {

class GraphCaptures {
 public:
  /// Driver functions whose callbacks observe() wants.
  static constexpr std::uint32_t kCalls[] = {
      CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture,
      CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_ptsz,
      CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2,
      CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2_ptsz,
      CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph,
      CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph_ptsz,
      CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture,
      CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz};

  /// From the callback of a driver function, any thread. True: a capture is about to begin.
  bool observe(std::uint32_t cbid, const CUpti_CallbackData& call);
  [[nodiscard]] bool any() const { return count_.load(std::memory_order_acquire) > 0; }

 private:
  void one_less();

  std::atomic<int> count_{0};
};

}  // namespace rangescope::inject::cupti
