#include "config/compose.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "base/text.hpp"
#include "config/interpolate.hpp"
#include "config/trust.hpp"

namespace rangescope::config {
namespace {

namespace fs = std::filesystem;

/// Folders of conf/ that hold data of other rooms.
constexpr std::array<std::string_view, 6> kDataFolders{
    "cpu_counters",
    "doctor",
    "metrics",
    "replay",
    "sample",
    "tools",
};

bool can_be_group(const std::string& folder) {
  const bool is_data = std::ranges::find(kDataFolders, folder) != kDataFolders.end();
  const bool has_a_name_of_the_root = find_key(folder) != nullptr || is_section(folder);
  return !is_data && !has_a_name_of_the_root && folder.find('.') == std::string::npos;
}

/// What is in a folder, closed again when this returns: a process may have one descriptor left
/// (ulimit -n). Nothing where there is no such folder.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    entries.push_back(entry.path());
  return entries;
}

class Composer {
 public:
  explicit Composer(const Inputs& inputs) : in_(inputs), groups_(groups(inputs)) {}

  base::Result<Config> run() {
    TRY(read_files());
    TRY(read_environment());
    assignments_.insert(assignments_.end(), in_.overrides.begin(), in_.overrides.end());
    TRY(take_choices());
    TRY(insert_chosen_options());

    config_.root.kind = Kind::kMap;
    for (const Layer& layer : layers_)
      TRY(lay(layer));
    for (const Override& assignment : assignments_)
      TRY(assign(assignment));
    TRY(interpolate(config_.root, {in_.environment, in_.now}));
    TRY(check_tree(config_.root));
    return std::move(config_);
  }

 private:
  // ---- layers

  base::Result<void> read_file(const fs::path& path, Source source = Source::kUserFile) {
    Layer layer = TRY(read_layer(path, "", groups_, source));
    layers_.push_back(std::move(layer));
    return {};
  }

  base::Result<void> read_files() {
    TRY(read_file(in_.shipped / "config.yaml", Source::kShippedFile));
    std::error_code ignored;
    for (const fs::path& dir : in_.config_dirs) {
      if (!fs::is_directory(dir, ignored))
        return base::fail(base::Code::kConfig,
                          "there is no folder " + dir.string(),
                          "--config-dir",
                          "Name a folder with group folders or a config.yaml in it.");
      if (fs::exists(dir / "config.yaml", ignored))
        TRY(read_file(dir / "config.yaml"));
    }
    if (in_.project_file) {
      TRY(read_file(*in_.project_file));
      if (!in_.project_trusted)
        TRY(check_untrusted(layers_.back().values, *in_.project_file));
    }
    for (const fs::path& path : in_.config_files)
      TRY(read_file(path));
    return {};
  }

  base::Result<void> read_environment() {
    constexpr std::string_view kPrefix = "RANGESCOPE__";
    for (const auto& [name, text] : in_.environment) {
      if (!name.starts_with(kPrefix))
        continue;
      Override given;
      given.origin = {.source = Source::kEnvironment, .name = name};
      given.key = key_of_variable(name.substr(kPrefix.size()));
      given.value = TRY(parse_value(text, given.origin));
      assignments_.push_back(std::move(given));
    }
    return {};
  }

  /// "run.keep" of RUN__KEEP. Names in maps keep their case: WORKLOAD__ENV__OMP_NUM_THREADS.
  static std::string key_of_variable(std::string_view name) {
    const std::string path = base::replace_all(name, "__", ".");
    const std::string lower_path = base::lower(path);
    const Key* key = find_key(lower_path);
    const bool inside_map = key != nullptr && key->type == KeyType::kMap && lower_path != key->path;
    if (!inside_map)
      return lower_path;
    return std::string(key->path) + path.substr(key->path.size());
  }

  // ---- groups

  /// `ncu: quick`. A map under that name is no choice, but keys of pipeline.ncu at the wrong place.
  bool is_choice(const Entry& entry) const {
    return groups_.count(entry.key) > 0 && !entry.value.is_map();
  }

  /// Takes the choices of groups out of layers and assignments, lowest first.
  base::Result<void> take_choices() {
    for (Layer& layer : layers_) {
      for (const Entry& entry : layer.values.entries)
        if (is_choice(entry))
          TRY(choose(entry.key, entry.value));
      std::erase_if(layer.values.entries, [&](const Entry& entry) { return is_choice(entry); });
    }
    for (const Override& assignment : assignments_) {
      if (groups_.count(assignment.key) == 0)
        continue;
      TRY(choose(assignment.key,
                 assignment.value.value_or(plain_scalar("null", assignment.origin))));
    }
    std::erase_if(assignments_,
                  [&](const Override& assignment) { return groups_.count(assignment.key) > 0; });
    return {};
  }

  base::Result<void> choose(const std::string& group, const Value& option) {
    if (!option.is_scalar())
      return refused("group '" + group + "' takes the name of an option", option.origin);
    Choice& choice = choice_of(group);
    choice.option.clear();
    if (!option.is_null())
      choice.option = option.text;
    choice.origin = option.origin;
    return {};
  }

  Choice& choice_of(const std::string& group) {
    for (Choice& choice : config_.choices)
      if (choice.group == group)
        return choice;
    return config_.choices.emplace_back(Choice{group, {}, {}});
  }

  /// Between the shipped file and those of users.
  base::Result<void> insert_chosen_options() {
    std::vector<Layer> options;
    for (const Choice& choice : config_.choices) {
      if (choice.option.empty())
        continue;
      Layer option = TRY(read_option(choice));
      options.push_back(std::move(option));
    }
    layers_.insert(layers_.begin() + 1,
                   std::make_move_iterator(options.begin()),
                   std::make_move_iterator(options.end()));
    return {};
  }

