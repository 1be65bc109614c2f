// Levels of detail of the timeline (the layout is in data.hpp).
//
// Merging is one pass a level: a row keeps one pending block, and an item joins it while the gap
// and the item are both shorter than the level's resolution r. Since a block and the gap behind it
// are together longer than r, a row has at most 2 * duration / r blocks however many items there
// are: O(items * levels) time, no memory but the rows'.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <unordered_map>

#include "report/document/json_writer.hpp"
#include "report/formats/html/data.hpp"
#include "report/timeline/timeline.hpp"

namespace rangescope::report {
namespace {

using model::kNone;

constexpr std::size_t kLevels = 8;
constexpr double kCoarse = 2048;         // blocks across the whole recording in the coarsest level
constexpr double kStep = 8;              // of resolution from level to level
constexpr std::size_t kChunk = 8192;     // items
constexpr std::uint64_t kSparse = 8192;  // a lane with fewer items has no coarser level
constexpr std::uint32_t kRows = 64;      // shown at most in a lane
constexpr std::int64_t kBins = 16384;    // of a counter, over the whole recording

// Which region an occurrence belongs to: the regions' paths as a trie, walked with a stack for each
// domain.
class Paths {
 public:
  Paths(const model::Report& report, const model::Session& session) : session_(session) {
    for (const model::Region& region : report.regions) {
      if (region.process || region.thread) continue;
      std::uint32_t node = child(kNone, root_name(region.domain, region.kind));
      for (const std::string& name : region.path) node = child(node, name);
      nodes_[node] = region.id;
    }
  }

  void start_lane() { stacks_.clear(); }

  [[nodiscard]] std::int64_t region(const model::Range& range) {
    const bool nests = range.kind == model::RangeKind::kPushPop;
    std::vector<Open>& stack = stacks_[range.domain];
    while (nests && !stack.empty() && stack.back().end_ns <= range.start_ns) stack.pop_back();
    const bool inner = nests && !stack.empty();
    const auto domain =
        range.domain < session_.domains.size() ? session_.domains[range.domain].name : 0;
    const std::uint32_t parent =
        inner ? stack.back().node
              : find(kNone, root_name(session_.strings.view(domain), range.kind));
    std::uint32_t node = kNone;
    if (parent != kNone) {
      const auto [at, fresh] = known_.try_emplace(std::uint64_t{parent} << 32 | range.name, kNone);
      if (fresh) at->second = find(parent, std::string(session_.strings.view(range.name)));
      node = at->second;
    }
    if (nests) stack.push_back({range.end_ns, node});
    return node == kNone || nodes_[node] == kNone ? -1 : std::int64_t{nodes_[node]};
  }

 private:
  struct Open {
    std::int64_t end_ns;
    std::uint32_t node;
  };
  static std::string root_name(std::string_view domain, model::RangeKind kind) {
    return (kind == model::RangeKind::kStartEnd ? "s" : "p") + std::string(domain);
  }
  [[nodiscard]] std::uint32_t find(std::uint32_t parent, std::string name) const {
    const auto found = children_.find({parent, std::move(name)});
    return found == children_.end() ? kNone : found->second;
  }
  std::uint32_t child(std::uint32_t parent, const std::string& name) {
    const auto [at, fresh] =
        children_.try_emplace({parent, name}, static_cast<std::uint32_t>(nodes_.size()));
    if (fresh) nodes_.push_back(kNone);
    return at->second;
  }

