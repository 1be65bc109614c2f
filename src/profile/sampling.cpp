#include "profile/sampling.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <cstdlib>
#include <unordered_set>

#include "base/held_folder.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "collect/native/planner.hpp"
#include "config/metric_groups.hpp"
#include "wire/cpu.hpp"
#include "wire/functions.hpp"
#include "wire/names.hpp"
#include "wire/samples.hpp"

namespace rangescope::profile {

namespace {

/// The counters that are wanted, each by its names on different chips.
base::Result<std::vector<sample::Wanted>> wanted_counters(const SampleChoice& choice) {
  std::vector<sample::Wanted> wanted;
  for (const std::string& text : choice.metrics)
    for (const std::string_view name : base::split(text, ','))
      wanted.push_back({std::string(name)});
  if (!wanted.empty())
    return wanted;
  auto groups = TRY(config::sampled_groups());
  for (const model::MetricGroup& group : groups)
    for (const model::GroupCounter& counter : group.counters)
      if (!counter.any.front().starts_with("nvml__"))
        wanted.push_back(counter.any);
  return wanted;
}

constexpr std::string_view kMain = "__main__";

/// `command[i]` is the -m of "python -m MODULE".
bool runs_module(std::span<const std::string> command, std::size_t i) {
  if (i == 0 || i + 1 >= command.size() || command[i] != "-m")
    return false;
  return base::file_name(command[i - 1]).find("python") != std::string_view::npos;
}

/// "" where the command runs no script.
std::string main_module(std::span<const std::string> command) {
  constexpr std::string_view kPython = ".py";
  for (std::size_t i = 0; i < command.size(); ++i) {
    if (runs_module(command, i))
      return command[i + 1];
    if (!command[i].ends_with(kPython))
      continue;
    const std::string_view name = base::file_name(command[i]);
    return std::string(name.substr(0, name.size() - kPython.size()));
  }
  return {};
}

/// Could a region of this name be of a function that the pattern matches? Of its place only the end
/// is known.
bool may_be(std::string_view pattern, const std::string& region) {
  for (;;) {
    if (::fnmatch(std::string(pattern).c_str(), region.c_str(), FNM_NOESCAPE) == 0)
      return true;
    const std::size_t dot = pattern.find('.');
    if (dot == std::string_view::npos)
      return false;
    pattern.remove_prefix(dot + 1);
  }
}

/// The same for a line of --functions: PATTERN, or a|b=PATTERN, whose regions are named "a" or "b",
/// or "a or b" where it is not known which.
bool may_be_of_line(const std::string& line, const std::string& region) {
  const std::size_t equals = line.find('=');
  if (equals == std::string::npos)
    return may_be(line, region);
  const auto names = base::split(std::string_view(line).substr(0, equals), '|');
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
    return region == name || region.starts_with(std::string(name) + " or ");
  });
}

/// A Python function that the line chooses was sampled.
bool is_sampled(const std::string& line, const model::Session& session) {
  std::string chosen = line;
  std::string off = "off";
  wire::Functions functions;
  functions.choose(off.data(), chosen.data());
  for (const model::CpuFrame& frame : session.cpu.frames) {
    if (frame.kind != model::FrameKind::kPython || frame.file == 0)
      continue;
    const std::string file(session.strings.view(frame.file));
    const std::string name(session.strings.view(frame.name));
    if (functions.find(file.c_str(), name.c_str()) != 0)
      return true;
  }
  return false;
}

bool is_seen(const std::string& line, const model::Session& session) {
  if (is_sampled(line, session))
    return true;
  if (session.launches.empty())
    return false;
  std::unordered_set<model::StringId> asked;  // of millions of ranges few have a name of their own
  for (const model::Range& range : session.ranges) {
    const bool is_new = asked.insert(range.name).second;
    if (is_new && may_be_of_line(line, std::string(session.strings.view(range.name))))
      return true;
  }
  return false;
}

}  // namespace

