#include "read/timeline.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace rangescope::read {

void add_waits_of_calls(model::Session& s) {
  std::vector<bool> recorded(s.launches.size());
  for (const model::Synchronization& wait : s.synchronizations) {
    if (wait.launch == model::kNone) continue;
    recorded[wait.launch] = true;
    s.launches[wait.launch].kind = model::LaunchKind::kSynchronize;
  }
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < recorded.size(); ++i) {
    const model::Launch& call = s.launches[i];
    if (call.kind == model::LaunchKind::kSynchronize && call.end_ns != model::kOpen) order.push_back(i);
  }
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    const model::Launch &x = s.launches[a], &y = s.launches[b];
    if (x.thread != y.thread) return x.thread < y.thread;
    return x.start_ns != y.start_ns ? x.start_ns < y.start_ns : x.end_ns > y.end_ns;
  });
  std::vector<std::int64_t> until(s.threads.size(), std::numeric_limits<std::int64_t>::min());
  for (const std::uint32_t i : order) {
    const model::Launch& call = s.launches[i];
    const bool nested = call.end_ns <= until[call.thread];
    until[call.thread] = std::max(until[call.thread], call.end_ns);
    if (nested || recorded[i]) continue;
    s.synchronizations.push_back({call.start_ns, call.end_ns, i, model::kNone, sync_kind(s.strings.view(call.name))});
  }
}

void set_extents(model::Session& s, std::int64_t begin, std::int64_t end) {
  std::vector<std::pair<std::int64_t, std::int64_t>> of(s.processes.size(), {kNever, -kNever});
  const auto see = [&](std::uint32_t process, std::int64_t from, std::int64_t to) {
    of[process].first = std::min(of[process].first, from);
    of[process].second = std::max(of[process].second, to == model::kOpen ? from : to);
  };
  for (const model::Range& range : s.ranges) see(s.threads[range.thread].process, range.start_ns, range.end_ns);
  for (const model::Launch& call : s.launches) see(s.threads[call.thread].process, call.start_ns, call.end_ns);
  const auto works = [&](const auto& all) {
    for (const auto& work : all) see(s.streams[work.stream].process, work.start_ns, work.end_ns);
  };
  works(s.kernels);
  works(s.copies);
  works(s.memsets);
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (of[i].first == kNever) continue;
    s.processes[i].start_ns = of[i].first;
    s.processes[i].end_ns = of[i].second;
    begin = std::min(begin, of[i].first);
    end = std::max(end, of[i].second);
  }
  s.clock.kind = "trace time";
  if (begin == kNever) return;
  s.begin_ns = begin;
  s.end_ns = end;
  constexpr std::int64_t kThisCentury = 946'684'800'000'000'000;  // 2000-01-01: earlier ones count from the boot
  if (begin > kThisCentury) s.clock.anchor_ns = s.clock.anchor_unix_ns = begin;
}

model::LaunchKind launch_kind(std::string_view api) {
  if (api.starts_with("cudaGraphLaunch") || api.starts_with("cuGraphLaunch")) return model::LaunchKind::kGraph;
  for (const std::string_view wait :
       {"cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cudaThreadSynchronize",
        "cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize"}) {
    if (api.starts_with(wait)) return model::LaunchKind::kSynchronize;
  }
  return model::LaunchKind::kOther;
}

model::CopyKind copy_kind(std::string_view lower) {
  using enum model::CopyKind;
  constexpr std::pair<std::string_view, model::CopyKind> kKinds[] = {{"host-to-device", kHostToDevice},
                                                                     {"htod", kHostToDevice},
                                                                     {"device-to-host", kDeviceToHost},
                                                                     {"dtoh", kDeviceToHost},
                                                                     {"htoa", kHostToArray},
                                                                     {"host-to-array", kHostToArray},
                                                                     {"atoh", kArrayToHost},
                                                                     {"atoa", kArrayToArray},
                                                                     {"array-to-host", kArrayToHost},
                                                                     {"array-to-array", kArrayToArray},
                                                                     {"atod", kArrayToDevice},
                                                                     {"array-to-device", kArrayToDevice},
                                                                     {"dtoa", kDeviceToArray},
                                                                     {"dtod", kDeviceToDevice},
                                                                     {"device-to-array", kDeviceToArray},
                                                                     {"device-to-device", kDeviceToDevice},
                                                                     {"htoh", kHostToHost},
                                                                     {"host-to-host", kHostToHost},
                                                                     {"peer-to-peer", kPeerToPeer},
                                                                     {"ptop", kPeerToPeer}};
  for (const auto& [word, kind] : kKinds) {
    if (lower.find(word) != std::string_view::npos) return kind;
  }
  return kUnknown;
}

model::SyncKind sync_kind(std::string_view api) {
  if (api.find("WaitEvent") != std::string_view::npos) return model::SyncKind::kStreamWaitEvent;
  if (api.find("StreamSync") != std::string_view::npos) return model::SyncKind::kStream;
  if (api.find("EventSync") != std::string_view::npos) return model::SyncKind::kEvent;
  return model::SyncKind::kContext;
}

}  // namespace rangescope::read
