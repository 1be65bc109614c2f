// Merging. Each list of the second digest is gone through once; what it names is found by hash,
// after a guess: ranks of one program mostly have the same names and regions in the same order, so
// that the guess nearly always holds.
#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "analyze/tally/coding.hpp"
#include "analyze/tally/file.hpp"

namespace rangescope::analyze::tally {
namespace {

void add_bins(Sketch& sketch, const PackedBins& other) {
  if (other.used == 0)
    return;
  std::uint64_t* count = sketch.reach(other.first, other.end);
  if (other.excess.empty()) {
    for (const std::uint8_t *pair = other.pairs, *end = pair + other.used; pair != end; ++pair) {
      count += *pair & 15;
      *count++ += std::uint64_t{1} + (*pair >> 4);
    }
    return;
  }
  coding::Reader excess(other.excess);
  constexpr std::uint64_t kMore = 15;
  for (const std::uint8_t *pair = other.pairs, *end = pair + other.used; pair != end; ++pair) {
    std::uint64_t gap = *pair & kMore, above = *pair >> 4;
    if (gap == kMore)
      gap += excess.number();
    if (above == kMore)
      above += excess.number();
    count += gap;
    *count++ += above + 1;
  }
}

}  // namespace

void Distribution::add(const Packed& other) {
  moments.add(other.moments);
  add_bins(sketch, other.bins);
}

std::uint64_t Messaging::hash(std::uint64_t communicator, std::int32_t tag, std::uint64_t ordinal) {
  std::uint64_t x = communicator;
  for (const std::uint64_t part :
       {static_cast<std::uint64_t>(static_cast<std::int64_t>(tag)), ordinal}) {
    x = (x ^ part) + 0x9e3779b97f4a7c15ull;  // splitmix64 (S. Vigna)
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    x ^= x >> 31;
  }
  return x;
}

void Open::add(const Open& other) {
  spans.insert(spans.end(), other.spans.begin(), other.spans.end());
  unite(spans);
  closed_ns = plus(closed_ns, other.closed_ns);
  waits_ns = plus(waits_ns, other.waits_ns);
}

void add_no_gpu(std::optional<Gpu>& into, const RegionFacts& of) {
  if (!into)
    into.emplace();
  if (of.settled_busy_ns == kUnknown) {
    into->counts.fill(kUnknown);
    into->times.fill(kUnknown);
    return;
  }
  const std::int64_t closed = std::max<std::int64_t>(of.occurrences, 0);
  into->counts.back() = plus(into->counts.back(), closed);
  if (!into->kernel_ns)
    into->kernel_ns = into->kernel();
  into->kernel_ns->add(0, static_cast<std::uint64_t>(closed));
  if (into->busy_ns)
    into->busy_ns->add(0, static_cast<std::uint64_t>(closed));
}

namespace {

/// plus() of each, none of which is negative but kUnknown: many at once.
template <std::size_t n>
void add_sums(std::array<std::int64_t, n>& into, const std::array<std::int64_t, n>& from) {
  std::array<std::uint64_t, n> sums;
  std::uint64_t signs = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto a = static_cast<std::uint64_t>(into[i]);
    const auto b = static_cast<std::uint64_t>(from[i]);
    sums[i] = a + b;
    signs |= a | b | sums[i];
  }
  const bool plain = signs >> 63 == 0;  // nothing unknown, nothing too large
  if (plain)
    std::copy(sums.begin(), sums.end(), into.begin());
  for (std::size_t i = 0; i < n && !plain; ++i)
    into[i] = plus(into[i], from[i]);
}

/// Do both have one kernel an occurrence, and the same one? Its sums are then those of occurrences.
template <class D>
bool have_one_kernel_each(const Gpu& into,
                          const GpuOf<D>& from,
                          const std::vector<std::uint32_t>& kernel_of) {
  if (into.kernel_ns || from.kernel_ns || from.kernels.size() != 1)
    return false;
  if (into.kernels.empty())
    return !into.busy_ns;
  return into.kernels.size() == 1 && into.kernels[0].name == kernel_of[from.kernels[0].name];
}

template <class D>
void add(Gpu& into, const GpuOf<D>& from, const std::vector<std::uint32_t>& kernel_of) {
  add_sums(into.counts, from.counts);
  add_sums(into.times, from.times);
  into.partial |= from.partial;
  for (const Copies& copy : from.copies) {
    const auto sum = std::ranges::lower_bound(into.copies, copy.kind, {}, &Copies::kind);
    if (sum == into.copies.end() || sum->kind != copy.kind) {
      into.copies.insert(sum, copy);
      continue;
    }
    sum->calls = plus(sum->calls, copy.calls);
    sum->bytes = plus(sum->bytes, copy.bytes);
    sum->ns = plus(sum->ns, copy.ns);
  }
  const bool one_each = have_one_kernel_each(into, from, kernel_of);  // before any is added
  if (!into.busy_ns && from.busy_ns)
    into.busy_ns = into.kernel();
  if (into.busy_ns)
    into.busy_ns->add(from.busy());
  if (!one_each) {
    if (!into.kernel_ns)
      into.kernel_ns = into.kernel();
    into.kernel_ns->add(from.kernel());
  }
  std::size_t guess = 0;
  std::unordered_map<std::uint32_t, std::size_t> places;
  const std::size_t before = into.kernels.size();
  for (const auto& sum : from.kernels) {
    const std::uint32_t name = kernel_of[sum.name];
    if (guess >= into.kernels.size() || into.kernels[guess].name != name) {
      if (places.empty())
        for (std::size_t i = 0; i < before; ++i)
          places.emplace(into.kernels[i].name, i);
      guess = places.try_emplace(name, into.kernels.size()).first->second;
    }
    if (guess == into.kernels.size())
      into.kernels.push_back({name, {}});
    into.kernels[guess++].duration.add(sum.duration);
  }
  into.latency.add(from.latency);
}

template <class D>
void add(Region& into, const RegionOf<D>& from, const std::vector<std::uint32_t>& kernel_of) {
  const bool first = into.ranks.empty() && into.ordinals.compared == 0;
  if (from.gpu && !into.gpu && into.occurrences > 0)
    add_no_gpu(into.gpu, into);
  if (into.gpu && !from.gpu)
    add_no_gpu(into.gpu, from);
  visit_numbers(
      [&](auto field, auto join, auto, auto) { into.*field = join(into.*field, from.*field); });
  into.first_start_ns = std::min(into.first_start_ns, from.first_start_ns);
  if (from.wall.moments.n > from.unsettled.moments.n) {  // else it has nothing settled
    const bool is_first_settled = into.wall.moments.n == into.unsettled.moments.n;
    if (is_first_settled) {
      into.settled_min = from.settled_min;
      into.settled_max = from.settled_max;
    }
    into.settled_min = std::min(into.settled_min, from.settled_min);
    into.settled_max = std::max(into.settled_max, from.settled_max);
  }
  into.wall.add(from.wall);
  into.unsettled.add(from.unsettled);
  into.of_processes.add(from.of_processes);
  into.of_threads.add(from.of_threads);
  if (!from.ranks.empty())
    into.ordinals.add(from.ordinals, first);
  for (const OfRank& rank : from.ranks)
    into.ranks.push_back(rank);
  into.closed += from.closed;
  if (!from.gpu)
    return;
  if (!into.gpu)
    into.gpu.emplace();
  add(*into.gpu, *from.gpu, kernel_of);
}

}  // namespace

