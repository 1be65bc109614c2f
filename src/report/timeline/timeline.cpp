#include "report/timeline/timeline.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "base/text.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {
namespace {

using model::kNone;

// Items of the last track may overlap: a picture with more tracks could not be read.
constexpr std::size_t kMaxTracks = 256;

// Places items, given in order of their start, in the first track where they fit. O(tracks) for an
// item; mostly there is one track.
class Layout {
 public:
  void place(TimelineItem& item) {
    for (std::size_t track = 0;; ++track) {
      if (track == open_.size())
        open_.emplace_back();
      std::vector<std::int64_t>& ends = open_[track];
      while (!ends.empty() && ends.back() <= item.start_ns)
        ends.pop_back();
      const bool crosses = !ends.empty() && ends.back() < item.end_ns;
      if (crosses && track + 1 < kMaxTracks)
        continue;
      item.track = static_cast<std::uint32_t>(track);
      item.depth = static_cast<std::uint32_t>(ends.size());
      ends.push_back(item.end_ns);
      return;
    }
  }

 private:
  std::vector<std::vector<std::int64_t>> open_;  // ends of nested open items, of each track
};

}  // namespace

// Counting sort by key, then a stable sort by start of each group that is not in order.
template <class T, class Key>
Timeline::Groups Timeline::group(const std::vector<T>& items, std::size_t keys, Key key) {
  Groups groups;
  groups.first.assign(keys + 1, 0);
  for (const T& item : items) {
    if (key(item) < keys)
      ++groups.first[key(item) + 1];
  }
  for (std::size_t i = 0; i < keys; ++i)
    groups.first[i + 1] += groups.first[i];
  groups.items.resize(groups.first[keys]);
  std::vector<std::uint64_t> next(groups.first.begin(), groups.first.end() - 1);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (key(items[i]) < keys)
      groups.items[next[key(items[i])]++] = static_cast<std::uint32_t>(i);
  }
  const auto by_start = [&items](std::uint32_t a, std::uint32_t b) {
    return items[a].start_ns < items[b].start_ns;
  };
  for (std::size_t i = 0; i < keys; ++i) {
    const auto first = groups.items.begin() + static_cast<std::ptrdiff_t>(groups.first[i]);
    const auto last = groups.items.begin() + static_cast<std::ptrdiff_t>(groups.first[i + 1]);
    if (!std::is_sorted(first, last, by_start))
      std::stable_sort(first, last, by_start);
  }
  return groups;
}

Timeline::Timeline(const model::Session& session) : session_(session) {
  const auto by_thread = [](const auto& item) { return item.thread; };
  const auto by_stream = [](const auto& item) { return item.stream; };
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
    if (lane.items > 0)
      lanes_.push_back(std::move(lane));
  }
  for (std::uint32_t i = 0; i < streams; ++i) {
    TimelineLane lane{.process = session.streams[i].process, .stream = i};
    lane.items = kernels_.size(i) + copies_.size(i) + memsets_.size(i) + graphs_.size(i);
    if (lane.items > 0)
      lanes_.push_back(std::move(lane));
  }
  std::stable_sort(lanes_.begin(), lanes_.end(), [](const TimelineLane& a, const TimelineLane& b) {
    return a.process < b.process;
  });
  lane_of_thread_.assign(threads, kNone);
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    TimelineLane& lane = lanes_[i];
    if (!lane.is_stream())
      lane_of_thread_[lane.thread] = static_cast<std::uint32_t>(i);
    each(lane, [&lane](const TimelineItem& item) {
      if (lane.depths.size() <= item.track)
        lane.depths.resize(item.track + 1, 1);
      lane.depths[item.track] = std::max(lane.depths[item.track], item.depth + 1);
    });
  }
}

TimelineItem Timeline::item(ItemKind kind, std::uint32_t index) const {
  TimelineItem item{.index = index, .kind = kind};
  const auto set_times = [&item](const auto& record) {
    item.start_ns = record.start_ns;
    item.end_ns = record.end_ns;
  };
  const auto set_work = [&](const auto& record) {
    set_times(record);
    item.launch = kNone;
    if (record.launch < session_.launches.size())
      item.launch = record.launch;
  };
  switch (kind) {
    case ItemKind::kRange: set_times(session_.ranges[index]); break;
    case ItemKind::kCall:
      set_times(session_.launches[index]);
      item.launch = index;
      break;
    case ItemKind::kKernel: set_work(session_.kernels[index]); break;
    case ItemKind::kCopy: set_work(session_.copies[index]); break;
    case ItemKind::kMemset: set_work(session_.memsets[index]); break;
    case ItemKind::kGraph: set_work(session_.graph_launches[index]); break;
  }
  if (item.end_ns == model::kOpen) {
    item.open = true;
    // A call without an end is an instant; a range without an end lasts to the end of the session.
    item.end_ns = session_.end_ns;
    if (kind == ItemKind::kCall)
      item.end_ns = item.start_ns;
  }
  item.end_ns = std::max(item.end_ns, item.start_ns);
  return item;
}

