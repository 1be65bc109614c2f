// Reading a composed configuration: typed getters, explain, and where conf/ and the project file
// are.
#include <algorithm>
#include <cstdlib>

#include "base/fs.hpp"
#include "base/text.hpp"
#include "config/compose.hpp"

namespace rangescope::config {

namespace fs = std::filesystem;

namespace {

/// The keys below a section, with an empty line between them.
std::string explain_section(const Config& config, std::string_view section) {
  std::vector<std::string> explained;
  for (const Key& key : keys()) {
    if (!key.path.starts_with(section) || key.path[section.size()] != '.')
      continue;
    if (auto text = explain(config, key.path))
      explained.push_back(std::move(*text));
  }
  return base::join(explained, "\n");
}

/// What set the key, or names below it if it is a map; the last one first.
std::vector<Assignment> assignments_of(const Config& config,
                                       const Key& key,
                                       std::string_view path) {
  const std::string below = std::string(path) + ".";
  std::vector<Assignment> assignments;
  for (const Assignment& assignment : config.history) {
    const bool is_in_map = key.type == KeyType::kMap && assignment.key.starts_with(below);
    if (assignment.key == path || is_in_map)
      assignments.push_back(assignment);
  }
  std::ranges::reverse(assignments);
  return assignments;
}

}  // namespace

const Value* Config::get(std::string_view path) const {
  const Value* value = at_path(root, path);
  if (value == nullptr || value->is_null())
    return nullptr;
  return value;
}

bool Config::flag(std::string_view path, bool fallback) const {
  const Value* value = get(path);
  if (value == nullptr || value->kind != Kind::kBool)
    return fallback;
  return value->boolean;
}

std::optional<std::int64_t> Config::integer(std::string_view path) const {
  const Value* value = get(path);
  if (value == nullptr || value->kind != Kind::kInt)
    return std::nullopt;
  return value->integer;
}

std::optional<std::string> Config::text(std::string_view path) const {
  const Value* value = get(path);
  if (value == nullptr || !value->is_scalar())
    return std::nullopt;
  return value->text;
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
  if (!written)
    return std::nullopt;
  const auto duration_ns = parse_duration(*written);
  if (!duration_ns)
    return std::nullopt;
  return std::chrono::nanoseconds(*duration_ns);
}

Origin Config::origin(std::string_view path) const {
  const Value* value = at_path(root, path);
  if (value == nullptr)
    return {};
  return value->origin;
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
  const fs::path installed = bin.parent_path() / "share" / "rangescope" / "conf";
  std::vector<fs::path> places{installed};
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
    return explain_section(config, path);
  }
  std::string out = std::string(path) + "\n";
  out += "  " + std::string(key->about) + "\n";
  out += "  type:  " + describe(*key) + "\n";
  if (!key->flag.empty())
    out += "  flag:  " + std::string(key->flag) + "\n";
  std::string value_text = "(not set)";
  if (const Value* value = at_path(config.root, path))
    value_text = to_flow(*value);
  out += "  value: " + value_text + "\n";
  std::string verb = "  set by ";
  for (const Assignment& assignment : assignments_of(config, *key, path)) {
    out += verb + to_string(assignment.origin) + ": ";
    if (assignment.key != path)
      out += assignment.key.substr(path.size() + 1) + " = ";
    out += assignment.value + "\n";
    verb = "  before ";
  }
  return out;
}

}  // namespace rangescope::config
