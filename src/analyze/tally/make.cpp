#include "analyze/tally/make.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "analyze/ranks/communication.hpp"
#include "analyze/ranks/rank_work.hpp"
#include "analyze/tree/recording.hpp"
#include "base/version.hpp"

namespace rangescope::analyze::tally {
namespace {

using model::Session;

/// Lengths of occurrences that a digest keeps to compare ranks by: in all, and of each region.
constexpr std::size_t kMostLengths = 16384, kFewestLengths = 8, kMostLengthsOfRegion = 1024;

std::int64_t whole(double value) {
  const bool has_integer = std::isfinite(value) && std::abs(value) < 9e18;
  if (!has_integer)
    return kUnknown;
  return std::llround(value);
}

/// Closes the shortest gaps.
void close_gaps(Spans& spans) {
  const auto gap_before = [&](std::size_t i) { return spans[i].first - spans[i - 1].second; };
  while (spans.size() > kMostOtherKernels) {
    std::size_t shortest = 1;
    for (std::size_t i = 1; i < spans.size(); ++i)
      if (gap_before(i) < gap_before(shortest))
        shortest = i;
    spans[shortest - 1].second = spans[shortest].second;
    spans.erase(spans.begin() + static_cast<std::ptrdiff_t>(shortest));
  }
}

class Maker {
 public:
  Maker(const Session& session,
        const analyze::Options& options,
        const analyze::Details& details,
        const model::Report& report,
        std::size_t regions)
      : session_(session),
        options_(options),
        details_(details),
        tree_(details.tree),
        report_(report),
        regions_(regions) {}

  Digest run() {
    describe_run();
    add_processes();
    add_devices();
    add_regions();
    add_kernels();
    add_collectives();
    add_open_time();
    add_works();
    const auto name_of = [this](std::string_view text) { return name(text); };
    tally_memory(report_, regions_, name_of, out_);
    for (const model::Loss& loss : report_.losses)
      out_.losses.push_back({rank_, std::string(loss.kind.id()), loss.detail, loss.count});
    return std::move(out_);
  }

 private:
  std::uint32_t name(std::string_view text) {
    if (text.empty())
      return 0;
    const auto [entry, is_new] =
        names_.try_emplace(std::string(text), static_cast<std::uint32_t>(out_.names.size()));
    if (is_new)
      out_.names.emplace_back(text);
    return entry->second;
  }
  std::uint32_t name(model::StringId id) { return name(session_.strings.view(id)); }
  [[nodiscard]] std::int64_t utc(std::int64_t time_ns) const { return plus(time_ns, offset_); }

  void describe_run() {
    out_.tool = base::tool_version();
    out_.sources = report_.run.sources;
    std::sort(out_.sources.begin(), out_.sources.end());
    out_.sources.erase(std::unique(out_.sources.begin(), out_.sources.end()), out_.sources.end());
    const model::Clock& clock = session_.clock;
    out_.utc = clock.anchor_unix_ns != 0;
    if (out_.utc)
      offset_ = clock.anchor_unix_ns - clock.anchor_ns;
    out_.begin_ns = utc(session_.begin_ns);
    out_.end_ns = utc(session_.end_ns);
    out_.sampled = !session_.cpu.samples.empty();
    out_.counted = !session_.measurements.empty() || !session_.samples.empty();
  }

  void add_processes() {
    std::map<std::uint32_t, std::uint32_t> of_rank;
    for (std::size_t p = 0; p < session_.processes.size(); ++p) {
      const model::Process& recorded = session_.processes[p];
      CountedProcess& process = out_.processes.emplace_back(CountedProcess{recorded});
      process.name = name(recorded.name);
      process.host = name(recorded.host);
      process.run = name(recorded.run);
      process.start_ns = utc(recorded.start_ns);
      process.end_ns = utc(recorded.end_ns);
      process.ranges = static_cast<std::uint64_t>(report_.processes[p].ranges);
      process.kernels = static_cast<std::uint64_t>(report_.processes[p].kernels);
      const std::uint32_t rank = recorded.rank;
      number_.push_back(static_cast<std::uint64_t>(rank) << 32 | of_rank[rank]++);
      if (rank != kNone && (rank_ == kNone || rank < rank_))
        rank_ = rank;
    }
  }

