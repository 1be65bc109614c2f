#include "inject/cupti/recorder.hpp"

#include <cstdlib>
#include <cstring>

#include "inject/hash.hpp"
#include "inject/text.hpp"

namespace rangescope::inject::cupti {
namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ull + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccdull;
}

struct Configuration {
  std::uint32_t grid[3], block[3];
  CUstream stream;
};

template <class Params>
Configuration configuration(const Params& p) {
  return {{p.gridDimX, p.gridDimY, p.gridDimZ}, {p.blockDimX, p.blockDimY, p.blockDimZ}, p.hStream};
}

enum class Launched : std::uint8_t { kNothing, kKernel, kGraph };

// What the call launches; of a kernel also its configuration.
Launched launched_by(std::uint32_t cbid, const void* params, Configuration& out) {
  switch (cbid) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz:
      out = configuration(*static_cast<const cuLaunchKernel_params*>(params));
      return Launched::kKernel;
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz:
      out = configuration(*static_cast<const cuLaunchCooperativeKernel_params*>(params));
      return Launched::kKernel;
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz: {
      const auto& p = *static_cast<const cuLaunchKernelEx_params*>(params);
      if (p.config != nullptr)
        out = configuration(*p.config);
      return Launched::kKernel;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch:
    case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz: return Launched::kGraph;
    default: return Launched::kNothing;
  }
}

}  // namespace

bool Recorder::wants(std::uint32_t cbid) {
  switch (cbid) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz:
    case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch:
    case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz: return true;
    default: return false;
  }
}

bool Recorder::launches_nccl(std::uint32_t cbid, const CUpti_CallbackData& call) {
  const bool is_graph = cbid == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch ||
                        cbid == CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz;
  const bool is_kernel = wants(cbid) && !is_graph;
  if (!is_kernel || call.symbolName == nullptr)
    return false;
  return std::strstr(call.symbolName, "nccl") != nullptr;
}

void Recorder::lock() {
  while (busy_.test_and_set(std::memory_order_acquire)) {
  }
}

std::uint32_t Recorder::begin(bool keep, bool take) {
  if (!take && on_.load(std::memory_order_relaxed))
    return 0;
  lock();
  if (on_.load(std::memory_order_relaxed) && !take) {
    unlock();
    return 0;
  }
  if (keep && kernels_ == nullptr) {
    void* memory = std::calloc(kMostKernels, sizeof(RecordedKernel));
    kernels_ = static_cast<RecordedKernel*>(memory);
  }
  keep_ = keep && kernels_ != nullptr;
  signature_ = {};
  if (keep)
    count_ = 0;
  if (++recording_ == 0)
    ++recording_;
  const std::uint32_t recording = recording_;
  on_.store(true, std::memory_order_relaxed);
  unlock();
  return recording;
}

bool Recorder::end(std::uint32_t recording, counters::Signature& signature) {
  lock();
  const bool is_current = on_.load(std::memory_order_relaxed) && recording == recording_;
  if (is_current) {
    on_.store(false, std::memory_order_relaxed);
    signature = signature_;
  }
  unlock();
  return is_current;
}

const char* Recorder::copy_of(const char* name) {
  const auto slot =
      static_cast<std::uint32_t>((reinterpret_cast<std::uintptr_t>(name) >> 3) % kNames);
  Copy& copy = names_[slot];
  // The text is compared too: after a module is unloaded, another name may have the same address.
  if (copy.theirs == name && copy.ours != nullptr && std::strcmp(copy.ours, name) == 0)
    return copy.ours;
  copy.theirs = name;
  copy.ours = ::strdup(name);
  return copy.ours;
}

bool Recorder::observe(std::uint32_t cbid, const CUpti_CallbackData& call, CUstream& stream) {
  if (!on_.load(std::memory_order_relaxed) || call.callbackSite != CUPTI_API_ENTER)
    return false;
  Configuration configuration{};
  const Launched launched = launched_by(cbid, call.functionParams, configuration);
  if (launched == Launched::kNothing)
    return false;
  constexpr std::uint64_t kGraphHash = 2;
  const bool is_kernel = launched == Launched::kKernel;
  const char* name = text_or(call.symbolName, "");
  const std::uint64_t hash = is_kernel ? fnv1a(name, std::strlen(name)) : kGraphHash;
  bool kept = false;
  lock();
  signature_.kernels = mix(signature_.kernels, hash);
  signature_.configurations = mix(signature_.configurations, hash);
  if (is_kernel) {
    for (const std::uint32_t value : configuration.grid)
      signature_.configurations = mix(signature_.configurations, value);
    for (const std::uint32_t value : configuration.block)
      signature_.configurations = mix(signature_.configurations, value);
    ++signature_.launches;
    if (keep_ && count_ < kMostKernels) {
      kept = true;
      stream = configuration.stream;
      RecordedKernel& kernel = kernels_[count_++];
      kernel.name = copy_of(name);
      std::memcpy(kernel.grid, configuration.grid, sizeof kernel.grid);
      std::memcpy(kernel.block, configuration.block, sizeof kernel.block);
    }
  } else {
    ++signature_.graphs;
  }
  unlock();
  return kept;
}

}  // namespace rangescope::inject::cupti
