// Lanes of a timeline: the items of each thread and each stream in order of time, laid out so that
// none crosses another. Shared by the formats that draw a timeline (HTML, Perfetto).
//
// Needs memory for one 32-bit index for each range, call and piece of GPU work; items are made
// while they are visited. A lane has one or more *tracks*. In a track, items nest: each is within
// the one below it or after it. An item that would cross another one (push/pop ranges of two
// domains, start/end ranges, two kernels of one stream) goes to the next track.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::report {

enum class ItemKind : std::uint8_t { kRange, kCall, kKernel, kCopy, kMemset, kGraph };

struct TimelineItem {
  std::int64_t start_ns = 0;  ///< session clock
  std::int64_t end_ns = 0;    ///< not before the start; that of an open range is the session's end
  std::uint32_t index = 0;    ///< into the session's vector of that kind
  std::uint32_t launch = model::kNone;
  ItemKind kind = ItemKind::kRange;
  bool open = false;        ///< without a recorded end
  std::uint32_t track = 0;  ///< within the lane
  std::uint32_t depth = 0;  ///< within the track
};

struct TimelineLane {
  std::uint32_t process = model::kNone;
  std::uint32_t thread = model::kNone;  ///< index into Session::threads, or
  std::uint32_t stream = model::kNone;  ///< index into Session::streams
  std::uint64_t items = 0;
  std::vector<std::uint32_t> depths;  ///< levels of each track, at least 1
  [[nodiscard]] bool is_stream() const { return stream != model::kNone; }
};

class Timeline {
 public:
  /// O(n) if records are in order, else O(n log n). Keeps a reference to the session.
  explicit Timeline(const model::Session& session);

  /// Threads of a process, then its streams, process by process; only lanes with items.
  [[nodiscard]] const std::vector<TimelineLane>& lanes() const { return lanes_; }
  /// The lane of a thread, or kNone.
  [[nodiscard]] std::uint32_t lane_of_thread(std::uint32_t thread) const {
    if (thread >= lane_of_thread_.size())
      return model::kNone;
    return lane_of_thread_[thread];
  }
  /// Calls `visit` with every item of the lane, in order of their start.
  void each(const TimelineLane& lane, const std::function<void(const TimelineItem&)>& visit) const;

  /// "thread 12 worker", "GPU 0 stream 7"
  [[nodiscard]] std::string title(const TimelineLane& lane) const;
  /// The name of the range, the API call or the kernel (demangled); "copy host to device".
  [[nodiscard]] std::string name(const TimelineItem& item) const;
  /// The same as an id of the session's strings; 0 if name() makes the text.
  [[nodiscard]] model::StringId name_id(const TimelineItem& item) const;

 private:
  // Indices of records, grouped by thread or stream and sorted by start.
  struct Groups {
    std::vector<std::uint64_t> first;
    std::vector<std::uint32_t> items;
    [[nodiscard]] std::uint64_t size(std::uint32_t key) const {
      if (key + 1 >= first.size())
        return 0;
      return first[key + 1] - first[key];
    }
  };
  template <class T, class Key>
  static Groups group(const std::vector<T>& items, std::size_t keys, Key key);
  [[nodiscard]] TimelineItem item(ItemKind kind, std::uint32_t index) const;

  const model::Session& session_;
  Groups ranges_, calls_, kernels_, copies_, memsets_, graphs_;
  std::vector<TimelineLane> lanes_;
  std::vector<std::uint32_t> lane_of_thread_;
};

/// Sampled counters as a track of a timeline: one value a sample, on the session's clock.
struct SampleTrack {
  const model::SampleStream* stream = nullptr;
  const model::SampledMetric* metric = nullptr;
  std::int64_t offset_ns = 0;  ///< from the stream's clock to the session's
  std::string title;           ///< "GPU 0 dram_read_bytes"
  std::string unit;            ///< of value(): amounts are rates, "byte/s", "W"

  /// NaN without a reading.
  [[nodiscard]] double value(std::size_t sample) const;

  /// Calls visit(time on the session's clock in ns, value) for each known value that differs from
  /// the previous one.
  template <class Visit>
  void changes(Visit visit) const {
    double last = std::numeric_limits<double>::quiet_NaN();
    for (std::size_t i = 0; i < stream->start_ns.size(); ++i) {
      const double now = value(i);
      if (std::isnan(now) || now == last)
        continue;
      last = now;
      visit(stream->start_ns[i] + offset_ns, now);
    }
  }
};

/// Tracks of every device of Report::sampled.
[[nodiscard]] std::vector<SampleTrack> sample_tracks(const model::Report& report,
                                                     const model::Session& session);

}  // namespace rangescope::report
