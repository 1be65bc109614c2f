// CUPTI's profiler host: what metrics a chip has, what programming they need, and what counter data
// mean. It needs no GPU and no context.
//
// A host object holds a configuration that only grows, so one is made for each set of metrics.
// Names are kept by CUPTI as pointers: they must outlive the object (seen with CUDA 13.0).
#pragma once

#include <cstddef>
#include <cstdint>

#include <cupti_profiler_host.h>

#include "inject/cupti/api.hpp"

namespace rangescope::inject::cupti {

/// Bytes of our own, without exceptions; empty when there was no memory.
class Bytes {
 public:
  Bytes() = default;
  Bytes(Bytes&& other) noexcept;
  Bytes& operator=(Bytes&& other) noexcept;
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  ~Bytes();
  /// Makes it `size` zero bytes; false without memory (it is empty then).
  [[nodiscard]] bool resize(std::size_t size);
  /// Makes it a copy of another.
  [[nodiscard]] bool copy(const Bytes& other);
  [[nodiscard]] std::uint8_t* data() { return data_; }
  [[nodiscard]] const std::uint8_t* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

/// The functions of cupti_profiler_host.h, looked up once.
struct HostApi {
#define RANGESCOPE_CUPTI_HOST(X)          \
  X(cuptiProfilerHostInitialize)          \
  X(cuptiProfilerHostDeinitialize)        \
  X(cuptiProfilerHostGetSupportedChips)   \
  X(cuptiProfilerHostGetBaseMetrics)      \
  X(cuptiProfilerHostGetMetricProperties) \
  X(cuptiProfilerHostConfigAddMetrics)    \
  X(cuptiProfilerHostGetConfigImageSize)  \
  X(cuptiProfilerHostGetConfigImage)      \
  X(cuptiProfilerHostGetNumOfPasses)      \
  X(cuptiProfilerHostEvaluateToGpuValues)
#define RANGESCOPE_CUPTI_MEMBER(name) decltype(&::name) name = nullptr;
  RANGESCOPE_CUPTI_HOST(RANGESCOPE_CUPTI_MEMBER)
#undef RANGESCOPE_CUPTI_MEMBER
  const Api* api = nullptr;

  /// False, and the missing function's name in `why`, when the library has no profiler host (CUDA
  /// before 12.6).
  [[nodiscard]] bool load(const Api& cupti, char* why, std::size_t why_bytes);
};

class Host {
 public:
  Host& operator=(Host&&) = delete;
  ~Host() { close(); }

  /// `availability` is the counter availability image of a context, used until add(), or null.
  [[nodiscard]] bool open(const HostApi& api, const char* chip, const Bytes* availability,
                          char* why, std::size_t why_bytes);
  void close();

  /// Adds a set of metrics, once. On failure false, and `refused` says of each whether it is
  /// refused by itself; if none is, they cannot be counted in one configuration.
  [[nodiscard]] bool add(const char* const* metrics, std::size_t count, bool* refused, char* why,
                         std::size_t why_bytes);
  [[nodiscard]] bool config(Bytes& image, std::size_t& passes, char* why, std::size_t why_bytes);
  /// Values of range `index` of a complete counter data image; 0 where CUPTI cannot compute one
  /// never happens: NaN does.
  [[nodiscard]] bool evaluate(const Bytes& image, std::size_t index, const char* const* metrics,
                              std::size_t count, double* values);
  [[nodiscard]] CUpti_Profiler_Host_Object* object() const { return object_; }

 private:
  const HostApi* api_ = nullptr;
  CUpti_Profiler_Host_Object* object_ = nullptr;
  char chip_[32] = {};
  const Bytes* availability_ = nullptr;
};

}  // namespace rangescope::inject::cupti
