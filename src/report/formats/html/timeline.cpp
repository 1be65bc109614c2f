// Levels of detail of the timeline (the layout is in data.hpp).
//
// Each level is one pass over the items: a row keeps one pending block, and an item joins it while
// the gap and the item are shorter than the level's resolution r. A block and the gap after it are
// together longer than r, so that a row has at most 2 * duration / r blocks. O(items * levels)
// time, O(rows) memory.
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
constexpr double kCoarsestBlocks = 2048;  // across the whole recording in the coarsest level
constexpr double kLevelStep = 8;          // ratio of resolutions of two levels
constexpr std::size_t kChunkItems = 8192;
constexpr std::uint64_t kSparseItems = 8192;  // a lane with fewer items has no coarser level
constexpr std::uint32_t kMaxRows = 64;        // shown in a lane
constexpr std::int64_t kCounterBins = 16384;  // over the whole recording

// Finds the region of each instance of a range: the regions' paths are a trie, which is walked with
// a stack of open ranges for each domain. Instances of a lane come in order of their start.
class RegionFinder {
 public:
  RegionFinder(const model::Report& report, const model::Session& session) : session_(session) {
    for (const model::Region& region : report.regions) {
      if (region.process || region.thread)
        continue;
      std::uint32_t node = child(kNone, root_name(region.domain, region.kind));
      for (const std::string& name : region.path)
        node = child(node, name);
      nodes_[node] = region.id;
    }
  }

  void start_lane() { stacks_.clear(); }

  /// -1 for an instance that belongs to no region.
  [[nodiscard]] std::int64_t region(const model::Range& range) {
    const bool nests = range.kind == model::RangeKind::kPushPop;
    if (!nests)
      return region_of(node_of(root(range), range.name));
    std::vector<OpenRange>& stack = stacks_[range.domain];
    while (!stack.empty() && stack.back().end_ns <= range.start_ns)
      stack.pop_back();
    std::uint32_t parent = kNone;
    if (stack.empty())
      parent = root(range);
    else
      parent = stack.back().node;
    const std::uint32_t node = node_of(parent, range.name);
    stack.push_back({range.end_ns, node});
    return region_of(node);
  }

 private:
  struct OpenRange {
    std::int64_t end_ns;
    std::uint32_t node;
  };
  [[nodiscard]] std::uint32_t root(const model::Range& range) const {
    model::StringId domain = 0;
    if (range.domain < session_.domains.size())
      domain = session_.domains[range.domain].name;
    return find(kNone, root_name(session_.strings.view(domain), range.kind));
  }
  /// kNone below kNone.
  std::uint32_t node_of(std::uint32_t parent, model::StringId name) {
    if (parent == kNone)
      return kNone;
    const std::uint64_t key = std::uint64_t{parent} << 32 | name;
    const auto [entry, is_new] = found_.try_emplace(key, kNone);
    if (is_new)
      entry->second = find(parent, std::string(session_.strings.view(name)));
    return entry->second;
  }
  [[nodiscard]] std::int64_t region_of(std::uint32_t node) const {
    if (node == kNone || nodes_[node] == kNone)
      return -1;
    return nodes_[node];
  }
  static std::string root_name(std::string_view domain, model::RangeKind kind) {
    const std::string prefix = kind == model::RangeKind::kStartEnd ? "s" : "p";
    return prefix + std::string(domain);
  }
  [[nodiscard]] std::uint32_t find(std::uint32_t parent, std::string name) const {
    const auto found = children_.find({parent, std::move(name)});
    if (found == children_.end())
      return kNone;
    return found->second;
  }
  std::uint32_t child(std::uint32_t parent, const std::string& name) {
    const auto next = static_cast<std::uint32_t>(nodes_.size());
    const auto [entry, is_new] = children_.try_emplace({parent, name}, next);
    if (is_new)
      nodes_.push_back(kNone);
    return entry->second;
  }

  const model::Session& session_;
  // By parent and name; the parent of a root is kNone.
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> children_;
  std::vector<std::uint32_t> nodes_;  // region id, kNone if the path has no region
  std::unordered_map<std::uint64_t, std::uint32_t> found_;            // node by parent and name
  std::unordered_map<std::uint32_t, std::vector<OpenRange>> stacks_;  // by domain
};

