// Names of CUDA calls by CUPTI's numbers of the runtime's and the driver's functions: those that launch, copy, set,
// wait, allocate or are called often. The numbers never change (cupti_runtime_cbid.h, cupti_driver_cbid.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace rangescope::read::nvprof {

struct ApiName {
  std::int64_t cbid;
  std::string_view name;
};

inline constexpr auto kRuntime = std::to_array<ApiName>({
    {8, "cudaConfigureCall"},
    {9, "cudaSetupArgument"},
    {10, "cudaGetLastError"},
    {11, "cudaPeekAtLastError"},
    {13, "cudaLaunch"},
    {15, "cudaFuncGetAttributes"},
    {16, "cudaSetDevice"},
    {17, "cudaGetDevice"},
    {20, "cudaMalloc"},
    {22, "cudaFree"},
    {25, "cudaMallocHost"},
    {26, "cudaFreeHost"},
    {27, "cudaHostAlloc"},
    {31, "cudaMemcpy"},
    {32, "cudaMemcpy2D"},
    {33, "cudaMemcpyToArray"},
    {39, "cudaMemcpyToSymbol"},
    {40, "cudaMemcpyFromSymbol"},
    {41, "cudaMemcpyAsync"},
    {44, "cudaMemcpy2DAsync"},
    {47, "cudaMemcpyToSymbolAsync"},
    {49, "cudaMemset"},
    {51, "cudaMemsetAsync"},
    {126, "cudaThreadSynchronize"},
    {129, "cudaStreamCreate"},
    {131, "cudaStreamSynchronize"},
    {132, "cudaStreamQuery"},
    {135, "cudaEventRecord"},
    {137, "cudaEventSynchronize"},
    {138, "cudaEventQuery"},
    {144, "cudaMemcpy3D"},
    {147, "cudaStreamWaitEvent"},
    {152, "cudaHostRegister"},
    {160, "cudaMemcpyPeer"},
    {161, "cudaMemcpyPeerAsync"},
    {164, "cudaDeviceReset"},
    {165, "cudaDeviceSynchronize"},
    {200, "cudaDeviceGetAttribute"},
    {206, "cudaMallocManaged"},
    {211, "cudaLaunchKernel"},
    {214, "cudaLaunchKernel_ptsz"},
    {215, "cudaMemcpy_ptds"},
    {225, "cudaMemcpyAsync_ptsz"},
    {235, "cudaMemsetAsync_ptsz"},
    {239, "cudaStreamSynchronize_ptsz"},
    {252, "cudaMemPrefetchAsync"},
    {269, "cudaLaunchCooperativeKernel"},
    {311, "cudaGraphLaunch"},
    {312, "cudaGraphLaunch_ptsz"},
});

inline constexpr auto kDriver = std::to_array<ApiName>({
    {17, "cuCtxSynchronize"},     {19, "cuModuleLoadData"},
    {20, "cuModuleLoadDataEx"},   {115, "cuLaunch"},
    {116, "cuLaunchGrid"},        {117, "cuLaunchGridAsync"},
    {119, "cuEventRecord"},       {120, "cuEventQuery"},
    {121, "cuEventSynchronize"},  {126, "cuStreamSynchronize"},
    {216, "cuMemsetD8Async"},     {220, "cuMemsetD32Async"},
    {243, "cuMemAlloc"},          {245, "cuMemFree"},
    {249, "cuMemsetD8"},          {251, "cuMemsetD32"},
    {276, "cuMemcpyHtoD"},        {277, "cuMemcpyHtoDAsync"},
    {278, "cuMemcpyDtoH"},        {279, "cuMemcpyDtoHAsync"},
    {280, "cuMemcpyDtoD"},        {281, "cuMemcpyDtoDAsync"},
    {295, "cuStreamWaitEvent"},   {305, "cuMemcpy"},
    {306, "cuMemcpyAsync"},       {307, "cuLaunchKernel"},
    {319, "cuMemcpyPeerAsync"},   {440, "cuStreamSynchronize_ptsz"},
    {442, "cuLaunchKernel_ptsz"}, {477, "cuLaunchCooperativeKernel"},
    {514, "cuGraphLaunch"},       {515, "cuGraphLaunch_ptsz"},
});

/// "" for a number that is not listed.
[[nodiscard]] inline std::string_view api_name(std::span<const ApiName> all, std::int64_t cbid) {
  const auto at = std::lower_bound(all.begin(), all.end(), cbid,
                                   [](const ApiName& api, std::int64_t wanted) { return api.cbid < wanted; });
  return at != all.end() && at->cbid == cbid ? at->name : std::string_view{};
}

}  // namespace rangescope::read::nvprof
