#include "read/timeline.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/text.hpp"

namespace rangescope::read {

void add_waits_of_calls(model::Session& s) {
  std::vector<bool> recorded(s.launches.size());
  for (const model::Synchronization& wait : s.synchronizations) {
    if (wait.launch == model::kNone)
      continue;
    recorded[wait.launch] = true;
    s.launches[wait.launch].kind = model::LaunchKind::kSynchronize;
  }
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < recorded.size(); ++i) {
    const model::Launch& call = s.launches[i];
    if (call.kind == model::LaunchKind::kSynchronize && call.end_ns != model::kOpen)
      order.push_back(i);
  }
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    const model::Launch &x = s.launches[a], &y = s.launches[b];
    if (x.thread != y.thread)
      return x.thread < y.thread;
    if (x.start_ns != y.start_ns)
      return x.start_ns < y.start_ns;
    const bool x_lasts = x.end_ns > x.start_ns, y_lasts = y.end_ns > y.start_ns;
    if (x_lasts != y_lasts)
      return y_lasts;  // one of no length lies before, not inside
    return x.end_ns > y.end_ns;
  });
  std::vector<std::int64_t> until(s.threads.size(), std::numeric_limits<std::int64_t>::min());
  for (const std::uint32_t i : order) {
    const model::Launch& call = s.launches[i];
    const bool touches = call.start_ns >= until[call.thread];  // in a trace of whole microseconds
    const bool nested = !touches && call.end_ns <= until[call.thread];
    until[call.thread] = std::max(until[call.thread], call.end_ns);
    if (nested || recorded[i])
      continue;
    s.synchronizations.push_back(
        {call.start_ns, call.end_ns, i, model::kNone, sync_kind(s.strings.view(call.name))});
  }
}

void set_extents(model::Session& s, std::int64_t begin, std::int64_t end) {
  std::vector<std::pair<std::int64_t, std::int64_t>> of(s.processes.size(), {kNever, -kNever});
  const auto see = [&](std::uint32_t process, std::int64_t from, std::int64_t to) {
    of[process].first = std::min(of[process].first, from);
    of[process].second = std::max(of[process].second, to == model::kOpen ? from : to);
  };
  const auto on_threads = [&](const auto& all) {
    for (const auto& item : all)
      see(s.threads[item.thread].process, item.start_ns, item.end_ns);
  };
  const auto on_streams = [&](const auto& all) {
    for (const auto& work : all)
      if (work.stream != model::kNone)
        see(s.streams[work.stream].process, work.start_ns, work.end_ns);
  };
  on_threads(s.ranges);
  on_threads(s.launches);
  for (const model::Mark& mark : s.marks)
    see(s.threads[mark.thread].process, mark.at_ns, mark.at_ns);
  on_streams(s.kernels);
  on_streams(s.copies);
  on_streams(s.memsets);
  on_streams(s.graph_launches);
  on_streams(s.synchronizations);
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (of[i].first == kNever)
      continue;
    s.processes[i].start_ns = of[i].first;
    s.processes[i].end_ns = of[i].second;
    begin = std::min(begin, of[i].first);
    end = std::max(end, of[i].second);
  }
  if (begin == kNever)
    return;
  s.begin_ns = begin;
  s.end_ns = end;
}

model::LaunchKind launch_kind(std::string_view api) {
  if (api.starts_with("cudaGraphLaunch") || api.starts_with("cuGraphLaunch"))
    return model::LaunchKind::kGraph;
  for (const std::string_view wait : {"cudaDeviceSynchronize",
                                      "cudaStreamSynchronize",
                                      "cudaEventSynchronize",
                                      "cudaThreadSynchronize",
                                      "cuCtxSynchronize",
                                      "cuStreamSynchronize",
                                      "cuEventSynchronize"}) {
    if (api.starts_with(wait))
      return model::LaunchKind::kSynchronize;
  }
  return model::LaunchKind::kOther;
}

model::CopyKind copy_kind(std::string_view name) {
  using enum model::CopyKind;
  constexpr std::tuple<std::string_view, std::string_view, model::CopyKind> kKinds[] = {
      {"host", "device", kHostToDevice},
      {"device", "host", kDeviceToHost},
      {"host", "array", kHostToArray},
      {"array", "host", kArrayToHost},
      {"array", "array", kArrayToArray},
      {"array", "device", kArrayToDevice},
      {"device", "array", kDeviceToArray},
      {"device", "device", kDeviceToDevice},
      {"host", "host", kHostToHost},
      {"peer", "peer", kPeerToPeer}};
  std::string text = base::lower(name);
  std::erase_if(text, [](char c) { return c == '-' || c == '_'; });
  for (const auto& [from, to, kind] : kKinds)
    for (const std::string& word : {std::string(from) + "to" + std::string(to),
                                    std::string{from[0], 't', 'o', to[0]},
                                    std::string{from[0], '2', to[0]}})
      if (text.find(word) != std::string::npos)
        return kind;
  return kUnknown;
}

namespace {

model::MemoryKind memory_named(std::string_view name) {
  using enum model::MemoryKind;
  constexpr std::pair<std::string_view, model::MemoryKind> kNames[] = {{"Pageable", kPageable},
                                                                       {"Pinned", kPinned},
                                                                       {"Device", kDevice},
                                                                       {"Array", kArray},
                                                                       {"Managed", kManaged}};
  for (const auto& [known, kind] : kNames)
    if (name == known)
      return kind;
  return kUnknown;
}

}  // namespace

CopyMemory copy_memory(std::string_view name) {
  constexpr std::string_view kArrow = " -> ";
  const std::size_t open = name.find('('), arrow = name.find(kArrow), close = name.rfind(')');
  const bool is_whole = open < arrow && arrow < close && close != std::string_view::npos;
  if (!is_whole)
    return {};
  const std::size_t destination = arrow + kArrow.size();
  return {memory_named(name.substr(open + 1, arrow - open - 1)),
          memory_named(name.substr(destination, close - destination))};
}

model::SyncKind sync_kind(std::string_view api) {
  if (api.find("WaitEvent") != std::string_view::npos)
    return model::SyncKind::kStreamWaitEvent;
  if (api.find("StreamSync") != std::string_view::npos)
    return model::SyncKind::kStream;
  if (api.find("EventSync") != std::string_view::npos)
    return model::SyncKind::kEvent;
  return model::SyncKind::kContext;
}

}  // namespace rangescope::read
