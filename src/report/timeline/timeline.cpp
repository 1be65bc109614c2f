#include "report/timeline/timeline.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {
namespace {

using model::kNone;

// Beyond that many tracks items may cross: such a picture has nothing to read any more.
constexpr std::size_t kTracks = 256;

// Lays items, given by start time, into tracks, first fit. O(tracks) for an item, one track being
// the rule.
class Layout {
 public:
  void place(TimelineItem& item) {
    for (std::size_t track = 0;; ++track) {
      if (track == open_.size()) open_.emplace_back();
      auto& ends = open_[track];
      while (!ends.empty() && ends.back() <= item.start_ns) ends.pop_back();
      if (!ends.empty() && ends.back() < item.end_ns && track + 1 < kTracks) continue;
      item.track = static_cast<std::uint32_t>(track);
      item.depth = static_cast<std::uint32_t>(ends.size());
      ends.push_back(item.end_ns);
      return;
    }
  }

 private:
  std::vector<std::vector<std::int64_t>> open_;
};

}  // namespace

// Counting sort by key, then a stable sort by start of the groups that are not in order yet.
template <class T, class Key>
Timeline::Groups Timeline::group(const std::vector<T>& all, std::size_t keys, Key key) {
  Groups groups;
  groups.first.assign(keys + 1, 0);
  for (const T& one : all) {
    if (key(one) < keys) ++groups.first[key(one) + 1];
  }
  for (std::size_t i = 0; i < keys; ++i) groups.first[i + 1] += groups.first[i];
  groups.items.resize(groups.first[keys]);
  std::vector<std::uint64_t> next(groups.first.begin(), groups.first.end() - 1);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (key(all[i]) < keys) groups.items[next[key(all[i])]++] = static_cast<std::uint32_t>(i);
  }
  const auto by_start = [&all](std::uint32_t a, std::uint32_t b) {
    return all[a].start_ns < all[b].start_ns;
  };
  for (std::size_t i = 0; i < keys; ++i) {
    const auto from = groups.items.begin() + static_cast<std::ptrdiff_t>(groups.first[i]);
    const auto to = groups.items.begin() + static_cast<std::ptrdiff_t>(groups.first[i + 1]);
    if (!std::is_sorted(from, to, by_start)) std::stable_sort(from, to, by_start);
  }
  return groups;
}

Timeline::Timeline(const model::Session& session) : session_(session) {
  const auto by_thread = [](const auto& one) { return one.thread; };
  const auto by_stream = [](const auto& one) { return one.stream; };
  const std::size_t threads = session.threads.size(), streams = session.streams.size();
  ranges_ = group(session.ranges, threads, by_thread);
  calls_ = group(session.launches, threads, by_thread);
  kernels_ = group(session.kernels, streams, by_stream);
  copies_ = group(session.copies, streams, by_stream);
  memsets_ = group(session.memsets, streams, by_stream);
  graphs_ = group(session.graph_launches, streams, by_stream);

  for (std::uint32_t i = 0; i < threads; ++i) {
    TimelineLane lane{.process = session.threads[i].process, .thread = i};
    lane.items = ranges_.size(i) + calls_.size(i);
    if (lane.items > 0) lanes_.push_back(std::move(lane));
  }
  for (std::uint32_t i = 0; i < streams; ++i) {
    TimelineLane lane{.process = session.streams[i].process, .stream = i};
    lane.items = kernels_.size(i) + copies_.size(i) + memsets_.size(i) + graphs_.size(i);
    if (lane.items > 0) lanes_.push_back(std::move(lane));
  }
  std::stable_sort(lanes_.begin(), lanes_.end(), [](const TimelineLane& a, const TimelineLane& b) {
    return a.process < b.process;
  });
  lane_of_thread_.assign(threads, kNone);
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    TimelineLane& lane = lanes_[i];
    if (!lane.is_stream()) lane_of_thread_[lane.thread] = static_cast<std::uint32_t>(i);
    each(lane, [&lane](const TimelineItem& one) {
      if (lane.depths.size() <= one.track) lane.depths.resize(one.track + 1, 1);
      lane.depths[one.track] = std::max(lane.depths[one.track], one.depth + 1);
    });
  }
}

TimelineItem Timeline::item(ItemKind kind, std::uint32_t index) const {
  TimelineItem out{.index = index, .kind = kind};
  const auto take = [&out](const auto& one) {
    out.start_ns = one.start_ns;
    out.end_ns = one.end_ns;
  };
  const auto work = [&](const auto& one) {
    take(one);
    out.launch = one.launch < session_.launches.size() ? one.launch : kNone;
  };
  switch (kind) {
    case ItemKind::kRange: take(session_.ranges[index]); break;
    case ItemKind::kCall:
      take(session_.launches[index]);
      out.launch = index;
      break;
    case ItemKind::kKernel: work(session_.kernels[index]); break;
    case ItemKind::kCopy: work(session_.copies[index]); break;
    case ItemKind::kMemset: work(session_.memsets[index]); break;
    case ItemKind::kGraph: work(session_.graph_launches[index]); break;
  }
  if (out.end_ns == model::kOpen) {
    out.open = true;
    // A call of which only the start is known is a moment; a range that was not closed lasts to the
    // end.
    out.end_ns = kind == ItemKind::kCall ? out.start_ns : session_.end_ns;
  }
  out.end_ns = std::max(out.end_ns, out.start_ns);
  return out;
}

