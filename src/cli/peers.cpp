#include "cli/peers.hpp"

#include <algorithm>
#include <optional>

#include "base/embedded.hpp"
#include "base/text.hpp"

RANGESCOPE_EMBED(peers, RANGESCOPE_TSV);

namespace rangescope::cli {
namespace {

using Words = std::vector<std::string>;

bool is_whole_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, base::is_digit);
}

/// The user's value in the form of the example `10s`, `199Hz`, `PID`, `N` or `NAME`; the example
/// where the value does not fit.
std::string value_like(std::string_view example, const std::string& value) {
  if (value.empty())
    return std::string(example);
  if (base::is_digit(example.front())) {
    if (!base::is_digit(value.front()))
      return std::string(example);
    const std::size_t unit = example.find_first_not_of("0123456789");
    const bool is_bare = value.find_first_not_of("0123456789.") == std::string::npos;
    if (is_bare)
      return base::printable(value + std::string(example.substr(unit)));
    return base::printable(value);
  }
  const bool is_number = example == "PID" || example == "N";
  if (is_number && !is_whole_number(value))
    return std::string(example);
  return base::shell_quote(base::printable(value));
}

/// "--for {10s}" with the value instead of the braces.
std::string filled(std::string_view hint, const std::string& value) {
  std::string text;
  for (std::size_t open = hint.find('{'); open != std::string_view::npos; open = hint.find('{')) {
    const std::size_t close = hint.find('}', open);
    text += hint.substr(0, open);
    text += value_like(hint.substr(open + 1, close - open - 1), value);
    hint.remove_prefix(close + 1);
  }
  return text + std::string(hint);
}

/// The value that is written with the option: `--rate=5` or `--rate 5`; "" without one. Of
/// `profile --pid 5` the number was read as the program, and is behind `--`.
std::string value_of_option(std::string_view option, const Words& line) {
  const auto separator = std::ranges::find(line, "--");
  for (auto word = line.begin(); word != separator; ++word) {
    if (word->starts_with(std::string(option) + "="))
      return word->substr(option.size() + 1);
    if (*word != option)
      continue;
    auto value = word + 1;
    if (value == separator && value != line.end())
      ++value;
    if (value == line.end() || value->empty() || value->starts_with("-"))
      return {};
    const bool is_program = value > separator && !base::is_digit(value->front());
    if (is_program)
      return {};
    return *value;
  }
  return {};
}

/// py-spy draws its flame graph as SVG, ours is in the page. perf's recording has no counterpart,
/// since each run is kept: "".
std::string file_of_ours(const std::string& file) {
  constexpr std::string_view kDrawing = ".svg";
  if (file.ends_with(kDrawing))
    return file.substr(0, file.size() - kDrawing.size()) + ".html";
  if (file.ends_with(".data"))
    return {};
  return file;
}

struct PeersOption {
  std::string_view ours;  ///< "pid", or the words that replace it; "" where it is left out
  bool has_value = false;
};

std::optional<PeersOption> find_option_of_command(std::string_view name) {
  for (const auto& [what, option, ours, values] : base::rows<4>(rangescope_peers))
    if (what == "their" && option == name)
      return PeersOption{ours, values == "1"};
  return std::nullopt;
}

/// A command line of perf or py-spy, in our words.
struct PeersLine {
  std::string pid, options;
  Words program;
};

/// Nothing for an option that is not known: what follows it may be its value or the program.
std::optional<PeersLine> read_peers_line(const Words& words) {
  PeersLine line;
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (*word == "--") {
      line.program.assign(word + 1, words.end());
      break;
    }
    if (!word->starts_with("-")) {
      line.program.assign(word, words.end());
      break;
    }
    const std::size_t equals = word->find('=');
    const auto option = find_option_of_command(word->substr(0, equals));
    if (!option)
      return std::nullopt;
    std::string value;
    if (equals != std::string::npos)
      value = word->substr(equals + 1);
    else if (option->has_value && word + 1 != words.end())
      value = *++word;
    const bool is_file = option->ours == "-o {FILE}";
    if (is_file)
      value = file_of_ours(value);
    if (option->ours == "pid")
      line.pid = value;
    else if (!option->ours.empty() && !(is_file && value.empty()))
      line.options += " " + filled(option->ours, value);
  }
  const bool is_process = line.program.size() == 1 && is_whole_number(line.program.front());
  if (line.pid.empty() && is_process)
    line.pid = line.program.front();
  return line;
}

/// "Write: rangescope profile --cpu 999Hz -- ./app", of a command of perf or py-spy; "" without
/// words that can be translated.
std::string translated_command(const std::string& name, const Words& words) {
  for (const auto& [what, command, with_process, with_program] : base::rows<4>(rangescope_peers)) {
    if (what != "command" || command != name)
      continue;
    const auto line = read_peers_line(words);
    if (!line)
      return {};
    const std::string start = "Write: rangescope ";
    const bool is_dump = with_program.empty();
    const bool has_process = is_whole_number(line->pid);
    if (has_process && is_dump)
      return start + filled(with_process, line->pid);
    if (has_process)
      return start + filled(with_process, line->pid) + line->options;
    if (line->program.empty() || is_dump)
      return {};
    const std::string program = base::printable(base::shell_quote(line->program));
    return start + std::string(with_program) + line->options + " -- " + program;
  }
  return {};
}

}  // namespace

std::string hint_for_peers_option(std::string_view option,
                                  const std::vector<std::string>& line,
                                  const std::function<bool(const std::string&)>& has_option) {
  for (const auto& [what, name, hint, needed] : base::rows<4>(rangescope_peers)) {
    if (what != "peer" || name != option)
      continue;
    const bool is_declared = needed.empty() || has_option(std::string(needed));
    if (is_declared)
      return filled(hint, value_of_option(option, line));
  }
  return {};
}

std::string hint_for_peers_command(const std::string& name, const std::vector<std::string>& words) {
  std::string hint = translated_command(name, words);
  if (!hint.empty())
    return hint;
  for (const auto& [what, word, ours] : base::rows<3>(rangescope_peers)) {
    if (name != word)
      continue;
    if (what == "moved")
      hint = "Write: rangescope " + std::string(ours);
    if (what == "tool")
      hint = "did you mean '" + std::string(ours) + "'?";
  }
  return hint;
}

}  // namespace rangescope::cli
