#include "profile/counters.hpp"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/fs.hpp"
#include "base/held_folder.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "config/metric_groups.hpp"
#include "wire/names.hpp"

namespace rangescope::profile {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::Result;

constexpr const char* kNoteFile = "counters.json";

// "NVIDIA H200" from /proc/driver/nvidia/gpus/*/information.
std::string first_gpu_name() {
  std::error_code error;
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator("/proc/driver/nvidia/gpus", error))
    folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  for (const fs::path& folder : folders) {
    const auto text = base::read_file(folder / "information");
    if (!text)
      continue;
    for (const std::string_view line : base::split(*text, '\n')) {
      if (line.starts_with("Model:"))
        return std::string(base::trim(line.substr(6)));
    }
  }
  return {};
}

std::string note_of(const collect::native::CounterPlan& plan,
                    const collect::native::CounterRequest& request) {
  nlohmann::json note = {{"schema", "rangescope.counters/1"},
                         {"chip", plan.chip},
                         {"passes", plan.passes},
                         {"metrics", plan.metrics},
                         {"per", request.per},
                         {"rounds", request.rounds},
                         {"include", model::expressions_of(request.ranges.include)},
                         {"exclude", model::expressions_of(request.ranges.exclude)},
                         {"groups", nlohmann::json::object()},
                         {"configurations", nlohmann::json::array()},
                         {"by_payload", request.by_payload}};
  for (const auto& configuration : plan.configurations)
    note["configurations"].push_back(
        {{"passes", configuration.passes}, {"metrics", configuration.metrics}});
  for (const model::MetricGroup& group : plan.groups) {
    for (const model::GroupCounter& counter : group.counters) {
      auto& place = note["groups"][group.name][counter.alias];
      if (counter.any.empty())
        place = nullptr;
      else
        place = counter.any.front();
    }
  }
  return note.dump(2) + "\n";
}

/// A name without `__`, which is in every name of CUPTI, is one of a group. Wrong ones are found
/// on a machine without a GPU too.
Result<void> check_groups(std::span<const std::string> names,
                          std::span<const model::MetricGroup> groups) {
  std::vector<std::string> group_names;
  for (const model::MetricGroup& group : groups)
    group_names.push_back(group.name);
  for (const std::string& name : names) {
    const bool is_counter = name.find("__") != std::string::npos;
    if (is_counter || std::ranges::find(group_names, name) != group_names.end())
      continue;
    std::string hint = base::did_you_mean(name, group_names);
    if (hint.empty())
      hint = "See the groups with: rangescope metrics list";
    const std::string problem = "there is no group of metrics '" + base::printable(name) + "'";
    return base::fail(Code::kUsage, problem, "--metrics", std::move(hint));
  }
  return {};
}

/// counters.json; nothing where there is none.
nlohmann::json note_in(const fs::path& run) {
  Result<std::string> note = std::string();
  if (!run.empty())
    note = base::read_file(run / kNoteFile);
  if (!note)
    return {};
  return nlohmann::json::parse(*note, nullptr, false);
}

}  // namespace

Result<collect::native::Planner> open_planner() {
  auto library = TRY(collect::native::find_library());
  return collect::native::Planner::open(library);
}

std::string chip_named(const std::string& name) {
  const auto peaks = config::known_peaks();
  if (!peaks || name.empty())
    return name;
  const std::string word = " " + base::lower(name) + " ";
  for (const model::Peaks& gpu : *peaks)
    if (!gpu.chip.empty() && (" " + base::lower(gpu.name) + " ").find(word) != std::string::npos)
      return gpu.chip;
  return name;
}

Result<std::string> chip_of_machine() {
  const std::string name = first_gpu_name();
  if (name.empty()) {
    return base::fail(Code::kNoInput,
                      "there is no NVIDIA GPU in this machine",
                      "/proc/driver/nvidia/gpus",
                      "Plan without one: rangescope metrics plan --metrics ... --chip GH100");
  }
  auto peaks = TRY(config::known_peaks());
  if (const model::Peaks* found = model::find_peaks(peaks, name); found != nullptr)
    return found->chip;
  return base::fail(Code::kConfig,
                    "the chip of '" + name + "' is not known",
                    "conf/device",
                    "Add a file to conf/device with its name under 'match' and its 'chip', see "
                    "conf/device/README.md");
}

Result<void> may_count() {
  const auto parameters = base::read_file("/proc/driver/nvidia/params");
  if (!parameters || ::geteuid() == 0)
    return {};
  if (parameters->find("RmProfilingAdminOnly: 1") == std::string::npos)
    return {};
  return base::fail(
      Code::kPermission,
      "the driver gives hardware counters to administrators only (ERR_NVGPUCTRPERM)",
      "/proc/driver/nvidia/params",
      "Run as root; or give the container --cap-add SYS_ADMIN; or load the driver with "
      "NVreg_RestrictProfilingToAdminUsers=0 (options nvidia NVreg_RestrictProfilingToAdminUsers=0 "
      "in "
      "/etc/modprobe.d).");
}

Result<std::string> plan_text(collect::native::CounterRequest request,
                              const fs::path& run,
                              bool again) {
  if (request.passes == "relaunch")
    request.resume = (run / wire::kProgressFile).string();
  request.is_relaunch = again;
  return collect::native::counter_plan(request);
}