  void add_devices() {
    for (std::size_t i = 0; i < report_.devices.size(); ++i) {
      model::Device device = report_.devices[i];
      device.name = name(report_.device_names[i]);
      device.uuid = name(report_.device_uuids[i]);
      device.pci_bus = device.chip = 0;
      if (device.process >= out_.processes.size())
        device.process = kNone;
      out_.devices.push_back(device);
    }
  }

  void add_regions() {
    const Regions of{session_, options_, tree_, details_.keys, details_.by_cell};
    const RankTimes times(of);
    const std::size_t even_share = kMostLengths / std::max<std::size_t>(1, regions_);
    const std::size_t max_lengths = std::clamp(even_share, kFewestLengths, kMostLengthsOfRegion);
    region_of_.assign(tree_.nodes.size(), kNone);
    for (std::uint32_t r = 0; r < regions_; ++r) {
      const model::Region& reported = report_.regions[r];
      region_of_[details_.keys[r].node] = r;
      Region region = described_region(details_.keys[r], reported);
      for (const std::uint32_t cell : of.cells(r))
        region.replayed += tree_.cells[cell].replayed;
      const std::span<const std::uint32_t> members(&r, 1);
      static_cast<ByRank&>(region) = times.of(members, max_lengths);
      add_occurrences(occurrences_of(of, details_.phases, members), reported, region);
      if (reported.gpu) {
        region.gpu = gpu_of_report(*reported.gpu);
        add_gpu_occurrences(of, r, *region.gpu);
      }
      out_.regions.push_back(std::move(region));
    }
  }

  Region described_region(const analyze::RegionKey& key, const model::Region& reported) {
    const analyze::Node& node = tree_.nodes[key.node];
    Region region;
    region.parent = key.parent;
    region.domain = name(session_.domains[node.domain].name);
    region.name = name(node.name);
    region.kind = node.kind;
    region.module = node.module;
    region.first_start_ns = utc(node.first_start_ns);
    visit_numbers(
        [&](auto field, auto, auto, auto report) { take(reported, report, region.*field); });
    return region;
  }

  static void take(const model::Region& from,
                   std::int64_t model::Region::*field,
                   std::int64_t& to) {
    to = from.*field;
  }
  static void take(const model::Region& from, double model::WallTime::*field, std::int64_t& to) {
    to = whole(from.wall.*field);
  }
  template <class T>
  static void take(const model::Region& from, T model::Steady::*field, std::int64_t& to) {
    if (from.steady)
      to = whole(static_cast<double>((*from.steady).*field));
  }
  static void take(const model::Region&, NotInReports, std::int64_t&) {}

  /// As analyze::add_occurrences(): where counters slowed some, the distribution is of the others.
  void add_occurrences(const Occurrences& of, const model::Region& from, Region& region) const {
    Distribution settled;
    settled.add(of.unlisted);
    for (const std::int64_t length : of.settled)
      settled.add(length);
    for (const std::int64_t length : of.warm_ups)
      region.unsettled.add(length);
    for (const std::int64_t length : of.slowed)
      if (!of.without_slowed(from.wall))
        region.unsettled.add(length);
    region.settled_min = settled.moments.min;
    region.settled_max = settled.moments.max;
    region.wall = std::move(settled);
    region.wall.add(region.unsettled);
    region.settled_busy_ns = settled_busy_ns(from);
    for (const auto& [process, ns] : of.of_process)
      if (process < number_.size())
        region.of_processes.add(number_[process], ns);
    for (const auto& [tid, ns] : of.of_thread)
      region.of_threads.add(tid, ns);
  }

  /// All work on the GPUs of the process, as Steady::busy_share has it.
  [[nodiscard]] std::int64_t settled_busy_ns(const model::Region& region) const {
    if (session_.unrecorded.kernels || session_.unrecorded.copies)
      return kUnknown;
    if (!region.steady || !region.steady->busy_share)
      return 0;
    return std::llround(*region.steady->busy_share * region.steady->wall_total_ns);
  }

  static Gpu gpu_of_report(const model::GpuWork& from) {
    Gpu out;
    out.kernel_ns.emplace();
    for (std::size_t i = 0; i < kGpuCounts.size(); ++i) {
      out.counts[i] = from.*kGpuCounts[i];
      if (out.counts[i] < 0)
        out.counts[i] = kUnknown;
    }
    for (std::size_t i = 0; i < kGpuTimes.size(); ++i)
      out.times[i] = whole(from.*kGpuTimes[i]);
    out.partial = from.partial;
    for (const model::CopyRow& row : from.copies_by_kind)
      out.copies.push_back({row.kind, row.calls, whole(row.bytes), whole(row.total_ns)});
    return out;
  }

