// Reading a composed configuration: typed getters, explain, and where conf/ and the project file
// are.
#include <algorithm>
#include <cstdlib>

#include "base/fs.hpp"
#include "base/text.hpp"
#include "config/compose.hpp"

namespace rangescope::config {

namespace fs = std::filesystem;

const Value* Config::get(std::string_view path) const {
  const Value* value = at_path(root, path);
  return value && !value->is_null() ? value : nullptr;
}

bool Config::flag(std::string_view path, bool fallback) const {
  const Value* value = get(path);
  return value && value->kind == Kind::kBool ? value->boolean : fallback;
}

std::optional<std::int64_t> Config::integer(std::string_view path) const {
  const Value* value = get(path);
  return value && value->kind == Kind::kInt ? std::optional(value->integer) : std::nullopt;
}

std::optional<std::string> Config::text(std::string_view path) const {
  const Value* value = get(path);
  return value && value->is_scalar() ? std::optional(value->text) : std::nullopt;
}

std::vector<std::string> Config::list(std::string_view path) const {
  std::vector<std::string> out;
  const Value* value = get(path);
  if (!value)
    return out;
  if (value->is_scalar())
    return {value->text};
  for (const Value& item : value->items)
    out.push_back(item.text);
  return out;
}

std::map<std::string, std::string> Config::map(std::string_view path) const {
  std::map<std::string, std::string> out;
  if (const Value* value = get(path))
    for (const Entry& entry : value->entries)
      if (!entry.value.is_null())
        out[entry.key] = entry.value.text;
  return out;
}

std::optional<std::chrono::nanoseconds> Config::duration(std::string_view path) const {
  const auto written = text(path);
  const auto ns = written ? parse_duration(*written) : std::nullopt;
  return ns ? std::optional(std::chrono::nanoseconds(*ns)) : std::nullopt;
}

Origin Config::origin(std::string_view path) const {
  const Value* value = at_path(root, path);
  return value != nullptr ? value->origin : Origin{};
}

bool Config::set_by_user(std::string_view path) const {
  const auto last =
      std::find_if(history.rbegin(), history.rend(), [&](const Assignment& assignment) {
        return assignment.key == path;
      });
  return last != history.rend() && last->origin.by_user();
}

base::Result<fs::path> find_conf(const fs::path& self,
                                 const std::map<std::string, std::string>& environment) {
  std::error_code ignored;
  if (const auto variable = environment.find("RANGESCOPE_CONF");
      variable != environment.end() && !variable->second.empty()) {
    const std::string& folder = variable->second;
    if (fs::exists(fs::path(folder) / "config.yaml", ignored))
      return fs::path(folder);
    return base::fail(base::Code::kNoInput,
                      "there is no config.yaml in " + folder,
                      "environment RANGESCOPE_CONF",
                      "Set it to rangescope's conf folder, or unset it.");
  }
  const fs::path bin = self.parent_path();
  std::vector<fs::path> places{bin.parent_path() / "share" / "rangescope" /
                               "conf"};  // installed: PREFIX/bin
  for (fs::path up = bin; up.has_relative_path(); up = up.parent_path())
    places.push_back(up / "conf");  // build tree
  std::vector<std::string> searched;
  for (const fs::path& place : places) {
    if (fs::exists(place / "config.yaml", ignored))
      return place;
    searched.push_back(place.string());
  }
  return base::fail(base::Code::kNoInput,
                    "conf/config.yaml was not found (looked in " + base::join(searched, ", ") + ")",
                    {},
                    "Set RANGESCOPE_CONF to rangescope's conf folder.");
}

base::Result<fs::path> shipped_folder() {
  std::map<std::string, std::string> environment;
  if (const char* folder = std::getenv("RANGESCOPE_CONF"); folder != nullptr)
    environment["RANGESCOPE_CONF"] = folder;
  return find_conf(base::self_path(), environment);
}

std::optional<fs::path> find_project_file(const fs::path& from, const fs::path& home) {
  std::error_code ignored;
  for (fs::path folder = from; !folder.empty(); folder = folder.parent_path()) {
    if (fs::exists(folder / "rangescope.yaml", ignored))
      return folder / "rangescope.yaml";
    const bool is_repository = fs::exists(folder / ".git", ignored);
    if (folder == home || is_repository || folder == folder.parent_path())
      break;
  }
  return std::nullopt;
}

base::Result<std::string> explain(const Config& config, std::string_view path) {
  const Key* key = find_key(path);
  if (!key) {
    if (!is_section(path) || path.empty())
      return tl::make_unexpected(unknown_key(path, {}));
    std::string out;
    for (const Key& below : keys()) {
      if (!below.path.starts_with(path) || below.path[path.size()] != '.')
        continue;
      auto part = explain(config, below.path);
      if (part)
        out += (out.empty() ? "" : "\n") + *part;
    }
    return out;
  }
  std::string out = std::string(path) + "\n";
  out += "  " + std::string(key->about) + "\n";
  out += "  type:  " + describe(*key) + "\n";
  if (!key->flag.empty())
    out += "  flag:  " + std::string(key->flag) + "\n";
  const Value* value = at_path(config.root, path);
  out += "  value: " + (value ? to_flow(*value) : std::string("(not set)")) + "\n";
  std::vector<const Assignment*> set;
  for (const Assignment& done : config.history)
    if (done.key == path ||
        (key->type == KeyType::kMap && done.key.starts_with(std::string(path) + ".")))
      set.push_back(&done);
  for (auto done = set.rbegin(); done != set.rend(); ++done) {
    const std::string name =
        (*done)->key == path ? "" : (*done)->key.substr(path.size() + 1) + " = ";
    out += (done == set.rbegin() ? "  set by " : "  before ") + to_string((*done)->origin) + ": " +
           name + (*done)->value + "\n";
  }
  return out;
}

}  // namespace rangescope::config
