#include "common/gemm.hpp"

namespace workload {

Gemm* gemm_create(cudaStream_t, bool) {
  return nullptr;
}
void gemm_destroy(Gemm*) {}
bool gemm_run(Gemm*, const float*, const float*, float*, int, int, int, float) {
  return false;
}

}  // namespace workload
