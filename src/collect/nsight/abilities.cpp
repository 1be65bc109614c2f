#include "collect/nsight/abilities.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/fs.hpp"
#include "base/text.hpp"

namespace rangescope::collect {
namespace {

bool option_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}
bool value_char(char c) {
  return option_char(c) || (c >= 'A' && c <= 'Z') || c == '_' || c == '+' || c == '.';
}

/// "--nvtx-include" at `at`, without what follows.
std::string long_option(std::string_view text, std::size_t at) {
  std::size_t end = at + 2;
  while (end < text.size() && option_char(text[end])) ++end;
  std::string name(text.substr(at, end - at));
  while (name.ends_with('-')) name.pop_back();
  return name.size() > 2 ? name : std::string{};
}

bool is_value(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), value_char) &&
         word.front() != '-' && !word.ends_with('.');
}

}  // namespace

bool Abilities::takes(std::string_view option, std::string_view value) const {
  const auto found = options.find(std::string(option));
  if (found == options.end()) return false;
  const auto& values = found->second;
  return values.empty() || std::find(values.begin(), values.end(), value) != values.end();
}

std::vector<std::string> Abilities::option_names() const {
  std::vector<std::string> names;
  for (const auto& [name, unused] : options) names.push_back(name);
  return names;
}

std::map<std::string, std::vector<std::string>> parse_ncu_help(std::string_view help) {
  std::map<std::string, std::vector<std::string>> options;
  std::vector<std::string>* current = nullptr;
  for (const std::string_view line : base::split(help, '\n')) {
    const std::size_t indent = line.find_first_not_of(' ');
    if (indent == std::string_view::npos) continue;
    if (indent <= 2 && line[indent] == '-') {  // "  -k [ --kernel-name ] arg" or "  --set arg text"
      const auto dashes = line.find("--");
      const std::string name =
          dashes == std::string_view::npos ? std::string{} : long_option(line, dashes);
      current = name.empty() ? nullptr : &options[name];
      continue;
    }
    if (indent < 30 || !current) {
      current = indent < 30 ? nullptr : current;
      continue;
    }
    // A value is alone on its line, or before "(default)" or a colon, a little further in than the
    // prose.
    std::string_view text = base::trim(line);
    if (indent < 41) continue;
    if (const auto colon = text.find(':'); colon != std::string_view::npos && indent <= 44)
      text = base::trim(text.substr(0, colon));
    if (text.ends_with("(default)")) text = base::trim(text.substr(0, text.size() - 9));
    if (is_value(text) && indent <= 44) current->emplace_back(text);
  }
  return options;
}

std::map<std::string, std::vector<std::string>> parse_nsys_help(std::string_view help) {
  std::map<std::string, std::vector<std::string>> options;
  std::vector<std::string> current;  // options that the paragraph is about
  bool listing = false;
  for (const std::string_view raw : base::split(help, '\n')) {
    const std::string_view line = base::trim(raw);
    const bool heading = raw.starts_with('\t') && raw.size() > 1 && raw[1] != ' ' &&
                         line.find("--") != std::string_view::npos && line.find("--") < 20;
    if (heading) {
      listing = false;
      current.clear();
      const std::size_t at = line.find("--");
      if (const auto open = line.find("-[");
          open != std::string_view::npos) {  // "--nvtx-domain-[include|exclude]="
        const auto close = line.find(']', open);
        for (const std::string_view part :
             base::split(line.substr(open + 2, close - open - 2), '|'))
          current.push_back(std::string(line.substr(at, open + 1 - at)) + std::string(part));
      } else if (const std::string name = long_option(line, at); !name.empty()) {
        current.push_back(name);
      }
      for (const std::string& name : current) options[name];
      continue;
    }
    std::string_view text = line;
    if (const auto begin = line.find("ossible values are");
        begin != std::string_view::npos && !current.empty() && options[current.front()].empty()) {
      listing = true;
      text = line.substr(begin + 18);
    }
    if (!listing) continue;
    const auto stop = text.find('.');
    const std::string words =
        base::replace_all(base::replace_all(std::string(text.substr(0, stop)), ",", " "), ":", " ");
    for (std::string_view word : base::split(words, ' ')) {
      word = base::trim(word);
      while (!word.empty() && (word.front() == '\'' || word.front() == '`')) word.remove_prefix(1);
      while (!word.empty() && (word.back() == '\'' || word.back() == '`')) word.remove_suffix(1);
      if (word == "or" || word == "and" || word == "for" || word == "example" || !is_value(word))
        continue;
      for (const std::string& name : current) options[name].emplace_back(word);
    }
    listing = stop == std::string_view::npos;
  }
  // Prose where values were expected ("integers between 1 and 32", "signal number", "`range@domain'
  // to specify ..."), and values with parts of their own, cannot be checked.
  for (auto& [name, values] : options) {
    const bool prose = std::any_of(values.begin(), values.end(), [](const std::string& v) {
      return v == "integers" || v == "signal" || v == "specify" || v == "comma-separated" ||
             v == "ID" || v == "a" || v == "repeat" || v == "repeat-shutdown" || v == "to" ||
             v == "F1" || v.find_first_not_of("0123456789") == std::string::npos;
    });
    if (prose) values.clear();
  }
  return options;
}

