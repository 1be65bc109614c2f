// "RSDIGEST", version (u32), 0 (u32), bytes of the payload (u64), a zstd frame with a checksum;
// numbers little-endian.
//
// The payload is numbers of variable length (LEB128), signed ones with the sign in the lowest bit.
// What is usually equal to something before it is written as the difference; a group of fields has
// a mask of those that differ. One list of fields, visited by the writer and by the reader, is
// both: docs/formats/digest.md has it as a table.
#include "analyze/tally/file.hpp"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "analyze/tally/coding.hpp"
#include "analyze/tally/memory/coding.hpp"
#include "base/fs.hpp"

#include "base/owned.hpp"
#include "base/unpacked.hpp"

namespace rangescope::analyze::tally {
namespace coding {

constexpr std::string_view kMagic = "RSDIGEST";
constexpr std::size_t kHeader = 24;
constexpr std::string_view kUnfitting = "the digest is damaged: its contents are inconsistent";
constexpr std::uint32_t kDeepest = 1024;  // a recording's tree is never so deep
constexpr std::uint64_t kMore = 15;       // of four bits: a number follows with what is above
constexpr std::size_t kMostNames = 1 << 22;
constexpr std::size_t kMostList = 1 << 20;  // processes, devices, ranks of a region ...

/// Squares of the values less those of what they are above the least one, whose sum is `above`.
UnsignedWide squares_of_least(const Moments& m, UnsignedWide above) {
  const auto min = static_cast<UnsignedWide>(static_cast<Wide>(m.min));
  return min * (2 * above + min * m.n);
}

void visit(Writer& io, const Moments& m) {
  io.number(m.n);
  if (m.n == 0)
    return;
  io.near(m.min, 0);
  io.near(m.max, m.min);
  const auto above = static_cast<UnsignedWide>(m.sum - static_cast<Wide>(m.min) * m.n);
  io.wide(above);
  io.wide(m.squares - squares_of_least(m, above));
}

void visit(Reader& io, Moments& m) {
  m = {};
  m.n = io.number();
  if (m.n == 0)
    return;
  io.near(m.min, 0);
  io.near(m.max, m.min);
  UnsignedWide above = 0, squares = 0;
  io.wide(above);
  io.wide(squares);
  constexpr std::int64_t kLongest = std::int64_t{1} << 56;  // two years in nanoseconds
  io.check(m.n < std::uint64_t{1} << 48 && -kLongest < m.min && m.min <= m.max && m.max < kLongest);
  if (io.bad())
    return;
  io.check(above <= static_cast<UnsignedWide>(m.max - m.min) * m.n);
  m.sum = static_cast<Wide>(above) + static_cast<Wide>(m.min) * m.n;
  m.squares = squares + squares_of_least(m, above);
  if (io.bad())
    m = {};
}

void visit(Writer& io, const Distribution& d) {
  visit(io, d.moments);
  if (d.moments.n == 0)
    return;
  const auto& counts = d.sketch.counts();
  std::size_t used = 0, last = 0;
  for (const std::uint64_t count : counts)
    if (count > 0)
      ++used;
  io.number(used);
  std::string pairs;
  std::vector<std::uint64_t> excess;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0)
      continue;
    const std::uint64_t gap = pairs.empty() ? 0 : i - last - 1;
    const std::uint64_t above = counts[i] - 1;
    if (pairs.empty())
      io.number(d.sketch.first() + i);
    pairs.push_back(static_cast<char>(std::min(gap, kMore) | std::min(above, kMore) << 4));
    for (const std::uint64_t value : {gap, above})
      if (value >= kMore)
        excess.push_back(value - kMore);
    last = i;
  }
  io.bytes += pairs;
  for (const std::uint64_t value : excess)
    io.number(value);
}