base::Result<SamplePlan> plan_sampling(const SampleChoice& choice, const std::string& chip) {
  auto wanted = TRY(wanted_counters(choice));
  const auto cupti = TRY(sample::open_cupti());
  const auto chips = TRY(cupti->chips());
  TRY(collect::native::check_chip(chip, chips));
  auto set = TRY(cupti->choose(chip, wanted));
  return SamplePlan{chip, cupti->name(), std::move(set.metrics), std::move(set.left_out)};
}

base::Result<std::optional<sample::Beside>> begin_sampling(const SampleChoice& choice,
                                                           const std::filesystem::path& captures,
                                                           bool counters) {
  if (choice.off)
    return std::optional<sample::Beside>();
  sample::Options options;
  options.folder = captures / wire::samples::kFolder;
  options.interval_ns = choice.interval_ns.value_or(kAutoSample_ns);
  // A sampler next to the program's own counters steps aside whenever they hold the device: only
  // where that was asked for, since each change of hands costs both some samples and occurrences.
  // Else energy alone.
  if (!counters || choice.interval_ns) {
    options.wanted = TRY(wanted_counters(choice));
  }
  std::error_code error;
  std::filesystem::create_directories(base::in_place(options.folder), error);
  auto begun = sample::Beside::start(options);
  if (begun)
    return std::optional(std::move(*begun));
  std::filesystem::remove(options.folder, error);  // where it is empty
  if (choice.interval_ns)
    return base::fail(std::move(begun));
  base::detail("nothing is sampled: " + begun.error().what);
  return std::optional<sample::Beside>();
}

base::Result<std::vector<sample::cpu::CounterEvent>> wanted_events(const SampleChoice& choice) {
  std::vector<sample::cpu::CounterEvent> events;
  if (choice.cpu_counters.empty())
    return events;
  if (choice.cpu_off)
    return base::fail(base::Code::kUsage,
                      "the CPU's counters are read with its samples, and those are off",
                      "--cpu-counters",
                      "Leave out --cpu off");
  auto groups = TRY(config::cpu_counter_groups());
  const auto add = [&](const std::string& name) {
    if (name == "cpu-clock")
      return true;  // call chains are sampled by it
    const auto event = sample::cpu::counter_event(name);
    const auto same = [&](const sample::cpu::CounterEvent& each) { return each.name == name; };
    if (event && std::none_of(events.begin(), events.end(), same))
      events.push_back(*event);
    return event.has_value();
  };
  std::vector<std::string> known = sample::cpu::counter_names();
  for (const model::MetricGroup& group : groups)
    known.push_back(group.name);
  for (const std::string& text : choice.cpu_counters) {
    for (const std::string_view item : base::split(text, ',')) {
      const std::string name(base::trim(item));
      const auto group =
          std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.name == name; });
      if (group == groups.end() && add(name))
        continue;
      if (group == groups.end()) {
        std::string hint = base::did_you_mean(name, known);
        if (hint.empty())
          hint = "Write some of " + base::join(known, ", ");
        return base::fail(base::Code::kUsage,
                          "there is no counter of the CPU '" + base::printable(name) + "'",
                          "--cpu-counters",
                          std::move(hint));
      }
      for (const model::GroupCounter& counter : group->counters)
        if (!add(counter.any.front()))
          return base::fail(base::Code::kConfig,
                            "there is no counter of the CPU '" + counter.any.front() + "'",
                            group->file,
                            base::did_you_mean(counter.any.front(), known));
    }
  }
  return events;
}

std::filesystem::path names_cache() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path folder;
  if (cache != nullptr && *cache != '\0')
    folder = cache;
  else if (home != nullptr && *home != '\0')
    folder = std::filesystem::path(home) / ".cache";
  else
    return {};
  return folder / "rangescope" / "names";
}

std::string regions_of(const std::map<std::string, std::string>& settings) {
  const auto lines = [&](const char* setting, const char* key, std::string value) {
    const auto set = settings.find(setting);
    if (set != settings.end())
      value = set->second;
    std::string out;
    for (const std::string_view line : base::split(value, '\n'))
      if (!line.empty())
        out += std::string(key) + " " + std::string(line) + "\n";
    return out;
  };
  return lines(wire::kModules, wire::cpu::kModulesKey, "auto") +
         lines(wire::kFunctions, wire::cpu::kFunctionsKey, "") +
         lines(wire::kPhases, wire::cpu::kPhasesKey, "");
}

