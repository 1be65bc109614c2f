// What a subcommand declares its options with. Their help is in arguments.tsv; of those that are
// keys of the configuration too, text, limits and choices are the key's (config/keys.tsv).
//
// It hands all to CLI11, whose headers take five seconds to compile: only arguments.cpp and app.cpp
// include them. Methods are named as CLI11 names them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace rangescope::config {
struct Key;
}

namespace rangescope::cli {

/// Of a command, or of one of its words ("runs list"); of "" what several have.
struct CommandHelp {
  std::string_view summary;  ///< one line, for the list of commands
  std::string_view group;    ///< its title there
  std::string details;       ///< paragraphs and examples, plain text, below the options
  /// `show [SECTION]`, and what it does
  std::vector<std::pair<std::string_view, std::string_view>> verbs;
  std::vector<std::string_view> mainly;  ///< options that --help shows; empty: all
  std::map<std::string_view, std::pair<std::string_view, std::string_view>>
      options;  ///< value and text by name
};
[[nodiscard]] const CommandHelp& help_for(const std::string& command);

/// Largest count that an option takes; between(0, kMost) refuses what is negative.
inline constexpr int kMost = 1'000'000'000;
inline constexpr std::int64_t kLongest = 366 * 86'400'000'000'000;  ///< nanoseconds of a duration

/// One option or free word: a handle on what was just declared, to declare more of it.
class Argument {
 public:
  explicit Argument(CLI::Option* option) : option_(option) {}
  Argument type_name(const std::string& name) const;  ///< what help prints for the value
  Argument group(const std::string& title) const;     ///< of help
  Argument required() const;
  Argument expected(int from, int to) const;
  Argument repeated() const;  ///< one value each time it is given, and all of them count
  Argument one_of(std::vector<std::string> values) const;  ///< help prints them as type_name
  Argument between(double low, double high) const;         ///< both are allowed
  Argument hidden() const;                                 ///< taken, and not in help

 private:
  CLI::Option* option_;
};

/// Where the options of a command, or of one of its words (`runs prune`), are declared: a handle
/// too.
class Arguments {
 public:
  Arguments() = default;
  explicit Arguments(CLI::App* app) : app_(app) {}
  /// The same; what it declares is under this title of help.
  [[nodiscard]] Arguments under(const std::string& title) const;

  /// `names`: "-o,--output", or without dashes a free word. arguments.cpp lists the types of
  /// values.
  template <class Value>
  Argument add_option(const std::string& names, Value& into) const;
  Argument add_option(const std::string& names, std::function<void(const std::string&)> take) const;
  /// A number from 0 on.
  template <class Value>
  Argument add_count(const std::string& names, Value& into) const {
    return add_option(names, into).type_name("N").between(0, kMost);
  }
  /// Takes all values of a repeated option at once.
  Argument add_option(const std::string& names,
                      std::function<void(const std::vector<std::string>&)> take) const;
  /// An option or flag that is declared as the key has it; its values are asked for with results().
  void add_key(const config::Key& key, const std::string& group) const;
  /// `10`, `10s`, `100ms`; nanoseconds from `low` to `high`.
  Argument add_duration(const std::string& names,
                        std::function<void(std::int64_t)> take,
                        std::int64_t low,
                        std::int64_t high) const;
  template <class Into>
  Argument add_duration(const std::string& names,
                        Into& into,
                        std::int64_t low,
                        std::int64_t high) const {
    return add_duration(
        names, [&into](std::int64_t ns) { into = std::chrono::nanoseconds(ns); }, low, high);
  }
  Argument add_flag(const std::string& names, bool& into) const;
  Argument add_flag(const std::string& names, std::function<void()> take) const;

  /// An option that takes one of these words, each of which means a value.
  template <class Value>
  Argument add_choice(const std::string& name,
                      Value& into,
                      const std::vector<std::pair<std::string, Value>>& choices) const {
    std::vector<std::string> words(choices.size());
    for (std::size_t i = 0; i < choices.size(); ++i)
      words[i] = choices[i].first;
    return add_choice(name, words, [&into, choices](std::size_t i) { into = choices[i].second; });
  }
  Argument add_choice(const std::string& name,
                      const std::vector<std::string>& words,
                      std::function<void(std::size_t)> take) const;

  /// Called when all options have their values.
  void when_parsed(std::function<void()> call) const;
  /// No word of add_subcommand() need be given.
  void optional_subcommand() const;
  /// A word that has options of its own; one such word must be given.
  [[nodiscard]] Arguments add_subcommand(const std::string& name) const;
  /// The first undeclared word, and all words behind it, are left over.
  void prefix_command() const;

  // After parsing
  [[nodiscard]] bool parsed() const;
  [[nodiscard]] bool declares(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> results(
      const std::string& name) const;  ///< as written, in their order
  [[nodiscard]] std::vector<std::string> remaining() const;
  /// As if these had been given for the option. kConfig with `where` for what it does not take.
  [[nodiscard]] base::Result<void> set(const std::string& name,
                                       const std::vector<std::string>& values,
                                       const std::string& where) const;
  [[nodiscard]] const CLI::App& app() const { return *app_; }

 private:
  /// What was just declared, under the title.
  [[nodiscard]] Argument declared(CLI::Option* option) const;
  CLI::App* app_ = nullptr;
  std::string title_;
};

/// A value that an option does not take: thrown from CLI11's callbacks only, and answered with 64.
[[noreturn]] void refuse(const std::string& option,
                         const std::string& what,
                         const std::string& hint);

}  // namespace rangescope::cli
