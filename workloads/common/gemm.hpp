// The library matrix product of the CUDA backend: gemm_cublas.cpp where cuBLAS was found,
// gemm_none.cpp elsewhere.
#pragma once

#include <cuda_runtime_api.h>

namespace workload {

struct Gemm;

/// Null where there is no library: use the kernel of backend_cuda.cu.
[[nodiscard]] Gemm* gemm_create(cudaStream_t stream, bool tf32);
void gemm_destroy(Gemm* gemm);
/// y[rows, out] = x[rows, in] * w[out, in]^T + beta * y. False when the library failed.
[[nodiscard]] bool gemm_run(
    Gemm* gemm, const float* x, const float* w, float* y, int rows, int in, int out, float beta);

}  // namespace workload
