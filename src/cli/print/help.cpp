#include "cli/print/help.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text.hpp"
#include "base/version.hpp"
#include "model/measure.hpp"

namespace rangescope::cli {
namespace {

constexpr std::string_view kWhat =
    "rangescope runs any program once and reports what each of its NVTX ranges costs, and why.";
constexpr std::size_t kHelpWidth = 80;  // a terminal's default
constexpr std::size_t kHelpLeft = 26;   // where the text of an option begins
constexpr std::size_t kLongestValue = 20;
constexpr std::string_view kArguments = "Arguments";
constexpr std::string_view kOutput = "Output";  // -v, -q, -h: the same in every command
constexpr std::string_view kManTail =
    ".SH EXIT STATUS\n"
    "The exit code of the program passes through, and its fatal signal likewise. rangescope's own "
    "codes are: 64 usage, "
    "65 bad data, 66 no input, 69 tool missing, 70 internal error, 74 input or output error, 77 "
    "permission, 78 "
    "configuration, "
    "80 nothing captured, 81 regression, 82 not comparable, 83 data loss under \\-\\-strict.\n";

std::string upper(std::string text) {
  for (char& c : text)
    c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

/// "table|json|jsonl|csv ..." is too long to stand next to its option.
bool is_listed_apart(const HelpOption& option) {
  return !option.names.empty() && option.value.size() > kLongestValue && !option.values.empty();
}

/// "-o, --output FILE"
std::string names_of(const HelpOption& option) {
  if (option.names.empty())
    return option.value;
  std::string text = base::join(option.names, ", ");
  if (option.value.empty())
    return text;
  if (!is_listed_apart(option))
    return text + " " + option.value;
  const std::string& long_name = option.names.back();
  return text + " " + upper(long_name.substr(long_name.find_first_not_of('-')));
}

/// `key`: with the key of the configuration that the option sets, where there is one.
std::string description_of(const HelpOption& option, bool key = true) {
  std::string text = option.text;
  const auto bracket = text.rfind(" [");
  const bool has_key = bracket != std::string::npos && text.ends_with("]");
  if (has_key && !key)
    text.resize(bracket);
  if (is_listed_apart(option))
    text += ": " + base::join(option.values, ", ");
  return text;
}

std::string_view title_of(const HelpOption& option) {
  if (option.names.empty())
    return kArguments;
  return option.group;
}

/// Shown options: free words first, then groups, each where its first option was declared.
std::vector<const HelpOption*> lines_of(const HelpCommand& command) {
  std::vector<const HelpOption*> lines;
  std::vector<std::string_view> groups{kArguments};
  for (const HelpOption& option : command.options) {
    if (option.group.empty())
      continue;
    lines.push_back(&option);
    const std::string_view title = title_of(option);
    if (std::ranges::find(groups, title) == groups.end())
      groups.push_back(title);
  }
  const auto place = [&](const HelpOption* line) {
    return std::ranges::find(groups, title_of(*line)) - groups.begin();
  };
  std::ranges::stable_sort(lines, {}, place);
  return lines;
}

/// What most people need: the free words, and the options that arguments.tsv names; all but those
/// of every command where it names none.
std::vector<const HelpOption*> main_lines_of(const HelpCommand& command) {
  std::vector<const HelpOption*> lines = lines_of(command);
  std::erase_if(lines, [&](const HelpOption* line) {
    if (line->names.empty())
      return false;
    if (command.mainly.empty())
      return line->group == kOutput;
    return std::ranges::find_first_of(line->names, command.mainly) == line->names.end();
  });
  return lines;
}

/// `left`, and `text` in the right column; below it where `left` is too long.
std::string two_columns(const std::string& left, const std::string& text) {
  const std::string below = "\n" + std::string(kHelpLeft, ' ');
  std::string gap = below;
  if (left.size() + 4 <= kHelpLeft)
    gap = std::string(kHelpLeft - left.size() - 2, ' ');
  const std::string right = base::join(base::wrapped(text, kHelpWidth - kHelpLeft, 0), below);
  return "  " + left + gap + right + "\n";
}

/// With a title above each group; `flat`: only above the free words, and above all others.
std::string options_text(const std::vector<const HelpOption*>& lines, bool flat) {
  std::string out;
  std::string_view last_title;
  for (const HelpOption* line : lines) {
    std::string_view title = title_of(*line);
    if (flat && !line->names.empty())
      title = "Options";
    if (title != last_title)
      out += "\n" + std::string(title) + ":\n";
    last_title = title;
    out += two_columns(names_of(*line), description_of(*line, !flat));
  }
  return out;
}

bool is_example(std::string_view line) {
  return line.starts_with("  ");
}

/// Paragraphs wrapped; lines that are indented stay as they are.
std::string reflowed(std::string_view details) {
  std::string out, paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty())
      out += base::join(base::wrapped(paragraph, kHelpWidth, 0), "\n") + "\n";
    paragraph.clear();
  };
  for (const std::string_view line : base::split(details, '\n')) {
    if (!line.empty() && !is_example(line)) {
      if (!paragraph.empty())
        paragraph += ' ';
      paragraph += line;
      continue;
    }
    end_paragraph();
    out += std::string(line) + "\n";
  }
  end_paragraph();
  return out;
}

/// Its first paragraph.
std::string introduction(std::string_view details) {
  return reflowed(details.substr(0, std::min(details.find("\n\n"), details.size())));
}

std::string examples(std::string_view details) {
  std::string out;
  for (const std::string_view line : base::split(details, '\n'))
    if (is_example(line))
      out += std::string(line) + "\n";
  if (out.empty())
    return {};
  return "\nExamples:\n" + out;
}

/// " run... [window]"
std::string arguments_of(const HelpCommand& command) {
  std::string text;
  for (const HelpOption* line : lines_of(command)) {
    if (!line->names.empty())
      continue;
    std::string word = line->value;
    if (line->several)
      word += "...";
    if (!line->required)
      word = "[" + word + "]";
    text += " " + word;
  }
  return text;
}

/// The words that a command takes, each with what it does.
std::string verbs_text(const HelpCommand& command) {
  std::string out;
  for (const auto& [written, summary] : verbs_of(command))
    out += two_columns(written, summary);
  return out;
}

std::string roff(std::string_view text) {
  std::string out = base::replace_all(text, "\\", "\\e");
  out = base::replace_all(out, "-", "\\-");
  std::string safe;
  for (const std::string_view line : base::split(out, '\n')) {
    if (!safe.empty())
      safe += '\n';
    if (line.starts_with(".") || line.starts_with("'"))
      safe += "\\&";
    safe += line;
  }
  return safe;
}

std::string man_head(const std::string& name, std::string_view summary) {
  constexpr const char* kHead = ".TH {} 1 \"\" \"{}\" \"rangescope\"\n.SH NAME\n{} \\- {}\n";
  return fmt::format(kHead, roff(upper(name)), base::tool_version(), roff(name), roff(summary));
}

std::string man_options(const HelpCommand& command) {
  std::string out;
  std::string_view title;
  for (const HelpOption* line : lines_of(command)) {
    if (title_of(*line) != title) {
      title = title_of(*line);
      out += ".SS " + roff(title) + "\n";
    }
    out += ".TP\n.B " + roff(names_of(*line)) + "\n" + roff(description_of(*line)) + "\n";
  }
  return out;
}

}  // namespace

