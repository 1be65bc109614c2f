// The order that does not depend on merges: names by text, regions parents first and siblings by
// what distinguishes them, what ranks have by rank.
#include <algorithm>
#include <numeric>
#include <tuple>

#include "analyze/tally/digest.hpp"

namespace rangescope::analyze::tally {
namespace {

/// place[i]: where element i of a list goes whose order is given.
std::vector<std::uint32_t> places(const std::vector<std::uint32_t>& order) {
  std::vector<std::uint32_t> place(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i)
    place[order[i]] = i;
  return place;
}

template <class T>
void permute(std::vector<T>& list, const std::vector<std::uint32_t>& order) {
  std::vector<T> out;
  out.reserve(list.size());
  for (const std::uint32_t i : order)
    out.push_back(std::move(list[i]));
  list = std::move(out);
}

template <class T, class Before>
std::vector<std::uint32_t> sorted(const std::vector<T>& list, Before before) {
  std::vector<std::uint32_t> order(list.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return before(list[a], list[b]);
  });
  return order;
}

void order_names(Digest& digest) {
  const auto order = sorted(digest.names, std::less<>());
  permute(digest.names, order);
  renumber(digest, {.names = places(order)});
  std::ranges::stable_sort(digest.open, {}, &Open::host);
}

void order_kernels(Digest& digest) {
  const auto order = sorted(
      digest.kernels, [](const KernelTally& a, const KernelTally& b) { return a.name < b.name; });
  permute(digest.kernels, order);
  renumber(digest, {.kernels = places(order)});
  const auto sort = [](std::optional<Gpu>& gpu) {
    if (gpu)
      std::stable_sort(gpu->kernels.begin(), gpu->kernels.end(), [](const auto& a, const auto& b) {
        return a.name < b.name;
      });
  };
  for (Region& region : digest.regions)
    sort(region.gpu);
  sort(digest.total);
  sort(digest.unattributed);
  for (WorkOfRank& work : digest.works)
    std::stable_sort(work.paced.begin(),
                     work.paced.end(),
                     [](const WorkOfRank::Paced& a, const WorkOfRank::Paced& b) {
                       return std::tie(a.name, a.size) < std::tie(b.name, b.size);
                     });
}

void order_regions(Digest& digest) {
  const auto key = [&](std::uint32_t r) {
    const Region& region = digest.regions[r];
    return std::tuple(region.domain, region.kind, region.name, r);
  };
  const auto order = depth_first(digest.regions,
                                 [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  permute(digest.regions, order);
  renumber(digest, {.regions = places(order)});
  std::ranges::sort(digest.memory_of_regions, {}, &MemoryOfRegion::region);
  for (Region& region : digest.regions) {
    const auto before = [](const OfRank& a, const OfRank& b) { return a.rank < b.rank; };
    if (!std::is_sorted(region.ranks.begin(), region.ranks.end(), before))
      std::stable_sort(region.ranks.begin(), region.ranks.end(), before);
  }
  for (auto& context : digest.contexts)
    std::sort(context.begin(), context.end());
  const auto of_contexts = sorted(digest.contexts, std::less<>());
  permute(digest.contexts, of_contexts);
  renumber(digest, {.contexts = places(of_contexts)});
}

void order_processes(Digest& digest) {
  // Those of one rank come from one digest, and keep its order.
  const auto order = sorted(digest.processes, [](const CountedProcess& a, const CountedProcess& b) {
    const auto unranked = [](const CountedProcess& process) {
      if (process.rank != kNone)
        return std::tuple(0u, std::int64_t{0}, 0u);
      return std::tuple(process.run, process.start_ns, process.pid);
    };
    return std::pair(a.rank, unranked(a)) < std::pair(b.rank, unranked(b));
  });
  permute(digest.processes, order);
  renumber(digest, {.processes = places(order)});
  std::stable_sort(digest.devices.begin(),
                   digest.devices.end(),
                   [](const model::Device& a, const model::Device& b) {
                     return std::pair(a.process, a.ordinal) < std::pair(b.process, b.ordinal);
                   });
  std::ranges::stable_sort(digest.works, {}, &WorkOfRank::rank);
  std::ranges::stable_sort(digest.memory, {}, &MemoryOfDevice::process);
  std::stable_sort(
      digest.clocks.begin(), digest.clocks.end(), [](const SampledClock& a, const SampledClock& b) {
        return std::tuple(a.process, a.uuid, a.limited, a.samples.front().start_ns) <
               std::tuple(b.process, b.uuid, b.limited, b.samples.front().start_ns);
      });
  std::ranges::stable_sort(digest.messaging, {}, &Messaging::process);
  std::stable_sort(
      digest.collectives.begin(), digest.collectives.end(), [](const Calls& a, const Calls& b) {
        return std::tie(a.process, a.nccl, a.communicator) <
               std::tie(b.process, b.nccl, b.communicator);
      });
}

}  // namespace

void renumber(Digest& digest, const Places& to) {
  const auto move = [](const std::vector<std::uint32_t>& places, auto&... numbers) {
    if (!places.empty())
      ((numbers = numbers == kNone ? kNone : places[numbers]), ...);
  };
  const auto gpu = [&](std::optional<Gpu>& of) {
    if (of && !to.kernels.empty())
      for (KernelSum& sum : of->kernels)
        move(to.kernels, sum.name);
  };
  const auto call = [&](Calls::Call& of) {
    move(to.names, of.name);
    move(to.regions, of.region);
    move(to.contexts, of.context);
  };
  for (CountedProcess& process : digest.processes)
    move(to.names, process.name, process.host, process.run);
  for (model::Device& device : digest.devices) {
    move(to.processes, device.process);
    move(to.names, device.name, device.uuid);
  }
  for (Region& region : digest.regions) {
    move(to.names, region.domain, region.name);
    move(to.regions, region.parent);
    gpu(region.gpu);
  }
  for (KernelTally& kernel : digest.kernels)
    move(to.names, kernel.name, kernel.short_name);
  gpu(digest.total);
  gpu(digest.unattributed);
  for (auto& context : digest.contexts)
    for (std::uint32_t& region : context)
      move(to.regions, region);
  for (Calls& calls : digest.collectives) {
    move(to.processes, calls.process);
    for (auto* list : {&calls.calls, &calls.standing})
      for (Calls::Call& listed : *list)
        call(listed);
  }
  for (Messaging& messaging : digest.messaging) {
    move(to.processes, messaging.process);
    for (Messaging::Call& listed : messaging.calls)
      call(listed);
  }
  for (Open& open : digest.open)
    move(to.names, open.host);
  for (WorkOfRank& work : digest.works) {
    for (WorkOfRank::Gpu& used : work.gpus) {
      move(to.processes, used.process);
      move(to.names, used.uuid);
    }
    for (WorkOfRank::Paced& paced : work.paced)
      move(to.kernels, paced.name);
  }
  renumber_memory(digest, to);
  for (SampledClock& clock : digest.clocks) {
    move(to.processes, clock.process);
    move(to.names, clock.uuid);
  }
}

Digest in_order(Digest digest) {
  order_names(digest);
  order_kernels(digest);
  order_regions(digest);
  order_processes(digest);
  std::stable_sort(digest.losses.begin(), digest.losses.end());
  return digest;
}

}  // namespace rangescope::analyze::tally