// Merges the lists of the lane by start time; of equal starts the longer first, then the order of
// the lists.
void Timeline::each(const TimelineLane& lane,
                    const std::function<void(const TimelineItem&)>& visit) const {
  struct Cursor {
    ItemKind kind;
    const Groups* groups;
    std::uint64_t at = 0, end = 0;
    TimelineItem head;
  };
  std::array<Cursor, 4> cursors{};
  std::size_t used = 0;
  const auto add = [&](ItemKind kind, const Groups& groups, std::uint32_t key) {
    if (groups.size(key) == 0) return;
    Cursor cursor{kind, &groups, groups.first[key], groups.first[key + 1], {}};
    cursor.head = item(kind, groups.items[cursor.at]);
    cursors[used++] = cursor;
  };
  if (lane.is_stream()) {
    add(ItemKind::kGraph, graphs_, lane.stream);
    add(ItemKind::kKernel, kernels_, lane.stream);
    add(ItemKind::kCopy, copies_, lane.stream);
    add(ItemKind::kMemset, memsets_, lane.stream);
  } else {
    add(ItemKind::kRange, ranges_, lane.thread);
    add(ItemKind::kCall, calls_, lane.thread);
  }
  Layout layout;
  for (;;) {
    Cursor* best = nullptr;
    for (std::size_t i = 0; i < used; ++i) {
      Cursor& cursor = cursors[i];
      if (cursor.at == cursor.end) continue;
      if (best == nullptr || cursor.head.start_ns < best->head.start_ns ||
          (cursor.head.start_ns == best->head.start_ns && cursor.head.end_ns > best->head.end_ns))
        best = &cursor;
    }
    if (best == nullptr) return;
    TimelineItem one = best->head;
    layout.place(one);
    visit(one);
    if (++best->at < best->end) best->head = item(best->kind, best->groups->items[best->at]);
  }
}

std::string Timeline::title(const TimelineLane& lane) const {
  if (!lane.is_stream()) {
    const model::Thread& thread = session_.threads[lane.thread];
    std::string text = "thread " + std::to_string(thread.tid);
    const auto name = session_.strings.view(thread.name);
    return name.empty() ? text : text + " " + base::printable(name);
  }
  const model::Stream& stream = session_.streams[lane.stream];
  std::string text;
  if (stream.device < session_.devices.size())
    text = "GPU " + std::to_string(session_.devices[stream.device].ordinal) + " ";
  text += "stream " + std::to_string(stream.id);
  const auto name = session_.strings.view(stream.name);
  return name.empty() ? text : text + " " + base::printable(name);
}

model::StringId Timeline::name_id(const TimelineItem& one) const {
  switch (one.kind) {
    case ItemKind::kRange: return session_.ranges[one.index].name;
    case ItemKind::kCall: return session_.launches[one.index].name;
    case ItemKind::kKernel: {
      const std::uint32_t name = session_.kernels[one.index].name;
      if (name >= session_.kernel_names.size()) return 0;
      const model::KernelName& names = session_.kernel_names[name];
      return names.demangled != 0 ? names.demangled
             : names.mangled != 0 ? names.mangled
                                  : names.short_name;
    }
    default: return 0;
  }
}

std::string Timeline::name(const TimelineItem& one) const {
  const auto text = session_.strings.view(name_id(one));
  if (!text.empty()) return base::printable(text);
  switch (one.kind) {
    case ItemKind::kRange: return "(no name)";
    case ItemKind::kCall: {
      constexpr std::array<std::string_view, 6> kNames = {
          "launch", "copy call", "memset call", "graph launch", "wait", "API call"};
      const auto kind = static_cast<std::size_t>(session_.launches[one.index].kind);
      return std::string(kNames[std::min(kind, kNames.size() - 1)]);
    }
    case ItemKind::kKernel: return "(unknown kernel)";
    case ItemKind::kCopy: {
      std::string kind(copy_kind_name(session_.copies[one.index].kind));
      std::replace(kind.begin(), kind.end(), '_', ' ');
      return "copy " + kind;
    }
    case ItemKind::kMemset: return "memset";
    case ItemKind::kGraph:
      return "graph " + std::to_string(session_.graph_launches[one.index].graph_id);
  }
  return {};
}

double SampleTrack::value(std::size_t sample) const {
  const auto value = static_cast<double>(metric->values[sample]);
  if (metric->kind != model::SampleKind::kAmount) return value;
  const auto ns = static_cast<double>(
      std::max<std::int64_t>(stream->end_ns[sample] - stream->start_ns[sample], 1));
  return value * 1e9 / ns;
}

std::vector<SampleTrack> sample_tracks(const model::Report& report, const model::Session& session) {
  std::vector<SampleTrack> out;
  for (const model::SampledDevice& device : report.sampled) {
    if (device.stream >= session.samples.size()) continue;
    const model::SampleStream& stream = session.samples[device.stream];
    const std::string gpu = stream.device < session.devices.size()
                                ? "GPU " + std::to_string(session.devices[stream.device].ordinal)
                                : base::printable(stream.name);
    for (const model::SampledMetric& metric : stream.metrics) {
      if (metric.values.size() != stream.start_ns.size()) continue;
      SampleTrack& track = out.emplace_back();
      track.stream = &stream;
      track.metric = &metric;
      track.offset_ns = device.offset_ns;
      track.title = gpu + " " + metric.name;
      track.unit = metric.unit;
      if (metric.kind == model::SampleKind::kAmount)
        track.unit = metric.unit == "J" ? "W" : metric.unit + "/s";
    }
  }
  return out;
}

}  // namespace rangescope::report
