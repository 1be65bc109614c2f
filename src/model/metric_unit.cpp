#include "model/metric_unit.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace rangescope::model {
namespace {

using namespace std::string_view_literals;
using Rule = std::pair<std::string_view, std::string_view>;

/// Names that no rule gives: whole name, unit of ncu 2024.1.
constexpr auto kNames = std::to_array<Rule>({
    {"derived__avg_thread_executed", "thread"},
    {"derived__avg_thread_executed_true", "thread"},
    {"derived__memory_l1_conflicts_shared_nway", "byte"},
    {"derived__memory_l1_wavefronts_shared_excessive", "byte"},
    {"derived__memory_l2_theoretical_sectors_global_excessive", "byte"},
    {"derived__pct_occupancy_per_barrier_count", ""},
    {"derived__pct_occupancy_per_block_size", "%/"},
    {"derived__pct_occupancy_per_register_count", "%/register"},
    {"derived__pct_occupancy_per_shared_mem_size", "%/byte"},
    {"derived__sm__sass_thread_inst_executed_op_dfma_pred_on_x2", "thread|inst"},
    {"derived__sm__sass_thread_inst_executed_op_ffma_pred_on_x2", "thread|inst"},
    {"derived__sm__sass_thread_inst_executed_op_hfma_pred_on_x4", "thread"},
    {"derived__smsp__inst_executed_op_branch_pct", "%"},
    {"derived__smsp__sass_thread_inst_executed_op_dfma_pred_on_x2", "thread|inst"},
    {"derived__smsp__sass_thread_inst_executed_op_ffma_pred_on_x2", "thread|inst"},
    {"derived__smsp__sass_thread_inst_executed_op_hadd_pred_on_x2", "thread"},
    {"derived__smsp__sass_thread_inst_executed_op_hfma_pred_on_x4", "thread"},
    {"derived__smsp__sass_thread_inst_executed_op_hmul_pred_on_x2", "thread"},
    {"launch__block_dim_x", "block"},
    {"launch__block_dim_y", "block"},
    {"launch__block_dim_z", "block"},
    {"launch__cluster_max_active", "cluster"},
    {"launch__cluster_max_potential_size", "block"},
    {"launch__occupancy_cluster_gpu_pct", "%"},
    {"launch__occupancy_cluster_pct", "%"},
    {"launch__occupancy_limit_blocks", "block"},
    {"launch__occupancy_limit_registers", "block"},
    {"launch__occupancy_limit_shared_mem", "block"},
    {"launch__occupancy_limit_warps", "block"},
    {"launch__registers_per_thread", "register/thread"},
    {"launch__registers_per_thread_allocated", "register/thread"},
    {"launch__shared_mem_config_size", "byte"},
    {"launch__sm_count", "SM"},
    {"launch__thread_count", "thread"},
    {"lts__average_gcomp_input_sector_success_rate.pct", "%|sector"},
    {"profiler__pmsampler_dropped_samples", "sample"},
    {"profiler__pmsampler_interval_cycles", "cycle"},
    {"profiler__pmsampler_interval_time", "nsecond"},
    {"profiler__pmsampler_merged_samples", "sample"},
    {"profiler__replayer_passes", "pass"},
    {"profiler__replayer_passes_type_warmup", "pass"},
    {"sm__maximum_warps_avg_per_active_cycle", "warp"},
    {"sm__maximum_warps_per_active_cycle_pct", "%"},
    {"smsp__maximum_warps_avg_per_active_cycle", "warp"},
    {"smsp__pcsamp_aggregated_passes", "pass"},
    {"smsp__pcsamp_interval_cycles", "cycle"},
    {"smsp__pcsamp_warps_issue_stalled_no_instructions", "inst"},
    {"smsp__pcsamp_warps_issue_stalled_no_instructions_not_issued", "inst"},
});
static_assert(std::ranges::is_sorted(kNames, {}, &Rule::first));

bool has_word(std::string_view words, std::string_view word) {
  for (std::size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == '_') && (end == words.size() || words[end] == '_')) return true;
  }
  return false;
}

