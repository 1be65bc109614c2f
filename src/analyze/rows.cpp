#include "analyze/rows.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

#include "analyze/cpu/cpu.hpp"
#include "analyze/memory/cuda_memory.hpp"
#include "analyze/memory/memory.hpp"
#include "analyze/names/fold.hpp"
#include "analyze/statistics/spread.hpp"
#include "base/units.hpp"

namespace rangescope::analyze {
namespace {

using model::GpuWork;
using model::Region;
using model::Report;

/// Fewer siblings than this stay apart: three rows are read faster than one with a spread.
constexpr std::int64_t kFewestSiblings = 4;

void add_count(std::int64_t& to, std::int64_t from) {
  to = to < 0 || from < 0 ? -1 : to + from;
}

void add_work(GpuWork& to, const GpuWork& from) {
  for (const auto field : model::kGpuCounts)
    add_count(to.*field, from.*field);
  for (const auto field : model::kGpuTimes)
    to.*field += from.*field;
  to.copy_busy_ns += from.copy_busy_ns;
  to.partial |= from.partial;
}

/// Of a metric that several members have, the median of their values.
std::map<std::string, model::Metric> merged_metrics(const Report& report,
                                                    const std::vector<std::uint32_t>& members) {
  std::map<std::string, std::vector<const model::Metric*>> found;
  for (const std::uint32_t id : members)
    for (const auto& [name, metric] : report.regions[id].metrics)
      if (metric.absent.empty())
        found[name].push_back(&metric);
  std::map<std::string, model::Metric> out;
  for (const auto& [name, metrics] : found) {
    model::Metric one = *metrics.front();
    std::vector<double> values;
    for (const model::Metric* metric : metrics) {
      values.push_back(metric->value);
      one.min = std::min(one.min, metric->min);
      one.max = std::max(one.max, metric->max);
      one.rounds = std::min(one.rounds, metric->rounds);
    }
    one.value = median_of(values);
    if (metrics.size() > 1)
      one.source += ", median over " + std::to_string(metrics.size()) + " regions";
    out.emplace(name, std::move(one));
  }
  return out;
}

class Builder {
 public:
  Builder(const Regions* regions, const std::vector<Phase>& phases, Report& report)
      : regions_(regions), phases_(phases), report_(report) {}

  void run() {
    const std::vector<std::uint32_t> top = link_regions();
    // Depth first with a stack of our own: a path may be thousands of levels deep.
    std::vector<model::TableRow> pending = rows_of(top, nullptr, model::kNone);
    std::reverse(pending.begin(), pending.end());
    while (!pending.empty()) {
      model::TableRow row = std::move(pending.back());
      pending.pop_back();
      const auto row_number = static_cast<std::uint32_t>(report_.rows.size());
      std::vector<std::uint32_t> below;
      for (const std::uint32_t id : row.members)
        below.insert(below.end(), children_[id].begin(), children_[id].end());
      const bool is_merged = row.members.size() > 1;
      report_.rows.push_back(std::move(row));
      const model::TableRow* above = nullptr;
      if (is_merged)
        above = &report_.rows.back();
      std::vector<model::TableRow> next = rows_of(below, above, row_number);
      for (std::size_t i = next.size(); i-- > 0;)
        pending.push_back(std::move(next[i]));
    }
  }

 private:
  /// Fills `children_` and returns the outermost regions.
  std::vector<std::uint32_t> link_regions() {
    children_.resize(report_.regions.size());
    std::vector<std::uint32_t> top;
    for (const Region& region : report_.regions) {
      if (region.process || region.thread || of_the_profiler(region))
        continue;
      if (region.parent == model::kNone)
        top.push_back(region.id);
      else
        children_[region.parent].push_back(region.id);
    }
    // What makes communicators says nothing about a step: it goes last.
    std::stable_partition(top.begin(), top.end(), [&](std::uint32_t id) {
      return !makes_communicators(report_.regions[id]);
    });
    return top;
  }

  static bool makes_communicators(const Region& region) {
    if (region.domain != "NCCL")
      return false;
    const std::string& name = region.path.back();
    return name.starts_with("ncclComm") || name.starts_with("ncclGetUniqueId");
  }

  /// Of a trace of PyTorch: what ran on a GPU's stream, and what the profiler did, in ranges that
  /// no thread opened.
  [[nodiscard]] bool of_the_profiler(const Region& region) const {
    if (regions_ == nullptr || (region.domain != "overhead" && region.domain != "gpu_annotation"))
      return false;
    const auto& processes = regions_->session.processes;
    return !processes.empty() && processes.front().operators;
  }

  struct Child {
    std::string_view domain, folded, name;
    model::RangeKind kind;
    std::uint32_t place;  ///< in the ids that the row is made of

