// What is known of ncu's and nsys's options beyond their help texts: arity, short names, names that are taken silently.
//
// Sources: the help texts of ncu 2020.3.1, 2022.3.0, 2024.1.1 and nsys 2020.4.3, 2022.4.2, 2023.4.4, and what these
// said when they were given the options; the documentation for what came later.
#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "doctor/command/line.hpp"

namespace rangescope::doctor {
namespace {

using std::string_view;

constexpr std::array<string_view, 27> kNcuSwitches{"--forward-signals",
                                                   "--help",
                                                   "--version",
                                                   "--nvtx",
                                                   "--csv",
                                                   "--force-overwrite",
                                                   "--quiet",
                                                   "--list-sets",
                                                   "--list-sections",
                                                   "--list-rules",
                                                   "--list-metrics",
                                                   "--list-chips",
                                                   "--query-metrics",
                                                   "--call-stack",
                                                   "--null-stdin",
                                                   "--support-32bit",
                                                   "--open-in-ui",
                                                   "--verbose",
                                                   "--section-folder-restore",
                                                   "--print-fp",
                                                   "--details-all",
                                                   "--print-rule-details",
                                                   "--fp",
                                                   "--disable-profiler-start-stop",
                                                   "--disable-extra-suffixes",
                                                   "--lockstep-kernel-launch",
                                                   "--print-metric-attribution"};

constexpr std::array<string_view, 3> kNsysSwitches{"--help", "--version", "--verbose"};

struct Short {
  char letter;
  string_view name;
};
constexpr std::array<Short, 8> kNcuShort{{{'h', "--help"},
                                          {'v', "--version"},
                                          {'p', "--port"},
                                          {'k', "--kernel-name"},
                                          {'c', "--launch-count"},
                                          {'s', "--launch-skip"},
                                          {'o', "--export"},
                                          {'f', "--force-overwrite"}}};
constexpr std::array<Short, 14> kNsysShort{{{'b', "--backtrace"},
                                            {'c', "--capture-range"},
                                            {'d', "--duration"},
                                            {'e', "--env-var"},
                                            {'f', "--force-overwrite"},
                                            {'h', "--help"},
                                            {'n', "--inherit-environment"},
                                            {'o', "--output"},
                                            {'p', "--nvtx-capture"},
                                            {'s', "--sample"},
                                            {'t', "--trace"},
                                            {'w', "--show-output"},
                                            {'x', "--stop-on-exit"},
                                            {'y', "--delay"}}};

// What the other tool, another version or a text has with a value, where this tool has no such option.
constexpr std::array<string_view, 30> kValueElsewhere{"--kernel-replay-mode",
                                                      "--kernel-regex",
                                                      "--kernel-regex-base",
                                                      "--kernel-name",
                                                      "--kernel-name-base",
                                                      "--summary",
                                                      "--units",
                                                      "--kernel-base",
                                                      "--sampling-interval",
                                                      "--sampling-max-passes",
                                                      "--sampling-buffer-size",
                                                      "--warp-sampling-interval",
                                                      "--warp-sampling-max-passes",
                                                      "--warp-sampling-buffer-size",
                                                      "--print-details",
                                                      "--output",
                                                      "--trace",
                                                      "--sample",
                                                      "--stats",
                                                      "--capture-range",
                                                      "--capture-range-end",
                                                      "--nvtx-capture",
                                                      "--nvtx-include",
                                                      "--nvtx-exclude",
                                                      "--stop-on-range-end",
                                                      "--set",
                                                      "--section",
                                                      "--metrics",
                                                      "--replay-mode",
                                                      "--target-processes"};

// As their "option is ambiguous and matches ..." lists them.
constexpr std::array<string_view, 8> kNsysHidden{"--cupti-activities",
                                                 "--disable-cupti-callback-handlers",
                                                 "--use-agent-api",
                                                 "--skip-postprocess",
                                                 "--opengl-annotations",
                                                 "--vulkan-annotations",
                                                 "--force-start-capture-range",
                                                 "--utilities-application-parameters"};
constexpr std::array<string_view, 5> kNcuOldNames{"--units", "--fp", "--summary", "--kernel-base", "--details-all"};

template <std::size_t N>
bool in(const std::array<string_view, N>& list, string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

Takes takes(string_view tool, string_view option, const collect::Abilities* can) {
  if (tool == "ncu" ? in(kNcuSwitches, option) : in(kNsysSwitches, option)) return Takes::kNothing;
  if (collect::may_repeat(tool, option)) return Takes::kValueEach;
  if (!can || can->has(option) || in(kNsysHidden, option) || in(kNcuOldNames, option) || in(kValueElsewhere, option))
    return Takes::kValue;
  if (option == "--nvtx" || option == "--profile-child-processes") return Takes::kNothing;
  // A slip of the pen takes what is meant takes.
  const auto near = base::nearest(option, can->option_names(), 1);
  return near.empty() ? Takes::kUnknown : takes(tool, near.front(), can);
}

std::string long_name(string_view tool, char letter) {
  const auto look = [&](const auto& list) -> std::string {
    for (const Short& each : list)
      if (each.letter == letter) return std::string(each.name);
    return {};
  };
  if (tool == "ncu" && letter == 'i') return "--import";
  return tool == "ncu" ? look(kNcuShort) : look(kNsysShort);
}

bool is_hidden_option(string_view tool, string_view option, const collect::Version& version) {
  if (tool == "nsys") return in(kNsysHidden, option);
  if (option == "--details-all") return true;  // deprecated in 2024.1, and taken
  // Dropped with 2022.4 in favour of --print-units, --print-fp, --print-summary and --print-kernel-base.
  return in(kNcuOldNames, option) && version < collect::Version{2022, 4, 0};
}

}  // namespace rangescope::doctor
