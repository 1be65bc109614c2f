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

/// "--nvtx-include" at `begin`, without what follows.
std::string long_option(std::string_view text, std::size_t begin) {
  std::size_t end = begin + 2;
  while (end < text.size() && option_char(text[end]))
    ++end;
  std::string name(text.substr(begin, end - begin));
  while (name.ends_with('-'))
    name.pop_back();
  if (name.size() <= 2)
    return {};
  return name;
}

bool is_value(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), value_char) &&
         word.front() != '-' && !word.ends_with('.');
}

}  // namespace

bool Abilities::takes(std::string_view option, std::string_view value) const {
  const auto found = options.find(std::string(option));
  if (found == options.end())
    return false;
  const auto& values = found->second;
  return values.empty() || std::find(values.begin(), values.end(), value) != values.end();
}

std::vector<std::string> Abilities::option_names() const {
  std::vector<std::string> names;
  for (const auto& [name, unused] : options)
    names.push_back(name);
  return names;
}

std::map<std::string, std::vector<std::string>> parse_ncu_help(std::string_view help) {
  std::map<std::string, std::vector<std::string>> options;
  std::vector<std::string>* current = nullptr;
  for (const std::string_view line : base::split(help, '\n')) {
    const std::size_t indent = line.find_first_not_of(' ');
    if (indent == std::string_view::npos)
      continue;
    if (indent <= 2 && line[indent] == '-') {  // "  -k [ --kernel-name ] arg" or "  --set arg text"
      current = nullptr;
      const auto dashes = line.find("--");
      std::string name;
      if (dashes != std::string_view::npos)
        name = long_option(line, dashes);
      if (!name.empty())
        current = &options[name];
      continue;
    }
    // The column of texts is at 30 or more; values are indented further than prose, to 41 ... 44.
    if (indent < 30)
      current = nullptr;
    if (!current || indent < 41 || indent > 44)
      continue;
    // A value is alone on its line, or before a colon or "(default)".
    std::string_view text = base::trim(line);
    text = base::trim(text.substr(0, text.find(':')));
    if (text.ends_with("(default)"))
      text = base::trim(text.substr(0, text.size() - 9));
    if (is_value(text))
      current->emplace_back(text);
  }
  return options;
}

