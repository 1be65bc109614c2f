#include "collect/nsight/explain/line.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace rangescope::collect::command {
namespace {

constexpr std::string_view kVerbs[] = {"profile", "launch", "start",    "stop",     "cancel",
                                       "stats",   "status", "shutdown", "sessions", "export",
                                       "analyze", "nvprof", "recipe",   "service"};

/// The full name of a long option as written: itself, or the only option that begins so.
std::string resolve(std::string_view tool, const std::string& written, const Abilities* can,
                    bool& known) {
  known = true;
  if (!can) return written;
  if (can->has(written) || is_hidden_option(tool, written, can->version)) return written;
  std::string only;
  for (const auto& [name, values] : can->options) {
    if (!name.starts_with(written)) continue;
    known = only.empty();
    if (!known) return written;  // ambiguous
    only = name;
  }
  known = !only.empty();
  return known ? only : written;
}

class Parser {
 public:
  Parser(const std::vector<Word>& words, std::size_t at, const Abilities* can, CommandLine& line)
      : words_(words), at_(at), can_(can), line_(line) {}

  void run() {
    while (at_ < words_.size()) {
      const Word& word = words_[at_];
      if (word.text == "--") {
        line_.double_dash = true;
        ++at_;
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
    line_.program_at = at_;
    line_.program.assign(words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end());
  }

 private:
  void long_option(const Word& word) {
    Argument argument;
    argument.at = at_++;
    const auto equal = word.text.find('=');
    argument.written = word.text.substr(0, equal);
    argument.name = resolve(line_.tool, argument.written, can_, argument.known);
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
    argument.at = at_++;
    argument.written = word.text.substr(0, 2);
    argument.name = long_name(line_.table(), word.text[1]);
    if (argument.name.empty()) {
      argument.name = argument.written = word.text;
      argument.known = false;
    } else if (word.text.size() > 2) {
      argument.joined = true;
      argument.value = literal(word.text.substr(2));
      if (word.expands) *argument.value = {argument.value->text, word.raw.substr(2), true};
    } else {
      take_value(argument);
    }
    line_.arguments.push_back(std::move(argument));
  }

  void take_value(Argument& argument) {
    const Takes kind = takes(line_.table(), argument.name, can_);
    if (kind == Takes::kNothing || at_ >= words_.size()) return;
    if (kind == Takes::kUnknown) {
      // Nobody knows: a value where the next word can hardly be the program and more words follow.
      const std::string& next = words_[at_].text;
      if (next.starts_with("-") || next.find('/') != std::string::npos || at_ + 1 >= words_.size())
        return;
    }
    argument.value = words_[at_++];
  }

  const std::vector<Word>& words_;
  std::size_t at_;
  const Abilities* can_;
  CommandLine& line_;
};

}  // namespace

std::string Argument::shown() const {
  if (!value) return written;
  if (!joined) return written + " " + value->shown();
  return written + (written.starts_with("--") ? "=" : "") + value->shown();
}

const Argument* CommandLine::find(std::string_view name) const {
  const auto found = std::find_if(arguments.begin(), arguments.end(),
                                  [&](const Argument& each) { return each.name == name; });
  return found == arguments.end() ? nullptr : &*found;
}

std::vector<std::string> CommandLine::values(std::string_view name) const {
  std::vector<std::string> out;
  for (const Argument& each : arguments)
    if (each.name == name && each.value) out.push_back(each.value->text);
  return out;
}

std::string CommandLine::value(std::string_view name) const {
  const auto all = values(name);
  return all.empty() ? std::string{} : all.back();
}

void CommandLine::set(const std::string& name, const std::string& value) {
  if (value.empty()) return remove(name);
  const auto first = std::find_if(arguments.begin(), arguments.end(),
                                  [&](const Argument& each) { return each.name == name; });
  if (first == arguments.end()) {
    add(name, value);
    return;
  }
  first->value = literal(value);
  arguments.erase(std::remove_if(first + 1, arguments.end(),
                                 [&](const Argument& each) { return each.name == name; }),
                  arguments.end());
}

void CommandLine::add(const std::string& name, std::optional<std::string> value) {
  Argument argument;
  argument.name = argument.written = name;
  argument.joined = tool == "nsys";  // whose manual asks for =
  if (value) argument.value = literal(*value);
  // Behind the last of its kind, so that includes stay together.
  auto place = arguments.end();
  for (auto each = arguments.begin(); each != arguments.end(); ++each)
    if (each->name == name) place = each + 1;
  arguments.insert(place, std::move(argument));
}

void CommandLine::remove(std::string_view name) {
  std::erase_if(arguments, [&](const Argument& each) { return each.name == name; });
}

std::string CommandLine::text() const {
  std::string out;
  const auto put = [&](const std::string& word) { out += (out.empty() ? "" : " ") + word; };
  for (const Word& word : before) put(word.raw);
  put(executable.shown());
  if (!verb.empty()) put(verb);
  for (const Argument& argument : arguments) put(argument.shown());
  if (double_dash) put("--");
  for (const Word& word : program) put(word.raw);
  if (!after.empty()) out += (next_line ? "\n" : " ") + after;
  return out;
}

std::string tool_of(const std::vector<Word>& words, std::size_t* at) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view name = base::file_name(words[i].text);
    const bool ncu = name == "ncu" || name == "nv-nsight-cu-cli";
    if (!ncu && name != "nsys") continue;
    if (at) *at = i;
    return ncu ? "ncu" : "nsys";
  }
  return {};
}

base::Result<CommandLine> parse_line(const ShellLine& shell, const Abilities* can) {
  CommandLine line;
  std::size_t at = 0;
  line.tool = tool_of(shell.words, &at);
  if (line.tool.empty())
    return base::fail(base::Code::kUsage, "there is no ncu and no nsys in this command line", {},
                      "Give the whole line: rangescope doctor --explain 'ncu --nvtx ... ./app'");
  line.before.assign(shell.words.begin(), shell.words.begin() + static_cast<std::ptrdiff_t>(at));
  line.executable = shell.words[at++];
  line.after = base::trim(shell.rest);
  line.next_line = shell.rest.starts_with('\n') && !line.after.empty();
  if (line.tool == "nsys" && at < shell.words.size() &&
      std::find(std::begin(kVerbs), std::end(kVerbs), shell.words[at].text) != std::end(kVerbs))
    line.verb = shell.words[at++].text;
  Parser(shell.words, at, line.records() ? can : nullptr, line).run();
  return line;
}

}  // namespace rangescope::collect::command