std::string usage(const HelpCommand& command, const std::string& name) {
  std::string text = "rangescope " + name + " [options]" + arguments_of(command);
  if (command.program)
    text += " [--] program [arguments]";
  return text;
}

std::vector<Verb> verbs_of(const HelpCommand& command) {
  if (command.words.empty())
    return command.verbs;
  std::vector<Verb> verbs;
  for (const HelpCommand& word : command.words) {
    verbs.push_back({word.name + arguments_of(word), word.summary});
  }
  return verbs;
}

HelpCommand word_of(const HelpCommand& command, HelpCommand word) {
  word.name = command.name + " " + word.name;
  return word;
}

std::string overview(HelpCommands commands) {
  std::string out = base::join(base::wrapped(kWhat, kHelpWidth, 0), "\n");
  out += "\n\nUsage: rangescope <command> [options]\n";
  std::string_view title;
  for (const HelpCommand& command : commands) {
    if (command.group != title)
      out += fmt::format("\n{}:\n", command.group);
    title = command.group;
    out += fmt::format("  {:<10}{}\n", command.name, command.summary);
  }
  out += "\nOptions:\n  --version [--json]  Print the version\n";
  out += "  -h, --help          Show this help\n";
  out += "\nBegin with:            rangescope profile -- python3 train.py\n";
  out += "More about a command:  rangescope help <command>\n";
  return out + "The manual:            " + std::string(base::manual_address()) + "\n";
}