  void add_gpu_occurrences(const Regions& of, std::size_t r, Gpu& gpu) const {
    gpu.busy_ns.emplace();
    if (session_.unrecorded.kernels)
      return;
    const OccurrenceWork work = occurrence_work(of, r, details_.gpu.busy, details_.gpu.paused);
    gpu.kernel_ns->add(work.without);
    for (const std::int64_t ns : work.kernel_ns)
      gpu.kernel_ns->add(ns);
    if (session_.unrecorded.copies)
      return;
    gpu.busy_ns->add(work.without);
    for (const std::int64_t ns : work.busy_ns)
      gpu.busy_ns->add(ns);
  }

  void add_kernels() {
    if (report_.total)
      out_.total = gpu_of_report(*report_.total);
    if (report_.unattributed)
      out_.unattributed = gpu_of_report(*report_.unattributed);
    const analyze::KernelGroups& groups = details_.gpu.groups;
    for (const analyze::KernelGroups::ShownKernel& shown : groups.names) {
      const model::KernelName& recorded = session_.kernel_names[shown.kernel_name];
      KernelTally& kernel = out_.kernels.emplace_back();
      kernel.name = name(analyze::shown_name(recorded));
      kernel.short_name = name(recorded.short_name);
      kernel.nccl = shown.nccl;
    }
    if (groups.wide)
      add_groups(groups.times64);
    else
      add_groups(groups.times32);
    for (Region& region : out_.regions)
      if (region.gpu)
        sort(*region.gpu);
    if (out_.unattributed)
      sort(*out_.unattributed);
  }

  static void sort(Gpu& gpu) { std::ranges::sort(gpu.kernels, {}, &KernelSum::name); }

  template <class T>
  void add_groups(const analyze::KernelTimes<T>& times) {
    const analyze::Sets& sets = details_.gpu.sets;
    std::vector<std::map<model::KernelShape, std::uint64_t>> shapes(out_.kernels.size());
    for (const analyze::Group& group : details_.gpu.groups.groups) {
      Distribution duration, latency;
      const bool launched = !group.graph && group.set != analyze::Sets::kNoLaunch;
      for (std::size_t i = group.begin; i < group.begin + group.calls; ++i) {
        duration.add(static_cast<std::int64_t>(times.duration[i]));
        if (launched)
          latency.add(static_cast<std::int64_t>(times.latency[i]));
      }
      out_.kernels[group.name].duration.add(duration);
      if (group.shape < session_.kernel_shapes.size())
        shapes[group.name][session_.kernel_shapes[group.shape]] += group.calls;
      for (const analyze::SetEntry& entry : sets.of(group.set)) {
        Gpu* gpu = gpu_of(entry, sets);
        if (gpu == nullptr)
          continue;
        gpu->latency.add(latency);
        if (entry.region != sets.total_region)  // Digest::kernels has those
          add_kernel(group.name, duration, *gpu);
      }
    }
    for (std::size_t k = 0; k < shapes.size(); ++k)
      for (const auto& [shape, calls] : shapes[k])
        out_.kernels[k].shapes.push_back({shape, calls});
  }

  static void add_kernel(std::uint32_t name, const Distribution& duration, Gpu& gpu) {
    const auto sum = std::ranges::find(gpu.kernels, name, &KernelSum::name);
    if (sum == gpu.kernels.end())
      gpu.kernels.push_back({name, duration});
    else
      sum->duration.add(duration);
  }

  /// The work that a kernel launched in an entry's region is added to: of a region its own kernels;
  /// null for none.
  Gpu* gpu_of(const analyze::SetEntry& entry, const analyze::Sets& sets) {
    if (entry.region == sets.total_region && out_.total)
      return &*out_.total;
    if (entry.region == sets.unattributed_region && out_.unattributed)
      return &*out_.unattributed;
    if (entry.region >= out_.regions.size() || !entry.exclusive)
      return nullptr;
    std::optional<Gpu>& gpu = out_.regions[entry.region].gpu;
    if (!gpu)
      return nullptr;
    return &*gpu;
  }

  void add_collectives() {
    if (details_.calls)
      add_collectives(*details_.calls);
    else
      add_collectives(find_collectives(session_));
  }

