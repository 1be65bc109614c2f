// Composition as hydra.cc describes it under "The Defaults List", in three steps: find which option every group has,
// expand the defaults lists into a flat order, lay the files over each other.
#include "config/compose.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include "base/text.hpp"
#include "config/interpolate.hpp"
#include "config/trust.hpp"
#include "config/yaml.hpp"

namespace rangescope::config {
namespace {

namespace fs = std::filesystem;

/// Folders of conf/ that hold data of other rooms and no configuration groups.
bool is_data_folder(const std::string& name) {
  return name == "metrics" || name == "device" || name == "sample" || name == "cpu_counters" || name == "doctor" ||
         name == "tools" || name == "kernels";
}

/// One item of a defaults list.
struct Default {
  enum class Kind : std::uint8_t { kSelf, kConfig, kGroup } kind = Kind::kGroup;
  std::string group;   ///< absolute: "ncu"
  std::string option;  ///< "" for none (null)
  std::string where;
};

struct File {
  std::string name;     ///< shown in places
  std::string group;    ///< "" for a root file
  std::string package;  ///< absolute, "" is the root
  std::vector<Default> defaults;
  Value content;  ///< without the defaults list
};

std::string join(const std::string& a, const std::string& b) {
  return a.empty() ? b : b.empty() ? a : a + "." + b;
}

base::Result<std::vector<Default>> read_defaults(const Value& list, const std::string& group) {
  std::vector<Default> out;
  if (list.is_null()) return out;
  if (!list.is_list())
    return base::fail(base::Code::kConfig, "defaults must be a list", list.where,
                      "Write `defaults:` and below it lines like `- ncu: quick`.");
  for (const Value& item : list.items) {
    Default entry;
    entry.where = item.where;
    if (item.is_scalar()) {
      if (item.text == "_self_") {
        entry.kind = Default::Kind::kSelf;
      } else if (item.is_null()) {
        continue;
      } else {  // a file of the same group, or /of/an/absolute/path
        entry.kind = Default::Kind::kConfig;
        std::string name = item.text;
        entry.group = group;
        if (name.starts_with('/')) entry.group.clear(), name.erase(0, 1);
        if (const auto slash = name.rfind('/'); slash != std::string::npos) {
          entry.group = entry.group.empty() ? name.substr(0, slash) : entry.group + "/" + name.substr(0, slash);
          name = name.substr(slash + 1);
        }
        entry.option = name;
      }
      out.push_back(std::move(entry));
      continue;
    }
    if (!item.is_map() || item.entries.size() != 1)
      return base::fail(base::Code::kConfig, "an item of the defaults list must be one `group: option`", item.where);
    entry.group = base::trim(item.entries[0].key);
    if (entry.group.starts_with('/'))
      entry.group.erase(0, 1);
    else if (!group.empty())
      entry.group = group + "/" + entry.group;
    const Value& choice = item.entries[0].value;
    if (!choice.is_scalar())
      return base::fail(base::Code::kConfig, "the option of group '" + entry.group + "' must be a name or null",
                        choice.where);
    if (!choice.is_null()) entry.option = choice.text;
    if (!choice.where.empty()) entry.where = choice.where;
    out.push_back(std::move(entry));
  }
  return out;
}

/// A choice that overrides a defaults list.
struct Chosen {
  std::string option;
  std::string where;
};

class Composer {
 public:
  explicit Composer(const Inputs& inputs) : in_(inputs) {
    for (const fs::path& dir : in_.config_dirs) search_.push_back(dir);
    search_.push_back(in_.shipped);
  }

  base::Result<Config> run() {
    TRY(roots());
    std::vector<Override> rest;
    TRY(command_line_choices(rest));
    for (File& root : roots_) TRY(expand(root, 0));
    for (const auto& [key, choice] : chosen_)
      if (!met_.count(key)) return not_met(key, choice);
    config_.root.kind = Kind::kMap;
    for (const File& file : flat_) {
      TRY(lay(file));
    }
    TRY(environment());
    for (const Override& override_ : rest) TRY(apply(override_));
    for (std::string& file : names_) config_.files.push_back(std::move(file));
    TRY(interpolate(config_.root, {in_.environment, in_.now}));
    TRY(check_tree(config_.root));
    return std::move(config_);
  }

 private:
  // ---- files -------------------------------------------------------------------------------------------------------

  base::Result<File> open(const fs::path& path, const std::string& group) {
    auto document = TRY(read_yaml(path));
    File file;
    file.name = path.string();
    file.group = group;
    file.package = document.package;
    file.content = std::move(document.root);
    if (const Value* list = file.content.find("defaults")) {
      auto defaults = TRY(read_defaults(*list, group));
      file.defaults = std::move(defaults);
      file.content.erase("defaults");
    }
    const bool has_self = std::any_of(file.defaults.begin(), file.defaults.end(),
                                      [](const Default& d) { return d.kind == Default::Kind::kSelf; });
    if (!has_self) {
      Default self;
      self.kind = Default::Kind::kSelf;
      file.defaults.push_back(std::move(self));
    }
    return file;
  }

