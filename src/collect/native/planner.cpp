#include "collect/native/planner.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/text.hpp"
#include "base/units.hpp"
#include "wire/counter_plan.hpp"

namespace rangescope::collect::native {
namespace {

using base::Code;
using base::Result;
using wire::planner::MetricKind;

constexpr std::size_t kWhy = 512;

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
    return base::fail(Code::kToolMissing, ::dlerror(), inject_library.string(),
                      "Build or install rangescope again.");
  const auto get =
      reinterpret_cast<wire::planner::GetTable>(::dlsym(library, wire::planner::kSymbol));
  if (get == nullptr) {
    return base::fail(Code::kToolMissing, "the library was built without CUPTI",
                      inject_library.string(),
                      "Install the CUDA toolkit (CUPTI's headers) and build rangescope again.");
  }
  const auto* table = get();
  if (table->version != wire::planner::kVersion) {
    return base::fail(Code::kToolMissing, "the library is of another version of rangescope",
                      inject_library.string(), "Install the program and its library together.");
  }
  std::array<char, kWhy> why{};
  if (table->open(why.data(), why.size()) != 0) {
    return base::fail(
        Code::kToolMissing, why.data(), "CUPTI",
        "Install CUDA 12.6 or newer, or set RANGESCOPE_CUPTI to the path of its libcupti.so.");
  }
  return Planner(table);
}

std::string Planner::cupti() const {
  return std::string("CUPTI ") + table_->library_version() + ", " + table_->library();
}

Result<void> check_chip(const std::string& chip, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), chip) != known.end()) return {};
  std::string hint = base::did_you_mean(chip, known);
  if (hint.empty()) hint = "Chips: " + base::join(known, ", ") + ".";
  return base::fail(Code::kUsage, "unknown chip '" + base::printable(chip) + "'", "--chip",
                    std::move(hint));
}

Result<std::vector<std::string>> Planner::chips() const {
  std::vector<std::string> names;
  std::array<char, kWhy> why{};
  if (table_->chips(append, &names, why.data(), why.size()) != 0)
    return base::fail(Code::kToolMissing, why.data(), table_->library());
  return names;
}

