#include "analyze/replay/timeline.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_map>

namespace rangescope::analyze::replay {
namespace {

/// A copy that a call waits for may end a little after the call: the host's part of it is done
/// before.
constexpr std::int64_t kEarlyReturn_ns = 2'000;
constexpr double kEarlyReturnShare = 0.01;
/// Calls of an API block where this share of those with work do.
constexpr double kBlockingShare = 0.9;

/// cudaFree and its like return when the device is idle.
bool waits_for_device(std::string_view name) {
  const bool frees = name.starts_with("cudaFree") || name.starts_with("cuMemFree");
  return frees && name.find("Async") == std::string_view::npos;
}

Call call_of(const model::Launch& launch, Id index, const model::Strings& strings) {
  Call call;
  call.start_ns = launch.start_ns;
  call.end_ns = launch.end_ns;
  if (launch.end_ns == model::kOpen)
    call.end_ns = launch.start_ns;
  call.thread = launch.thread;
  call.launch = index;
  call.synchronizes =
      launch.kind == model::LaunchKind::kSynchronize || waits_for_device(strings.view(launch.name));
  return call;
}

std::vector<Call> calls_by_thread(const model::Session& session) {
  std::vector<Call> calls;
  calls.reserve(session.launches.size());
  for (Id launch = 0; launch < session.launches.size(); ++launch) {
    calls.push_back(call_of(session.launches[launch], launch, session.strings));
  }
  const auto before = [](const Call& a, const Call& b) {
    if (a.thread != b.thread)
      return a.thread < b.thread;
    if (a.start_ns != b.start_ns)
      return a.start_ns < b.start_ns;
    return a.end_ns > b.end_ns;
  };
  if (!std::ranges::is_sorted(calls, before))
    std::ranges::stable_sort(calls, before);
  return calls;
}

/// Leaves the outermost calls; returns the call that each launch of the session belongs to.
std::vector<Id> drop_nested(std::vector<Call>& calls) {
  std::vector<Id> call_of_launch(calls.size());
  Id kept = 0;
  for (Call& call : calls) {
    const bool same_thread = kept > 0 && calls[kept - 1].thread == call.thread;
    const bool nested = same_thread && call.start_ns < calls[kept - 1].end_ns;
    if (nested) {
      calls[kept - 1].synchronizes |= call.synchronizes;
      calls[kept - 1].end_ns = std::max(calls[kept - 1].end_ns, call.end_ns);
    } else {
      calls[kept++] = call;
    }
    call_of_launch[call.launch] = kept - 1;
  }
  calls.resize(kept);
  return call_of_launch;
}

template <class Item>
void append_works(const std::vector<Item>& items,
                  Kind kind,
                  const std::vector<Id>& call_of_launch,
                  std::vector<Work>& works) {
  for (Id index = 0; index < items.size(); ++index) {
    const Item& item = items[index];
    Work work;
    work.start_ns = item.start_ns;
    work.end_ns = std::max(item.start_ns, item.end_ns);
    if (item.launch != model::kNone)
      work.call = call_of_launch[item.launch];
    work.stream = item.stream;
    work.source = index;
    work.kind = kind;
    if constexpr (requires { item.graph_node; })
      work.in_graph = item.graph_node != model::kNone;
    works.push_back(work);
  }
}

std::vector<Work> works_by_start(const model::Session& session,
                                 const std::vector<Id>& call_of_launch) {
  std::vector<Work> works;
  works.reserve(session.kernels.size() + session.copies.size() + session.memsets.size() +
                session.graph_launches.size());
  append_works(session.kernels, Kind::kKernel, call_of_launch, works);
  append_works(session.copies, Kind::kCopy, call_of_launch, works);
  append_works(session.memsets, Kind::kMemset, call_of_launch, works);
  append_works(session.graph_launches, Kind::kGraph, call_of_launch, works);
  std::ranges::stable_sort(works, {}, &Work::start_ns);
  return works;
}

void link_calls(Timeline& timeline) {
  for (Id index = 0; index < timeline.works.size(); ++index) {
    const Work& work = timeline.works[index];
    if (work.call == model::kNone)
      continue;
    Call& call = timeline.calls[work.call];
    if (!call.launched()) {
      call.first_work = index;
      call.last_work = index;
    }
    if (work.end_ns > timeline.works[call.last_work].end_ns)
      call.last_work = index;
  }
}

bool work_lies_inside(const Timeline& timeline, const Call& call) {
  if (!call.launched())
    return false;
  const std::int64_t first_ns = timeline.works[call.first_work].start_ns;
  const std::int64_t last_ns = timeline.works[call.last_work].end_ns;
  const auto allowed_ns =
      static_cast<std::int64_t>(kEarlyReturnShare * static_cast<double>(last_ns - first_ns));
  return first_ns < call.end_ns && last_ns <= call.end_ns + std::max(kEarlyReturn_ns, allowed_ns);
}

struct Blocking {
  std::size_t launching = 0, inside = 0;

  [[nodiscard]] bool always() const {
    return static_cast<double>(inside) >= kBlockingShare * static_cast<double>(launching);
  }
};

/// Asynchronous copies between pinned memory and a GPU, or on GPUs: a short one may lie inside its
/// call, but that does not wait for it.
bool is_asynchronous_copy(const model::Session& session,
                          const Timeline& timeline,
                          const Call& call) {
  const Work& work = timeline.works[call.first_work];
  if (work.kind != Kind::kCopy)
    return false;
  const std::string_view api = session.strings.view(session.launches[call.launch].name);
  if (api.find("Async") == std::string_view::npos)
    return false;
  const model::Copy& copy = session.copies[work.source];
  const bool is_known =
      copy.source != model::MemoryKind::kUnknown && copy.destination != model::MemoryKind::kUnknown;
  const bool stays_on_gpu = copy.kind == model::CopyKind::kDeviceToDevice;
  return stays_on_gpu || (is_known && !model::is_pageable(copy));
}

void find_blocking(const model::Session& session, Timeline& timeline) {
  std::unordered_map<model::StringId, Blocking> by_api;
  for (const Call& call : timeline.calls) {
    if (!call.launched())
      continue;
    Blocking& api = by_api[session.launches[call.launch].name];
    ++api.launching;
    if (work_lies_inside(timeline, call))
      ++api.inside;
  }
  for (Call& call : timeline.calls) {
    if (!work_lies_inside(timeline, call))
      continue;
    if (is_asynchronous_copy(session, timeline, call))
      continue;
    const model::Launch& launch = session.launches[call.launch];
    call.blocks = launch.kind == model::LaunchKind::kCopy || by_api[launch.name].always();
  }
}

}  // namespace

Timeline timeline_of(const model::Session& session) {
  Timeline timeline;
  timeline.calls = calls_by_thread(session);
  const std::vector<Id> call_of_launch = drop_nested(timeline.calls);
  timeline.works = works_by_start(session, call_of_launch);
  link_calls(timeline);
  find_blocking(session, timeline);

  timeline.begin_ns = session.begin_ns;
  for (const Call& call : timeline.calls)
    timeline.begin_ns = std::min(timeline.begin_ns, call.start_ns);
  if (!timeline.works.empty())
    timeline.begin_ns = std::min(timeline.begin_ns, timeline.works.front().start_ns);
  return timeline;
}

}  // namespace rangescope::analyze::replay
