#include "collect/nsight/options.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace rangescope::collect {
namespace {

using std::string_view;
using O = Option;
constexpr string_view kC = "ncu", kS = "nsys";  // Compute, Systems
constexpr string_view kStats = "nsys stats", kExport = "nsys export";

// clang-format off
constexpr std::array kNcuKeys{
    O{kC, "--replay-mode", 0, O::kCode | O::kListed | O::kTelling | O::kPassed | O::kLive, "replay_mode", "2020.2"},
    O{kC, "--target-processes", 0, O::kListed | O::kTelling | O::kLive, "target_processes"},
    O{kC, "--target-processes-filter", 0, O::kList | O::kTelling | O::kLive, "target_processes_filter", "2022.1"},
    O{kC, "--clock-control", 0, O::kListed | O::kTelling | O::kLive, "clock_control"},
    O{kC, "--cache-control", 0, O::kListed | O::kTelling | O::kLive, "cache_control"},
    O{kC, "--pipeline-boost-state", 0, O::kListed, "pipeline_boost_state", "2025.1"},
    O{kC, "--app-replay-match", 0, O::kListed | O::kTelling, "app_replay_match", {}, {}, kApplication},
    O{kC, "--app-replay-mode", 0, O::kListed | O::kTelling, "app_replay_mode", "2022.3", {}, kApplication},
    O{kC, "--app-replay-buffer", 0, O::kListed | O::kTelling, "app_replay_buffer", "2021.1", {}, kApplication},
    O{kC, "--range-replay-options", 0, O::kList | O::kListed | O::kTelling, "range_replay_options", "2022.1", {},
      kRange},
    O{kC, "--graph-profiling", 0, O::kListed | O::kTelling | O::kLive, "graph_profiling", "2023.1", {}, kKernel,
      "graph"},
    O{kC, "--nvtx-push-pop-scope", 0, O::kListed | O::kTelling, "push_pop_scope", "2025.1"},
    O{kC, "--nvtx-include", 0, O::kEach | O::kCode | O::kTelling | O::kPassed, "nvtx.include"},
    O{kC, "--nvtx-exclude", 0, O::kEach | O::kCode | O::kTelling | O::kPassed, "nvtx.exclude", {}, {}, kKernels},
    O{kC, "--range-filter", 0, O::kCode | O::kTelling, "range_filter", "2023.1"},
    O{kC, "--set", 0, O::kCode | O::kLive, "set"},
    O{kC, "--section", 0, O::kEach | O::kCode, "sections"},
    O{kC, "--metrics", 0, O::kList | O::kCode, "metrics"},
    O{kC, "--disable-extra-suffixes", 0, O::kSwitch, "disable_extra_suffixes", "2023.1"},
    O{kC, "--section-folder", 0, O::kEach | O::kLive, "section_folders"},
    O{kC, "--apply-rules", 0, O::kYesNo | O::kLive, "apply_rules"},
    O{kC, "--rule", 0, O::kEach | O::kLive, "rules"},
    O{kC, "--kernel-name", 'k', O::kCode | O::kTelling, "kernel_name", "2021.1", "--kernel-regex", kKernels},
    O{kC, "--kernel-name-base", 0, O::kListed | O::kCode | O::kTelling, "kernel_name_base", "2021.1",
      "--kernel-regex-base"},
    O{kC, "--kernel-id", 0, O::kCode | O::kTelling, "kernel_id", {}, {}, kKernels},
    O{kC, "--launch-skip", 's', O::kNumber | O::kTelling, "launch_skip"},
    O{kC, "--launch-skip-before-match", 0, O::kNumber | O::kTelling, "launch_skip_before_match"},
    O{kC, "--launch-count", 'c', O::kNumber | O::kTelling, "launch_count"},
    O{kC, "--filter-mode", 0, O::kListed, "filter_mode", "2022.1", {}, kKernels, "per-launch-config"},
    O{kC, "--devices", 0, O::kList, "devices"},
    O{kC, "--kill", 0, O::kYesNo | O::kLive, "kill"},
    O{kC, "--profile-from-start", 0, O::kYesNo | O::kTelling | O::kLive, "profile_from_start", {}, {}, kKernels},
    O{kC, "--check-exit-code", 0, O::kYesNo | O::kLive, "check_exit_code"},
    O{kC, "--call-stack", 0, O::kSwitch | O::kLive, "call_stack", "2022.3"},
    O{kC, "--import-source", 0, O::kYesNo | O::kTelling | O::kLive, "import_source", {}, {}, kKernels, "yes"},
    O{kC, "--source-folders", 0, O::kList, "source_folders", "2023.1", {}, kKernels},
    O{kC, "--pm-sampling-interval", 0, 0, "pm_sampling_interval", "2023.3"},
    O{kC, "--pm-sampling-buffer-size", 0, 0, "pm_sampling_buffer_size", "2023.3"},
    O{kC, "--pm-sampling-max-passes", 0, 0, "pm_sampling_max_passes", "2023.3"},
    O{kC, "--warp-sampling-interval", 0, 0, "warp_sampling_interval", "2023.1", "--sampling-interval"},
    O{kC, "--warp-sampling-max-passes", 0, O::kNumber, "warp_sampling_max_passes", "2023.1",
      "--sampling-max-passes"},
    O{kC, "--warp-sampling-buffer-size", 0, O::kNumber, "warp_sampling_buffer_size", "2023.1",
      "--sampling-buffer-size"},
    O{kC, "--rename-kernels", 0, O::kYesNo, "rename_kernels", "2025.1"},
    O{kC, "--force-overwrite", 'f', O::kSwitch, "force_overwrite"},
};

constexpr std::array kNsysKeys{
    O{kS, "--trace", 't', O::kList | O::kListed | O::kCode | O::kPassed, "trace"},
    O{kS, "--sample", 's', O::kListed, "sample"},
    O{kS, "--cpuctxsw", 0, O::kListed | O::kTelling, "cpuctxsw"},
    O{kS, "--capture-range", 'c', O::kListed | O::kCode | O::kTelling | O::kPassed, "capture_range"},
    O{kS, "--nvtx-capture", 'p', O::kCode | O::kTelling | O::kPassed, "nvtx_capture"},
    O{kS, "--capture-range-end", 0, O::kCode | O::kTelling | O::kPassed, "capture_range_end", "2021.3",
      "--stop-on-range-end"},
    O{kS, "--nvtx-domain-include", 0, O::kList | O::kCode | O::kTelling | O::kPassed, "nvtx_domain_include",
      "2022.1"},
    O{kS, "--nvtx-domain-exclude", 0, O::kList | O::kCode | O::kTelling | O::kPassed, "nvtx_domain_exclude",
      "2022.1"},
    O{kS, "--cuda-graph-trace", 0, O::kCode | O::kTelling, "cuda_graph_trace", "2022.3"},
    O{kS, "--cuda-memory-usage", 0, O::kYesNo | O::kTelling, "cuda_memory_usage"},
    O{kS, "--kill", 0, 0, "kill"},
    O{kS, "--duration", 'd', 0, "duration"},
    O{kS, "--delay", 'y', 0, "delay"},
    O{kS, "--wait", 0, O::kListed, "wait"},
    O{kS, "--stop-on-exit", 'x', O::kYesNo | O::kTelling, "stop_on_exit"},
    O{kS, "--trace-fork-before-exec", 0, O::kYesNo | O::kTelling, "trace_fork_before_exec"},
    O{kS, "--gpu-metrics-device", 0, O::kAlone | O::kTelling, "gpu_metrics_device", "2021.2",
      "--gpu-metrics-devices"},
    O{kS, "--gpu-metrics-set", 0, O::kTelling, "gpu_metrics_set", "2021.2"},
    O{kS, "--gpu-metrics-frequency", 0, O::kTelling, "gpu_metrics_frequency", "2021.2"},
};

/// Without a key.
constexpr std::array kOthers{
    O{kC, "--help", 'h', O::kSwitch | O::kAlone},
    O{kC, "--version", 'v', O::kSwitch | O::kAlone},
    O{kC, "--port", 'p'},
    O{kC, "--export", 'o', O::kPassed},
    O{kC, "--import", 'i', O::kAlone | O::kPassed},
    O{kC, "--log-file", 0, O::kPassed},
    O{kC, "--mode", 0, O::kListed | O::kPassed},
    O{kC, "--config-file", 0, O::kYesNo | O::kPassed},
    O{kC, "--nvtx", 0, O::kSwitch | O::kPassed | O::kLive},
    O{kC, "--csv", 0, O::kSwitch | O::kPassed},
    O{kC, "--page", 0, O::kListed | O::kPassed},
    O{kC, "--print-units", 0, O::kListed | O::kPassed, {}, "2020.2", "--units"},
    O{kC, "--print-details", 0, O::kListed, {}, "2022.4", "--details-all"},
    O{kC, "--print-source", 0, O::kList | O::kListed},
    O{kC, "--print-summary", 0, O::kListed, {}, "2020.2", "--summary"},
    O{kC, "--print-metric-instances", 0, O::kListed},
    O{kC, "--print-metric-name", 0, O::kListed},
    O{kC, "--print-nvtx-rename", 0, O::kListed},
    O{kC, "--print-kernel-base", 0, 0, {}, "2020.2", "--kernel-base"},
    O{kC, "--print-fp", 0, O::kSwitch, {}, "2020.2", "--fp"},
    O{kC, "--print-rule-details", 0, O::kSwitch},
    O{kC, "--print-metric-attribution", 0, O::kSwitch},
    O{kC, "--query-metrics-mode", 0, O::kListed | O::kAlone},
    O{kC, "--query-metrics-collection", 0, O::kAlone},
    O{kC, "--query-metrics", 0, O::kSwitch | O::kAlone},
    O{kC, "--chips", 0, O::kList},
    O{kC, "--list-sets", 0, O::kSwitch | O::kAlone},
    O{kC, "--list-sections", 0, O::kSwitch | O::kAlone},
    O{kC, "--list-rules", 0, O::kSwitch | O::kAlone},
    O{kC, "--list-metrics", 0, O::kSwitch | O::kAlone},
    O{kC, "--list-chips", 0, O::kSwitch | O::kAlone},
    O{kC, "--section-folder-restore", 0, O::kSwitch | O::kAlone | O::kLive},
    O{kC, "--section-folder-recursive", 0, O::kEach | O::kLive},
    O{kC, "--call-stack-type", 0, O::kListed},
    O{kC, "--import-sass", 0, O::kYesNo},
    O{kC, "--forward-signals", 0, O::kSwitch},
    O{kC, "--quiet", 0, O::kSwitch | O::kLive},
    O{kC, "--null-stdin", 0, O::kSwitch | O::kLive},
    O{kC, "--support-32bit", 0, O::kSwitch | O::kLive},
    O{kC, "--open-in-ui", 0, O::kSwitch},
    O{kC, "--verbose", 0, O::kSwitch | O::kLive},
    O{kC, "--disable-profiler-start-stop", 0, O::kSwitch | O::kLive},
    O{kC, "--lockstep-kernel-launch", 0, O::kSwitch},
    // Deprecated in 2024.1, and taken.
    O{kC, "--details-all", 0, O::kSwitch | O::kHidden},
    // Dropped with 2022.4, and in no help before.
    O{kC, "--units", 0, O::kHidden, {}, {}, "--print-units", kEveryMode, {}, "2022.4"},
    O{kC, "--fp", 0, O::kSwitch | O::kHidden, {}, {}, "--print-fp", kEveryMode, {}, "2022.4"},
    O{kC, "--summary", 0, O::kHidden, {}, {}, "--print-summary", kEveryMode, {}, "2022.4"},
    O{kC, "--kernel-base", 0, O::kHidden, {}, {}, "--print-kernel-base", kEveryMode, {}, "2022.4"},
    O{kC, "--kernel-regex", 0, 0, {}, {}, "--kernel-name", kKernels, {}, "2022.1"},
    O{kC, "--kernel-regex-base", 0, 0, {}, {}, "--kernel-name-base", kEveryMode, {}, "2022.1"},

    O{kS, "--help", 'h', O::kSwitch | O::kAlone},
    O{kS, "--version", 'v', O::kSwitch | O::kAlone},
    O{kS, "--verbose", 0, O::kSwitch},
    O{kS, "--output", 'o', O::kPassed},
    O{kS, "--force-overwrite", 'f', O::kYesNo | O::kPassed},
    O{kS, "--export", 0, O::kList | O::kEach | O::kPassed},
    O{kS, "--stats", 0, O::kYesNo | O::kPassed},
    O{kS, "--env-var", 'e', O::kList},
    O{kS, "--backtrace", 'b', O::kListed},
    O{kS, "--inherit-environment", 'n', O::kYesNo},
    O{kS, "--show-output", 'w', O::kYesNo},
    O{kS, "--gpuctxsw", 0, O::kYesNo},
    O{kS, "--event-sample", 0, O::kAlone},
    O{kS, "--nic-metrics", 0, O::kAlone},
    O{kS, "--ftrace", 0, O::kAlone},
    O{kS, "--stop-on-range-end", 0, O::kYesNo, {}, {}, "--capture-range-end", kEveryMode, {}, "2021.3"},
    // As their "option is ambiguous and matches ..." lists them.
    O{kS, "--cupti-activities", 0, O::kHidden},
    O{kS, "--disable-cupti-callback-handlers", 0, O::kHidden},
    O{kS, "--use-agent-api", 0, O::kHidden},
    O{kS, "--skip-postprocess", 0, O::kHidden},
    O{kS, "--opengl-annotations", 0, O::kHidden},
    O{kS, "--vulkan-annotations", 0, O::kHidden},
    O{kS, "--force-start-capture-range", 0, O::kHidden},
    O{kS, "--utilities-application-parameters", 0, O::kHidden},

    O{kStats, "--report", 'r', O::kList | O::kEach},
    O{kStats, "--format", 'f', O::kList | O::kEach},
    O{kStats, "--output", 'o', O::kList | O::kEach},
    O{kStats, "--quiet", 'q', O::kSwitch},
    O{kStats, "--help", 'h', O::kSwitch | O::kAlone},
    O{kStats, "--help-reports", 0, O::kSwitch | O::kAlone},
    O{kStats, "--help-formats", 0, O::kSwitch | O::kAlone},
    O{kStats, "--force-overwrite", 0, O::kYesNo},
    O{kStats, "--force-export", 0, O::kYesNo},
    O{kStats, "--timeunit"},
    O{kStats, "--sqlite"},
    O{kExport, "--type", 't'},
    O{kExport, "--output", 'o'},
    O{kExport, "--force-overwrite", 'f', O::kYesNo},
    O{kExport, "--lazy", 'l', O::kYesNo},
    O{kExport, "--quiet", 'q', O::kYesNo},
    O{kExport, "--help", 'h', O::kSwitch | O::kAlone},
};

// Run with ncu 2022.3.0 and 2024.1.1.
constexpr std::array kConflicts{
    Conflict{"--app-replay-mode", "relaxed", "--app-replay-buffer", "memory", "--app-replay-buffer", {}},
    Conflict{"--range-filter", {}, "--nvtx-exclude", {}, "--range-filter", {}},
    Conflict{"--kernel-id", {}, "--launch-skip", {}, "--launch-skip", "which counts launches itself"},
};
constexpr std::array kNeeds{
    Need{kC, "--print-summary", "per-nvtx", "--nvtx", {}},
    Need{kC, "--print-source", {}, "--page", "source"},
    Need{kC, "--source-folders", {}, "--import-source", "yes"},
};
// clang-format on

/// Calls `see` with every row; the first true ends it.
template <class See>
const Option* search(See see) {
  for (const std::span<const Option> rows :
       {std::span<const Option>(kNcuKeys), std::span<const Option>(kNsysKeys), std::span<const Option>(kOthers)})
    for (const Option& row : rows)
      if (see(row)) return &row;
  return nullptr;
}

Takes taken_by(const Option& row) {
  return row.is(Option::kSwitch) ? Takes::kNothing : row.is(Option::kEach) ? Takes::kValueEach : Takes::kValue;
}

bool stands_in(const std::vector<std::string>& argv, const std::string& option) {
  return std::any_of(argv.begin(), argv.end(), [&](const std::string& word) {
    return word == option || (word.starts_with(option) && word[option.size()] == '=');
  });
}

}  // namespace