  base::Result<void> roots() {
    const auto add = [&](const fs::path& path) -> base::Result<void> {
      auto file = TRY(open(path, ""));
      file.package.clear();
      roots_.push_back(std::move(file));
      return {};
    };
    TRY(add(in_.shipped / "config.yaml"));
    std::error_code ignored;
    for (const fs::path& dir : in_.config_dirs) {
      if (!fs::is_directory(dir, ignored))
        return base::fail(base::Code::kConfig, "there is no folder " + dir.string(), "--config-dir",
                          "Name a folder with group folders or a config.yaml in it.");
      if (fs::exists(dir / "config.yaml", ignored)) TRY(add(dir / "config.yaml"));
    }
    if (in_.project_file) {
      TRY(add(*in_.project_file));
      if (!in_.project_trusted) TRY(check_untrusted(roots_.back().content, *in_.project_file));
    }
    for (const fs::path& path : in_.config_files) TRY(add(path));
    // A group that an earlier root already has is chosen anew by a later one, not opened a second time.
    std::set<std::string> seen;
    for (std::size_t i = 0; i < roots_.size(); ++i) {
      auto& defaults = roots_[i].defaults;
      for (auto item = defaults.begin(); item != defaults.end();) {
        if (item->kind != Default::Kind::kGroup) {
          ++item;
          continue;
        }
        const std::string key = item->group;
        if (seen.insert(key).second) {
          ++item;
          continue;
        }
        if (i > 0) {
          chosen_[key] = {item->option, item->where};
          item = defaults.erase(item);
          continue;
        }
        return base::fail(base::Code::kConfig, "group '" + item->group + "' is in the defaults list twice", item->where,
                          "Remove one of them.");
      }
    }
    return {};
  }

  std::vector<std::string> options_of(const std::string& group) const {
    std::set<std::string> names;
    std::error_code ignored;
    for (const fs::path& dir : search_)
      for (const auto& entry : fs::directory_iterator(dir / group, ignored))
        if (entry.path().extension() == ".yaml") names.insert(entry.path().stem().string());
    return {names.begin(), names.end()};
  }

  bool is_group(const std::string& name) const {
    if (name.empty() || name.find('.') != std::string::npos || is_data_folder(name)) return false;
    std::error_code ignored;
    return std::any_of(search_.begin(), search_.end(),
                       [&](const fs::path& dir) { return fs::is_directory(dir / name, ignored); });
  }

  base::Result<File> option_file(const std::string& group, const std::string& option, const std::string& where) {
    std::error_code ignored;
    // A name below the folders of configuration; joined to them, an absolute one would lead elsewhere.
    const std::string whole = group + "/" + option;
    if (whole.find("..") == std::string::npos && !group.starts_with('/') && !option.starts_with('/')) {
      for (const fs::path& dir : search_) {
        const fs::path path = (group.empty() ? dir : dir / group) / (option + ".yaml");
        if (!fs::exists(path, ignored)) continue;
        return open(path, group);
      }
    }
    if (group.empty()) {
      std::string hint = "Write `group: option`; `rangescope config groups` lists both.";
      for (const auto& [name, options] : groups(in_))
        if (std::find(options.begin(), options.end(), option) != options.end())
          hint = "Write `" + name + ": " + option + "`.";
      return base::fail(base::Code::kConfig, "there is no configuration file '" + base::printable(option) + ".yaml'",
                        where, hint);
    }
    const auto known = options_of(group);
    std::string hint = base::did_you_mean(option, known);
    if (hint.empty())
      hint = known.empty() ? "There is no group '" + group + "'; `rangescope config groups` lists them."
                           : "Options of " + group + ": " + base::join(known, ", ") + ".";
    return base::fail(base::Code::kConfig, "group '" + group + "' has no option '" + option + "'", where, hint);
  }

  // ---- defaults lists
  // ------------------------------------------------------------------------------------------------

  base::Result<void> expand(File& file, int depth) {
    if (depth > 30)
      return base::fail(base::Code::kConfig, "defaults lists nest more than 30 deep; does a file include itself?",
                        file.name);
    for (const Default& item : file.defaults) {
      if (item.kind == Default::Kind::kSelf) {
        flat_.push_back(file);
        continue;
      }
      std::string option = item.option, where = item.where;
      if (item.kind == Default::Kind::kGroup) {
        const std::string key = item.group;
        met_.insert(key);
        if (const auto choice = chosen_.find(key); choice != chosen_.end()) {
          option = choice->second.option;
          where = choice->second.where;
        }
        if (option.empty()) config_.choices.push_back({item.group, "", "", where});
      }
      if (option.empty()) continue;
      auto child = TRY(option_file(item.group, option, where));
      child.package = package_for(child, file, item);
      if (item.kind == Default::Kind::kGroup) config_.choices.push_back({item.group, child.package, option, where});
      TRY(expand(child, depth + 1));
    }
    return {};
  }

