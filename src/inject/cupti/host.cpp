#include "inject/cupti/host.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace rangescope::inject::cupti {
namespace {

bool refuse(
    const HostApi& api, const char* call, CUptiResult result, char* why, std::size_t why_bytes) {
  std::snprintf(why, why_bytes, "%s: %s", call, api.api->text(result));
  return false;
}

}  // namespace

Bytes::Bytes(Bytes&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Bytes& Bytes::operator=(Bytes&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Bytes::~Bytes() {
  std::free(data_);
}

bool Bytes::resize(std::size_t size) {
  std::free(data_);
  data_ = size == 0 ? nullptr : static_cast<std::uint8_t*>(std::calloc(size, 1));
  size_ = data_ == nullptr ? 0 : size;
  return size_ == size;
}

bool Bytes::copy(const Bytes& other) {
  if (size_ != other.size_ && !resize(other.size_))
    return false;
  if (size_ != 0)
    std::memcpy(data_, other.data_, size_);
  return true;
}

bool HostApi::load(const Api& cupti, char* why, std::size_t why_bytes) {
  api = &cupti;
  return RANGESCOPE_CUPTI_HOST(RANGESCOPE_CUPTI_NEED) true;
}

bool Host::open(const HostApi& api,
                const char* chip,
                const Bytes* availability,
                char* why,
                std::size_t why_bytes) {
  close();
  api_ = &api;
  availability_ = availability;
  std::snprintf(chip_, sizeof chip_, "%s", chip);
  CUpti_Profiler_Host_Initialize_Params params = {
      CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE};
  params.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  params.pChipName = chip;
  params.pCounterAvailabilityImage =
      availability != nullptr && availability->size() != 0 ? availability->data() : nullptr;
  const CUptiResult result = api.cuptiProfilerHostInitialize(&params);
  if (result != CUPTI_SUCCESS)
    return refuse(api, "cuptiProfilerHostInitialize", result, why, why_bytes);
  object_ = params.pHostObject;
  return true;
}

void Host::close() {
  if (object_ == nullptr)
    return;
  CUpti_Profiler_Host_Deinitialize_Params params = {
      CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE};
  params.pHostObject = std::exchange(object_, nullptr);
  api_->cuptiProfilerHostDeinitialize(&params);
}

bool Host::add(const char* const* metrics,
               std::size_t count,
               bool* refused,
               char* why,
               std::size_t why_bytes) {
  const auto add_to = [&](const Host& host, const char* const* names, std::size_t number) {
    CUpti_Profiler_Host_ConfigAddMetrics_Params params = {
        CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE};
    params.pHostObject = host.object_;
    params.ppMetricNames = const_cast<const char**>(names);
    params.numMetrics = number;
    return api_->cuptiProfilerHostConfigAddMetrics(&params);
  };
  // All in one call: metrics of different calls are scheduled separately and share no pass (28
  // passes instead of 9, CUDA 13.0).
  const CUptiResult result = add_to(*this, metrics, count);
  if (result == CUPTI_SUCCESS)
    return true;
  std::snprintf(
      why, why_bytes, "they cannot be counted in one configuration: %s", api_->api->text(result));
  // A failed call makes the object unusable (seen with CUDA 13.0): each metric gets its own.
  for (std::size_t i = count; i-- > 0;) {
    Host host_of_metric;
    if (!host_of_metric.open(*api_, chip_, availability_, why, why_bytes))
      return false;
    const CUptiResult status = add_to(host_of_metric, metrics + i, 1);
    refused[i] = status != CUPTI_SUCCESS;
    if (refused[i])
      std::snprintf(why, why_bytes, "%s: %s", metrics[i], api_->api->text(status));
  }
  return false;
}

bool Host::config(Bytes& image, std::size_t& passes, char* why, std::size_t why_bytes) {
  CUpti_Profiler_Host_GetConfigImageSize_Params size = {
      CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE};
  size.pHostObject = object_;
  CUptiResult result = api_->cuptiProfilerHostGetConfigImageSize(&size);
  if (result != CUPTI_SUCCESS)
    return refuse(*api_, "cuptiProfilerHostGetConfigImageSize", result, why, why_bytes);
  if (!image.resize(size.configImageSize)) {
    std::snprintf(
        why, why_bytes, "no memory for a configuration of %zu bytes", size.configImageSize);
    return false;
  }
  CUpti_Profiler_Host_GetConfigImage_Params get = {
      CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE};
  get.pHostObject = object_;
  get.configImageSize = image.size();
  get.pConfigImage = image.data();
  result = api_->cuptiProfilerHostGetConfigImage(&get);
  if (result != CUPTI_SUCCESS)
    return refuse(*api_, "cuptiProfilerHostGetConfigImage", result, why, why_bytes);
  CUpti_Profiler_Host_GetNumOfPasses_Params number = {
      CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE};
  number.configImageSize = image.size();
  number.pConfigImage = image.data();
  result = api_->cuptiProfilerHostGetNumOfPasses(&number);
  if (result != CUPTI_SUCCESS)
    return refuse(*api_, "cuptiProfilerHostGetNumOfPasses", result, why, why_bytes);
  passes = number.numOfPasses;
  return true;
}

bool Host::evaluate(const Bytes& image,
                    std::size_t index,
                    const char* const* metrics,
                    std::size_t count,
                    double* values) {
  CUpti_Profiler_Host_EvaluateToGpuValues_Params params = {
      CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE};
  params.pHostObject = object_;
  params.pCounterDataImage = image.data();
  params.counterDataImageSize = image.size();
  params.rangeIndex = index;
  params.ppMetricNames = const_cast<const char**>(metrics);
  params.numMetrics = count;
  params.pMetricValues = values;
  return api_->cuptiProfilerHostEvaluateToGpuValues(&params) == CUPTI_SUCCESS;
}

}  // namespace rangescope::inject::cupti