unsigned mode_bit(string_view mode) {
  return mode == "kernel"        ? kKernel
         : mode == "application" ? kApplication
         : mode == "range"       ? kRange
         : mode == "app-range"   ? kAppRange
                                 : 0u;
}

std::string mode_names(unsigned modes) {
  std::vector<std::string> names;
  for (const char* name : {"kernel", "application", "range", "app-range"})
    if (modes & mode_bit(name)) names.emplace_back(name);
  return base::join(names, ", ");
}

bool Option::refused_in(unsigned mode, string_view value) const {
  return mode != 0 && !(modes & mode) &&
         (only_value.empty() || value == only_value || (only_value == "yes" && is_yes(value)));
}

std::span<const Option> option_table(string_view tool) {
  if (tool == kC) return kNcuKeys;
  return kNsysKeys;
}

const Option* find_option(string_view tool, string_view name) {
  const Option* own = search([&](const Option& row) { return row.tool == tool && row.name == name; });
  return own ? own : search([&](const Option& row) { return row.tool == tool && row.other == name; });
}

string_view name_of(const Option& option, const Abilities& can) {
  if (can.has(option.name)) return option.name;
  return !option.other.empty() && can.has(option.other) ? option.other : string_view{};
}

bool has_trait(string_view tool, string_view option, unsigned trait) {
  const Option* row = find_option(tool, option);
  return row && row->is(trait);
}

