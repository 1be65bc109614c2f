#include "cli/print/help.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/embedded.hpp"
#include "base/text.hpp"

RANGESCOPE_EMBED(bash_completion, RANGESCOPE_BASH);
RANGESCOPE_EMBED(zsh_completion, RANGESCOPE_ZSH);

namespace rangescope::cli {
namespace {

/// A command as shells complete it: its options and those of its words, each once.
struct Completed {
  std::string name, summary;
  std::vector<HelpOption> options;
  std::vector<std::string> words;
  bool runs = false;  ///< a free word may be a run
  bool program = false;
};

std::vector<Completed> completed(HelpCommands commands) {
  std::vector<Completed> all;
  for (const HelpCommand& command : commands) {
    Completed one{command.name, command.summary, {}, {}, false, command.program};
    const auto add = [&](const HelpCommand& from) {
      for (const HelpOption& option : from.options) {
        if (option.group.empty())
          continue;
        if (option.names.empty()) {
          one.runs |= option.run;
          one.words.insert(one.words.end(), option.values.begin(), option.values.end());
        } else if (std::ranges::find(one.options, option.names, &HelpOption::names) ==
                   one.options.end()) {
          one.options.push_back(option);
        }
      }
    };
    add(command);
    for (const auto& [written, summary] : command.verbs)
      one.words.push_back(written.substr(0, written.find(' ')));
    for (const HelpCommand& word : command.words) {
      one.words.push_back(word.name);
      add(word);
    }
    all.push_back(std::move(one));
  }
  return all;
}

bool is_long(const std::string& option_name) {
  return option_name.starts_with("--");
}

std::string bash_completion(const std::vector<Completed>& commands) {
  std::vector<std::string> names;
  std::string cases, values;
  for (const Completed& command : commands) {
    names.push_back(command.name);
    std::vector<std::string> words = command.words;
    for (const HelpOption& option : command.options)
      for (const std::string& name : option.names) {
        if (is_long(name))
          words.push_back(name);
        if (!option.values.empty())
          values += fmt::format(
              "    '{} {}') values='{}' ;;\n", command.name, name, base::join(option.values, " "));
      }
    std::string listed = base::join(words, " ");
    if (command.runs)
      listed += " $runs";
    cases += fmt::format("    {}) words=\"{}\" ;;\n", command.name, listed);
  }
  return fmt::format(
      fmt::runtime(rangescope_bash_completion), base::join(names, " "), values, cases);
}

/// A text between single quotes, `marks` escaped for the shell's own grammar inside.
std::string shell_word(std::string_view text, std::string_view marks) {
  std::string out = "'";
  for (const char c : text) {
    if (marks.find(c) != std::string_view::npos)
      out += '\\';
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out + "'";
}

std::string zsh_completion(const std::vector<Completed>& commands) {
  std::string names, cases;
  for (const Completed& command : commands) {
    names += "      " + shell_word(command.name + ":" + command.summary, "") + "\n";
    std::string specs;
    for (const HelpOption& option : command.options) {
      for (const std::string& name : option.names) {
        const std::string values = base::join(option.values, " ");
        std::string word = name;
        if (!option.value.empty())
          word += is_long(name) ? '=' : '+';
        std::string spec = shell_word(word, "");
        spec += shell_word(
            "[" + base::replace_all(base::replace_all(option.text, "[", "("), "]", ")") + "]", ":");
        if (!option.value.empty()) {
          if (values.empty())
            spec += "':value:_files'";
          else if (option.list)
            spec += "':group:_sequence compadd - " + values + "'";
          else
            spec += "':value:(" + values + ")'";
        }
        specs += " \\\n        " + spec;
      }
    }
    if (!command.words.empty())
      specs += " \\\n        '1:what:(" + base::join(command.words, " ") + ")'";
    if (command.program)
      specs += " \\\n        '*:: :_normal'";
    else if (command.runs)
      specs += " \\\n        \"*:input: _alternative 'runs:run:($runs)' 'files:file:_files'\"";
    else
      specs += " \\\n        '*:file:_files'";
    cases += fmt::format("    {})\n      _arguments{} ;;\n", command.name, specs);
  }
  return fmt::format(fmt::runtime(rangescope_zsh_completion), names, cases);
}

std::string fish_completion(const std::vector<Completed>& commands) {
  std::string out =
      "# fish completion for rangescope; made by `rangescope help --completion fish`\n"
      "function __rangescope_runs\n  echo latest\n  for run in rangescope-runs/*/\n    path "
      "basename $run\n  "
      "end\nend\n";
  for (const Completed& command : commands) {
    out += fmt::format("complete -c rangescope -n __fish_use_subcommand -f -a {} -d {}\n",
                       command.name,
                       shell_word(command.summary, "\\"));
    const std::string after_command =
        fmt::format("complete -c rangescope -n '__fish_seen_subcommand_from {}'", command.name);
    for (const std::string& word : command.words)
      out += after_command + " -f -a " + word + "\n";
    if (command.runs)
      out += after_command + " -a '(__rangescope_runs)'\n";
    for (const HelpOption& option : command.options) {
      out += after_command;
      for (const std::string& name : option.names)
        if (is_long(name))
          out += " -l " + name.substr(2);
        else
          out += " -s " + name.substr(1);
      const std::string values = base::join(option.values, " ");
      if (option.list)
        out +=
            " -x -a '(__fish_complete_list , \"string split \\\" \\\" \\\"" + values + "\\\"\")'";
      else if (!values.empty())
        out += " -x -a '" + values + "'";
      else if (!option.value.empty())
        out += " -r";
      out += " -d " + shell_word(option.text, "\\") + "\n";
    }
  }
  return out;
}

}  // namespace

std::string completion(HelpCommands commands, std::string_view shell) {
  const auto list = completed(commands);
  if (shell == "zsh")
    return zsh_completion(list);
  if (shell == "fish")
    return fish_completion(list);
  return bash_completion(list);
}

}  // namespace rangescope::cli
