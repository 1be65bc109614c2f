#include "cli/app.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>

#include "base/embedded.hpp"
#include "base/fs.hpp"
#include "base/progress.hpp"
#include "base/removed.hpp"
#include "base/text.hpp"
#include "cli/peers.hpp"
#include "cli/version.hpp"
#include "config/metric_groups.hpp"
#include "config/override.hpp"
#include "model/measure.hpp"
#include "report/sink.hpp"

RANGESCOPE_EMBED(app, RANGESCOPE_TSV);

namespace rangescope::cli {
namespace {

std::vector<std::string> g_arguments;

// Names that an unknown option may have meant: those of the command, in full.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames())
      names.push_back("--" + name);
    for (const std::string& name : option->get_snames())
      names.push_back("-" + name);
  }
  return names;
}

const CLI::App* deepest(const CLI::App* app) {
  while (!app->get_subcommands().empty())
    app = app->get_subcommands().front();
  return app;
}

std::vector<std::string> children(const CLI::App* app) {
  std::vector<std::string> names;
  for (const CLI::App* child : app->get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(child->get_name());
  return names;
}

/// Does the command, or one of its verbs, have this option?
bool has_option(const CLI::App& app, const std::string& name) {
  if (app.get_option_no_throw(name) != nullptr)
    return true;
  const auto verbs = app.get_subcommands([](const CLI::App*) { return true; });
  return std::ranges::any_of(verbs, [&](const CLI::App* verb) { return has_option(*verb, name); });
}

/// `word` with the present name of the option that it gives, where the command has that one.
std::string modern(const CLI::App& app, std::string_view command, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  for (const auto& [what, old, now, only] : base::rows<4>(rangescope_app)) {
    if (what != "option" || name != old || !(only.empty() || only == command))
      continue;
    if (has_option(app, std::string(now)))
      return std::string(now) + word.substr(name.size());
  }
  return word;
}

/// Where the program begins on a line without `--`: at the first word that is no option, no
/// option's value and no override. The number of words where there is none.
std::size_t program_begin(const CLI::App& app,
                          std::string_view command,
                          const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!word.starts_with("-") || word == "-") {
      if (config::looks_like_override(word))
        continue;
      return i;
    }
    const CLI::Option* option = app.get_option_no_throw(modern(app, command, word));
    if (option != nullptr && option->get_items_expected_max() > 0)
      ++i;
  }
  return words.size();
}

/// A command line in two: rangescope's words, and the program with its arguments.
struct CommandLine {
  std::vector<std::string> words, program;
  bool separated = false;  ///< a program was given
};

/// Can it be a program: does a shell find it, or is it a script of Python?
bool can_run(const std::string& word) {
  std::error_code ignored;
  if (base::find_on_path(word))
    return true;
  return word.ends_with(".py") && std::filesystem::exists(word, ignored);
}

using Words = std::vector<std::string>;

/// Where the program begins, or the `--` before it. A `--` behind the program is one of its
/// arguments, as in `cargo run -- x`. But `profile decode -- ./app` is a mistake in rangescope's
/// own words: `decode` is no program, and `./app` is one.
Words::const_iterator find_program(const CLI::App& app,
                                   const Subcommand& command,
                                   const Words& line) {
  const auto separator = std::find(line.begin(), line.end(), "--");
  const bool needs_separator = command.needs_separator() || app.get_prefix_command();
  if (!command.takes_program() || needs_separator)
    return separator;
  const std::size_t free_words = program_begin(app, command.name(), line);
  const auto free_word = line.begin() + static_cast<std::ptrdiff_t>(free_words);
  if (free_word >= separator)
    return separator;
  const bool is_mistake =
      std::distance(separator, line.end()) > 1 && !can_run(*free_word) && can_run(separator[1]);
  return is_mistake ? separator : free_word;
}

/// `line` has the words behind the command.
CommandLine split_at_program(const CLI::App& app, const Subcommand& command, const Words& line) {
  CommandLine out;
  auto program = find_program(app, command, line);
  out.words.assign(line.begin(), program);
  out.separated = program != line.end();
  if (out.separated && *program == "--")
    ++program;
  out.program.assign(program, line.end());
  return out;
}

