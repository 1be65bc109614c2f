#include "model/metric_unit.hpp"

#include <array>
#include <optional>
#include <utility>

#include "base/embedded.hpp"

RANGESCOPE_EMBED(metric_unit, RANGESCOPE_TSV);

namespace rangescope::model {
namespace {

using namespace std::string_view_literals;
using Rule = std::pair<std::string_view, std::string_view>;

/// That of a metric whose unit no rule gives; in another version only what differs.
std::optional<std::string> exact_unit(std::string_view version, std::string_view name) {
  static const auto table = base::rows<3>(rangescope_metric_unit);
  for (const auto& row : table)
    if (row[1] == name && row[0] == version)
      return std::string(row[2]);
  return std::nullopt;
}

bool has_word(std::string_view words, std::string_view word) {
  for (std::size_t begin = words.find(word); begin != std::string_view::npos;
       begin = words.find(word, begin + 1)) {
    const std::size_t end = begin + word.size();
    const bool begins_word = begin == 0 || words[begin - 1] == '_';
    if (begins_word && (end == words.size() || words[end] == '_'))
      return true;
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
  // "FBPA.TriageA.dramc__read_throughput.avg...": counter groups of PM sampling precede the name
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos && dot < name.find("__");
       dot = name.find('.')) {
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

/// What one event of the counter is. "op" where ncu prints nothing for the count itself, but
/// "/cycle" for its rate.
std::string_view quantity(const Name& name) {
  const std::string_view c = name.counter;
  const auto word = [&](std::string_view w) { return has_word(c, w); };
  if (name.unit == "launch" || name.unit == "profiler" || name.unit == "smsp" ||
      name.unit.empty()) {
    if (c.starts_with("shared_mem_per_block"))
      return "byte/block";
    if (c.starts_with("pcsamp_warps_issue"))
      return "warp";
    if (c.starts_with("pcsamp_") || name.unit == "profiler" || name.unit == "launch")
      return word("bytes") ? "byte" : "";
  }
  if (name.unit == "device" || name.unit == "nvlink" || name.unit == "numa" ||
      name.unit == "c2clink")
    return "";
  if (c.starts_with("time_"))
    return "nsecond";
  if (c.starts_with("ops_path_"))
    return "op";
  if (c.starts_with("cycles_") || word("cycles_active") || c == "writeback_active" ||
      word("writeback_active"))
    return "cycle";
  if (name.unit == "sass" && word("opcode"))
    return "";
  if (word("conflicts") || word("wavefronts") || word("targets"))
    return "";
  if (word("threads_launched"))
    return "thread";
  if (word("ctas"))
    return "block";
  if (word("memdesc_explicit_evict_type"))
    return "";
  if (c.starts_with("inst_") || c.starts_with("thread_inst_") || c.starts_with("sass_inst_") ||
      c.starts_with("sass_thread_inst_") || word("inst_issued")) {
    return "inst";
  }
  if (c.starts_with("warps_"))
    return "warp";
  if (word("bytes"))
    return "byte";
  if (word("sectors"))
    return "sector";
  if (word("requests"))
    return "request";
  return "";
}

/// Units of .ratio and .max_rate: numerator / denominator as ncu 2024.1 has them.
std::string_view ratio_unit(std::string_view counter) {
  if (counter.starts_with("average_t_sectors_per_request"))
    return "sector/request";
  if (counter.starts_with("sass_average_data_bytes_per_sector"))
    return "byte/sector";
  if (counter.starts_with("average_warp_latency_issue_stalled"))
    return "inst/warp";
  if (counter.starts_with("average_warps_issue_stalled"))
    return "inst";
  if (counter.starts_with("average_warp_latency_per_inst") ||
      counter.starts_with("average_warps_active_per_inst"))
    return "cycle";
  if (counter.starts_with("average_ilc_input_sector") ||
      counter.starts_with("average_xbar2gpc_sectors"))
    return "sector";
  return "";
}

std::string per(std::string_view unit, std::string_view denominator) {
  if (unit.empty())
    return {};
  if (unit == "op")
    unit = {};
  return std::string(unit) + "/" + std::string(denominator);
}

std::string unit_2024(std::string_view whole) {
  if (auto exact = exact_unit("2024", whole))
    return std::move(*exact);
  const Name name = split(whole);
  if (name.rollup == "pct" || name.submetric.starts_with("pct_of_peak") ||
      name.counter.ends_with("_pct"))
    return "%";
  if (name.rollup == "ratio" || name.rollup == "max_rate")
    return std::string(ratio_unit(name.counter));
  const std::string_view unit = quantity(name);
  if (name.submetric.empty())
    return unit == "op" ? std::string() : std::string(unit);
  if (name.submetric.ends_with("per_second")) {
    // ncu 2024.1 gives the plain count's unit for rates of metrics that it derives itself, and of
    // the LRC
    if (whole.starts_with("derived__") || name.unit == "lrc")
      return std::string(unit);
    return per(unit, "second");
  }
  if (name.submetric.starts_with("per_cycle") || name.submetric == "peak_sustained") {
    if (unit == "cycle")
      return {};
    if (unit == "warp" || whole.starts_with("derived__"))
      return std::string(unit);
    return per(unit, "cycle");
  }
  return unit == "op" ? std::string() : std::string(unit);
}

/// The words of ncu 2025.3 (since 2024.2).
std::string unit_2025(std::string_view name, std::string unit) {
  if (auto exact = exact_unit("2025", name))
    return std::move(*exact);
  if (name.starts_with("memory_l1_") || name.starts_with("memory_l2_"))
    return "sectors";
  if (name.starts_with("sass__inst_executed_register_spilling_mem_"))
    return "byte";
  if (name.starts_with("smsp__sass_branch_targets_threads_divergent"))
    return "branches";
  if (name.starts_with("derived__sm") && name.find("_pred_on_x") != std::string_view::npos) {
    return unit == "thread|inst" ? "thread" : "inst";  // "inst" in some reports of the same version
  }
  if (name.starts_with("lrc__") && name.ends_with(".per_second"))
    return unit + "/s";
  if (unit == "request" && !name.starts_with("lts__") && !name.starts_with("gcc__"))
    return {};
  if (unit == "nsecond")
    return "ns";
  if (unit == "cycle/second")
    return "hz";
  if (unit == "/cycle" || unit == "/second")
    return {};
  if (unit == "%/" || unit == "%|sector")
    return "%";
  if (unit.ends_with("/second"))
    return unit.substr(0, unit.size() - 5);
  return unit;
}

/// Of a unit of time in nanoseconds; 0 for others.
double time_factor_ns(std::string_view unit) {
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
  for (const auto& [name, factor] : kTimes)
    if (unit == name)
      return factor;
  return 0;
}

/// "Kbyte", "Ginst", and without a prefix "byte", "b", "bit", "hz".
std::optional<ScaledUnit> prefixed_unit(std::string_view text) {
  struct Prefix {
    std::string_view name;
    double factor;
  };
  // longest first where one begins another; "K" is 1000 in Nsight Compute, as it says of bytes
  // itself
  constexpr auto kPrefixes = std::to_array<Prefix>(
      {{"K", 1e3}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}});
  constexpr auto kWords = std::to_array<Rule>(
      {{"byte", "byte"}, {"b", "byte"}, {"bit", "bit"}, {"hz", "Hz"}, {"Hz", "Hz"}});
  for (const auto& [word, unit] : kWords) {
    if (text == word)
      return ScaledUnit{std::string(unit), 1};
  }
  for (const Prefix& prefix : kPrefixes) {
    if (!text.starts_with(prefix.name))
      continue;
    const std::string_view rest = text.substr(prefix.name.size());
    for (const auto& [word, unit] : kWords) {
      if (rest == word)
        return ScaledUnit{std::string(unit), prefix.factor};
    }
    for (const std::string_view word :
         {"inst"sv, "sector"sv, "request"sv, "cycle"sv, "warp"sv, "thread"sv, "block"sv}) {
      if (rest == word)
        return ScaledUnit{std::string(word), prefix.factor};
    }
  }
  return std::nullopt;
}

ScaledUnit quotient(const ScaledUnit& above, ScaledUnit below) {
  if (below.unit == "ns")
    below = {"s", below.factor / 1e9};
  const double factor = above.factor / below.factor;
  if (above.unit == "cycle" && below.unit == "s")
    return {"Hz", factor};
  return {(above.unit.empty() ? "1" : above.unit) + "/" + below.unit, factor};
}

}  // namespace

bool is_percent(std::string_view ncu_unit) {
  return ncu_unit == "%";
}

std::string metric_unit(std::string_view name, UnitSpelling spelling) {
  std::string unit = unit_2024(name);
  if (spelling == UnitSpelling::kNcu2024)
    return unit;
  if (spelling == UnitSpelling::kModel) {
    // what 2024.1 prints of these rates is the count's unit, see unit_2024()
    if (name.ends_with(".per_second") && !unit.empty() && unit.find('/') == std::string::npos)
      unit += "/second";
    return parse_ncu_unit(unit).unit;
  }
  return unit_2025(name, std::move(unit));
}

ScaledUnit parse_ncu_unit(std::string_view text) {
  if (text == "thread|inst")
    return {"inst", 1};
  if (text == "%" || text == "%|sector")
    return {"ratio", 0.01};
  if (text.starts_with("%/")) {
    ScaledUnit below = parse_ncu_unit(text.substr(2));
    // ncu (2024.1, 2025.3) scales "%/byte" as if it were a number of bytes: 2614 %/byte is printed
    // as 2.614 %/Kbyte.
    return {below.unit.empty() ? "ratio" : "ratio/" + below.unit, 0.01 * below.factor};
  }
  if (const double factor_ns = time_factor_ns(text); factor_ns > 0)
    return {"ns", factor_ns};
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos)
    return quotient(parse_ncu_unit(text.substr(0, slash)), parse_ncu_unit(text.substr(slash + 1)));
  if (auto prefixed = prefixed_unit(text))
    return *std::move(prefixed);
  return {std::string(text), 1};
}

}  // namespace rangescope::model
