#include "cli/help_text.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/text.hpp"
#include "cli/app.hpp"
#include "config/metric_groups.hpp"

namespace rangescope::cli {
namespace {

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

}  // namespace

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

std::vector<HelpCommand> help_of_all() {
  std::vector<HelpCommand> all;
  for (const auto& command : subcommands()) all.push_back(help_of(*command, *declare(*command)->app));
  return all;
}

}  // namespace rangescope::cli