  const model::Session& session_;
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t>
      children_;                      // by parent and name; roots have none
  std::vector<std::uint32_t> nodes_;  // region id, kNone where the path is only on the way to one
  std::unordered_map<std::uint64_t, std::uint32_t> known_;
  std::unordered_map<std::uint32_t, std::vector<Open>> stacks_;
};

// (name, region) pairs that items refer to.
class Names {
 public:
  [[nodiscard]] std::uint32_t of(const Timeline& timeline, const TimelineItem& item,
                                 std::int64_t region) {
    const model::StringId id = timeline.name_id(item);
    // Made-up names are told apart by their text; they are few.
    if (id == 0) {
      const auto [at, is_new] = made_up_.try_emplace({timeline.name(item), region}, 0);
      if (is_new) at->second = add(at->first.first, region);
      return at->second;
    }
    const auto [at, is_new] =
        ids_.try_emplace(std::uint64_t{id} << 32 | static_cast<std::uint32_t>(region + 1), 0);
    if (is_new) at->second = add(timeline.name(item), region);
    return at->second;
  }
  [[nodiscard]] const std::vector<std::pair<std::string, std::int64_t>>& list() const {
    return list_;
  }

 private:
  std::uint32_t add(const std::string& text, std::int64_t region) {
    list_.emplace_back(text, region);
    return static_cast<std::uint32_t>(list_.size() - 1);
  }
  std::vector<std::pair<std::string, std::int64_t>> list_;
  std::unordered_map<std::uint64_t, std::uint32_t> ids_;
  std::map<std::pair<std::string, std::int64_t>, std::uint32_t> made_up_;
};

// What is drawn: an item, or several merged.
struct Block {
  std::int64_t start_ns = 0, end_ns = 0, busy_ns = 0, longest_ns = -1;
  std::uint64_t count = 0;
  std::uint32_t row = 0, name = 0;
};

// Merges the items of one lane at one resolution.
class Merger {
 public:
  explicit Merger(double resolution_ns) : resolution_ns_(resolution_ns) {}

  template <class Emit>
  void add(const Block& item, Emit emit) {
    if (rows_.size() <= item.row) rows_.resize(item.row + 1);
    Block& pending = rows_[item.row];
    const auto duration = static_cast<double>(item.end_ns - item.start_ns);
    if (pending.count > 0 && duration < resolution_ns_ &&
        static_cast<double>(pending.longest_ns) < resolution_ns_ &&
        static_cast<double>(item.start_ns - pending.end_ns) < resolution_ns_ &&
        static_cast<double>(item.end_ns - pending.start_ns) < 2 * resolution_ns_) {
      pending.end_ns = std::max(pending.end_ns, item.end_ns);
      pending.busy_ns += item.busy_ns;
      pending.count += item.count;
      if (item.longest_ns > pending.longest_ns)
        pending.longest_ns = item.longest_ns, pending.name = item.name;
      return;
    }
    if (pending.count > 0) emit(pending);
    pending = item;
  }
  template <class Emit>
  void finish(Emit emit) {
    for (Block& pending : rows_) {
      if (pending.count > 0) emit(pending);
      pending.count = 0;
    }
  }

 private:
  double resolution_ns_;
  std::vector<Block> rows_;
};

// Chunks of one level.
class Chunks {
 public:
  Chunks(JsonWriter& json, std::int64_t begin_ns) : json_(json), begin_ns_(begin_ns) {}
  template <class... Extra>
  void add(const Block& block, Extra... extra) {
    const std::int64_t start = block.start_ns - begin_ns_;
    if (count_ == 0) first_ = last_ = start;
    // Merged blocks of several rows end out of order by less than twice the resolution.
    put(zigzag(start - last_));
    last_ = start;
    put(static_cast<std::uint64_t>(block.end_ns - block.start_ns));
    put(block.row);
    put(block.name);
    (put(static_cast<std::uint64_t>(extra)), ...);
    first_ = std::min(first_, start);
    end_ = std::max(end_, block.end_ns - begin_ns_);
    if (++count_ == kChunk) flush();
  }
  static std::uint64_t zigzag(std::int64_t value) {
    return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
  }
  void flush() {
    if (count_ == 0) return;
    json_.open_line_object();
    json_.fields("s", first_, "e", end_, "n", count_, "d", html_base64(bytes_));
    json_.close();
    bytes_.clear();
    count_ = 0;
    end_ = 0;
  }

 private:
  void put(std::uint64_t value) {
    while (value >= 0x80) {
      bytes_ += static_cast<char>(value | 0x80);
      value >>= 7;
    }
    bytes_ += static_cast<char>(value);
  }

