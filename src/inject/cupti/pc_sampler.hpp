// One CUDA context's samples of the program counter, through CUPTI's PC sampling API: which
// instruction a warp of each multiprocessor stands at, and why it waits, every some thousand
// cycles. What is sampled goes into the GPU stream (wire/pc.hpp).
//
// Kernels run one after the other while it is started (KERNEL_SERIALIZED), so that each sample has
// the correlation of its launch. Two kernels that wait for each other would wait for ever, so
// beside NCCL nothing is sampled (counters.cpp). CUPTI wants the context idle before Start, and its
// own buffer beside the one that data are fetched into (as parcagpu found out). The period stays
// CUPTI's: one that is set ends sampling without a word on Blackwell.
//
// Enabled from the context's creation on: a graph that was instantiated before has samples without
// instructions, and so has each kernel where activity records are off (13.0, H200). Until it is
// started nothing is slower there; Enable takes 70 ms, and while it is started a kernel takes 2.7
// ms more, the first of a session 80 ms.
//
// Records have a correlation from CUPTI 12.4 on, whose struct is longer than those before: older
// ones are refused, as are drivers before CUDA 12.9, which parcagpu refuses too.
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

/// A module was loaded: keeps a copy of its code where that has line information, to find lines in.
/// Any thread.
void keep_module(const CUpti_ModuleResourceData& module);

// What the GPU stream already defines: one a process. The worker's own.
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
  /// Makes the context's sampling ready to start. On failure error() says why, and what to do.
  [[nodiscard]] bool enable(const PcApi& api, PcDefined& defined, CUcontext context);
  /// The context is idle.
  [[nodiscard]] bool start();
  /// The context is idle again. True also where somebody stopped it before.
  [[nodiscard]] bool stop();
  /// Fetches what was sampled since start() and writes it, as a window of `target`.
  [[nodiscard]] bool fetch(std::uint32_t target);
  void disable();
  [[nodiscard]] bool enabled() const { return context_ != nullptr; }
  [[nodiscard]] const char* error() const { return error_; }

 private:
  [[nodiscard]] bool check(CUptiResult result, const char* call);
  [[nodiscard]] bool find_reasons();
  [[nodiscard]] bool configure();
  [[nodiscard]] bool make(CUpti_PCSamplingData& data, Bytes& room, std::size_t pcs) const;
  void write(const CUpti_PCSamplingPCData& pc);

  static constexpr std::size_t kMostReasons = 128;
  const PcApi* api_ = nullptr;
  PcDefined* defined_ = nullptr;
  CUcontext context_ = nullptr;
  std::atomic<bool> started_{false};
  std::uint32_t reasons_[kMostReasons];  // that are asked for
  std::size_t reason_count_ = 0;
  CUpti_PCSamplingData theirs_{}, ours_{};  // CUPTI's own, and the one that data are fetched into
  Bytes their_room_, our_room_;
  std::size_t hardware_bytes_ = 0;
  char error_[256] = {};
};

}  // namespace rangescope::inject::cupti
