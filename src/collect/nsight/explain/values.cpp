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

/// How a value changes when an option gets its right name.
enum class Turn : std::uint8_t {
  kKeep,
  kToRegex,    ///< regex:VALUE
  kFromRegex,  ///< the expression alone, exact names anchored
  kAll,        ///< "all"
  kStopOnEnd,  ///< true -> stop, false -> none
  kEndToStop,  ///< none -> false, else true
  kDrop,       ///< the option goes
};

/// A name that this tool (or this version of it) lacks, and what to write instead. Plain changes of
/// a name between versions are in the table of options.
struct Rename {
  std::string_view tool, from, to;
  Turn turn = Turn::kKeep;
  std::string_view why = {};
};

// clang-format off
constexpr std::array kRenames{
    Rename{"ncu", "--kernel-replay-mode", "--replay-mode", Turn::kKeep, "no version of ncu has it"},
    Rename{"ncu", "--kernel-regex", "--kernel-name", Turn::kToRegex},
    Rename{"ncu", "--kernel-name", "--kernel-regex", Turn::kFromRegex},
    Rename{"ncu", "--print-details", "--details-all", Turn::kDrop,
           "this version prints all details with --details-all"},
    Rename{"ncu", "--profile-child-processes", "--target-processes", Turn::kAll, "it is an option of nvprof"},
    Rename{"ncu", "--output", "--export", Turn::kKeep, "it is an option of nsys"},
    Rename{"nsys", "--stop-on-range-end", "--capture-range-end", Turn::kStopOnEnd},
    Rename{"nsys", "--capture-range-end", "--stop-on-range-end", Turn::kEndToStop},
    Rename{"nsys", "--profile-child-processes", "", Turn::kDrop, "it is an option of nvprof; nsys follows children"},
    Rename{"nsys", "--nvtx", "", Turn::kDrop, "it is an option of ncu; nsys records NVTX with --trace=nvtx"},
    Rename{"nsys", "--target-processes", "", Turn::kDrop, "it is an option of ncu; nsys follows children"},
};
// clang-format on

/// The name that this version has for `name`, and since when, from the table of options.
std::optional<Rename> renamed(const Explaining& about, const std::string& name) {
  const std::string& tool = about.line.tool;
  const auto has = [&](std::string_view option) {
    return !option.empty() && (!about.can || about.can->has(option) ||
                               is_hidden_option(tool, option, about.can->version));
  };
  for (const Rename& each : kRenames)
    if (each.tool == tool && each.from == name && (each.to.empty() || has(each.to))) return each;
  const Option* row = find_option(tool, name);
  if (!row) {
    const std::string_view other = tool == "ncu" ? "nsys" : "ncu";
    row = find_option(other, name);
    return row && row->name == name && row->until.empty()
               ? std::optional<Rename>(
                     {tool,
                      row->name,
                      {},
                      Turn::kDrop,
                      other == "ncu" ? "it is an option of ncu" : "it is an option of nsys"})
               : std::nullopt;
  }
  const std::string_view to = row->name == name ? row->other : row->name;
  if (!has(to)) return std::nullopt;
  return Rename{tool, name, to, Turn::kKeep, {}};
}

/// "it went with ncu 2022.1", "it came with ncu 2023.1".
std::string when(const std::string& tool, const std::string& name) {
  const Option* row = find_option(tool, name);
  if (!row || row->name != name) return row ? ": its name was changed" : "";
  if (!row->until.empty()) return ": it went with " + tool + " " + std::string(row->until);
  return row->since.empty() ? "" : ": it came with " + tool + " " + std::string(row->since);
}

std::string turned(Turn turn, const std::string& value) {
  switch (turn) {
    case Turn::kKeep: return value;
    case Turn::kToRegex: return "regex:" + value;
    case Turn::kFromRegex:
      return value.starts_with("regex:") ? value.substr(6) : "^" + model::escape_regex(value) + "$";
    case Turn::kAll: return "all";
    case Turn::kStopOnEnd: return value == "false" ? "none" : "stop";
    case Turn::kEndToStop: return value == "none" ? "false" : "true";
    case Turn::kDrop: return {};
  }
  return value;
}

