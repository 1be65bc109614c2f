#include "read/ncu/csv/labels.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace rangescope::read::ncu_csv {
namespace {

/// Labels of the sections of ncu 2025.3 whose metric does not depend on the chip, as its reports name them; sorted.
constexpr auto kLabels = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"# SMs", "launch__sm_count"},
    {"# TPCs", "launch__tpc_count"},
    {"Achieved Active Warps Per SM", "sm__warps_active.avg.per_cycle_active"},
    {"Achieved Occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active"},
    {"Average DRAM Active Cycles", "dram__cycles_active.avg"},
    {"Average L1 Active Cycles", "l1tex__cycles_active.avg"},
    {"Average L2 Active Cycles", "lts__cycles_active.avg"},
    {"Average SM Active Cycles", "sm__cycles_active.avg"},
    {"Average SMSP Active Cycles", "smsp__cycles_active.avg"},
    {"Avg. Divergent Branches", "smsp__sass_branch_targets_threads_divergent.avg"},
    {"Block Limit Barriers", "launch__occupancy_limit_barriers"},
    {"Block Limit Registers", "launch__occupancy_limit_registers"},
    {"Block Limit SM", "launch__occupancy_limit_blocks"},
    {"Block Limit Shared Mem", "launch__occupancy_limit_shared_mem"},
    {"Block Limit Warps", "launch__occupancy_limit_warps"},
    {"Block Size", "launch__block_size"},
    {"Branch Efficiency", "smsp__sass_average_branch_targets_threads_uniform.pct"},
    {"Branch Instructions", "smsp__inst_executed_op_branch.sum"},
    {"Branch Instructions Ratio", "derived__smsp__inst_executed_op_branch_pct"},
    {"Cluster Occupancy", "launch__occupancy_cluster_pct"},
    {"Cluster Scheduling Policy", "launch__cluster_scheduling_policy"},
    {"Cluster Size", "launch__cluster_size"},
    {"Compute (SM) Throughput", "sm__throughput.avg.pct_of_peak_sustained_elapsed"},
    {"DRAM Frequency", "dram__cycles_elapsed.avg.per_second"},
    {"DRAM Throughput", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"Driver Shared Memory Per Block", "launch__shared_mem_per_block_driver"},
    {"Duration", "gpu__time_duration.sum"},
    {"Dynamic Shared Memory Per Block", "launch__shared_mem_per_block_dynamic"},
    {"Elapsed Cycles", "gpc__cycles_elapsed.max"},
    {"Enabled TPC IDs", "launch__tpc_enabled"},
    {"Executed Ipc Active", "sm__inst_executed.avg.per_cycle_active"},
    {"Executed Ipc Elapsed", "sm__inst_executed.avg.per_cycle_elapsed"},
    {"Function Cache Configuration", "launch__func_cache_config"},
    {"Grid Size", "launch__grid_size"},
    {"Issue Slots Busy", "sm__inst_issued.avg.pct_of_peak_sustained_elapsed"},
    {"Issued Ipc Active", "sm__inst_issued.avg.per_cycle_active"},
    {"L1/TEX Cache Throughput", "l1tex__throughput.avg.pct_of_peak_sustained_active"},
    {"L1/TEX Hit Rate", "l1tex__t_sector_hit_rate.pct"},
    {"L2 Cache Throughput", "lts__throughput.avg.pct_of_peak_sustained_elapsed"},
    {"L2 Hit Rate", "lts__t_sector_hit_rate.pct"},
    {"L2 Persisting Size", "launch__persisting_l2_cache_size"},
    {"Local Memory Spilling Request Overhead", "derived__local_spilling_requests_pct"},
    {"Local Memory Spilling Requests", "derived__local_spilling_requests"},
    {"Max Active Clusters", "launch__cluster_max_active"},
    {"Max Bandwidth", "gpu__compute_memory_request_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"Max Cluster Size", "launch__cluster_max_potential_size"},
    {"Mem Busy", "gpu__compute_memory_access_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"Mem Pipes Busy", "sm__memory_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"Overall GPU Occupancy", "launch__occupancy_cluster_gpu_pct"},
    {"Preferred Cluster Size", "launch__preferred_cluster_size"},
    {"Registers Per Thread", "launch__registers_per_thread"},
    {"SM Active Cycles", "sm__cycles_active.avg"},
    {"SM Busy", "sm__instruction_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"SM Frequency", "gpc__cycles_elapsed.avg.per_second"},
    {"Shared Memory Configuration Size", "launch__shared_mem_config_size"},
    {"Stack Size", "launch__stack_size"},
    {"Static Shared Memory Per Block", "launch__shared_mem_per_block_static"},
    {"Theoretical Active Warps per SM", "sm__maximum_warps_avg_per_active_cycle"},
    {"Theoretical Occupancy", "sm__maximum_warps_per_active_cycle_pct"},
    {"Threads", "launch__thread_count"},
    {"Total DRAM Elapsed Cycles", "dram__cycles_elapsed.sum"},
    {"Total L1 Elapsed Cycles", "l1tex__cycles_elapsed.sum"},
    {"Total L2 Elapsed Cycles", "lts__cycles_elapsed.sum"},
    {"Total SM Elapsed Cycles", "sm__cycles_elapsed.sum"},
    {"Total SMSP Elapsed Cycles", "smsp__cycles_elapsed.sum"},
    {"Uses Green Context", "launch__uses_green_context"},
    {"Waves Per SM", "launch__waves_per_multiprocessor"},
});
static_assert(std::ranges::is_sorted(kLabels, {}, [](const auto& pair) { return pair.first; }));

}  // namespace

std::string metric_of_label(std::string_view section, std::string_view label) {
  if (label.find("__") != std::string_view::npos) {
    // "Duration (gpu__time_duration.sum)": --print-metric-name label-name, or a label that the tool could not fill in
    const std::size_t open = label.rfind(" (");
    if (label.ends_with(')') && open != std::string_view::npos && label.find("__", open) != std::string_view::npos)
      label = label.substr(open + 2, label.size() - open - 3);
    return std::string(label);
  }
  if (label == "Memory Throughput" && section == "GPU Speed Of Light Throughput") {
    return "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed";
  }
  if (label == "Memory Throughput" && section == "Memory Workload Analysis") return "dram__bytes.sum.per_second";
  const auto found = std::ranges::lower_bound(kLabels, label, {}, [](const auto& pair) { return pair.first; });
  if (found != kLabels.end() && found->first == label) return std::string(found->second);
  if (section.empty() || section == "Command line profiler metrics") return std::string(label);
  return std::string(section) + "/" + std::string(label);
}

}  // namespace rangescope::read::ncu_csv
