#include "inject/cupti/cache_flush.hpp"

namespace rangescope::inject::cupti {
namespace {

// Each thread reads every gridDim * blockDim-th 16 bytes. The conditional store at the end keeps
// the loop from being optimized away.
constexpr char kKernel[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry rangescope_flush(.param .u64 from, .param .u64 count)
{
 .reg .pred p;
 .reg .b32 t, n, k, a, b, c, d, x;
 .reg .b64 f, i, s, m, q;
 ld.param.u64 f, [from];
 ld.param.u64 m, [count];
 mov.u32 x, 0;
 mov.u32 t, %tid.x;
 mov.u32 n, %ntid.x;
 mov.u32 k, %ctaid.x;
 cvt.u64.u32 q, t;
 mad.wide.u32 i, k, n, q;
 mov.u32 k, %nctaid.x;
 mul.wide.u32 s, k, n;
loop:
 setp.ge.u64 p, i, m;
 @p bra done;
 shl.b64 q, i, 4;
 add.u64 q, f, q;
 ld.global.cg.v4.u32 {a, b, c, d}, [q];
 or.b32 x, x, a;
 or.b32 x, x, d;
 add.u64 i, i, s;
 bra loop;
done:
 setp.eq.u32 p, x, 0x5eed5eed;
 @p st.global.u32 [f], x;
 ret;
}
)";

thread_local bool tl_running = false;

}  // namespace

bool CacheFlush::running() {
  return tl_running;
}

bool CacheFlush::make(const Driver& driver, CUdevice device) {
  int l2 = 0;
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  if (driver.attribute(&l2, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device) != CUDA_SUCCESS || l2 <= 0 ||
      driver.cuModuleLoadData(&module, kKernel) != CUDA_SUCCESS ||
      driver.cuModuleGetFunction(&kernel, module, "rangescope_flush") != CUDA_SUCCESS) {
    return false;
  }
  const std::size_t bytes = 2 * static_cast<std::size_t>(l2);
  tl_running = true;  // the buffer is not the program's
  const bool has_buffer = driver.allocate(&buffer_, bytes) == CUDA_SUCCESS &&
                          driver.set_bytes(buffer_, 0, bytes) == CUDA_SUCCESS;
  tl_running = false;
  if (!has_buffer)
    return false;
  count_ = bytes / 16;
  kernel_ = kernel;
  return true;
}

void CacheFlush::run(const Driver& driver, CUstream stream) {
  if (kernel_ == nullptr)
    return;
  constexpr unsigned kBlocks = 1024;
  constexpr unsigned kThreads = 256;
  void* arguments[] = {&buffer_, &count_};
  tl_running = true;
  (void)driver.cuLaunchKernel(
      kernel_, kBlocks, 1, 1, kThreads, 1, 1, 0, stream, arguments, nullptr);
  tl_running = false;
}

}  // namespace rangescope::inject::cupti