/// Gap and count of each in half a byte, what is above them behind all.
[[gnu::always_inline]] inline std::uint64_t visit_bins(Reader& io,
                                                       std::uint64_t values,
                                                       PackedBins& bins) {
  const std::uint64_t used = io.number();
  if (used == 0)
    return 0;
  const std::uint64_t first = io.number();
  const std::uint8_t* pairs = io.raw(used);
  if (pairs == nullptr || first >= Sketch::kBins || used > Sketch::kBins || (pairs[0] & 15) != 0)
    return io.check(false), 0;
  std::uint64_t end = first + used, total = used, full_halves = 0;
  for (std::uint64_t i = 0; i < used; i += 8) {
    std::uint64_t eight = 0;  // of which halves of bytes are added up at once
    if (used - i >= 8)
      std::memcpy(&eight, pairs + i, 8);
    else
      std::memcpy(&eight, pairs + i, used - i);
    constexpr std::uint64_t kLower = 0x0f0f0f0f0f0f0f0f, kOnes = 0x0101010101010101;
    end += ((eight & kLower) * kOnes) >> 56;
    total += ((eight >> 4 & kLower) * kOnes) >> 56;
    full_halves |= eight & eight >> 1 & eight >> 2 & eight >> 3 & 0x1111111111111111;
  }
  if (full_halves != 0) {
    bins.excess = io.rest();
    for (std::uint64_t i = 0; i < used; ++i) {
      std::uint64_t gap = 0, above = 0;
      if ((pairs[i] & 15) == kMore)
        gap = io.number();
      if (pairs[i] >> 4 == kMore)
        above = io.number();
      if (gap >= Sketch::kBins || above > values)
        return io.check(false), 0;
      end += gap;
      total += above;
    }
  }
  io.check(end <= Sketch::kBins && total <= values);
  if (io.bad())
    return 0;
  io.bins(end - first);
  bins.pairs = pairs;
  bins.used = static_cast<std::uint32_t>(used);
  bins.first = static_cast<std::uint32_t>(first);
  bins.end = static_cast<std::uint32_t>(end);
  return total;
}

void visit(Reader& io, Packed& d) {
  d.bins = {};
  visit(io, d.moments);
  const std::uint64_t values = d.moments.n;
  if (values == 0)
    return;
  io.check(visit_bins(io, values, d.bins) == values);
  if (io.bad())
    d.clear();
}

/// Those that a Digest keeps have memory of their own.
void visit(Reader& io, Distribution& d) {
  Packed packed;
  visit(io, packed);
  d.clear();
  d.add(packed);
}

template <class Io, class T>
void visit_parts(Io& io, T& parts, std::int64_t usual, std::uint64_t usually_largest) {
  if constexpr (Io::kReads)
    parts = {};
  io.field(parts.count, 1);
  if (parts.count == 0)
    return;
  io.near(parts.sum, usual);
  io.near(parts.min, parts.sum);
  io.near(parts.max, parts.min);
  io.field(parts.largest, usually_largest);
  io.check(parts.sum >= 0 && parts.min >= 0 && parts.min <= parts.max);
}

template <class Io, class T>
void visit_ordinals(Io& io, T& o, std::int64_t least, std::uint64_t rank) {
  io.field(o.compared);
  io.field(o.shift);
  io.check(o.shift < 32);
  if constexpr (Io::kReads)
    o.shift = std::min(o.shift, 31u);
  io.list(o.longest, kMostList);
  bool one_rank = true;
  if constexpr (!Io::kReads)
    for (const auto& longest : o.longest)
      one_rank &= longest.rank == o.longest.front().rank;
  io.flag(one_rank);
  bool first = true, negative = false;
  for (auto& longest : o.longest) {
    auto ns = static_cast<std::int64_t>(longest.ns);
    io.near(ns, least);
    negative |= ns < 0;
    if constexpr (Io::kReads)
      longest.ns = static_cast<std::uint64_t>(ns);
    if (first || !one_rank)
      io.field(longest.rank, rank);
    else if constexpr (Io::kReads)
      longest.rank = o.longest.front().rank;
    first = false;
  }
  io.check(!negative);
  io.list(o.ties, 1 << 24, 2);
  for (auto& [place, other] : o.ties) {
    io.index(place, o.longest.size());
    io.field(other);
  }
  if constexpr (Io::kReads)
    io.check(std::is_sorted(o.ties.begin(), o.ties.end()) && o.longest.size() <= o.kept());
}