struct Name {
  std::string_view unit;       // "smsp"
  std::string_view counter;    // "inst_executed_op_ld", all after the first "__"
  std::string_view rollup;     // "sum", "ratio", ""
  std::string_view submetric;  // "per_second", "peak_sustained_elapsed.per_second", ""
};

Name split(std::string_view name) {
  // "FBPA.TriageA.dramc__read_throughput.avg...": counter groups of PM sampling stand in front of the name
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos && dot < name.find("__"); dot = name.find('.')) {
    name.remove_prefix(dot + 1);
  }
  for (const std::string_view prefix : {"pmsampling:"sv, "derived__"sv}) {
    if (name.starts_with(prefix) && name.find("__", prefix.size()) != std::string_view::npos)
      name.remove_prefix(prefix.size());
  }
  Name parts;
  const std::size_t dot = name.find('.');
  if (dot != std::string_view::npos) {
    parts.rollup = name.substr(dot + 1);
    name = name.substr(0, dot);
    if (const std::size_t next = parts.rollup.find('.'); next != std::string_view::npos) {
      parts.submetric = parts.rollup.substr(next + 1);
      parts.rollup = parts.rollup.substr(0, next);
    }
  }
  const std::size_t underscores = name.find("__");
  if (underscores == std::string_view::npos) {
    parts.counter = name;
  } else {
    parts.unit = name.substr(0, underscores);
    parts.counter = name.substr(underscores + 2);
  }
  return parts;
}

/// What one event of the counter is. "op" where ncu prints nothing for the count itself, but "/cycle" for its rate.
std::string_view quantity(const Name& name) {
  const std::string_view c = name.counter;
  const auto word = [&](std::string_view w) { return has_word(c, w); };
  if (name.unit == "launch" || name.unit == "profiler" || name.unit == "smsp" || name.unit.empty()) {
    if (c.starts_with("shared_mem_per_block")) return "byte/block";
    if (c.starts_with("pcsamp_warps_issue")) return "warp";
    if (c.starts_with("pcsamp_") || name.unit == "profiler" || name.unit == "launch")
      return word("bytes") ? "byte" : "";
  }
  if (name.unit == "device" || name.unit == "nvlink" || name.unit == "numa" || name.unit == "c2clink") return "";
  if (c.starts_with("time_")) return "nsecond";
  if (c.starts_with("ops_path_")) return "op";
  if (c.starts_with("cycles_") || word("cycles_active") || c == "writeback_active" || word("writeback_active"))
    return "cycle";
  if (name.unit == "sass" && word("opcode")) return "";
  if (word("conflicts") || word("wavefronts") || word("targets")) return "";
  if (word("threads_launched")) return "thread";
  if (word("ctas")) return "block";
  if (word("memdesc_explicit_evict_type")) return "";
  if (c.starts_with("inst_") || c.starts_with("thread_inst_") || c.starts_with("sass_inst_") ||
      c.starts_with("sass_thread_inst_") || word("inst_issued")) {
    return "inst";
  }
  if (c.starts_with("warps_")) return "warp";
  if (word("bytes")) return "byte";
  if (word("sectors")) return "sector";
  if (word("requests")) return "request";
  return "";
}

/// Units of .ratio and .max_rate: numerator / denominator as ncu 2024.1 has them.
std::string_view ratio_unit(std::string_view counter) {
  if (counter.starts_with("average_t_sectors_per_request")) return "sector/request";
  if (counter.starts_with("sass_average_data_bytes_per_sector")) return "byte/sector";
  if (counter.starts_with("average_warp_latency_issue_stalled")) return "inst/warp";
  if (counter.starts_with("average_warps_issue_stalled")) return "inst";
  if (counter.starts_with("average_warp_latency_per_inst") || counter.starts_with("average_warps_active_per_inst"))
    return "cycle";
  if (counter.starts_with("average_ilc_input_sector") || counter.starts_with("average_xbar2gpc_sectors"))
    return "sector";
  return "";
}

