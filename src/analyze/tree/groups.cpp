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

/// The groups of the kernels of one worker, and what is known of all of them.
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
    const std::size_t place = next[group]++;
    times.duration[place] = static_cast<T>(length_ns(kernel.start_ns, kernel.end_ns));
    times.latency[place] = static_cast<T>(latency_of(session, kernel));
  }
}

/// Fills KernelGroups::names; returns the index into it of each entry of Session::kernel_names.
std::vector<std::uint32_t> number_shown_names(const Session& session, KernelGroups& out) {
  std::vector<std::uint32_t> row_of(session.kernel_names.size());
  std::unordered_map<model::StringId, std::uint32_t> rows;
  for (std::uint32_t k = 0; k < session.kernel_names.size(); ++k) {
    const model::KernelName& name = session.kernel_names[k];
    const auto [row, added] =
        rows.emplace(shown_name(name), static_cast<std::uint32_t>(out.names.size()));
    if (added) {
      const bool nccl = model::is_nccl(session.strings.view(shown_name(name))) ||
                        model::is_nccl(session.strings.view(name.short_name));
      out.names.push_back({k, nccl});
    }
    row_of[k] = row->second;
  }
  return row_of;
}

/// Groups the kernels of a session: workers take adjacent parts of them, whose groups are then
/// merged in that order.
class Grouping {
 public:
  Grouping(const Session& session,
           const Contexts& contexts,
           const Sets& sets,
           const std::vector<char>& chosen,
           int threads)
      : session_(session), contexts_(contexts), sets_(sets), chosen_(chosen), threads_(threads) {
    row_of_ = number_shown_names(session, out_);
    out_.of_kernel.assign(session.kernels.size(), kNone);
    const bool is_small = session.kernels.size() < 50000;
    parts_.resize(is_small ? 1 : static_cast<std::size_t>(base::worker_count(threads, 16)));
  }

  KernelGroups groups() {
    base::parallel_for(parts_.size(), threads_, [&](std::size_t p) { add_kernels(p); });
    merge_parts();
    std::size_t total = 0;
    for (Group& group : out_.groups) {
      group.begin = total;
      total += group.calls;
    }
    if (out_.wide)
      scatter(session_, out_, out_.times64, total);
    else
      scatter(session_, out_, out_.times32, total);
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::size_t first_kernel(std::size_t p) const {
    return session_.kernels.size() * p / parts_.size();
  }

  /// Groups the kernels of part `p`, numbered within the part.
  void add_kernels(std::size_t p) {
    Part& part = parts_[p];
    for (std::size_t i = first_kernel(p); i < first_kernel(p + 1); ++i) {
      const Kernel& kernel = session_.kernels[i];
      if (kernel.name >= row_of_.size() || !chosen_[kernel.name])
        continue;
      const bool has_launch = launched(session_, kernel.launch, kernel.stream);
      std::uint32_t set = Sets::kNoLaunch;
      if (has_launch)
        set = sets_.of_context[context_of(
            session_, contexts_, contexts_.of_kernel, i, kernel.launch, kernel.stream)];
      const bool graph =
          kernel.graph_node != kNone ||
          (has_launch && session_.launches[kernel.launch].kind == model::LaunchKind::kGraph);
      const std::uint32_t number =
          part.table.intern(set, row_of_[kernel.name], kernel.shape, graph);
      out_.of_kernel[i] = number;
      Group& group = part.table.groups[number];
      const std::int64_t duration = length_ns(kernel.start_ns, kernel.end_ns);
      const std::int64_t latency = latency_of(session_, kernel);
      ++group.calls;
      group.total_ns += static_cast<std::uint64_t>(duration);
      part.min_latency = std::min(part.min_latency, latency);
      part.max_time = std::max({part.max_time, duration, latency});
      if (!has_launch)
        ++part.without_launch;
      if (kernel.end_ns < kernel.start_ns)
        ++part.backward;
    }
  }

  void merge_parts() {
    GroupTable merged = std::move(parts_[0].table);
    std::int64_t min_latency = 0, max_time = 0;
    std::vector<std::vector<std::uint32_t>> renumber(parts_.size());
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const Part& part = parts_[p];
      min_latency = std::min(min_latency, part.min_latency);
      max_time = std::max(max_time, part.max_time);
      out_.without_launch += part.without_launch;
      out_.backward += part.backward;
      if (p > 0)
        renumber[p] = merge_groups(part.table.groups, merged);
    }
    base::parallel_for(parts_.size(), threads_, [&](std::size_t p) {
      if (p == 0)
        return;
      for (std::size_t i = first_kernel(p); i < first_kernel(p + 1); ++i) {
        if (out_.of_kernel[i] != kNone)
          out_.of_kernel[i] = renumber[p][out_.of_kernel[i]];
      }
    });
    out_.groups = std::move(merged.groups);
    out_.wide = min_latency < 0 || max_time > std::int64_t{0xffffffff};
  }

  /// Returns the number in `merged` of each of `groups`.
  static std::vector<std::uint32_t> merge_groups(const std::vector<Group>& groups,
                                                 GroupTable& merged) {
    std::vector<std::uint32_t> numbers;
    for (const Group& group : groups) {
      const std::uint32_t number = merged.intern(group.set, group.name, group.shape, group.graph);
      merged.groups[number].calls += group.calls;
      merged.groups[number].total_ns += group.total_ns;
      numbers.push_back(number);
    }
    return numbers;
  }

  const Session& session_;
  const Contexts& contexts_;
  const Sets& sets_;
  const std::vector<char>& chosen_;
  int threads_;
  KernelGroups out_;
  std::vector<std::uint32_t> row_of_;  ///< Session::kernel_names to KernelGroups::names
  std::vector<Part> parts_;
};

}  // namespace

model::StringId shown_name(const model::KernelName& name) {
  if (name.demangled)
    return name.demangled;
  return name.short_name ? name.short_name : name.mangled;
}

KernelGroups group_kernels(const Session& session,
                           const Contexts& contexts,
                           const Sets& sets,
                           const std::vector<char>& chosen,
                           int threads) {
  return Grouping(session, contexts, sets, chosen, threads).groups();
}

}  // namespace rangescope::analyze
