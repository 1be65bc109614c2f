#include "collect/native/calibrate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/embedded.hpp"
#include "base/library.hpp"

RANGESCOPE_EMBED(copy_kernels, RANGESCOPE_PTX);

namespace rangescope::collect::native {
namespace {

using base::Code;
using base::Result;

constexpr int kChains = 8;     // independent accumulators of a thread
constexpr int kUnrolled = 32;  // multiply-adds of each accumulator in the loop's body
constexpr unsigned kThreads = 256, kBlocksOfSm = 8;
constexpr std::size_t kCopied = std::size_t{512} << 20;  // far larger than any cache
constexpr int kTimings = 5;
void* const kNone = nullptr;  // the default stream

// Factors come from memory: constants would be optimized away.
std::string fma_kernel(const std::string& type) {
  std::string text = ".visible .entry fma_" + type + "(.param .u64 out, .param .u32 times)\n{\n";
  text += fmt::format(" .reg .pred p;\n .reg .{0} x<{1}>, a, b;\n .reg .b32 n;\n .reg .b64 o;\n",
                      type,
                      kChains + 1);
  text += " ld.param.u64 o, [out];\n ld.param.u32 n, [times];\n";
  text += fmt::format(" ld.global.{0} a, [o];\n ld.global.{0} b, [o+8];\n", type);
  for (int c = 0; c < kChains; ++c)
    text += fmt::format(" ld.global.{} x{}, [o+{}];\n", type, c, 16 + 8 * c);
  text += "loop:\n";
  for (int i = 0; i < kUnrolled; ++i) {
    for (int c = 0; c < kChains; ++c)
      text += fmt::format(" fma.rn.{0} x{1}, x{1}, a, b;\n", type, c);
  }
  text += " sub.u32 n, n, 1;\n setp.ne.u32 p, n, 0;\n @p bra loop;\n";
  for (int c = 1; c < kChains; ++c)
    text += fmt::format(" add.{0} x0, x0, x{1};\n", type, c);
  // Never true, but the compiler cannot know.
  text += fmt::format(" setp.eq.{0} p, x0, b;\n @p st.global.{0} [o], x0;\n ret;\n}}\n", type);
  return text;
}

class Card {
 public:
  [[nodiscard]] Result<void> open(int ordinal, Calibration& out) {
    if (!cuda_.loaded())
      return base::fail(Code::kToolMissing,
                        "there is no NVIDIA driver in this machine",
                        "libcuda.so.1",
                        "Calibrate on a machine with a GPU.");
    TRY(check(cuda_.call("cuInit", 0u), "cuInit"));
    if (cuda_.call("cuDeviceGet", &device_, ordinal) != 0)
      return base::fail(Code::kNoInput,
                        fmt::format("there is no GPU {}", ordinal),
                        "--device",
                        "List them: nvidia-smi -L");
    std::array<char, 256> name{};
    int version = 0;
    cuda_.call("cuDeviceGetName", name.data(), static_cast<int>(name.size()) - 1, device_);
    cuda_.call("cuDriverGetVersion", &version);
    out.device = name.data();
    out.driver = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
    constexpr int kMultiprocessors = 16;
    cuda_.call("cuDeviceGetAttribute", &sms_, kMultiprocessors, device_);
    void *context = nullptr, *module = nullptr;
    const std::string ptx = ".version 7.0\n.target sm_70\n.address_size 64\n" + fma_kernel("f32") +
                            fma_kernel("f64") + rangescope_copy_kernels;
    for (const auto& [result, call] :
         {std::pair{cuda_.call("cuDevicePrimaryCtxRetain", &context, device_),
                    "cuDevicePrimaryCtxRetain"},
          {cuda_.call("cuCtxSetCurrent", context), "cuCtxSetCurrent"},
          {cuda_.call("cuModuleLoadData", &module, ptx.c_str()), "cuModuleLoadData"},
          {cuda_.call("cuMemAlloc_v2", &from_, kCopied), "cuMemAlloc"},
          {cuda_.call("cuMemAlloc_v2", &to_, kCopied), "cuMemAlloc"},
          {cuda_.call("cuEventCreate", &begin_, 0u), "cuEventCreate"},
          {cuda_.call("cuEventCreate", &end_, 0u), "cuEventCreate"}}) {
      TRY(check(result, call));
    }
    for (const char* kernel : {"fill", "copy", "fma_f32", "fma_f64"}) {
      TRY(check(cuda_.call("cuModuleGetFunction", &functions_[kernel], module, kernel), kernel));
    }
    std::uint64_t words = kCopied / 4;
    for (std::uint64_t* buffer : {&from_, &to_}) {
      void* arguments[] = {buffer, &words};
      TRY(check(launch("fill", arguments), "fill"));
    }
    return check(cuda_.call("cuCtxSynchronize"), "fill");
  }

