#include <fmt/chrono.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "cli/subcommand.hpp"
#include "collect/native/calibrate.hpp"
#include "collect/native/planner.hpp"
#include "collect/nsight/tools.hpp"
#include "config/compose.hpp"
#include "config/metric_groups.hpp"
#include "model/metric_group.hpp"
#include "model/peaks.hpp"
#include "profile/counters.hpp"
#include "profile/sampling.hpp"

namespace rangescope::cli {
namespace {

// What `rangescope metrics` and `rangescope metrics plan` print: groups of metrics, and what
// counting them costs.

std::size_t occurrences(const collect::native::CounterPlan& plan, int rounds) {
  return plan.passes * static_cast<std::size_t>(rounds);
}

/// A name and, from column 18 on, its description.
std::string name_line(const std::string& name, const std::string& description) {
  constexpr std::size_t kNameWidth = 18;
  const std::size_t gap = std::max(kNameWidth, name.size() + 1) - name.size();
  return name + std::string(gap, ' ') + description + "\n";
}

nlohmann::json to_json(const model::MetricGroup& group) {
  nlohmann::json out = {{"name", group.name}, {"title", group.title}, {"explain", group.explain}};
  for (const auto& counter : group.counters)
    out["counters"][counter.alias] = counter.any;
  for (const auto& metric : group.metrics) {
    out["metrics"].push_back({{"name", metric.name},
                              {"title", metric.title},
                              {"unit", metric.unit},
                              {"formula", metric.formula.text()},
                              {"explain", metric.explain}});
  }
  return out;
}

std::string metric_page(const collect::native::MetricInfo& metric,
                        const std::string& chip,
                        const std::string& cupti) {
  return metric.name + " (" + chip + ")\n  " + metric.description +
         "\n  unit of hardware: " + metric.hardware + "\n  dimension: " + metric.dimension +
         "\n  source: " + cupti + "\n";
}

nlohmann::json metric_json(const collect::native::MetricInfo& metric, const std::string& chip) {
  return {{"name", metric.name},
          {"chip", chip},
          {"description", metric.description},
          {"hardware", metric.hardware},
          {"dimension", metric.dimension}};
}

/// A line a group.
std::string groups_page(std::span<const model::MetricGroup> groups) {
  std::string text;
  for (const auto& group : groups)
    text += name_line(group.name, group.title);
  return text +
         "\nOne of them: rangescope metrics show NAME. Cost: rangescope metrics plan --metrics "
         "NAME --chip GH100\n";
}

std::string group_page(const model::MetricGroup& group) {
  std::string text = group.name + ": " + group.title + "\n" + group.explain + "\n\ncounters\n";
  for (const auto& counter : group.counters) {
    std::string names = base::join(counter.any, " or ");
    if (counter.absent)
      names += " (may be missing)";
    text += "  " + name_line(counter.alias, names);
  }
  text += "\nmetrics\n";
  for (const auto& metric : group.metrics) {
    text += "  " + metric.name + " [" + metric.unit + "] = " + metric.formula.text() + "\n      " +
            metric.explain + "\n";
  }
  return text;
}

nlohmann::json plan_json(const collect::native::CounterPlan& plan,
                         int rounds,
                         const std::string& cupti) {
  nlohmann::json out = {
      {"schema", "rangescope.plan/1"},
      {"chip", plan.chip},
      {"source", cupti},
      {"metrics", plan.metrics},
      {"passes", plan.passes},
      {"configurations", nlohmann::json::array()},
      {"rounds", rounds},
      {"occurrences", {{"one_round", plan.passes}, {"all_rounds", occurrences(plan, rounds)}}},
      {"share_a_pass", plan.together},
      {"notes", plan.notes}};
  for (const auto& configuration : plan.configurations)
    out["configurations"].push_back(
        {{"passes", configuration.passes}, {"metrics", configuration.metrics}});
  for (const auto& cost : plan.costs) {
    nlohmann::json item = {{"metric", cost.metric},
                           {"passes_alone", cost.alone},
                           {"passes_saved_without", cost.saved}};
    if (!cost.cheaper.empty())
      item["cheaper"] = {{"metric", cost.cheaper}, {"passes_alone", cost.cheaper_passes}};
    out["costs"].push_back(std::move(item));
  }
  return out;
}

std::string plan_page(const collect::native::CounterPlan& plan,
                      int rounds,
                      const std::string& cupti) {
  std::string text = fmt::format("{}: {} in {} ({})\n",
                                 plan.chip,
                                 base::counted(plan.metrics.size(), "metric"),
                                 base::counted(plan.passes, "pass"),
                                 cupti);
  text += fmt::format(
      "A range needs {} for one complete set, {} for {}, and a few before them to warm up.\n\n",
      base::counted(plan.passes, "instance"),
      occurrences(plan, rounds),
      base::counted(static_cast<std::size_t>(rounds), "round"));
  if (plan.configurations.size() > 1) {
    text += fmt::format(
        "CUPTI cannot count them together: {} configurations, each in separate instances\n",
        plan.configurations.size());
    for (const auto& configuration : plan.configurations)
      text += fmt::format("  {}: {}\n",
                          base::counted(configuration.passes, "pass"),
                          base::join(configuration.metrics, ", "));
    text += "\n";
  }
  text += fmt::format("{:>5} {:>7}  metric\n", "alone", "saves");
  for (const auto& cost : plan.costs) {
    text += fmt::format("{:>5} {:>7}  {}\n", cost.alone, cost.saved, cost.metric);
    if (!cost.cheaper.empty())
      text +=
          fmt::format("{:>13}  cheaper: {} ({} alone)\n", "", cost.cheaper, cost.cheaper_passes);
  }
  text +=
      "\nalone: passes of the metric by itself; saves: passes saved by leaving it out of this "
      "set\n";
  for (const auto& set : plan.together) {
    if (set.size() > 1)
      text += "one pass collects: " + base::join(set, ", ") + "\n";
  }
  for (const std::string& note : plan.notes)
    text += "note: " + note + "\n";
  return text;
}

nlohmann::json sample_plan_json(const profile::SamplePlan& plan) {
  return {{"schema", "rangescope.sample_plan/1"},
          {"chip", plan.chip},
          {"cupti", plan.cupti},
          {"passes", plan.metrics.empty() ? 0 : 1},
          {"metrics", plan.metrics},
          {"left_out", plan.left_out}};
}

std::string sample_plan_page(const profile::SamplePlan& plan) {
  std::string text = fmt::format("{}: one pass of PM sampling collects {} ({})\n",
                                 plan.chip,
                                 base::counted(plan.metrics.size(), "counter"),
                                 plan.cupti);
  for (const std::string& metric : plan.metrics)
    text += "  " + metric + "\n";
  if (!plan.left_out.empty())
    text += "left out, unknown to this chip or in another pass:\n";
  for (const std::string& metric : plan.left_out)
    text += "  " + metric + "\n";
  return text;
}

// What `rangescope metrics calibrate` prints, and the file of conf/device that it keeps.

using collect::native::Calibration;

std::string in_quotes(const std::string& text) {
  return "\"" + base::replace_all(base::replace_all(text, "\\", "\\\\"), "\"", "\\\"") + "\"";
}

std::string line(const std::string& what,
                 double measured,
                 const double* sheet,
                 std::string_view unit) {
  std::string text = fmt::format("{:<14} {:>14}", what, base::format_si(measured, unit));
  if (sheet != nullptr && *sheet > 0)
    text +=
        fmt::format(" {:>14}  {:>4.0f} %", base::format_si(*sheet, unit), measured / *sheet * 100);
  return text + "\n";
}

const double* rate_on_sheet(const model::Peaks& sheet, const std::string& key) {
  const auto rate = sheet.flop_per_s.find(key);
  if (rate == sheet.flop_per_s.end())
    return nullptr;
  return &rate->second;
}

/// The measured values, with the data sheet's next to them; `sheet` may be null.
std::string calibration_table(const Calibration& c, const model::Peaks* sheet) {
  std::string_view sheet_title;
  const double* sheet_bytes_per_s = nullptr;
  if (sheet != nullptr) {
    sheet_title = "data sheet";
    sheet_bytes_per_s = &sheet->memory_bytes_per_s;
  }
  std::string text = c.device + ", driver for CUDA " + c.driver + "\n" +
                     fmt::format("{:<14} {:>14} {:>14}\n", "", "measured", sheet_title);
  text += line("memory", c.memory_bytes_per_s, sheet_bytes_per_s, "B/s");
  for (const auto& [key, rate] : c.flop_per_s) {
    const double* sheet_rate = nullptr;
    if (sheet != nullptr)
      sheet_rate = rate_on_sheet(*sheet, key);
    text += line(key, rate, sheet_rate, "FLOP/s");
  }
  return text;
}

/// As conf/device has it; rates that were not measured are the data sheet's.
std::string calibration_yaml(const Calibration& c, const model::Peaks* sheet) {
  std::vector<std::string> unmeasured;
  std::string rates;
  for (const auto& [key, rate] : c.flop_per_s)
    rates += fmt::format("  {}: {:.4g}\n", key, rate);
  std::string chip = "unknown";
  if (sheet != nullptr) {
    chip = sheet->chip;
    for (const auto& [key, rate] : sheet->flop_per_s) {
      if (c.flop_per_s.contains(key))
        continue;
      rates += fmt::format("  {}: {:.6g}\n", key, rate);
      unmeasured.push_back(key);
    }
  }
  std::string source =
      fmt::format("measured by rangescope calibrate, {:%Y-%m-%d}, driver for CUDA {}",
                  fmt::gmtime(std::time(nullptr)),
                  c.driver);
  if (!unmeasured.empty())
    source += "; " + base::join(unmeasured, ", ") + " from: " + sheet->source;
  return "name: " + in_quotes(c.device + ", calibrated") + "\nmatch: [" + in_quotes(c.device) +
         "]\nchip: " + chip + "\nsource: " + in_quotes(source) +
         fmt::format("\nmemory_bytes_per_s: {:.4g}\nflop_per_s:\n", c.memory_bytes_per_s) + rates;
}

/// "nvidia-h200.yaml" of "NVIDIA H200".
std::string calibration_file(const std::string& device) {
  std::string name = base::lower(device);
  const auto is_kept = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  std::replace_if(name.begin(), name.end(), std::not_fn(is_kept), '-');
  return name + ".yaml";
}

using wire::planner::MetricKind;

constexpr std::array<std::pair<MetricKind, const char*>, 3> kKinds = {
    {{MetricKind::kCounter, "counter"},
     {MetricKind::kRatio, "ratio"},
     {MetricKind::kThroughput, "throughput"}}};

/// "a,b" as a list.
base::Result<std::vector<std::string>> metric_names(const std::vector<std::string>& options) {
  std::vector<std::string> names;
  for (const std::string& option : options) {
    for (const std::string_view item : base::split(option, ',')) {
      const std::string_view name = base::trim(item);
      if (name.empty())
        return base::fail(base::Code::kUsage, "an empty name in '" + option + "'", "--metrics");
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
    for (const Arguments& arguments : {show_, search_, plan_})
      arguments.add_option("--chip", said_chip_);
    for (const Arguments& arguments : {list_, show_, search_, plan_})
      arguments.add_flag("--json", json_);
    plan_.add_option("--metrics", metrics_);
    plan_.add_flag("--sample", sample_);
    plan_.add_option("--rounds", rounds_).between(1, 1000);
    plan_.add_choice("-f,--format", json_, {{"table", false}, {"json", true}});
    calibrate_.add_option("--device", device_).between(0, 1023);
    calibrate_.add_flag("--dry-run", dry_run_);
  }

  [[nodiscard]] base::Result<int> run() override {
    if (calibrate_.parsed())
      return calibrate();
    auto groups = TRY(config::shipped_groups());
    if (list_.parsed() && !what_.empty())
      return of_ncu();
    if (list_.parsed() && !json_)
      return put(groups_page(groups));
    if (list_.parsed()) {
      nlohmann::json list = nlohmann::json::array();
      for (const auto& group : groups)
        list.push_back(to_json(group));
      return put_json(list);
    }
    chip_ = profile::chip_named(said_chip_);
    if (plan_.parsed())
      return plan(groups);
    if (show_.parsed())
      return show(groups);
    return search();
  }

 private:
  /// What --set and --section may be.
  [[nodiscard]] base::Result<int> of_ncu() const {
    auto can = collect::probe_tool("ncu", collect::tool_search());
    if (!can && can.error().code == base::Code::kToolMissing) {
      auto newest = can;
      if (const auto conf = config::shipped_folder())
        newest = collect::newest_known("ncu", *conf / "tools");
      if (newest) {
        base::warn("no ncu was found here; these are those of ncu " +
                   collect::to_string(newest->version) + ", the newest version that is known");
        can = std::move(newest);
      }
    }
    if (!can)
      return tl::make_unexpected(can.error());
    if (json_)
      return put(collect::to_json(*can));
    if (what_ == "sections")
      return put(sections_page(*can));
    return put(sets_page(*can));
  }

  static std::string sections_page(const collect::Abilities& ncu) {
    std::string text;
    for (const std::string& section : ncu.sections)
      text += section + "\n";
    return text;
  }

  static std::string sets_page(const collect::Abilities& ncu) {
    std::string text;
    for (const auto& [set, sections] : ncu.sets) {
      text += set;
      if (set == ncu.default_set)
        text += " (default)";
      text += ": " + base::join(sections, ", ") + "\n";
    }
    return text;
  }

  [[nodiscard]] base::Result<int> show(const std::vector<model::MetricGroup>& groups) const {
    const auto group =
        std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.name == what_; });
    if (group != groups.end() && json_)
      return put_json(to_json(*group));
    if (group != groups.end())
      return put(group_page(*group));
    auto planner = TRY(profile::open_planner());
    auto info = planner.describe(chip_, what_);
    if (!info) {
      base::Error error = info.error();
      std::vector<std::string> names(groups.size());
      std::transform(
          groups.begin(), groups.end(), names.begin(), [](const auto& g) { return g.name; });
      if (const std::string near = base::did_you_mean(what_, names); !near.empty())
        error.hint = near;
      return tl::make_unexpected(std::move(error));
    }
    if (json_)
      return put_json(metric_json(*info, chip_));
    return put(metric_page(*info, chip_, planner.cupti()));
  }

