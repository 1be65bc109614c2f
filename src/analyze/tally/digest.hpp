// What remains of a capture when a rank's run ends: as much as the report of its job needs, in a
// few hundred KiB.
//
// merge() makes one digest of two, and a thousand merged are the job. Everything that adds up is an
// integer, and what does not (the ranks themselves, their processes, calls of collectives) is
// listed, so that merging in any order and grouping, on one machine or as a tree over many, gives
// the same report to the digit.
//
// Regions are in the order parents first; all indexes point into the same digest. Times are UTC in
// nanoseconds since 1970 by the rank's own clock. The file is described in docs/formats/digest.md.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/ranks/collectives.hpp"
#include "analyze/ranks/rank_work.hpp"
#include "analyze/statistics/stretches.hpp"
#include "analyze/statistics/sums.hpp"
#include "analyze/tally/memory/memory.hpp"
#include "model/gpu.hpp"
#include "model/loss.hpp"
#include "model/range.hpp"
#include "model/report.hpp"
#include "model/session.hpp"
#include "model/sketch.hpp"

namespace rangescope::analyze::tally {

using model::kGpuCounts;
using model::kGpuTimes;
using model::kNone;
using model::kRelativeError;
using model::Moments;
using model::Sketch;
using model::UnsignedWide;
using model::Wide;

/// Bins as a file has them, checked: they are only taken apart where they are added. Valid as long
/// as the file's bytes.
struct PackedBins {
  const std::uint8_t* pairs =
      nullptr;              ///< a byte each: empty ones before it, and above them its count less 1
  std::string_view excess;  ///< begins with what is above 15 of halves; empty: nothing is
  std::uint32_t used = 0, first = 0, end = 0;
};

/// A distribution as a file has it.
struct Packed {
  Moments moments;
  PackedBins bins;

  void clear() { *this = {}; }
};

struct Distribution : model::Distribution {
  using model::Distribution::add;
  void add(const Packed& other);
  bool operator==(const Distribution&) const = default;
};

/// A capture with more of them has no digest: its names are to be folded.
inline constexpr std::size_t kMostRegions = 50000, kMostKernels = 50000;

/// Its texts are names.
struct CountedProcess : model::Process {
  std::uint64_t ranges = 0, kernels = 0;
};

struct Copies {
  model::CopyKind kind = model::CopyKind::kUnknown;
  std::int64_t calls = 0, bytes = 0, ns = 0;
};

template <class D>
struct KernelSumOf {
  std::uint32_t name = 0;  ///< index into Digest::kernels
  D duration;
};

/// GPU work of a region, of the whole job, or of what lies outside all ranges.
struct GpuFacts {
  /// The counts and sums of model::GpuWork, in the order of kGpuCounts and kGpuTimes.
  std::array<std::int64_t, 10> counts{};
  std::array<std::int64_t, 12> times{};
  bool partial = false;
  std::vector<Copies> copies;  ///< by kind
};

template <class D>
struct GpuOf : GpuFacts {
  std::vector<KernelSumOf<D>> kernels;  ///< launched in this region and not in one below; by name
  D latency;                            ///< the same kernels'; empty where calls were not recorded
  /// Per occurrence, children included; nothing: that of the one kernel, or, without kernels, of no
  /// occurrences.
  std::optional<D> kernel_ns;
  std::optional<D> busy_ns;  ///< so too; nothing: the same

