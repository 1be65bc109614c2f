#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "cli/subcommands.hpp"
#include "config/metric_groups.hpp"
#include "pages/counters.hpp"
#include "profile/counters.hpp"
#include "profile/sampling.hpp"

namespace rangescope::cli {
namespace {

class PlanCommand final : public Subcommand {
 public:
  PlanCommand()
      : Subcommand(
            "plan", "Say what collecting metrics costs: passes, occurrences, rounds",
            R"(Pass k of a set is collected on the k-th occurrence of a range: nothing is replayed or relaunched. A
range must occur at least as often as the set has passes. No GPU is needed to plan.

PM sampling (--sample) has one pass: with --sample, plan says which counters it holds, of those that are
sampled by default or of --metrics.

  rangescope plan --metrics speed_of_light,tensor --chip GH100
  rangescope plan --sample --chip GB100
  rangescope plan --metrics dram__bytes.sum --chip GA100 -f json)") {}
  void options(const Arguments& app) override {
    app.add_option("--metrics", metrics_, "Groups and CUPTI metrics, separated by commas").type_name("NAME,...");
    app.add_flag("--sample", sample_, "What one pass of PM sampling holds, instead of occurrences");
    app.add_option("--chip", chip_, "Chip to plan for (GH100)").type_name("CHIP");
    app.add_option("--rounds", rounds_, "Complete sets wanted for each range (5)").type_name("N").between(1, 1000);
    app.add_choice("-f,--format", json_, {{"table", false}, {"json", true}}, "A table, or JSON (table)");
    app.add_flag("--json", json_, "The same as -f json");
  }

  [[nodiscard]] int run() override {
    auto names = metric_names(metrics_);
    if (!names) return say(names.error());
    if (sample_) {
      const auto plan = profile::plan_sampling({.metrics = *names}, chip_);
      if (!plan) return say(plan.error());
      return put(json_ ? pages::sample_plan_json(*plan) : pages::sample_plan_page(*plan));
    }
    if (names->empty())
      return say({base::Code::kUsage, "plan needs metrics", "--metrics",
                  "Write --metrics roofline, or --sample for what is sampled by default"});
    auto groups = config::shipped_groups();
    if (!groups) return say(groups.error());
    auto planner = profile::open_planner();
    if (!planner) return say(planner.error());
    auto plan = planner->plan(chip_, *names, *groups);
    if (!plan) return say(plan.error());
    if (auto explained = planner->explain(*plan); !explained) return say(explained.error());
    if (const auto sampled = profile::plan_sampling({.metrics = plan->metrics}, plan->chip);
        sampled && sampled->left_out.empty())
      plan->notes.push_back(
          "one pass of PM sampling holds them all, on the timeline of every occurrence: --sample-metrics " +
          base::join(plan->metrics, ","));
    return put(json_ ? pages::plan_json(*plan, rounds_, planner->cupti())
                     : pages::plan_page(*plan, rounds_, planner->cupti()));
  }

 private:
  std::vector<std::string> metrics_;
  std::string chip_ = "GH100";
  bool json_ = false, sample_ = false;
  int rounds_ = 5;
};

}  // namespace

std::unique_ptr<Subcommand> make_plan() {
  return std::make_unique<PlanCommand>();
}

}  // namespace rangescope::cli
