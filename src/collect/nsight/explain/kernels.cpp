#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "collect/nsight/explain/rules.hpp"
#include "collect/nsight/ncu.hpp"
#include "model/range_expression.hpp"
#include "model/selection.hpp"

namespace rangescope::collect::command {
namespace {

std::vector<std::string> names_of(const std::map<std::string, std::vector<std::string>>& map) {
  std::vector<std::string> out;
  for (const auto& [name, unused] : map) out.push_back(name);
  return out;
}

void judge_set(Explaining& about) {
  const Argument* set = about.line.find("--set");
  if (!set || !set->value || set->value->expands || !about.can || about.can->sets.empty()) return;
  const std::string name = set->value->text;
  if (about.can->sets.count(name)) return;
  const auto known = names_of(about.can->sets);
  const bool renamed = (name == "basic" || name == "default") && !about.can->default_set.empty();
  const auto near = base::nearest(name, known, 1);
  const std::string better = renamed        ? about.can->default_set
                             : near.empty() ? std::string()
                                            : near.front();
  about.fail("unknown_set",
             about.me() + " has no set '" + name + "'; it has " + base::join(known, ", "),
             better.empty() ? "Leave it out for the default set (" + about.can->default_set + ")"
                            : "Write --set " + better);
  about.line.set("--set", better);
}

void judge_sections(Explaining& about) {
  if (!about.can || about.can->sections.empty()) return;
  const std::vector<std::string> known(about.can->sections.begin(), about.can->sections.end());
  std::erase_if(about.line.arguments, [&](Argument& each) {
    if (each.name != "--section" || !each.value || each.value->expands) return false;
    const std::string name = each.value->text;
    if (name.starts_with("regex:") || about.can->sections.count(name)) return false;
    if (about.line.has("--section-folder") || about.line.has("--section-folder-recursive"))
      return false;
    const auto near = base::nearest(name, known, 1);
    about.fail("unknown_section", about.me() + " has no section '" + name + "'",
               near.empty() ? "Leave it out; `ncu --list-sections` names them"
                            : "Write --section " + near.front());
    if (near.empty()) return true;
    each.value = literal(near.front());
    return false;
  });
}

void judge_metrics(Explaining& about) {
  const Argument* metrics = about.line.find("--metrics");
  if (!metrics || !metrics->value || metrics->value->expands || !about.can ||
      about.can->metrics.empty())
    return;
  const std::vector<std::string> known(about.can->metrics.begin(), about.can->metrics.end());
  std::vector<std::string> kept;
  bool changed = false;
  for (const std::string_view part : base::split(metrics->value->text, ',')) {
    const std::string metric(base::trim(part));
    if (metric.empty() || ncu::knows_metric(*about.can, metric)) {
      if (!metric.empty()) kept.push_back(metric);
      continue;
    }
    if (about.can->metrics_elsewhere && ncu::metric_regex(metric).empty()) {
      // No ncu is installed to ask, and a newer one may know it.
      const auto like = base::nearest(metric.substr(0, metric.find('.')), known, 1);
      if (!like.empty())
        about.warn("unknown_metric", "'" + metric + "' is not a metric of ncu up to 2024.1",
                   "Write " + like.front());
      kept.push_back(like.empty() ? metric
                                  : like.front() + (metric.find('.') == std::string::npos
                                                        ? ""
                                                        : metric.substr(metric.find('.'))));
      changed = changed || !like.empty();
      continue;
    }
    changed = true;
    if (const std::string pattern = ncu::metric_regex(metric); !pattern.empty()) {
      about.fail("unknown_metric",
                 about.me() + " compares metrics letter by letter: none is called '" + metric + "'",
                 "Write " + base::shell_quote(pattern));
      kept.push_back(pattern);
      continue;
    }
    const auto dot = metric.find('.');
    const auto near = base::nearest(metric.substr(0, dot), known, 1);
    const std::string better =
        near.empty() ? std::string()
                     : near.front() + (dot == std::string::npos ? "" : metric.substr(dot));
    about.fail("unknown_metric", about.me() + " knows no metric '" + metric + "'",
               better.empty() ? "Leave it out; `rangescope metrics search WORD` finds metrics"
                              : "Write " + better);
    if (!better.empty()) kept.push_back(better);
  }
  if (changed) about.line.set("--metrics", base::join(kept, ","));
}

void judge_kernel_name(Explaining& about) {
  CommandLine& line = about.line;
  const Argument* given = line.find("--kernel-name");
  if (!given || !given->value || given->value->expands) return;
  const std::string name = given->value->text;
  const std::string base =
      line.value("--kernel-name-base").empty() ? "function" : line.value("--kernel-name-base");
  const std::string shown = "--kernel-name " + base::shell_quote(name);
  const auto mend = [&](std::string_view id, const std::string& found, std::string_view how,
                        const std::string& value) {
    about.fail(id, found, std::string(how) + " " + base::shell_quote(value));
    line.set(std::string(how.substr(how.find('-'))), value);
  };
  if (const std::string bare = model::kernel_pattern_without_quotes(name); bare != name) {
    mend("quoted_expression", shown + ": the quotes are letters of the name", "Write --kernel-name",
         bare);
    return judge_kernel_name(about);
  }
  if (name.starts_with("regex:")) return;
  // "softmax(float *, int)" is a demangled name, and its * a pointer.
  const bool signature = name.find('(') != std::string::npos || name.find('<') != std::string::npos;
  if (!signature && name.find_first_of("*?|^$") != std::string::npos) {
    mend("kernel_name_pattern", shown + " is compared letter by letter: no kernel is called that",
         "Write --kernel-name", ncu::meant_regex(name));
  } else if (!signature && name.find(',') != std::string::npos) {
    std::vector<std::string> names;
    for (const std::string_view part : base::split(name, ','))
      if (!base::trim(part).empty()) names.emplace_back(base::trim(part));
    mend("kernel_name_pattern", shown + " is one name, not a list", "Write --kernel-name",
         ncu::kernel_regex(names));
  } else if (name.starts_with("_Z") && base != "mangled") {
    mend("kernel_name_base", shown + " is a mangled name, and is compared with " + base + " names",
         "Add --kernel-name-base", "mangled");
  } else if (signature && base == "function") {
    mend("kernel_name_base",
         shown + " has arguments, and is compared with function names, which have none",
         "Add --kernel-name-base", "demangled");
  }
}

void judge_kernel_id(Explaining& about) {
  CommandLine& line = about.line;
  const Argument* given = line.find("--kernel-id");
  if (!given || !given->value || given->value->expands || given->value->text.empty()) return;
  const std::string id = given->value->text, shown = "--kernel-id " + base::shell_quote(id);
  const std::string mistake = ncu::kernel_id_mistake(id, line.has("--nvtx"));
  if (mistake.empty()) return;
  if (ncu::kernel_id_mistake(id, true).empty()) {
    about.fail("needs_option", shown + ": " + mistake, "Add --nvtx");
    line.add("--nvtx", std::nullopt);
    judge_kernel_id(about);
    return;
  }
  std::vector<std::string> parts;
  for (const std::string_view part : base::split(id, ':'))
    if (!part.empty()) parts.emplace_back(part);
  const bool numbers =
      !parts.empty() && std::all_of(parts.begin(), parts.end(),
                                    [](const std::string& p) { return base::to_uint(p); });
  const std::string found = shown + ": " + mistake;
  if (numbers) {
    line.remove("--kernel-id");
    // Skip, count and stride, as other tools have it; a stride is an expression of the invocation.
    std::string hint = "Write --launch-skip " + parts[0];
    if (!line.has("--launch-skip")) line.add("--launch-skip", parts[0]);
    if (parts.size() > 1 && parts[1] != "0") {
      hint += " --launch-count " + parts[1];
      if (!line.has("--launch-count")) line.add("--launch-count", parts[1]);
    }
    if (const auto stride = parts.size() > 2 ? base::to_uint(parts[2]).value_or(0) : 0;
        stride > 1 && stride <= 1000)
      hint += "; a stride of " + parts[2] + " is --kernel-id " +
              base::shell_quote(":::" + ncu::every_regex(static_cast<std::uint32_t>(stride))) +
              ", without --launch-skip (`rangescope profile --ncu --every " + parts[2] +
              "` writes it)";
    about.fail("kernel_id", found, std::move(hint));
    return;
  }
  std::string right;
  if (parts.size() == 1) right = "::" + parts[0] + ":";
  if (parts.size() == 2 && base::to_uint(parts[1])) right = "::" + parts[0] + ":" + parts[1];
  if (parts.size() == 2 && parts[0] == "regex" && id.starts_with(":::")) right = ":::" + parts[1];
  if (right.empty() || !ncu::kernel_id_mistake(right).empty()) {
    about.fail("kernel_id", found);
    about.lost = true;
    return;
  }
  about.fail("kernel_id", found, "Write --kernel-id " + base::shell_quote(right));
  line.set("--kernel-id", right);
  judge_kernel_id(about);
}

/// `regex:` and what is none.
void judge_regexes(Explaining& about) {
  for (const Argument& each : about.line.arguments) {
    if (!each.value || each.value->expands) continue;
    if (each.name != "--kernel-name" && each.name != "--section" &&
        each.name != "--target-processes-filter")
      continue;
    const std::string mistake = ncu::regex_mistake(each.value->text);
    if (mistake.empty()) continue;
    about.fail("bad_regex", each.name + ": " + mistake);
    about.lost = true;
  }
}

void judge_children(Explaining& about) {
  const CommandLine& line = about.line;
  if (line.program.empty()) return;
  const std::string given = line.value("--target-processes");
  // The default until 2023.2; newer versions profile all.
  const bool only =
      given == "application-only" || (given.empty() && about.can && about.can->version.year > 0 &&
                                      about.can->version < Version{2023, 3, 0});
  if (!only) return;
  static constexpr std::array<std::string_view, 10> kLaunchers{
      "torchrun",  "mpirun", "mpiexec", "srun", "accelerate",
      "deepspeed", "bash",   "sh",      "make", "ctest"};
  const std::string program(base::file_name(line.program.front().text));
  const bool module = line.program.size() > 2 && program.starts_with("python") &&
                      line.program[1].text == "-m" &&
                      (line.program[2].text.starts_with("torch.distributed") ||
                       line.program[2].text == "accelerate");
  if (!module && std::find(kLaunchers.begin(), kLaunchers.end(), program) == kLaunchers.end() &&
      !program.ends_with(".sh"))
    return;
  about.warn("children_not_profiled",
             (given.empty() ? about.me() + " profiles the application only, by default"
                            : "--target-processes application-only") +
                 ", and " + program + " starts others that do the work",
             "Write --target-processes all");
  about.line.set("--target-processes", "all");
}

/// `option` with `value`, or any.
bool stands(const CommandLine& line, std::string_view option, std::string_view value) {
  const std::string given = line.value(option);
  return line.has(option) && (value.empty() || given == value || (value == "yes" && is_yes(given)));
}

void judge_pairs(Explaining& about) {
  CommandLine& line = about.line;
  const auto named = [](std::string_view option, std::string_view value) {
    return std::string(option) + (value.empty() ? "" : " " + std::string(value));
  };
  for (const Conflict& each : conflicts()) {
    if (!stands(line, each.option, each.value) || !stands(line, each.with, each.with_value))
      continue;
    if (each.with == "--launch-skip" && line.value(each.with) == "0")
      continue;  // which skips nothing
    about.fail("mode_conflict",
               "ncu refuses " + named(each.option, each.value) + " with " +
                   named(each.with, each.with_value) +
                   (each.why.empty() ? "" : ", " + std::string(each.why)),
               "Leave " + std::string(each.drop) + " out");
    line.remove(each.drop);
  }
  for (const Need& each : needs()) {
    if (each.tool != line.tool || !stands(line, each.option, each.value) ||
        stands(line, each.needed, each.needed_value))
      continue;
    const std::string what = named(each.needed, each.needed_value);
    about.fail("needs_option", named(each.option, each.value) + " without " + what, "Add " + what);
    if (each.needed_value.empty())
      line.add(std::string(each.needed), std::nullopt);
    else
      line.set(std::string(each.needed), std::string(each.needed_value));
  }
}

/// What only a program that runs can have, beside a report that is read.
void judge_import(Explaining& about) {
  CommandLine& line = about.line;
  for (const Argument& each : std::vector<Argument>(line.arguments)) {
    if (!has_trait("ncu", each.name, Option::kLive)) continue;
    about.fail("mode_conflict",
               "ncu refuses " + each.name + " with --import: the report is there already",
               each.name == "--nvtx" ? "Leave it out: --nvtx-include filters a report without it"
                                     : "Leave it out");
    line.remove(each.name);
  }
}

}  // namespace

void judge_content(Explaining& about) {
  if (about.line.tool != "ncu") return;
  judge_set(about);
  judge_sections(about);
  judge_metrics(about);
}

void judge_kernels(Explaining& about) {
  if (about.line.tool != "ncu") return;
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
  if (line.tool != "ncu") return;
  if (line.has("--import")) return judge_import(about);
  const std::string mode =
      line.value("--replay-mode").empty() ? "kernel" : line.value("--replay-mode");
  for (const Argument& each : std::vector<Argument>(line.arguments)) {
    const Option* row = find_option("ncu", each.name);
    const std::string value = each.value ? each.value->text : std::string();
    if (!row || !row->refused_in(mode_bit(mode), value)) continue;
    about.fail("mode_conflict",
               "ncu refuses " + each.name + (row->only_value.empty() ? "" : " " + value) +
                   " in replay mode " + mode,
               "Leave it out, or use --replay-mode " +
                   base::replace_all(mode_names(row->modes), ", ", " or "));
    line.remove(each.name);
  }
  if (is_yes(line.value("--kill")) && !line.has("--launch-count")) {
    about.fail(
        "needs_option",
        "--kill yes ends the program after --launch-count results, and there is no such count",
        "Leave --kill out, or add --launch-count N");
    line.remove("--kill");
  }
  judge_pairs(about);
  if (line.has("--range-filter")) {
    const std::string filter = line.value("--range-filter");
    const auto slots = base::split(filter, ':');
    static constexpr std::array<std::string_view, 5> kFirst{"", "yes", "no", "on", "off"};
    if (slots.size() != 3 || std::find(kFirst.begin(), kFirst.end(), slots[0]) == kFirst.end()) {
      about.fail("invalid_value", "--range-filter " + filter + " is not a range filter",
                 "Write [yes|no]:[start/stop instances]:[NVTX instances], e.g. ::2");
      line.remove("--range-filter");
    } else if (!slots[2].empty() && !line.has("--nvtx-include")) {
      about.fail("needs_option",
                 "the third part of --range-filter counts NVTX ranges, and none are included",
                 "Leave it out, or add --nvtx --nvtx-include RANGE/");
      line.remove("--range-filter");
    }
  }
  judge_children(about);
}

}  // namespace rangescope::collect::command