Takes takes(string_view tool, string_view option, const Abilities* can) {
  if (const Option* row = find_option(tool, option)) return taken_by(*row);
  if (!can || can->has(option)) return Takes::kValue;
  if (const Option* row = find_option(tool == kC ? kS : kC, option)) return taken_by(*row);
  // Of nvprof, and one that texts have and no tool.
  if (option == "--profile-child-processes") return Takes::kNothing;
  if (option == "--kernel-replay-mode") return Takes::kValue;
  // A slip of the pen takes what is meant takes.
  const auto near = base::nearest(option, can->option_names(), 1);
  return near.empty() ? Takes::kUnknown : takes(tool, near.front(), can);
}

std::string long_name(string_view tool, char letter) {
  const Option* row = search([&](const Option& each) { return each.tool == tool && each.letter == letter; });
  return row ? std::string(row->name) : std::string{};
}

bool is_hidden_option(string_view tool, string_view option, const Version& version) {
  const Option* row = find_option(tool, option);
  return row && row->name == option && row->is(Option::kHidden) &&
         (row->until.empty() || version < parse_version(std::string(row->until) + ".0"));
}

bool is_boolean(string_view value) {
  const std::string low = base::lower(value);
  for (const char* no : {"false", "no", "off", "0"})
    if (low == no) return true;
  return is_yes(value);
}