// The (name, region) pairs that items refer to.
class ItemNames {
 public:
  [[nodiscard]] std::uint32_t id(const Timeline& timeline,
                                 const TimelineItem& item,
                                 std::int64_t region) {
    const model::StringId name = timeline.name_id(item);
    if (name == 0) {  // without a recorded name: the few made-up texts
      const auto [entry, is_new] = made_up_.try_emplace({timeline.name(item), region}, 0);
      if (is_new)
        entry->second = add(entry->first.first, region);
      return entry->second;
    }
    const std::uint64_t key = std::uint64_t{name} << 32 | static_cast<std::uint32_t>(region + 1);
    const auto [entry, is_new] = ids_.try_emplace(key, 0);
    if (is_new)
      entry->second = add(timeline.name(item), region);
    return entry->second;
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

// What is drawn: an item, or several that are merged.
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
    if (rows_.size() <= item.row)
      rows_.resize(item.row + 1);
    Block& pending = rows_[item.row];
    if (pending.count > 0 && joins(pending, item)) {
      pending.end_ns = std::max(pending.end_ns, item.end_ns);
      pending.busy_ns += item.busy_ns;
      pending.count += item.count;
      if (item.longest_ns > pending.longest_ns) {
        pending.longest_ns = item.longest_ns;
        pending.name = item.name;
      }
      return;
    }
    if (pending.count > 0)
      emit(pending);
    pending = item;
  }
  template <class Emit>
  void finish(Emit emit) {
    for (Block& pending : rows_) {
      if (pending.count > 0)
        emit(pending);
      pending.count = 0;
    }
  }

 private:
  [[nodiscard]] bool joins(const Block& pending, const Block& item) const {
    const auto is_short = [&](std::int64_t ns) { return static_cast<double>(ns) < resolution_ns_; };
    const auto merged_ns = static_cast<double>(item.end_ns - pending.start_ns);
    const bool are_short = is_short(item.end_ns - item.start_ns) && is_short(pending.longest_ns);
    const bool are_close = is_short(item.start_ns - pending.end_ns);
    return are_short && are_close && merged_ns < 2 * resolution_ns_;
  }

  double resolution_ns_;
  std::vector<Block> rows_;  // the pending block of each row
};

