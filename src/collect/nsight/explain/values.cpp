#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "base/text.hpp"
#include "collect/nsight/explain/rules.hpp"
#include "collect/nsight/nsys.hpp"
#include "model/range_expression.hpp"

namespace rangescope::collect::command {
namespace {

/// How the value changes when an option is renamed.
enum class ValueChange : std::uint8_t {
  kKeep,
  kToRegex,    ///< regex:VALUE
  kFromRegex,  ///< the expression alone; an exact name is anchored
  kAll,        ///< "all"
  kStopOnEnd,  ///< true -> stop, false -> none
  kEndToStop,  ///< none -> false, else true
  kDropOption,
};

/// An option that this tool (or this version of it) lacks, and what to write instead. Plain changes
/// of a name between versions are in the table of options.
struct Rename {
  std::string_view tool, from, to;
  ValueChange change = ValueChange::kKeep;
  std::string_view reason = {};
};

constexpr std::array kRenames{
    Rename{"ncu",
           "--kernel-replay-mode",
           "--replay-mode",
           ValueChange::kKeep,
           "no version of ncu has it"},
    Rename{"ncu", "--kernel-regex", "--kernel-name", ValueChange::kToRegex},
    Rename{"ncu", "--kernel-name", "--kernel-regex", ValueChange::kFromRegex},
    Rename{"ncu",
           "--print-details",
           "--details-all",
           ValueChange::kDropOption,
           "this version prints all details with --details-all"},
    Rename{"ncu",
           "--profile-child-processes",
           "--target-processes",
           ValueChange::kAll,
           "it is an option of nvprof"},
    Rename{"ncu", "--output", "--export", ValueChange::kKeep, "it is an option of nsys"},
    Rename{"nsys", "--stop-on-range-end", "--capture-range-end", ValueChange::kStopOnEnd},
    Rename{"nsys", "--capture-range-end", "--stop-on-range-end", ValueChange::kEndToStop},
    Rename{"nsys",
           "--profile-child-processes",
           "",
           ValueChange::kDropOption,
           "it is an option of nvprof; nsys follows children"},
    Rename{"nsys",
           "--nvtx",
           "",
           ValueChange::kDropOption,
           "it is an option of ncu; nsys records NVTX with --trace=nvtx"},
    Rename{"nsys",
           "--target-processes",
           "",
           ValueChange::kDropOption,
           "it is an option of ncu; nsys follows children"},
};

/// What to write instead of an option that this version lacks; nothing if that is unknown.
std::optional<Rename> find_rename(const Explaining& about, const std::string& name) {
  const std::string& tool = about.line.tool;
  const auto has = [&](std::string_view option) {
    if (option.empty())
      return false;
    if (!about.can || about.can->has(option))
      return true;
    return is_hidden_option(tool, option, about.can->version);
  };
  for (const Rename& rename : kRenames) {
    const bool applies = rename.tool == tool && rename.from == name;
    if (applies && (rename.to.empty() || has(rename.to)))
      return rename;
  }
  if (const Option* row = find_option(tool, name)) {
    const std::string_view new_name = row->name == name ? row->other : row->name;
    if (!has(new_name))
      return std::nullopt;
    return Rename{tool, name, new_name, ValueChange::kKeep, {}};
  }
  const bool is_ncu = tool == "ncu";
  const Option* row = find_option(is_ncu ? "nsys" : "ncu", name);
  const bool is_current = row && row->name == name && row->until.empty();
  if (!is_current)
    return std::nullopt;
  return Rename{tool,
                row->name,
                {},
                ValueChange::kDropOption,
                is_ncu ? "it is an option of nsys" : "it is an option of ncu"};
}

/// ": it went with ncu 2022.1", ": it came with ncu 2023.1".
std::string history_of(const std::string& tool, const std::string& name) {
  const Option* row = find_option(tool, name);
  if (!row)
    return "";
  if (row->name != name)
    return ": its name was changed";
  if (!row->until.empty())
    return ": it went with " + tool + " " + std::string(row->until);
  if (row->since.empty())
    return "";
  return ": it came with " + tool + " " + std::string(row->since);
}

std::string changed_value(ValueChange change, const std::string& value) {
  switch (change) {
    case ValueChange::kKeep: return value;
    case ValueChange::kToRegex: return "regex:" + value;
    case ValueChange::kFromRegex:
      if (value.starts_with("regex:"))
        return value.substr(6);
      return "^" + model::escape_regex(value) + "$";
    case ValueChange::kAll: return "all";
    case ValueChange::kStopOnEnd: return value == "false" ? "none" : "stop";
    case ValueChange::kEndToStop: return value == "none" ? "false" : "true";
    case ValueChange::kDropOption: return {};
  }
  return value;
}

/// nsys --nvtx-capture decode@LLM  ->  ncu --nvtx --nvtx-include LLM@decode/
void nsys_range_to_ncu(Explaining& about, const std::string& name, const std::string& value) {
  // nsys writes the range first, the domain second.
  const auto separator = value.find('@');
  const std::string range = value.substr(0, separator);
  std::string domain;
  if (separator != std::string::npos)
    domain = value.substr(separator + 1);
  std::string expression;
  if (domain == "*") {
    expression = "regex:.*@^" + model::escape_regex(range) + "$/";
  } else {
    if (!domain.empty())
      expression = domain + "@";
    expression += model::escape_range_name(range) + "/";
  }
  about.fail("unknown_option",
             name + " is an option of nsys",
             "Write --nvtx --nvtx-include " + expression);
  about.line.add("--nvtx-include", expression);
}

/// ncu --nvtx-include decode/  ->  nsys --capture-range=nvtx --nvtx-capture=decode
void ncu_range_to_nsys(Explaining& about, const std::string& name, const std::string& value) {
  const auto capture = nsys::capture_of(value);
  std::string hint = "Leave it out: nsys gates on one range by name, without patterns or nesting";
  if (capture)
    hint = "Write --capture-range=nvtx --nvtx-capture=" + *capture;
  about.fail("unknown_option", name + " is an option of ncu", hint);
  if (capture && !about.line.has("--nvtx-capture")) {
    about.line.set("--capture-range", "nvtx");
    about.line.add("--nvtx-capture", *capture);
  }
}

/// Translates the other tool's option for a range; false if `argument` is none.
bool translate_range(Explaining& about, const Argument& argument) {
  const bool is_of_ncu = about.line.tool == "nsys" && argument.name == "--nvtx-include";
  const bool is_of_nsys = about.line.tool == "ncu" && argument.name == "--nvtx-capture";
  if ((!is_of_ncu && !is_of_nsys) || !argument.value)
    return false;
  const std::string value = argument.value->text, name = argument.name;
  about.line.remove(name);
  if (is_of_nsys)
    nsys_range_to_ncu(about, name, value);
  else
    ncu_range_to_nsys(about, name, value);
  return true;
}

/// Replaces the option `wrong` by `name`; "" removes it.
void rename(Explaining& about, const Argument& wrong, const std::string& name, ValueChange change) {
  CommandLine& line = about.line;
  const auto found = std::ranges::find(line.arguments, wrong.name, &Argument::name);
  const bool takes_value = !name.empty() && takes(line.tool, name, about.can) != Takes::kNothing;
  const bool lacks_value = takes_value && !wrong.value && change != ValueChange::kAll;
  if (name.empty() || lacks_value) {
    line.arguments.erase(found);
    return;
  }
  Argument right;
  right.name = right.written = name;
  right.joined = line.tool == "nsys";
  if (takes_value) {
    right.value = literal(changed_value(change, wrong.value_text()));
  }
  *found = std::move(right);
}

/// The first option that the tool lacks; null if it has all.
const Argument* find_unknown(const Explaining& about) {
  for (const Argument& argument : about.line.arguments) {
    if (about.can && !argument.is_known)
      return &argument;
    // Without an installed tool: only the option that no version has.
    if (!about.can && argument.name == "--kernel-replay-mode")
      return &argument;
  }
  return nullptr;
}

/// Reports an option that is in no table, and replaces it by the most similar one if that fits.
void replace_by_nearest(Explaining& about, const Argument& wrong, const std::string& problem) {
  std::vector<std::string> names;
  if (about.can)
    names = about.can->option_names();
  const std::string nearest = nearest_name(wrong.name, names);
  std::string replacement;
  std::string hint = "Leave it out, or use a version that has it";
  if (!nearest.empty()) {
    const bool takes_value = takes(about.line.tool, nearest, about.can) != Takes::kNothing;
    const bool is_usable = takes_value == wrong.value.has_value() && !about.line.has(nearest);
    if (is_usable)
      replacement = nearest;
    hint = write_or(replacement, "Leave it out; " + base::did_you_mean(wrong.name, names));
  }
  about.fail("unknown_option", problem, hint);
  rename(about, wrong, replacement, ValueChange::kKeep);
}

void unknown_options(Explaining& about) {
  while (const Argument* unknown = find_unknown(about)) {
    const Argument wrong = *unknown;
    if (translate_range(about, wrong))
      continue;
    const std::string problem = about.me() + " has no option " + wrong.written;
    const auto rule = find_rename(about, wrong.name);
    if (!rule) {
      replace_by_nearest(about, wrong, problem + history_of(about.line.tool, wrong.name));
      continue;
    }
    const std::string new_name(rule->to);
    std::string reason = history_of(about.line.tool, wrong.name);
    if (!rule->reason.empty())
      reason = ": " + std::string(rule->reason);
    about.fail("unknown_option", problem + reason, write_or(new_name, "Leave it out"));
    rename(about, wrong, new_name, rule->change);
  }
}

struct MergedValue {
  std::string value;
  std::string hint;
};

/// One value for an option that is given several times.
MergedValue merged_value(const CommandLine& line, const std::string& name) {
  std::vector<std::string> values = line.values(name);
  if (has_trait(line.tool, name, Option::kList)) {
    const std::string list = base::join(values, ",");
    return {list, "Give it once, with a list: " + name + " " + base::shell_quote(list)};
  }
  const bool has_regex = std::ranges::any_of(
      values, [](const std::string& value) { return value.starts_with("regex:"); });
  if (name == "--kernel-name" && !has_regex) {
    for (std::string& value : values)
      value = model::escape_regex(value);
    return {"regex:^(" + base::join(values, "|") + ")$",
            "Give it once, as a regular expression of all names"};
  }
  std::string last_value;
  if (!values.empty())
    last_value = values.back();
  return {std::move(last_value), "Give it once"};
}

/// The first option that is given again although the tool takes it once; "" if there is none.
std::string find_repeated(const Explaining& about) {
  std::set<std::string> names;
  for (const Argument& argument : about.line.arguments) {
    const Takes kind = takes(about.line.tool, argument.name, about.can);
    const bool may_repeat = kind == Takes::kValueEach || kind == Takes::kUnknown;
    if (!may_repeat && !names.insert(argument.name).second)
      return argument.name;
  }
  return {};
}

void repeated_options(Explaining& about) {
  CommandLine& line = about.line;
  for (;;) {
    const std::string name = find_repeated(about);
    if (name.empty())
      return;
    const MergedValue merged = merged_value(line, name);
    about.fail("repeated_option", name + " is given more than once", merged.hint);
    if (takes(line.tool, name, about.can) == Takes::kNothing) {
      line.remove(name);
      line.add(name, std::nullopt);
    } else {
      line.set(name, merged.value);
    }
  }
}

bool contains(const std::vector<std::string>& list, std::string_view value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

/// The value that was probably meant, one that the option takes; "" if that is unknown.
std::string likely_value(const std::string& name,
                         const std::string& value,
                         const std::vector<std::string>& known_values) {
  const std::string low = base::lower(value);
  if (contains(known_values, low))
    return low;
  if (name == "--target-processes") {
    const bool means_no = low == "0" || low == "no" || low == "none";
    return means_no ? "application-only" : "all";
  }
  if (known_values == std::vector<std::string>{"true", "false"}) {
    if (is_yes(value))
      return "true";
    if (is_boolean(value))
      return "false";
    return {};
  }
  const bool means_app_range = low == "app-range" || low == "app_range" || low == "apprange";
  if (name == "--replay-mode" && means_app_range) {
    for (const char* mode : {"app-range", "range"})
      if (contains(known_values, mode))
        return mode;
    return "application";
  }
  return nearest_name(value, known_values);
}

}  // namespace

void invalid(Explaining& about,
             const std::string& name,
             const std::string& value,
             const std::vector<std::string>& known_values) {
  const std::string better = likely_value(name, value, known_values);
  std::string problem = about.me() + " does not take " + name + " " + base::shell_quote(value);
  if (!known_values.empty())
    problem += "; it takes " + base::join(known_values, ", ");
  std::string hint = "Leave it out: the default suits most programs";
  if (!better.empty())
    hint = "Write " + name + " " + better;
  about.fail("invalid_value", problem, hint);
  about.line.set(name, better);
}

namespace {

void judge_number(Explaining& about, const std::string& name, const std::string& value) {
  const auto number = base::to_int(value);
  constexpr std::string_view kLeaveOut = "Leave it out to profile every launch";
  if (!number) {
    about.fail("invalid_value",
               name + " wants a number, not " + base::shell_quote(value),
               "Write a number");
  } else if (*number < 0) {
    about.fail("invalid_value",
               name + " " + value + ": a negative number is taken silently",
               std::string(kLeaveOut));
  } else if (*number == 0 && name == "--launch-count") {
    about.fail("invalid_value", name + " " + value + ": ncu refuses zero", std::string(kLeaveOut));
  } else {
    return;
  }
  about.line.remove(name);
}

void judge_nsys_trace(Explaining& about) {
  CommandLine& line = about.line;
  const Argument* trace = line.find("--trace");
  if (!trace || !trace->value || trace->value->expands)
    return;
  const auto& known_values = about.listed("--trace");
  if (known_values.empty())
    return;
  std::vector<std::string> kept, wrong;
  for (const std::string_view part : base::split(trace->value->text, ',')) {
    const std::string api(part);
    if (api.empty())
      continue;
    // `=nvtx` of `-t=nvtx` is another mistake; a blank within quotes is this one.
    if (contains(known_values, api)) {
      kept.push_back(api);
      continue;
    }
    wrong.push_back(api);
    const std::string trimmed(base::trim(api));
    std::string better;
    if (trimmed != "python")
      better = likely_value("--trace", trimmed, known_values);
    if (!better.empty() && !contains(kept, better))
      kept.push_back(better);
  }
  if (wrong.empty())
    return;
  const std::string value = base::join(kept, ",");
  std::string hint = "Leave --trace out";
  if (!kept.empty())
    hint = "Write --trace=" + value;
  about.fail("invalid_value",
             about.me() + " cannot trace " + base::shell_quote(base::join(wrong, ", ")) +
                 "; it takes " + base::join(known_values, ", "),
             hint);
  line.set("--trace", value);
}

/// Is the value one that the help lists, or the "cpu" of --sample, which 2022.4.2 takes as the old
/// name of process-tree?
bool is_listed(const Explaining& about, const std::string& name, const std::string& value) {
  const std::vector<std::string>& listed = about.listed(name);
  return listed.empty() || contains(listed, value) || value == "cpu";
}

/// Values with several parts, of which the help lists none.
void nsys_compound_values(Explaining& about) {
  CommandLine& line = about.line;
  const std::pair<const char*, std::vector<std::string>> kFirstParts[] = {
      {"--cuda-graph-trace", {"graph", "node"}},
      {"--capture-range-end", {"none", "stop", "stop-shutdown", "repeat", "repeat-shutdown"}},
      {"--kill", {"none", "sigkill", "sigterm"}}};
  for (const auto& [name, first_parts] : kFirstParts) {
    const Argument* argument = line.find(name);
    if (!argument || !argument->value || argument->value->expands)
      continue;
    const std::string value = line.value(name);
    const bool is_signal = std::string_view(name) == "--kill" && base::to_uint(value);
    const bool is_known = contains(first_parts, value.substr(0, value.find(':')));
    if (!is_known && !is_signal)
      invalid(about, name, value, first_parts);
    if (value != "repeat-shutdown")
      continue;
    about.fail("invalid_value",
               "--capture-range-end=repeat-shutdown lacks the number of captures",
               "Write repeat-shutdown:N, or repeat for all");
    line.set("--capture-range-end", "repeat");
  }
}

void judge_nsys_values(Explaining& about) {
  CommandLine& line = about.line;
  judge_nsys_trace(about);
  for (const Argument& argument : std::vector<Argument>(line.arguments)) {
    if (!argument.value || argument.value->expands)
      continue;
    const std::string& name = argument.name;
    const std::string& value = argument.value->text;
    // nsys takes only true and false: `Illegal --stats argument: yes`.
    const bool is_true_or_false = value == "true" || value == "false";
    if (has_trait("nsys", name, Option::kYesNo) && !is_true_or_false) {
      invalid(about, name, value, {"true", "false"});
      continue;
    }
    const bool lists_values = name != "--trace" && has_trait("nsys", name, Option::kListed);
    if (lists_values && !is_listed(about, name, value))
      invalid(about, name, value, about.listed(name));
  }
  nsys_compound_values(about);
}

// `-t=nvtx`: the value is "=nvtx".
void equals_behind_letter(Explaining& about) {
  for (Argument& argument : about.line.arguments) {
    if (!argument.joined || !argument.value || argument.written.starts_with("--"))
      continue;
    if (!argument.value->text.starts_with('='))
      continue;
    const std::string value = argument.value->text.substr(1);
    about.fail("equals_behind_letter",
               argument.shown() + " gives the value '" + argument.value->text + "'",
               "Write " + argument.written + " " + base::shell_quote(value));
    argument.value = literal(value);
    argument.joined = false;
  }
}

}  // namespace

void judge_ncu_values(Explaining& about) {
  CommandLine& line = about.line;
  for (const Argument& argument : std::vector<Argument>(line.arguments)) {
    const Option* row = find_option("ncu", argument.name);
    if (!argument.value || argument.value->expands || !row)
      continue;
    const std::string &name = argument.name, value = argument.value->text;
    const std::vector<std::string>& listed = about.listed(name);
    if (row->is(Option::kYesNo) && !is_boolean(value)) {
      invalid(about, name, value, {"yes", "no"});
    } else if (row->is(Option::kNumber)) {
      judge_number(about, name, value);
    } else if (row->key == "warp_sampling_interval") {
      if (value == "auto" || base::to_uint(value).value_or(32) <= 31)
        continue;
      about.fail("invalid_value",
                 name + " " + base::shell_quote(value) + " is neither auto nor 0 to 31",
                 "Leave it out: the default suits most programs");
      line.remove(name);
    } else if (name == "--target-processes" && !about.can) {
      const bool is_known = value == "all" || value == "application-only";
      if (!is_known)
        invalid(about, name, value, {"application-only", "all"});
    } else if (row->is(Option::kListed) && !listed.empty()) {
      std::vector<std::string_view> parts = {value};
      if (row->is(Option::kList))
        parts = base::split(value, ',');
      // The help of 2024.1.1 and newer omits per-nvtx, which they take.
      const bool has_unlisted = std::ranges::any_of(parts, [&](std::string_view part) {
        return !contains(listed, part) && part != "per-nvtx";
      });
      if (has_unlisted)
        invalid(about, name, value, listed);
    }
  }
}

void judge_options(Explaining& about) {
  equals_behind_letter(about);
  if (about.line.tool == "ncu" || about.line.verb == "profile")
    unknown_options(about);
  repeated_options(about);
  if (about.line.tool == "ncu")
    judge_ncu_values(about);
  else
    judge_nsys_values(about);
}

}  // namespace rangescope::collect::command
