// The same of further programs, to which no constant was fitted: what a kernel takes after a fix
// follows from the bytes it moves or its FLOPs, and from what other cards and programs showed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "recording.hpp"

namespace rangescope {
namespace more_savings_test {

using namespace savings_test;

using OperationIds = std::vector<std::uint32_t>;

/// How near to the memory's peak an element-wise kernel comes, as for `optimizer`.
constexpr Parameter kOfMemoryPeak{0.8, 0.5, 1};
/// How near to the tensor peak cuBLAS brings a large product: docs/measurements.md, Calibration.
constexpr Parameter kOfTensorPeak{0.83, 0.65, 1};
/// As for `alloc`.
constexpr double kLeftOfLongStretches = 0.05;
constexpr double kFp32PerBf16 = 66.9 / 989.4;
constexpr double kHalf_bytes = 2;
constexpr double kFloat_bytes = 4;
constexpr std::uint32_t kSms = 132;

std::int64_t memory_ns(double bytes, double efficiency) {
  return static_cast<std::int64_t>(bytes / (efficiency * kMemory_bytes_per_s) * 1e9);
}

/// One kernel for several takes no less than the shortest of them.
Fusion one_for(const Graph& graph, const OperationIds& works, std::int64_t duration_ns) {
  std::int64_t shortest_ns = model::kOpen;
  for (const std::uint32_t work : works)
    shortest_ns = std::min(shortest_ns, graph.operations[work].duration_ns);
  return {works, std::max(shortest_ns, duration_ns)};
}

bool starts_within(const Operation& operation, const Span& span) {
  return operation.start_ns >= span.start_ns && operation.start_ns < span.end_ns;
}

std::vector<OperationIds> split_by_step(const Recording& recording,
                                        const OperationIds& operations) {
  std::vector<OperationIds> steps(recording.spans("step").size());
  const std::size_t count = operations.size() / steps.size();
  for (std::size_t index = 0; index < count * steps.size(); ++index)
    steps[index / count].push_back(operations[index]);
  return steps;
}

/// All kernels of each step as one that moves `bytes`.
Fix one_kernel_moving(const Recording& recording, double bytes) {
  const Change change = [&recording, bytes](const Graph& graph, double efficiency) {
    std::vector<Fusion> fusions;
    for (const OperationIds& step : split_by_step(recording, recording.all(Kind::kKernel)))
      fusions.push_back(one_for(graph, step, memory_ns(bytes, efficiency)));
    return fused(graph, fusions);
  };
  return {change, kOfMemoryPeak};
}

/// Waits in steps; not the one at the loop's end.
OperationIds waits_in_steps(const Recording& recording) {
  const std::vector<Span> steps = recording.spans("step");
  return recording.operations(Kind::kWait, [&](const Operation& wait) {
    return std::ranges::any_of(steps, [&](const Span& step) { return starts_within(wait, step); });
  });
}

void append(OperationIds& ids, const OperationIds& more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

/// A cache grows in place: a kernel writes one token, of 64 at least.
Fix cat(const Recording& recording) {
  const Change change = [&recording](const Graph& graph, double share) {
    return scaled(graph, recording.kernels("CatArrayBatchedCopy"), share);
  };
  return {change, {1.0 / 64, 0, 1.0 / 16}};
}

/// Weights are transposed already.
Fix transposed(const Recording& recording) {
  const Change change = [&recording](const Graph& graph, double) {
    return without(graph, recording.kernels("direct_copy_kernel"));
  };
  return {change, {}};
}

// ---- Waits

/// Values are computed, copied and waited for at the first of 20 steps.
Fix logging(const Recording& recording) {
  const Change change = [&recording](const Graph& graph, double) {
    OperationIds printing = waits_in_steps(recording);
    append(printing, recording.all(Kind::kCopy));
    append(printing, recording.kernels("reduce_kernel"));
    append(printing, recording.kernels("direct_copy_kernel"));
    const Span first = recording.spans("step").front();
    std::erase_if(printing,
                  [&](std::uint32_t id) { return graph.operations[id].start_ns < first.end_ns; });
    return without(graph, printing);
  };
  return {change, {}};
}

/// What an indexing by a mask launches is one kernel, which reads a mask and values and writes as
/// many; nothing waits for a size.
Fix mask(const Recording& recording) {
  constexpr double kBytes = (1 + 2 * kFloat_bytes) * 4 * 1024 * 1024;
  const Change change = [&recording](const Graph& graph, double efficiency) {
    OperationIds sizes = waits_in_steps(recording);
    append(sizes, recording.all(Kind::kCopy));
    const Graph unawaited = without(graph, sizes);
    std::vector<Fusion> fusions;
    OperationIds indexing;
    const auto any = [](const Operation&) { return true; };
    for (const std::uint32_t kernel : recording.operations_in(unawaited, Kind::kKernel, any)) {
      const std::string_view name = recording.kernel_name(unawaited.operations[kernel]);
      const bool is_last = name.find("index_elementwise_kernel") != std::string_view::npos;
      if (is_last || name.find("cub::") != std::string_view::npos)
        indexing.push_back(kernel);
      if (!is_last)
        continue;
      fusions.push_back(one_for(unawaited, indexing, memory_ns(kBytes, efficiency)));
      indexing.clear();
    }
    return fused(unawaited, fusions);
  };
  return {change, kOfMemoryPeak};
}

// ---- Many kernels as one

Fix zeroing(const Recording& recording) {
  return one_kernel_moving(recording, kFloat_bytes * 400 * 128 * 128);
}

Fix bmm(const Recording& recording) {
  return one_kernel_moving(recording, 3 * kHalf_bytes * 128 * 128 * 128);
}

Fix gelu(const Recording& recording) {
  return one_kernel_moving(recording, 2 * kHalf_bytes * 8192 * 8192);
}

Fix rmsnorm(const Recording& recording) {
  return one_kernel_moving(recording, 2 * kHalf_bytes * 8192 * 4096);
}

/// The logarithms of the softmax are read and written.
Fix entropy(const Recording& recording) {
  return one_kernel_moving(recording, 2 * kHalf_bytes * 4096 * 32000);
}

/// Rows are read and written.
Fix onehot(const Recording& recording) {
  return one_kernel_moving(recording, 2 * kHalf_bytes * 512 * 1024);
}

/// The norms of 300 gradients are one kernel, their products with the factor another one.
Fix clipping(const Recording& recording) {
  constexpr double kBytes = kFloat_bytes * 300 * 256 * 256;
  const Change change = [&recording](const Graph& graph, double efficiency) {
    std::vector<Fusion> fusions;
    for (OperationIds& norms : split_by_step(recording, recording.kernels("NormTwoOps"))) {
      norms.pop_back();  // that of the norms
      fusions.push_back(one_for(graph, norms, memory_ns(kBytes, efficiency)));
    }
    const OperationIds products = recording.kernels("BinaryFunctor<float");
    for (const OperationIds& step : split_by_step(recording, products))
      fusions.push_back(one_for(graph, step, memory_ns(2 * kBytes, efficiency)));
    return fused(graph, fusions);
  };
  return {change, kOfMemoryPeak};
}

/// Each of eight layers is applied to 64 samples by one kernel.
Fix samples(const Recording& recording) {
  constexpr std::size_t kLayers = 8;
  constexpr double kBytes = kHalf_bytes * (512 * 512 + 2 * 64 * 512);
  const Change change = [&recording](const Graph& graph, double efficiency) {
    std::vector<Fusion> fusions;
    const OperationIds products = recording.kernels("nvjet");
    for (const OperationIds& step : split_by_step(recording, products)) {
      std::vector<OperationIds> layers(kLayers);
      for (std::size_t index = 0; index < step.size(); ++index)
        layers[index % kLayers].push_back(step[index]);
      for (const OperationIds& layer : layers)
        fusions.push_back(one_for(graph, layer, memory_ns(kBytes, efficiency)));
    }
    return fused(graph, fusions);
  };
  return {change, kOfMemoryPeak};
}

// ---- Faster products

Fix bf16(const Recording& recording) {
  const Change change = [&recording](const Graph& graph, double factor) {
    return scaled(graph, recording.kernels("f32f32_f32f32_f32"), factor);
  };
  return {change, {kFp32PerBf16, kFp32PerBf16, 1.5 * kFp32PerBf16}};
}

Fix unaligned(const Recording& recording) {
  constexpr double kFlop = 2.0 * 4096 * 4096 * 4096;
  const Change change = [&recording](const Graph& graph, double efficiency) {
    const auto ns = static_cast<std::int64_t>(kFlop / (efficiency * kTensorFp16_flop_per_s) * 1e9);
    return fused(graph, recording.one_kernel_a_step([&](const auto&) { return ns; }));
  };
  return {change, kOfTensorPeak};
}

// ---- Copies

Fix smallcopies(const Recording& recording) {
  constexpr double kBytes = kFloat_bytes * 200 * 64;
  const Change change = [&recording](const Graph& graph, double bytes_per_s) {
    const Graph unawaited = without(graph, waits_in_steps(recording));
    const auto any = [](const Operation&) { return true; };
    const OperationIds copies = recording.operations_in(unawaited, Kind::kCopy, any);
    std::vector<Fusion> fusions;
    for (const OperationIds& step : split_by_step(recording, copies))
      fusions.push_back({step, static_cast<std::int64_t>(kBytes / bytes_per_s * 1e9)});
    return fused(unawaited, fusions);
  };
  return {change, pinned_bytes_per_s()};
}

/// Rows are gathered on the GPU, where they are read and written, instead of in long stretches.
Fix cpuindex(const Recording& recording) {
  constexpr double kBytes = 2 * kFloat_bytes * 20000 * 256;
  const Change change = [&recording](const Graph& graph, double efficiency) {
    Graph gathered = scaled(graph, recording.stretches_over(100'000), kLeftOfLongStretches);
    for (const std::uint32_t copy : recording.all(Kind::kCopy)) {
      gathered.operations[copy].duration_ns = memory_ns(kBytes, efficiency);
      const std::uint32_t call = launch_of(graph, copy);
      gathered.operations[call].duration_ns = graph.latencies.call_ns;
    }
    return without(gathered, waits_in_steps(recording));
  };
  return {change, kOfMemoryPeak};
}

// ---- Side by side

/// The share of the GPU that a chain fills: its blocks over the SMs, weighted by time.
double room_of(const Recording& recording, const Graph& graph, const OperationIds& chain) {
  double filled_ns = 0, total_ns = 0;
  for (const std::uint32_t id : chain) {
    const Operation& kernel = graph.operations[id];
    const auto& grid =
        recording.session().kernel_shapes[recording.session().kernels[kernel.source].shape].grid;
    const double blocks = static_cast<double>(grid[0]) * grid[1] * grid[2];
    const auto ns = static_cast<double>(kernel.duration_ns);
    filled_ns += std::min(1.0, blocks / kSms) * ns;
    total_ns += ns;
  }
  return filled_ns / total_ns;
}

Fix branches(const Recording& recording) {
  constexpr std::size_t kChains = 8;
  const Change change = [&recording](const Graph& graph, double gap) {
    Graph parallel = graph;
    for (const OperationIds& step : split_by_step(recording, recording.all(Kind::kKernel))) {
      const std::size_t count = step.size() / kChains;
      std::vector<Chain> chains;
      for (std::size_t first = 0; first < step.size(); first += count) {
        const auto begin = step.begin() + static_cast<std::ptrdiff_t>(first);
        const OperationIds works(begin, begin + static_cast<std::ptrdiff_t>(count));
        chains.push_back({works, room_of(recording, graph, works)});
      }
      parallel = side_by_side(parallel, chains);
    }
    const auto order_ns =
        static_cast<double>(graph.latencies.order_ns[static_cast<std::size_t>(Kind::kKernel)]);
    return as_graph_launches(parallel,
                             captures_of(recording.spans("step")),
                             {graph_launch_ns(), static_cast<std::int64_t>(gap * order_ns)});
  };
  return {change, {1, 0, 1}};
}

// ---- What came of them

constexpr double saved(double before_ms, double after_ms) {
  return 1 - after_ms / before_ms;
}

constexpr Pair pair_of(const char* name,
                       Fix (*fix)(const Recording&),
                       double before_ms,
                       double after_ms) {
  return {name, fix, saved(before_ms, after_ms), saved(before_ms, after_ms)};
}

/// Medians of five loops of 40 steps (tests/golden/savings/README.md).
constexpr Pair kMorePairs[] = {
    pair_of("bf16", bf16, 334.68, 22.22),
    pair_of("bmm", bmm, 88.21, 0.73),
    pair_of("branches", branches, 68.80, 9.79),
    pair_of("cat", cat, 69.23, 26.80),
    pair_of("clipping", clipping, 236.94, 43.94),
    pair_of("cpuindex", cpuindex, 89.31, 1.12),
    pair_of("entropy", entropy, 70.73, 11.88),
    pair_of("gelu", gelu, 40.17, 3.83),
    pair_of("logging", logging, 31.04, 25.64),
    pair_of("mask", mask, 44.20, 17.78),
    pair_of("onehot", onehot, 6.73, 1.08),
    pair_of("rmsnorm", rmsnorm, 21.12, 2.84),
    pair_of("samples", samples, 412.81, 6.51),
    pair_of("smallcopies", smallcopies, 90.71, 0.22),
    pair_of("transposed", transposed, 36.40, 8.09),
    pair_of("unaligned", unaligned, 35.93, 7.42),
    pair_of("zeroing", zeroing, 88.47, 2.66),
};

class MoreSavings : public ::testing::TestWithParam<Pair> {};

TEST_P(MoreSavings, TheRecordingReplays) {
  expect_replay(GetParam().name);
}

TEST_P(MoreSavings, ThePredictedSavingComesTrue) {
  expect_saving(GetParam());
}

/// What no change foretells yet, or not within the bounds.
TEST(MoreSavingsUnpredicted, TheRecordingsReplay) {
  for (const char* name : {"casts", "pinning", "synced"}) {
    SCOPED_TRACE(name);
    expect_replay(name);
  }
}

INSTANTIATE_TEST_SUITE_P(Pairs, MoreSavings, ::testing::ValuesIn(kMorePairs), [](const auto& pair) {
  return std::string(pair.param.name);
});

}  // namespace more_savings_test
}  // namespace rangescope