  ~Card() {
    for (const std::uint64_t buffer : {from_, to_}) {
      if (buffer != 0)
        cuda_.call("cuMemFree_v2", buffer);
    }
  }

  /// Shortest of several runs of `work`, in seconds; `work` queues what is timed.
  [[nodiscard]] Result<double> best(const char* what, const std::function<int()>& work) {
    std::optional<double> shortest_s;
    for (int i = 0; i <= kTimings; ++i) {
      const bool is_warm_up = i == 0;
      cuda_.call("cuEventRecord", begin_, kNone);
      TRY(check(work(), what));
      cuda_.call("cuEventRecord", end_, kNone);
      TRY(check(cuda_.call("cuEventSynchronize", end_), what));
      float ms = 0;
      cuda_.call("cuEventElapsedTime", &ms, begin_, end_);
      if (is_warm_up || !(ms > 0))
        continue;
      const double seconds = ms / 1e3;
      shortest_s = std::min(shortest_s.value_or(seconds), seconds);
    }
    if (!shortest_s)
      return base::fail(Code::kIo, "no time could be taken", what);
    return *shortest_s;
  }

  [[nodiscard]] Result<double> copy() {
    std::uint64_t quads = kCopied / 16;
    void* arguments[] = {&from_, &to_, &quads};
    const auto seconds = best("copy", [&] { return launch("copy", arguments); });
    if (!seconds)
      return seconds;
    return 2.0 * static_cast<double>(kCopied) / *seconds;
  }

  [[nodiscard]] Result<double> fma(const char* kernel) {
    std::uint32_t times = 2000;
    void* arguments[] = {&to_, &times};
    const auto seconds = best(kernel, [&] { return launch(kernel, arguments); });
    if (!seconds)
      return seconds;
    return 2.0 * kChains * kUnrolled * times * kThreads * blocks() / *seconds;
  }

  [[nodiscard]] std::uint64_t from() const { return from_; }
  [[nodiscard]] std::uint64_t to() const { return to_; }
  [[nodiscard]] Result<std::uint64_t> allocate(std::size_t bytes) {
    std::uint64_t memory = 0;
    TRY(check(cuda_.call("cuMemAlloc_v2", &memory, bytes), "cuMemAlloc"));
    return memory;
  }
  void release(std::uint64_t memory) { cuda_.call("cuMemFree_v2", memory); }

 private:
  [[nodiscard]] Result<void> check(int result, const char* call) const {
    if (result == 0)
      return {};
    const char* name = nullptr;
    if (cuda_.call("cuGetErrorName", result, &name) != 0 || name == nullptr)
      name = "unknown error";
    return base::fail(Code::kIo, fmt::format("{}: {}", call, name), "CUDA driver");
  }
  [[nodiscard]] double blocks() const { return static_cast<double>(sms_) * kBlocksOfSm; }
  [[nodiscard]] int launch(const char* kernel, void** arguments) {
    return cuda_.call("cuLaunchKernel",
                      functions_[kernel],
                      static_cast<unsigned>(blocks()),
                      1u,
                      1u,
                      kThreads,
                      1u,
                      1u,
                      0u,
                      kNone,
                      arguments,
                      static_cast<void**>(nullptr));
  }