  static std::string package_for(const File& child, const File& parent, const Default& item) {
    if (child.package == "_global_") return {};
    if (!child.package.empty()) return child.package;
    if (item.kind == Default::Kind::kConfig) return parent.package;  // a sibling file speaks of the same package
    return base::replace_all(child.group, "/", ".");
  }

  base::Result<void> command_line_choices(std::vector<Override>& rest) {
    for (const Override& given : in_.overrides) {
      if (!is_group(given.key)) {
        rest.push_back(given);
        continue;
      }
      const std::string& key = given.key;
      Chosen choice;
      choice.where = given.where;
      if (given.value && !given.value->is_scalar())
        return base::fail(base::Code::kConfig, "group '" + given.key + "' takes the name of an option", given.where);
      if (given.value && !given.value->is_null()) choice.option = given.value->text;
      const bool known = std::any_of(roots_.begin(), roots_.end(), [&](const File& root) {
        return std::any_of(root.defaults.begin(), root.defaults.end(),
                           [&](const Default& d) { return d.kind == Default::Kind::kGroup && d.group == key; });
      });
      if (!known && given.value) {  // a group of the user's folders: it joins the list
        Default item;
        item.group = given.key;
        item.option = choice.option;
        item.where = given.where;
        auto& defaults = roots_.front().defaults;
        const auto self = std::find_if(defaults.begin(), defaults.end(),
                                       [](const Default& d) { return d.kind == Default::Kind::kSelf; });
        defaults.insert(self == defaults.end() ? self : self + 1, std::move(item));
      }
      chosen_[key] = std::move(choice);
    }
    return {};
  }

  std::vector<std::string> group_names() const {
    std::vector<std::string> names;
    for (const auto& [name, unused] : groups(in_)) names.push_back(name);
    return names;
  }

  tl::unexpected<base::Error> not_met(const std::string& key, const Chosen& choice) const {
    std::vector<std::string> known(met_.begin(), met_.end());
    std::string hint = base::did_you_mean(key, known);
    if (hint.empty()) hint = "Groups in the defaults list: " + base::join(known, ", ") + ".";
    return base::fail(base::Code::kConfig, "group '" + key + "' is not in the defaults list", choice.where, hint);
  }

  // ---- values
  // --------------------------------------------------------------------------------------------------------

  void remember(const std::string& path, const Value& value) {
    if (value.is_map() && !value.entries.empty() && !(find_key(path) && find_key(path)->path == path)) {
      for (const Entry& entry : value.entries) remember(join(path, entry.key), entry.value);
      return;
    }
    config_.history.push_back({path, to_flow(value), value.where});
  }

  /// A key that exists, a section, or a place below an open map.
  static base::Result<void> known(const std::string& path, const Value& value) {
    const Key* key = find_key(path);
    if (key) return {};
    if (!is_section(path)) return tl::make_unexpected(unknown_key(path, value.where));
    for (const Entry& entry : value.entries) {
      if (const auto dot = entry.key.find('.'); dot != std::string::npos)
        return base::fail(base::Code::kConfig, "key '" + base::printable(entry.key) + "' has a dot in it",
                          entry.value.where,
                          "Write `" + base::printable(entry.key.substr(0, dot)) + ":` and below it `" +
                              base::printable(entry.key.substr(dot + 1)) + ": ...`.");
      TRY(known(join(path, entry.key), entry.value));
    }
    return {};
  }

  base::Result<void> lay(const File& file) {
    names_.push_back(file.name);
    Value wrapped = file.content;
    std::string package = file.package;
    while (!package.empty()) {
      const auto dot = package.rfind('.');
      Value outer;
      outer.kind = Kind::kMap;
      outer.where = file.name;
      outer.entries.push_back({package.substr(dot == std::string::npos ? 0 : dot + 1), std::move(wrapped)});
      wrapped = std::move(outer);
      package = dot == std::string::npos ? "" : package.substr(0, dot);
    }
    if (wrapped.entries.empty()) return {};
    if (auto ok = known("", wrapped); !ok) {
      // A preset of nsys or ncu sets keys below pipeline, and declares that in its first line.
      for (const std::string section : {"pipeline.ncu", "pipeline.nsys", "pipeline.native", "pipeline"})
        if (file.package == file.group && known(section, file.content))
          ok.error().hint = "Begin the file with the line `# @package " + section + "`, where these keys are.";
      return ok;
    }
    remember("", wrapped);
    merge(config_.root, wrapped);
    return {};
  }

