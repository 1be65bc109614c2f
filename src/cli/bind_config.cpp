#include "cli/bind_config.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "cli/app.hpp"
#include "collect/nsight/tools.hpp"
#include "config/trust.hpp"
#include "profile/settings.hpp"

namespace rangescope::cli {
namespace {

std::string group_of(const config::Key& key) {
  if (key.flag == "--metrics")
    return "Counters";
  if (key.path.starts_with("ranges.") || key.path.starts_with("kernels."))
    return "Regions";
  if (key.path.starts_with("pipeline.nsys."))
    return "Nsight Systems";
  if (key.path.starts_with("pipeline.ncu."))
    return "Nsight Compute";
  if (key.path.starts_with("pipeline."))
    return "Stages";
  return "Run";
}

/// Lists of names take commas too; arguments and expressions may hold commas of their own.
bool splits(const config::Key& key) {
  return key.type == config::KeyType::kList && !key.path.ends_with("extra_args") &&
         key.path != "report.flops" && key.path != "report.tokens" && key.path != "report.work" &&
         !key.path.starts_with("kernels.");
}

/// Refuses what the flag of a key cannot be, like any other option: "--timeout: '-5' is not ...",
/// kUsage.
base::Result<void> check_flag(const config::Key& key, config::Value value) {
  auto checked = config::check(key, value);
  if (checked)
    return {};
  base::Error error = std::move(checked).error();
  error.code = base::Code::kUsage;
  error.where = key.flag;
  return tl::make_unexpected(std::move(error));
}

/// Of "--keep", and of "--no-keep".
const config::Key* key_of_flag(const std::string& flag) {
  constexpr std::string_view kNot = "--no-";
  const config::Key* key = config::find_flag(flag);
  if (!key && flag.starts_with(kNot))
    return config::find_flag("--" + flag.substr(kNot.size()));
  return key;
}

/// Flags as overrides of their keys, in the order of the command line. A list grows with each of
/// its flags.
class FlagOverrides {
 public:
  explicit FlagOverrides(const Arguments& app) : app_(app) {}

  /// Of the flag's next value; nothing if all its values were used.
  std::optional<config::Override> next(const config::Key& key, const config::Origin& origin) {
    const std::vector<std::string> values = app_.results(std::string(key.flag));
    const std::size_t index = used_values_[key.flag]++;
    if (index >= values.size())
      return std::nullopt;
    if (key.type != config::KeyType::kList && key.type != config::KeyType::kExpressions)
      return config::set_text(std::string(key.path), values[index], origin);
    std::vector<std::string>& list = lists_[key.flag];
    append(list, key, values[index]);
    return config::set_list(std::string(key.path), list, origin);
  }

 private:
  static void append(std::vector<std::string>& list,
                     const config::Key& key,
                     const std::string& value) {
    if (!splits(key)) {
      list.push_back(value);
      return;
    }
    for (const std::string_view part : base::split(value, ','))
      list.emplace_back(part);
  }

