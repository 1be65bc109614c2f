#include "collect/native/planner.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "base/text.hpp"
#include "base/units.hpp"
#include "wire/counter_plan.hpp"

namespace rangescope::collect::native {
namespace {

using base::Code;
using base::Result;
using wire::planner::MetricKind;

constexpr std::size_t kMaxReason = 512;

void append(void* context, const char* name) {
  static_cast<std::vector<std::string>*>(context)->emplace_back(name);
}

// "dram__bytes" of "dram__bytes.sum".
std::string base_name(const std::string& metric) {
  return metric.substr(0, metric.find('.'));
}

}  // namespace

Result<Planner> Planner::open(const std::filesystem::path& inject_library) {
  void* library = ::dlopen(inject_library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return base::fail(Code::kToolMissing,
                      ::dlerror(),
                      inject_library.string(),
                      "Build or install rangescope again.");
  const auto get =
      reinterpret_cast<wire::planner::GetTable>(::dlsym(library, wire::planner::kSymbol));
  if (get == nullptr) {
    return base::fail(Code::kToolMissing,
                      "the library was built without CUPTI",
                      inject_library.string(),
                      "Install the CUDA toolkit (CUPTI's headers) and build rangescope again.");
  }
  const auto* table = get();
  if (table->version != wire::planner::kVersion) {
    return base::fail(Code::kToolMissing,
                      "the library is of another version of rangescope",
                      inject_library.string(),
                      "Install the program and its library together.");
  }
  std::array<char, kMaxReason> reason{};
  if (table->open(reason.data(), reason.size()) != 0) {
    return base::fail(
        Code::kToolMissing,
        reason.data(),
        "CUPTI",
        "Install CUDA 12.6 or newer, or set RANGESCOPE_CUPTI to the path of its libcupti.so.");
  }
  return Planner(table);
}

std::string Planner::cupti() const {
  return std::string("CUPTI ") + table_->library_version() + ", " + table_->library();
}

Result<void> check_chip(const std::string& chip, const std::vector<std::string>& chips) {
  if (std::ranges::find(chips, chip) != chips.end())
    return {};
  std::string hint = base::did_you_mean(chip, chips);
  if (hint.empty())
    hint = "Chips: " + base::join(chips, ", ") + ".";
  return base::fail(
      Code::kUsage, "unknown chip '" + base::printable(chip) + "'", "--chip", std::move(hint));
}

Result<std::vector<std::string>> Planner::chips() const {
  std::vector<std::string> names;
  std::array<char, kMaxReason> reason{};
  if (table_->chips(append, &names, reason.data(), reason.size()) != 0)
    return base::fail(Code::kToolMissing, reason.data(), table_->library());
  return names;
}

Result<std::vector<std::string>> Planner::metrics(const std::string& chip, MetricKind kind) const {
  std::vector<std::string> names;
  std::array<char, kMaxReason> reason{};
  if (table_->metrics(chip.c_str(), kind, append, &names, reason.data(), reason.size()) != 0) {
    const auto all_chips = chips();
    if (all_chips)
      TRY(check_chip(chip, *all_chips));
    return base::fail(Code::kToolMissing, reason.data(), table_->library());
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Result<std::vector<std::string>> Planner::all_metrics(const std::string& chip) const {
  std::vector<std::string> names;
  for (const MetricKind kind :
       {MetricKind::kCounter, MetricKind::kRatio, MetricKind::kThroughput}) {
    const auto names_of_kind = TRY(metrics(chip, kind));
    names.insert(names.end(), names_of_kind.begin(), names_of_kind.end());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<MetricInfo> Planner::describe(const std::string& chip, const std::string& metric) const {
  std::vector<std::string> description, hardware, dimension;
  // The table hands all three to one context; a small dispatcher keeps them apart.
  struct Three {
    std::vector<std::string>* out[3];
  } three{{&description, &hardware, &dimension}};
  std::array<char, kMaxReason> reason{};
  const int answer = table_->describe(
      chip.c_str(),
      metric.c_str(),
      [](void* c, const char* text) { static_cast<Three*>(c)->out[0]->emplace_back(text); },
      [](void* c, const char* text) { static_cast<Three*>(c)->out[1]->emplace_back(text); },
      [](void* c, const char* text) { static_cast<Three*>(c)->out[2]->emplace_back(text); },
      &three,
      reason.data(),
      reason.size());
  if (answer > 0)
    return tl::make_unexpected(unknown_metric(chip, metric, {}));
  if (answer < 0)
    return base::fail(Code::kToolMissing, reason.data(), table_->library());
  return MetricInfo{metric, description.at(0), hardware.at(0), dimension.at(0)};
}

Result<std::size_t> Planner::passes(const std::string& chip,
                                    std::span<const std::string> names) const {
  std::vector<const char*> pointers;
  for (const std::string& name : names)
    pointers.push_back(name.c_str());
  std::size_t number = 0, refused = 0;
  std::array<char, kMaxReason> reason{};
  const int answer = table_->passes(chip.c_str(),
                                    pointers.data(),
                                    pointers.size(),
                                    &number,
                                    &refused,
                                    reason.data(),
                                    reason.size());
  if (answer == 1)
    return tl::make_unexpected(unknown_metric(chip, names[refused], {}));
  if (answer < 0)
    return base::fail(Code::kToolMissing, reason.data(), table_->library());
  if (answer > 0)
    return 0;
  return number;
}

base::Error Planner::unknown_metric(const std::string& chip,
                                    const std::string& metric,
                                    std::span<const model::MetricGroup> groups) const {
  const auto has_metric = [&](const std::string& chip_name) {
    const auto metrics = all_metrics(chip_name);
    return metrics && std::ranges::binary_search(*metrics, base_name(metric));
  };
  base::Error error{Code::kUsage, "no metric '" + metric + "' on " + chip, "--metrics", {}};
  if (has_metric(chip)) {
    error.what = "metric '" + metric + "' needs a right suffix";
    error.hint =
        "Add one of .sum .avg .min .max (counters), .pct (ratios), "
        ".avg.pct_of_peak_sustained_elapsed (throughputs).";
    return error;
  }
  std::vector<std::string> elsewhere;
  if (const auto all_chips = chips()) {
    for (const std::string& other : *all_chips) {
      if (other != chip && has_metric(other))
        elsewhere.push_back(other);
    }
  }
  if (!elsewhere.empty()) {
    error.hint = "Chips that have it: " + base::join(elsewhere, ", ") + ".";
    return error;
  }
  std::vector<std::string> names;
  for (const model::MetricGroup& group : groups)
    names.push_back(group.name);
  if (const auto metrics = all_metrics(chip))
    names.insert(names.end(), metrics->begin(), metrics->end());
  error.hint = base::did_you_mean(base_name(metric), names);
  if (error.hint.empty())
    error.hint = "List them with: rangescope metrics search WORD --chip " + chip;
  return error;
}

namespace {

bool lacks_counter(const model::MetricGroup& group, const auto& is_on_chip) {
  return std::ranges::any_of(group.counters, [&](const model::GroupCounter& counter) {
    return !counter.absent && std::ranges::none_of(counter.any, is_on_chip);
  });
}

/// The metrics of a plan, each once, with the groups that want them.
class PlannedMetrics {
 public:
  explicit PlannedMetrics(CounterPlan& plan) : plan_(plan) {}

  void add(const std::string& metric) {
    if (planned_.insert(metric).second)
      plan_.metrics.push_back(metric);
  }

  /// Adds for each counter of the group the first of its metrics that the chip has. Returns a
  /// counter that the group needs and the chip lacks, if there is one.
  std::optional<model::GroupCounter> add_group(model::MetricGroup group, const auto& is_on_chip) {
    for (model::GroupCounter& counter : group.counters) {
      const auto metric = std::ranges::find_if(counter.any, is_on_chip);
      if (metric != counter.any.end()) {
        counter.any = {std::string(*metric)};
        add_for_group(counter.any.front(), group.name);
        continue;
      }
      if (!counter.absent)
        return counter;
      plan_.notes.push_back("group " + group.name + ": " + plan_.chip + " has no counter for '" +
                            counter.alias + "'");
      counter.any.clear();
    }
    plan_.groups.push_back(std::move(group));
    return std::nullopt;
  }

 private:
  void add_for_group(const std::string& metric, const std::string& group) {
    add(metric);
    std::string& wanted_by = plan_.wanted_by[metric];
    if (!wanted_by.empty())
      wanted_by += ',';
    wanted_by += group;
  }

  CounterPlan& plan_;
  std::set<std::string> planned_;
};

}  // namespace

Result<CounterPlan> Planner::plan(const std::string& chip,
                                  std::span<const std::string> names,
                                  std::span<const model::MetricGroup> groups,
                                  bool skip_unknown) const {
  const auto chip_metrics = TRY(all_metrics(chip));
  const auto is_on_chip = [&](const std::string& metric) {
    return std::ranges::binary_search(chip_metrics, base_name(metric));
  };
  CounterPlan plan;
  plan.chip = chip;
  PlannedMetrics planned(plan);
  for (const std::string& name : names) {
    const auto group = std::ranges::find(groups, name, &model::MetricGroup::name);
    const bool is_group = group != groups.end();
    const bool is_available = is_group ? !lacks_counter(*group, is_on_chip) : is_on_chip(name);
    if (skip_unknown && !is_available) {
      plan.skipped.push_back(name);
      continue;
    }
    if (!is_group) {
      const bool has_suffix = name.find('.') != std::string::npos;
      if (!is_available || !has_suffix)
        return tl::make_unexpected(unknown_metric(chip, name, groups));
      planned.add(name);
      continue;
    }
    if (const auto missing = planned.add_group(*group, is_on_chip)) {
      base::Error error = unknown_metric(chip, missing->any.front(), groups);
      error.what = "group '" + name + "' needs " + base::join(missing->any, " or ") + ", which " +
                   chip + " does not have";
      return tl::make_unexpected(std::move(error));
    }
  }
  if (plan.metrics.empty()) {
    std::string problem = "no metrics are asked for";
    if (!plan.skipped.empty())
      problem = "no metric is left that " + chip + " has";
    return base::fail(Code::kUsage,
                      std::move(problem),
                      "--metrics",
                      "Name groups or CUPTI metrics, separated by commas.");
  }
  TRY(configure(plan));
  return plan;
}

// First fit in the requested order. CUPTI counts NVLink, C2C and PCIe for the device, everything
// else for the context, and never both in one configuration (documentation of CUPTI 13.1, seen
// with 13.0).
Result<void> Planner::configure(CounterPlan& plan) const {
  const auto common_passes = TRY(passes(plan.chip, plan.metrics));
  plan.configurations = {{plan.metrics, common_passes}};
  if (common_passes == 0) {
    plan.configurations.clear();
    for (const std::string& metric : plan.metrics) {
      bool is_placed = false;
      for (Configuration& configuration : plan.configurations) {
        configuration.metrics.push_back(metric);
        auto number = TRY(passes(plan.chip, configuration.metrics));
        is_placed = number > 0;
        if (is_placed) {
          configuration.passes = number;
          break;
        }
        configuration.metrics.pop_back();
      }
      if (is_placed)
        continue;
      const auto metric_passes = TRY(passes(plan.chip, {&metric, 1}));
      plan.configurations.push_back({{metric}, metric_passes});
    }
    plan.metrics.clear();
    for (const Configuration& configuration : plan.configurations)
      plan.metrics.insert(
          plan.metrics.end(), configuration.metrics.begin(), configuration.metrics.end());
  }
  plan.passes = 0;
  for (const Configuration& configuration : plan.configurations)
    plan.passes += configuration.passes;
  if (plan.configurations.size() <= wire::counters::kMaxConfigurations)
    return {};
  return base::fail(
      Code::kUsage,
      base::counted(plan.configurations.size(), "set") + " that cannot be counted together",
      "--metrics",
      "Ask for fewer at a time.");
}

Result<void> Planner::explain(CounterPlan& plan) const {
  plan.costs.clear();
  plan.together.clear();
  for (const std::string& metric : plan.metrics) {
    MetricCost cost = TRY(cost_of(plan, metric));
    if (cost.alone == 1)
      add_to_one_pass(plan, metric);
    plan.costs.push_back(std::move(cost));
  }
  std::ranges::stable_sort(plan.costs, std::ranges::greater(), &MetricCost::saved);
  return {};
}

Result<MetricCost> Planner::cost_of(const CounterPlan& plan, const std::string& metric) const {
  // Metrics that answer much the same question with fewer passes.
  static constexpr std::array<std::pair<const char*, const char*>, 4> kCheaper = {{
      {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
       "dram__throughput.avg.pct_of_peak_sustained_elapsed"},
      {"sm__throughput.avg.pct_of_peak_sustained_elapsed",
       "sm__instruction_throughput.avg.pct_of_peak_sustained_elapsed"},
      {"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
       "dram__throughput.avg.pct_of_peak_sustained_elapsed"},
      {"lts__throughput.avg.pct_of_peak_sustained_elapsed",
       "lts__t_sectors.avg.pct_of_peak_sustained_elapsed"},
  }};
  const auto configuration =
      std::ranges::find_if(plan.configurations, [&](const Configuration& candidate) {
        return std::ranges::find(candidate.metrics, metric) != candidate.metrics.end();
      });
  MetricCost cost;
  cost.metric = metric;
  cost.alone = TRY(passes(plan.chip, {&metric, 1}));
  std::vector<std::string> others = configuration->metrics;
  std::erase(others, metric);
  std::size_t passes_without = 0;
  if (!others.empty())
    passes_without = TRY(passes(plan.chip, others));
  cost.saved = configuration->passes - std::min(configuration->passes, passes_without);
  for (const auto& [expensive, cheaper] : kCheaper) {
    if (metric != expensive)
      continue;
    const std::string name = cheaper;
    const auto cheaper_passes = passes(plan.chip, {&name, 1});
    if (!cheaper_passes || *cheaper_passes >= cost.alone)
      continue;
    cost.cheaper = name;
    cost.cheaper_passes = *cheaper_passes;
  }
  return cost;
}

// First fit in the requested order.
void Planner::add_to_one_pass(CounterPlan& plan, const std::string& metric) const {
  for (std::vector<std::string>& set : plan.together) {
    std::vector<std::string> extended = set;
    extended.push_back(metric);
    const auto set_passes = passes(plan.chip, extended);
    if (!set_passes || *set_passes != 1)
      continue;
    set = std::move(extended);
    return;
  }
  plan.together.push_back({metric});
}

}  // namespace rangescope::collect::native