Result<PreparedCounters> prepare_counters(const std::vector<std::string>& names,
                                          collect::native::CounterRequest request) {
  auto groups = TRY(config::shipped_groups());
  if (!request.skip_unknown)
    TRY(check_groups(names, groups));
  auto chip =
      TRY(request.chip.empty() ? chip_of_machine() : Result<std::string>(chip_named(request.chip)));
  TRY(may_count());
  auto planner = TRY(open_planner());
  auto plan = TRY(planner.plan(chip, names, groups, request.skip_unknown));
  request.metrics = plan.metrics;
  request.wanted_by = plan.wanted_by;
  request.splits.clear();
  for (std::size_t i = 0, at = 0; i + 1 < plan.configurations.size(); ++i)
    request.splits.push_back(at += plan.configurations[i].metrics.size());
  TRY(collect::native::counter_plan(request));
  std::string note = note_of(plan, request);
  return PreparedCounters{std::move(plan), std::move(request), std::move(note)};
}

Result<PreparedCounters> prepare_samples(collect::native::CounterRequest request) {
  TRY(may_count());
  TRY(collect::native::counter_plan(request));
  std::string note = note_of({}, request);
  return PreparedCounters{{}, std::move(request), std::move(note)};
}

std::string cost_sentence(const collect::native::CounterPlan& plan) {
  if (plan.metrics.empty())
    return "program-counter samples: sampled kernels run one by one";
  std::string text =
      base::counted(plan.metrics.size(), "metric") + " in " + base::counted(plan.passes, "pass");
  if (plan.configurations.size() > 1)
    text += " of " + base::counted(plan.configurations.size(), "configuration");
  return text + " on " + plan.chip + ": a range needs " + base::counted(plan.passes, "instance") +
         " for one complete set";
}

Result<std::vector<std::pair<fs::path, std::string>>> counter_files(
    const PreparedCounters& prepared,
    const fs::path& run,
    bool again,
    collect::native::Options& native) {
  auto text = TRY(plan_text(prepared.request, run, again));
  native.extra_env[wire::kCounters] = (run / wire::kPlanFile).string();
  return std::vector<std::pair<fs::path, std::string>>{{run / wire::kPlanFile, std::move(text)},
                                                       {run / kNoteFile, prepared.note}};
}

Result<void> write_counters(const PreparedCounters& prepared,
                            const fs::path& run,
                            bool again,
                            collect::native::Options& native) {
  const auto files = TRY(counter_files(prepared, run, again, native));
  for (const auto& [path, text] : files)
    TRY(base::write_file(path, text));
  return {};
}

std::optional<RelaunchProgress> relaunch_progress(const fs::path& run) {
  const auto text = base::read_file(run / wire::kProgressFile);
  RelaunchProgress progress;
  if (!text || !text->starts_with(wire::kProgressHead) ||
      std::sscanf(text->c_str() + std::strlen(wire::kProgressHead),
                  "%u %llu",
                  &progress.lacking,
                  &progress.done) != 2)
    return std::nullopt;
  return progress;
}

void forget_progress(const fs::path& run) {
  std::error_code error;
  fs::remove(base::in_place(run / wire::kProgressFile), error);
}

bool counted_by_payload(const fs::path& run) {
  const auto note = note_in(run);
  if (!note.is_object())
    return false;
  const auto by_payload = note.find("by_payload");
  return by_payload != note.end() && by_payload->is_boolean() && by_payload->get<bool>();
}

analyze::Reference reference_of(const fs::path& run, bool measured) {
  const auto or_log = [](auto read) {
    if (!read)
      base::log(read.error());
    return std::move(read).value_or(typename decltype(read)::value_type{});
  };
  analyze::Reference reference;
  reference.peaks = or_log(config::known_peaks());
  reference.replay_costs = or_log(config::replay_costs());
  reference.sampled = or_log(config::sampled_groups());
  reference.cpu = or_log(config::cpu_counter_groups());
  for (auto& [name, match] : or_log(config::kernel_kinds()))
    reference.kinds.push_back({std::move(name), std::move(match)});
  if (!measured)
    return reference;
  auto groups = or_log(config::shipped_groups());
  if (groups.empty())
    return reference;
  const auto parsed = note_in(run);
  if (!parsed.is_object()) {
    reference.groups = std::move(groups);
    return reference;
  }
  reference.metrics_asked = true;
  std::set<std::string> grouped;
  for (model::MetricGroup& group : groups) {
    const auto found = parsed.find("groups");
    if (found == parsed.end() || !found->contains(group.name))
      continue;
    const auto& counters = (*found)[group.name];
    for (model::GroupCounter& counter : group.counters) {
      if (!counters.contains(counter.alias))
        continue;
      const auto& name = counters[counter.alias];
      counter.any.clear();
      if (name.is_string())
        grouped.insert(counter.any.emplace_back(name.get<std::string>()));
    }
    reference.groups.push_back(std::move(group));
  }
  const auto metrics = parsed.find("metrics");
  if (metrics == parsed.end() || !metrics->is_array())
    return reference;
  for (const auto& metric : *metrics) {
    if (metric.is_string() && !grouped.contains(metric.get<std::string>()))
      reference.metrics.push_back(metric.get<std::string>());
  }
  return reference;
}

}  // namespace rangescope::profile
