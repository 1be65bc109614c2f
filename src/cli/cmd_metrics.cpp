#include <algorithm>

#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/subcommands.hpp"
#include "config/metric_groups.hpp"
#include "pages/counters.hpp"
#include "profile/counters.hpp"

namespace rangescope::cli {
namespace {

using wire::planner::MetricKind;

constexpr std::array<std::pair<MetricKind, const char*>, 3> kKinds = {
    {{MetricKind::kCounter, "counter"}, {MetricKind::kRatio, "ratio"}, {MetricKind::kThroughput, "throughput"}}};

class Metrics final : public Subcommand {
 public:
  Metrics()
      : Subcommand("metrics", "List, show and search metric groups and CUPTI metrics",
                   R"(Works on a machine without a GPU: CUPTI knows every chip.

  rangescope metrics list                          the groups
  rangescope metrics show roofline                 one group: counters, formulas, meaning
  rangescope metrics show dram__bytes --chip GA100
  rangescope metrics search tensor --chip GH100    base names of CUPTI metrics)") {}
  void options(const Arguments& app) override {
    app.add_option("action", action_, "list, show or search").one_of({"list", "show", "search"}).required();
    app.add_option("what", what_, "A group, a metric, or a word").type_name("NAME");
    app.add_option("--chip", chip_, "Chip whose metrics are meant (GH100)").type_name("CHIP");
    app.add_flag("--json", json_, "Print JSON");
  }

  [[nodiscard]] int run() override {
    auto groups = config::shipped_groups();
    if (!groups) return say(groups.error());
    if (action_ == "list" && !what_.empty())
      return say({base::Code::kUsage, "'" + base::printable(what_) + "' is too much", "argument 2",
                  "Write: rangescope metrics show " + base::shell_quote(what_)});
    if (action_ == "list") return list(*groups);
    if (what_.empty())
      return say(
          {base::Code::kUsage, "metrics " + action_ + " needs a name", "argument 2", "See: rangescope help metrics"});
    return action_ == "show" ? show(*groups) : search();
  }

 private:
  [[nodiscard]] int list(const std::vector<model::MetricGroup>& groups) const {
    if (json_) return put(pages::groups_json(groups, true));
    return put(pages::groups_page(groups));
  }

  [[nodiscard]] int show(const std::vector<model::MetricGroup>& groups) const {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.name == what_; });
    if (group != groups.end())
      return json_ ? put(pages::groups_json({&*group, 1}, false)) : put(pages::group_page(*group));
    auto planner = profile::open_planner();
    if (!planner) return say(planner.error());
    auto info = planner->describe(chip_, what_);
    if (!info) {
      base::Error error = info.error();
      std::vector<std::string> names(groups.size());
      std::transform(groups.begin(), groups.end(), names.begin(), [](const auto& g) { return g.name; });
      if (const std::string near = base::did_you_mean(what_, names); !near.empty()) error.hint = near;
      return say(error);
    }
    return put(json_ ? pages::metric_json(*info, chip_) : pages::metric_page(*info, chip_, planner->cupti()));
  }

  [[nodiscard]] int search() const {
    auto planner = profile::open_planner();
    if (!planner) return say(planner.error());
    const std::string word = base::lower(what_);
    pages::FoundMetrics found;
    for (const auto& [kind, title] : kKinds) {
      auto names = planner->metrics(chip_, kind);
      if (!names) return say(names.error());
      for (const std::string& metric : *names)
        if (base::lower(metric).find(word) != std::string::npos) found.emplace_back(metric, title);
    }
    if (found.empty())
      return say({base::Code::kNoInput, "no metric of " + chip_ + " has '" + what_ + "' in its name", "argument 2",
                  "Search for a shorter word, for example: rangescope metrics search bytes --chip " + chip_});
    return put(pages::found_metrics(found, json_));
  }

  std::string action_, what_;
  std::string chip_ = "GH100";
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Subcommand> make_metrics() {
  return std::make_unique<Metrics>();
}

}  // namespace rangescope::cli
