#include "cli/app.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>

#include "base/embedded.hpp"
#include "base/progress.hpp"
#include "base/removed.hpp"
#include "base/text.hpp"
#include "cli/version.hpp"
#include "config/metric_groups.hpp"
#include "config/override.hpp"
#include "report/sink.hpp"

RANGESCOPE_EMBED(app, RANGESCOPE_TSV);

namespace rangescope::cli {
namespace {

std::vector<std::string> g_arguments;

// Names that an unknown option may have meant: those of the command, in full.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

const CLI::App* deepest(const CLI::App* app) {
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return app;
}

std::vector<std::string> children(const CLI::App* app) {
  std::vector<std::string> names;
  for (const CLI::App* child : app->get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(child->get_name());
  return names;
}

/// `word` with the present name of the option that it gives.
std::string modern(std::string_view command, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  for (const auto& [what, old, now, only] : base::rows<4>(rangescope_app))
    if (what == "option" && name == old && (only.empty() || only == command))
      return std::string(now) + word.substr(name.size());
  return word;
}

/// Where the program begins on a line without `--`: at the first word that is no option, no option's value and no
/// override. The number of words where there is none.
std::size_t program_begin(const CLI::App& app, std::string_view command, const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!word.starts_with("-") || word == "-") {
      if (config::looks_like_override(word)) continue;
      return i;
    }
    const CLI::Option* option = app.get_option_no_throw(modern(command, word));
    if (option != nullptr && option->get_items_expected_max() > 0) ++i;
  }
  return words.size();
}

/// Every subcommand, in the order in which help lists them.
std::vector<std::unique_ptr<Subcommand>> subcommands() {
  std::vector<std::unique_ptr<Subcommand>> all;
  for (const auto make : {make_profile, make_attach, make_ctl, make_report, make_compare, make_gate, make_query,
                          make_export, make_runs, make_config, make_metrics, make_doctor, make_mcp, make_help})
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
std::unique_ptr<Parsed> declare(Subcommand& command) {
  auto parsed = std::make_unique<Parsed>();
  parsed->app =
      std::make_shared<CLI::App>(std::string(command.help().summary), "rangescope " + std::string(command.name()));
  CLI::App& app = *parsed->app;
  app.set_help_flag();
  app.fallthrough(false);
  command.options(Arguments(&app));
  const auto common = [&](CLI::App& on) {
    on.set_help_flag();
    on.add_flag("-v,--verbose", parsed->verbose, "Print more; twice for internal details")->group("Output");
    on.add_flag("-q,--quiet", parsed->quiet, "Print only warnings and errors")->group("Output");
    on.add_flag("-h,--help", parsed->help, "Show this help")->group("Output");
    on.add_flag("--help-all", parsed->help_all, "Show this help with every option")->group("Output");
  };
  common(app);
  for (CLI::App* child : app.get_subcommands([](const CLI::App*) { return true; })) common(*child);
  return parsed;
}

std::vector<std::string> shipped_metrics() {
  std::vector<std::string> names;
  if (const auto shipped = config::shipped_groups())
    for (const auto& group : *shipped) names.push_back(group.name);
  return names;
}

/// The words of "table|json"; none of a type that is no list of words.
std::vector<std::string> values_of(std::string_view type) {
  const bool words = type.find('|') != std::string::npos && std::all_of(type.begin(), type.end(), [](char c) {
                       return c == '|' || c == '-' || c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
                     });
  if (!words) return {};
  const auto parts = base::split(type, '|');
  return {parts.begin(), parts.end()};
}

HelpOption described(const CLI::Option& option) {
  HelpOption out;
  for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) out.names.push_back("--" + name);
  const std::string type = option.get_type_name();
  if (out.names.empty()) {
    out.value = option.get_name(true);
    out.run = type.starts_with("RUN");
  } else if (option.get_items_expected_max() > 0) {
    out.value = base::split(type, ':').front();
  }
  out.list = std::find(out.names.begin(), out.names.end(), "--metrics") != out.names.end();
  out.values = out.list ? shipped_metrics() : values_of(type);
  out.text = option.get_description();
  out.group = option.get_group();
  out.required = option.get_required();
  return out;
}

void describe(const CLI::App& app, HelpCommand& into) {
  for (const CLI::Option* option : app.get_options()) into.options.push_back(described(*option));
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
  out.mainly.assign(command.help().mainly.begin(), command.help().mainly.end());
  out.program = command.takes_program();
  describe(app, out);
  return out;
}

base::Error unknown_command(const std::string& name) {
  std::vector<std::string> known;
  for (const auto& command : subcommands()) known.emplace_back(command->name());
  base::Error error{base::Code::kUsage, "there is no command '" + base::printable(name) + "'", {}, {}};
  error.hint = base::removal_hint("rangescope " + name);
  for (const auto& [what, word, now] : base::rows<3>(rangescope_app)) {
    if (name != word) continue;
    if (what == "moved") error.hint = "Write: rangescope " + std::string(now);
    if (what == "tool") error.hint = "did you mean '" + std::string(now) + "'?";
  }
  if (error.hint.empty()) error.hint = base::did_you_mean(name, known);
  if (error.hint.empty())
    error.hint = "To profile a program: rangescope profile -- " + base::shell_quote(name) +
                 " ...; all commands: rangescope help";
  return error;
}

/// The exit code of a command's result; prints its failure.
int code_of(const base::Result<int>& done) {
  return done ? *done : say(done.error());
}

/// `code`, unless what was printed did not reach standard output (a full disk).
int after_printing(int code) {
  if ((std::fflush(stdout) == 0 && std::ferror(stdout) == 0) || code != 0) return code;
  return say({base::Code::kIo, std::string("writing failed: ") + std::strerror(errno), "standard output", {}});
}

int parse_and_run(Subcommand& command, std::vector<std::string> words, std::vector<std::string> program,
                  bool separated) {
  const auto parsed = declare(command);
  if (!separated && command.takes_program() && !command.needs_separator() && !parsed->app->get_prefix_command()) {
    const std::size_t begin = program_begin(*parsed->app, command.name(), words);
    program.assign(words.begin() + static_cast<std::ptrdiff_t>(begin), words.end());
    words.resize(begin);
    separated = !program.empty();
  }
  for (std::string& word : words) word = modern(command.name(), word);
  g_arguments = words;
  g_arguments.insert(g_arguments.begin(), std::string(command.name()));
  if (separated) g_arguments.emplace_back("--");
  g_arguments.insert(g_arguments.end(), program.begin(), program.end());
  std::reverse(words.begin(), words.end());  // CLI11 takes its vector back to front
  try {
    parsed->app->parse(words);
  } catch (const CLI::ExtrasError&) {
    if (!parsed->help && !parsed->help_all) return say(unknown_argument(*parsed->app, command.name()));
  } catch (const CLI::ParseError& error) {
    std::string see = "See rangescope help " + std::string(command.name());
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
      const HelpCommand help = help_of(command, *parsed->app);
      const CLI::App* word = deepest(parsed->app.get());
      if (word == parsed->app.get() && help.words.empty()) see = "Write: " + usage(help, help.name);
      for (const HelpCommand& each : help.words)
        if (word->get_name() == each.name) see = "Write: " + usage(each, help.name + " " + each.name);
    }
    // Words of validators carry their own hint behind a newline (refuse()).
    const std::string text = error.what();
    const auto line = text.find('\n');
    const bool asks = parsed->help || parsed->help_all;
    if (!asks && !parsed->app->remaining(true).empty()) return say(unknown_argument(*parsed->app, command.name()));
    if (!asks)
      return say(
          {base::Code::kUsage, text.substr(0, line), {}, line == std::string::npos ? see : text.substr(line + 1)});
  }
  if (parsed->help || parsed->help_all) {
    print(help_text(help_of(command, *parsed->app), parsed->help_all));
    return after_printing(0);
  }
  base::set_log_level(parsed->quiet         ? base::Level::kWarning
                      : parsed->verbose > 1 ? base::Level::kDebug
                      : parsed->verbose > 0 ? base::Level::kDetail
                                            : base::Level::kInfo);
  base::show_progress(!parsed->quiet);
  if (separated && !command.takes_program())
    return say({base::Code::kUsage, "rangescope " + std::string(command.name()) + " runs no program", "--",
                "Remove -- and what follows"});
  if (command.takes_program()) command.set_program(std::move(program));
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
  const std::string first = rest.empty() ? std::string("?") : rest.front();
  const std::string see = "See rangescope help " + std::string(command);
  base::Error error{base::Code::kUsage, {}, {}, see};
  std::string nearest;
  if (first.starts_with("-")) {
    const std::string_view option = base::split(first, '=').front();
    error.what = "unknown option '" + base::printable(first) + "'";
    nearest = base::removal_hint(option);
    if (nearest.empty()) nearest = base::did_you_mean(option, option_names(*at));
    if (command == "profile" && (first == "-p" || first == "--pid" || first.starts_with("--pid=")))
      nearest = "For a running process: rangescope attach PID";
  } else if (const auto known = children(at); !known.empty()) {
    const std::string written = std::string(command) + " " + first;
    error.what = "there is no '" + base::printable(written) + "'";
    nearest = base::removal_hint(written);
    if (nearest.empty()) nearest = base::did_you_mean(first, known);
    if (nearest.empty()) nearest = "Write one of " + base::join(known, ", ");
  } else {
    error.what = "unexpected argument '" + base::printable(first) + "'";
  }
  if (!nearest.empty()) error.hint = nearest;
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
  std::vector<std::string> program;
  const auto separator = std::find(words.begin(), words.end(), "--");
  const bool separated = separator != words.end();
  if (separated) {
    program.assign(separator + 1, words.end());
    words.erase(separator, words.end());
  }
  try {
    if (words.empty()) {
      print(overview(help_of_all()));
      return base::exit_code(base::Code::kUsage);
    }
    std::string name = words.front();
    if ((name == "--version" || name == "-V") && !separated &&
        (words.size() == 1 || (words.size() == 2 && words[1] == "--json")))
      return code_of(put(words.size() == 1 ? version_text() : version_json()));
    if (name == "--help" || name == "-h" || name == "--help-all") name = "help";
    words.erase(words.begin());
    for (const auto& command : commands) {
      if (command->name() == name) return parse_and_run(*command, std::move(words), std::move(program), separated);
    }
    if (name.starts_with("-"))
      return say({base::Code::kUsage,
                  "unknown option '" + base::printable(name) + "'",
                  {},
                  "Options follow a command: rangescope help"});
    return say(unknown_command(name));
  } catch (const std::bad_alloc&) {
    return say({base::Code::kInternal, "out of memory", {}, "Restrict what is read: --include, or fewer kernels"});
  } catch (const std::exception& error) {
    return say({base::Code::kInternal,
                std::string("a bug in rangescope: ") + error.what(),
                {},
                "Please report it with the command line"});
  }
}

std::vector<HelpCommand> help_of_all() {
  std::vector<HelpCommand> all;
  for (const auto& command : subcommands()) all.push_back(help_of(*command, *declare(*command)->app));
  return all;
}

}  // namespace rangescope::cli
