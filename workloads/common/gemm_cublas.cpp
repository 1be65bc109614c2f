#include <cublas_v2.h>

#include <cstddef>

#include "common/gemm.hpp"

namespace workload {

struct Gemm {
  cublasHandle_t handle = nullptr;
  void* workspace = nullptr;  // ours, so that nothing is allocated while a graph is captured
};

Gemm* gemm_create(cudaStream_t stream, bool tf32) {
  constexpr std::size_t kWorkspaceBytes = 32U << 20;
  auto* gemm = new Gemm;
  if (cublasCreate(&gemm->handle) != CUBLAS_STATUS_SUCCESS ||
      cublasSetStream(gemm->handle, stream) != CUBLAS_STATUS_SUCCESS ||
      cudaMalloc(&gemm->workspace, kWorkspaceBytes) != cudaSuccess ||
      cublasSetWorkspace(gemm->handle, gemm->workspace, kWorkspaceBytes) != CUBLAS_STATUS_SUCCESS ||
      cublasSetMathMode(gemm->handle, tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH) !=
          CUBLAS_STATUS_SUCCESS) {
    gemm_destroy(gemm);
    return nullptr;
  }
  return gemm;
}

void gemm_destroy(Gemm* gemm) {
  if (!gemm)
    return;
  if (gemm->handle)
    cublasDestroy(gemm->handle);
  cudaFree(gemm->workspace);
  delete gemm;
}

// cuBLAS is column-major: there the row-major y is y^T[out, rows] = (w as [in, out])^T * (x as [in,
// rows]).
bool gemm_run(
    Gemm* gemm, const float* x, const float* w, float* y, int rows, int in, int out, float beta) {
  const float one = 1.0F;
  return cublasSgemm(gemm->handle,
                     CUBLAS_OP_T,
                     CUBLAS_OP_N,
                     out,
                     rows,
                     in,
                     &one,
                     w,
                     in,
                     x,
                     in,
                     &beta,
                     y,
                     out) == CUBLAS_STATUS_SUCCESS;
}

}  // namespace workload
