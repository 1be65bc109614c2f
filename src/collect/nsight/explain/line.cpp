#include "collect/nsight/explain/line.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace rangescope::collect::command {
namespace {

constexpr std::string_view kVerbs[] = {"profile",
                                       "launch",
                                       "start",
                                       "stop",
                                       "cancel",
                                       "stats",
                                       "status",
                                       "shutdown",
                                       "sessions",
                                       "export",
                                       "analyze",
                                       "nvprof",
                                       "recipe",
                                       "service"};

/// The full name of a long option: itself, or the only option that starts with it.
std::string resolve(std::string_view tool,
                    const std::string& written,
                    const Abilities* can,
                    bool& is_known) {
  is_known = true;
  if (!can)
    return written;
  if (can->has(written) || is_hidden_option(tool, written, can->version))
    return written;
  std::string match;
  for (const auto& [name, values] : can->options) {
    if (!name.starts_with(written))
      continue;
    is_known = match.empty();
    if (!is_known)
      return written;  // ambiguous
    match = name;
  }
  is_known = !match.empty();
  if (!is_known)
    return written;
  return match;
}

class Parser {
 public:
  Parser(const std::vector<Word>& words, std::size_t first, const Abilities* can, CommandLine& line)
      : words_(words), next_(first), can_(can), line_(line) {}

  void run() {
    while (next_ < words_.size()) {
      const Word& word = words_[next_];
      if (word.text == "--") {
        line_.double_dash = true;
        ++next_;
        break;
      }
      if (word.text.starts_with("--")) {
        long_option(word);
      } else if (word.text.size() > 1 && word.text.front() == '-') {
        short_option(word);
      } else {
        break;
      }
    }
    line_.program_at = next_;
    line_.program.assign(words_.begin() + static_cast<std::ptrdiff_t>(next_), words_.end());
  }

 private:
  void long_option(const Word& word) {
    Argument argument;
    argument.place = next_++;
    const auto equal = word.text.find('=');
    argument.written = word.text.substr(0, equal);
    argument.name = resolve(line_.tool, argument.written, can_, argument.is_known);
    if (equal != std::string::npos) {
      argument.joined = true;
      argument.value = literal(word.text.substr(equal + 1));
      if (word.expands)
        *argument.value = {argument.value->text, word.raw.substr(word.raw.find('=') + 1), true};
    } else {
      take_value(argument);
    }
    line_.arguments.push_back(std::move(argument));
  }

  void short_option(const Word& word) {
    Argument argument;
    argument.place = next_++;
    argument.written = word.text.substr(0, 2);
    argument.name = long_name(line_.table(), word.text[1]);
    if (argument.name.empty()) {
      argument.name = argument.written = word.text;
      argument.is_known = false;
    } else if (word.text.size() > 2) {
      argument.joined = true;
      argument.value = literal(word.text.substr(2));
      if (word.expands)
        *argument.value = {argument.value->text, word.raw.substr(2), true};
    } else {
      take_value(argument);
    }
    line_.arguments.push_back(std::move(argument));
  }

  void take_value(Argument& argument) {
    const Takes kind = takes(line_.table(), argument.name, can_);
    if (kind == Takes::kNothing || next_ >= words_.size())
      return;
    if (kind == Takes::kUnknown) {
      // The next word counts as a value if it can hardly be the program and more words follow.
      const std::string& next = words_[next_].text;
      const bool may_be_program = next.find('/') != std::string::npos || next_ + 1 >= words_.size();
      if (next.starts_with("-") || may_be_program)
        return;
    }
    argument.value = words_[next_++];
  }

  const std::vector<Word>& words_;
  std::size_t next_;
  const Abilities* can_;
  CommandLine& line_;
};

}  // namespace

std::string Argument::shown() const {
  if (!value)
    return written;
  if (!joined)
    return written + " " + value->shown();
  const std::string_view separator = written.starts_with("--") ? "=" : "";
  return written + std::string(separator) + value->shown();
}