bool is_yes(string_view value) {
  const std::string low = base::lower(value);  // ncu takes YES
  return low == "true" || low == "yes" || low == "on" || low == "1";
}

std::span<const Conflict> conflicts() {
  return kConflicts;
}
std::span<const Need> needs() {
  return kNeeds;
}

base::Result<void> fits_a_command(std::span<const std::string> argv) {
  constexpr std::size_t kLongest = 128 * 1024;  // MAX_ARG_STRLEN of Linux, its terminating zero included
  for (std::size_t i = 0; i < argv.size(); ++i) {
    if (argv[i].size() < kLongest) continue;
    const std::string option =
        i > 0 && argv[i - 1].starts_with("--") ? argv[i - 1] : argv[i].substr(0, argv[i].find('='));
    return base::fail(base::Code::kConfig,
                      "the value of " + base::printable(option.substr(0, 40)) + " has " +
                          std::to_string(argv[i].size()) + " characters, and one word of a command line may have " +
                          std::to_string(kLongest - 1),
                      {},
                      option.starts_with("--kernel")
                          ? "Name kernels by what their names share (regex:gemm), or leave the filter out: "
                            "`report --kernel` narrows a report afterwards."
                          : "Name fewer, or use an expression that covers them: regex:...");
  }
  return {};
}