/// Every subcommand, in the order in which help lists them.
std::vector<std::unique_ptr<Subcommand>> subcommands() {
  std::vector<std::unique_ptr<Subcommand>> all;
  constexpr MakeSubcommand* kMakers[] = {make_profile,
                                         make_attach,
                                         make_ctl,
                                         make_report,
                                         make_query,
                                         make_export,
                                         make_compare,
                                         make_gate,
                                         make_runs,
                                         make_config,
                                         make_metrics,
                                         make_doctor,
                                         make_mcp,
                                         make_help};
  for (MakeSubcommand* make : kMakers)
    all.push_back(make());
  return all;
}

/// The CLI11 application of a subcommand with its own options and those that all have (-v, -q, -h).
struct Parsed {
  std::shared_ptr<CLI::App> app;
  int verbose = 0;
  bool quiet = false;
  bool help = false;
  bool help_all = false;
};

base::Level log_level(const Parsed& parsed) {
  if (parsed.quiet)
    return base::Level::kWarning;
  if (parsed.verbose > 1)
    return base::Level::kDebug;
  return parsed.verbose > 0 ? base::Level::kDetail : base::Level::kInfo;
}

std::unique_ptr<Parsed> declare(Subcommand& command) {
  auto parsed = std::make_unique<Parsed>();
  parsed->app = std::make_shared<CLI::App>(std::string(command.help().summary),
                                           "rangescope " + std::string(command.name()));
  CLI::App& app = *parsed->app;
  app.set_help_flag();
  app.fallthrough(false);
  command.options(Arguments(&app));
  const auto common = [&](CLI::App& on) {
    on.set_help_flag();
    on.add_flag("-v,--verbose", parsed->verbose, "Print more; twice for internal details")
        ->group("Output");
    on.add_flag("-q,--quiet", parsed->quiet, "Print only warnings and errors")->group("Output");
    on.add_flag("-h,--help", parsed->help, "Show this help")->group("Output");
    on.add_flag("--help-all", parsed->help_all, "Show this help with every option")
        ->group("Output");
  };
  common(app);
  for (CLI::App* child : app.get_subcommands([](const CLI::App*) { return true; }))
    common(*child);
  return parsed;
}

std::vector<std::string> shipped_metrics() {
  std::vector<std::string> names;
  if (const auto shipped = config::shipped_groups())
    for (const auto& group : *shipped)
      names.push_back(group.name);
  return names;
}

/// The words of "table|json"; none of a type that is no list of words.
std::vector<std::string> values_of(std::string_view type) {
  const bool words =
      type.find('|') != std::string::npos && std::all_of(type.begin(), type.end(), [](char c) {
        return c == '|' || c == '-' || c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
      });
  if (!words)
    return {};
  const auto parts = base::split(type, '|');
  return {parts.begin(), parts.end()};
}

/// "PATH" of CLI11's "PATH:FILE"; a colon in brackets belongs to the name: "[HOST:]PORT".
std::string value_name_of(const std::string& type) {
  std::size_t brackets_end = type.find(']');
  if (brackets_end == std::string::npos)
    brackets_end = 0;
  return type.substr(0, type.find(':', brackets_end));
}

HelpOption described(const CLI::Option& option) {
  HelpOption out;
  for (const std::string& name : option.get_snames())
    out.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames())
    out.names.push_back("--" + name);
  const std::string type = option.get_type_name();
  if (out.names.empty()) {
    out.value = option.get_name(true);
    out.run = type.starts_with("RUN");
  } else if (option.get_items_expected_max() > 0) {
    out.value = value_name_of(type);
  }
  std::string name;
  if (!out.names.empty())
    name = out.names.back();
  out.list = name == "--metrics" || name == "--columns";
  if (name == "--metrics")
    out.values = shipped_metrics();
  else if (name == "--columns" || name == "--sort")
    out.values = model::measure_tags();
  else
    out.values = values_of(type);
  out.text = option.get_description();
  out.group = option.get_group();
  out.required = option.get_required();
  out.several = option.get_items_expected_max() > 1;
  return out;
}

void describe(const CLI::App& app, HelpCommand& into) {
  for (const CLI::Option* option : app.get_options())
    into.options.push_back(described(*option));
  for (const CLI::App* child : app.get_subcommands([](const CLI::App*) { return true; })) {
    HelpCommand& word = into.words.emplace_back();
    word.name = child->get_name();
    word.summary = child->get_description();
    describe(*child, word);
  }
}