std::string help_text(const HelpCommand& command, bool all) {
  const std::vector<Verb> verbs = verbs_of(command);
  std::string out = command.summary + "\n\n";
  if (verbs.empty()) {
    out += "Usage: " + usage(command, command.name) + "\n";
  } else {
    out += "Usage: rangescope " + command.name + " <verb> [options], where <verb> is one of\n";
    out += verbs_text(command);
  }
  if (!all) {
    if (!command.details.empty())
      out += "\n" + introduction(command.details);
    out += options_text(main_lines_of(command), true) + examples(command.details);
    out += "\nMore: rangescope " + command.name + " --help-all";
    if (!command.words.empty())
      out += ", rangescope " + command.name + " <verb> --help";
    return out + "\n";
  }
  if (command.words.empty())
    out += options_text(lines_of(command), false);
  for (const HelpCommand& word : command.words)
    out += "\n\n" + usage(word, command.name + " " + word.name) + "\n  " + word.summary + "\n" +
           options_text(main_lines_of(word), true);
  if (!command.details.empty())
    out += "\n" + reflowed(command.details);
  return out;
}

std::string man_overview(HelpCommands commands) {
  std::string out = man_head("rangescope", "what each NVTX range of a GPU program costs, and why");
  out += ".SH SYNOPSIS\n.B rangescope\n.I command\n[options]\n.SH DESCRIPTION\n" + roff(kWhat) +
         "\n.SH COMMANDS\n";
  std::vector<std::string> pages;
  for (const HelpCommand& command : commands) {
    out += ".TP\n.B " + roff(command.name) + "\n" + roff(command.summary) + "\n";
    pages.push_back("rangescope-" + command.name + "(1)");
  }
  out += kManTail;
  out +=
      ".SH ENVIRONMENT\n.TP\n.B RANGESCOPE_INJECT\nThe library to load into the program, if it is "
      "not next to "
      "rangescope.\n"
      ".TP\n.B NO_COLOR\nNo color, whatever its value.\n.SH SEE ALSO\n";
  return out + roff(base::join(pages, ", ")) + "\n";
}

std::string man_page(const HelpCommand& command) {
  std::string out = man_head("rangescope-" + command.name, command.summary);
  out += ".SH SYNOPSIS\n";
  if (verbs_of(command).empty())
    out += ".B " + roff(usage(command, command.name)) + "\n";
  for (const Verb& verb : command.verbs)
    out += ".B " + roff("rangescope " + command.name + " " + verb.written) + "\n.br\n";
  for (const HelpCommand& word : command.words)
    out += ".B " + roff(usage(word, command.name + " " + word.name)) + "\n.br\n";
  if (!command.details.empty())
    out += ".SH DESCRIPTION\n.nf\n" + roff(reflowed(command.details)) + ".fi\n";
  out += ".SH OPTIONS\n";
  if (command.words.empty())
    out += man_options(command);
  for (const HelpCommand& word : command.words)
    out += ".SS " + roff(command.name + " " + word.name) + "\n" + roff(word.summary) + "\n" +
           man_options(word);
  out += kManTail;
  return out + ".SH SEE ALSO\nrangescope(1)\n";
}

std::string columns_page() {
  std::string out = "Values of a region, for --columns and --sort (by name or by title):\n\n";
  for (const model::Measure& measure : model::measures())
    out += fmt::format("  {:<30} {:<14} {:<6} {}\n",
                       measure.tag,
                       measure.title,
                       model::unit_name(measure.unit),
                       measure.formula);
  out += fmt::format("  {:<30} {:<14} {:<6} {}\n",
                     "bound",
                     "bound",
                     "",
                     "what limits the region while the GPU is busy");
  return out + "\nCollected hardware metrics are named metrics.<name>: metrics.dram__bytes.sum\n";
}

}  // namespace rangescope::cli