  base::Result<Layer> read_option(const Choice& choice) {
    const fs::path file = fs::path(choice.group) / (choice.option + ".yaml");
    const std::vector<std::string>& options = groups_.at(choice.group);
    if (std::ranges::find(options, choice.option) == options.end()) {
      std::string hint = base::did_you_mean(choice.option, options);
      if (hint.empty())
        hint = "Options of " + choice.group + ": " + base::join(options, ", ") + ".";
      return refused("group '" + choice.group + "' has no option '" + choice.option + "'",
                     choice.origin,
                     hint);
    }
    std::error_code ignored;
    for (const fs::path& folder : in_.config_dirs) {
      const fs::path path = folder / file;
      if (fs::exists(path, ignored))
        return read_layer(path, choice.group, groups_, Source::kUserFile);
    }
    return read_layer(in_.shipped / file, choice.group, groups_, Source::kShippedFile);
  }

  // ---- values

  static bool is_root_name(const std::string& name) {
    return find_key(name) != nullptr || is_section(name);
  }

  /// Refuses names that are none of the root.
  base::Result<void> check_root(const Layer& layer) const {
    std::vector<std::string> unknown;
    for (const Entry& entry : layer.values.entries) {
      if (is_root_name(entry.key))
        continue;
      if (is_choice(entry))
        return refused("an option of group '" + layer.group + "' cannot choose one of group '" +
                           entry.key + "'",
                       entry.value.origin,
                       "Choose it in a rangescope.yaml or on the command line.");
      unknown.push_back(entry.key);
    }
    if (unknown.empty())
      return {};
    base::Error error =
        unknown_key(unknown.front(), layer.values.find(unknown.front())->origin, group_names());
    if (const std::string hint = indentation_hint(unknown, layer.group); !hint.empty())
      error.hint = hint;
    return tl::make_unexpected(std::move(error));
  }

  void remember(const std::string& path, const Value& value) {
    const Key* key = find_key(path);
    const bool is_key = key != nullptr && key->path == path;
    if (is_key || !value.is_map() || value.entries.empty()) {
      config_.history.push_back({path, to_flow(value), value.origin});
      return;
    }
    for (const Entry& entry : value.entries)
      remember(joined_path(path, entry.key), entry.value);
  }

  base::Result<void> lay(const Layer& layer) {
    config_.files.push_back(layer.file);
    if (layer.values.entries.empty())
      return {};
    TRY(check_root(layer));
    TRY(check_names("", layer.values));
    remember("", layer.values);
    merge(config_.root, layer.values);
    return {};
  }

  std::vector<std::string> group_names() const {
    std::vector<std::string> names;
    for (const auto& [name, options] : groups_)
      names.push_back(name);
    return names;
  }

  /// A key with slashes is a group's sub-folder to Hydra; there are none here.
  base::Error key_with_slashes(const Override& given) const {
    std::string hint = base::did_you_mean(given.key, group_names());
    if (const std::string key = base::replace_all(given.key, "/", "."); find_key(key) != nullptr)
      hint = "did you mean '" + key + "'?";
    if (hint.empty())
      hint = "`rangescope config groups` lists them.";
    return {base::Code::kConfig,
            "there is no configuration group '" + given.key + "'",
            to_string(given.origin),
            hint};
  }

  base::Result<void> assign(const Override& given) {
    if (given.key.find('/') != std::string::npos)
      return tl::make_unexpected(key_with_slashes(given));
    if (!given.value)
      return remove(given);
    if (given.key.find('.') == std::string::npos && !is_root_name(given.key))
      return tl::make_unexpected(unknown_key(given.key, given.origin, group_names()));
    TRY(check_names(given.key, *given.value));
    remember(given.key, *given.value);
    Value* target = &config_.root;
    for (const std::string_view name : base::split(given.key, '.'))
      target = &target->get_or_add(name, given.origin);
    merge(*target, *given.value);
    return {};
  }

  base::Result<void> remove(const Override& given) {
    const std::string parent(parent_of(given.key));
    const std::string name(last_name(given.key));
    auto* holder = const_cast<Value*>(at_path(config_.root, parent));
    if (holder == nullptr || holder->find(name) == nullptr) {
      if (find_key(given.key) == nullptr && !is_section(given.key))
        return tl::make_unexpected(unknown_key(given.key, given.origin));
      return refused("~" + given.key + ": it is not set, so it cannot be deleted", given.origin);
    }
    config_.history.push_back({given.key, "(deleted)", given.origin});
    holder->erase(name);
    return {};
  }

  const Inputs& in_;
  const Groups groups_;
  std::vector<Layer> layers_;          ///< lowest first
  std::vector<Override> assignments_;  ///< over all layers: environment, then command line
  Config config_;
};

}  // namespace

base::Result<Config> compose(const Inputs& inputs) {
  return Composer(inputs).run();
}

Groups groups(const Inputs& inputs) {
  std::map<std::string, std::set<std::string>> found;
  std::vector<fs::path> folders = inputs.config_dirs;
  folders.push_back(inputs.shipped);
  for (const fs::path& folder : folders)
    for (const fs::path& group : entries_of(folder)) {
      const std::string name = group.filename().string();
      if (!can_be_group(name))
        continue;
      for (const fs::path& option : entries_of(group))
        if (option.extension() == ".yaml")
          found[name].insert(option.stem().string());
    }
  Groups out;
  for (const auto& [group, options] : found)
    out[group] = {options.begin(), options.end()};
  return out;
}

}  // namespace rangescope::config