// nsys --nvtx-include decode/  ->  --capture-range=nvtx --nvtx-capture=decode
bool foreign_range(Explaining& about, const Argument& argument) {
  const bool to_nsys = about.line.tool == "nsys" && argument.name == "--nvtx-include";
  const bool to_ncu = about.line.tool == "ncu" && argument.name == "--nvtx-capture";
  if ((!to_nsys && !to_ncu) || !argument.value) return false;
  const std::string value = argument.value->text, name = argument.name;
  about.line.remove(name);
  if (to_ncu) {
    // Range first, domain second, as nsys has it.
    const auto at = value.find('@');
    const std::string domain = at == std::string::npos ? "" : value.substr(at + 1);
    const std::string expression =
        domain == "*" ? "regex:.*@^" + model::escape_regex(value.substr(0, at)) + "$/"
                      : (domain.empty() ? "" : domain + "@") +
                            model::escape_range_name(value.substr(0, at)) + "/";
    about.fail("unknown_option", name + " is an option of nsys",
               "Write --nvtx --nvtx-include " + expression);
    about.line.add("--nvtx-include", expression);
    return true;
  }
  const auto capture = nsys::capture_of(value);
  about.fail("unknown_option", name + " is an option of ncu",
             capture
                 ? "Write --capture-range=nvtx --nvtx-capture=" + *capture
                 : "Leave it out: nsys gates on one range by name, without patterns or nesting");
  if (capture && !about.line.has("--nvtx-capture")) {
    about.line.set("--capture-range", "nvtx");
    about.line.add("--nvtx-capture", *capture);
  }
  return true;
}

/// The right option in its place.
void rename(Explaining& about, const Argument& wrong, const std::string& name, Turn turn) {
  CommandLine& line = about.line;
  const auto found = std::find_if(line.arguments.begin(), line.arguments.end(),
                                  [&](const Argument& each) { return each.name == wrong.name; });
  if (name.empty() || (turn == Turn::kDrop && name.empty())) {
    line.arguments.erase(found);
    return;
  }
  const Takes kind = takes(line.tool, name, about.can);
  Argument right;
  right.name = right.written = name;
  right.joined = line.tool == "nsys";
  if (kind != Takes::kNothing) {
    if (!wrong.value && turn != Turn::kAll) {
      line.arguments.erase(found);
      return;
    }
    right.value = literal(turned(turn, wrong.value ? wrong.value->text : std::string()));
  }
  *found = std::move(right);
}

void unknown_options(Explaining& about) {
  for (;;) {
    const auto found = std::find_if(
        about.line.arguments.begin(), about.line.arguments.end(), [&](const Argument& argument) {
          if (about.can) return !argument.known;
          return argument.name == "--kernel-replay-mode";  // which no version has
        });
    if (found == about.line.arguments.end()) return;
    const Argument wrong = *found;
    if (foreign_range(about, wrong)) continue;
    const auto rule = renamed(about, wrong.name);
    const std::string no = about.me() + " has no option " + wrong.written;
    if (rule) {
      const std::string to(rule->to);
      about.fail("unknown_option",
                 no + (rule->why.empty() ? when(about.line.tool, wrong.name)
                                         : ": " + std::string(rule->why)),
                 to.empty() ? "Leave it out" : "Write " + to);
      rename(about, wrong, to, rule->turn);
      continue;
    }
    const auto near = about.can ? base::nearest(wrong.name, about.can->option_names(), 1)
                                : std::vector<std::string>{};
    const Takes kind =
        near.empty() ? Takes::kUnknown : takes(about.line.tool, near.front(), about.can);
    const bool fits =
        !near.empty() && (kind == Takes::kNothing) == !wrong.value && !about.line.has(near.front());
    about.fail("unknown_option", no + when(about.line.tool, wrong.name),
               fits ? "Write " + near.front()
               : near.empty()
                   ? "Leave it out, or use a version that has it"
                   : "Leave it out; " + base::did_you_mean(wrong.name, about.can->option_names()));
    rename(about, wrong, fits ? near.front() : std::string(), Turn::kKeep);
  }
}

