#include "cli/arguments.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <optional>

#include "base/embedded.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "config/schema.hpp"

RANGESCOPE_EMBED(arguments, RANGESCOPE_TSV);

namespace rangescope::cli {
namespace {

/// What a validator of CLI11 answers; app.cpp takes the hint from behind the line break.
std::string refusal(const std::string& why, const std::string& text, const std::string& hint) {
  return "'" + base::printable(text) + "' " + why + "\n" + hint;
}

std::map<std::string_view, CommandHelp> read_help() {
  std::map<std::string_view, CommandHelp> all;
  CommandHelp* into = nullptr;
  for (const auto& [name, value, text] : base::rows<3>(rangescope_arguments)) {
    if (name.starts_with('[')) {
      into = &all[name.substr(1, name.size() - 2)];
      into->summary = value;
      into->group = text;
    } else if (name.empty()) {
      if (!into->details.empty())
        into->details += '\n';
      into->details += value;
    } else if (name == "word") {
      into->verbs.emplace_back(value, text);
    } else if (name == "mainly") {
      into->mainly = base::split(value, ' ');
    } else {
      into->options[name] = {value, text};
    }
  }
  return all;
}

/// "runs list"
std::string command_of(const CLI::App& app) {
  std::string name = app.get_name();
  if (const CLI::App* parent = app.get_parent())
    name = parent->get_name() + " " + name;
  return name.substr(name.find(' ') + 1);
}

/// "runs" of "runs list"; "" of "runs".
std::string command_around(const std::string& command) {
  const auto space = command.find(' ');
  if (space == std::string::npos)
    return {};
  return command.substr(0, space);
}

/// As help and messages call it: "--output" of an option, "input" of a free word.
std::string full_name(const CLI::Option& option) {
  const auto& long_names = option.get_lnames();
  if (long_names.empty())
    return option.get_name(true);
  return "--" + long_names.front();
}

std::string text_of(const config::Key& key) {
  std::string text(key.about);
  if (text.find(':') > text.find(' '))  // "auto: ..." begins with a value
    text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

/// What help prints for the value of a key's option.
std::string value_name(const config::Key& key) {
  switch (key.type) {
    case config::KeyType::kInt: return "N";
    case config::KeyType::kDuration: return "TIME";
    case config::KeyType::kSize: return "SIZE";
    case config::KeyType::kList: return "NAME,...";
    case config::KeyType::kExpressions: return "RANGE";
    default: break;
  }
  if (!key.allowed.empty())
    return std::string(key.allowed);
  return "TEXT";
}

}  // namespace

const CommandHelp& help_for(const std::string& command) {
  static const auto help_by_command = read_help();
  return help_by_command.at(command);
}

Argument Argument::type_name(const std::string& name) const {
  return Argument(option_->type_name(name));
}
Argument Argument::group(const std::string& title) const {
  return Argument(option_->group(title));
}
Argument Argument::required() const {
  return Argument(option_->required());
}
Argument Argument::expected(int from, int to) const {
  return Argument(option_->expected(from, to));
}
Argument Argument::repeated() const {
  return Argument(option_->take_all()->allow_extra_args(false));
}

Argument Argument::one_of(std::vector<std::string> values) const {
  option_->type_name(base::join(values, "|"));
  const auto look = [values = std::move(values)](const std::string& text) -> std::string {
    if (std::find(values.begin(), values.end(), text) != values.end())
      return {};
    std::string hint = base::did_you_mean(text, values);
    if (hint.empty())
      hint = "Write one of " + base::join(values, ", ");
    return refusal("is not one of its values", text, hint);
  };
  return Argument(option_->check(look));
}

Argument Argument::between(double low, double high) const {
  const auto look = [low, high](const std::string& text) -> std::string {
    const std::string hint = fmt::format("Write a number from {} to {}", low, high);
    double value = 0;
    if (!CLI::detail::lexical_cast(text, value))
      return refusal("is not a number", text, hint);
    if (value >= low && value <= high)
      return {};
    return refusal("is out of range", text, hint);
  };
  return Argument(option_->check(look));
}

Argument Argument::hidden() const {
  return Argument(option_->group(""));
}

Arguments Arguments::under(const std::string& title) const {
  Arguments same = *this;
  same.title_ = title;
  return same;
}
Argument Arguments::declared(CLI::Option* option) const {
  if (!title_.empty())
    option->group(title_);
  const Argument made(option);
  const std::string name = full_name(*option);
  for (std::string scope = command_of(*app_);; scope = command_around(scope)) {
    const auto& options = help_for(scope).options;
    if (const auto found = options.find(name); found != options.end()) {
      const auto& [value, description] = found->second;
      option->description(std::string(description));
      if (!value.empty())
        made.type_name(std::string(value));
      return made;
    }
    if (scope.empty())
      break;
  }
  const config::Key* key = config::find_flag(name);
  if (key == nullptr)
    return made;
  option->description(text_of(*key));
  if (option->get_items_expected_max() == 0)
    return made;
  if (key->type == config::KeyType::kChoice) {
    const auto choices = base::split(key->allowed, '|');
    return made.one_of({choices.begin(), choices.end()});
  }
  made.type_name(value_name(*key));
  if (key->type == config::KeyType::kInt)
    return made.between(key->min, key->max);
  return made;
}

template <class Value>
Argument Arguments::add_option(const std::string& names, Value& into) const {
  return declared(app_->add_option(names, into));
}
template Argument Arguments::add_option(const std::string&, std::string&) const;
template Argument Arguments::add_option(const std::string&, std::vector<std::string>&) const;
template Argument Arguments::add_option(const std::string&, int&) const;
template Argument Arguments::add_option(const std::string&, std::uint32_t&) const;
template Argument Arguments::add_option(const std::string&, std::size_t&) const;
template Argument Arguments::add_option(const std::string&, std::optional<std::size_t>&) const;
template Argument Arguments::add_option(const std::string&, double&) const;

Argument Arguments::add_option(const std::string& names,
                               std::function<void(const std::string&)> take) const {
  return declared(app_->add_option_function<std::string>(names, take));
}
Argument Arguments::add_option(const std::string& names,
                               std::function<void(const std::vector<std::string>&)> take) const {
  return declared(app_->add_option_function<std::vector<std::string>>(names, take));
}
void Arguments::add_key(const config::Key& key, const std::string& group) const {
  const std::string flag(key.flag), text = text_of(key) + " [" + std::string(key.path) + "]";
  if (key.type == config::KeyType::kBool)
    app_->add_flag(flag + ",!--no-" + flag.substr(2), text)->group(group);
  else
    Argument(app_->add_option(flag, text)).type_name(value_name(key)).repeated().group(group);
}
Argument Arguments::add_duration(const std::string& names,
                                 std::function<void(std::int64_t)> take,
                                 std::int64_t low,
                                 std::int64_t high) const {
  auto take_duration = [names, low, high, take = std::move(take)](const std::string& text) {
    const auto ns = config::parse_duration(text);
    if (!ns || *ns < low || *ns > high)
      refuse(names,
             "'" + base::printable(text) + "' is not a time from " +
                 base::format_ns(static_cast<double>(low)) + " to " +
                 base::format_ns(static_cast<double>(high)),
             "Write a number with a unit, 100ms or 30s or 5m; without one it is in seconds");
    take(*ns);
  };
  return add_option(names, std::move(take_duration)).type_name("TIME");
}
Argument Arguments::add_flag(const std::string& names, bool& into) const {
  return declared(app_->add_flag(names, into));
}
Argument Arguments::add_flag(const std::string& names, std::function<void()> take) const {
  return declared(
      app_->add_flag_function(names, [take = std::move(take)](std::int64_t) { take(); }));
}

Argument Arguments::add_choice(const std::string& name,
                               const std::vector<std::string>& words,
                               std::function<void(std::size_t)> take) const {
  auto take_index = [words, take = std::move(take)](const std::string& word) {
    const auto place = std::ranges::find(words, word);
    if (place != words.end())
      take(static_cast<std::size_t>(place - words.begin()));
  };
  return add_option(name, std::move(take_index)).one_of(words);
}

Arguments Arguments::add_subcommand(const std::string& name) const {
  app_->require_subcommand(1);
  return Arguments(
      app_->add_subcommand(name, std::string(help_for(command_of(*app_) + " " + name).summary)));
}
void Arguments::when_parsed(std::function<void()> call) const {
  app_->parse_complete_callback(std::move(call));
}
void Arguments::optional_subcommand() const {
  app_->require_subcommand(0, 1);
}
void Arguments::prefix_command() const {
  app_->prefix_command();
}

bool Arguments::parsed() const {
  return app_->parsed();
}
bool Arguments::declares(const std::string& name) const {
  return app_->get_option_no_throw(name) != nullptr;
}
std::vector<std::string> Arguments::results(const std::string& name) const {
  if (!app_)
    return {};
  const CLI::Option* option = app_->get_option_no_throw(name);
  if (!option)
    return {};
  return option->results();
}
base::Result<void> Arguments::set(const std::string& name,
                                  const std::vector<std::string>& values,
                                  const std::string& where) const {
  CLI::Option* option = app_->get_option_no_throw(name);
  try {
    option->clear();
    if (values.empty())
      return {};
    for (const std::string& value : values)
      option->add_result(value);
    option->run_callback();
  } catch (const CLI::ParseError& error) {
    const std::string text = error.what();  // refuse() puts the hint behind a newline
    const auto first_line_end = text.find('\n');
    std::string hint;
    if (first_line_end != std::string::npos)
      hint = text.substr(first_line_end + 1);
    return base::fail(base::Code::kConfig, text.substr(0, first_line_end), where, std::move(hint));
  }
  return {};
}
std::vector<std::string> Arguments::remaining() const {
  return app_->remaining();
}

void refuse(const std::string& option, const std::string& what, const std::string& hint) {
  throw CLI::ValidationError(option, what + "\n" + hint);
}

}  // namespace rangescope::cli
