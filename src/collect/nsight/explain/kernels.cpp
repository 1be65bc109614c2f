#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "collect/nsight/explain/rules.hpp"
#include "collect/nsight/ncu.hpp"
#include "model/range_expression.hpp"
#include "model/selection.hpp"

namespace rangescope::collect::command {
namespace {

std::vector<std::string> set_names(const Abilities& tool) {
  std::vector<std::string> names;
  for (const auto& [name, sections] : tool.sets)
    names.push_back(name);
  return names;
}

/// The value of the option, as far as it can be judged: null without a value, or if a shell expands
/// it.
const std::string* known_value(const CommandLine& line, std::string_view name) {
  const Argument* argument = line.find(name);
  const bool is_known = argument && argument->value && !argument->value->expands;
  if (!is_known)
    return nullptr;
  return &argument->value->text;
}

void judge_set(Explaining& about) {
  const std::string* value = known_value(about.line, "--set");
  if (!value || !about.can || about.can->sets.empty())
    return;
  const std::string name = *value;
  if (about.can->sets.contains(name))
    return;
  const std::vector<std::string> names = set_names(*about.can);
  const std::string& default_set = about.can->default_set;
  const bool is_other_default = (name == "basic" || name == "default") && !default_set.empty();
  std::string better;
  if (is_other_default) {
    better = default_set;
  } else if (const auto nearest = base::nearest(name, names, 1); !nearest.empty()) {
    better = nearest.front();
  }
  std::string hint = "Leave it out for the default set (" + default_set + ")";
  if (!better.empty())
    hint = "Write --set " + better;
  about.fail("unknown_set",
             about.me() + " has no set '" + name + "'; it has " + base::join(names, ", "),
             hint);
  about.line.set("--set", better);
}

void judge_sections(Explaining& about) {
  if (!about.can || about.can->sections.empty())
    return;
  const CommandLine& line = about.line;
  const bool has_own_folder =
      line.has("--section-folder") || line.has("--section-folder-recursive");
  if (has_own_folder)
    return;
  const std::vector<std::string> names(about.can->sections.begin(), about.can->sections.end());
  std::erase_if(about.line.arguments, [&](Argument& argument) {
    if (argument.name != "--section" || !argument.value || argument.value->expands)
      return false;
    const std::string name = argument.value->text;
    if (name.starts_with("regex:") || about.can->sections.contains(name))
      return false;
    const std::string problem = about.me() + " has no section '" + name + "'";
    const auto nearest = base::nearest(name, names, 1);
    if (nearest.empty()) {
      about.fail("unknown_section", problem, "Leave it out; `ncu --list-sections` names them");
      return true;
    }
    about.fail("unknown_section", problem, "Write --section " + nearest.front());
    argument.value = literal(nearest.front());
    return false;
  });
}

/// The most similar metric with the suffix of `metric` (".sum"); "" if none is similar.
std::string similar_metric(const Abilities& tool, const std::string& metric) {
  const std::vector<std::string> names(tool.metrics.begin(), tool.metrics.end());
  const std::size_t dot = std::min(metric.find('.'), metric.size());
  const std::string nearest = nearest_name(metric.substr(0, dot), names);
  if (nearest.empty())
    return {};
  return nearest + metric.substr(dot);
}

/// Reports a metric that ncu lacks. Returns what to write instead: "" to leave it out.
std::string judge_metric(Explaining& about, const std::string& metric) {
  const std::string pattern = ncu::metric_regex(metric);
  const std::string similar = similar_metric(*about.can, metric);
  if (about.can->metrics_elsewhere && pattern.empty()) {
    // No ncu is installed here, and a newer one may have it.
    if (similar.empty())
      return metric;
    about.warn("unknown_metric",
               "'" + metric + "' is not a metric of ncu up to 2024.1",
               "Write " + similar.substr(0, similar.find('.')));
    return similar;
  }
  if (!pattern.empty()) {
    about.fail("unknown_metric",
               about.me() + " compares metrics letter by letter: none is called '" + metric + "'",
               "Write " + base::shell_quote(pattern));
    return pattern;
  }
  std::string hint = "Leave it out; `rangescope metrics search WORD` finds metrics";
  if (!similar.empty())
    hint = "Write " + similar;
  about.fail("unknown_metric", about.me() + " knows no metric '" + metric + "'", hint);
  return similar;
}

void judge_metrics(Explaining& about) {
  const std::string* value = known_value(about.line, "--metrics");
  if (!value || !about.can || about.can->metrics.empty())
    return;
  std::vector<std::string> metrics;
  bool is_changed = false;
  for (const std::string_view part : base::split(*value, ',')) {
    const std::string written(base::trim(part));
    if (written.empty())
      continue;
    std::string metric = written;
    if (!ncu::knows_metric(*about.can, written))
      metric = judge_metric(about, written);
    is_changed |= metric != written;
    if (!metric.empty())
      metrics.push_back(std::move(metric));
  }
  if (is_changed)
    about.line.set("--metrics", base::join(metrics, ","));
}

void judge_kernel_name(Explaining& about) {
  CommandLine& line = about.line;
  const std::string* value = known_value(line, "--kernel-name");
  if (!value)
    return;
  const std::string name = *value;
  std::string base = line.value("--kernel-name-base");
  if (base.empty())
    base = "function";
  const std::string shown = "--kernel-name " + base::shell_quote(name);
  const auto correct = [&](std::string_view id,
                           const std::string& problem,
                           std::string_view verb,
                           const std::string& option,
                           const std::string& right) {
    about.fail(id, problem, std::string(verb) + " " + option + " " + base::shell_quote(right));
    line.set(option, right);
  };
  const std::string unquoted = model::kernel_pattern_without_quotes(name);
  if (unquoted != name) {
    correct("quoted_expression",
            shown + ": the quotes are letters of the name",
            "Write",
            "--kernel-name",
            unquoted);
    return judge_kernel_name(about);
  }
  if (name.starts_with("regex:"))
    return;
  // "softmax(float *, int)" is a demangled name, and its * a pointer.
  const bool has_signature = name.find_first_of("(<") != std::string::npos;
  const bool looks_like_pattern = name.find_first_of("*?|^$") != std::string::npos;
  if (!has_signature && looks_like_pattern) {
    correct("kernel_name_pattern",
            shown + " is compared letter by letter: no kernel is called that",
            "Write",
            "--kernel-name",
            ncu::meant_regex(name));
  } else if (!has_signature && name.find(',') != std::string::npos) {
    std::vector<std::string> names;
    for (const std::string_view part : base::split(name, ','))
      if (!base::trim(part).empty())
        names.emplace_back(base::trim(part));
    correct("kernel_name_pattern",
            shown + " is one name, not a list",
            "Write",
            "--kernel-name",
            ncu::kernel_regex(names));
  } else if (name.starts_with("_Z") && base != "mangled") {
    correct("kernel_name_base",
            shown + " is a mangled name, and is compared with " + base + " names",
            "Add",
            "--kernel-name-base",
            "mangled");
  } else if (has_signature && base == "function") {
    correct("kernel_name_base",
            shown + " has arguments, and is compared with function names, which have none",
            "Add",
            "--kernel-name-base",
            "demangled");
  }
}

/// Turns "skip:count:stride", as other tools have it, into ncu's options.
void replace_kernel_id_numbers(Explaining& about,
                               const std::vector<std::string>& parts,
                               const std::string& problem) {
  constexpr std::uint64_t kMaxStride = 1000;
  CommandLine& line = about.line;
  line.remove("--kernel-id");
  std::string hint = "Write --launch-skip " + parts[0];
  if (!line.has("--launch-skip"))
    line.add("--launch-skip", parts[0]);
  if (parts.size() > 1 && parts[1] != "0") {
    hint += " --launch-count " + parts[1];
    if (!line.has("--launch-count"))
      line.add("--launch-count", parts[1]);
  }
  std::uint64_t stride = 0;
  if (parts.size() > 2)
    stride = base::to_uint(parts[2]).value_or(0);
  if (stride > 1 && stride <= kMaxStride) {  // ncu has it as an expression of the invocation
    const std::string id = ":::" + ncu::every_regex(static_cast<std::uint32_t>(stride));
    hint += "; a stride of " + parts[2] + " is --kernel-id " + base::shell_quote(id) +
            ", without --launch-skip (`rangescope profile --ncu --every " + parts[2] +
            "` writes it)";
  }
  about.fail("kernel_id", problem, std::move(hint));
}

/// The kernel id that was probably meant; "" if that is unknown.
std::string likely_kernel_id(const std::string& id, const std::vector<std::string>& parts) {
  if (parts.size() == 1)
    return "::" + parts[0] + ":";
  if (parts.size() != 2)
    return {};
  if (parts[0] == "regex" && id.starts_with(":::"))
    return ":::" + parts[1];
  if (!base::to_uint(parts[1]))
    return {};
  return "::" + parts[0] + ":" + parts[1];
}

void judge_kernel_id(Explaining& about) {
  CommandLine& line = about.line;
  const std::string* value = known_value(line, "--kernel-id");
  if (!value || value->empty())
    return;
  const std::string id = *value, shown = "--kernel-id " + base::shell_quote(id);
  const std::string mistake = ncu::kernel_id_mistake(id, line.has("--nvtx"));
  if (mistake.empty())
    return;
  const std::string problem = shown + ": " + mistake;
  if (ncu::kernel_id_mistake(id, true).empty()) {
    about.fail("needs_option", problem, "Add --nvtx");
    line.add("--nvtx", std::nullopt);
    judge_kernel_id(about);
    return;
  }
  std::vector<std::string> parts;
  for (const std::string_view part : base::split(id, ':'))
    if (!part.empty())
      parts.emplace_back(part);
  const bool are_numbers = !parts.empty() && std::ranges::all_of(parts, [](const auto& part) {
    return base::to_uint(part).has_value();
  });
  if (are_numbers)
    return replace_kernel_id_numbers(about, parts, problem);
  const std::string right = likely_kernel_id(id, parts);
  if (right.empty() || !ncu::kernel_id_mistake(right).empty()) {
    about.fail("kernel_id", problem);
    about.lost = true;
    return;
  }
  about.fail("kernel_id", problem, "Write --kernel-id " + base::shell_quote(right));
  line.set("--kernel-id", right);
  judge_kernel_id(about);
}

/// Values with `regex:` that are not regular expressions.
void judge_regexes(Explaining& about) {
  for (const Argument& argument : about.line.arguments) {
    const std::string& name = argument.name;
    const bool takes_regex =
        name == "--kernel-name" || name == "--section" || name == "--target-processes-filter";
    if (!takes_regex || !argument.value || argument.value->expands)
      continue;
    const std::string mistake = ncu::regex_mistake(argument.value->text);
    if (mistake.empty())
      continue;
    about.fail("bad_regex", name + ": " + mistake);
    about.lost = true;
  }
}

/// Does the program start others that do the work?
bool is_launcher(const std::vector<Word>& command) {
  static constexpr std::array<std::string_view, 10> kLaunchers{"torchrun",
                                                               "mpirun",
                                                               "mpiexec",
                                                               "srun",
                                                               "accelerate",
                                                               "deepspeed",
                                                               "bash",
                                                               "sh",
                                                               "make",
                                                               "ctest"};
  const std::string program(base::file_name(command.front().text));
  if (program.ends_with(".sh"))
    return true;
  if (std::ranges::find(kLaunchers, program) != kLaunchers.end())
    return true;
  const bool runs_module =
      command.size() > 2 && program.starts_with("python") && command[1].text == "-m";
  if (!runs_module)
    return false;
  const std::string& module = command[2].text;
  return module.starts_with("torch.distributed") || module == "accelerate";
}

void judge_children(Explaining& about) {
  const CommandLine& line = about.line;
  if (line.program.empty() || !is_launcher(line.program))
    return;
  const std::string target = line.value("--target-processes");
  const bool is_default = target.empty();
  // Since 2023.3 the default is all.
  const bool defaults_to_application =
      about.can && about.can->version.year > 0 && about.can->version < Version{2023, 3, 0};
  const bool leaves_out_children =
      target == "application-only" || (is_default && defaults_to_application);
  if (!leaves_out_children)
    return;
  std::string problem = "--target-processes application-only";
  if (is_default)
    problem = about.me() + " profiles the application only, by default";
  const std::string program(base::file_name(line.program.front().text));
  about.warn("children_not_profiled",
             problem + ", and " + program + " starts others that do the work",
             "Write --target-processes all");
  about.line.set("--target-processes", "all");
}

/// Is `option` on the line, with `value` unless that is ""?
bool has_option(const CommandLine& line, std::string_view option, std::string_view value) {
  if (!line.has(option))
    return false;
  const std::string written = line.value(option);
  return value.empty() || written == value || (value == "yes" && is_yes(written));
}

std::string option_text(std::string_view option, std::string_view value) {
  std::string text(option);
  if (!value.empty())
    text += " " + std::string(value);
  return text;
}

void judge_pairs(Explaining& about) {
  CommandLine& line = about.line;
  for (const Conflict& conflict : conflicts()) {
    if (!has_option(line, conflict.option, conflict.value))
      continue;
    if (!has_option(line, conflict.with, conflict.with_value))
      continue;
    const bool skips_nothing = conflict.with == "--launch-skip" && line.value(conflict.with) == "0";
    if (skips_nothing)
      continue;
    std::string problem = "ncu refuses " + option_text(conflict.option, conflict.value) + " with " +
                          option_text(conflict.with, conflict.with_value);
    if (!conflict.why.empty())
      problem += ", " + std::string(conflict.why);
    about.fail("mode_conflict", problem, "Leave " + std::string(conflict.drop) + " out");
    line.remove(conflict.drop);
  }
  for (const Need& need : needs()) {
    if (need.tool != line.tool || !has_option(line, need.option, need.value))
      continue;
    if (has_option(line, need.needed, need.needed_value))
      continue;
    const std::string needed = option_text(need.needed, need.needed_value);
    about.fail("needs_option",
               option_text(need.option, need.value) + " without " + needed,
               "Add " + needed);
    if (need.needed_value.empty())
      line.add(std::string(need.needed), std::nullopt);
    else
      line.set(std::string(need.needed), std::string(need.needed_value));
  }
}

/// Options for a program that runs, together with a report that is read.
void judge_import(Explaining& about) {
  CommandLine& line = about.line;
  for (const Argument& argument : std::vector<Argument>(line.arguments)) {
    if (!has_trait("ncu", argument.name, Option::kLive))
      continue;
    std::string hint = "Leave it out";
    if (argument.name == "--nvtx")
      hint += ": --nvtx-include filters a report without it";
    about.fail("mode_conflict",
               "ncu refuses " + argument.name + " with --import: the report is there already",
               hint);
    line.remove(argument.name);
  }
}

void judge_replay_mode(Explaining& about) {
  CommandLine& line = about.line;
  std::string mode = line.value("--replay-mode");
  if (mode.empty())
    mode = "kernel";
  for (const Argument& argument : std::vector<Argument>(line.arguments)) {
    const Option* row = find_option("ncu", argument.name);
    const std::string value = argument.value_text();
    if (!row || !row->refused_in(mode_bit(mode), value))
      continue;
    std::string refused_value;
    if (!row->only_value.empty())
      refused_value = value;
    const std::string option = option_text(argument.name, refused_value);
    const std::string modes = base::replace_all(mode_names(row->modes), ", ", " or ");
    about.fail("mode_conflict",
               "ncu refuses " + option + " in replay mode " + mode,
               "Leave it out, or use --replay-mode " + modes);
    line.remove(argument.name);
  }
}

void judge_range_filter(Explaining& about) {
  CommandLine& line = about.line;
  if (!line.has("--range-filter"))
    return;
  static constexpr std::array<std::string_view, 5> kYesNo{"", "yes", "no", "on", "off"};
  const std::string filter = line.value("--range-filter");
  const auto parts = base::split(filter, ':');
  const bool is_filter = parts.size() == 3 && std::ranges::find(kYesNo, parts[0]) != kYesNo.end();
  if (!is_filter) {
    about.fail("invalid_value",
               "--range-filter " + filter + " is not a range filter",
               "Write [yes|no]:[start/stop instances]:[NVTX instances], e.g. ::2");
    line.remove("--range-filter");
  } else if (!parts[2].empty() && !line.has("--nvtx-include")) {
    about.fail("needs_option",
               "the third part of --range-filter counts NVTX ranges, and none are included",
               "Leave it out, or add --nvtx --nvtx-include RANGE/");
    line.remove("--range-filter");
  }
}

}  // namespace

void judge_content(Explaining& about) {
  if (about.line.tool != "ncu")
    return;
  judge_set(about);
  judge_sections(about);
  judge_metrics(about);
}

void judge_kernels(Explaining& about) {
  if (about.line.tool != "ncu")
    return;
  judge_regexes(about);
  judge_kernel_name(about);
  judge_kernel_id(about);
}

void judge_plan(Explaining& about) {
  judge_ncu_values(about);
  judge_content(about);
  judge_regexes(about);
  judge_kernel_id(about);
  judge_modes(about);
}

void judge_modes(Explaining& about) {
  CommandLine& line = about.line;
  if (line.tool != "ncu")
    return;
  if (line.has("--import"))
    return judge_import(about);
  judge_replay_mode(about);
  if (is_yes(line.value("--kill")) && !line.has("--launch-count")) {
    about.fail(
        "needs_option",
        "--kill yes ends the program after --launch-count results, and there is no such count",
        "Leave --kill out, or add --launch-count N");
    line.remove("--kill");
  }
  judge_pairs(about);
  judge_range_filter(about);
  judge_children(about);
}

}  // namespace rangescope::collect::command