    [[nodiscard]] auto family() const { return std::tie(domain, kind, folded); }
  };
  /// Children of one row: of one name, or of many names that differ in numbers.
  struct Family {
    std::size_t first, last;  ///< of the children
    std::int64_t names;
  };

  /// Sorted by family and name. `texts`: takes folded names that are not the name itself.
  [[nodiscard]] std::vector<Child> children_of(const std::vector<std::uint32_t>& ids,
                                               std::deque<std::string>& texts) const {
    std::vector<Child> children;
    children.reserve(ids.size());
    for (const std::uint32_t id : ids) {
      const Region& region = report_.regions[id];
      const std::string_view name = region.path.empty() ? std::string_view() : region.path.back();
      std::string text = folded_name(name, FoldNames::kNumbers);
      std::string_view folded = name;
      if (text != name)
        folded = texts.emplace_back(std::move(text));
      const auto place = static_cast<std::uint32_t>(children.size());
      children.push_back({region.domain, folded, name, region.kind, place});
    }
    std::sort(children.begin(), children.end(), [](const Child& a, const Child& b) {
      return std::tuple_cat(a.family(), std::tie(a.name, a.place)) <
             std::tuple_cat(b.family(), std::tie(b.name, b.place));
    });
    return children;
  }

  /// In order of the first child of each. Orders the children of a family of many names by place.
  static std::vector<Family> families_of(std::vector<Child>& children) {
    std::vector<Family> families;
    for (std::size_t first = 0, last = 0; first < children.size(); first = last) {
      const std::size_t before = families.size();
      for (; last < children.size() && children[last].family() == children[first].family();
           ++last) {
        if (last == first || children[last].name != children[last - 1].name)
          families.push_back({last, last, 1});
        families.back().last = last + 1;
      }
      const auto names = static_cast<std::int64_t>(families.size() - before);
      if (names < kFewestSiblings)
        continue;
      families.resize(before);
      families.push_back({first, last, names});
      std::sort(children.begin() + static_cast<std::ptrdiff_t>(first),
                children.begin() + static_cast<std::ptrdiff_t>(last),
                [](const Child& a, const Child& b) { return a.place < b.place; });
    }
    std::sort(families.begin(), families.end(), [&](const Family& a, const Family& b) {
      return children[a.first].place < children[b.first].place;
    });
    return families;
  }

  /// Children of one row, in order of the first of each. O(n log n), 80 bytes a child while it
  /// runs.
  std::vector<model::TableRow> rows_of(const std::vector<std::uint32_t>& ids,
                                       const model::TableRow* above,
                                       std::uint32_t parent) {
    std::deque<std::string> texts;
    std::vector<Child> children = children_of(ids, texts);
    const std::vector<Family> families = families_of(children);
    std::vector<model::TableRow> rows(families.size());
    for (std::size_t i = 0; i < families.size(); ++i) {
      const auto& [first, last, names] = families[i];
      model::TableRow& row = rows[i];
      row.parent = parent;
      row.depth = parent == model::kNone ? 0 : report_.rows[parent].depth + 1;
      row.siblings = names;
      row.members.reserve(last - first);
      for (std::size_t c = first; c < last; ++c)
        row.members.push_back(ids[children[c].place]);
      const Child& child = children[first];
      if (last - first > 1)
        row.merged = merged(row.members, above, std::string(names > 1 ? child.folded : child.name));
    }
    return rows;
  }

  Region merged(const std::vector<std::uint32_t>& members,
                const model::TableRow* above,
                const std::string& name) {
    const Region& first = report_.regions[members.front()];
    Region out;
    out.id = first.id;
    out.parent = first.parent;
    out.depth = first.depth;
    out.path = above != nullptr && above->merged ? above->merged->path : first.path;
    if (above == nullptr && !out.path.empty())
      out.path.pop_back();
    out.path.push_back(name);
    out.domain = first.domain;
    out.kind = first.kind;
    out.module = first.module;
    for (const std::uint32_t id : members) {
      const Region& member = report_.regions[id];
      add_count(out.occurrences, member.occurrences);
      add_count(out.unclosed, member.unclosed);
      out.threads = std::max(out.threads, member.threads);
      out.processes = std::max(out.processes, member.processes);
      for (const auto field : model::kWallTimes)
        out.wall.*field += member.wall.*field;
      out.wall.share += member.wall.share;
      out.wall.open_ns += member.wall.open_ns;  // one after the other, where nothing tells it
      if (member.cpu && out.cpu)
        add_cpu_work(*out.cpu, *member.cpu);
      else if (member.cpu)
        out.cpu = member.cpu;
      if (member.memory && out.memory)
        add_region_memory(*out.memory, *member.memory);
      else if (member.memory)
        out.memory = member.memory;
      if (member.cuda_memory && out.cuda_memory)
        add_region_cuda_memory(*out.cuda_memory, *member.cuda_memory);
      else if (member.cuda_memory)
        out.cuda_memory = member.cuda_memory;
      if (!member.gpu)
        continue;
      if (out.gpu) {
        add_work(*out.gpu, *member.gpu);
      } else {
        out.gpu = *member.gpu;
        out.gpu->top_kernels.clear();
        out.gpu->copies_by_kind.clear();
        out.gpu->launch_latency_ns.reset();
        out.gpu->distinct_kernels = -1;
        out.gpu->kernel_ns_per_occurrence = out.gpu->busy_ns_per_occurrence = model::kNoSpread;
      }
    }
    out.wall.per_occurrence_ns = model::kNoSpread;
    if (regions_ != nullptr && !regions_->session.ranges.empty())
      put_together(members, out);
    out.metrics = merged_metrics(report_, members);
    return out;
  }

