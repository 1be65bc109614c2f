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

/// Lengths of occurrences that a digest keeps to compare ranks by: so many in all, and so many of
/// each region.
constexpr std::size_t kMostLengths = 16384, kFewestLengths = 8, kMostLengthsOfRegion = 1024;

std::int64_t whole(double value) {
  return std::isfinite(value) && std::abs(value) < 9e18 ? std::llround(value) : kUnknown;
}

/// Closes the shortest gaps.
void close_gaps(Spans& parts) {
  while (parts.size() > kMostBeside) {
    std::size_t least = 1;
    for (std::size_t i = 1; i < parts.size(); ++i)
      if (parts[i].first - parts[i - 1].second < parts[least].first - parts[least - 1].second)
        least = i;
    parts[least - 1].second = parts[least].second;
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(least));
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
    head();
    processes();
    regions();
    kernels();
    collectives();
    open();
    works();
    tally_memory(
        report_, regions_, [this](std::string_view text) { return name(text); }, out_);
    for (const model::Loss& loss : report_.losses)
      out_.losses.push_back({rank_, std::string(loss.kind.id()), loss.detail, loss.count});
    return std::move(out_);
  }

 private:
  std::uint32_t name(std::string_view text) {
    if (text.empty())
      return 0;
    const auto [at, added] =
        names_.try_emplace(std::string(text), static_cast<std::uint32_t>(out_.names.size()));
    if (added)
      out_.names.emplace_back(text);
    return at->second;
  }
  std::uint32_t name(model::StringId id) { return name(session_.strings.view(id)); }
  [[nodiscard]] std::int64_t utc(std::int64_t at) const { return plus(at, offset_); }

  void head() {
    out_.tool = base::tool_version();
    out_.sources = report_.run.sources;
    std::sort(out_.sources.begin(), out_.sources.end());
    out_.sources.erase(std::unique(out_.sources.begin(), out_.sources.end()), out_.sources.end());
    const model::Clock& clock = session_.clock;
    out_.utc = clock.anchor_unix_ns != 0;
    offset_ = out_.utc ? clock.anchor_unix_ns - clock.anchor_ns : 0;
    out_.begin_ns = utc(session_.begin_ns);
    out_.end_ns = utc(session_.end_ns);
    out_.sampled = !session_.cpu.samples.empty();
    out_.counted = !session_.measurements.empty() || !session_.samples.empty();
  }

  void processes() {
    std::map<std::uint32_t, std::uint32_t> of_rank;
    for (std::size_t p = 0; p < session_.processes.size(); ++p) {
      const model::Process& from = session_.processes[p];
      CountedProcess& process = out_.processes.emplace_back(CountedProcess{from});
      for (const auto text : {&model::Process::name, &model::Process::host, &model::Process::run})
        process.*text = name(from.*text);
      process.start_ns = utc(from.start_ns);
      process.end_ns = utc(from.end_ns);
      process.ranges = static_cast<std::uint64_t>(report_.processes[p].ranges);
      process.kernels = static_cast<std::uint64_t>(report_.processes[p].kernels);
      number_.push_back(static_cast<std::uint64_t>(from.rank) << 32 | of_rank[from.rank]++);
      if (from.rank != kNone && (rank_ == kNone || from.rank < rank_))
        rank_ = from.rank;
    }
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

  void regions() {
    const Regions of{session_, options_, tree_, details_.keys, details_.by_cell};
    const RankTimes times(of);
    const std::size_t most = std::clamp(
        kMostLengths / std::max<std::size_t>(1, regions_), kFewestLengths, kMostLengthsOfRegion);
    region_of_.assign(tree_.nodes.size(), kNone);
    for (std::uint32_t r = 0; r < regions_; ++r) {
      const analyze::RegionKey& key = details_.keys[r];
      const model::Region& from = report_.regions[r];
      const analyze::Node& node = tree_.nodes[key.node];
      region_of_[key.node] = r;
      Region region;
      region.parent = key.parent;
      region.domain = name(session_.domains[node.domain].name);
      region.name = name(node.name);
      region.kind = node.kind;
      region.module = node.module;
      region.first_start_ns = utc(node.first_start_ns);
      visit_numbers(
          [&](auto field, auto, auto, auto report) { take(from, report, region.*field); });
      for (const std::uint32_t cell : of.cells(r))
        region.replayed += tree_.cells[cell].replayed;
      static_cast<ByRank&>(region) = times.of(std::span(&r, 1), most);
      occurrences(occurrences_of(of, details_.phases, std::span(&r, 1)), from, region);
      if (from.gpu)
        region.gpu = gpu(*from.gpu);
      if (region.gpu)
        gpu_occurrences(of, r, *region.gpu);
      out_.regions.push_back(std::move(region));
    }
  }

  static void take(const model::Region& from, std::int64_t model::Region::*at, std::int64_t& to) {
    to = from.*at;
  }
  static void take(const model::Region& from, double model::WallTime::*at, std::int64_t& to) {
    to = whole(from.wall.*at);
  }
  template <class T>
  static void take(const model::Region& from, T model::Steady::*at, std::int64_t& to) {
    if (from.steady)
      to = whole(static_cast<double>((*from.steady).*at));
  }
  static void take(const model::Region&, NotInReports, std::int64_t&) {}

  /// As add_occurrences() does: where counters slowed some, the distribution is of the others.
  void occurrences(const Occurrences& of, const model::Region& from, Region& region) const {
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
    const bool unknown = session_.unrecorded.kernels || session_.unrecorded.copies;
    // All work on the GPUs of the process, as Steady::busy_share has it.
    const bool busy = from.steady && from.steady->busy_share;
    region.settled_busy_ns =
        unknown ? kUnknown
        : busy  ? std::llround(*from.steady->busy_share * from.steady->wall_total_ns)
                : 0;
    for (const auto& [process, ns] : of.of_process)
      if (process < number_.size())
        region.of_processes.add(number_[process], ns);
    for (const auto& [tid, ns] : of.of_thread)
      region.of_threads.add(tid, ns);
  }

  static Gpu gpu(const model::GpuWork& from) {
    Gpu out;
    out.kernel_ns.emplace();
    for (std::size_t i = 0; i < kGpuCounts.size(); ++i)
      out.counts[i] = from.*kGpuCounts[i] < 0 ? kUnknown : from.*kGpuCounts[i];
    for (std::size_t i = 0; i < kGpuTimes.size(); ++i)
      out.times[i] = whole(from.*kGpuTimes[i]);
    out.partial = from.partial;
    for (const model::CopyRow& row : from.copies_by_kind)
      out.copies.push_back({row.kind, row.calls, whole(row.bytes), whole(row.total_ns)});
    return out;
  }

  void gpu_occurrences(const Regions& of, std::size_t r, Gpu& gpu) const {
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

  void kernels() {
    if (report_.total)
      out_.total = gpu(*report_.total);
    if (report_.unattributed)
      out_.unattributed = gpu(*report_.unattributed);
    const analyze::KernelGroups& groups = details_.gpu.groups;
    for (const analyze::KernelGroups::ShownKernel& from : groups.names) {
      const model::KernelName& known = session_.kernel_names[from.kernel_name];
      out_.kernels.push_back(
          {name(analyze::shown_name(known)), name(known.short_name), from.nccl, {}, {}});
    }
    groups.wide ? add_groups(groups.times64) : add_groups(groups.times32);
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
        Gpu* gpu = entry.region == sets.total_region && out_.total ? &*out_.total
                   : entry.region == sets.unattributed_region && out_.unattributed
                       ? &*out_.unattributed
                   : entry.region < out_.regions.size() && entry.exclusive &&
                           out_.regions[entry.region].gpu
                       ? &*out_.regions[entry.region].gpu
                       : nullptr;
        if (gpu == nullptr)
          continue;
        gpu->latency.add(latency);
        if (entry.region == sets.total_region)
          continue;  // Digest::kernels has them
        const auto at = std::find_if(gpu->kernels.begin(),
                                     gpu->kernels.end(),
                                     [&](const KernelSum& sum) { return sum.name == group.name; });
        if (at == gpu->kernels.end())
          gpu->kernels.push_back({group.name, duration});
        else
          at->duration.add(duration);
      }
    }
    for (std::size_t k = 0; k < shapes.size(); ++k)
      for (const auto& [shape, calls] : shapes[k])
        out_.kernels[k].shapes.push_back({shape, calls});
  }

  void collectives() {
    const CollectiveCalls of_one = details_.calls ? CollectiveCalls{} : find_collectives(session_);
    const CollectiveCalls& found = details_.calls ? *details_.calls : of_one;
    const Surroundings around(session_, options_, tree_, found);
    const auto rank_of = [&](const analyze::CollectiveCall& call) {
      return session_.processes[call.process].rank;
    };
    std::vector<std::pair<std::size_t, std::size_t>> runs;  // of one communicator and rank
    for (std::size_t i = 0; i < found.calls.size(); ++i) {
      const analyze::CollectiveCall &one = found.calls[i],
                                    &before = found.calls[i == 0 ? 0 : i - 1];
      if (i == 0 || one.communicator != before.communicator || rank_of(one) != rank_of(before))
        runs.emplace_back(i, i);
      runs.back().second = i + 1;
    }
    const std::size_t most =
        std::max<std::size_t>(1, kMostKeptCalls / std::max<std::size_t>(1, runs.size()));
    for (const auto& [first, last] : runs) {
      const analyze::Communicator& communicator =
          found.communicators[found.calls[first].communicator];
      Calls calls{found.calls[first].process,
                  communicator.nccl,
                  communicator.id,
                  communicator.ranks,
                  last - first};
      calls.shift = shift_for(last - first, most);
      for (std::size_t i = first; i < last; i += std::size_t{1} << calls.shift)
        fill(calls.calls.emplace_back(), found.calls[i], around, i, calls.beside);
      out_.collectives.push_back(std::move(calls));
    }
    for (std::size_t i = 0; i < found.standing.size(); ++i) {
      const analyze::CollectiveCall& call = found.standing[i];
      const analyze::Communicator& communicator = found.communicators[call.communicator];
      const auto same =
          std::find_if(out_.collectives.begin(), out_.collectives.end(), [&](const Calls& calls) {
            return calls.process == call.process && calls.nccl == communicator.nccl &&
                   calls.communicator == communicator.id;
          });
      Calls& calls =
          same != out_.collectives.end()
              ? *same
              : out_.collectives.emplace_back(
                    Calls{call.process, communicator.nccl, communicator.id, communicator.ranks});
      fill(calls.standing.emplace_back(),
           call,
           around,
           around.around.size() - found.standing.size() + i,
           calls.beside);
    }
    messages(found, around);
  }

  void messages(const analyze::CollectiveCalls& found, const Surroundings& around) {
    using CollectiveCall = analyze::CollectiveCall;
    struct All {
      Messaging made;
      std::map<std::uint32_t, std::uint32_t> communicators;
      std::vector<std::uint64_t>
          hashes;  ///< of made.ends, whose calls are still those of found.messaging
    };
    std::map<std::uint32_t, All> of_process;
    std::map<std::tuple<std::uint32_t, std::uint32_t, bool, std::int32_t, std::int32_t>,
             std::uint64_t>
        ordinals;
    // Calls that share a kernel are one.
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::int64_t, std::int64_t>, std::uint32_t>
        groups;
    std::vector<std::uint32_t> one_of(found.messaging.size());
    std::vector<std::set<std::uint64_t>> hashes(found.messaging.size());
    for (std::uint32_t c = 0; c < found.messaging.size(); ++c) {
      const CollectiveCall& call = found.messaging[c];
      one_of[c] =
          call.stream == kNone
              ? c
              : groups.try_emplace({call.process, call.stream, call.start_ns, call.end_ns}, c)
                    .first->second;
    }
    for (std::uint32_t c = 0; c < found.messaging.size(); ++c) {
      const CollectiveCall& call = found.messaging[c];
      All& all = of_process[call.process];
      const auto [at, added] = all.communicators.try_emplace(
          call.communicator, static_cast<std::uint32_t>(all.made.communicators.size()));
      const analyze::Communicator& known = found.communicators[call.communicator];
      if (added)
        all.made.communicators.push_back({known.nccl, known.id, known.ranks});
      if (call.self >= 0)
        all.made.communicators[at->second].self = call.self;
      if (call.operation == analyze::Operation::kWait)
        continue;
      for (const bool sends : {true, false}) {
        const CollectiveCall::End& end = sends ? call.to : call.from;
        if (end.rank <= CollectiveCall::kNobody)
          continue;
        const std::uint64_t ordinal = ordinals[{
            call.communicator, session_.processes[call.process].rank, sends, end.rank, end.tag}]++;
        all.made.ends.push_back({c, call.done, at->second, sends, end.rank, end.tag, ordinal});
        all.hashes.push_back(Messaging::hash(known.id, end.tag, ordinal));
        hashes[one_of[c]].insert(all.hashes.back());
        if (call.done != kNone)
          hashes[one_of[call.done]].insert(all.hashes.back());
      }
    }
    for (auto& [process, all] : of_process) {
      Messaging& made = all.made;
      made.process = process;
      const auto kept = [&list = all.hashes](std::uint32_t shift) {
        return static_cast<std::size_t>(
            std::count_if(list.begin(), list.end(), [&](std::uint64_t hash) {
              return (hash & ((1ull << shift) - 1)) == 0;
            }));
      };
      // Ends of one hash go together: rather some more than none.
      const std::size_t most = std::max<std::size_t>(1, kMostKeptEnds / of_process.size());
      while (made.shift < 31 && kept(made.shift) > most &&
             (kept(made.shift + 1) > 0 || kept(made.shift) > 8 * most))
        ++made.shift;
      std::map<std::uint32_t, std::uint32_t> place;
      std::size_t ends = 0;
      for (std::size_t i = 0; i < made.ends.size(); ++i) {
        if ((all.hashes[i] & ((1ull << made.shift) - 1)) != 0)
          continue;
        place[made.ends[i].call] = 0;
        if (made.ends[i].done != kNone)
          place[made.ends[i].done] = 0;
        made.ends[ends++] = made.ends[i];
      }
      made.ends.resize(ends);
      for (auto& [c, number] : place) {
        number = static_cast<std::uint32_t>(made.calls.size());
        const CollectiveCall& call = found.messaging[c];
        Messaging::Call& one = made.calls.emplace_back();
        fill(one, call, around, found.calls.size() + c, made.beside);
        one.stream = call.stream;
        one.received = call.received;
        one.hashes = static_cast<std::uint32_t>(hashes[one_of[c]].size());
      }
      for (Messaging::End& end : made.ends) {
        end.call = place[end.call];
        if (end.done != kNone)
          end.done = place[end.done];
      }
      out_.messaging.push_back(std::move(made));
    }
  }

  void fill(Calls::Call& into,
            const analyze::CollectiveCall& call,
            const Surroundings& surroundings,
            std::size_t at,
            Spans& beside) {
    const Around& around = surroundings.around[at];
    into.name = name(call.name);
    into.region = around.path == kNone ? kNone : region_of_[around.path];
    into.start_ns = utc(call.start_ns);
    into.end_ns = utc(call.end_ns);
    into.bytes = whole(call.bytes);
    into.hidden_ns = whole(around.hidden_ns);
    into.context = context(surroundings.contexts[around.context]);
    into.beside = static_cast<std::uint32_t>(beside.size());
    if (const Stretches* kernels = surroundings.other_kernels(call.process, call.stream);
        kernels != nullptr) {
      Spans parts = kernels->parts(call.start_ns, call.end_ns);
      close_gaps(parts);
      into.parts = static_cast<std::uint32_t>(parts.size());
      beside.insert(beside.end(), parts.begin(), parts.end());
    }
  }

  std::uint32_t context(const std::vector<std::uint32_t>& cells) {
    std::vector<std::uint32_t> regions;
    for (const std::uint32_t cell : cells)
      if (const std::uint32_t region = region_of_[tree_.cells[cell].node]; region != kNone)
        regions.push_back(region);
    std::sort(regions.begin(), regions.end());
    regions.erase(std::unique(regions.begin(), regions.end()), regions.end());
    const auto [at, added] =
        contexts_.try_emplace(regions, static_cast<std::uint32_t>(out_.contexts.size()));
    if (added)
      out_.contexts.push_back(std::move(regions));
    return at->second;
  }

  void open() {
    Open one;
    for (const model::OpenSpan& span : session_.open_spans)
      one.closed_ns = plus(one.closed_ns, span.between_ns);
    if (!session_.processes.empty())
      one.host = name(session_.processes.front().host);
    for (const model::CounterWait& wait : session_.counter_waits)
      if (wait.path.size() == 1)
        one.waits_ns += wait.ns;
    analyze::Spans spans = analyze::top_spans(session_, tree_);
    for (auto& [start, end] : spans) {
      start = utc(start);
      end = end == model::kOpen ? INT64_MAX : std::max(start, utc(end));
    }
    std::sort(spans.begin(), spans.end());
    Open all;
    all.spans = std::move(spans);
    one.add(all);  // disjoint
    if (one.spans.size() > kMostSpans)
      close(one);
    out_.open.push_back(std::move(one));
  }

  static void close(Open& open) {
    std::vector<std::int64_t> gaps;
    for (std::size_t i = 1; i < open.spans.size(); ++i)
      gaps.push_back(open.spans[i].first - open.spans[i - 1].second);
    const auto keep = gaps.begin() + static_cast<std::ptrdiff_t>(kMostSpans - 1);
    std::nth_element(gaps.begin(), keep, gaps.end(), std::greater<>());
    const std::int64_t longest = *keep;  // of those that are closed
    Spans fewer{open.spans.front()};
    for (std::size_t i = 1; i < open.spans.size(); ++i) {
      const std::int64_t gap = open.spans[i].first - fewer.back().second;
      if (gap > longest) {
        fewer.push_back(open.spans[i]);
        continue;
      }
      open.closed_ns += gap;
      fewer.back().second = open.spans[i].second;
    }
    open.spans = std::move(fewer);
  }

  void works() {
    Works works = works_of(session_, report_, [&](std::string_view text) { return name(text); });
    std::map<std::uint32_t, std::uint32_t> kernel_of;  // by name
    for (std::uint32_t k = 0; k < out_.kernels.size(); ++k)
      kernel_of[out_.kernels[k].name] = k;
    for (WorkOfRank& work : works.ranks) {
      work.kernel_threads = std::min(work.kernel_threads, 1e29);
      for (WorkOfRank::Gpu& gpu : work.gpus)
        gpu.first_ns = utc(gpu.first_ns), gpu.last_ns = utc(gpu.last_ns);
      std::erase_if(work.paced,
                    [&](const auto& kernel) { return !kernel_of.contains(kernel.name); });
      std::sort(work.paced.begin(), work.paced.end(), [&](const auto& a, const auto& b) {
        if (a.ns != b.ns)
          return a.ns > b.ns;
        return std::tie(out_.names[a.name], a.size) < std::tie(out_.names[b.name], b.size);
      });
      for (WorkOfRank::Paced& kernel : work.paced)
        kernel.name = kernel_of[kernel.name];
      work.not_kept = work.paced.size() - std::min(work.paced.size(), kMostPaced);
      work.paced.resize(std::min(work.paced.size(), kMostPaced));
      out_.works.push_back(std::move(work));
    }
    for (const SampledClock& from : works.clocks) {
      SampledClock clock{
          from.process < out_.processes.size() ? from.process : kNone, from.uuid, from.limited, {}};
      const std::size_t step = (from.samples.size() + kMostClockSamples - 1) / kMostClockSamples;
      for (std::size_t i = 0; i < from.samples.size(); i += step) {
        double sum = 0;
        std::int64_t covered = 0;
        const std::size_t last = std::min(i + step, from.samples.size());
        for (std::size_t k = i; k < last; ++k) {
          sum += from.samples[k].value * static_cast<double>(from.samples[k].covered_ns);
          covered += from.samples[k].covered_ns;
        }
        if (covered > 0)
          clock.samples.push_back(
              {utc(from.samples[i].start_ns),
               utc(from.samples[last - 1].end_ns),
               covered,
               step == 1 ? from.samples[i].value : sum / static_cast<double>(covered)});
      }
      if (!clock.samples.empty())
        out_.clocks.push_back(std::move(clock));
    }
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