// Writes the blocks of one level in chunks.
class Chunks {
 public:
  Chunks(JsonWriter& json, std::int64_t begin_ns) : json_(json), begin_ns_(begin_ns) {}
  template <class... Extra>
  void add(const Block& block, Extra... extra) {
    const std::int64_t start = block.start_ns - begin_ns_;
    if (count_ == 0)
      first_ = last_ = start;
    // Merged blocks of several rows end out of order by less than twice the resolution.
    put(zigzag(start - last_));
    last_ = start;
    put(static_cast<std::uint64_t>(block.end_ns - block.start_ns));
    put(block.row);
    put(block.name);
    (put(static_cast<std::uint64_t>(extra)), ...);
    first_ = std::min(first_, start);
    end_ = std::max(end_, block.end_ns - begin_ns_);
    if (++count_ == kChunkItems)
      flush();
  }
  static std::uint64_t zigzag(std::int64_t value) {
    return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
  }
  void flush() {
    if (count_ == 0)
      return;
    json_.open_line_object();
    json_.field("s", first_);
    json_.field("e", end_);
    json_.field("n", count_);
    json_.field("d", html_base64(bytes_));
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
        region_finder_(report, session) {
    double resolution_ns = static_cast<double>(session.end_ns - session.begin_ns) / kCoarsestBlocks;
    for (double& level_ns : resolutions_ns_) {
      level_ns = resolution_ns;
      resolution_ns /= kLevelStep;
    }
  }

  void write(std::uint64_t max_items) {
    std::uint64_t total = 0;
    for (const TimelineLane& lane : timeline_.lanes())
      total += lane.items;
    json_.open_line_object();
    json_.field("duration", session_.end_ns - session_.begin_ns);
    json_.field("items", total);
    json_.open_line_array("lanes");
    for (const TimelineLane& lane : timeline_.lanes()) {
      // Lanes share the budget in proportion to their items.
      auto budget = static_cast<double>(lane.items);
      if (total > max_items)
        budget = static_cast<double>(max_items) * budget / static_cast<double>(total);
      write_lane(lane, std::max<std::uint64_t>(static_cast<std::uint64_t>(budget), kSparseItems));
    }
    json_.close();
    json_.open_line_array("names");
    for (const auto& [text, region] : names_.list())
      json_.line_array(text, region);
    json_.close();
    json_.open_line_array("counters");
    for (const SampleTrack& track : sample_tracks(report_, session_))
      write_counter(track);
    json_.close();
    json_.close();
  }

 private:
  // Sums over time of the values in each bin, and the time that they cover.
  struct CounterBins {
    std::int64_t width_ns;
    std::vector<double> sums, covered_ns;
    CounterBins(std::int64_t duration_ns, std::int64_t bin_width_ns)
        : width_ns(bin_width_ns),
          sums(static_cast<std::size_t>(duration_ns / bin_width_ns + 1), 0),
          covered_ns(sums.size(), 0) {}

    void add(std::int64_t start_ns, std::int64_t end_ns, double value) {
      while (start_ns < end_ns) {
        const std::int64_t bin = start_ns / width_ns;
        const std::int64_t until_ns = std::min(end_ns, (bin + 1) * width_ns);
        const auto part_ns = static_cast<double>(until_ns - start_ns);
        sums[static_cast<std::size_t>(bin)] += value * part_ns;
        covered_ns[static_cast<std::size_t>(bin)] += part_ns;
        start_ns = until_ns;
      }
    }
  };

  // Values as a byte for each bin: 0 without samples, 1 to 255 for 0 to the largest.
  void write_counter(const SampleTrack& track) {
    const model::SampleStream& stream = *track.stream;
    const std::int64_t duration_ns = session_.end_ns - session_.begin_ns;
    CounterBins bins(duration_ns,
                     std::max<std::int64_t>(duration_ns / kCounterBins + 1, stream.interval_ns));
    for (std::size_t i = 0; i < stream.start_ns.size(); ++i) {
      const double value = track.value(i);
      if (std::isnan(value))
        continue;
      const std::int64_t start_ns = stream.start_ns[i] + track.offset_ns - session_.begin_ns;
      const std::int64_t end_ns = stream.end_ns[i] + track.offset_ns - session_.begin_ns;
      bins.add(std::max<std::int64_t>(start_ns, 0), std::min(end_ns, duration_ns), value);
    }
    double largest = track.metric->kind == model::SampleKind::kShare ? 1 : 0;
    for (std::size_t bin = 0; bin < bins.sums.size(); ++bin) {
      if (bins.covered_ns[bin] > 0)
        largest = std::max(largest, bins.sums[bin] / bins.covered_ns[bin]);
    }
    if (largest <= 0)
      return;  // an empty row
    std::string bytes(bins.sums.size(), '\0');
    for (std::size_t bin = 0; bin < bytes.size(); ++bin) {
      if (bins.covered_ns[bin] > 0)
        bytes[bin] = static_cast<char>(
            1 + std::lround(254 * bins.sums[bin] / bins.covered_ns[bin] / largest));
    }
    json_.open_line_object();
    json_.field("title", track.title);
    json_.field("unit", track.unit);
    json_.field("most", largest);
    json_.field("step", bins.width_ns);
    json_.field("d", html_base64(bytes));
    json_.close();
  }

  // Calls `visit` with each item of the lane and its block.
  template <class Visit>
  void visit_blocks(const TimelineLane& lane, Visit visit) {
    region_finder_.start_lane();
    std::vector<std::uint32_t> first_row;  // of each track
    std::uint32_t rows = 0;
    for (const std::uint32_t depth : lane.depths) {
      first_row.push_back(rows);
      rows += depth;
    }
    timeline_.each(lane, [&](const TimelineItem& item) {
      std::int64_t region = -1;
      if (item.kind == ItemKind::kRange)
        region = region_finder_.region(session_.ranges[item.index]);
      const std::int64_t duration_ns = item.end_ns - item.start_ns;
      Block block{item.start_ns, item.end_ns, duration_ns, duration_ns, 1, 0, 0};
      block.row = std::min(first_row[item.track] + item.depth, kMaxRows - 1);
      block.name = names_.id(timeline_, item, region);
      visit(item, block);
    });
  }

  void write_lane(const TimelineLane& lane, std::uint64_t budget) {
    std::uint32_t rows = 0;
    for (const std::uint32_t depth : lane.depths)
      rows += depth;
    json_.open_line_object();
    json_.field("title", timeline_.title(lane));
    if (lane.process < session_.processes.size()) {
      const model::Process& process = session_.processes[lane.process];
      json_.field("pid", process.pid);
      if (process.rank != kNone)
        json_.field("rank", process.rank);
    }
    json_.field("kind", lane.is_stream() ? "stream" : "thread");
    json_.field("rows", std::min(rows, kMaxRows));
    json_.field("items", lane.items);
    json_.field("full", lane.items <= budget);
    json_.open_line_array("levels");
    if (lane.items > kSparseItems)
      write_merged(lane, budget);
    if (lane.items <= budget)
      write_items(lane);
    json_.close();
    json_.close();
  }

  void write_merged(const TimelineLane& lane, std::uint64_t budget) {
    std::array<std::uint64_t, kLevels> counts{};
    std::vector<Merger> mergers;
    for (const double resolution_ns : resolutions_ns_)
      mergers.emplace_back(resolution_ns);
    visit_blocks(lane, [&](const TimelineItem&, const Block& block) {
      for (std::size_t i = 0; i < kLevels; ++i)
        mergers[i].add(block, [&](const Block&) { ++counts[i]; });
    });
    const bool has_items = lane.items <= budget;
    for (std::size_t i = 0; i < kLevels; ++i) {
      // With the items, a level has to be clearly smaller than they are; without them, any level
      // that fits is worth it.
      bool is_useful = counts[i] <= budget;
      if (has_items)
        is_useful = counts[i] < lane.items / 3;
      if (i > 0 && !is_useful)
        break;
      json_.open_line_object();
      json_.field("r", resolutions_ns_[i]);
      json_.open_line_array("chunks");
      Chunks chunks(json_, session_.begin_ns);
      Merger merger(resolutions_ns_[i]);
      const auto emit = [&](const Block& block) {
        const auto span =
            static_cast<double>(std::max<std::int64_t>(block.end_ns - block.start_ns, 1));
        chunks.add(block, block.count, static_cast<double>(block.busy_ns) * 100 / span);
      };
      visit_blocks(lane, [&](const TimelineItem&, const Block& block) { merger.add(block, emit); });
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
    visit_blocks(lane, [&](const TimelineItem& item, const Block& block) {
      if (!lane.is_stream()) {
        constexpr int kCallFlag = 1, kOpenFlag = 2;
        int flags = 0;
        if (item.kind == ItemKind::kCall)
          flags |= kCallFlag;
        if (item.open)
          flags |= kOpenFlag;
        chunks.add(block, flags);
        return;
      }
      if (item.launch == kNone)
        return chunks.add(block, 0);
      const model::Launch& launch = session_.launches[item.launch];
      const std::uint32_t launch_lane = timeline_.lane_of_thread(launch.thread);
      if (launch_lane == kNone)
        return chunks.add(block, 0);
      chunks.add(block, launch_lane + 1, Chunks::zigzag(item.start_ns - launch.start_ns));
    });
    chunks.flush();
    json_.close();
    json_.close();
  }

  const model::Report& report_;
  const model::Session& session_;
  JsonWriter& json_;
  Timeline timeline_;
  RegionFinder region_finder_;
  ItemNames names_;
  std::array<double, kLevels> resolutions_ns_{};
};

}  // namespace

void write_html_timeline(const model::Report& report,
                         const model::Session& session,
                         JsonWriter& json,
                         std::uint64_t max_items) {
  TimelineWriter(report, session, json).write(max_items);
}

}  // namespace rangescope::report