std::string per(std::string_view unit, std::string_view denominator) {
  if (unit.empty()) return {};
  if (unit == "op") unit = {};
  return std::string(unit) + "/" + std::string(denominator);
}

std::string unit_2024(std::string_view whole) {
  const auto exact = std::ranges::lower_bound(kNames, whole, {}, &Rule::first);
  if (exact != kNames.end() && exact->first == whole) return std::string(exact->second);
  const Name name = split(whole);
  if (name.rollup == "pct" || name.submetric.starts_with("pct_of_peak") || name.counter.ends_with("_pct")) return "%";
  if (name.rollup == "ratio" || name.rollup == "max_rate") return std::string(ratio_unit(name.counter));
  const std::string_view unit = quantity(name);
  if (name.submetric.empty()) return unit == "op" ? std::string() : std::string(unit);
  if (name.submetric.ends_with("per_second")) {
    // ncu 2024.1 gives the plain count's unit for rates of metrics that it derives itself, and of the LRC
    if (whole.starts_with("derived__") || name.unit == "lrc") return std::string(unit);
    return per(unit, "second");
  }
  if (name.submetric.starts_with("per_cycle") || name.submetric == "peak_sustained") {
    if (unit == "cycle") return {};
    if (unit == "warp" || whole.starts_with("derived__")) return std::string(unit);
    return per(unit, "cycle");
  }
  return unit == "op" ? std::string() : std::string(unit);
}

/// Where ncu 2025.3 means another unit than 2024.1, seen in its raw pages of an H200 (some of them are its mistakes).
constexpr auto kNames2025 = std::to_array<Rule>({
    {"derived__avg_thread_unexecuted_true", "thread"},
    {"derived__l1tex__lsu_writeback_bytes_mem_lgds.sum.peak_sustained", ""},
    {"derived__l1tex__lsu_writeback_bytes_mem_lgds.sum.per_second", ""},
    {"derived__local_spilling_requests", ""},
    {"derived__memory_l1_conflicts_shared_nway", ""},
    {"derived__memory_l1_wavefronts_shared_excessive", ""},
    {"gcc__xbar2gcc_sectors.sum", ""},
    {"launch__occupancy_limit_barriers", "block"},
    {"launch__persisting_l2_cache_size", "byte"},
    {"lrc__average_ilc_input_sector_compression_rate.ratio", ""},
    {"lrc__average_xbar2gpc_sectors_op_read.ratio", ""},
    {"sm__icc_requests.sum", "cycle"},
    {"smsp__branch_targets_threads_divergent", "branches"},
    {"smsp__imc_requests.sum", "cycle"},
    {"smsp__pcsamp_warps_issue_stalled_branch_resolving", "branches"},
    {"smsp__pcsamp_warps_issue_stalled_branch_resolving_not_issued", "branches"},
});
static_assert(std::ranges::is_sorted(kNames2025, {}, &Rule::first));

/// The words of ncu 2025.3 (since 2024.2).
std::string unit_2025(std::string_view name, std::string unit) {
  const auto exact = std::ranges::lower_bound(kNames2025, name, {}, &Rule::first);
  if (exact != kNames2025.end() && exact->first == name) return std::string(exact->second);
  if (name.starts_with("memory_l1_") || name.starts_with("memory_l2_")) return "sectors";
  if (name.starts_with("sass__inst_executed_register_spilling_mem_")) return "byte";
  if (name.starts_with("smsp__sass_branch_targets_threads_divergent")) return "branches";
  if (name.starts_with("derived__sm") && name.find("_pred_on_x") != std::string_view::npos) {
    return unit == "thread|inst" ? "thread" : "inst";  // "inst" in some reports of the same version
  }
  if (name.starts_with("lrc__") && name.ends_with(".per_second")) return unit + "/s";
  if (unit == "request" && !name.starts_with("lts__") && !name.starts_with("gcc__")) return {};
  if (unit == "nsecond") return "ns";
  if (unit == "cycle/second") return "hz";
  if (unit == "/cycle" || unit == "/second") return {};
  if (unit == "%/" || unit == "%|sector") return "%";
  if (unit.ends_with("/second")) return unit.substr(0, unit.size() - 5);
  return unit;
}

}  // namespace