  void add_collectives(const CollectiveCalls& found) {
    const Surroundings surroundings(session_, options_, tree_, found);
    add_calls(found, surroundings);
    add_standing(found, surroundings);
    add_messaging(found, surroundings);
  }

  /// Calls of one communicator and rank follow one another: [first, last) of each.
  [[nodiscard]] std::vector<RankCalls> calls_by_rank(const CollectiveCalls& found) const {
    const auto owner = [&](std::size_t call) {
      const analyze::CollectiveCall& of_rank = found.calls[call];
      return std::pair(of_rank.communicator, session_.processes[of_rank.process].rank);
    };
    std::vector<RankCalls> ranks;
    for (std::size_t call = 0; call < found.calls.size(); ++call) {
      if (call == 0 || owner(call) != owner(call - 1))
        ranks.push_back({call, call});
      ranks.back().last = call + 1;
    }
    return ranks;
  }

  void add_calls(const CollectiveCalls& found, const Surroundings& surroundings) {
    const std::vector<RankCalls> ranks = calls_by_rank(found);
    const std::size_t even_share = kMostKeptCalls / std::max<std::size_t>(1, ranks.size());
    const std::size_t max_calls = std::max<std::size_t>(1, even_share);
    for (const auto& [first, last] : ranks) {
      Calls calls = calls_like(found.calls[first], found);
      calls.made_calls = last - first;
      calls.shift = shift_for(last - first, max_calls);
      for (std::size_t i = first; i < last; i += std::size_t{1} << calls.shift)
        fill(calls.calls.emplace_back(), found.calls[i], surroundings, i, calls.other_kernels);
      out_.collectives.push_back(std::move(calls));
    }
  }

  /// Those that had not ended, with the others of their process and communicator.
  void add_standing(const CollectiveCalls& found, const Surroundings& surroundings) {
    const std::size_t first = surroundings.around.size() - found.standing.size();
    for (std::size_t i = 0; i < found.standing.size(); ++i) {
      const analyze::CollectiveCall& call = found.standing[i];
      Calls& calls = add_or_find(calls_like(call, found));
      fill(calls.standing.emplace_back(), call, surroundings, first + i, calls.other_kernels);
    }
  }

  /// The calls of the digest with the process and communicator of `like`.
  Calls& add_or_find(Calls like) {
    for (Calls& calls : out_.collectives) {
      const bool is_same_library = calls.process == like.process && calls.nccl == like.nccl;
      if (is_same_library && calls.communicator == like.communicator)
        return calls;
    }
    return out_.collectives.emplace_back(std::move(like));
  }

  /// Without calls, of its process and communicator.
  static Calls calls_like(const analyze::CollectiveCall& call, const CollectiveCalls& found) {
    const analyze::Communicator& communicator = found.communicators[call.communicator];
    return Calls{call.process, communicator.nccl, communicator.id, communicator.ranks};
  }

  /// Calls of messages of a process on the way to a Messaging.
  struct MessagingOfProcess {
    Messaging messaging;  ///< its ends have calls of CollectiveCalls::messaging
    std::map<std::uint32_t, std::uint32_t> communicators;
    std::vector<std::uint64_t> hashes;  ///< of messaging.ends

    std::uint32_t add_communicator(std::uint32_t number, const analyze::Communicator& from) {
      const auto next = static_cast<std::uint32_t>(messaging.communicators.size());
      const auto [entry, is_new] = communicators.try_emplace(number, next);
      if (is_new)
        messaging.communicators.push_back({from.nccl, from.id, from.ranks});
      return entry->second;
    }

    [[nodiscard]] static bool is_kept(std::uint64_t hash, std::uint32_t shift) {
      return (hash & ((1ull << shift) - 1)) == 0;
    }

    [[nodiscard]] std::size_t kept_ends(std::uint32_t shift) const {
      return static_cast<std::size_t>(
          std::ranges::count_if(hashes, [&](std::uint64_t hash) { return is_kept(hash, shift); }));
    }

    /// Ends of one hash go together: rather some more than none.
    void choose_shift(std::size_t max_ends) {
      std::uint32_t& shift = messaging.shift;
      while (shift < 31 && kept_ends(shift) > max_ends) {
        const bool would_keep_none = kept_ends(shift + 1) == 0;
        if (would_keep_none && kept_ends(shift) <= 8 * max_ends)
          break;
        ++shift;
      }
    }

