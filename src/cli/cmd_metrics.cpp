#include <algorithm>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "cli/print/calibration.hpp"
#include "cli/print/counters.hpp"
#include "cli/subcommands.hpp"
#include "collect/native/calibrate.hpp"
#include "collect/nsight/tools.hpp"
#include "config/compose.hpp"
#include "config/metric_groups.hpp"
#include "profile/counters.hpp"
#include "profile/sampling.hpp"

namespace rangescope::cli {
namespace {

using wire::planner::MetricKind;

constexpr std::array<std::pair<MetricKind, const char*>, 3> kKinds = {
    {{MetricKind::kCounter, "counter"}, {MetricKind::kRatio, "ratio"}, {MetricKind::kThroughput, "throughput"}}};

/// "a,b" as a list.
base::Result<std::vector<std::string>> metric_names(const std::vector<std::string>& options) {
  std::vector<std::string> names;
  for (const std::string& option : options) {
    for (const std::string_view item : base::split(option, ',')) {
      const std::string_view name = base::trim(item);
      if (name.empty()) return base::fail(base::Code::kUsage, "an empty name in '" + option + "'", "--metrics");
      names.emplace_back(name);
    }
  }
  return names;
}

class Metrics final : public Subcommand {
 public:
  Metrics() : Subcommand("metrics") {}
  void options(const Arguments& app) override {
    list_ = app.add_subcommand("list");
    show_ = app.add_subcommand("show");
    search_ = app.add_subcommand("search");
    plan_ = app.add_subcommand("plan");
    calibrate_ = app.add_subcommand("calibrate");
    list_.add_option("what", what_).one_of({"sets", "sections"});
    show_.add_option("what", what_).required();
    search_.add_option("what", what_).required();
    for (const Arguments& each : {show_, search_, plan_}) each.add_option("--chip", said_chip_);
    for (const Arguments& each : {list_, show_, search_, plan_}) each.add_flag("--json", json_);
    plan_.add_option("--metrics", metrics_);
    plan_.add_flag("--sample", sample_);
    plan_.add_option("--rounds", rounds_).between(1, 1000);
    plan_.add_choice("-f,--format", json_, {{"table", false}, {"json", true}});
    calibrate_.add_option("--device", device_).between(0, 1023);
    calibrate_.add_flag("--dry-run", dry_run_);
  }

  [[nodiscard]] int run() override {
    if (calibrate_.parsed()) return calibrate();
    auto groups = config::shipped_groups();
    if (!groups) return say(groups.error());
    if (list_.parsed() && !what_.empty()) return of_ncu();
    if (list_.parsed()) return put(json_ ? groups_json(*groups, true) : groups_page(*groups));
    chip_ = profile::chip_named(said_chip_);
    return plan_.parsed() ? plan(*groups) : show_.parsed() ? show(*groups) : search();
  }

 private:
  /// What --set and --section may be.
  [[nodiscard]] int of_ncu() const {
    auto can = collect::probe_tool("ncu", collect::tool_search());
    if (!can && can.error().code == base::Code::kToolMissing) {
      const auto conf = config::shipped_folder();
      if (auto known = conf ? collect::newest_known("ncu", *conf / "tools") : can; known) {
        base::warn("no ncu was found here; these are those of ncu " + collect::to_string(known->version) +
                   ", the newest version that is known");
        can = std::move(known);
      }
    }
    if (!can) return say(can.error());
    if (json_) return put(collect::to_json(*can));
    std::string text;
    if (what_ == "sections")
      for (const std::string& section : can->sections) text += section + "\n";
    else
      for (const auto& [set, sections] : can->sets)
        text += set + (set == can->default_set ? " (default)" : "") + ": " + base::join(sections, ", ") + "\n";
    return put(text);
  }

  [[nodiscard]] int show(const std::vector<model::MetricGroup>& groups) const {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.name == what_; });
    if (group != groups.end()) return json_ ? put(groups_json({&*group, 1}, false)) : put(group_page(*group));
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
    return put(json_ ? metric_json(*info, chip_) : metric_page(*info, chip_, planner->cupti()));
  }

  [[nodiscard]] int search() const {
    auto planner = profile::open_planner();
    if (!planner) return say(planner.error());
    const std::string word = base::lower(what_);
    FoundMetrics found;
    for (const auto& [kind, title] : kKinds) {
      auto names = planner->metrics(chip_, kind);
      if (!names) return say(names.error());
      for (const std::string& metric : *names)
        if (base::lower(metric).find(word) != std::string::npos) found.emplace_back(metric, title);
    }
    if (found.empty())
      return say({base::Code::kNoInput, "no metric of " + chip_ + " has '" + what_ + "' in its name", "metrics search",
                  "Search for a shorter word, for example: rangescope metrics search bytes --chip " + chip_});
    return put(found_metrics(found, json_));
  }

  [[nodiscard]] int plan(const std::vector<model::MetricGroup>& groups) const {
    auto names = metric_names(metrics_);
    if (!names) return say(names.error());
    if (sample_) {
      const auto plan = profile::plan_sampling({.metrics = *names}, chip_);
      if (!plan) return say(plan.error());
      return put(json_ ? sample_plan_json(*plan) : sample_plan_page(*plan));
    }
    if (names->empty())
      return say({base::Code::kUsage, "metrics plan needs metrics", "--metrics",
                  "Write --metrics roofline, or --sample for what is sampled by default"});
    auto planner = profile::open_planner();
    if (!planner) return say(planner.error());
    auto planned = planner->plan(chip_, *names, groups);
    if (!planned) return say(planned.error());
    if (auto explained = planner->explain(*planned); !explained) return say(explained.error());
    if (const auto sampled = profile::plan_sampling({.metrics = planned->metrics}, planned->chip);
        sampled && sampled->left_out.empty())
      planned->notes.push_back(
          "one pass of PM sampling holds them all, on the timeline of every occurrence: --sample-metrics " +
          base::join(planned->metrics, ","));
    return put(json_ ? plan_json(*planned, rounds_, planner->cupti()) : plan_page(*planned, rounds_, planner->cupti()));
  }

  [[nodiscard]] int calibrate() const {
    auto shipped = config::known_peaks();
    if (!shipped) return say(shipped.error());
    auto measured = collect::native::calibrate(device_);
    if (!measured) return say(measured.error());
    std::erase_if(*shipped, [](const model::Peaks& peaks) { return peaks.measured; });
    const model::Peaks* sheet = model::find_peaks(*shipped, measured->device);
    for (const std::string& note : measured->notes) base::warn(note);
    if (const int failed = put(calibration_table(*measured, sheet)); failed != 0) return failed;
    if (dry_run_) return 0;
    const auto folder = config::user_devices();
    if (!folder) return say(folder.error());
    std::error_code error;
    std::filesystem::create_directories(*folder, error);
    const auto file = *folder / calibration_file(measured->device);
    if (auto written = base::write_file(file, calibration_yaml(*measured, sheet)); !written)
      return say(written.error());
    base::info("kept in " + file.string());
    return 0;
  }

  Arguments list_, show_, search_, plan_, calibrate_;
  std::string what_, said_chip_ = "GH100", chip_;
  std::vector<std::string> metrics_;
  int rounds_ = 5, device_ = 0;
  bool json_ = false, sample_ = false, dry_run_ = false;
};

}  // namespace

std::unique_ptr<Subcommand> make_metrics() {
  return std::make_unique<Metrics>();
}

}  // namespace rangescope::cli