void parse_ncu_sets(std::string_view text, Abilities& into) {
  std::vector<std::size_t> columns;  // where each starts, from the rule of dashes
  std::string current, joined;
  const auto finish = [&] {
    if (current.empty()) return;
    for (const std::string_view section : base::split(joined, ','))
      into.sets[current].emplace_back(base::trim(section));
  };
  bool heading = false;
  for (const std::string_view line : base::split(text, '\n')) {
    if (line.starts_with("-----")) {
      if (columns.empty()) {
        for (std::size_t at = 0; at < line.size(); ++at)
          if (line[at] == '-' && (at == 0 || line[at - 1] == ' ')) columns.push_back(at);
        heading = true;
      } else {
        heading = false;
      }
      continue;
    }
    if (columns.size() < 3 || heading || line.size() < columns[1]) {
      heading = heading && !line.starts_with("Identifier");
      continue;
    }
    const std::string_view name = base::trim(line.substr(0, columns[1]));
    // Long cells are cut at the column's width without regard to words: join the pieces as they
    // are.
    std::string_view piece = line.substr(columns[1], columns[2] - columns[1]);
    while (piece.ends_with(' ')) piece.remove_suffix(1);
    if (!name.empty()) {
      finish();
      current = name;
      joined.clear();
      const std::string_view enabled =
          line.size() > columns[2]
              ? base::trim(line.substr(columns[2], columns.size() > 3 ? columns[3] - columns[2]
                                                                      : std::string_view::npos))
              : std::string_view{};
      if (enabled == "yes") into.default_set = current;
      into.sets[current];
    }
    joined += piece;
    if (piece.size() == columns[2] - columns[1] - 1 - 0 && piece.ends_with(',')) joined += ' ';
  }
  finish();
}

std::set<std::string> parse_ncu_sections(std::string_view text) {
  std::set<std::string> names;
  bool table = false;
  for (const std::string_view line : base::split(text, '\n')) {
    if (line.starts_with("-----")) {
      table = true;
      continue;
    }
    if (!table || line.starts_with("Identifier") || line.starts_with(' ') || line.starts_with("=="))
      continue;
    const std::string_view name = line.substr(0, line.find(' '));
    if (is_value(name)) names.emplace(name);
  }
  return names;
}

std::set<std::string> parse_ncu_metrics(std::string_view text) {
  std::set<std::string> names;
  for (const std::string_view line : base::split(text, '\n')) {
    const std::string_view name = line.substr(0, line.find(' '));
    if (name.find("__") != std::string_view::npos && is_value(name)) names.emplace(name);
  }
  return names;
}

std::string to_json(const Abilities& a) {
  nlohmann::ordered_json json;
  json["schema"] = "rangescope.tool-abilities/1";
  json["tool"] = a.tool;
  json["path"] = a.path.string();
  json["version"] = {a.version.year, a.version.release, a.version.patch};
  json["version_text"] = a.version_text;
  json["options"] = a.options;
  json["sets"] = a.sets;
  json["default_set"] = a.default_set;
  json["sections"] = a.sections;
  json["metrics"] = a.metrics;
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

base::Result<Abilities> from_json(std::string_view text) {
  try {
    const auto json = nlohmann::json::parse(text);
    if (json.at("schema") != "rangescope.tool-abilities/1")
      return base::fail(base::Code::kBadData, "another schema of tool abilities");
    Abilities a;
    a.tool = json.at("tool");
    a.path = json.at("path").get<std::string>();
    const auto& version = json.at("version");
    a.version = {version.at(0), version.at(1), version.at(2)};
    a.version_text = json.at("version_text");
    json.at("options").get_to(a.options);
    json.at("sets").get_to(a.sets);
    a.default_set = json.at("default_set");
    json.at("sections").get_to(a.sections);
    json.at("metrics").get_to(a.metrics);
    return a;
  } catch (const std::exception& error) {
    return base::fail(base::Code::kBadData, std::string("damaged tool abilities: ") + error.what());
  }
}

namespace {

/// Names of which each line gives the characters that it shares with the one before, and the rest.
std::set<std::string> catalogue(std::string_view text) {
  std::set<std::string> names;
  std::string last;
  for (const std::string_view line : base::split(text, '\n')) {
    const auto blank = line.find(' ');
    const auto shared = base::to_uint(line.substr(0, blank));
    if (!shared || blank == std::string_view::npos || *shared > last.size()) continue;
    last = last.substr(0, *shared) + std::string(line.substr(blank + 1));
    names.insert(last);
  }
  return names;
}

}  // namespace

base::Result<Abilities> newest_known(std::string_view tool, const std::filesystem::path& folder) {
  base::Result<Abilities> newest =
      base::fail(base::Code::kNoInput, "no version of " + std::string(tool) + " is known",
                 folder.string(), "Install rangescope anew.");
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (!entry.path().filename().string().starts_with(std::string(tool) + "-")) continue;
    const auto text = base::read_file(entry.path());
    auto read =
        text ? from_json(*text) : base::Result<Abilities>(tl::make_unexpected(text.error()));
    if (read && (!newest || newest->version < read->version)) newest = std::move(read);
  }
  if (!newest) return newest;
  newest->path = tool;
  if (const auto names = base::read_file(folder / "ncu-metrics.txt"); tool == "ncu" && names) {
    newest->metrics = catalogue(*names);
    newest->metrics_elsewhere = true;
  }
  return newest;
}

}  // namespace rangescope::collect