const Argument* CommandLine::find(std::string_view name) const {
  const auto argument = std::ranges::find(arguments, name, &Argument::name);
  if (argument == arguments.end())
    return nullptr;
  return &*argument;
}

std::vector<std::string> CommandLine::values(std::string_view name) const {
  std::vector<std::string> values;
  for (const Argument& argument : arguments)
    if (argument.name == name && argument.value)
      values.push_back(argument.value->text);
  return values;
}

std::string CommandLine::value(std::string_view name) const {
  const std::vector<std::string> occurrences = values(name);
  if (occurrences.empty())
    return {};
  return occurrences.back();
}

void CommandLine::set(const std::string& name, const std::string& value) {
  if (value.empty())
    return remove(name);
  const auto first = std::ranges::find(arguments, name, &Argument::name);
  if (first == arguments.end()) {
    add(name, value);
    return;
  }
  first->value = literal(value);
  const auto is_repeated = [&](const Argument& argument) { return argument.name == name; };
  arguments.erase(std::remove_if(first + 1, arguments.end(), is_repeated), arguments.end());
}

void CommandLine::add(const std::string& name, std::optional<std::string> value) {
  Argument argument;
  argument.name = argument.written = name;
  argument.joined = tool == "nsys";  // its manual asks for =
  if (value)
    argument.value = literal(*value);
  // After the last one of that name, so that includes stay together.
  auto place = arguments.end();
  for (auto it = arguments.begin(); it != arguments.end(); ++it)
    if (it->name == name)
      place = it + 1;
  arguments.insert(place, std::move(argument));
}

void CommandLine::remove(std::string_view name) {
  std::erase_if(arguments, [&](const Argument& argument) { return argument.name == name; });
}

std::string CommandLine::text() const {
  std::vector<std::string> words;
  for (const Word& word : before)
    words.push_back(word.raw);
  words.push_back(executable.shown());
  if (!verb.empty())
    words.push_back(verb);
  for (const Argument& argument : arguments)
    words.push_back(argument.shown());
  if (double_dash)
    words.emplace_back("--");
  for (const Word& word : program)
    words.push_back(word.raw);
  std::string text = base::join(words, " ");
  if (!after.empty()) {
    text += next_line ? '\n' : ' ';
    text += after;
  }
  return text;
}

std::string tool_of(const std::vector<Word>& words, std::size_t* place) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view name = base::file_name(words[i].text);
    const bool is_ncu = name == "ncu" || name == "nv-nsight-cu-cli";
    if (!is_ncu && name != "nsys")
      continue;
    if (place)
      *place = i;
    return is_ncu ? "ncu" : "nsys";
  }
  return {};
}

base::Result<CommandLine> parse_line(const ShellLine& shell, const Abilities* can) {
  CommandLine line;
  std::size_t next = 0;
  line.tool = tool_of(shell.words, &next);
  if (line.tool.empty())
    return base::fail(base::Code::kUsage,
                      "there is no ncu and no nsys in this command line",
                      {},
                      "Give the whole line: rangescope doctor --explain 'ncu --nvtx ... ./app'");
  line.before.assign(shell.words.begin(), shell.words.begin() + static_cast<std::ptrdiff_t>(next));
  line.executable = shell.words[next++];
  line.after = base::trim(shell.rest);
  line.next_line = shell.rest.starts_with('\n') && !line.after.empty();
  if (line.tool == "nsys" && next < shell.words.size()) {
    const std::string& word = shell.words[next].text;
    const bool is_verb = std::ranges::find(kVerbs, word) != std::end(kVerbs);
    if (is_verb) {
      line.verb = word;
      ++next;
    }
  }
  const Abilities* can_record = nullptr;
  if (line.records())
    can_record = can;
  Parser(shell.words, next, can_record, line).run();
  return line;
}

}  // namespace rangescope::collect::command