  void put_together(const std::vector<std::uint32_t>& members, Region& out) const {
    add_occurrences(occurrences_of(*regions_, phases_, members), true, out);
    out.threads = out.across && out.across->of_threads ? out.across->parts : out.threads;
    double busy = 0, traced = 0;
    for (const std::uint32_t id : members) {
      const auto& steady = report_.regions[id].steady;
      if (!steady)
        continue;
      if (!steady->busy_share)
        return;
      traced += steady->wall_total_ns;
      busy += *steady->busy_share * steady->wall_total_ns;
    }
    if (out.steady && traced > 0)
      out.steady->busy_share = busy / traced;
  }

  const Regions* regions_;
  const std::vector<Phase>& phases_;
  Report& report_;
  std::vector<std::vector<std::uint32_t>> children_;
};

/// The bound that all members have; a word of its own where they differ.
base::Held<model::Bound> common_bound(const Report& report,
                                      const std::vector<std::uint32_t>& members) {
  base::Held<model::Bound> bound;
  for (const std::uint32_t id : members) {
    const auto& bound_of_member = report.regions[id].bound;
    if (!bound_of_member)
      return std::nullopt;
    if (bound && bound->kind != bound_of_member->kind)
      return model::Bound{"mixed", "its regions differ: --all shows each"};
    if (!bound)
      bound = bound_of_member;
  }
  return bound;
}

/// Means over all instances; what one member lacks is absent.
base::Held<model::Utilization> common_use(const Report& report,
                                          const std::vector<std::uint32_t>& members) {
  using Use = model::Utilization;
  base::Held<Use> common;
  double all_ns = 0;
  for (const std::uint32_t id : members) {
    const Region& region = report.regions[id];
    if (!region.utilization)
      return std::nullopt;
    const Use& use = *region.utilization;
    const double ns =
        static_cast<double>(region.occurrences) * std::max(use.useful_wall_ns, use.busy_ns);
    if (!common)
      common = use;
    for (const auto field :
         {&Use::executed, &Use::useful, &Use::bandwidth, &Use::useful_flop, &Use::useful_bytes}) {
      std::optional<double>& mean = (*common).*field;
      if (all_ns + ns > 0 && mean && use.*field)
        mean = (*mean * all_ns + *(use.*field) * ns) / (all_ns + ns);
      if (!(use.*field))
        mean.reset();
    }
    all_ns += ns;
  }
  if (common)
    common->formula = "mean of " + base::counted(members.size(), "region");
  return common;
}

}  // namespace

void add_rows(const Regions* regions, const std::vector<Phase>& phases, Report& report) {
  Builder(regions, phases, report).run();
}

void finish_rows(Report& report) {
  const double total_ns = report.total ? report.total->kernel_ns : model::kNan;
  const auto share = [&](base::Held<GpuWork>& work) {
    if (work)
      work->share = total_ns > 0 ? work->kernel_ns / total_ns : model::kNan;
  };
  // Exporters recognize a sampled module by the lack of instances.
  const bool sampled =
      std::ranges::find(report.losses, model::LossKind("sampled_regions"), &model::Loss::kind) !=
      report.losses.end();
  const auto without_instances = [&](Region& region) {
    if (!sampled || !region.module)
      return;
    region.wall.per_occurrence_ns = model::kNoSpread;
    region.steady.reset();
    region.samples.clear();
  };
  for (Region& region : report.regions) {
    without_instances(region);
    share(region.gpu);
  }
  share(report.unattributed);
  for (model::TableRow& row : report.rows) {
    if (!row.merged)
      continue;
    without_instances(*row.merged);
    share(row.merged->gpu);
    row.merged->bound = common_bound(report, row.members);
    row.merged->utilization = common_use(report, row.members);
  }
}

}  // namespace rangescope::analyze