base::Result<void> add_extra_args(std::span<const std::string> words, const Abilities& can, string_view key,
                                  std::vector<std::string>& argv) {
  const auto refuse = [&](std::string what, std::string hint) -> base::Result<void> {
    return base::fail(base::Code::kConfig, std::move(what), std::string(key), std::move(hint));
  };
  const std::string keys = "Use its key; `rangescope config show pipeline." + can.tool + "` lists them.";
  bool value_may_follow = false;
  for (const std::string& word : words) {
    if (word.starts_with("--")) {
      const std::string option = word.substr(0, word.find('='));
      if (has_trait(can.tool, option, Option::kPassed)) return refuse(option + " is rangescope's own to pass", keys);
      if (!can.has(option))
        return refuse(can.tool + " " + to_string(can.version) + " has no option " + option,
                      base::did_you_mean(option, can.option_names()));
      if (stands_in(argv, option) && takes(can.tool, option, &can) != Takes::kValueEach)
        return refuse(option + " would stand twice, which " + can.tool + " refuses", keys);
      value_may_follow = option.size() == word.size();
    } else if (word.size() > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9')) {
      // A short name could be that of an option which is passed already.
      return refuse("'" + base::printable(word) + "' is a short option",
                    "Write its long name, and its value behind '=': --option=value.");
    } else if (!value_may_follow) {
      return refuse("'" + base::printable(word) + "' is no option, so " + can.tool + " would run it as the program",
                    "Write --option=value.");
    } else {
      value_may_follow = false;
    }
    argv.push_back(word);
  }
  return {};
}

}  // namespace rangescope::collect