HelpCommand help_of(const Subcommand& command, const CLI::App& app) {
  HelpCommand out;
  out.name = command.name();
  out.summary = command.help().summary;
  out.details = command.help().details;
  out.group = command.help().group;
  for (const auto& [written, summary] : command.help().verbs)
    out.verbs.push_back({std::string(written), std::string(summary)});
  out.mainly.assign(command.help().mainly.begin(), command.help().mainly.end());
  out.program = command.takes_program();
  describe(app, out);
  return out;
}

/// The page of the word that was written, `runs prune`, where the command's words have options.
HelpCommand page_of(const Subcommand& command, const CLI::App& app) {
  HelpCommand page = help_of(command, app);
  const auto word = std::ranges::find(page.words, deepest(&app)->get_name(), &HelpCommand::name);
  if (word == page.words.end())
    return page;
  return word_of(page, *word);
}

base::Error unknown_command(const std::string& name, const Words& words) {
  std::vector<std::string> known;
  for (const auto& command : subcommands())
    known.emplace_back(command->name());
  base::Error error{
      base::Code::kUsage, "there is no command '" + base::printable(name) + "'", {}, {}};
  error.hint = hint_for_peers_command(name, words);
  if (error.hint.empty())
    error.hint = base::removal_hint("rangescope " + name);
  if (error.hint.empty())
    error.hint = base::did_you_mean(name, known);
  if (error.hint.empty())
    error.hint = "To profile a program: rangescope profile -- " + base::shell_quote(name) +
                 " ...; all commands: rangescope help";
  return error;
}

/// The exit code of a command's result; prints its failure.
int code_of(const base::Result<int>& done) {
  if (!done)
    return say(done.error());
  return *done;
}

/// `code`, unless what was printed did not reach standard output (a full disk).
int after_printing(int code) {
  if ((std::fflush(stdout) == 0 && std::ferror(stdout) == 0) || code != 0)
    return code;
  return say({base::Code::kIo,
              std::string("writing failed: ") + std::strerror(errno),
              "standard output",
              {}});
}

/// What was wrong with the words, and how they are written right.
base::Error wrong_words(const Subcommand& command,
                        const CLI::App& app,
                        const CLI::ParseError& error) {
  if (!app.remaining(true).empty())
    return unknown_argument(app, command.name());
  base::Error wrong{base::Code::kUsage, error.what(), {}, {}};
  wrong.hint = "See rangescope help " + std::string(command.name());
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    const HelpCommand page = page_of(command, app);
    const auto verbs = children(deepest(&app));
    if (!verbs.empty()) {
      wrong.what = "missing: verb";
      wrong.hint = "Write one of " + base::join(verbs, ", ");
      return wrong;
    }
    if (page.words.empty())
      wrong.hint = "Write: " + usage(page, page.name);
    const auto name_end = wrong.what.find(" is required");
    if (name_end != std::string::npos)
      wrong.what = "missing: " + wrong.what.substr(0, name_end);
  }
  // Words of validators carry their own hint behind a newline (refuse()).
  if (const auto line = wrong.what.find('\n'); line != std::string::npos) {
    wrong.hint = wrong.what.substr(line + 1);
    wrong.what.resize(line);
  }
  return wrong;
}

int parse_and_run(Subcommand& command, const Words& line) {
  const auto parsed = declare(command);
  auto [words, program, separated] = split_at_program(*parsed->app, command, line);
  if (!parsed->app->get_prefix_command())
    for (std::string& word : words)
      word = modern(*parsed->app, command.name(), word);
  g_arguments = words;
  g_arguments.insert(g_arguments.begin(), std::string(command.name()));
  if (separated)
    g_arguments.emplace_back("--");
  g_arguments.insert(g_arguments.end(), program.begin(), program.end());
  std::reverse(words.begin(), words.end());  // CLI11 takes its vector back to front
  try {
    parsed->app->parse(words);
  } catch (const CLI::ExtrasError&) {
    if (!parsed->help && !parsed->help_all)
      return say(unknown_argument(*parsed->app, command.name()));
  } catch (const CLI::ParseError& error) {
    const bool asks = parsed->help || parsed->help_all;
    if (!asks)
      return say(wrong_words(command, *parsed->app, error));
  }
  if (parsed->help || parsed->help_all) {
    print(help_text(page_of(command, *parsed->app), parsed->help_all));
    return after_printing(0);
  }
  base::set_log_level(log_level(*parsed));
  base::show_progress(!parsed->quiet);
  if (separated && !command.takes_program())
    return say({base::Code::kUsage,
                "rangescope " + std::string(command.name()) + " runs no program",
                "--",
                "Remove -- and what follows"});
  if (command.takes_program())
    command.set_program(std::move(program));
  return after_printing(code_of(command.run()));
}

}  // namespace