template <class Io, class T>
void visit_gpu(Io& io, T& gpu, std::size_t kernels) {
  // What usually is the same: kernels that are launched here and in no range below, and are all
  // that the GPU does.
  static_assert(kGpuCounts[1] == &model::GpuWork::exclusive_kernels &&
                kGpuTimes[4] == &model::GpuWork::span_ns);
  io.begin_group();
  for (std::size_t i = 0; i < gpu.counts.size(); ++i) {
    const bool is_usually_kernels = i == 1 || i == gpu.counts.size() - 1;
    io.sum(gpu.counts[i], is_usually_kernels ? gpu.counts[0] : 0);
  }
  for (std::size_t i = 0; i < gpu.times.size(); ++i) {
    const bool is_usually_the_one_before = i >= 1 && i <= 4;
    io.sum(gpu.times[i], is_usually_the_one_before ? gpu.times[i - 1] : 0);
  }
  io.flag(gpu.partial);
  io.end_group();
  io.list(gpu.copies, 16, 4);
  for (auto& copy : gpu.copies) {
    io.field(copy.kind);
    io.sum(copy.calls, 0);
    io.sum(copy.bytes, 0);
    io.sum(copy.ns, 0);
  }
  io.list(gpu.kernels, kernels, 2);
  for (auto& sum : gpu.kernels) {
    io.index(sum.name, kernels);
    visit(io, sum.duration);
  }
  visit(io, gpu.latency);
  const auto* kernel = gpu.kernels.empty() ? nullptr : &gpu.kernels.front().duration;
  bool one_each = false;       // one kernel an occurrence
  bool kernels_alone = false;  // the GPU did nothing else
  if constexpr (!Io::kReads) {
    one_each = kernel != nullptr && gpu.kernel() == *kernel;
    kernels_alone = gpu.busy() == gpu.kernel();
  }
  io.flag(one_each);
  io.flag(kernels_alone);
  io.check(!one_each || kernel != nullptr);
  if constexpr (Io::kReads) {
    gpu.kernel_ns.reset();
    gpu.busy_ns.reset();
    if (!one_each)
      visit(io, gpu.kernel_ns.emplace());
    else if (gpu.kernels.size() > 1)
      gpu.kernel_ns = *kernel;
    if (!kernels_alone)
      gpu.busy_ns.emplace();
  } else if (!one_each) {
    visit(io, gpu.kernel());
  }
  if (!kernels_alone)
    visit(io, *gpu.busy_ns);
}

template <class Io, class T>
void visit_optional(Io& io, T& gpu, std::size_t kernels) {
  bool has_gpu = gpu.has_value();
  io.flag(has_gpu);
  if constexpr (Io::kReads) {
    if (!has_gpu)
      gpu.reset();
    if (has_gpu && !gpu)
      gpu.emplace();  // else visit_gpu() overwrites every field
  }
  if (has_gpu)
    visit_gpu(io, *gpu, kernels);
}

/// As the distance from the region, `number`; 0 for none.
template <class Io, class Parent>
void visit_parent(Io& io, Parent& parent, std::uint32_t number) {
  std::uint32_t up = 0;
  if (parent != kNone)
    up = number - parent;
  io.field(up);
  io.check(up <= number);
  if constexpr (Io::kReads) {
    parent = kNone;
    if (up > 0 && up <= number)
      parent = number - up;
  }
}

/// 0 for a push/pop range, 1 for a start/end range, 2 for a module.
template <class Io, class T>
void visit_kind(Io& io, T& region) {
  constexpr std::uint8_t kModule = 2;
  auto kind = static_cast<std::uint8_t>(region.kind);
  if (region.module)
    kind = kModule;
  io.field(kind);
  io.check(kind <= kModule);
  if constexpr (Io::kReads) {
    region.module = kind == kModule;
    region.kind = model::RangeKind::kPushPop;
    if (kind == 1)
      region.kind = model::RangeKind::kStartEnd;
  }
}