Result<std::vector<std::string>> Planner::metrics(const std::string& chip, MetricKind kind) const {
  std::vector<std::string> names;
  std::array<char, kWhy> why{};
  if (table_->metrics(chip.c_str(), kind, append, &names, why.data(), why.size()) != 0) {
    auto known = chips();
    if (known) TRY(check_chip(chip, *known));
    return base::fail(Code::kToolMissing, why.data(), table_->library());
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Result<std::vector<std::string>> Planner::all_metrics(const std::string& chip) const {
  std::vector<std::string> all;
  for (const MetricKind kind :
       {MetricKind::kCounter, MetricKind::kRatio, MetricKind::kThroughput}) {
    auto some = TRY(metrics(chip, kind));
    all.insert(all.end(), some.begin(), some.end());
  }
  std::sort(all.begin(), all.end());
  return all;
}

Result<MetricInfo> Planner::describe(const std::string& chip, const std::string& metric) const {
  std::vector<std::string> description, hardware, dimension;
  // The table hands all three to one context; a small dispatcher keeps them apart.
  struct Three {
    std::vector<std::string>* out[3];
  } three{{&description, &hardware, &dimension}};
  std::array<char, kWhy> why{};
  const int answer = table_->describe(
      chip.c_str(), metric.c_str(),
      [](void* c, const char* text) { static_cast<Three*>(c)->out[0]->emplace_back(text); },
      [](void* c, const char* text) { static_cast<Three*>(c)->out[1]->emplace_back(text); },
      [](void* c, const char* text) { static_cast<Three*>(c)->out[2]->emplace_back(text); }, &three,
      why.data(), why.size());
  if (answer > 0) return tl::make_unexpected(unknown_metric(chip, metric, {}));
  if (answer < 0) return base::fail(Code::kToolMissing, why.data(), table_->library());
  return MetricInfo{metric, description.at(0), hardware.at(0), dimension.at(0)};
}

Result<std::size_t> Planner::passes(const std::string& chip,
                                    std::span<const std::string> names) const {
  std::vector<const char*> pointers;
  for (const std::string& name : names) pointers.push_back(name.c_str());
  std::size_t number = 0, refused = 0;
  std::array<char, kWhy> why{};
  const int answer = table_->passes(chip.c_str(), pointers.data(), pointers.size(), &number,
                                    &refused, why.data(), why.size());
  if (answer == 1) return tl::make_unexpected(unknown_metric(chip, names[refused], {}));
  if (answer < 0) return base::fail(Code::kToolMissing, why.data(), table_->library());
  return answer == 0 ? number : 0;
}

base::Error Planner::unknown_metric(const std::string& chip, const std::string& metric,
                                    std::span<const model::MetricGroup> groups) const {
  const auto have = [&](const std::string& of) {
    const auto all = all_metrics(of);
    return all && std::binary_search(all->begin(), all->end(), base_name(metric));
  };
  base::Error error{Code::kUsage, "no metric '" + metric + "' on " + chip, "--metrics", {}};
  if (have(chip)) {
    error.what = "metric '" + metric + "' needs a right suffix";
    error.hint =
        "Add one of .sum .avg .min .max (counters), .pct (ratios), "
        ".avg.pct_of_peak_sustained_elapsed (throughputs).";
    return error;
  }
  std::vector<std::string> elsewhere;
  if (const auto known = chips()) {
    for (const std::string& other : *known) {
      if (other != chip && have(other)) elsewhere.push_back(other);
    }
  }
  if (!elsewhere.empty()) {
    error.hint = "Chips that have it: " + base::join(elsewhere, ", ") + ".";
    return error;
  }
  std::vector<std::string> names;
  for (const model::MetricGroup& group : groups) names.push_back(group.name);
  if (const auto all = all_metrics(chip)) names.insert(names.end(), all->begin(), all->end());
  error.hint = base::did_you_mean(base_name(metric), names);
  if (error.hint.empty())
    error.hint = "List them with: rangescope metrics search WORD --chip " + chip;
  return error;
}

Result<CounterPlan> Planner::plan(const std::string& chip, std::span<const std::string> names,
                                  std::span<const model::MetricGroup> groups,
                                  bool skip_unknown) const {
  const auto all = TRY(all_metrics(chip));
  const auto on_chip = [&](const std::string& metric) {
    return std::binary_search(all.begin(), all.end(), base_name(metric));
  };

  CounterPlan plan;
  plan.chip = chip;
  std::set<std::string> seen;
  const auto want = [&](const std::string& metric, const std::string& group = {}) {
    if (seen.insert(metric).second) plan.metrics.push_back(metric);
    if (group.empty()) return;
    std::string& wanted_by = plan.wanted_by[metric];
    wanted_by += (wanted_by.empty() ? "" : ",") + group;
  };
  for (const std::string& name : names) {
    const auto group =
        std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.name == name; });
    if (group == groups.end()) {
      if (skip_unknown && !on_chip(name)) {
        plan.skipped.push_back(name);
        continue;
      }
      if (!on_chip(name) || name.find('.') == std::string::npos)
        return tl::make_unexpected(unknown_metric(chip, name, groups));
      want(name);
      continue;
    }
    model::MetricGroup resolved = *group;
    if (skip_unknown &&
        std::any_of(resolved.counters.begin(), resolved.counters.end(), [&](const auto& counter) {
          return !counter.absent && std::none_of(counter.any.begin(), counter.any.end(), on_chip);
        })) {
      plan.skipped.push_back(name);
      continue;
    }
    for (model::GroupCounter& counter : resolved.counters) {
      const auto found = std::find_if(counter.any.begin(), counter.any.end(), on_chip);
      if (found != counter.any.end()) {
        counter.any = {*found};
        want(counter.any.front(), name);
      } else if (counter.absent) {
        plan.notes.push_back("group " + name + ": " + chip + " has no counter for '" +
                             counter.alias + "'");
        counter.any.clear();
      } else {
        base::Error error = unknown_metric(chip, counter.any.front(), groups);
        error.what = "group '" + name + "' needs " + base::join(counter.any, " or ") + ", which " +
                     chip + " does not have";
        return tl::make_unexpected(std::move(error));
      }
    }
    plan.groups.push_back(std::move(resolved));
  }
  if (plan.metrics.empty())
    return base::fail(Code::kUsage,
                      plan.skipped.empty() ? "no metrics are asked for"
                                           : "no metric is left that " + chip + " has",
                      "--metrics", "Name groups or CUPTI metrics, separated by commas.");
  TRY(configure(plan));
  return plan;
}