  JsonWriter& json_;
  std::int64_t begin_ns_, first_ = 0, last_ = 0, end_ = 0;
  std::int64_t count_ = 0;
  std::string bytes_;
};

class TimelineWriter {
 public:
  TimelineWriter(const model::Report& report, const model::Session& session, JsonWriter& json)
      : report_(report),
        session_(session),
        json_(json),
        timeline_(session),
        paths_(report, session) {
    double r = static_cast<double>(session.end_ns - session.begin_ns) / kCoarse;
    for (double& level : resolutions_) {
      level = r;
      r /= kStep;
    }
  }

  void write(std::uint64_t most_items) {
    std::uint64_t all = 0;
    for (const TimelineLane& lane : timeline_.lanes()) all += lane.items;
    json_.open_line_object();
    json_.fields("duration", session_.end_ns - session_.begin_ns, "items", all);
    json_.open_line_array("lanes");
    for (const TimelineLane& lane : timeline_.lanes()) {
      // The share of the budget that is the lane's by its items.
      const double share = all <= most_items
                               ? static_cast<double>(lane.items)
                               : static_cast<double>(most_items) * static_cast<double>(lane.items) /
                                     static_cast<double>(all);
      write_lane(lane, std::max<std::uint64_t>(static_cast<std::uint64_t>(share), kSparse));
    }
    json_.close();
    json_.open_line_array("names");
    for (const auto& [text, region] : names_.list()) json_.line_array(text, region);
    json_.close();
    json_.open_line_array("counters");
    for (const SampleTrack& track : sample_tracks(report_, session_)) write_counter(track);
    json_.close();
    json_.close();
  }

 private:
  void write_counter(const SampleTrack& track) {
    const std::int64_t step = std::max<std::int64_t>(
        (session_.end_ns - session_.begin_ns) / kBins + 1, track.stream->interval_ns);
    const auto bins = static_cast<std::size_t>((session_.end_ns - session_.begin_ns) / step + 1);
    std::vector<double> sums(bins, 0), weights(bins, 0);
    for (std::size_t i = 0; i < track.stream->start_ns.size(); ++i) {
      const double value = track.value(i);
      const std::int64_t from = std::max<std::int64_t>(
          track.stream->start_ns[i] + track.offset_ns - session_.begin_ns, 0);
      const std::int64_t to =
          std::min(track.stream->end_ns[i] + track.offset_ns, session_.end_ns) - session_.begin_ns;
      if (std::isnan(value)) continue;
      for (std::int64_t at = from; at < to;) {
        const std::int64_t bin = at / step, until = std::min(to, (bin + 1) * step);
        sums[static_cast<std::size_t>(bin)] += value * static_cast<double>(until - at);
        weights[static_cast<std::size_t>(bin)] += static_cast<double>(until - at);
        at = until;
      }
    }
    double most = track.metric->kind == model::SampleKind::kShare ? 1 : 0;
    for (std::size_t b = 0; b < bins; ++b)
      if (weights[b] > 0) most = std::max(most, sums[b] / weights[b]);
    if (most <= 0) return;  // an empty row
    std::string bytes(bins, '\0');
    for (std::size_t b = 0; b < bins; ++b)
      if (weights[b] > 0)
        bytes[b] = static_cast<char>(1 + std::lround(254 * sums[b] / weights[b] / most));
    json_.open_line_object();
    json_.fields("title", track.title, "unit", track.unit, "most", most, "step", step, "d",
                 html_base64(bytes));
    json_.close();
  }

  // Items of the lane as blocks, with row and name.
  template <class Visit>
  void each(const TimelineLane& lane, Visit visit) {
    paths_.start_lane();
    std::vector<std::uint32_t> base;  // first row of each track
    std::uint32_t rows = 0;
    for (const std::uint32_t depth : lane.depths) {
      base.push_back(rows);
      rows += depth;
    }
    timeline_.each(lane, [&](const TimelineItem& item) {
      const std::int64_t region = item.kind == ItemKind::kRange
                                      ? paths_.region(session_.ranges[item.index])
                                      : std::int64_t{-1};
      Block block{item.start_ns,
                  item.end_ns,
                  item.end_ns - item.start_ns,
                  item.end_ns - item.start_ns,
                  1,
                  0,
                  0};
      block.row = std::min(base[item.track] + item.depth, kRows - 1);
      block.name = names_.of(timeline_, item, region);
      visit(item, block);
    });
  }

