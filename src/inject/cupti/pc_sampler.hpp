// One CUDA context's samples of the program counter, through CUPTI's PC sampling API: every few
// thousand cycles, the instruction that a warp of each multiprocessor is at, and why it waits.
// Samples go into the GPU stream (wire/pc.hpp).
//
// While sampling is started, kernels run one after the other (KERNEL_SERIALIZED), so that each
// sample has the correlation of its launch. Two kernels that wait for each other would wait
// forever, so nothing is sampled once NCCL is used (counters.cpp). Before Start, CUPTI needs the
// context idle, and a buffer of its own in addition to the one that data are fetched into (found by
// parcagpu). The period is CUPTI's default: setting one silently ends sampling on Blackwell.
//
// Sampling is enabled when the context is created: samples of a graph that was instantiated earlier
// have no instructions, nor have those of kernels while activity records are off (13.0, H200).
// Enable takes 70 ms and slows nothing until sampling is started; then a kernel takes 2.7 ms more,
// the first of a session 80 ms.
//
// Records have a correlation from CUPTI 12.4 on, in a longer struct: older versions are refused,
// and drivers before CUDA 12.9, which parcagpu refuses too.
#pragma once

#include <cupti.h>
#include <cupti_pcsampling.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "inject/cupti/api.hpp"
#include "inject/cupti/encode.hpp"
#include "inject/cupti/host.hpp"

namespace rangescope::inject::cupti {

/// The functions of cupti_pcsampling.h, looked up once.
struct PcApi {
#define RANGESCOPE_CUPTI_PC(X)                \
  X(cuptiPCSamplingEnable)                    \
  X(cuptiPCSamplingDisable)                   \
  X(cuptiPCSamplingSetConfigurationAttribute) \
  X(cuptiPCSamplingStart)                     \
  X(cuptiPCSamplingStop)                      \
  X(cuptiPCSamplingGetData)                   \
  X(cuptiPCSamplingGetNumStallReasons)        \
  X(cuptiPCSamplingGetStallReasons)           \
  X(cuptiGetCubinCrc)                         \
  X(cuptiGetSassToSourceCorrelation)          \
  X(cuptiGetDeviceId)
#define RANGESCOPE_CUPTI_MEMBER(name) decltype(&::name) name = nullptr;
  RANGESCOPE_CUPTI_PC(RANGESCOPE_CUPTI_MEMBER)
#undef RANGESCOPE_CUPTI_MEMBER
  const Api* api = nullptr;

  /// False, with one sentence in `why`, where CUPTI or the driver is too old.
  [[nodiscard]] bool load(const Api& cupti, char* why, std::size_t why_bytes);
};

/// Call it when a module was loaded: copies its code if that has line information, to find lines
/// later. Any thread.
void keep_module(const CUpti_ModuleResourceData& module);

/// Definitions that are already in the GPU stream. One a process; only the worker uses it.
struct PcDefined {
  struct Place {
    std::uint32_t crc[2], function, offset;
  };
  struct Text {
    std::uint32_t hash[2];
  };
  FixedTable<Place, 65536> places;
  FixedTable<Text, 4096> texts;
  std::uint32_t place_count = 0;
  bool reasons[256] = {};
};

class PcSampler {
 public:
  /// Prepares sampling in the context. On failure error() says why, and what to do.
  [[nodiscard]] bool enable(const PcApi& api, PcDefined& defined, CUcontext context);
  /// The context must be idle.
  [[nodiscard]] bool start();
  /// The context must be idle. True also if sampling was stopped before.
  [[nodiscard]] bool stop();
  /// Fetches the samples since start() and writes them as a window of `target`.
  [[nodiscard]] bool fetch(std::uint32_t target);
  void disable();
  [[nodiscard]] bool enabled() const { return context_ != nullptr; }
  [[nodiscard]] const char* error() const { return error_; }

 private:
  [[nodiscard]] bool check(CUptiResult result, const char* call);
  [[nodiscard]] bool find_reasons();
  void define_reason(std::uint32_t id, const char* name);
  [[nodiscard]] bool configure();
  [[nodiscard]] bool make_buffer(CUpti_PCSamplingData& data, Bytes& room, std::size_t pcs) const;
  void write(const CUpti_PCSamplingPCData& pc);

  static constexpr std::size_t kMostReasons = 128;
  const PcApi* api_ = nullptr;
  PcDefined* defined_ = nullptr;
  CUcontext context_ = nullptr;
  std::atomic<bool> started_{false};
  std::uint32_t reasons_[kMostReasons];  // the sampled ones
  std::size_t reason_count_ = 0;
  CUpti_PCSamplingData theirs_{};  // CUPTI's own
  CUpti_PCSamplingData ours_{};    // the one that data are fetched into
  Bytes their_room_, our_room_;
  std::size_t hardware_bytes_ = 0;
  char error_[256] = {};
};

}  // namespace rangescope::inject::cupti
