#include <algorithm>
#include <array>

#include "base/fs.hpp"
#include "base/text.hpp"
#include "collect/nsight/explain/rules.hpp"

namespace rangescope::collect::command {
namespace {

/// Corrects one mistake in the words; false if there is none.
using Correction = bool (*)(Explaining&, Words&);

std::ptrdiff_t offset(std::size_t index) {
  return static_cast<std::ptrdiff_t>(index);
}

/// `ncu profile ./app`
bool verb_of_nsys(Explaining& about, Words& words) {
  const CommandLine& line = about.line;
  const bool names_program =
      line.tool == "ncu" && line.arguments.empty() && line.program.size() > 1;
  if (!names_program || line.program.front().text != "profile")
    return false;
  about.fail("foreign_verb",
             "'profile' is a command of nsys; ncu takes it for the program",
             "Leave it out");
  words.erase(words.begin() + offset(line.program_at));
  return true;
}

/// `nsys ./app`, `nsys profle ./app`
bool verb_missing(Explaining& about, Words& words) {
  const CommandLine& line = about.line;
  if (line.tool == "ncu" || !line.verb.empty())
    return false;
  if (line.has("--version") || line.has("--help"))
    return false;
  if (line.arguments.empty() && line.program.empty())
    return false;
  static const std::vector<std::string> kVerbs{
      "profile", "launch", "start", "stop", "stats", "export", "analyze"};
  const std::size_t place = line.before.size() + 1;
  const std::string word = words[place].text;
  const std::string nearest = nearest_name(word, kVerbs);
  const bool may_be_program =
      words.size() == place + 1 || word.find('/') != std::string::npos || base::find_on_path(word);
  const bool is_misspelt = !nearest.empty() && !may_be_program;
  const std::string problem = "nsys takes '" + word + "' for its command";
  if (is_misspelt) {
    about.fail("no_verb", problem, "Write nsys " + nearest);
    words[place] = literal(nearest);
  } else {
    about.fail("no_verb", problem);
    words.insert(words.begin() + offset(place), literal("profile"));
  }
  return true;
}

/// `ncu -- ./app`. ncu 2022.3.0 and 2024.1.1 and nsys 2022.4.2 and 2023.4.4 refuse it, ncu 2025.3.1
/// takes it; other versions are unknown.
bool double_dash(Explaining& about, Words& words) {
  const CommandLine& line = about.line;
  if (!line.double_dash || !line.records())
    return false;
  const bool is_ncu = line.tool == "ncu";
  const Version version = about.version();
  if (is_ncu && version >= Version{2025, 3, 0})
    return false;
  const Version first_unknown = is_ncu ? Version{2024, 2, 0} : Version{2024, 1, 0};
  const bool is_refused = version.year > 0 && version < first_unknown;
  const std::string problem = "'--' before the program";
  if (is_refused)
    about.fail("double_dash", problem);
  else
    about.warn("double_dash", problem);
  words.erase(words.begin() + offset(line.program_at - 1));
  return true;
}

/// Could this word be a further value of the option before it? `after_comma`: that option's value
/// ends in a comma.
bool is_further_value(const Explaining& about,
                      const std::string& name,
                      const std::string& word,
                      bool after_comma) {
  const bool is_option_or_path =
      word.starts_with('-') || word.starts_with('/') || word.starts_with("./");
  if (word.empty() || is_option_or_path)
    return false;
  if (name == "--nvtx-include" || name == "--nvtx-exclude")
    return word.ends_with('/') || word.starts_with("regex:") || word.starts_with('[');
  if (name == "--section")
    return about.can && about.can->sections.contains(word);
  if (name == "--metrics")
    return word.find("__") != std::string::npos;
  if (name != "--trace") {
    const bool may_be_program =
        word.find_first_of("./") != std::string::npos || base::find_on_path(word);
    return after_comma && !may_be_program;
  }
  static const std::vector<std::string> kCommonApis{
      "cuda", "nvtx", "osrt", "cublas", "cudnn", "mpi", "opengl", "none"};
  const auto& listed = about.listed(name);
  const auto& apis = listed.empty() ? kCommonApis : listed;
  const std::string first = word.substr(0, word.find(','));
  if (std::ranges::find(apis, first) != apis.end())
    return true;
  return after_comma && !base::nearest(first, apis, 1).empty() && !base::find_on_path(word);
}

/// `--trace cuda, nvtx ./app`, `--trace cuda nvtx ./app`, `--nvtx-include A/ B/ ./app`: the value
/// ends at the blank, and the tool takes nvtx or B/ for the program.
bool blank_in_list(Explaining& about, Words& words) {
  const CommandLine& line = about.line;
  if (line.arguments.empty() || line.program.size() < 2 || line.double_dash)
    return false;
  const Argument& argument = line.arguments.back();
  const std::string name = argument.name, next = line.program.front().text;
  const bool takes_list = has_trait(line.table(), name, Option::kList);
  const bool may_repeat = has_trait(line.table(), name, Option::kEach);
  if (!takes_list && !may_repeat)
    return false;
  if (!argument.value || argument.value->expands)
    return false;
  const std::string value = argument.value->text;
  const bool ends_in_comma = value.size() > 1 && value.ends_with(',');
  if (!is_further_value(about, name, next, ends_in_comma))
    return false;
  const std::string consequence = line.tool + " takes '" + next + "' for the program";
  const std::size_t program = line.program_at;
  std::string& last = words[program - 1].text;
  if (takes_list) {
    about.fail("blank_in_list",
               argument.shown() + " " + next + ": the value ends at the blank, and " + consequence);
    const std::string separator = ends_in_comma ? "" : ",";
    words[program - 1] = literal(last + separator + next);
    words.erase(words.begin() + offset(program));
    return true;
  }
  about.fail("list_in_expression",
             consequence + ": " + name + " takes one value",
             "Write " + name + " before each of them");
  if (ends_in_comma)
    words[program - 1] = literal(last.substr(0, last.size() - 1));
  words.insert(words.begin() + offset(program), literal(name));
  return true;
}

/// Has a yes-or-no option taken an option or the program for its value?
bool took_other_word(const CommandLine& line, const Argument& argument, const std::string& value) {
  if (!has_trait(line.table(), argument.name, Option::kYesNo) || is_boolean(value))
    return false;
  return value.starts_with('-') || value.find('/') != std::string::npos || line.program.empty() ||
         base::find_on_path(value).has_value();
}

/// Is the value an option? A number may start with one dash.
bool is_option(const CommandLine& line, const std::string& value) {
  if (value.size() > 2)
    return value.starts_with("--");
  return value.size() == 2 && value[0] == '-' && !long_name(line.table(), value[1]).empty();
}

/// A usual value of an option whose value is missing; "" for most options.
std::string_view usual_value(std::string_view option) {
  static constexpr std::pair<std::string_view, std::string_view> kUsual[] = {
      {"--print-summary", "per-kernel"}, {"--target-processes", "all"}, {"--page", "details"}};
  for (const auto& [name, value] : kUsual)
    if (name == option)
      return value;
  return {};
}

/// `-f ./app`, `--kill --set full`, `--nvtx-include --nvtx`, `... --page`
bool value_missing(Explaining& about, Words& words) {
  const CommandLine& line = about.line;
  for (const Argument& argument : line.arguments) {
    if (!argument.is_known || argument.joined)
      continue;
    const Takes kind = takes(line.table(), argument.name, about.can);
    if (kind == Takes::kNothing || kind == Takes::kUnknown)
      continue;
    std::string problem = argument.written + " is last, without its value";
    std::string value(usual_value(argument.name));
    if (argument.value) {
      const std::string& taken_word = argument.value->text;
      problem = argument.written + " needs a value and takes '" + taken_word + "' for it";
      if (took_other_word(line, argument, taken_word))
        value = line.tool == "nsys" ? "true" : "yes";
      else if (!is_option(line, taken_word))
        continue;
    }
    if (value.empty()) {
      about.fail("value_missing", problem, "Give it its value, or leave it out");
      words.erase(words.begin() + offset(argument.place));
    } else {
      about.fail("value_missing", problem, "Write " + argument.written + " " + value);
      words.insert(words.begin() + offset(argument.place + 1), literal(value));
    }
    return true;
  }
  return false;
}

/// Is `word` an option of the tool rather than of the program? `next` may be its value.
bool is_tool_option(const Explaining& about, const std::string& word, const std::string& next) {
  const auto equal = word.find('=');
  const std::string written = word.substr(0, equal);
  std::string name = written;
  if (word.size() == 2 && word[0] == '-')
    name = long_name(about.line.table(), word[1]);
  if (!name.starts_with("--") || (about.can && !about.can->has(name)))
    return false;
  if (has_trait(about.line.table(), name, Option::kTelling))
    return name == written || name == "--kernel-name";
  std::string value = next;
  if (equal != std::string::npos)
    value = word.substr(equal + 1);
  if (name == "--set")
    return about.can && about.can->sets.contains(value);
  if (name == "--section")
    return about.can && about.can->sections.contains(next);
  if (name == "--metrics")
    return next.find("__") != std::string::npos;
  const auto& listed = about.listed(name);
  if (listed.empty() || has_trait(about.line.table(), name, Option::kYesNo))
    return false;
  return std::ranges::all_of(base::split(value, ','), [&](std::string_view part) {
    return std::ranges::find(listed, part) != listed.end();
  });
}

/// `ncu ./app --nvtx --nvtx-include decode/`
bool option_after_program(Explaining& about, Words& words) {
  const CommandLine& line = about.line;
  if (!line.records())
    return false;
  Words moved, kept;
  std::vector<std::string> names;
  bool is_certain = false;  // --nvtx alone may be an option of the program
  for (std::size_t i = 0; i < line.program.size(); ++i) {
    const Word& word = line.program[i];
    const std::string& text = word.text;
    const bool has_next = i + 1 < line.program.size();
    std::string next;
    if (has_next)
      next = line.program[i + 1].text;
    const bool is_argument = i > 0 || line.double_dash;
    const bool is_option = is_argument && !word.expands && is_tool_option(about, text, next);
    const bool is_nvtx = is_argument && line.tool == "ncu" && text == "--nvtx";
    if (!is_option && !is_nvtx) {
      kept.push_back(word);
      continue;
    }
    is_certain |= is_option;
    moved.push_back(word);
    names.push_back(text.substr(0, text.find('=')));
    std::string name = text;
    if (!text.starts_with("--"))
      name = long_name(line.table(), text[1]);
    const bool has_separate_value = is_option && has_next && text.find('=') == std::string::npos &&
                                    takes(line.table(), name, about.can) != Takes::kNothing;
    if (!has_separate_value)
      continue;
    moved.push_back(line.program[++i]);
    if (next.starts_with('-'))
      names.push_back(next.substr(0, next.find('=')));
  }
  if (!is_certain)
    return false;
  std::string program = line.program.front().text;
  std::size_t first = line.program_at;
  if (line.double_dash) {
    program = "--";
    --first;
  }
  about.warn(
      "option_behind_program",
      base::join(names, ", ") + " behind " + program + ": the program gets it, not " + line.tool);
  words.erase(words.begin() + offset(first), words.end());
  words.insert(words.end(), moved.begin(), moved.end());
  if (line.double_dash)
    words.push_back(literal("--"));
  words.insert(words.end(), kept.begin(), kept.end());
  return true;
}

}  // namespace

bool mend_words(Explaining& about, Words& words) {
  for (const Correction correction : {verb_of_nsys,
                                      verb_missing,
                                      double_dash,
                                      value_missing,
                                      blank_in_list,
                                      option_after_program}) {
    if (correction(about, words))
      return true;
  }
  return false;
}

void judge_program(Explaining& about) {
  const CommandLine& line = about.line;
  if (!line.program.empty())
    return;
  const bool needs_no_program = std::ranges::any_of(line.arguments, [&](const auto& argument) {
    return has_trait(line.table(), argument.name, Option::kAlone);
  });
  const bool attaches = line.value("--mode") == "attach" || line.verb == "start";
  const bool is_system_wide =
      line.value("--sample") == "system-wide" || line.value("--cpuctxsw") == "system-wide";
  const bool resets_clocks = line.value("--clock-control") == "reset";
  if (needs_no_program || attaches || is_system_wide || resets_clocks)
    return;
  if (line.records())
    about.fail("no_program", "no program after the options");
  else
    about.fail("no_program",
               "no report after the options",
               "Name the report: nsys " + line.verb + " report1.nsys-rep");
  about.lost = true;
}

}  // namespace rangescope::collect::command
