#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "cli/subcommands.hpp"
#include "config/metric_groups.hpp"
#include "profile/counters.hpp"

namespace rangescope::cli {
namespace {

class PlanCommand final : public Subcommand {
 public:
  [[nodiscard]] std::string_view name() const override { return "plan"; }
  [[nodiscard]] std::string_view summary() const override {
    return "Say what collecting metrics costs: passes, occurrences, rounds";
  }
  [[nodiscard]] std::string_view details() const override {
    return "Pass k of a set is collected on the k-th occurrence of a range: nothing is replayed or relaunched. A "
           "range\n"
           "must occur at least as often as the set has passes. No GPU is needed to plan.\n\n"
           "  rangescope plan --metrics speed_of_light,tensor --chip GH100\n"
           "  rangescope plan --metrics dram__bytes.sum --chip GA100 -f json";
  }

  void options(const Arguments& app) override {
    app.add_option("--metrics", metrics_, "Groups and CUPTI metrics, separated by commas")
        .type_name("NAME,...")
        .required();
    app.add_option("--chip", chip_, "Chip to plan for (GH100)").type_name("CHIP");
    app.add_option("--rounds", rounds_, "Complete sets wanted for each range (5)").type_name("N").between(1, 1000);
    app.add_option("-f,--format", format_, "table or json").one_of({"table", "json"});
    bind_json(app, format_);
  }

  [[nodiscard]] int run() override {
    auto names = metric_names(metrics_);
    if (!names) return say(names.error());
    auto groups = config::shipped_groups();
    if (!groups) return say(groups.error());
    auto planner = profile::open_planner();
    if (!planner) return say(planner.error());
    auto plan = planner->plan(chip_, *names, *groups);
    if (!plan) return say(plan.error());
    if (auto explained = planner->explain(*plan); !explained) return say(explained.error());
    return put(format_ == "json" ? as_json(*plan, planner->cupti()) : as_text(*plan, planner->cupti()));
  }

 private:
  [[nodiscard]] std::size_t occurrences(const collect::native::CounterPlan& plan) const {
    return plan.passes * static_cast<std::size_t>(rounds_);
  }

  [[nodiscard]] std::string as_json(const collect::native::CounterPlan& plan, const std::string& cupti) const {
    nlohmann::json out = {{"schema", "rangescope.plan/1"},
                          {"chip", plan.chip},
                          {"source", cupti},
                          {"metrics", plan.metrics},
                          {"passes", plan.passes},
                          {"rounds", rounds_},
                          {"occurrences", {{"one_round", plan.passes}, {"all_rounds", occurrences(plan)}}},
                          {"share_a_pass", plan.together},
                          {"notes", plan.notes}};
    for (const auto& cost : plan.costs) {
      nlohmann::json item = {
          {"metric", cost.metric}, {"passes_alone", cost.alone}, {"passes_saved_without", cost.saved}};
      if (!cost.cheaper.empty()) item["cheaper"] = {{"metric", cost.cheaper}, {"passes_alone", cost.cheaper_passes}};
      out["costs"].push_back(std::move(item));
    }
    return out.dump(2) + "\n";
  }

  [[nodiscard]] std::string as_text(const collect::native::CounterPlan& plan, const std::string& cupti) const {
    std::string text = fmt::format("{}: {} in {} ({})\n", plan.chip, base::counted(plan.metrics.size(), "metric"),
                                   base::counted(plan.passes, "pass"), cupti);
    text += fmt::format("A range needs {} for one complete set, {} for {}, and a few before them to settle.\n\n",
                        base::counted(plan.passes, "occurrence"), occurrences(plan),
                        base::counted(static_cast<std::size_t>(rounds_), "round"));
    text += fmt::format("{:>5} {:>7}  metric\n", "alone", "saves");
    for (const auto& cost : plan.costs) {
      text += fmt::format("{:>5} {:>7}  {}\n", cost.alone, cost.saved, cost.metric);
      if (!cost.cheaper.empty())
        text += fmt::format("{:>13}  cheaper: {} ({} alone)\n", "", cost.cheaper, cost.cheaper_passes);
    }
    text += "\nalone: passes that the metric takes by itself; saves: passes saved by leaving it out of this set\n";
    for (const auto& set : plan.together) {
      if (set.size() > 1) text += "one pass collects: " + base::join(set, ", ") + "\n";
    }
    for (const std::string& note : plan.notes) text += "note: " + note + "\n";
    return text;
  }

  std::vector<std::string> metrics_;
  std::string chip_ = "GH100";
  std::string format_ = "table";
  int rounds_ = 5;
};

}  // namespace

std::unique_ptr<Subcommand> make_plan() {
  return std::make_unique<PlanCommand>();
}

}  // namespace rangescope::cli