const std::vector<std::string>& arguments() {
  return g_arguments;
}
bool is_quiet() {
  return static_cast<int>(base::log_level()) < static_cast<int>(base::Level::kInfo);
}

base::Error unknown_argument(const CLI::App& app, std::string_view command) {
  const CLI::App* at = deepest(&app);
  const auto rest = app.remaining(true);
  std::string first = "?";
  if (!rest.empty())
    first = rest.front();
  const std::string see = "See rangescope help " + std::string(command);
  base::Error error{base::Code::kUsage, {}, {}, see};
  std::string nearest;
  if (first.starts_with("-")) {
    const std::string_view option = base::split(first, '=').front();
    error.what = "unknown option '" + base::printable(first) + "'";
    nearest = base::removal_hint(option);
    const auto has_option = [&](const std::string& name) {
      return at->get_option_no_throw(name) != nullptr;
    };
    if (nearest.empty())
      nearest = hint_for_peers_option(option, g_arguments, has_option);
    const bool is_letter = option.size() == 2;  // every other letter would be near
    if (nearest.empty() && !is_letter)
      nearest = base::did_you_mean(option, option_names(*at));
  } else if (const auto subcommands = children(at); !subcommands.empty()) {
    const std::string written = std::string(command) + " " + first;
    error.what = "there is no '" + base::printable(written) + "'";
    nearest = base::removal_hint(written);
    if (nearest.empty())
      nearest = base::did_you_mean(first, subcommands);
    if (nearest.empty())
      nearest = "Write one of " + base::join(subcommands, ", ");
  } else {
    error.what = "unexpected argument '" + base::printable(first) + "'";
  }
  if (!nearest.empty())
    error.hint = nearest;
  return error;
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

base::Result<int> put(const std::string& text) {
  report::DescriptorSink sink(STDOUT_FILENO, "standard output");
  sink.write(text);
  TRY(sink.finish());
  return 0;
}

base::Result<int> put_json(const nlohmann::json& json) {
  return put(base::printable_json(json.dump(2)) + "\n");
}
base::Result<int> put_json(const nlohmann::ordered_json& json) {
  return put(base::printable_json(json.dump(2)) + "\n");
}

int run_app(int argc, char** argv) {
  return run_app(argc, argv, subcommands());
}

int run_app(int argc, char** argv, const std::vector<std::unique_ptr<Subcommand>>& commands) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  try {
    if (words.empty()) {
      print(overview(help_of_all()));
      return base::exit_code(base::Code::kUsage);
    }
    std::string name = words.front();
    const bool is_version = name == "--version" || name == "-V";
    if (is_version && words.size() == 1)
      return code_of(put(version_text()));
    if (is_version && words.size() == 2 && words[1] == "--json")
      return code_of(put(version_json()));
    if (name == "--help" || name == "-h" || name == "--help-all")
      name = "help";
    words.erase(words.begin());
    for (const auto& command : commands) {
      if (command->name() == name)
        return parse_and_run(*command, words);
    }
    if (name.starts_with("-"))
      return say({base::Code::kUsage,
                  "unknown option '" + base::printable(name) + "'",
                  {},
                  "Options follow a command: rangescope help"});
    return say(unknown_command(name, words));
  } catch (const std::bad_alloc&) {
    return say({base::Code::kInternal,
                "out of memory",
                {},
                "Restrict what is read: --include, or fewer kernels"});
  } catch (const std::exception& error) {
    return say({base::Code::kInternal,
                std::string("a bug in rangescope: ") + error.what(),
                {},
                "Please report it with the command line"});
  }
}

std::vector<HelpCommand> help_of_all() {
  std::vector<HelpCommand> all;
  for (const auto& command : subcommands())
    all.push_back(help_of(*command, *declare(*command)->app));
  return all;
}

}  // namespace rangescope::cli