template <class Io, class T, class D>
void visit_region(Io& io, T& r, const D& digest, std::uint32_t number) {
  visit_parent(io, r.parent, number);
  io.index(r.domain, digest.names.size());
  io.index(r.name, digest.names.size());
  visit_kind(io, r);
  io.near(r.first_start_ns, digest.begin_ns);
  visit(io, r.wall);
  visit(io, r.unsettled);
  const Moments& wall = r.wall.moments;
  std::uint64_t rank = 0, pid = 0;
  if (!digest.processes.empty()) {
    rank = digest.processes.front().rank;
    pid = digest.processes.front().pid;
  }
  io.begin_group();
  io.check(r.unsettled.moments.n <= wall.n);
  io.near(r.settled_min, wall.min);
  io.near(r.settled_max, wall.max);
  visit_numbers([&](auto field, auto, auto expected, auto) { io.sum(r.*field, expected(r)); });
  visit_parts(io, r.of_processes, r.inclusive_ns, rank << 32);
  visit_parts(io, r.of_threads, r.inclusive_ns, pid);
  io.field(r.closed, wall.n);
  io.end_group();
  for (const std::int64_t sum :
       {r.inclusive_ns, r.open_ns, r.exclusive_ns, r.warm_up_ns, r.longest_ns})
    io.check(sum >= 0 || sum == kUnknown);  // also where it is what was expected
  io.list(r.ranks, kMostList, 3);
  std::uint64_t next = rank;
  for (auto& of_rank : r.ranks) {
    io.field(of_rank.rank, next);
    next = of_rank.rank + std::uint64_t{1};
    io.sum(of_rank.sum_ns, r.inclusive_ns);
    io.sum(of_rank.own_ns, r.exclusive_ns, true);
    io.sum(of_rank.paced_ns, of_rank.own_ns, true);
  }
  visit_ordinals(io, r.ordinals, wall.min, rank);
  visit_optional(io, r.gpu, digest.kernels.size());
}

template <class Io, class T>
void visit_kernel(Io& io, T& k, std::size_t names) {
  io.index(k.name, names);
  io.index(k.short_name, names);
  io.flag(k.nccl);
  visit(io, k.duration);
  io.list(k.shapes, kMostList, 13);
  for (auto& counted : k.shapes) {
    auto& shape = counted.shape;
    for (auto* dimensions : {&shape.grid, &shape.block, &shape.cluster})
      for (auto& size : *dimensions)
        io.field(size);
    io.field(shape.registers_per_thread);
    io.field(shape.static_shared_bytes);
    io.field(shape.dynamic_shared_bytes);
    io.field(counted.calls);
  }
}

/// In thousandths.
template <class Io, class Ns>
void visit_short_time(Io& io, Ns& ns) {
  auto thousandths = static_cast<std::uint64_t>(std::clamp(ns, 0.0, 1e9) * 1000);
  io.field(thousandths);
  if constexpr (Io::kReads)
    ns = static_cast<double>(thousandths) / 1000;
}

template <class Io, class T, class D>
void visit_process(Io& io, T& process, const D& digest) {
  io.field(process.pid);
  io.field(process.parent_pid);
  io.field(process.rank);
  io.field(process.local_rank);
  io.field(process.world);
  io.index(process.name, digest.names.size());
  io.index(process.host, digest.names.size());
  io.index(process.run, digest.names.size());
  io.near(process.start_ns, digest.begin_ns);
  io.near(process.end_ns, process.start_ns);
  io.field(process.ranges);
  io.field(process.kernels);
  visit_short_time(io, process.range_own_ns);
  visit_short_time(io, process.range_pair_ns);
}

/// What comes before the regions.
template <class Io, class D>
void visit_head(Io& io, D& d) {
  io.list(d.names, kMostNames);
  for (auto& name : d.names)
    io.text(name);
  io.check(!d.names.empty() && d.names.front().empty());
  io.text(d.tool);
  io.list(d.sources, kMostList);
  for (auto& source : d.sources)
    io.text(source);
  io.near(d.begin_ns, 0);
  io.near(d.end_ns, d.begin_ns);
  io.flag(d.utc);
  io.flag(d.sampled);
  io.flag(d.counted);
  io.list(d.processes, kMostList, 14);
  for (auto& process : d.processes)
    visit_process(io, process, d);
  io.list(d.devices, kMostList, 26);
  for (auto& device : d.devices) {
    io.index_or_none(device.process, d.processes.size());
    io.index(device.name, d.names.size());
    io.index(device.uuid, d.names.size());
    for (auto* number :
         {&device.ordinal, &device.compute_major, &device.compute_minor, &device.sm_count})
      io.field(*number);
    io.field(device.memory_bytes);
    io.field(device.l2_bytes);
    io.real(device.sm_clock_hz);
    io.real(device.memory_bytes_per_s);
    io.flag(device.mig);
  }
  io.list(d.kernels, kMostKernels * 4, 4);
  for (auto& kernel : d.kernels)
    visit_kernel(io, kernel, d.names.size());
}

