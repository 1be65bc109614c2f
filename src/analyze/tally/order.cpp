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
  const auto name_and_size = [](const WorkOfRank::Paced& kernel) {
    return std::pair(kernel.name, kernel.size);
  };
  for (WorkOfRank& work : digest.works)
    std::ranges::stable_sort(work.paced, {}, name_and_size);
}

void order_regions(Digest& digest) {
  const auto key = [&](std::uint32_t r) {
    const Region& region = digest.regions[r];
    return std::tuple(region.domain, region.kind, region.name, r);
  };
  const auto is_before = [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); };
  const auto order = depth_first(digest.regions, is_before);
  permute(digest.regions, order);
  renumber(digest, {.regions = places(order)});
  std::ranges::sort(digest.memory_of_regions, {}, &MemoryOfRegion::region);
  for (Region& region : digest.regions)
    if (!std::ranges::is_sorted(region.ranks, {}, &OfRank::rank))
      std::ranges::stable_sort(region.ranks, {}, &OfRank::rank);
  for (auto& context : digest.contexts)
    std::sort(context.begin(), context.end());
  const auto of_contexts = sorted(digest.contexts, std::less<>());
  permute(digest.contexts, of_contexts);
  renumber(digest, {.contexts = places(of_contexts)});
}

/// By rank. Those of one rank come from one digest, and keep its order.
bool is_process_before(const CountedProcess& a, const CountedProcess& b) {
  if (a.rank != b.rank)
    return a.rank < b.rank;
  if (a.rank != kNone)
    return false;
  return std::tie(a.run, a.start_ns, a.pid) < std::tie(b.run, b.start_ns, b.pid);
}

void order_processes(Digest& digest) {
  const auto order = sorted(digest.processes, is_process_before);
  permute(digest.processes, order);
  renumber(digest, {.processes = places(order)});
}

/// By process, whose order must be the final one.
void order_by_process(Digest& digest) {
  const auto device_key = [](const model::Device& device) {
    return std::pair(device.process, device.ordinal);
  };
  const auto clock_key = [](const SampledClock& clock) {
    return std::tuple(clock.process, clock.uuid, clock.limited, clock.samples.front().start_ns);
  };
  const auto calls_key = [](const Calls& calls) {
    return std::tuple(calls.process, calls.nccl, calls.communicator);
  };
  std::ranges::stable_sort(digest.devices, {}, device_key);
  std::ranges::stable_sort(digest.works, {}, &WorkOfRank::rank);
  std::ranges::stable_sort(digest.memory, {}, &MemoryOfDevice::process);
  std::ranges::stable_sort(digest.clocks, {}, clock_key);
  std::ranges::stable_sort(digest.messaging, {}, &Messaging::process);
  std::ranges::stable_sort(digest.collectives, {}, calls_key);
}

/// kNone stays.
void move_to(const std::vector<std::uint32_t>& places, std::uint32_t& number) {
  if (number != kNone)
    number = places[number];
}

}  // namespace

void renumber(Digest& digest, const Places& to) {
  const auto move = [](const std::vector<std::uint32_t>& places, auto&... numbers) {
    if (!places.empty())
      (move_to(places, numbers), ...);
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
  order_by_process(digest);
  std::stable_sort(digest.losses.begin(), digest.losses.end());
  return digest;
}

}  // namespace rangescope::analyze::tally