    /// Drops the other ends, and returns the calls of the kept ones.
    [[nodiscard]] std::map<std::uint32_t, std::uint32_t> keep_ends() {
      std::map<std::uint32_t, std::uint32_t> place_of_call;
      std::vector<Messaging::End> kept;
      for (std::size_t i = 0; i < messaging.ends.size(); ++i) {
        const Messaging::End& end = messaging.ends[i];
        if (!is_kept(hashes[i], messaging.shift))
          continue;
        place_of_call[end.call] = 0;
        if (end.done != kNone)
          place_of_call[end.done] = 0;
        kept.push_back(end);
      }
      messaging.ends = std::move(kept);
      return place_of_call;
    }
  };

  /// Of each call, the hashes of ends that it or another call with the same kernel began or
  /// completed.
  class HashesOfCalls {
   public:
    explicit HashesOfCalls(const std::vector<analyze::CollectiveCall>& calls)
        : representative_(calls.size()), hashes_(calls.size()) {
      using Group = std::tuple<std::uint32_t, std::uint32_t, std::int64_t, std::int64_t>;
      std::map<Group, std::uint32_t> groups;
      for (std::uint32_t index = 0; index < calls.size(); ++index) {
        const analyze::CollectiveCall& call = calls[index];
        representative_[index] = index;
        if (call.stream == kNone)
          continue;
        const Group group{call.process, call.stream, call.start_ns, call.end_ns};
        representative_[index] = groups.try_emplace(group, index).first->second;
      }
    }

    void add(std::uint32_t call, std::uint64_t hash) {
      hashes_[representative_[call]].insert(hash);
    }
    [[nodiscard]] std::uint32_t count(std::uint32_t call) const {
      return static_cast<std::uint32_t>(hashes_[representative_[call]].size());
    }

   private:
    std::vector<std::uint32_t> representative_;
    std::vector<std::set<std::uint64_t>> hashes_;
  };

  void add_messaging(const CollectiveCalls& found, const Surroundings& surroundings) {
    std::map<std::uint32_t, MessagingOfProcess> processes;
    HashesOfCalls hashes(found.messaging);
    add_ends(found, processes, hashes);
    for (auto& [process, of_process] : processes) {
      Messaging& messaging = of_process.messaging;
      messaging.process = process;
      const std::size_t even_share = kMostKeptEnds / processes.size();
      of_process.choose_shift(std::max<std::size_t>(1, even_share));
      std::map<std::uint32_t, std::uint32_t> place_of_call = of_process.keep_ends();
      for (auto& [index, place] : place_of_call) {
        place = static_cast<std::uint32_t>(messaging.calls.size());
        const analyze::CollectiveCall& call = found.messaging[index];
        Messaging::Call& kept = messaging.calls.emplace_back();
        fill(kept, call, surroundings, found.calls.size() + index, messaging.other_kernels);
        kept.stream = call.stream;
        kept.received = call.received;
        kept.hashes = hashes.count(index);
      }
      for (Messaging::End& end : messaging.ends) {
        end.call = place_of_call[end.call];
        if (end.done != kNone)
          end.done = place_of_call[end.done];
      }
      out_.messaging.push_back(std::move(messaging));
    }
  }

  void add_ends(const CollectiveCalls& found,
                std::map<std::uint32_t, MessagingOfProcess>& processes,
                HashesOfCalls& hashes) const {
    // Communicator, rank, is it a send, peer, tag.
    using Key = std::tuple<std::uint32_t, std::uint32_t, bool, std::int32_t, std::int32_t>;
    std::map<Key, std::uint64_t> ordinals;
    for (std::uint32_t index = 0; index < found.messaging.size(); ++index) {
      const analyze::CollectiveCall& call = found.messaging[index];
      const analyze::Communicator& communicator = found.communicators[call.communicator];
      MessagingOfProcess& of_process = processes[call.process];
      const std::uint32_t number = of_process.add_communicator(call.communicator, communicator);
      if (call.self >= 0)
        of_process.messaging.communicators[number].self = call.self;
      if (call.operation == analyze::Operation::kWait)
        continue;
      const std::uint32_t rank = session_.processes[call.process].rank;
      for (const bool is_send : {true, false}) {
        const analyze::CollectiveCall::End& end = is_send ? call.to : call.from;
        if (end.rank <= analyze::CollectiveCall::kNobody)
          continue;
        const Key key{call.communicator, rank, is_send, end.rank, end.tag};
        const std::uint64_t ordinal = ordinals[key]++;
        const std::uint64_t hash = Messaging::hash(communicator.id, end.tag, ordinal);
        of_process.messaging.ends.push_back(
            {index, call.done, number, is_send, end.rank, end.tag, ordinal});
        of_process.hashes.push_back(hash);
        hashes.add(index, hash);
        if (call.done != kNone)
          hashes.add(call.done, hash);
      }
    }
  }

