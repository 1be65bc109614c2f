// Predicted against realised savings: ten PyTorch programs on an H100, recorded before one known
// fix, and measured without a profiler before and after it. tests/golden/savings holds the
// recordings (trim_capture.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "recording.hpp"

namespace rangescope {
namespace savings_test {

// ---- The fixes, as changes

/// 120 small kernels a step as a CUDA graph. Between its nodes nothing passes, or what passes
/// between queued kernels.
Fix launch(const Recording& recording) {
  const std::vector<Capture> steps = captures_of(recording.spans("step"));
  const Change change = [steps](const Graph& graph, double gap) {
    const auto order_ns =
        static_cast<double>(graph.latencies.order_ns[static_cast<std::size_t>(Kind::kKernel)]);
    return as_graph_launches(
        graph, steps, {graph_launch_ns(), static_cast<std::int64_t>(gap * order_ns)});
  };
  return {change, {0, 0, 1}};
}

/// Pageable copies become pinned ones, on a stream of their own, in two buffers.
Fix copies(const Recording& recording) {
  const Change change = [&recording](const Graph& graph, double bytes_per_s) {
    const std::vector<std::uint32_t> copies = recording.all(Kind::kCopy);
    std::vector<std::int64_t> durations_ns;
    for (const std::uint32_t copy : copies) {
      const auto bytes =
          static_cast<double>(recording.session().copies[graph.operations[copy].source].bytes);
      durations_ns.push_back(static_cast<std::int64_t>(bytes / bytes_per_s * 1e9));
    }
    return copied_ahead(graph, copies, durations_ns, 2);
  };
  return {change, pinned_bytes_per_s()};
}

/// No `.item()`: neither its copy nor its wait.
Fix sync(const Recording& recording) {
  const Change change = [&recording](const Graph& graph, double) {
    std::vector<std::uint32_t> removed = recording.operations(
        Kind::kWait,
        [&](const Operation& wait) { return recording.call_name(wait) == "cuStreamSynchronize"; });
    const std::vector<std::uint32_t> copies = recording.all(Kind::kCopy);
    removed.insert(removed.end(), copies.begin(), copies.end());
    return without(graph, removed);
  };
  return {change, {}};
}

/// Float32 products on the tensor cores. A small one does not come as near to their peak as to that
/// of the FP32 units.
Fix tf32(const Recording& recording) {
  const Change change = [&recording](const Graph& graph, double factor) {
    return scaled(graph, recording.kernels("f32f32_f32f32_f32"), factor);
  };
  return {change, {kFp32PerTf32, kFp32PerTf32, 1.5 * kFp32PerTf32}};
}

/// Batches are made by other threads, as many as keep up.
Fix loader(const Recording& recording) {
  const Change change = [&recording](const Graph& graph, double workers) {
    return moved_ahead(
        graph, recording.stretches_over(2'000'000), static_cast<std::uint32_t>(workers), 2);
  };
  return {change, {8, 4, 16}};
}

/// Eight element-wise kernels as one, which reads and writes as much as the cheapest of them.
Fix fusion(const Recording& recording) {
  const Change change = [&recording](const Graph& graph, double) {
    const auto cheapest_ns = [&](const std::vector<std::uint32_t>& step) {
      std::int64_t ns = model::kOpen;
      for (const std::uint32_t kernel : step)
        ns = std::min(ns, graph.operations[kernel].duration_ns);
      return ns;
    };
    return fused(graph, recording.one_kernel_a_step(cheapest_ns));
  };
  return {change, {}};
}

/// Attention as one kernel: two products of 4 x 16 heads of 2048 x 2048 x 64, at half of the tensor
/// peak.
Fix attention(const Recording& recording) {
  constexpr double kFlop = 2 * 2.0 * 4 * 16 * 2048 * 2048 * 64;
  const Change change = [&recording](const Graph& graph, double efficiency) {
    const auto ns = static_cast<std::int64_t>(kFlop / (efficiency * kTensorFp16_flop_per_s) * 1e9);
    return fused(graph, recording.one_kernel_a_step([&](const auto&) { return ns; }));
  };
  return {change, {0.5, 0.35, 0.65}};
}

/// channels_last: nothing converts layouts.
Fix layout(const Recording& recording) {
  const Change change = [&recording](const Graph& graph, double) {
    std::vector<std::uint32_t> conversions = recording.kernels("nchwToNhwc");
    const std::vector<std::uint32_t> back = recording.kernels("nhwcToNchw");
    conversions.insert(conversions.end(), back.begin(), back.end());
    return without(graph, conversions);
  };
  return {change, {}};
}

/// No `empty_cache()`: a step neither frees nor allocates, which its long stretches do.
Fix alloc(const Recording& recording) {
  const Change change = [&recording](const Graph& graph, double left) {
    return scaled(graph, recording.stretches_over(100'000), left);
  };
  return {change, {0.05, 0, 0.1}};
}

/// One fused Adam: parameters, gradients and two moments are read, three of them written.
Fix optimizer(const Recording& recording) {
  constexpr double kBytes = 7 * 4.0 * 200 * 256 * 256;
  const Change change = [&recording](const Graph& graph, double efficiency) {
    const auto ns = static_cast<std::int64_t>(kBytes / (efficiency * kMemory_bytes_per_s) * 1e9);
    return fused(graph, recording.one_kernel_a_step([&](const auto&) { return ns; }));
  };
  return {change, {0.8, 0.5, 1}};
}

// ---- What came of them

/// Shares over 40 and 200 steps.
constexpr Pair kPairs[] = {
    {"launch", launch, 0.84, 0.88},
    {"copies", copies, 0.85, 0.86},
    {"sync", sync, 0.36, 0.52},
    {"tf32", tf32, 0.87, 0.87},
    {"loader", loader, 0.77, 0.81},
    {"fusion", fusion, 0.91, 0.91},
    {"attention", attention, 0.89, 0.89},
    {"layout", layout, 0.30, 0.30},
    {"alloc", alloc, 0.73, 0.86},
    {"optimizer", optimizer, 0.95, 0.96},
};

class Savings : public ::testing::TestWithParam<Pair> {};

TEST_P(Savings, TheRecordingReplays) {
  expect_replay(GetParam().name);
}

TEST_P(Savings, ThePredictedSavingComesTrue) {
  expect_saving(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Pairs, Savings, ::testing::ValuesIn(kPairs), [](const auto& pair) {
  return std::string(pair.param.name);
});

}  // namespace savings_test
}  // namespace rangescope
