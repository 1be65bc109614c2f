// Writes a trace as torch.profiler of PyTorch 2.x leaves one (Kineto), of any size, straight to
// disk.
//
//   kineto_trace OUT.json MEGABYTES [SHAPES]
//
// Steps of training on one thread and one GPU: an annotation holds operators three deep with the
// shapes of their inputs (SHAPES different ones, 50 unless told), every other operator launches a
// kernel, and arrows (ac2g) join call and kernel, as in real traces. Prints what a reader has to
// keep: "ranges calls kernels".
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr const char* kNames[] = {
    "aten::linear", "aten::addmm", "aten::mul", "aten::layer_norm", "aten::softmax", "aten::copy_"};
constexpr const char* kKernels[] = {
    "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, float, "
    "float, "
    "at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul> >(int, "
    "at::native::BinaryFunctor<float, "
    "float, "
    "float, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul>)",
    "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize64x64x32_warpgroupsize1x1x1_execute_segment_k_"
    "off_kernel__5x_"
    "cublas",
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float, "
    "false>(int, float, float "
    "const*, "
    "float const*, float const*, float*, float*, float*)"};

struct Trace {
  std::FILE* out;
  std::int64_t ns = 4'489'574'154'000'000;  // of the trace's clock
  std::uint64_t id = 0, correlation = 0, ranges = 0, kernels = 0;
  int shapes;

  void time(const char* begin, std::int64_t at, std::int64_t length, const char* end) {
    std::fprintf(out,
                 "%s\"ts\": %" PRId64 ".%03d, \"dur\": %" PRId64 ".%03d%s",
                 begin,
                 at / 1000,
                 static_cast<int>(at % 1000),
                 length / 1000,
                 static_cast<int>(length % 1000),
                 end);
  }

  void op(const char* name, std::int64_t at, std::int64_t length) {
    std::fprintf(out,
                 ",\n  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"%s\", \"pid\": 442, "
                 "\"tid\": 442,\n",
                 name);
    time("    ", at, length, ",\n");
    const int rows = 1 + static_cast<int>(id % static_cast<std::uint64_t>(shapes));
    std::fprintf(out,
                 "    \"args\": {\n      \"External id\": %" PRIu64
                 ",\"Record function id\": 0, \"Concrete Inputs\": [\"\", \"\", "
                 "\"1\"], \"Input type\": [\"float\", \"float\", \"Scalar\"], \"Input Strides\": "
                 "[[4096, 1], [1, 4096], []], "
                 "\"Input Dims\": [[%d, 4096], [4096, 4096], []], \"Ev Idx\": %" PRIu64
                 "\n    }\n  }",
                 id + 1,
                 rows,
                 id);
    ++id;
    ++ranges;
  }

  void launch() {
    const std::uint64_t c = ++correlation, external = id;
    std::fprintf(out,
                 ",\n  {\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": "
                 "\"cudaLaunchKernel\", \"pid\": 442, "
                 "\"tid\": 442,\n");
    time("    ", ns + 900, 2100, ",\n");
    std::fprintf(out,
                 "    \"args\": {\n      \"External id\": %" PRIu64
                 ", \"cbid\": 211, \"correlation\": %" PRIu64 "\n    }\n  }",
                 external,
                 c);
    std::fprintf(out,
                 ",\n  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"%s\", \"pid\": 0, "
                 "\"tid\": 7,\n",
                 kKernels[c % 3]);
    time("    ", ns + 5000, 3200, ",\n");
    std::fprintf(
        out,
        "    \"args\": {\n      \"External id\": %" PRIu64
        ", \"queued\": 0, \"device\": 0, \"context\": 1, \"stream\": 7, "
        "\"correlation\": %" PRIu64
        ", \"registers per thread\": 32, \"shared memory\": 0, \"blocks per SM\": 3.878788, "
        "\"warps per SM\": 15.515152, \"grid\": [%d, 1, 1], \"block\": [128, 1, 1], \"est. "
        "achieved occupancy "
        "%%\": 24\n    }\n  }",
        external,
        c,
        512 + static_cast<int>(c % 8));
    for (const char* end : {"\"f\"", "\"s\""}) {
      const bool finish = end[1] == 'f';
      std::fprintf(out,
                   ",\n  {\n    \"ph\": %s, \"id\": %" PRIu64
                   ", \"pid\": %d, \"tid\": %d, \"ts\": %" PRId64
                   ".%03d,\n    \"cat\": \"ac2g\", "
                   "\"name\": \"ac2g\"%s\n  }",
                   end,
                   c,
                   finish ? 0 : 442,
                   finish ? 7 : 442,
                   (ns + 5000) / 1000,
                   static_cast<int>((ns + 5000) % 1000),
                   finish ? ", \"bp\": \"e\"" : "");
    }
    ++kernels;
  }
};

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t bytes = argc > 2 ? std::strtoull(argv[2], nullptr, 10) << 20 : 0;
  const int shapes = argc > 3 ? std::atoi(argv[3]) : 50;
  std::FILE* out = bytes > 0 && shapes > 0 ? std::fopen(argv[1], "wb") : nullptr;
  if (out == nullptr)
    return std::fputs("kineto_trace OUT.json MEGABYTES [SHAPES]\n", stderr), 64;
  std::vector<char> buffer(1 << 20);
  std::setvbuf(out, buffer.data(), _IOFBF, buffer.size());
  Trace trace{.out = out, .shapes = shapes};
  std::fputs(
      "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n    {\n      \"id\": 0, \"name\": "
      "\"NVIDIA H200\", "
      "\"totalGlobalMem\": "
      "150109880320, \"computeMajor\": 9, \"computeMinor\": 0, \"numSms\": 132\n    }\n  ],\n  "
      "\"displayTimeUnit\": "
      "\"ms\",\n"
      "  \"baseTimeNanoseconds\": 1790857026000000000,\n  \"traceEvents\": [\n  {\n    \"name\": "
      "\"process_name\", "
      "\"ph\": \"M\", "
      "\"ts\": 0, \"pid\": 442, \"tid\": 0,\n    \"args\": {\n      \"name\": \"python3\"\n    }\n "
      " }",
      out);
  for (std::uint64_t step = 0; static_cast<std::uint64_t>(std::ftell(out)) < bytes; ++step) {
    constexpr int kOperators = 20'000;
    constexpr std::int64_t kOperator = 20'000;
    std::fprintf(
        out,
        ",\n  {\n    \"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#%" PRIu64
        "\", \"pid\": 442, \"tid\": 442,\n",
        step);
    trace.time("    ",
               trace.ns,
               kOperators * kOperator,
               ",\n    \"args\": {\n      \"External id\": 0, \"Ev Idx\": 0\n    }\n  }");
    ++trace.ranges;
    for (int i = 0; i < kOperators; ++i, trace.ns += kOperator) {
      trace.op(kNames[i % 6], trace.ns + 100, 15'000);
      trace.op("aten::empty", trace.ns + 200, 10'000);
      trace.op("aten::resize_", trace.ns + 300, 5'000);
      if (i % 2 == 0)
        trace.launch();
    }
  }
  std::fputs("\n  ],\n  \"traceName\": \"trace.json\"\n}\n", out);
  std::printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", trace.ranges, trace.kernels, trace.kernels);
  return std::fclose(out) == 0 ? 0 : 74;
}