  void write_lane(const TimelineLane& lane, std::uint64_t budget) {
    std::uint32_t rows = 0;
    for (const std::uint32_t depth : lane.depths) rows += depth;
    json_.open_line_object();
    json_.field("title", timeline_.title(lane));
    if (lane.process < session_.processes.size()) {
      const model::Process& process = session_.processes[lane.process];
      json_.field("pid", process.pid);
      if (process.rank != kNone) json_.field("rank", process.rank);
    }
    json_.fields("kind", lane.is_stream() ? "stream" : "thread", "rows", std::min(rows, kRows),
                 "items", lane.items, "full", lane.items <= budget);
    json_.open_line_array("levels");
    if (lane.items > kSparse) write_merged(lane, budget);
    if (lane.items <= budget) write_items(lane);
    json_.close();
    json_.close();
  }

  void write_merged(const TimelineLane& lane, std::uint64_t budget) {
    std::array<std::uint64_t, kLevels> counts{};
    std::vector<Merger> mergers;
    for (const double r : resolutions_) mergers.emplace_back(r);
    each(lane, [&](const TimelineItem&, const Block& block) {
      for (std::size_t i = 0; i < kLevels; ++i)
        mergers[i].add(block, [&](const Block&) { ++counts[i]; });
    });
    const bool full = lane.items <= budget;
    for (std::size_t i = 0; i < kLevels; ++i) {
      // A level that is hardly smaller than all items is no use where those are there; where they
      // are not, it is the finest that fits.
      const bool fits = full ? counts[i] < lane.items / 3 : counts[i] <= budget;
      if (i > 0 && !fits) break;
      json_.open_line_object();
      json_.field("r", resolutions_[i]);
      json_.open_line_array("chunks");
      Chunks chunks(json_, session_.begin_ns);
      Merger merger(resolutions_[i]);
      const auto emit = [&](const Block& block) {
        const auto span =
            static_cast<double>(std::max<std::int64_t>(block.end_ns - block.start_ns, 1));
        chunks.add(block, block.count, static_cast<double>(block.busy_ns) * 100 / span);
      };
      each(lane, [&](const TimelineItem&, const Block& block) { merger.add(block, emit); });
      merger.finish(emit);
      chunks.flush();
      json_.close();
      json_.close();
    }
  }

  void write_items(const TimelineLane& lane) {
    json_.open_line_object();
    json_.field("r", 0.0);
    json_.open_line_array("chunks");
    Chunks chunks(json_, session_.begin_ns);
    each(lane, [&](const TimelineItem& item, const Block& block) {
      if (!lane.is_stream()) {
        chunks.add(block, (item.kind == ItemKind::kCall ? 1 : 0) + (item.open ? 2 : 0));
        return;
      }
      const std::uint32_t from =
          item.launch == kNone ? kNone
                               : timeline_.lane_of_thread(session_.launches[item.launch].thread);
      if (from == kNone) return chunks.add(block, 0);
      chunks.add(block, from + 1,
                 Chunks::zigzag(item.start_ns - session_.launches[item.launch].start_ns));
    });
    chunks.flush();
    json_.close();
    json_.close();
  }

  const model::Report& report_;
  const model::Session& session_;
  JsonWriter& json_;
  Timeline timeline_;
  Paths paths_;
  Names names_;
  std::array<double, kLevels> resolutions_{};
};

}  // namespace

void write_html_timeline(const model::Report& report, const model::Session& session,
                         JsonWriter& json, std::uint64_t most_items) {
  TimelineWriter(report, session, json).write(most_items);
}

}  // namespace rangescope::report