// Merges the lists of the lane by start; of equal starts the longer item is first, then the order
// of the lists counts.
void Timeline::each(const TimelineLane& lane,
                    const std::function<void(const TimelineItem&)>& visit) const {
  struct Cursor {
    ItemKind kind;
    const Groups* groups;
    std::uint64_t next = 0, end = 0;
    TimelineItem head;
  };
  std::array<Cursor, 4> cursors{};
  std::size_t used = 0;
  const auto add = [&](ItemKind kind, const Groups& groups, std::uint32_t key) {
    if (groups.size(key) == 0)
      return;
    Cursor cursor{kind, &groups, groups.first[key], groups.first[key + 1], {}};
    cursor.head = item(kind, groups.items[cursor.next]);
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
  const auto precedes = [](const TimelineItem& a, const TimelineItem& b) {
    if (a.start_ns != b.start_ns)
      return a.start_ns < b.start_ns;
    return a.end_ns > b.end_ns;
  };
  Layout layout;
  for (;;) {
    Cursor* first = nullptr;
    for (Cursor& cursor : std::span(cursors).first(used)) {
      if (cursor.next == cursor.end)
        continue;
      if (first == nullptr || precedes(cursor.head, first->head))
        first = &cursor;
    }
    if (first == nullptr)
      return;
    TimelineItem current = first->head;
    layout.place(current);
    visit(current);
    if (++first->next < first->end)
      first->head = item(first->kind, first->groups->items[first->next]);
  }
}

std::string Timeline::title(const TimelineLane& lane) const {
  std::string text;
  model::StringId name = 0;
  if (lane.is_stream()) {
    const model::Stream& stream = session_.streams[lane.stream];
    if (stream.device < session_.devices.size())
      text = "GPU " + std::to_string(session_.devices[stream.device].ordinal) + " ";
    text += "stream " + std::to_string(stream.id);
    name = stream.name;
  } else {
    const model::Thread& thread = session_.threads[lane.thread];
    text = "thread " + std::to_string(thread.tid);
    name = thread.name;
  }
  const auto name_text = session_.strings.view(name);
  if (!name_text.empty())
    text += " " + base::printable(name_text);
  return text;
}

model::StringId Timeline::name_id(const TimelineItem& item) const {
  switch (item.kind) {
    case ItemKind::kRange: return session_.ranges[item.index].name;
    case ItemKind::kCall: return session_.launches[item.index].name;
    case ItemKind::kKernel: {
      const std::uint32_t name = session_.kernels[item.index].name;
      if (name >= session_.kernel_names.size())
        return 0;
      const model::KernelName& names = session_.kernel_names[name];
      if (names.demangled != 0)
        return names.demangled;
      if (names.mangled != 0)
        return names.mangled;
      return names.short_name;
    }
    default: return 0;
  }
}

std::string Timeline::name(const TimelineItem& item) const {
  const auto text = session_.strings.view(name_id(item));
  if (!text.empty())
    return base::printable(text);
  switch (item.kind) {
    case ItemKind::kRange: return "(no name)";
    case ItemKind::kCall: {
      constexpr std::array<std::string_view, 6> kNames = {
          "launch", "copy call", "memset call", "graph launch", "wait", "API call"};
      const auto kind = static_cast<std::size_t>(session_.launches[item.index].kind);
      return std::string(kNames[std::min(kind, kNames.size() - 1)]);
    }
    case ItemKind::kKernel: return "(unknown kernel)";
    case ItemKind::kCopy: {
      std::string kind(copy_kind_name(session_.copies[item.index].kind));
      std::replace(kind.begin(), kind.end(), '_', ' ');
      return "copy " + kind;
    }
    case ItemKind::kMemset: return "memset";
    case ItemKind::kGraph:
      return "graph " + std::to_string(session_.graph_launches[item.index].graph_id);
  }
  return {};
}

double SampleTrack::value(std::size_t sample) const {
  const auto value = static_cast<double>(metric->values[sample]);
  if (metric->kind != model::SampleKind::kAmount)
    return value;
  const auto ns = static_cast<double>(
      std::max<std::int64_t>(stream->end_ns[sample] - stream->start_ns[sample], 1));
  return value * 1e9 / ns;
}

std::vector<SampleTrack> sample_tracks(const model::Report& report, const model::Session& session) {
  std::vector<SampleTrack> tracks;
  for (const model::SampledDevice& device : report.sampled) {
    if (device.stream >= session.samples.size())
      continue;
    const model::SampleStream& stream = session.samples[device.stream];
    std::string gpu = base::printable(stream.name);
    if (stream.device < session.devices.size())
      gpu = "GPU " + std::to_string(session.devices[stream.device].ordinal);
    for (const model::SampledMetric& metric : stream.metrics) {
      if (metric.values.size() != stream.start_ns.size())
        continue;
      SampleTrack& track = tracks.emplace_back();
      track.stream = &stream;
      track.metric = &metric;
      track.offset_ns = device.offset_ns;
      track.title = gpu + " " + metric.name;
      track.unit = metric.unit;
      const bool is_rate = metric.kind == model::SampleKind::kAmount;
      if (is_rate && metric.unit == "J")
        track.unit = "W";
      else if (is_rate)
        track.unit += "/s";
    }
  }
  return tracks;
}

}  // namespace rangescope::report