  void fill(Calls::Call& into,
            const analyze::CollectiveCall& call,
            const Surroundings& surroundings,
            std::size_t number,
            Spans& other_kernels) {
    const Around& around = surroundings.around[number];
    into.name = name(call.name);
    if (around.path != kNone)
      into.region = region_of_[around.path];
    into.start_ns = utc(call.start_ns);
    into.end_ns = utc(call.end_ns);
    into.bytes = whole(call.bytes);
    into.hidden_ns = whole(around.hidden_ns);
    into.context = context(surroundings.contexts[around.context]);
    into.first_span = static_cast<std::uint32_t>(other_kernels.size());
    const Stretches* kernels = surroundings.other_kernels(call.process, call.stream);
    if (kernels == nullptr)
      return;
    Spans spans = kernels->parts(call.start_ns, call.end_ns);
    close_gaps(spans);
    into.spans = static_cast<std::uint32_t>(spans.size());
    other_kernels.insert(other_kernels.end(), spans.begin(), spans.end());
  }

  std::uint32_t context(const std::vector<std::uint32_t>& cells) {
    std::vector<std::uint32_t> regions;
    for (const std::uint32_t cell : cells) {
      const std::uint32_t region = region_of_[tree_.cells[cell].node];
      if (region != kNone)
        regions.push_back(region);
    }
    std::sort(regions.begin(), regions.end());
    regions.erase(std::unique(regions.begin(), regions.end()), regions.end());
    const auto [entry, is_new] =
        contexts_.try_emplace(regions, static_cast<std::uint32_t>(out_.contexts.size()));
    if (is_new)
      out_.contexts.push_back(std::move(regions));
    return entry->second;
  }

  void add_open_time() {
    Open of_host;
    for (const model::OpenSpan& span : session_.open_spans)
      of_host.closed_ns = plus(of_host.closed_ns, span.between_ns);
    if (!session_.processes.empty())
      of_host.host = name(session_.processes.front().host);
    for (const model::CounterWait& wait : session_.counter_waits)
      if (wait.path.size() == 1)
        of_host.waits_ns += wait.ns;
    analyze::Spans spans = analyze::top_spans(session_, tree_);
    for (auto& [start, end] : spans) {
      start = utc(start);
      if (end == model::kOpen)
        end = INT64_MAX;
      else
        end = std::max(start, utc(end));
    }
    std::sort(spans.begin(), spans.end());
    Open overlapping;
    overlapping.spans = std::move(spans);
    of_host.add(overlapping);  // disjoint
    if (of_host.spans.size() > kMostSpans)
      close(of_host);
    out_.open.push_back(std::move(of_host));
  }

  static void close(Open& open) {
    std::vector<std::int64_t> gaps;
    for (std::size_t i = 1; i < open.spans.size(); ++i)
      gaps.push_back(open.spans[i].first - open.spans[i - 1].second);
    const auto keep = gaps.begin() + static_cast<std::ptrdiff_t>(kMostSpans - 1);
    std::nth_element(gaps.begin(), keep, gaps.end(), std::greater<>());
    const std::int64_t longest_closed = *keep;
    Spans kept{open.spans.front()};
    for (std::size_t i = 1; i < open.spans.size(); ++i) {
      const std::int64_t gap = open.spans[i].first - kept.back().second;
      if (gap > longest_closed) {
        kept.push_back(open.spans[i]);
        continue;
      }
      open.closed_ns += gap;
      kept.back().second = open.spans[i].second;
    }
    open.spans = std::move(kept);
  }