  [[nodiscard]] const D& kernel() const {
    static const D none;
    if (kernel_ns)
      return *kernel_ns;
    return kernels.empty() ? none : kernels.front().duration;
  }
  [[nodiscard]] const D& busy() const { return busy_ns ? *busy_ns : kernel(); }
};

using KernelSum = KernelSumOf<Distribution>;
using Gpu = GpuOf<Distribution>;

/// What does not depend on where distributions are kept.
struct RegionFacts : ByRank {
  std::uint32_t parent = kNone, domain = 0, name = 0;  ///< a region before this one; names
  model::RangeKind kind = model::RangeKind::kPushPop;
  bool module = false;  ///< as in model::Range
  std::int64_t first_start_ns = 0;
  std::int64_t occurrences = 0, unclosed = 0, threads = 0, processes = 0, replayed = 0;
  std::int64_t inclusive_ns = 0, open_ns = 0, exclusive_ns = 0, profiler_ns = 0, recording_ns = 0;
  std::int64_t settled_min = 0, settled_max = 0;
  std::int64_t warm_ups = 0, warm_up_ns = 0, longest_ns = 0;
  std::int64_t settled_busy_ns = kUnknown;  ///< unknown where GPU work was not recorded
  PartSums of_processes;  ///< how long it was open; numbered by rank << 32 | process of that rank
  PartSums of_threads;    ///< of the one process; numbered by tid
};

struct NotInReports {};

/// The numbers of a region: field, how those of two ranks become one, what a file expects it to be,
/// and where it is in a model::Region, its WallTime or Steady. The one list for making, merging,
/// files and reports.
template <class Visit>
[[gnu::always_inline]] inline void visit_numbers(Visit&& visit) {
  constexpr auto longer = [](std::int64_t a, std::int64_t b) { return std::max(a, b); };
  constexpr auto zero = [](const auto&) { return std::int64_t{0}; };
  constexpr auto one_of_it = [](const auto&) { return std::int64_t{1}; };
  constexpr auto closed = [](const auto& r) { return static_cast<std::int64_t>(r.wall.moments.n); };
  constexpr auto sum = [](const auto& r) { return static_cast<std::int64_t>(r.wall.moments.sum); };
  constexpr auto unsettled = [](const auto& r) {
    return static_cast<std::int64_t>(r.unsettled.moments.n);
  };
  constexpr auto unsettled_sum = [](const auto& r) {
    return static_cast<std::int64_t>(r.unsettled.moments.sum);
  };
  constexpr auto longest = [](const auto& r) { return r.unsettled.moments.max; };
  constexpr auto inclusive = [](const auto& r) { return r.inclusive_ns; };
  constexpr auto profiler = [](const auto& r) { return r.profiler_ns; };
  using model::Steady, model::WallTime;
  visit(&RegionFacts::occurrences, plus, closed, &model::Region::occurrences);
  visit(&RegionFacts::unclosed, plus, zero, &model::Region::unclosed);
  visit(&RegionFacts::threads, plus, one_of_it, &model::Region::threads);
  visit(&RegionFacts::processes, plus, one_of_it, &model::Region::processes);
  visit(&RegionFacts::replayed, plus, zero, NotInReports{});
  visit(&RegionFacts::inclusive_ns, plus, sum, &WallTime::inclusive_ns);
  visit(&RegionFacts::open_ns, longer, inclusive, &WallTime::open_ns);  // ranks run side by side
  visit(&RegionFacts::exclusive_ns, plus, inclusive, &WallTime::exclusive_ns);
  visit(&RegionFacts::profiler_ns, plus, zero, &WallTime::profiler_ns);
  visit(&RegionFacts::recording_ns, plus, profiler, &WallTime::recording_ns);
  visit(&RegionFacts::warm_ups, plus, unsettled, &Steady::left_out);
  visit(&RegionFacts::warm_up_ns, plus, unsettled_sum, &Steady::left_out_ns);
  visit(&RegionFacts::longest_ns, longer, longest, &Steady::longest_ns);
  visit(&RegionFacts::settled_busy_ns, plus, zero, NotInReports{});
}

template <class D>
struct RegionOf : RegionFacts {
  D wall;
  /// What of `wall` is not settled, by which the settled rest is known but for its ends.
  D unsettled;
  std::optional<GpuOf<D>> gpu;
};

/// As a file has it.
using PackedRegion = RegionOf<Packed>;

using Region = RegionOf<Distribution>;

/// To `into`: what ranks without GPU work have of a region.
void add_no_gpu(std::optional<Gpu>& into, const RegionFacts& of);

struct KernelTally {
  std::uint32_t name = 0, short_name = 0;  ///< names
  bool nccl = false;
  Distribution duration;
  struct Shape {
    model::KernelShape shape;
    std::uint64_t calls = 0;
  };
  std::vector<Shape> shapes;  ///< by shape
};

/// Stretches of other kernels during a call.
inline constexpr std::size_t kMostOtherKernels = 8;
/// Calls of collectives that a digest keeps of a rank; of more every second, fourth ... of each
/// communicator.
inline constexpr std::size_t kMostKeptCalls = 4096;

/// Collective calls of one rank on one communicator, every 2^shift-th of them, in their order.
struct Calls {
  std::uint32_t process = 0;
  bool nccl = false;
  std::uint64_t communicator = 0;  ///< 0: the library does not say
  std::uint32_t ranks = 0;         ///< of the communicator, 0 where unknown
  std::uint64_t made_calls = 0;    ///< all
  std::uint32_t shift = 0;
  struct Call {
    std::uint32_t name = 0, region = kNone;  ///< region: the innermost one of the program around it
    std::int64_t start_ns = 0, end_ns = 0;
    std::int64_t bytes = kUnknown;
    std::int64_t hidden_ns = kUnknown;  ///< while other kernels ran on the same GPU
    std::uint32_t context = kNone;      ///< index into Digest::contexts
    /// When those ran: [first_span, first_span + spans) of Calls::other_kernels.
    std::uint32_t first_span = 0, spans = 0;
  };
  std::vector<Call> calls;
  std::vector<Call> standing;  ///< that had not ended when recording did, which is their end here
  Spans other_kernels;         ///< from the begin of the call on, ascending
};

/// Sends and receives that a digest keeps of a rank; of more those by whose tag and number both
/// ends agree.
inline constexpr std::size_t kMostKeptEnds = 2048;

/// Calls of messages of one process, in the order of their begins.
struct Messaging {
  std::uint32_t process = 0;
  std::uint32_t shift = 0;  ///< those ends are kept whose hash ends with so many zeros
  struct Communicator {
    bool nccl = false;
    std::uint64_t id = 0;
    std::uint32_t ranks = 0;
    std::int32_t self = analyze::CollectiveCall::kNobody;  ///< own rank in it
    auto operator<=>(const Communicator&) const = default;
  };
  std::vector<Communicator> communicators;  ///< of all calls
  struct Call : Calls::Call {
    std::uint32_t stream =
        kNone;  ///< of its kernels, calls of which are one where their times are; kNone: of a range
    std::uint32_t received = 0;  ///< receives that it completed
    std::uint32_t hashes = 0;    ///< different ones of the ends that it began or completed
  };
  std::vector<Call> calls;
  Spans other_kernels;  ///< as Calls::other_kernels
  struct End {
    std::uint32_t call = 0, done = kNone,
                  communicator = 0;  ///< began it; completed it; index into `communicators`
    bool sends = false;
    std::int32_t peer = 0, tag = 0;
    std::uint64_t ordinal = 0;  ///< of those of the rank, communicator, direction, peer and tag
  };
  std::vector<End> ends;