void repetition(Explaining& about) {
  CommandLine& line = about.line;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < line.arguments.size(); ++i) {
    const std::string name = line.arguments[i].name;
    const Takes kind = takes(line.tool, name, about.can);
    if (kind == Takes::kValueEach || kind == Takes::kUnknown || seen.insert(name).second) continue;
    auto values = line.values(name);
    std::string value = values.empty() ? std::string() : values.back();
    std::string how = "Give it once";
    if (has_trait(line.tool, name, Option::kList)) {
      value = base::join(values, ",");
      how = "Give it once, with a list: " + name + " " + base::shell_quote(value);
    } else if (name == "--kernel-name" &&
               std::none_of(values.begin(), values.end(),
                            [](const std::string& each) { return each.starts_with("regex:"); })) {
      for (std::string& each : values) each = model::escape_regex(each);
      value = "regex:^(" + base::join(values, "|") + ")$";
      how = "Give it once, as a regular expression of all names";
    }
    about.fail("repeated_option", name + " is given more than once", how);
    if (kind == Takes::kNothing) {
      line.remove(name);
      line.add(name, std::nullopt);
    } else {
      line.set(name, value);
    }
    i = static_cast<std::size_t>(-1);  // places have changed: from the start
    seen.clear();
  }
}

bool contains(const std::vector<std::string>& list, std::string_view value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

/// What was probably meant, of what it takes; "" where nobody knows.
std::string likely(const std::string& name, const std::string& value,
                   const std::vector<std::string>& known) {
  const std::string low = base::lower(value);
  if (contains(known, low)) return low;
  if (name == "--target-processes")
    return low == "0" || low == "no" || low == "none" ? "application-only" : "all";
  if (known == std::vector<std::string>{"true", "false"})
    return is_yes(value) ? "true" : is_boolean(value) ? "false" : "";
  if (name == "--replay-mode" && (low == "app-range" || low == "app_range" || low == "apprange"))
    return contains(known, "app-range") ? "app-range"
           : contains(known, "range")   ? "range"
                                        : "application";
  const auto near = base::nearest(value, known, 1);
  return near.empty() ? std::string() : near.front();
}

}  // namespace

void invalid(Explaining& about, const std::string& name, const std::string& value,
             const std::vector<std::string>& known) {
  const std::string better = likely(name, value, known);
  about.fail("invalid_value",
             about.me() + " does not take " + name + " " + base::shell_quote(value) +
                 (known.empty() ? "" : "; it takes " + base::join(known, ", ")),
             better.empty() ? "Leave it out: the default suits most programs"
                            : "Write " + name + " " + better);
  about.line.set(name, better);
}

