#include "inject/cupti/graph_captures.hpp"

#include <algorithm>
#include <iterator>

namespace rangescope::inject::cupti {
namespace {

// After cuStreamEndCapture. An invalidated capture ends with an error too; these errors mean that
// there was no capture, or that it continues.
bool ends_capture(CUresult status) {
  switch (status) {
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_ILLEGAL_STATE:
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD: return false;
    default: return true;
  }
}

}  // namespace

bool GraphCaptures::observe(std::uint32_t cbid, const CUpti_CallbackData& call) {
  if (std::find(std::begin(kCalls), std::end(kCalls), cbid) == std::end(kCalls))
    return false;
  const bool ends = cbid == CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture ||
                    cbid == CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz;
  if (call.callbackSite == CUPTI_API_ENTER) {
    if (!ends)
      count_.fetch_add(1);
    return !ends;
  }
  const auto* result = static_cast<const CUresult*>(call.functionReturnValue);
  const CUresult status = result != nullptr ? *result : CUDA_SUCCESS;
  const bool has_ended = ends ? ends_capture(status) : status != CUDA_SUCCESS;
  if (has_ended)
    decrement();
  return false;
}

void GraphCaptures::decrement() {
  int count = count_.load();
  // Not below 0: a capture that began before the callbacks were enabled was not counted.
  while (count > 0 && !count_.compare_exchange_weak(count, count - 1)) {
  }
}

}  // namespace rangescope::inject::cupti