/// Where a call was made, and when other kernels ran during it.
template <class Io, class T, class L>
void visit_surroundings(Io& io, T& call, L& other_kernels, std::size_t contexts) {
  if constexpr (Io::kReads) {
    io.index_or_none(call.context, contexts);
    call.first_span = static_cast<std::uint32_t>(other_kernels.size());
    call.spans = static_cast<std::uint32_t>(io.count(kMostOtherKernels, 2));
    other_kernels.resize(other_kernels.size() + call.spans);
  } else {
    io.index_or_none(call.context, contexts);
    io.number(call.spans);
  }
  std::int64_t previous_end = 0;
  bool ascending = true;
  for (std::uint32_t i = call.first_span; i < call.first_span + call.spans; ++i) {
    auto& [start, end] = other_kernels[i];
    io.near(start, previous_end);
    io.near(end, start);
    ascending &= previous_end <= start && start <= end;
    previous_end = end;
  }
  io.check(ascending);
}

/// `previous_end_ns`, `bytes`: of the call before, to which they are near.
template <class Io, class T, class L, class D>
void visit_call(Io& io,
                T& call,
                L& other_kernels,
                const D& digest,
                std::size_t regions,
                std::int64_t& previous_end_ns,
                std::int64_t& bytes) {
  io.index(call.name, digest.names.size());
  io.index_or_none(call.region, regions);
  io.near(call.start_ns, previous_end_ns);
  io.near(call.end_ns, call.start_ns);
  previous_end_ns = call.end_ns;
  io.sum(call.bytes, bytes);
  if (call.bytes != kUnknown)
    bytes = call.bytes;
  io.sum(call.hidden_ns, 0);
  visit_surroundings(io, call, other_kernels, digest.contexts.size());
}

template <class Io, class T, class D>
void visit_calls(Io& io, T& c, const D& digest, std::size_t regions) {
  io.index(c.process, digest.processes.size());
  io.flag(c.nccl);
  io.field(c.communicator);
  io.field(c.ranks);
  io.field(c.made_calls);
  io.field(c.shift);
  io.check(c.shift < 32);
  io.list(c.calls, kMostList, 5);
  if constexpr (Io::kReads)
    c.other_kernels.clear();
  std::int64_t end_ns = digest.begin_ns, bytes = 0;
  for (auto& call : c.calls)
    visit_call(io, call, c.other_kernels, digest, regions, end_ns, bytes);
  io.list(c.standing, kMostList, 5);
  for (auto& call : c.standing)
    visit_call(io, call, c.other_kernels, digest, regions, end_ns, bytes);
}

template <class Io, class T, class D>
void visit_messaging(Io& io, T& m, const D& digest, std::size_t regions) {
  const auto small = [&io](auto& value) {
    std::int64_t number = value;
    io.near(number, 0);
    io.check(number >= INT32_MIN && number <= INT32_MAX);
    if constexpr (Io::kReads)
      value = static_cast<std::int32_t>(number);
  };
  io.index(m.process, digest.processes.size());
  io.field(m.shift);
  io.check(m.shift < 32);
  io.list(m.communicators, kMostList, 4);
  for (auto& communicator : m.communicators) {
    io.flag(communicator.nccl);
    io.field(communicator.id);
    io.field(communicator.ranks);
    small(communicator.self);
  }
  io.list(m.calls, kMostList, 11);
  if constexpr (Io::kReads)
    m.other_kernels.clear();
  std::int64_t end_ns = digest.begin_ns, bytes = 0;
  for (auto& call : m.calls) {
    visit_call(io, call, m.other_kernels, digest, regions, end_ns, bytes);
    io.index_or_none(call.stream, kNone);
    io.field(call.received);
    io.field(call.hashes);
  }
  io.list(m.ends, kMostList, 7);
  for (auto& end : m.ends) {
    io.index(end.call, m.calls.size());
    io.index_or_none(end.done, m.calls.size());
    io.index(end.communicator, m.communicators.size());
    io.flag(end.sends);
    small(end.peer);
    small(end.tag);
    io.field(end.ordinal);
  }
}