  base::Result<void> environment() {
    for (const auto& [name, text] : in_.environment) {
      if (!name.starts_with("RANGESCOPE__")) continue;
      Override given;
      given.where = "environment " + name;
      std::string path = base::replace_all(name.substr(12), "__", ".");
      // Names of maps of texts keep their case: RANGESCOPE__WORKLOAD__ENV__OMP_NUM_THREADS.
      const std::string low = base::lower(path);
      const Key* key = find_key(low);
      given.key = key && key->type == KeyType::kMap && low != key->path
                      ? std::string(key->path) + path.substr(key->path.size())
                      : low;
      given.value = TRY(parse_value(text, given.where));
      TRY(apply(given));
    }
    return {};
  }

  std::string group_hint(const std::string& path) const {
    if (const std::string key = base::replace_all(path, "/", "."); find_key(key)) return "did you mean '" + key + "'?";
    std::string hint = base::did_you_mean(path, group_names());
    return hint.empty() ? "`rangescope config groups` lists them." : hint;
  }

  base::Result<void> apply(const Override& given) {
    std::string path = given.key;
    // A `group=option` that is meant for a section ("pipeline/ncu") cannot be told from a key with slashes.
    if (path.find('/') != std::string::npos)
      return base::fail(base::Code::kConfig, "there is no configuration group '" + path + "'", given.where,
                        group_hint(path));
    if (!given.value) return remove(given);
    Value value = *given.value;
    if (auto ok = known(path, value); !ok) {
      base::Error error = std::move(ok).error();
      error.where = given.where;
      if (!error.hint.starts_with("did you mean") && path.find('.') == std::string::npos)
        if (std::string group = base::did_you_mean(path, group_names()); !group.empty()) error.hint = std::move(group);
      return tl::make_unexpected(std::move(error));
    }
    remember(path, value);
    Value* at = &config_.root;
    for (std::string_view rest = path; !rest.empty();) {
      const auto dot = rest.find('.');
      // A map of texts holds names that may themselves have dots nowhere else in the schema: the rest is one name.
      at = &at->get_or_add(rest.substr(0, dot), given.where);
      rest = dot == std::string_view::npos ? std::string_view{} : rest.substr(dot + 1);
    }
    if (value.is_map() && at->is_map())
      merge(*at, value);
    else
      *at = std::move(value);
    return {};
  }

  base::Result<void> remove(const Override& given) {
    const auto dot = given.key.rfind('.');
    const std::string parent = dot == std::string::npos ? "" : given.key.substr(0, dot);
    const std::string last = dot == std::string::npos ? given.key : given.key.substr(dot + 1);
    auto* holder = const_cast<Value*>(at_path(config_.root, parent));
    const Value* old = holder ? holder->find(last) : nullptr;
    if (!old) {
      if (!find_key(given.key) && !is_section(given.key))
        return tl::make_unexpected(unknown_key(given.key, given.where));
      return base::fail(base::Code::kConfig, "~" + given.key + ": it is not set, so it cannot be deleted", given.where);
    }
    config_.history.push_back({given.key, "(deleted)", given.where});
    holder->erase(last);
    return {};
  }

  const Inputs& in_;
  std::vector<fs::path> search_;
  std::vector<File> roots_;
  std::vector<File> flat_;
  std::map<std::string, Chosen> chosen_;
  std::set<std::string> met_;
  std::vector<std::string> names_;
  Config config_;
};

}  // namespace

base::Result<Config> compose(const Inputs& inputs) {
  return Composer(inputs).run();
}

std::map<std::string, std::vector<std::string>> groups(const Inputs& inputs) {
  std::map<std::string, std::set<std::string>> found;
  std::vector<fs::path> search = inputs.config_dirs;
  search.push_back(inputs.shipped);
  const std::function<void(const fs::path&, const std::string&)> walk = [&](const fs::path& dir,
                                                                            const std::string& group) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(dir, ignored)) {
      const std::string name = entry.path().filename().string();
      if (entry.is_directory(ignored) && !name.starts_with('.') && !(group.empty() && is_data_folder(name)))
        walk(entry.path(), group.empty() ? name : group + "/" + name);
      else if (!group.empty() && entry.path().extension() == ".yaml")
        found[group].insert(entry.path().stem().string());
    }
  };
  for (const fs::path& dir : search) walk(dir, "");
  std::map<std::string, std::vector<std::string>> out;
  for (const auto& [group, options] : found) out[group] = {options.begin(), options.end()};
  return out;
}

}  // namespace rangescope::config
