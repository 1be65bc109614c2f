#include "inject/cupti/graph_captures.hpp"

#include <algorithm>
#include <iterator>

namespace rangescope::inject::cupti {

bool GraphCaptures::observe(std::uint32_t cbid, const CUpti_CallbackData& call) {
  if (std::find(std::begin(kCalls), std::end(kCalls), cbid) == std::end(kCalls)) return false;
  const bool ends = cbid == CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture ||
                    cbid == CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz;
  if (call.callbackSite == CUPTI_API_ENTER) {
    if (!ends) count_.fetch_add(1);
    return !ends;
  }
  const auto* result = static_cast<const CUresult*>(call.functionReturnValue);
  const CUresult answer = result != nullptr ? *result : CUDA_SUCCESS;
  if (!ends) {
    if (answer != CUDA_SUCCESS) one_less();
    return false;
  }
  // A capture that had been broken ends with an error too; these say that there was none, or that
  // it goes on.
  if (answer != CUDA_ERROR_INVALID_VALUE && answer != CUDA_ERROR_ILLEGAL_STATE &&
      answer != CUDA_ERROR_INVALID_HANDLE && answer != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD) {
    one_less();
  }
  return false;
}

void GraphCaptures::one_less() {
  int count = count_.load();
  // A capture that began before the callbacks were on ends uncounted.
  while (count > 0 && !count_.compare_exchange_weak(count, count - 1)) {
  }
}

}  // namespace rangescope::inject::cupti