template <class Io, class D>
void visit_works(Io& io, D& d) {
  io.list(d.works, kMostList, 15);
  for (auto& work : d.works) {
    io.field(work.rank);
    for (auto* number : {&work.kernels, &work.kernel_ns, &work.copied_bytes})
      io.sum(*number, 0);
    io.real(work.kernel_threads);
    io.list(work.gpus, kMostList, 4);
    for (auto& gpu : work.gpus) {
      io.index(gpu.process, d.processes.size());
      io.index(gpu.uuid, d.names.size());
      io.near(gpu.first_ns, d.begin_ns);
      io.near(gpu.last_ns, gpu.first_ns);
    }
    io.list(work.paced, kMostPaced, 9);
    for (auto& paced : work.paced) {
      io.index(paced.name, d.kernels.size());
      for (auto& size : paced.size)
        io.field(size);
      io.field(paced.calls);
      io.sum(paced.ns, 0);
      io.check(paced.calls > 0);
    }
    io.field(work.not_kept);
  }
  io.list(d.clocks, kMostList, 4);
  for (auto& clock : d.clocks) {
    io.index_or_none(clock.process, d.processes.size());
    io.index(clock.uuid, d.names.size());
    io.flag(clock.limited);
    io.list(clock.samples, kMostClockSamples, 11);
    io.check(!clock.samples.empty());
    std::int64_t previous_end_ns = d.begin_ns;
    for (auto& sample : clock.samples) {
      io.near(sample.start_ns, previous_end_ns);
      io.near(sample.end_ns, sample.start_ns);
      io.sum(sample.covered_ns, 0);
      io.real(sample.value);
      previous_end_ns = sample.end_ns;
    }
  }
}

/// What follows them.
template <class Io, class D>
void visit_tail(Io& io, D& d, std::size_t regions) {
  visit_optional(io, d.total, d.kernels.size());
  visit_optional(io, d.unattributed, d.kernels.size());
  io.list(d.contexts, kMostNames);
  for (auto& context : d.contexts) {
    io.list(context, regions);
    for (auto& region : context)
      io.index(region, regions);
    io.check(std::is_sorted(context.begin(), context.end(), std::less_equal<>()));
  }
  io.list(d.collectives, kMostList, 7);
  for (auto& calls : d.collectives)
    visit_calls(io, calls, d, regions);
  io.list(d.messaging, kMostList, 5);
  for (auto& messaging : d.messaging)
    visit_messaging(io, messaging, d, regions);
  io.list(d.open, kMostList, 4);
  for (auto& open : d.open) {
    io.index(open.host, d.names.size());
    io.sum(open.closed_ns, 0);
    io.sum(open.waits_ns, 0);
    io.list(open.spans, kMostNames, 2);
    std::int64_t previous_end = d.begin_ns;
    bool ascending = true;
    for (auto& [start, end] : open.spans) {
      io.near(start, previous_end);
      io.near(end, start);
      const bool is_first = &start == &open.spans.front().first;
      ascending &= start <= end && (is_first || start > previous_end);
      previous_end = end;
    }
    io.check(ascending);
  }
  visit_works(io, d);
  io.list(d.losses, kMostList, 4);
  for (auto& loss : d.losses) {
    io.field(loss.rank);
    io.text(loss.kind);
    io.text(loss.detail);
    io.field(loss.count);
  }
  visit_memory(io, d, regions);
}

std::uint64_t little(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    value = value << 8 | static_cast<std::uint8_t>(bytes[i]);
  return value;
}

}  // namespace coding

using namespace coding;

base::Result<std::string> encode(Digest digest, int level) {
  const Digest ordered = in_order(std::move(digest));
  Writer writer;
  visit_head(writer, ordered);
  writer.number(ordered.regions.size());
  for (std::uint32_t r = 0; r < ordered.regions.size(); ++r)
    visit_region(writer, ordered.regions[r], ordered, r);
  visit_tail(writer, ordered, ordered.regions.size());
  const base::Owned<ZSTD_CCtx, &ZSTD_freeCCtx> context(ZSTD_createCCtx());
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::string out(kMagic);
  const auto append_little = [&](std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i)
      out.push_back(static_cast<char>(value >> (8 * i)));
  };
  append_little(kVersion, 4);
  append_little(0, 4);
  append_little(writer.bytes.size(), 8);
  out.resize(kHeader + ZSTD_compressBound(writer.bytes.size()));
  const std::size_t size = ZSTD_compress2(context.get(),
                                          out.data() + kHeader,
                                          out.size() - kHeader,
                                          writer.bytes.data(),
                                          writer.bytes.size());
  if (ZSTD_isError(size) != 0)
    return base::fail(base::Code::kInternal, ZSTD_getErrorName(size), "digest");
  out.resize(kHeader + size);
  return out;
}