  const base::Library cuda_{"libcuda.so.1"};
  int device_ = 0, sms_ = 1;
  std::uint64_t from_ = 0, to_ = 0;
  void *begin_ = nullptr, *end_ = nullptr;
  std::map<std::string, void*> functions_;
};

// Square matrix products. Types and modes by the numbers of library_types.h and cublas_api.h.
struct Product {
  const char* key;  // of conf/device
  int type, out_type, compute;
  std::size_t bytes;  // of an element
};
constexpr std::array kProducts = {Product{"tensor_bf16", 14, 14, 68, 2},
                                  Product{"tensor_fp16", 2, 2, 68, 2},
                                  Product{"tensor_tf32", 0, 0, 77, 4},
                                  Product{"tensor_fp64", 1, 1, 70, 8}};

void measure_products(Card& card, Calibration& out) {
  using Create = int(void**);
  using Gemm = int(void*,
                   int,
                   int,
                   int,
                   int,
                   int,
                   const void*,
                   const void*,
                   int,
                   int,
                   const void*,
                   int,
                   int,
                   const void*,
                   void*,
                   int,
                   int,
                   int,
                   int);
  Create* create = nullptr;
  Gemm* gemm = nullptr;
  for (const char* name : {"libcublas.so.13",
                           "libcublas.so.12",
                           "libcublas.so.11",
                           "libcublas.so",
                           "/usr/local/cuda/lib64/libcublas.so"}) {
    const base::Library library(name);
    create = library.function<Create>("cublasCreate_v2");
    gemm = library.function<Gemm>("cublasGemmEx");
    if (library.loaded())
      break;
  }
  void* handle = nullptr;
  if (create == nullptr || gemm == nullptr || create(&handle) != 0) {
    out.notes.emplace_back(
        "tensor cores were not measured: cuBLAS is not installed or does not start");
    return;
  }
  constexpr int kSize = 8192, kRepeated = 4;
  for (const Product& product : kProducts) {
    const std::size_t bytes = product.bytes * kSize * kSize;
    // The factors are the buffers of copy(): numbers of about 0.5 to 1 as bf16.
    auto result = card.allocate(bytes);
    if (!result) {
      out.notes.push_back(std::string(product.key) + " was not measured: " + result.error().what);
      continue;
    }
    const double alpha_double = 1, beta_double = 0;
    const float alpha_float = 1, beta_float = 0;
    const void* alpha = &alpha_float;
    const void* beta = &beta_float;
    const bool is_double = product.compute == 70;
    if (is_double) {
      alpha = &alpha_double;
      beta = &beta_double;
    }
    const auto seconds = card.best(product.key, [&] {
      for (int i = 0; i < kRepeated; ++i) {
        const int failed = gemm(handle,
                                1,
                                0,
                                kSize,
                                kSize,
                                kSize,
                                alpha,
                                reinterpret_cast<const void*>(card.from()),
                                product.type,
                                kSize,
                                reinterpret_cast<const void*>(card.to()),
                                product.type,
                                kSize,
                                beta,
                                reinterpret_cast<void*>(*result),
                                product.out_type,
                                kSize,
                                product.compute,
                                -1);
        if (failed != 0)
          return 999;  // CUDA_ERROR_UNKNOWN
      }
      return 0;
    });
    if (seconds) {
      out.flop_per_s[product.key] = 2.0 * kSize * kSize * kSize * kRepeated / *seconds;
    } else {
      out.notes.push_back(std::string(product.key) + " was not measured: " + seconds.error().what);
    }
    card.release(*result);
  }
}

}  // namespace

Result<Calibration> calibrate(int ordinal) {
  Calibration out;
  Card card;
  TRY(card.open(ordinal, out));
  out.memory_bytes_per_s = TRY(card.copy());
  for (const auto& [kernel, key] : {std::pair{"fma_f32", "fp32"}, std::pair{"fma_f64", "fp64"}}) {
    out.flop_per_s[key] = TRY(card.fma(kernel));
  }
  measure_products(card, out);
  return out;
}

}  // namespace rangescope::collect::native