  /// The same at both ends.
  [[nodiscard]] static std::uint64_t hash(std::uint64_t communicator,
                                          std::int32_t tag,
                                          std::uint64_t ordinal);
  [[nodiscard]] std::uint64_t hash(const End& end) const {
    return hash(communicators[end.communicator].id, end.tag, end.ordinal);
  }
};

/// When ranges were open on a host: disjoint, ascending. Of more than kMostSpans the shortest gaps
/// are closed.
struct Open {
  std::uint32_t host = 0;  ///< a name
  Spans spans;
  std::int64_t closed_ns = 0;  ///< sum of the gaps that were closed
  std::int64_t waits_ns = 0;   ///< outside ranges, for counters

  void add(const Open& other);
};
inline constexpr std::size_t kMostSpans = 512;

/// Kernels of a rank whose pace is held against that of the others: those that take longest.
inline constexpr std::size_t kMostPaced = 1024;
/// Samples that are kept of a GPU's clock; of more, neighbours are averaged.
inline constexpr std::size_t kMostClockSamples = 256;

struct RankLoss {
  std::uint32_t rank = kNone;
  std::string kind, detail;  ///< kind: of model/loss_kinds.hpp; "": a note
  std::uint64_t count = 0;
  auto operator<=>(const RankLoss&) const = default;
};

struct Digest {
  std::vector<std::string> names{""};
  std::string tool;  ///< "rangescope 0.1.0"; of several the first in alphabetical order
  std::vector<std::string> sources;  ///< sorted
  std::int64_t begin_ns = 0, end_ns = 0;
  bool utc = true;                        ///< the clock's UTC time is known
  bool sampled = false, counted = false;  ///< captures also hold CPU samples; counters
  std::vector<CountedProcess> processes;
  std::vector<model::Device> devices;  ///< their texts are names
  std::vector<Region> regions;
  std::vector<KernelTally> kernels;
  std::optional<Gpu> total, unattributed;
  /// Innermost regions around calls, each list ascending: a call counts in them and in all above.
  std::vector<std::vector<std::uint32_t>> contexts;
  std::vector<Calls> collectives;
  std::vector<Messaging> messaging;
  std::vector<Open> open;         ///< by host
  std::vector<WorkOfRank> works;  ///< names of kernels are indexes into `kernels`, UUIDs are names
  std::vector<SampledClock> clocks;  ///< likewise
  std::vector<RankLoss> losses;
  std::vector<MemoryOfDevice> memory;             ///< of each process in its order
  std::vector<MemoryOfRegion> memory_of_regions;  ///< by region; of those with some
};

/// New places of what a digest's lists refer to by number; an empty one leaves them as they are.
struct Places {
  std::vector<std::uint32_t> names{}, processes{}, kernels{}, regions{}, contexts{};
};
/// Every number in it that is a place in another of its lists: the one list of them.
void renumber(Digest& digest, const Places& places);

/// The digest of all ranks of both, which are different ones. O(both) on average: a Merger spares
/// that where many come.
[[nodiscard]] Digest merge(const Digest& one, const Digest& two);

class Reading;  // analyze/tally/file.hpp

/// Merges one by one, and keeps the tables by which names and regions are found.
class Merger {
 public:
  Merger();
  Merger(Merger&&) noexcept;
  Merger& operator=(Merger&&) noexcept;
  ~Merger();
  void add(const Digest& from);
  /// Those that were opened, side by side: what a region has over all ranks is touched once for all
  /// of them. False: one is damaged, and nothing can be done with this Merger any more.
  [[nodiscard]] bool add(std::span<Reading> several);
  [[nodiscard]] Digest take();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Numbers of regions depth first, siblings in the order of `before(a, b)`.
template <class Before>
[[nodiscard]] std::vector<std::uint32_t> depth_first(const std::vector<Region>& regions,
                                                     Before before) {
  std::vector<std::vector<std::uint32_t>> below(regions.size() + 1);
  for (std::uint32_t region = 0; region < regions.size(); ++region) {
    const std::uint32_t parent = regions[region].parent;
    below[parent == kNone ? regions.size() : parent].push_back(region);
  }
  std::vector<std::uint32_t> order, waiting;
  const auto push = [&](std::vector<std::uint32_t>& list) {
    std::sort(list.begin(), list.end(), before);
    waiting.insert(waiting.end(), list.rbegin(), list.rend());
  };
  push(below.back());
  while (!waiting.empty()) {
    order.push_back(waiting.back());
    waiting.pop_back();
    push(below[order.back()]);
  }
  return order;
}

/// Puts everything into the one order that does not depend on merges: what write() does first.
[[nodiscard]] Digest in_order(Digest digest);

}  // namespace rangescope::analyze::tally