struct Reading::State {
  base::Owned<ZSTD_DCtx, &ZSTD_freeDCtx> context{ZSTD_createDCtx()};
  std::string payload;  // a thousand of a megabyte, one after the other
  std::size_t size = 0;
  Reader reader{{}};
  std::vector<std::uint32_t> depth;  // of the regions that were read
};

Reading::Reading() : state_(std::make_unique<State>()) {}
Reading::Reading(Reading&&) noexcept = default;
Reading& Reading::operator=(Reading&&) noexcept = default;
Reading::~Reading() = default;

std::size_t Reading::bytes() const {
  return state_->size;
}

base::Result<void> Reading::open(std::string_view bytes, const std::string& where) {
  State& state = *state_;
  const auto bad = [&](const std::string& what,
                       const std::string& hint = "Report on the run itself") {
    return base::fail(base::Code::kBadData, what, where, hint);
  };
  if (bytes.size() < kHeader || !bytes.starts_with(kMagic))
    return bad("this is not a digest");
  const std::uint64_t version = little(bytes.substr(8, 4));
  if (version != kVersion)
    return bad(
        fmt::format("the digest has version {}, and this rangescope reads {}", version, kVersion),
        "Use the rangescope that recorded the job");
  const std::uint64_t size = little(bytes.substr(16, 8));
  if (size > base::most_unpacked(bytes.size()))
    return bad("the digest claims to hold " + std::to_string(size) + " bytes");
  if (state.payload.size() < size)
    state.payload.resize(size);
  state.size = size;
  const std::size_t done = ZSTD_decompressDCtx(state.context.get(),
                                               state.payload.data(),
                                               size,
                                               bytes.data() + kHeader,
                                               bytes.size() - kHeader);
  if (ZSTD_isError(done) != 0)
    return bad("the digest is damaged: " + std::string(ZSTD_getErrorName(done)));
  if (done != size)
    return bad("the digest is damaged: it is shorter than its header claims");
  state.reader = Reader(std::string_view(state.payload).substr(0, size));
  visit_head(state.reader, head);
  regions_ = state.reader.count(kMostRegions * 4, 12);
  state.depth.clear();
  if (state.reader.bad())
    return bad(std::string(kUnfitting));
  return {};
}

template <class R>
bool Reading::next(R& into) {
  State& state = *state_;
  visit_region(state.reader, into, head, static_cast<std::uint32_t>(state.depth.size()));
  if (state.reader.bad())
    return false;
  state.depth.push_back(into.parent == kNone ? 0 : state.depth[into.parent] + 1);
  return state.depth.back() <= kDeepest;
}
template bool Reading::next(Region& into);
template bool Reading::next(PackedRegion& into);

bool Reading::finish() {
  visit_tail(state_->reader, head, regions_);
  return !state_->reader.bad() && state_->reader.at_end();
}

base::Result<void> decode(std::string_view bytes, const std::string& where, Digest& out) {
  static thread_local Reading reading;
  std::vector<Region> regions = std::move(out.regions);
  reading.head = std::move(out);
  auto read = reading.open(bytes, where);
  if (read) {
    regions.resize(reading.regions());
    const bool has_all_regions =
        std::ranges::all_of(regions, [](Region& region) { return reading.next(region); });
    if (!has_all_regions || !reading.finish())
      read = base::fail(
          base::Code::kBadData, std::string(kUnfitting), where, "Report on the run itself");
  }
  out = std::move(reading.head);
  out.regions = std::move(regions);
  if (!read)
    out = {};
  return read;
}

base::Result<void> write(const std::filesystem::path& file, Digest digest) {
  auto bytes = encode(std::move(digest));
  if (!bytes)
    return base::fail(std::move(bytes));
  return base::write_file(file, *bytes);
}

base::Result<void> read(const std::filesystem::path& file, Digest& out) {
  const auto bytes = base::read_regular(file, kMostFile);
  if (!bytes)
    return tl::make_unexpected(bytes.error());
  return decode(*bytes, file.string(), out);
}

}  // namespace rangescope::analyze::tally