namespace {

void number(Explaining& about, const std::string& name, const std::string& value) {
  const auto parsed = base::to_int(value);
  if (!parsed) {
    about.fail("invalid_value", name + " wants a number, not " + base::shell_quote(value),
               "Write a number");
  } else if (*parsed < 0 || (*parsed == 0 && name == "--launch-count")) {
    about.fail("invalid_value",
               name + " " + value +
                   (*parsed < 0 ? ": a negative number is taken silently" : ": ncu refuses zero"),
               "Leave it out to profile every launch");
  } else {
    return;
  }
  about.line.remove(name);
}

void nsys_trace(Explaining& about) {
  CommandLine& line = about.line;
  const Argument* trace = line.find("--trace");
  if (!trace || !trace->value || trace->value->expands) return;
  const auto& known = about.listed("--trace");
  if (known.empty()) return;
  std::vector<std::string> kept, wrong;
  for (const std::string_view part : base::split(trace->value->text, ',')) {
    std::string api(part);
    // `=nvtx` of `-t=nvtx` is another cause; a blank within quotes is this one.
    if (api.empty() || contains(known, api)) {
      if (!api.empty()) kept.push_back(api);
      continue;
    }
    wrong.push_back(api);
    const std::string trimmed(base::trim(api));
    const std::string better =
        trimmed == "python" ? std::string() : likely("--trace", trimmed, known);
    if (!better.empty() && !contains(kept, better)) kept.push_back(better);
  }
  if (wrong.empty()) return;
  about.fail("invalid_value",
             about.me() + " cannot trace " + base::shell_quote(base::join(wrong, ", ")) +
                 "; it takes " + base::join(known, ", "),
             kept.empty() ? "Leave --trace out" : "Write --trace=" + base::join(kept, ","));
  line.set("--trace", base::join(kept, ","));
}

void nsys_values(Explaining& about) {
  CommandLine& line = about.line;
  nsys_trace(about);
  for (const Argument& each : std::vector<Argument>(line.arguments)) {
    if (!each.value || each.value->expands) continue;
    const std::string& value = each.value->text;
    // nsys takes true and false alone: `Illegal --stats argument: yes`.
    if (has_trait("nsys", each.name, Option::kYesNo) && value != "true" && value != "false")
      invalid(about, each.name, value, {"true", "false"});
    // "cpu" is the old name of process-tree, which 2022.4.2 takes and does not list.
    else if (each.name != "--trace" && has_trait("nsys", each.name, Option::kListed) &&
             !about.listed(each.name).empty() && !contains(about.listed(each.name), value) &&
             value != "cpu")
      invalid(about, each.name, value, about.listed(each.name));
  }
  // Values with parts of their own, which the help does not list.
  const std::pair<const char*, std::vector<std::string>> kHeads[] = {
      {"--cuda-graph-trace", {"graph", "node"}},
      {"--capture-range-end", {"none", "stop", "stop-shutdown", "repeat", "repeat-shutdown"}},
      {"--kill", {"none", "sigkill", "sigterm"}}};
  for (const auto& [name, known] : kHeads) {
    const Argument* found = line.find(name);
    if (!found || !found->value || found->value->expands) continue;
    const std::string value = line.value(name), head = value.substr(0, value.find(':'));
    const bool signal = std::string_view(name) == "--kill" && base::to_uint(value);
    if (!contains(known, head) && !signal) invalid(about, name, value, known);
    if (value != "repeat-shutdown") continue;
    about.fail("invalid_value", "--capture-range-end=repeat-shutdown lacks the number of captures",
               "Write repeat-shutdown:N, or repeat for all");
    line.set("--capture-range-end", "repeat");
  }
}

// `-t=nvtx`: the value is "=nvtx".
void equals_behind_letter(Explaining& about) {
  for (Argument& each : about.line.arguments) {
    if (!each.joined || !each.value || each.written.starts_with("--") ||
        !each.value->text.starts_with('='))
      continue;
    const std::string value = each.value->text.substr(1);
    about.fail("equals_behind_letter", each.shown() + " gives the value '" + each.value->text + "'",
               "Write " + each.written + " " + base::shell_quote(value));
    each.value = literal(value);
    each.joined = false;
  }
}

}  // namespace

void judge_ncu_values(Explaining& about) {
  CommandLine& line = about.line;
  for (const Argument& each : std::vector<Argument>(line.arguments)) {
    const Option* row = find_option("ncu", each.name);
    if (!each.value || each.value->expands || !row) continue;
    const std::string &name = each.name, value = each.value->text;
    const auto& known = about.listed(name);
    if (row->is(Option::kYesNo) && !is_boolean(value)) {
      invalid(about, name, value, {"yes", "no"});
    } else if (row->is(Option::kNumber)) {
      number(about, name, value);
    } else if (row->key == "warp_sampling_interval") {
      if (value == "auto" || base::to_uint(value).value_or(32) <= 31) continue;
      about.fail("invalid_value",
                 name + " " + base::shell_quote(value) + " is neither auto nor 0 to 31",
                 "Leave it out: the default suits most programs");
      line.remove(name);
    } else if (name == "--target-processes" && !about.can) {
      if (value != "all" && value != "application-only")
        invalid(about, name, value, {"application-only", "all"});
    } else if (row->is(Option::kListed) && !known.empty()) {
      // The help of 2024.1.1 and newer leaves per-nvtx out, which they take.
      for (const std::string_view part :
           row->is(Option::kList) ? base::split(value, ',') : std::vector{std::string_view(value)})
        if (!contains(known, part) && part != "per-nvtx") {
          invalid(about, name, value, known);
          break;
        }
    }
  }
}

void judge_options(Explaining& about) {
  equals_behind_letter(about);
  if (about.line.tool == "ncu" || about.line.verb == "profile") unknown_options(about);
  repetition(about);
  if (about.line.tool == "ncu")
    judge_ncu_values(about);
  else
    nsys_values(about);
}

}  // namespace rangescope::collect::command