namespace {

/// The options of a heading: "--sample=", or both of "--nvtx-domain-[include|exclude]=".
std::vector<std::string> options_of_heading(std::string_view line) {
  const std::size_t start = line.find("--");
  const auto open = line.find("-[");
  if (open == std::string_view::npos) {
    const std::string name = long_option(line, start);
    if (name.empty())
      return {};
    return {name};
  }
  std::vector<std::string> names;
  const std::string prefix(line.substr(start, open + 1 - start));
  const auto close = line.find(']', open);
  for (const std::string_view part : base::split(line.substr(open + 2, close - open - 2), '|'))
    names.push_back(prefix + std::string(part));
  return names;
}

/// "\t--sample=", "\t-s, --sample="
bool is_heading(std::string_view line) {
  constexpr std::size_t kMaxStart = 20;
  if (!line.starts_with('\t') || line.size() < 2 || line[1] == ' ')
    return false;
  return base::trim(line).find("--") < kMaxStart;
}

/// The values in "'none', 'system-wide' or 'process-tree'".
std::vector<std::string> values_in(std::string_view text) {
  static constexpr std::string_view kFillers[] = {"or", "and", "for", "example"};
  std::string words(text);
  for (const std::string_view separator : {",", ":"})
    words = base::replace_all(words, separator, " ");
  std::vector<std::string> values;
  for (std::string_view word : base::split(words, ' ')) {
    word = base::trim(word);
    const auto is_quote = [](char c) { return c == '\'' || c == '`'; };
    while (!word.empty() && is_quote(word.front()))
      word.remove_prefix(1);
    while (!word.empty() && is_quote(word.back()))
      word.remove_suffix(1);
    const bool is_filler = std::ranges::find(kFillers, word) != std::end(kFillers);
    if (!is_filler && is_value(word))
      values.emplace_back(word);
  }
  return values;
}

/// A word of prose instead of a value: "integers between 1 and 32", "signal number",
/// "`range@domain' to specify ...". Values with parts ("repeat:N") cannot be checked either.
bool is_prose(const std::string& word) {
  static constexpr std::string_view kProse[] = {"integers",
                                                "signal",
                                                "specify",
                                                "comma-separated",
                                                "ID",
                                                "a",
                                                "repeat",
                                                "repeat-shutdown",
                                                "to",
                                                "F1"};
  if (std::ranges::find(kProse, word) != std::end(kProse))
    return true;
  return word.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

std::map<std::string, std::vector<std::string>> parse_nsys_help(std::string_view help) {
  constexpr std::string_view kListStart = "ossible values are";
  std::map<std::string, std::vector<std::string>> options;
  std::vector<std::string> current;  // options that the paragraph is about
  bool is_listing = false;
  for (const std::string_view raw : base::split(help, '\n')) {
    std::string_view text = base::trim(raw);
    if (is_heading(raw)) {
      is_listing = false;
      current = options_of_heading(text);
      for (const std::string& name : current)
        options[name];
      continue;
    }
    const auto list_start = text.find(kListStart);
    const bool starts_list = list_start != std::string_view::npos && !current.empty() &&
                             options[current.front()].empty();
    if (starts_list) {
      is_listing = true;
      text.remove_prefix(list_start + kListStart.size());
    }
    if (!is_listing)
      continue;
    const auto stop = text.find('.');
    for (const std::string& value : values_in(text.substr(0, stop)))
      for (const std::string& name : current)
        options[name].push_back(value);
    is_listing = stop == std::string_view::npos;
  }
  for (auto& [name, values] : options)
    if (std::ranges::any_of(values, is_prose))
      values.clear();
  return options;
}

namespace {

/// Where each column starts, from a rule of dashes.
std::vector<std::size_t> column_starts(std::string_view rule) {
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < rule.size(); ++i) {
    const bool follows_blank = i == 0 || rule[i - 1] == ' ';
    if (rule[i] == '-' && follows_blank)
      starts.push_back(i);
  }
  return starts;
}

/// The third column of `ncu --list-sets`; "" if the line is shorter.
std::string_view enabled_cell(std::string_view line, const std::vector<std::size_t>& columns) {
  if (line.size() <= columns[2])
    return {};
  if (columns.size() > 3)
    line = line.substr(0, columns[3]);
  return base::trim(line.substr(columns[2]));
}

}  // namespace

void parse_ncu_sets(std::string_view text, Abilities& into) {
  std::vector<std::size_t> columns;
  std::string current, sections;
  const auto finish = [&] {
    if (current.empty())
      return;
    for (const std::string_view section : base::split(sections, ','))
      into.sets[current].emplace_back(base::trim(section));
  };
  bool in_heading = false;
  for (const std::string_view line : base::split(text, '\n')) {
    if (line.starts_with("-----")) {
      in_heading = columns.empty();
      if (in_heading)
        columns = column_starts(line);
      continue;
    }
    if (columns.size() < 3 || in_heading || line.size() < columns[1]) {
      if (line.starts_with("Identifier"))
        in_heading = false;
      continue;
    }
    const std::string_view name = base::trim(line.substr(0, columns[1]));
    const std::size_t width = columns[2] - columns[1];
    std::string_view piece = line.substr(columns[1], width);
    while (piece.ends_with(' '))
      piece.remove_suffix(1);
    if (!name.empty()) {
      finish();
      current = name;
      sections.clear();
      if (enabled_cell(line, columns) == "yes")
        into.default_set = current;
      into.sets[current];
    }
    // Long cells are cut at the width of the column, also within words.
    sections += piece;
    if (piece.size() == width - 1 && piece.ends_with(','))
      sections += ' ';
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
    if (is_value(name))
      names.emplace(name);
  }
  return names;
}

std::set<std::string> parse_ncu_metrics(std::string_view text) {
  std::set<std::string> names;
  for (const std::string_view line : base::split(text, '\n')) {
    const std::string_view name = line.substr(0, line.find(' '));
    if (name.find("__") != std::string_view::npos && is_value(name))
      names.emplace(name);
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
    if (!shared || blank == std::string_view::npos || *shared > last.size())
      continue;
    last = last.substr(0, *shared) + std::string(line.substr(blank + 1));
    names.insert(last);
  }
  return names;
}

}  // namespace

base::Result<Abilities> newest_known(std::string_view tool, const std::filesystem::path& folder) {
  base::Result<Abilities> newest = base::fail(base::Code::kNoInput,
                                              "no version of " + std::string(tool) + " is known",
                                              folder.string(),
                                              "Install rangescope anew.");
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (!entry.path().filename().string().starts_with(std::string(tool) + "-"))
      continue;
    const auto text = base::read_file(entry.path());
    if (!text)
      continue;
    auto read = from_json(*text);
    if (read && (!newest || newest->version < read->version))
      newest = std::move(read);
  }
  if (!newest)
    return newest;
  newest->path = tool;
  if (const auto names = base::read_file(folder / "ncu-metrics.txt"); tool == "ncu" && names) {
    newest->metrics = catalogue(*names);
    newest->metrics_elsewhere = true;
  }
  return newest;
}

}  // namespace rangescope::collect
