#include "config/layer.hpp"

#include <algorithm>
#include <set>

#include "base/fs.hpp"
#include "base/text.hpp"
#include "config/schema.hpp"
#include "config/yaml.hpp"

namespace rangescope::config {
namespace {

constexpr std::string_view kPackage = "@package";

std::string in_backticks(std::string_view line) {
  return "`" + base::printable(line) + "`";
}

/// The lines that open a section: "`pipeline:` and `  ncu:`".
std::string opening_lines(std::string_view section) {
  std::vector<std::string> lines;
  for (const std::string_view name : base::split(section, '.')) {
    const std::string indentation(2 * lines.size(), ' ');
    lines.push_back(in_backticks(indentation + std::string(name) + ":"));
  }
  return base::join(lines, " and ");
}

/// "4 spaces": how far the keys of a section are indented.
std::string spaces_inside(std::string_view section) {
  const auto depth = 1 + std::ranges::count(section, '.');
  return std::to_string(2 * depth) + " spaces";
}

std::string instead_of_package(std::string_view package) {
  const bool is_place = !package.empty() && (find_key(package) != nullptr || is_section(package));
  if (!is_place)
    return "Remove this line, and write each key inside its sections, as `rangescope config show` "
           "does.";
  const std::string lines = opening_lines(package);
  return "Write " + lines + " in its place, and indent the rest by " + spaces_inside(package) + ".";
}

/// Refuses a comment `# @package NAME` before the first key: that is where Hydra reads it.
base::Result<void> refuse_package_comment(std::string_view text, const std::string& file) {
  Origin line_origin{.source = Source::kUserFile, .name = file, .column = 1};
  for (const std::string_view line : base::split(text, '\n')) {
    ++line_origin.line;
    const std::string_view content = base::trim(line);
    if (content.empty())
      continue;
    if (!content.starts_with('#'))
      return {};
    const std::string_view comment = base::trim(content.substr(1));
    if (!comment.starts_with(kPackage))
      continue;
    return refused("`# @package` is not supported: keys are nested from the root",
                   line_origin,
                   instead_of_package(base::trim(comment.substr(kPackage.size()))));
  }
  return {};
}

/// "ncu" of `- ncu: quick`, `- override /ncu: quick` and `- profiling/ncu@pipeline.ncu: quick`.
std::string group_of_default(std::string_view written) {
  const std::string_view without_package = base::trim(written.substr(0, written.find('@')));
  return std::string(without_package.substr(without_package.find_last_of("/ ") + 1));
}

/// An option whose list names others (`- quick`) was built on them.
std::string instead_of_defaults_of_option(const Value& list) {
  std::vector<std::string> bases;
  for (const Value& item : list.items)
    if (item.is_scalar() && item.text != "_self_" && item.text != "default")
      bases.push_back(base::printable(item.text) + ".yaml");
  if (bases.empty())
    return "Remove it: an option always lies over conf/config.yaml.";
  return "Remove it, and copy the keys that you need from " + base::join(bases, " and ") + ".";
}

std::string instead_of_defaults(const Value& list, const Groups& groups) {
  std::vector<std::string> choices;
  for (const Value& item : list.items) {
    if (!item.is_map() || item.entries.empty())
      continue;
    const Entry& written = item.entries.front();
    const std::string name = group_of_default(written.key);
    if (groups.count(name) > 0 && written.value.is_scalar())
      choices.push_back(in_backticks(name + ": " + to_flow(written.value)));
  }
  if (choices.empty())
    return "Remove it: a file always lies over conf/config.yaml and the chosen options of groups.";
  return "Write " + base::join(choices, " and ") + " in its place, not indented.";
}

/// Every section: "pipeline", "pipeline.ncu", "pipeline.ncu.ncu_cli", ...
std::set<std::string> sections() {
  std::set<std::string> found;
  for (const Key& key : keys())
    for (std::size_t end = key.path.find('.'); end < key.path.size();
         end = key.path.find('.', end + 1))
      found.emplace(key.path.substr(0, end));
  return found;
}

bool has_names(const std::string& section, std::span<const std::string> names) {
  return std::ranges::all_of(names, [&](const std::string& name) {
    const std::string path = joined_path(section, name);
    return find_key(path) != nullptr || is_section(path);
  });
}

}  // namespace

base::Result<Layer> read_layer(const std::filesystem::path& path,
                               const std::string& group,
                               const Groups& groups,
                               Source source) {
  const auto text = TRY(base::read_regular(path, kMostYamlBytes));
  Layer layer{path.string(), group, {}};
  TRY(refuse_package_comment(text, layer.file));
  layer.values = TRY(parse_yaml(text, layer.file, source));
  if (const Value* list = layer.values.find("defaults")) {
    const bool is_option = !group.empty();
    std::string hint;
    if (is_option)
      hint = instead_of_defaults_of_option(*list);
    else
      hint = instead_of_defaults(*list, groups);
    return refused("defaults lists are not supported", list->origin, std::move(hint));
  }
  return layer;
}

std::string indentation_hint(std::span<const std::string> names, const std::string& group) {
  if (names.empty())
    return {};
  std::set<std::string> fitting = sections();
  std::erase_if(fitting, [&](const std::string& section) { return !has_names(section, names); });
  if (fitting.size() > 1) {
    const std::string ending = "." + group;
    std::erase_if(fitting, [&](const std::string& section) { return !section.ends_with(ending); });
  }
  if (fitting.size() != 1)
    return {};

  const std::string& section = *fitting.begin();
  std::vector<std::string> lines;
  for (const std::string& name : names)
    lines.push_back(in_backticks(name + ":"));
  const std::string below = lines.size() == 1 ? "it" : "them";
  return "Write " + opening_lines(section) + " above " + lines.front() + ", and indent " +
         base::join(lines, ", ") + " and the lines below " + below + " by " +
         spaces_inside(section) + ".";
}

}  // namespace rangescope::config