bool is_percent(std::string_view ncu_unit) {
  return ncu_unit == "%";
}

std::string metric_unit(std::string_view name, UnitSpelling spelling) {
  std::string unit = unit_2024(name);
  if (spelling == UnitSpelling::kNcu2024) return unit;
  if (spelling == UnitSpelling::kModel) {
    // what 2024.1 prints of these rates is the count's unit, see unit_2024()
    if (name.ends_with(".per_second") && !unit.empty() && unit.find('/') == std::string::npos) unit += "/second";
    return parse_ncu_unit(unit).unit;
  }
  return unit_2025(name, std::move(unit));
}

ScaledUnit parse_ncu_unit(std::string_view text) {
  struct Prefix {
    std::string_view name;
    double factor;
  };
  // longest first where one begins another; "K" is 1000 in Nsight Compute, as it says of bytes itself
  constexpr auto kPrefixes =
      std::to_array<Prefix>({{"K", 1e3}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}});
  constexpr auto kTimes = std::to_array<std::pair<std::string_view, double>>({{"ns", 1},
                                                                              {"nsecond", 1},
                                                                              {"us", 1e3},
                                                                              {"usecond", 1e3},
                                                                              {"ms", 1e6},
                                                                              {"msecond", 1e6},
                                                                              {"s", 1e9},
                                                                              {"second", 1e9},
                                                                              {"minute", 60e9},
                                                                              {"hour", 3600e9}});
  constexpr auto kWords =
      std::to_array<Rule>({{"byte", "byte"}, {"b", "byte"}, {"bit", "bit"}, {"hz", "Hz"}, {"Hz", "Hz"}});
  if (text == "thread|inst") return {"inst", 1};
  if (text == "%" || text == "%|sector") return {"ratio", 0.01};
  if (text.starts_with("%/")) {
    ScaledUnit below = parse_ncu_unit(text.substr(2));
    // ncu (2024.1, 2025.3) scales "%/byte" as if it were a number of bytes: 2614 %/byte is printed as 2.614 %/Kbyte.
    return {below.unit.empty() ? "ratio" : "ratio/" + below.unit, 0.01 * below.factor};
  }
  for (const auto& [name, factor] : kTimes) {
    if (text == name) return {"ns", factor};
  }
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
    const ScaledUnit above = parse_ncu_unit(text.substr(0, slash));
    ScaledUnit below = parse_ncu_unit(text.substr(slash + 1));
    if (below.unit == "ns") below = {"s", below.factor / 1e9};
    const double factor = above.factor / below.factor;
    if (above.unit == "cycle" && below.unit == "s") return {"Hz", factor};
    return {(above.unit.empty() ? "1" : above.unit) + "/" + below.unit, factor};
  }
  for (const auto& [word, unit] : kWords) {
    if (text == word) return {std::string(unit), 1};
  }
  for (const Prefix& prefix : kPrefixes) {
    if (!text.starts_with(prefix.name)) continue;
    const std::string_view rest = text.substr(prefix.name.size());
    for (const auto& [word, unit] : kWords) {
      if (rest == word) return {std::string(unit), prefix.factor};
    }
    for (const std::string_view word :
         {"inst"sv, "sector"sv, "request"sv, "cycle"sv, "warp"sv, "thread"sv, "block"sv}) {
      if (rest == word) return {std::string(word), prefix.factor};
    }
  }
  return {std::string(text), 1};
}

}  // namespace rangescope::model
