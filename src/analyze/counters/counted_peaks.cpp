#include "analyze/counters/counted_peaks.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace rangescope::analyze {
namespace {

// `peak` of a cycle times `clock`; without a clock it is of a second already. As ncu's roofline sections have them:
// packed halves are two numbers, a fused multiply-add two operations.
struct Roof {
  std::string_view key, peak, clock;
  double times = 1;
};
constexpr std::string_view kSm = "sm__cycles_elapsed.avg.per_second";
constexpr auto kRoofs = std::to_array<Roof>({
    {"memory", "dram__bytes.sum.peak_sustained", "dram__cycles_elapsed.avg.per_second"},
    {"l2", "lts__t_bytes.sum.peak_sustained", "lts__cycles_elapsed.avg.per_second"},
    {"l2", "derived__lts__lts2xbar_bytes.sum.peak_sustained", "lts__cycles_elapsed.avg.per_second"},
    {"fp32", "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained", kSm, 2},
    {"fp64", "sm__sass_thread_inst_executed_op_dfma_pred_on.sum.peak_sustained", kSm, 2},
    {"fp16", "derived__sm__sass_thread_inst_executed_op_hfma_pred_on_x4", kSm},
    {"tensor_bf16", "sm__ops_path_tensor_src_bf16_dst_fp32.sum.peak_sustained", kSm},
    {"tensor_fp16", "sm__ops_path_tensor_src_fp16.sum.peak_sustained", kSm},
    {"tensor_tf32", "sm__ops_path_tensor_src_tf32_dst_fp32.sum.peak_sustained", kSm},
    {"tensor_fp64", "sm__ops_path_tensor_src_fp64.sum.peak_sustained", kSm},
    {"tensor_fp8", "sm__ops_path_tensor_src_fp8_sparsity_off.sum.peak_sustained", kSm},
});

}  // namespace

std::optional<model::Peaks> counted_peaks(const model::Session& session) {
  const auto index = [&](std::string_view name) {
    const auto found = std::find_if(session.metrics.begin(), session.metrics.end(),
                                    [&](const model::MetricDef& metric) { return metric.name == name; });
    return static_cast<std::uint32_t>(found - session.metrics.begin());
  };
  model::Peaks peaks{.id = "counted", .name = "this GPU", .source = "peak_sustained of the results, at their clocks"};
  for (const Roof& roof : kRoofs) {
    const std::uint32_t peak = index(roof.peak), clock = index(roof.clock);
    double most = 0;
    for (const model::Measurement& result : session.measurements) {
      double per_cycle = 0, hz = 0;
      for (const model::MetricValue& value : result.values) {
        if (value.metric == peak) per_cycle = value.value;
        if (value.metric == clock) hz = value.value;
      }
      most = std::max(most, per_cycle * hz * roof.times);
    }
    if (!(most > 0)) continue;
    if (roof.key == "memory")
      peaks.memory_bytes_per_s = most;
    else if (roof.key == "l2")
      peaks.l2_bytes_per_s = most;
    else
      peaks.flop_per_s[std::string(roof.key)] = most;
  }
  if (peaks.memory_bytes_per_s <= 0 || peaks.flop_per_s.empty()) return std::nullopt;
  return peaks;
}

}  // namespace rangescope::analyze
