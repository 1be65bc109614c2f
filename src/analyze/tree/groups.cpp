#include "analyze/tree/groups.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/numbering.hpp"
#include "base/workers.hpp"
#include "model/kernel_name.hpp"

namespace rangescope::analyze {
namespace {

using model::Kernel;
using model::Session;

class GroupTable {
 public:
  std::uint32_t intern(std::uint32_t set, std::uint32_t name, std::uint32_t shape, bool graph) {
    const std::uint32_t number = numbers_.number({set, name, shape, graph ? 1u : 0u});
    if (number == groups.size())
      groups.push_back({set, name, shape, graph});
    return number;
  }
  std::vector<Group> groups;

 private:
  base::Numbering<std::array<std::uint32_t, 4>> numbers_;
};

struct Part {
  GroupTable table;
  std::int64_t min_latency = 0, max_time = 0;
  std::uint64_t without_launch = 0, backward = 0;
};

std::int64_t latency_of(const Session& session, const Kernel& kernel) {
  if (kernel.launch >= session.launches.size())
    return 0;
  return static_cast<std::int64_t>(
      static_cast<std::uint64_t>(kernel.start_ns) -
      static_cast<std::uint64_t>(session.launches[kernel.launch].start_ns));
}

template <class T>
void scatter(const Session& session,
             const KernelGroups& out,
             KernelTimes<T>& times,
             std::size_t total) {
  times.duration.resize(total);
  times.latency.resize(total);
  std::vector<std::size_t> next(out.groups.size());
  for (std::size_t g = 0; g < out.groups.size(); ++g)
    next[g] = out.groups[g].begin;
  for (std::size_t i = 0; i < session.kernels.size(); ++i) {
    const std::uint32_t group = out.of_kernel[i];
    if (group == kNone)
      continue;
    const Kernel& kernel = session.kernels[i];
    const std::size_t at = next[group]++;
    times.duration[at] = static_cast<T>(length_ns(kernel.start_ns, kernel.end_ns));
    times.latency[at] = static_cast<T>(latency_of(session, kernel));
  }
}

}  // namespace

model::StringId shown_name(const model::KernelName& name) {
  return name.demangled ? name.demangled : name.short_name ? name.short_name : name.mangled;
}

KernelGroups group_kernels(const Session& session,
                           const Contexts& contexts,
                           const Sets& sets,
                           const std::vector<char>& chosen,
                           int threads) {
  KernelGroups out;
  const std::size_t n = session.kernels.size();
  std::vector<std::uint32_t> row_of(session.kernel_names.size());
  {
    std::unordered_map<model::StringId, std::uint32_t> rows;
    for (std::uint32_t k = 0; k < session.kernel_names.size(); ++k) {
      const model::KernelName& name = session.kernel_names[k];
      const auto [at, added] =
          rows.emplace(shown_name(name), static_cast<std::uint32_t>(out.names.size()));
      if (added) {
        const bool nccl = model::is_nccl(session.strings.view(shown_name(name))) ||
                          model::is_nccl(session.strings.view(name.short_name));
        out.names.push_back({k, nccl});
      }
      row_of[k] = at->second;
    }
  }

  out.of_kernel.assign(n, kNone);
  const std::size_t parts =
      n < 50000 ? 1 : static_cast<std::size_t>(base::worker_count(threads, 16));
  std::vector<Part> part(parts);
  base::parallel_for(parts, threads, [&](std::size_t p) {
    Part& own = part[p];
    for (std::size_t i = n * p / parts; i < n * (p + 1) / parts; ++i) {
      const Kernel& kernel = session.kernels[i];
      if (kernel.name >= row_of.size() || !chosen[kernel.name])
        continue;
      const bool known = launched(session, kernel.launch, kernel.stream);
      const std::uint32_t set =
          known ? sets.of_context[context_of(
                      session, contexts, contexts.of_kernel, i, kernel.launch, kernel.stream)]
                : Sets::kNoLaunch;
      const bool graph =
          kernel.graph_node != kNone ||
          (known && session.launches[kernel.launch].kind == model::LaunchKind::kGraph);
      const std::uint32_t number = own.table.intern(set, row_of[kernel.name], kernel.shape, graph);
      out.of_kernel[i] = number;
      Group& group = own.table.groups[number];
      const std::int64_t duration = length_ns(kernel.start_ns, kernel.end_ns),
                         latency = latency_of(session, kernel);
      ++group.calls;
      group.total_ns += static_cast<std::uint64_t>(duration);
      own.min_latency = std::min(own.min_latency, latency);
      own.max_time = std::max({own.max_time, duration, latency});
      own.without_launch += known ? 0 : 1;
      own.backward += kernel.end_ns < kernel.start_ns ? 1 : 0;
    }
  });

  GroupTable all = std::move(part[0].table);
  std::int64_t min_latency = part[0].min_latency, max_time = part[0].max_time;
  out.without_launch = part[0].without_launch;
  out.backward = part[0].backward;
  std::vector<std::vector<std::uint32_t>> renumber(parts);
  for (std::size_t p = 1; p < parts; ++p) {
    for (const Group& group : part[p].table.groups) {
      const std::uint32_t number = all.intern(group.set, group.name, group.shape, group.graph);
      all.groups[number].calls += group.calls;
      all.groups[number].total_ns += group.total_ns;
      renumber[p].push_back(number);
    }
    min_latency = std::min(min_latency, part[p].min_latency);
    max_time = std::max(max_time, part[p].max_time);
    out.without_launch += part[p].without_launch;
    out.backward += part[p].backward;
  }
  base::parallel_for(parts, threads, [&](std::size_t p) {
    if (p == 0)
      return;
    for (std::size_t i = n * p / parts; i < n * (p + 1) / parts; ++i) {
      if (out.of_kernel[i] != kNone)
        out.of_kernel[i] = renumber[p][out.of_kernel[i]];
    }
  });
  out.groups = std::move(all.groups);

  std::size_t total = 0;
  for (Group& group : out.groups) {
    group.begin = total;
    total += group.calls;
  }
  out.wide = min_latency < 0 || max_time > std::int64_t{0xffffffff};
  if (out.wide) {
    scatter(session, out, out.times64, total);
  } else {
    scatter(session, out, out.times32, total);
  }
  return out;
}

}  // namespace rangescope::analyze