  const Arguments& app_;
  std::map<std::string_view, std::size_t> used_values_;
  std::map<std::string_view, std::vector<std::string>> lists_;
};

/// The key's value as an option takes it.
std::vector<std::string> option_values(const config::Config& config, const config::Key& key) {
  if (key.type != config::KeyType::kBool)
    return config.list(key.path);
  if (config.flag(key.path))
    return {"true"};
  return {"false"};
}

}  // namespace

void ConfigArguments::options(const Arguments& app,
                              bool aliases,
                              const std::vector<std::string_view>& only) {
  app_ = app;
  aliases_ = aliases;
  app.add_option("overrides", words_);
  app.under("Configuration").add_option("--config", config_files_).repeated();
  app.under("Configuration").add_option("--config-dir", config_dirs_).repeated();
  app.under("Configuration").add_flag("--no-project", no_project_);
  if (!aliases)
    return;
  for (const config::Key& key : config::keys()) {
    if (key.flag.empty())
      continue;
    const std::string flag(key.flag);
    if (app.declares(flag)) {  // declared elsewhere with more to it; apply() gives it its value
      bound_.push_back(flag);
      continue;
    }
    if (!only.empty() && std::find(only.begin(), only.end(), flag) == only.end())
      continue;
    app.add_key(key, group_of(key));
  }
}

base::Result<config::Inputs> ConfigArguments::inputs(
    const std::vector<std::string>& program) const {
  config::Inputs in;
  in.environment = collect::tool_search().environment;
  in.now = std::chrono::system_clock::now();
  in.shipped = TRY(config::find_conf(base::self_path(), in.environment));
  TRY(add_project_file(in));
  TRY(add_named_files(in));
  TRY(add_overrides(in));
  if (!program.empty())
    in.overrides.push_back(
        config::set_list("workload.command", program, {.source = config::Source::kProgram}));
  return in;
}

base::Result<void> ConfigArguments::add_project_file(config::Inputs& in) const {
  if (no_project_)
    return {};
  std::filesystem::path home_folder;
  if (const auto home = in.environment.find("HOME"); home != in.environment.end())
    home_folder = home->second;
  std::error_code ignored;
  in.project_file = config::find_project_file(std::filesystem::current_path(ignored), home_folder);
  if (!in.project_file)
    return {};
  in.project_trusted = config::is_trusted(*in.project_file);
  if (!in.project_trusted)
    TRY(config::check_owner(*in.project_file));
  return {};
}

/// Those of --config and --config-dir.
base::Result<void> ConfigArguments::add_named_files(config::Inputs& in) const {
  for (const std::string& file : config_files_) {
    if (std::error_code error; !std::filesystem::exists(file, error) && !error)
      return base::fail(
          base::Code::kNoInput, "there is no file " + file, "--config", "Name a YAML file.");
    in.config_files.emplace_back(file);
  }
  for (const std::string& dir : config_dirs_)
    in.config_dirs.emplace_back(dir);
  return {};
}

/// Walks the arguments in the order of the command line, so that the later of two wins, whether
/// flag or override. The first word is the command; argument 1 is the one behind it.
base::Result<void> ConfigArguments::add_overrides(config::Inputs& in) const {
  FlagOverrides flags(app_);
  std::vector<std::string> free_words = words_;
  const auto& raw = arguments();
  for (std::size_t i = 0; i < raw.size() && raw[i] != "--"; ++i) {
    config::Origin origin{
        .source = config::Source::kOverride, .name = raw[i], .argument = static_cast<int>(i)};
    const auto free_word = std::find(free_words.begin(), free_words.end(), raw[i]);
    if (free_word != free_words.end() && config::looks_like_override(raw[i])) {
      free_words.erase(free_word);
      auto parsed = TRY(config::parse_override(raw[i], origin));
      in.overrides.push_back(std::move(parsed));
      continue;
    }
    if (!aliases_ || !raw[i].starts_with("--"))
      continue;
    origin.source = config::Source::kFlag;
    origin.name = raw[i].substr(0, raw[i].find('='));
    const config::Key* key = key_of_flag(origin.name);
    if (!key)
      continue;
    auto flag_override = flags.next(*key, origin);
    if (!flag_override)
      continue;
    in.overrides.push_back(std::move(*flag_override));
    TRY(check_flag(*key, *in.overrides.back().value));
  }
  return {};
}

base::Result<config::Config> ConfigArguments::compose(
    const std::vector<std::string>& program) const {
  for (const std::string& word : words_)
    if (!config::looks_like_override(word))
      return base::fail(base::Code::kUsage,
                        "'" + base::printable(word) + "' is neither an override nor an option",
                        {},
                        "Write key=value, or put the program after --.");
  auto in = TRY(inputs(program));
  auto config = config::compose(in);
  if (!config)
    return config;
  if (const std::string_view key = profile::gating_key(*config); !key.empty()) {
    base::info(std::string(key) +
               " asks for a recording by Nsight Systems: pipeline.nsys.enable=true");
    const config::Origin origin{.source = config::Source::kImplied, .name = std::string(key)};
    in.overrides.push_back(config::set_text("pipeline.nsys.enable", "true", origin));
    config = config::compose(in);
  }
  return config;
}

base::Result<void> ConfigArguments::apply(const config::Config& config) const {
  for (const config::Key& key : config::keys()) {
    const std::string flag(key.flag);
    if (flag.empty() || std::find(bound_.begin(), bound_.end(), flag) == bound_.end() ||
        !config.get(key.path))
      continue;
    // -o and -f are given, but are no keys of the configuration
    const bool is_given = !app_.results(flag).empty();
    if (is_given && !config.origin(key.path).on_command_line())
      continue;
    const std::vector<std::string> values = option_values(config, key);
    TRY(app_.set(flag, values, config::to_string(config.origin(key.path))));
  }
  return {};
}

}  // namespace rangescope::cli