struct Merger::State {
  struct RegionKey {
    std::uint32_t parent, domain, name;
    model::RangeKind kind;
    bool operator==(const RegionKey&) const = default;
  };
  struct HashRegion {
    std::size_t operator()(const RegionKey& key) const {
      std::uint64_t x = (static_cast<std::uint64_t>(key.parent) << 32 | key.name) ^
                        (static_cast<std::uint64_t>(key.domain) << 17 |
                         static_cast<std::uint64_t>(key.kind) << 63);
      x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
      return static_cast<std::size_t>(x ^ (x >> 29));
    }
  };
  struct HashName {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const {
      return std::hash<std::string_view>{}(name);
    }
  };

  Digest all;
  bool empty = true;
  std::unordered_map<std::string, std::uint32_t, HashName, std::equal_to<>> names;
  std::unordered_map<RegionKey, std::uint32_t, HashRegion> regions;
  std::unordered_map<std::uint32_t, std::uint32_t> kernels;  ///< by name
  std::map<std::vector<std::uint32_t>, std::uint32_t> contexts;

  std::vector<Places> places;  ///< here, of what is in those that are added at once

  std::uint32_t name(const std::string& text) {
    const auto found = names.find(std::string_view(text));
    if (found != names.end())
      return found->second;
    const auto number = static_cast<std::uint32_t>(all.names.size());
    all.names.push_back(text);
    names.emplace(text, number);
    return number;
  }

