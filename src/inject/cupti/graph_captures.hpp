// Streams that are being captured into CUDA graphs. Waiting for their context invalidates the
// capture, so counters neither measure nor program the hardware until all captures have ended. A
// range whose launches are captured executes nothing, so there is nothing to count.
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
  void decrement();

  std::atomic<int> count_{0};
};

}  // namespace rangescope::inject::cupti