  [[nodiscard]] base::Result<int> search() const {
    auto planner = TRY(profile::open_planner());
    const std::string word = base::lower(what_);
    nlohmann::json found = nlohmann::json::array();
    std::string lines;
    for (const auto& [kind, title] : kKinds) {
      auto names = TRY(planner.metrics(chip_, kind));
      for (const std::string& metric : names) {
        if (base::lower(metric).find(word) == std::string::npos)
          continue;
        found.push_back({{"name", metric}, {"kind", title}});
        lines += name_line(metric, title);
      }
    }
    if (found.empty())
      return base::fail(
          base::Code::kNoInput,
          "no metric of " + chip_ + " has '" + what_ + "' in its name",
          "metrics search",
          "Search for a shorter word, for example: rangescope metrics search bytes --chip " +
              chip_);
    if (json_)
      return put_json(found);
    return put(lines);
  }

  [[nodiscard]] base::Result<int> plan(const std::vector<model::MetricGroup>& groups) const {
    auto names = TRY(metric_names(metrics_));
    if (sample_) {
      const auto plan = TRY(profile::plan_sampling({.metrics = names}, chip_));
      if (json_)
        return put_json(sample_plan_json(plan));
      return put(sample_plan_page(plan));
    }
    if (names.empty())
      return base::fail(base::Code::kUsage,
                        "metrics plan needs metrics",
                        "--metrics",
                        "Write --metrics roofline, or --sample for the default samples");
    auto planner = TRY(profile::open_planner());
    auto planned = TRY(planner.plan(chip_, names, groups));
    TRY(planner.explain(planned));
    if (const auto sampled = profile::plan_sampling({.metrics = planned.metrics}, planned.chip);
        sampled && sampled->left_out.empty())
      planned.notes.push_back(
          "one pass of PM sampling holds them all, on the timeline of every instance: "
          "--sample-metrics " +
          base::join(planned.metrics, ","));
    if (json_)
      return put_json(plan_json(planned, rounds_, planner.cupti()));
    return put(plan_page(planned, rounds_, planner.cupti()));
  }

  [[nodiscard]] base::Result<int> calibrate() const {
    auto shipped = TRY(config::known_peaks());
    auto measured = TRY(collect::native::calibrate(device_));
    std::erase_if(shipped, [](const model::Peaks& peaks) { return peaks.measured; });
    const model::Peaks* sheet = model::find_peaks(shipped, measured.device);
    for (const std::string& note : measured.notes)
      base::warn(note);
    TRY(put(calibration_table(measured, sheet)));
    if (dry_run_)
      return 0;
    const auto folder = TRY(config::user_devices());
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    const auto file = folder / calibration_file(measured.device);
    TRY(base::write_file(file, calibration_yaml(measured, sheet)));
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