// First fit, in the order asked for: CUPTI counts NVLink, C2C and PCIe for the device, all else for
// the context, and never both in one configuration (documentation of CUPTI 13.1, seen with 13.0).
Result<void> Planner::configure(CounterPlan& plan) const {
  auto all = TRY(passes(plan.chip, plan.metrics));
  plan.configurations = {{plan.metrics, all}};
  if (all == 0) {
    plan.configurations.clear();
    for (const std::string& metric : plan.metrics) {
      bool placed = false;
      for (Configuration& configuration : plan.configurations) {
        configuration.metrics.push_back(metric);
        auto number = TRY(passes(plan.chip, configuration.metrics));
        placed = number > 0;
        if (placed) {
          configuration.passes = number;
          break;
        }
        configuration.metrics.pop_back();
      }
      if (placed) continue;
      auto alone = TRY(passes(plan.chip, {&metric, 1}));
      plan.configurations.push_back({{metric}, alone});
    }
    plan.metrics.clear();
    for (const Configuration& one : plan.configurations)
      plan.metrics.insert(plan.metrics.end(), one.metrics.begin(), one.metrics.end());
  }
  plan.passes = 0;
  for (const Configuration& one : plan.configurations) plan.passes += one.passes;
  if (plan.configurations.size() <= wire::counters::kMaxConfigurations) return {};
  return base::fail(
      Code::kUsage,
      base::counted(plan.configurations.size(), "set") + " that cannot be counted together",
      "--metrics", "Ask for fewer at a time.");
}

Result<void> Planner::explain(CounterPlan& plan) const {
  // Metrics that can be had together: first fit, in the order asked for, of sets that take one
  // pass.
  plan.costs.clear();
  plan.together.clear();
  for (const std::string& metric : plan.metrics) {
    const auto own = std::find_if(
        plan.configurations.begin(), plan.configurations.end(), [&](const Configuration& c) {
          return std::find(c.metrics.begin(), c.metrics.end(), metric) != c.metrics.end();
        });
    MetricCost cost;
    cost.metric = metric;
    cost.alone = TRY(passes(plan.chip, {&metric, 1}));
    std::vector<std::string> others;
    std::copy_if(own->metrics.begin(), own->metrics.end(), std::back_inserter(others),
                 [&](const auto& m) { return m != metric; });
    const auto without = TRY(others.empty() ? Result<std::size_t>(0) : passes(plan.chip, others));
    cost.saved = own->passes - std::min(own->passes, without);
    // The neighbours that answer much the same question for less.
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
    for (const auto& [dear, cheap] : kCheaper) {
      if (metric != dear) continue;
      const std::string name = cheap;
      if (const auto cost_of = passes(plan.chip, {&name, 1}); cost_of && *cost_of < cost.alone) {
        cost.cheaper = name;
        cost.cheaper_passes = *cost_of;
      }
    }
    if (cost.alone == 1) {
      bool placed = false;
      for (auto& set : plan.together) {
        auto tried = set;
        tried.push_back(metric);
        const auto number = passes(plan.chip, tried);
        if (number && *number == 1) {
          set = std::move(tried);
          placed = true;
          break;
        }
      }
      if (!placed) plan.together.push_back({metric});
    }
    plan.costs.push_back(std::move(cost));
  }
  std::stable_sort(plan.costs.begin(), plan.costs.end(),
                   [](const auto& a, const auto& b) { return a.saved > b.saved; });
  return {};
}

}  // namespace rangescope::collect::native
