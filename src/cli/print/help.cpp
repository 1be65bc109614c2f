#include "cli/print/help.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "base/version.hpp"
#include "model/measure.hpp"

namespace rangescope::cli {
namespace {

constexpr std::string_view kWhat =
    "rangescope runs any program once and reports what each of its NVTX ranges costs, and why.";
constexpr std::size_t kHelpLeft = 30, kHelpWidth = 96;
constexpr std::string_view kManTail =
    ".SH EXIT STATUS\n"
    "The exit code of the program passes through, and its fatal signal likewise. rangescope's own codes are: 64 usage, "
    "65 bad data, 66 no input, 69 tool missing, 70 internal error, 74 input or output error, 77 permission, 78 "
    "configuration, "
    "80 nothing captured, 81 regression, 82 not comparable, 83 data loss under \\-\\-strict.\n";

/// "-o, --to FILE"
std::string names_of(const HelpOption& option) {
  if (option.names.empty()) return option.value;
  return base::join(option.names, ", ") + (option.value.empty() ? "" : " " + option.value);
}

/// Shown options: free words first, then groups, each where its first option was declared.
std::vector<const HelpOption*> lines_of(const HelpCommand& command) {
  std::vector<const HelpOption*> lines;
  std::vector<std::string_view> groups;
  for (const HelpOption& option : command.options) {
    if (option.group.empty()) continue;
    lines.push_back(&option);
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) groups.push_back(option.group);
  }
  std::ranges::stable_sort(lines, {}, [&](const HelpOption* line) {
    return line->names.empty() ? 0 : 1 + (std::find(groups.begin(), groups.end(), line->group) - groups.begin());
  });
  return lines;
}

std::string options_text(const HelpCommand& command, bool all) {
  std::string out, group;
  for (const HelpOption* line : lines_of(command)) {
    const auto main = [&](const std::string& name) {
      return std::find(command.mainly.begin(), command.mainly.end(), name) != command.mainly.end();
    };
    if (!all && !command.mainly.empty() && !line->names.empty() && line->group != "Output" &&
        std::none_of(line->names.begin(), line->names.end(), main))
      continue;
    if (line->group != group) {
      group = line->group;
      out += "\n" + group + ":\n";
    }
    std::string left = "  " + names_of(*line);
    const std::string below = "\n" + std::string(kHelpLeft, ' ');
    left += left.size() + 2 > kHelpLeft ? below : std::string(kHelpLeft - left.size(), ' ');
    out += left + base::join(base::wrapped(line->text, kHelpWidth - kHelpLeft, 0), below) + "\n";
  }
  return out;
}

std::string roff(std::string_view text) {
  std::string out = base::replace_all(text, "\\", "\\e");
  out = base::replace_all(out, "-", "\\-");
  std::string safe;
  for (const std::string_view line : base::split(out, '\n')) {
    if (!safe.empty()) safe += '\n';
    if (line.starts_with(".") || line.starts_with("'")) safe += "\\&";
    safe += line;
  }
  return safe;
}

std::string man_head(const std::string& name, std::string_view summary) {
  std::string upper = name;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return fmt::format(".TH {} 1 \"\" \"{}\" \"rangescope\"\n.SH NAME\n{} \\- {}\n", roff(upper), base::tool_version(),
                     roff(name), roff(summary));
}

std::string man_options(const HelpCommand& command) {
  std::string out, group;
  for (const HelpOption* line : lines_of(command)) {
    if (line->group != group) {
      group = line->group;
      out += ".SS " + roff(group) + "\n";
    }
    out += ".TP\n.B " + roff(names_of(*line)) + "\n" + roff(line->text) + "\n";
  }
  return out;
}

}  // namespace

std::string usage(const HelpCommand& command, const std::string& name) {
  std::string text = "rangescope " + name + " [options]";
  for (const HelpOption* line : lines_of(command))
    if (line->names.empty()) text += line->required ? " " + line->value : " [" + line->value + "]";
  return text + (command.program ? " [--] program [arguments]" : "");
}

std::string overview(HelpCommands commands) {
  std::string out = std::string(kWhat) + "\n\nUsage: rangescope <command> [options]\n\nCommands:\n";
  for (const HelpCommand& command : commands) out += fmt::format("  {:<12}{}\n", command.name, command.summary);
  return out +
         "\nBegin with:  rangescope profile -- python train.py\n"
         "More about a command:  rangescope help <command>\n";
}

std::string help_text(const HelpCommand& command, bool all) {
  std::string out = command.summary + "\n\n";
  if (command.words.empty()) {
    out += "Usage: " + usage(command, command.name) + "\n" + options_text(command, all);
  } else {
    out += "Usage: rangescope " + command.name + " <what> [options]\n";
    for (const HelpCommand& word : command.words)
      out +=
          "\n" + usage(word, command.name + " " + word.name) + "\n  " + word.summary + "\n" + options_text(word, true);
  }
  return out + (command.details.empty() ? "" : "\n" + command.details + "\n");
}

std::string man_overview(HelpCommands commands) {
  std::string out = man_head("rangescope", "what each NVTX range of a GPU program costs, and why");
  out += ".SH SYNOPSIS\n.B rangescope\n.I command\n[options]\n.SH DESCRIPTION\n" + roff(kWhat) + "\n.SH COMMANDS\n";
  std::string list;
  for (const HelpCommand& command : commands) {
    out += ".TP\n.B " + roff(command.name) + "\n" + roff(command.summary) + "\n";
    list += (list.empty() ? "" : ", ") + ("rangescope-" + command.name) + "(1)";
  }
  out += kManTail;
  out +=
      ".SH ENVIRONMENT\n.TP\n.B RANGESCOPE_INJECT\nThe library to load into the program, if it is not next to "
      "rangescope.\n"
      ".TP\n.B NO_COLOR\nNo color, whatever its value.\n.SH SEE ALSO\n";
  return out + roff(list) + "\n";
}

std::string man_page(const HelpCommand& command) {
  std::string out = man_head("rangescope-" + command.name, command.summary);
  out += ".SH SYNOPSIS\n";
  if (command.words.empty()) out += ".B " + roff(usage(command, command.name)) + "\n";
  for (const HelpCommand& word : command.words)
    out += ".B " + roff(usage(word, command.name + " " + word.name)) + "\n.br\n";
  if (!command.details.empty()) out += ".SH DESCRIPTION\n.nf\n" + roff(command.details) + "\n.fi\n";
  out += ".SH OPTIONS\n";
  if (command.words.empty()) out += man_options(command);
  for (const HelpCommand& word : command.words)
    out += ".SS " + roff(command.name + " " + word.name) + "\n" + roff(word.summary) + "\n" + man_options(word);
  out += kManTail;
  return out + ".SH SEE ALSO\nrangescope(1)\n";
}

std::string columns_page() {
  std::string out = "Values of a region, for --columns and --sort (by name or by title):\n\n";
  for (const model::Measure& measure : model::measures())
    out += fmt::format("  {:<30} {:<14} {:<6} {}\n", measure.tag, measure.title, model::unit_name(measure.unit),
                       measure.formula);
  out +=
      fmt::format("  {:<30} {:<14} {:<6} {}\n", "bound", "bound", "", "what limits the region while the GPU is busy");
  return out + "\nCollected hardware metrics are named metrics.<name>: metrics.dram__bytes.sum\n";
}

}  // namespace rangescope::cli