  void add_works() {
    const auto name_of = [this](std::string_view text) { return name(text); };
    Works works = works_of(session_, report_, name_of);
    std::map<std::uint32_t, std::uint32_t> kernel_of_name;
    for (std::uint32_t k = 0; k < out_.kernels.size(); ++k)
      kernel_of_name[out_.kernels[k].name] = k;
    for (WorkOfRank& work : works.ranks) {
      work.kernel_threads = std::min(work.kernel_threads, 1e29);
      for (WorkOfRank::Gpu& gpu : work.gpus) {
        gpu.first_ns = utc(gpu.first_ns);
        gpu.last_ns = utc(gpu.last_ns);
      }
      keep_longest_kernels(kernel_of_name, work);
      out_.works.push_back(std::move(work));
    }
    for (const SampledClock& recorded : works.clocks) {
      SampledClock clock = thinned(recorded);
      if (!clock.samples.empty())
        out_.clocks.push_back(std::move(clock));
    }
  }

  void keep_longest_kernels(const std::map<std::uint32_t, std::uint32_t>& kernel_of_name,
                            WorkOfRank& work) const {
    std::vector<WorkOfRank::Paced>& kernels = work.paced;
    std::erase_if(kernels, [&](const WorkOfRank::Paced& kernel) {
      return !kernel_of_name.contains(kernel.name);
    });
    std::sort(kernels.begin(), kernels.end(), [&](const auto& a, const auto& b) {
      if (a.ns != b.ns)
        return a.ns > b.ns;
      return std::tie(out_.names[a.name], a.size) < std::tie(out_.names[b.name], b.size);
    });
    for (WorkOfRank::Paced& kernel : kernels)
      kernel.name = kernel_of_name.at(kernel.name);
    const std::size_t kept = std::min(kernels.size(), kMostPaced);
    work.not_kept = kernels.size() - kept;
    kernels.resize(kept);
  }

  /// The mean of neighbours where there are many samples.
  [[nodiscard]] SampledClock thinned(const SampledClock& recorded) const {
    SampledClock clock;
    clock.process = recorded.process;
    if (recorded.process >= out_.processes.size())
      clock.process = kNone;
    clock.uuid = recorded.uuid;
    clock.limited = recorded.limited;
    const auto& samples = recorded.samples;
    const std::size_t step = (samples.size() + kMostClockSamples - 1) / kMostClockSamples;
    for (std::size_t first = 0; first < samples.size(); first += step) {
      double sum = 0;
      std::int64_t covered_ns = 0;
      const std::size_t end = std::min(first + step, samples.size());
      for (std::size_t i = first; i < end; ++i) {
        sum += samples[i].value * static_cast<double>(samples[i].covered_ns);
        covered_ns += samples[i].covered_ns;
      }
      if (covered_ns <= 0)
        continue;
      double mean = sum / static_cast<double>(covered_ns);
      if (step == 1)
        mean = samples[first].value;
      clock.samples.push_back(
          {utc(samples[first].start_ns), utc(samples[end - 1].end_ns), covered_ns, mean});
    }
    return clock;
  }

  const Session& session_;
  const analyze::Options& options_;
  const analyze::Details& details_;
  const analyze::Tree& tree_;
  const model::Report& report_;
  std::size_t regions_;
  Digest out_;
  std::int64_t offset_ = 0;
  std::uint32_t rank_ = kNone;
  std::map<std::string, std::uint32_t> names_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> contexts_;
  std::vector<std::uint64_t> number_;  ///< of each process
  std::vector<std::uint32_t> region_of_;
};

}  // namespace

base::Result<Digest> digest_of(const Session& session, const analyze::Options& wanted) {
  analyze::Options options;
  options.per_process = false;
  options.push_pop_scope = wanted.push_pop_scope;
  options.domains = wanted.domains;
  options.threads = wanted.threads;
  options.top_kernels = 0;
  options.samples = 0;
  analyze::Details details;
  const model::Report report = TRY(analyze::analyze(session, options, details));
  return tally_of(session, options, details, report);
}

base::Result<Digest> tally_of(const Session& session,
                              const analyze::Options& options,
                              const analyze::Details& details,
                              const model::Report& report) {
  const auto regions = static_cast<std::size_t>(
      std::ranges::count_if(details.keys, &RegionKey::of_all));  // come first
  if (regions > kMostRegions || details.gpu.groups.names.size() > kMostKernels)
    return base::fail(base::Code::kUsage,
                      fmt::format("{} regions and {} kernels are too many for a digest",
                                  regions,
                                  details.gpu.groups.names.size()),
                      {},
                      "Give ranges fewer names, or record with --fold-names numbers");
  return Maker(session, options, details, report, regions).run();
}

}  // namespace rangescope::analyze::tally