  std::uint32_t region(const RegionFacts& from, const Places& of) {
    const RegionKey key{from.parent == kNone ? kNone : of.regions[from.parent],
                        of.names[from.domain],
                        of.names[from.name],
                        from.kind};
    const auto same = [&](const Region& r) {
      return r.parent == key.parent && r.name == key.name && r.domain == key.domain &&
             r.kind == key.kind;
    };
    if (const std::size_t guess = of.regions.size();
        guess < all.regions.size() && same(all.regions[guess]))
      return static_cast<std::uint32_t>(guess);
    const auto [entry, is_new] =
        regions.try_emplace(key, static_cast<std::uint32_t>(all.regions.size()));
    if (is_new) {
      Region& added = all.regions.emplace_back();
      added.parent = key.parent;
      added.domain = key.domain;
      added.name = key.name;
      added.kind = key.kind;
      added.module = from.module;
      added.first_start_ns = from.first_start_ns;
      added.settled_busy_ns = 0;
    }
    return entry->second;
  }

  template <class D>
  void merge(const RegionOf<D>& from, Places& of) {
    of.regions.push_back(region(from, of));
    tally::add(all.regions[of.regions.back()], from, of.kernels);
  }

  static void merge(std::optional<Gpu>& into, const std::optional<Gpu>& from, const Places& of) {
    if (!from)
      return;
    if (!into)
      into.emplace();
    tally::add(*into, *from, of.kernels);
  }

  /// What comes before the regions.
  void begin(const Digest& from, Places& of) {
    if (!from.processes.empty()) {  // else a rank that left nothing, or a share without ranks
      if (empty) {
        all.begin_ns = from.begin_ns;
        all.end_ns = from.end_ns;
        all.tool = from.tool;
      }
      all.begin_ns = std::min(all.begin_ns, from.begin_ns);
      all.end_ns = std::max(all.end_ns, from.end_ns);
      all.tool = std::min(all.tool, from.tool);
      all.utc &= from.utc;
      all.sampled |= from.sampled;
      all.counted |= from.counted;
      empty = false;
    }
    std::vector<std::string> sources;
    std::set_union(all.sources.begin(),
                   all.sources.end(),
                   from.sources.begin(),
                   from.sources.end(),
                   std::back_inserter(sources));
    all.sources = std::move(sources);

    of.names.clear();
    for (std::size_t i = 0; i < from.names.size(); ++i) {
      const bool is_same_place = i < all.names.size() && all.names[i] == from.names[i];
      of.names.push_back(is_same_place ? static_cast<std::uint32_t>(i) : name(from.names[i]));
    }
    of.kernels.clear();
    for (const KernelTally& kernel : from.kernels)
      of.kernels.push_back(merge(kernel, of));
    of.regions.clear();
  }

