#include "read/ncu/report/capture.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace rangescope::read::ncu_report {

Capture read_capture(std::string_view command_line) {
  Capture capture{
      .replay_mode = "kernel", .clock_control = {}, .cache_control = {}, .nvtx_include = {}, .filters = {}, .note = {}};
  const std::vector<std::string_view> words = base::split(command_line, ' ');
  const auto value_of = [&](std::size_t& i, std::string_view option) -> std::optional<std::string> {
    if (words[i] == option && i + 1 < words.size()) return std::string(words[++i]);
    if (words[i].starts_with(option) && words[i].size() > option.size() && words[i][option.size()] == '=') {
      return std::string(words[i].substr(option.size() + 1));
    }
    return std::nullopt;
  };
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (auto mode = value_of(i, "--replay-mode"))
      capture.replay_mode = *mode;
    else if (auto clocks = value_of(i, "--clock-control"))
      capture.clock_control = *clocks;
    else if (auto caches = value_of(i, "--cache-control"))
      capture.cache_control = *caches;
    else if (auto filter = value_of(i, "--nvtx-include"))
      capture.nvtx_include.push_back(*filter);
  }
  for (const std::string& text : capture.nvtx_include) {
    if (auto filter = model::RangeExpression::parse(text)) capture.filters.push_back(std::move(*filter));
  }
  if (command_line.empty()) {
    capture.note = "Nsight Compute, command line not recorded";
    return capture;
  }
  capture.note = "ncu " + capture.replay_mode + " replay";
  if (capture.cache_control != "none") capture.note += ", caches flushed before each pass";
  if (capture.clock_control == "none") capture.note += ", clocks not locked";
  return capture;
}

std::optional<OwnRange> Capture::own_range(const NvtxState& state, std::uint64_t tid) const {
  const auto domain_name = [&](const NvtxRange& range) -> std::string_view {
    const NvtxDomain* domain = state.domain(range.domain);
    if (domain == nullptr || domain->name == model::kDefaultDomain) return {};
    return domain->name;
  };
  std::optional<OwnRange> best;
  std::uint64_t begun = 0;
  const auto offer = [&](OwnRange candidate, const NvtxRange& range) {
    if (best && begun <= range.last_api_call) return;
    best = candidate;
    begun = range.last_api_call;
  };
  const auto push_pops = [&](const NvtxThread& thread, const model::RangeExpression& filter) {
    std::vector<std::uint32_t> seen;
    for (const NvtxRange& first : thread.stack) {
      if (std::ranges::find(seen, first.domain) != seen.end()) continue;
      seen.push_back(first.domain);
      std::vector<std::string_view> names;
      for (const NvtxRange& range : thread.stack) {
        if (range.domain != first.domain) continue;
        names.push_back(state.effective_name(range));
        if (!filter.matches_stack(domain_name(range), names)) continue;
        offer({&thread, &range, nullptr}, range);
        break;
      }
    }
  };
  // own thread first: with --nvtx-push-pop-scope process another thread's stack may match as well
  for (const bool own_thread : {true, false}) {
    for (const model::RangeExpression& filter : filters) {
      for (const NvtxThread& thread : state.threads) {
        if ((thread.tid == tid) == own_thread) push_pops(thread, filter);
      }
      if (!own_thread) continue;
      for (const NvtxRange& range : state.start_end) {
        if (filter.names_start_end(domain_name(range), state.effective_name(range)))
          offer({nullptr, nullptr, &range}, range);
      }
    }
    if (best) return best;
  }
  if (nvtx_include.empty()) return std::nullopt;
  for (const NvtxThread& thread : state.threads) {
    for (const NvtxRange& range : thread.stack) {
      if (best && thread.tid != tid) continue;
      if (!best || best->thread != &thread || range.last_api_call >= begun) {
        best = OwnRange{&thread, &range, nullptr};
        begun = range.last_api_call;
      }
    }
  }
  if (!best && !state.start_end.empty()) best = OwnRange{nullptr, nullptr, &state.start_end.back()};
  return best;
}

}  // namespace rangescope::read::ncu_report