std::string name_main(std::string_view patterns, std::span<const std::string> command) {
  const std::string module = main_module(command);
  std::vector<std::string> lines;
  for (const std::string_view line : base::split(patterns, '\n')) {
    const std::size_t equals = line.find('=');
    std::size_t begin = 0;
    if (equals != std::string_view::npos)
      begin = equals + 1;
    std::string pattern(line.substr(begin));
    const bool is_main = pattern == kMain || pattern.starts_with(std::string(kMain) + ".");
    if (is_main && !module.empty())
      pattern.replace(0, kMain.size(), module);
    lines.push_back(std::string(line.substr(0, begin)) + pattern);
  }
  return base::join(lines, "\n");
}

std::string unmatched_functions(const std::vector<std::string>& patterns,
                                std::span<const std::string> command,
                                const model::Session& session,
                                std::string_view option) {
  std::vector<std::string> unmatched;
  for (const std::string& pattern : patterns)
    if (!is_seen(name_main(pattern, command), session))
      unmatched.push_back("'" + base::printable(pattern) + "'");
  if (unmatched.empty())
    return {};
  std::string text = std::string(option) + " " + base::join(unmatched, ", ") +
                     " matched no Python function that was seen";
  const std::string module = main_module(command);
  if (module.empty())
    return text + "; a pattern is FILE.FUNCTION, as in 'train.*' of train.py";
  return text + "; those of the script are '" + base::printable(module) + ".*' or '__main__.*'";
}

base::Result<std::optional<sample::cpu::Recorder>> begin_cpu(const SampleChoice& choice,
                                                             const std::filesystem::path& captures,
                                                             const sample::cpu::Running* to) {
  if (choice.cpu_off)
    return std::optional<sample::cpu::Recorder>();
  sample::cpu::Options options;
  options.folder = captures / wire::cpu::kFolder;
  options.interval_ns = 1'000'000'000 / choice.cpu_hz.value_or(kAutoCpu_hz);
  const bool is_ours = to != nullptr && to->of_ours;
  if (!choice.cpu_hz && !is_ours)
    options.short_interval_ns = 1'000'000'000 / kOftenCpu_hz;
  options.counters = TRY(wanted_events(choice));
  options.may_poll = !choice.cpu_hz && choice.cpu_counters.empty();
  options.regions = choice.regions;
  options.library = choice.library;
  options.cache = names_cache();
  std::error_code error;
  std::filesystem::create_directories(base::in_place(options.folder), error);
  const bool attaches = to != nullptr;
  auto begun = attaches ? sample::cpu::Recorder::attach(options, *to)
                        : sample::cpu::Recorder::start(options);
  if (begun)
    return std::optional(std::move(*begun));
  const bool attaches_to_other = attaches && !is_ours;
  const bool is_wanted = attaches_to_other || choice.cpu_hz || !choice.cpu_counters.empty();
  if (!is_wanted) {
    base::detail("the CPU is not sampled: " + begun.error().what);
    if (sample::cpu::leave_refusal(options.folder, begun.error()))
      return std::optional<sample::cpu::Recorder>();
  }
  std::filesystem::remove_all(options.folder, error);
  if (is_wanted)
    return base::fail(std::move(begun));
  return std::optional<sample::cpu::Recorder>();
}

void end_cpu(std::optional<sample::cpu::Recorder>& recorder,
             const std::filesystem::path& captures) {
  if (!recorder)
    return;
  recorder->finish();
  std::error_code error;
  const std::filesystem::path folder = base::in_place(captures);
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::filesystem::path name = entry->path().filename();
    if (name != wire::cpu::kFolder)
      return;
  }
  std::filesystem::remove_all(folder / wire::cpu::kFolder, error);
}

}  // namespace rangescope::profile
