#include "cli/bind_config.hpp"

#include <algorithm>

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
  if (key.flag == "--metrics") return "Counters";
  if (key.path.starts_with("pipeline.nsys.")) return "Nsight Systems";
  if (key.path.starts_with("pipeline.ncu.")) return "Nsight Compute";
  if (key.path.starts_with("pipeline.")) return "Stages";
  return "Run";
}

/// Lists of names take commas too; arguments and expressions may hold commas of their own.
bool splits(const config::Key& key) {
  return key.type == config::KeyType::kList && !key.path.ends_with("extra_args") && key.path != "report.flops" &&
         key.path != "report.tokens" && key.path != "report.work" && !key.path.starts_with("kernels.");
}

/// A key's error ends like that of any other option where the option set the key: "--timeout: '-5' is not ...", kUsage.
base::Error of_option(base::Error error) {
  const std::size_t option = error.where.find(": --");
  if (!profile::on_command_line(error.where) || option == std::string::npos) return error;
  error.code = base::Code::kUsage;
  error.where = error.where.substr(option + 2);
  if (const config::Key* key = config::find_flag(error.where);
      key != nullptr && error.what.starts_with(std::string(key->path) + ": "))
    error.what = error.what.substr(key->path.size() + 2);
  return error;
}

}  // namespace

void ConfigArguments::options(const Arguments& app, bool aliases, const std::vector<std::string_view>& only) {
  app_ = app;
  aliases_ = aliases;
  app.add_option("overrides", words_);
  app.under("Configuration").add_option("--config", config_files_).repeated();
  app.under("Configuration").add_option("--config-dir", config_dirs_).repeated();
  app.under("Configuration").add_flag("--no-project", no_project_);
  if (!aliases) return;
  for (const config::Key& key : config::keys()) {
    if (key.flag.empty()) continue;
    const std::string flag(key.flag);
    if (app.declares(flag)) {  // somebody declared it with more to it, and has its value: apply()
      bound_.push_back(flag);
      continue;
    }
    if (!only.empty() && std::find(only.begin(), only.end(), flag) == only.end()) continue;
    app.add_key(key, group_of(key));
  }
}

base::Result<config::Inputs> ConfigArguments::inputs(const std::vector<std::string>& program) const {
  config::Inputs in;
  in.environment = collect::tool_search().environment;
  in.now = std::chrono::system_clock::now();
  in.shipped = TRY(config::find_conf(base::self_path(), in.environment));
  std::error_code ignored;
  const auto home = in.environment.find("HOME");
  if (!no_project_)
    in.project_file = config::find_project_file(std::filesystem::current_path(ignored),
                                                home == in.environment.end() ? "" : home->second);
  if (in.project_file) {
    in.project_trusted = config::is_trusted(*in.project_file);
    if (!in.project_trusted) TRY(config::check_owner(*in.project_file));
  }
  for (const std::string& file : config_files_) {
    if (std::error_code error; !std::filesystem::exists(file, error) && !error)
      return base::fail(base::Code::kNoInput, "there is no file " + file, "--config", "Name a YAML file.");
    in.config_files.emplace_back(file);
  }
  for (const std::string& dir : config_dirs_) in.config_dirs.emplace_back(dir);

  // The first word is the command; argument 1 is the one behind it. Walk the arguments as they stood, so that the later
  // of two wins, whether flag or override.
  std::vector<std::string> free_words = words_;
  std::map<std::string_view, std::size_t> used;  // results of a flag that were taken already
  std::map<std::string_view, std::vector<std::string>> lists;
  const auto& raw = arguments();
  for (std::size_t i = 0; i < raw.size() && raw[i] != "--"; ++i) {
    const std::string place = "argument " + std::to_string(i) + ": ";
    if (const auto word = std::find(free_words.begin(), free_words.end(), raw[i]);
        word != free_words.end() && config::looks_like_override(raw[i])) {
      free_words.erase(word);
      auto parsed = TRY(config::parse_override(raw[i], place + raw[i]));
      in.overrides.push_back(std::move(parsed));
      continue;
    }
    if (!aliases_ || !raw[i].starts_with("--")) continue;
    std::string name = raw[i].substr(0, raw[i].find('='));
    const config::Key* key = config::find_flag(name);
    if (!key && name.starts_with("--no-")) key = config::find_flag("--" + name.substr(5));
    if (!key) continue;
    const auto results = app_.results(std::string(key->flag));
    const std::size_t at = used[key->flag]++;
    if (at >= results.size()) continue;
    const std::string where = place + name;
    if (key->type == config::KeyType::kList || key->type == config::KeyType::kExpressions) {
      auto& list = lists[key->flag];
      if (splits(*key)) {
        for (const std::string_view part : base::split(results[at], ',')) list.emplace_back(part);
      } else {
        list.push_back(results[at]);
      }
      in.overrides.push_back(config::set_list(std::string(key->path), list, where));
    } else {
      in.overrides.push_back(config::set_text(std::string(key->path), results[at], where));
    }
  }
  if (!program.empty()) in.overrides.push_back(config::set_list("workload.command", program, "the program after --"));
  return in;
}

base::Result<config::Config> ConfigArguments::compose(const std::vector<std::string>& program) const {
  for (const std::string& word : words_)
    if (!config::looks_like_override(word))
      return base::fail(base::Code::kUsage, "'" + base::printable(word) + "' is neither an override nor an option", {},
                        "Write key=value, or put the program after --.");
  auto in = TRY(inputs(program));
  auto config = config::compose(in);
  if (!config) return tl::make_unexpected(of_option(std::move(config.error())));
  if (const std::string_view key = profile::gating_key(*config); !key.empty()) {
    base::info(std::string(key) + " asks for a recording by Nsight Systems: pipeline.nsys.enable=true");
    in.overrides.push_back(config::set_text("pipeline.nsys.enable", "true", "implied by " + std::string(key)));
    config = config::compose(in);
  }
  return config;
}

base::Result<void> ConfigArguments::apply(const config::Config& config) const {
  for (const config::Key& key : config::keys()) {
    const std::string flag(key.flag);
    if (flag.empty() || std::find(bound_.begin(), bound_.end(), flag) == bound_.end() || !config.get(key.path))
      continue;
    const bool given = !app_.results(flag).empty();  // -o and -f are given, but are no keys of the configuration
    if (given && !profile::on_command_line(config.where(key.path))) continue;
    const auto values = key.type == config::KeyType::kBool
                            ? std::vector<std::string>{config.flag(key.path) ? "true" : "false"}
                            : config.list(key.path);
    TRY(app_.set(flag, values, config.where(key.path)));
  }
  return {};
}

}  // namespace rangescope::cli
