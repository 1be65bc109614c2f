// CUPTI's profiler host: lists a chip's metrics, computes the configuration that they need, and
// evaluates counter data. It needs neither a GPU nor a context.
//
// A host object has a configuration that can only grow, so each set of metrics has its own object.
// CUPTI keeps pointers to names: they must outlive the object (seen with CUDA 13.0).
#pragma once

#include <cstddef>
#include <cstdint>

#include <cupti_profiler_host.h>

#include "inject/cupti/api.hpp"

namespace rangescope::inject::cupti {

/// A buffer without exceptions; empty if there was no memory.
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

  /// False, and the missing function's name in `why`, if the library has no profiler host (CUDA
  /// before 12.6).
  [[nodiscard]] bool load(const Api& cupti, char* why, std::size_t why_bytes);
};

class Host {
 public:
  Host& operator=(Host&&) = delete;
  ~Host() { close(); }

  /// `availability` is the counter availability image of a context, used until add(), or null.
  [[nodiscard]] bool open(const HostApi& api,
                          const char* chip,
                          const Bytes* availability,
                          char* why,
                          std::size_t why_bytes);
  void close();

  /// Adds a set of metrics, once. On failure false, and `refused` marks the metrics that are
  /// refused individually; if none is, they cannot be counted in one configuration.
  [[nodiscard]] bool add(const char* const* metrics,
                         std::size_t count,
                         bool* refused,
                         char* why,
                         std::size_t why_bytes);
  [[nodiscard]] bool config(Bytes& image, std::size_t& passes, char* why, std::size_t why_bytes);
  /// Values of range `index` of a complete counter data image. A value that CUPTI cannot compute is
  /// NaN, never 0.
  [[nodiscard]] bool evaluate(const Bytes& image,
                              std::size_t index,
                              const char* const* metrics,
                              std::size_t count,
                              double* values);
  [[nodiscard]] CUpti_Profiler_Host_Object* object() const { return object_; }

 private:
  const HostApi* api_ = nullptr;
  CUpti_Profiler_Host_Object* object_ = nullptr;
  char chip_[32] = {};
  const Bytes* availability_ = nullptr;
};

}  // namespace rangescope::inject::cupti
