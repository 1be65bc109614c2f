#include <algorithm>
#include <array>

#include "base/fs.hpp"
#include "base/text.hpp"
#include "collect/nsight/explain/rules.hpp"

namespace rangescope::collect::command {
namespace {

using Change = bool (*)(Explaining&, Words&);

std::ptrdiff_t offset(std::size_t at) {
  return static_cast<std::ptrdiff_t>(at);
}

// `ncu profile ./app`, `nsys ./app`
bool verb(Explaining& about, Words& words) {
  CommandLine& line = about.line;
  if (line.tool == "ncu") {
    if (line.arguments.empty() && line.program.size() > 1 &&
        line.program.front().text == "profile") {
      about.fail("foreign_verb", "'profile' is a command of nsys; ncu takes it for the program",
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
  static const std::vector<std::string> kUsual{"profile", "launch", "start",  "stop",
                                               "stats",   "export", "analyze"};
  const auto near = base::nearest(words[at].text, kUsual, 1);
  const bool misspelt = !near.empty() && words.size() > at + 1 &&
                        words[at].text.find('/') == std::string::npos &&
                        !base::find_on_path(words[at].text);
  about.fail("no_verb", "nsys takes '" + words[at].text + "' for its command",
             misspelt ? "Write nsys " + near.front() : std::string());
  if (misspelt)
    words[at] = literal(near.front());
  else
    words.insert(words.begin() + offset(at), literal("profile"));
  return true;
}

// Refused by ncu 2022.3.0 and 2024.1.1 and by nsys 2022.4.2 and 2023.4.4; taken by ncu 2025.3.1. Of
// others nobody knows.
bool double_dash(Explaining& about, Words& words) {
  const CommandLine& line = about.line;
  if (!line.double_dash || !line.records()) return false;
  const Version version = about.can ? about.can->version : Version{};
  if (line.tool == "ncu" && version >= Version{2025, 3, 0}) return false;
  const bool refuses = version.year > 0 &&
                       version < (line.tool == "ncu" ? Version{2024, 2, 0} : Version{2024, 1, 0});
  const std::string found = "'--' before the program";
  if (refuses)
    about.fail("double_dash", found);
  else
    about.warn("double_dash", found);
  words.erase(words.begin() + offset(line.program_at - 1));
  return true;
}

/// Could this word be one more value of the option before it? `comma`: that one ends in a comma.
bool continues(const Explaining& about, const std::string& name, const std::string& word,
               bool comma) {
  if (word.empty() || word.starts_with('-') || word.starts_with('/') || word.starts_with("./"))
    return false;
  if (name == "--nvtx-include" || name == "--nvtx-exclude")
    return word.ends_with('/') || word.starts_with("regex:") || word.starts_with('[');
  if (name == "--section") return about.can && about.can->sections.contains(word);
  if (name == "--metrics") return word.find("__") != std::string::npos;
  if (name != "--trace")
    return comma && word.find_first_of("./") == std::string::npos && !base::find_on_path(word);
  static const std::vector<std::string> kCommon{"cuda",  "nvtx", "osrt",   "cublas",
                                                "cudnn", "mpi",  "opengl", "none"};
  const auto& listed = about.listed(name);
  const auto& known = listed.empty() ? kCommon : listed;
  const std::string first = word.substr(0, word.find(','));
  return std::find(known.begin(), known.end(), first) != known.end() ||
         (comma && !base::nearest(first, known, 1).empty() && !base::find_on_path(word));
}

// `--trace cuda, nvtx ./app`, `--trace cuda nvtx ./app`, `--nvtx-include A/ B/ ./app`: the value
// ends at the blank, and nvtx is the program.
bool blank_in_list(Explaining& about, Words& words) {
  const CommandLine& line = about.line;
  if (line.arguments.empty() || line.program.size() < 2 || line.double_dash) return false;
  const Argument& argument = line.arguments.back();
  const std::string name = argument.name, next = line.program.front().text;
  const bool list = has_trait(line.table(), name, Option::kList),
             each = has_trait(line.table(), name, Option::kEach);
  if ((!list && !each) || !argument.value || argument.value->expands) return false;
  const std::string value = argument.value->text;
  const bool comma = value.size() > 1 && value.ends_with(',');
  if (!continues(about, name, next, comma)) return false;
  const std::string takes_it = line.tool + " takes '" + next + "' for the program";
  const std::size_t at = line.program_at;
  if (list) {
    about.fail("blank_in_list",
               argument.shown() + " " + next + ": the value ends at the blank, and " + takes_it);
    words[at - 1] = literal(words[at - 1].text + (comma ? "" : ",") + next);
    words.erase(words.begin() + offset(at));
    return true;
  }
  about.fail("list_in_expression", takes_it + ": " + name + " takes one value",
             "Write " + name + " before each of them");
  if (comma) words[at - 1] = literal(words[at - 1].text.substr(0, words[at - 1].text.size() - 1));
  words.insert(words.begin() + offset(at), literal(name));
  return true;
}

// `-f ./app`, `--kill --set full`, `--nvtx-include --nvtx`, `... --page`
bool value_missing(Explaining& about, Words& words) {
  const CommandLine& line = about.line;
  for (const Argument& argument : line.arguments) {
    if (!argument.known) continue;
    const Takes kind = takes(line.table(), argument.name, about.can);
    if (kind == Takes::kNothing || kind == Takes::kUnknown || argument.joined) continue;
    const bool absent = !argument.value;
    const std::string value = absent ? std::string() : argument.value->text;
    // A word that is no yes and no no, and rather an option or the program.
    const bool taken = value.starts_with('-') || value.find('/') != std::string::npos ||
                       line.program.empty() || base::find_on_path(value).has_value();
    if (!absent && has_trait(line.table(), argument.name, Option::kYesNo) && !is_boolean(value) &&
        taken) {
      const std::string yes = line.tool == "nsys" ? "true" : "yes";
      about.fail("value_missing",
                 argument.written + " needs a value and takes '" + value + "' for it",
                 "Write " + argument.written + " " + yes);
      words.insert(words.begin() + offset(argument.at + 1), literal(yes));
      return true;
    }
    // An option that was swallowed as a value; a number may begin with one dash.
    const bool swallowed =
        (value.size() > 2 && value.starts_with("--")) ||
        (value.size() == 2 && value[0] == '-' && !long_name(line.table(), value[1]).empty());
    if (!absent && !swallowed) continue;
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kUsual{
        {{"--print-summary", "per-kernel"}, {"--target-processes", "all"}, {"--page", "details"}}};
    const auto usual = std::find_if(kUsual.begin(), kUsual.end(),
                                    [&](const auto& u) { return u.first == argument.name; });
    about.fail("value_missing",
               argument.written + (absent ? " is last, without its value"
                                          : " needs a value and takes '" + value + "' for it"),
               usual == kUsual.end()
                   ? "Give it its value, or leave it out"
                   : "Write " + argument.written + " " + std::string(usual->second));
    if (usual == kUsual.end())
      words.erase(words.begin() + offset(argument.at));
    else
      words.insert(words.begin() + offset(argument.at + 1), literal(usual->second));
    return true;
  }
  return false;
}

/// Is `word` an option of the tool rather than of the program? `next` may be its value.
bool is_ours(const Explaining& about, const std::string& word, const std::string& next) {
  const auto equal = word.find('=');
  const std::string written = word.substr(0, equal);
  std::string name = written;
  if (word.size() == 2 && word[0] == '-') name = long_name(about.line.table(), word[1]);
  if (!name.starts_with("--") || (about.can && !about.can->has(name))) return false;
  if (has_trait(about.line.table(), name, Option::kTelling))
    return name == written || name == "--kernel-name";
  if (name == "--set")
    return about.can &&
           about.can->sets.contains(equal == std::string::npos ? next : word.substr(equal + 1));
  if (name == "--section") return about.can && about.can->sections.contains(next);
  if (name == "--metrics") return next.find("__") != std::string::npos;
  const auto& known = about.listed(name);
  if (known.empty() || has_trait(about.line.table(), name, Option::kYesNo)) return false;
  const std::string value = equal == std::string::npos ? next : word.substr(equal + 1);
  for (const std::string_view part : base::split(value, ','))
    if (std::find(known.begin(), known.end(), part) == known.end()) return false;
  return true;
}

// `ncu ./app --nvtx --nvtx-include decode/`
bool behind_program(Explaining& about, Words& words) {
  const CommandLine& line = about.line;
  if (!line.records()) return false;
  Words moved, stays;
  bool telling = false;
  for (std::size_t i = 0; i < line.program.size(); ++i) {
    const std::string& text = line.program[i].text;
    const std::string next = i + 1 < line.program.size() ? line.program[i + 1].text : std::string();
    const bool behind = i > 0 || line.double_dash;
    const bool ours = behind && !line.program[i].expands && is_ours(about, text, next);
    if (!ours && !(behind && line.tool == "ncu" && text == "--nvtx")) {
      stays.push_back(line.program[i]);
      continue;
    }
    telling = telling || ours;
    moved.push_back(line.program[i]);
    const std::string name = text.starts_with("--") ? text : long_name(line.table(), text[1]);
    if (ours && text.find('=') == std::string::npos && i + 1 < line.program.size() &&
        takes(line.table(), name, about.can) != Takes::kNothing)
      moved.push_back(line.program[++i]);
  }
  if (!telling) return false;
  std::string names;
  for (const Word& word : moved)
    if (word.text.starts_with("-"))
      names += (names.empty() ? "" : ", ") + word.text.substr(0, word.text.find('='));
  about.warn("option_behind_program", names + " behind " +
                                          (line.double_dash ? "--" : line.program.front().text) +
                                          ": the program gets it, not " + line.tool);
  words.erase(words.begin() + offset(line.program_at - (line.double_dash ? 1 : 0)), words.end());
  words.insert(words.end(), moved.begin(), moved.end());
  if (line.double_dash) words.push_back(literal("--"));
  words.insert(words.end(), stays.begin(), stays.end());
  return true;
}

}  // namespace

bool mend_words(Explaining& about, Words& words) {
  for (const Change change : {verb, double_dash, value_missing, blank_in_list, behind_program})
    if (change(about, words)) return true;
  return false;
}

void judge_program(Explaining& about) {
  const CommandLine& line = about.line;
  if (!line.program.empty()) return;
  const bool alone =
      std::any_of(line.arguments.begin(), line.arguments.end(), [&](const Argument& argument) {
        return has_trait(line.table(), argument.name, Option::kAlone);
      });
  // What attaches, and what is recorded of the whole machine.
  if (alone || line.value("--mode") == "attach" || line.value("--clock-control") == "reset" ||
      line.verb == "start" || line.value("--sample") == "system-wide" ||
      line.value("--cpuctxsw") == "system-wide")
    return;
  about.fail(
      "no_program", line.records() ? "no program after the options" : "no report after the options",
      line.records() ? std::string() : "Name the report: nsys " + line.verb + " report1.nsys-rep");
  about.lost = true;
}

}  // namespace rangescope::collect::command