  /// What follows them.
  void end(const Digest& from, Places& of) {
    merge(all.total, from.total, of);
    merge(all.unattributed, from.unattributed, of);
    of.processes.resize(from.processes.size());
    std::iota(
        of.processes.begin(), of.processes.end(), static_cast<std::uint32_t>(all.processes.size()));
    of.contexts.clear();
    for (std::vector<std::uint32_t> context : from.contexts) {
      for (std::uint32_t& region : context)
        region = of.regions[region];
      std::sort(context.begin(), context.end());
      const auto [entry, is_new] =
          contexts.try_emplace(context, static_cast<std::uint32_t>(all.contexts.size()));
      if (is_new)
        all.contexts.push_back(std::move(context));
      of.contexts.push_back(entry->second);
    }
    Digest rest;
    rest.processes = from.processes;
    rest.devices = from.devices;
    rest.collectives = from.collectives;
    rest.messaging = from.messaging;
    rest.open = from.open;
    rest.works = from.works;
    rest.clocks = from.clocks;
    rest.memory = from.memory;
    rest.memory_of_regions = from.memory_of_regions;
    renumber(rest, of);
    const auto append = [](auto& list, auto& added) {
      std::move(added.begin(), added.end(), std::back_inserter(list));
    };
    append(all.processes, rest.processes);
    append(all.devices, rest.devices);
    append(all.collectives, rest.collectives);
    append(all.messaging, rest.messaging);
    append(all.works, rest.works);
    append(all.clocks, rest.clocks);
    append(all.memory, rest.memory);
    add_memory_of_regions(rest.memory_of_regions, all.memory_of_regions);
    for (const Open& open : rest.open) {
      const auto same_host = std::ranges::find(all.open, open.host, &Open::host);
      Open& into = same_host == all.open.end() ? all.open.emplace_back() : *same_host;
      into.host = open.host;
      into.add(open);
    }
    all.losses.insert(all.losses.end(), from.losses.begin(), from.losses.end());
  }

  std::uint32_t merge(const KernelTally& from, const Places& of) {
    const auto [entry, is_new] =
        kernels.try_emplace(of.names[from.name], static_cast<std::uint32_t>(all.kernels.size()));
    if (is_new)
      all.kernels.push_back({of.names[from.name], of.names[from.short_name], from.nccl, {}, {}});
    KernelTally& into = all.kernels[entry->second];
    into.duration.add(from.duration);
    for (const KernelTally::Shape& counted : from.shapes) {
      const auto sum =
          std::ranges::lower_bound(into.shapes, counted.shape, {}, &KernelTally::Shape::shape);
      if (sum != into.shapes.end() && sum->shape == counted.shape)
        sum->calls += counted.calls;
      else
        into.shapes.insert(sum, counted);
    }
    return entry->second;
  }
};

Merger::Merger() : state_(std::make_unique<State>()) {}
Merger::Merger(Merger&&) noexcept = default;
Merger& Merger::operator=(Merger&&) noexcept = default;
Merger::~Merger() = default;

void Merger::add(const Digest& from) {
  State& state = *state_;
  state.places.resize(std::max<std::size_t>(1, state.places.size()));
  Places& places = state.places.front();
  state.begin(from, places);
  for (const Region& region : from.regions)
    state.merge(region, places);
  state.end(from, places);
}

bool Merger::add(std::span<Reading> several) {
  State& state = *state_;
  state.places.resize(std::max(several.size(), state.places.size()));
  std::size_t most_regions = 0;
  for (std::size_t i = 0; i < several.size(); ++i) {
    state.begin(several[i].head, state.places[i]);
    most_regions = std::max(most_regions, several[i].regions());
  }
  PackedRegion region;
  for (std::size_t r = 0; r < most_regions; ++r) {
    for (std::size_t i = 0; i < several.size(); ++i) {
      if (r >= several[i].regions())
        continue;
      if (!several[i].next(region))
        return false;
      state.merge(region, state.places[i]);
    }
  }
  for (std::size_t i = 0; i < several.size(); ++i) {
    if (!several[i].finish())
      return false;
    state.end(several[i].head, state.places[i]);
  }
  return true;
}

Digest Merger::take() {
  return std::move(state_->all);
}

Digest merge(const Digest& one, const Digest& two) {
  Merger merger;
  merger.add(one);
  merger.add(two);
  return merger.take();
}

}  // namespace rangescope::analyze::tally
