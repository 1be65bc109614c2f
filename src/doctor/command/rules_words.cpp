#include <algorithm>
#include <array>

#include "base/fs.hpp"
#include "base/text.hpp"
#include "doctor/command/rules.hpp"

namespace rangescope::doctor {
namespace {

using Change = bool (*)(Explaining&, Words&);

std::ptrdiff_t offset(std::size_t at) {
  return static_cast<std::ptrdiff_t>(at);
}

// `ncu profile ./app`, `nsys ./app`
bool verb(Explaining& about, Words& words) {
  CommandLine& line = about.line;
  if (line.tool == "ncu") {
    if (line.arguments.empty() && line.program.size() > 1 && line.program.front().text == "profile") {
      about.fail("command.foreign_verb", "'profile' is a command of nsys; ncu takes it for the program",
                 "Leave it out");
      words.erase(words.begin() + offset(line.program_at));
      return true;
    }
    return false;
  }
  if (!line.verb.empty() || line.has("--version") || line.has("--help") ||
      (line.arguments.empty() && line.program.empty()))
    return false;
  const std::size_t at = line.before.size() + 1;
  about.fail("command.no_verb", "nsys takes '" + words[at].text + "' for its command");
  words.insert(words.begin() + offset(at), literal("profile"));
  return true;
}

// Refused by ncu 2022.3.0 and 2024.1.1 and by nsys 2022.4.2 and 2023.4.4; taken by ncu 2025.3.1. Of others nobody
// knows.
bool double_dash(Explaining& about, Words& words) {
  const CommandLine& line = about.line;
  if (!line.double_dash) return false;
  const collect::Version version = about.can ? about.can->version : collect::Version{};
  if (line.tool == "ncu" && version >= collect::Version{2025, 3, 0}) return false;
  const bool refuses =
      version.year > 0 && version < (line.tool == "ncu" ? collect::Version{2024, 2, 0} : collect::Version{2024, 1, 0});
  const std::string found = "'--' stands before the program";
  if (refuses)
    about.fail("command.double_dash", found);
  else
    about.warn("command.double_dash", found);
  words.erase(words.begin() + offset(line.program_at - 1));
  return true;
}

// `--trace cuda, nvtx ./app`: the blank ends the value, and nvtx is the program. `--trace cuda, --stats=true ./app`: a
// comma too many.
bool blank_in_list(Explaining& about, Words& words) {
  const CommandLine& line = about.line;
  for (const Argument& argument : line.arguments) {
    if (!is_list_option(argument.name) || !argument.value || argument.value->expands) continue;
    const std::string& value = argument.value->text;
    if (value.size() < 2 || !value.ends_with(',')) continue;
    const std::size_t at = argument.at + (argument.joined ? 0 : 1);
    const bool goes_on = at + 1 == line.program_at && line.program.size() > 1;
    if (goes_on) {
      const std::string next = words[at + 1].text;
      about.fail("command.blank_in_list", argument.shown() + " " + next + ": the value ends at the blank, and " +
                                              line.tool + " takes '" + next + "' for the program");
      words[at] = literal(words[at].text + next);
      words.erase(words.begin() + offset(at + 1));
    } else {
      about.fail("command.blank_in_list", argument.shown() + " ends in a comma", "Leave the comma out");
      words[at] = literal(words[at].text.substr(0, words[at].text.size() - 1));
    }
    return true;
  }
  return false;
}

// `--nvtx-include A/ B/ ./app`
bool second_expression(Explaining& about, Words& words) {
  const CommandLine& line = about.line;
  if (line.tool != "ncu" || line.arguments.empty() || line.program.size() < 2) return false;
  const std::string& name = line.arguments.back().name;
  const std::string& next = line.program.front().text;
  if (name != "--nvtx-include" && name != "--nvtx-exclude") return false;
  if (!next.ends_with('/') && !next.starts_with("regex:") && !next.starts_with('[')) return false;
  about.fail("command.list_in_expression",
             "ncu takes '" + next + "' for the program: " + name + " takes one expression",
             "Write " + name + " before each of them");
  words.insert(words.begin() + offset(line.program_at), literal(name));
  return true;
}

// `-f ./app`, `--kill --set full`, `--nvtx-include --nvtx`, `... --page`
bool value_missing(Explaining& about, Words& words) {
  const CommandLine& line = about.line;
  for (const Argument& argument : line.arguments) {
    if (!argument.known) continue;
    const Takes kind = takes(line.tool, argument.name, about.can);
    if (kind == Takes::kNothing || kind == Takes::kUnknown || argument.joined) continue;
    const bool absent = !argument.value;
    const std::string value = absent ? std::string() : argument.value->text;
    // A word that is no yes and no no, and rather an option or the program.
    const bool taken = value.starts_with('-') || value.find('/') != std::string::npos || line.program.empty() ||
                       base::find_on_path(value).has_value();
    if (!absent && is_boolean_option(line.tool, argument.name) && !is_boolean(value) && taken) {
      const std::string yes = line.tool == "nsys" ? "true" : "yes";
      about.fail("command.value_missing", argument.written + " needs a value and takes '" + value + "' for it",
                 "Write " + argument.written + " " + yes);
      words.insert(words.begin() + offset(argument.at + 1), literal(yes));
      return true;
    }
    // An option that was swallowed as a value; a number may begin with one dash.
    const bool swallowed = (value.size() > 2 && value.starts_with("--")) ||
                           (value.size() == 2 && value[0] == '-' && !long_name(line.tool, value[1]).empty());
    if (!absent && !swallowed) continue;
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kUsual{
        {{"--print-summary", "per-kernel"}, {"--target-processes", "all"}, {"--page", "details"}}};
    const auto usual =
        std::find_if(kUsual.begin(), kUsual.end(), [&](const auto& u) { return u.first == argument.name; });
    about.fail("command.value_missing",
               argument.written + (absent ? " stands at the end, without its value"
                                          : " needs a value and takes '" + value + "' for it"),
               usual == kUsual.end() ? "Give it its value, or leave it out"
                                     : "Write " + argument.written + " " + std::string(usual->second));
    if (usual == kUsual.end())
      words.erase(words.begin() + offset(argument.at));
    else
      words.insert(words.begin() + offset(argument.at + 1), literal(usual->second));
    return true;
  }
  return false;
}

// Options that hardly any program has itself.
constexpr std::array<std::string_view, 18> kDistinctive{
    "--nvtx-include",     "--nvtx-exclude",        "--replay-mode",        "--launch-count",      "--launch-skip",
    "--kernel-name",      "--kernel-id",           "--target-processes",   "--clock-control",     "--cache-control",
    "--range-filter",     "--capture-range",       "--nvtx-capture",       "--capture-range-end", "--cpuctxsw",
    "--cuda-graph-trace", "--nvtx-push-pop-scope", "--nvtx-domain-include"};

// `ncu ./app --nvtx --nvtx-include decode/`
bool behind_program(Explaining& about, Words& words) {
  const CommandLine& line = about.line;
  Words moved, stays;
  bool distinctive = false;
  for (std::size_t i = 0; i < line.program.size(); ++i) {
    const std::string& text = line.program[i].text;
    const std::string name = text.substr(0, text.find('='));
    const bool behind = i > 0 || line.double_dash;
    const bool ours = behind && std::find(kDistinctive.begin(), kDistinctive.end(), name) != kDistinctive.end() &&
                      (!about.can || about.can->has(name));
    if (!ours && !(behind && line.tool == "ncu" && text == "--nvtx")) {
      stays.push_back(line.program[i]);
      continue;
    }
    distinctive = distinctive || ours;
    moved.push_back(line.program[i]);
    if (ours && text == name && i + 1 < line.program.size()) moved.push_back(line.program[++i]);
  }
  if (!distinctive) return false;
  std::string names;
  for (const Word& word : moved)
    if (word.text.starts_with("--")) names += (names.empty() ? "" : ", ") + word.text.substr(0, word.text.find('='));
  about.warn("command.option_behind_program", names + " behind " +
                                                  (line.double_dash ? "--" : line.program.front().text) +
                                                  ": the program gets it, not " + line.tool);
  words.erase(words.begin() + offset(line.program_at - (line.double_dash ? 1 : 0)), words.end());
  words.insert(words.end(), moved.begin(), moved.end());
  if (line.double_dash) words.push_back(literal("--"));
  words.insert(words.end(), stays.begin(), stays.end());
  return true;
}

}  // namespace

bool is_boolean(std::string_view value) {
  const std::string low = base::lower(value);
  for (const char* known : {"true", "false", "yes", "no", "on", "off", "1", "0"})
    if (low == known) return true;
  return false;
}

bool is_boolean_option(std::string_view tool, std::string_view option) {
  static constexpr std::array<std::string_view, 8> kNcu{"--apply-rules", "--import-source", "--check-exit-code",
                                                        "--kill",        "--import-sass",   "--profile-from-start",
                                                        "--config-file", "--rename-kernels"};
  static constexpr std::array<std::string_view, 8> kNsys{
      "--force-overwrite",   "--stats",    "--stop-on-exit",        "--show-output",
      "--cuda-memory-usage", "--gpuctxsw", "--inherit-environment", "--trace-fork-before-exec"};
  return tool == "ncu" ? std::find(kNcu.begin(), kNcu.end(), option) != kNcu.end()
                       : std::find(kNsys.begin(), kNsys.end(), option) != kNsys.end();
}

bool is_list_option(std::string_view option) {
  for (const char* known :
       {"--trace", "--metrics", "--devices", "--chips", "--nvtx-domain-include", "--export", "--nvtx-domain-exclude",
        "--target-processes-filter", "--range-replay-options", "--env-var"})
    if (option == known) return true;
  return false;
}

bool mend_words(Explaining& about, Words& words) {
  for (const Change change : {verb, double_dash, value_missing, blank_in_list, second_expression, behind_program})
    if (change(about, words)) return true;
  return false;
}

void judge_program(Explaining& about) {
  const CommandLine& line = about.line;
  if (!line.program.empty()) return;
  const auto any = [&](std::initializer_list<const char*> names) {
    return std::any_of(names.begin(), names.end(), [&](const char* name) { return line.has(name); });
  };
  if (any({"--help", "--version"})) return;
  if (line.tool == "ncu") {
    if (any({"--import", "--list-sets", "--list-sections", "--list-rules", "--list-metrics", "--list-chips",
             "--query-metrics", "--query-metrics-mode", "--query-metrics-collection", "--section-folder-restore"}) ||
        line.value("--mode") == "attach" || line.value("--clock-control") == "reset")
      return;
  } else if (line.verb == "start" || line.value("--sample") == "system-wide" ||
             line.value("--cpuctxsw") == "system-wide" ||
             any({"--gpu-metrics-device", "--gpu-metrics-devices", "--event-sample", "--nic-metrics", "--ftrace"})) {
    return;  // of the whole machine
  }
  about.fail("command.no_program", "no program stands behind the options");
  about.lost = true;
}

}  // namespace rangescope::doctor
