#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "base/removed.hpp"
#include "base/text.hpp"
#include "cli/bind.hpp"
#include "cli/destination.hpp"
#include "profile/jobs.hpp"

namespace rangescope::cli {

/// Narrower tables have no room for names and numbers; 0 is no limit.
std::size_t width_of(const std::string& text) {
  constexpr std::int64_t kNarrowest = 32;
  const auto columns = base::to_int(text);
  if (!columns || (*columns != 0 && *columns < kNarrowest))
    refuse("--width",
           "'" + base::printable(text) + "' is not the width of a table",
           fmt::format("Write {} or more columns, or 0 for no limit", kNarrowest));
  return static_cast<std::size_t>(*columns);
}

void bind_destination(const Arguments& command, ReportChoice& choice) {
  const Arguments app = command.under("Report");
  app.add_option("-o,--output", choice.to);
  app.add_flag("--raw-cells", choice.raw_cells);
  app.add_option("--color", choice.color).one_of({"auto", "always", "never"});
  app.add_option("--width", [&choice](const std::string& text) { choice.width = width_of(text); });
}

void bind_json(const Arguments& app, std::string& format) {
  app.under("Report").add_flag("--json", [&format] { format = "json"; });
}

/// A name without an ending is of a table, as is a log; report.v2 has none.
void check_ending(const std::string& to, const std::vector<FormatName>& formats) {
  const std::string ending = std::filesystem::path(to).extension().string();
  const bool letters =
      ending.size() > 1 && std::all_of(ending.begin() + 1, ending.end(), [](unsigned char c) {
        return std::isalpha(c) != 0;
      });
  if ((!letters && ending != ".gz") || ending == ".log" || ending == ".out" ||
      to.starts_with("/dev/"))
    return;
  std::vector<std::string> known;
  for (const FormatName& format : formats)
    known.push_back("." + std::string(format.extension));
  refuse("--output",
         "no format has the file extension '" + base::printable(ending) + "'",
         "Use one of " + base::join(known, " ") + ", or name the format: -f " +
             std::string(formats.front().name));
}

/// x.trace.json would else be a report in JSON.
void check_removed_ending(const std::string& to) {
  const std::string name = std::filesystem::path(to).filename().string();
  for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
    const std::string ending = name.substr(dot), hint = base::removal_hint("-o FILE" + ending);
    if (hint.empty())
      continue;
    refuse("--output", "no format has the file extension '" + base::printable(ending) + "'", hint);
  }
}

/// Endings that people expect, and no report has.
void check_office_ending(const std::string& to) {
  for (const std::string_view ending : {".pdf", ".png", ".jpg", ".svg", ".docx", ".xlsx", ".ods"}) {
    if (!to.ends_with(ending))
      continue;
    std::string hint = "Write -o report.html and print the page";
    if (ending == ".xlsx" || ending == ".ods")
      hint = "Write -o report.csv and open that file";
    refuse("--output", "there is no output format " + std::string(ending), hint);
  }
}

void choose_format_by_ending(const Arguments& app,
                             const std::vector<FormatName>& formats,
                             ReportChoice& choice) {
  app.when_parsed([app, formats, &choice] {
    check_office_ending(choice.to);
    if (!app.results("--format").empty() || !app.results("--json").empty())
      return;
    check_removed_ending(choice.to);
    std::size_t longest = 0;  // x.speedscope.json is speedscope's
    for (const FormatName& format : formats) {
      const std::string_view ending = format.extension;
      if (ending.size() <= longest || !choice.to.ends_with("." + std::string(ending)))
        continue;
      longest = ending.size();
      choice.format = format.name;
    }
    if (longest > 0)
      return;
    const auto dot = choice.to.rfind('.');
    const auto named = std::ranges::find(formats, choice.to.substr(dot + 1), &FormatName::name);
    if (dot != std::string::npos && named != formats.end()) {  // x.perfetto
      choice.format = named->name;
      return;
    }
    check_ending(choice.to, formats);
  });
}

void bind_format(const Arguments& app,
                 const std::vector<FormatName>& formats,
                 ReportChoice& choice) {
  std::vector<std::string> names;
  for (const FormatName& format : formats)
    names.emplace_back(format.name);
  app.add_option("-f,--format", choice.format).type_name(base::join(names, "|"));
  bind_json(app, choice.format);
  choose_format_by_ending(app, formats, choice);
}

/// --columns a,b --columns c
void bind_columns(const Arguments& app, std::vector<std::string>& columns) {
  using Take = std::function<void(const std::vector<std::string>&)>;
  const Take split_names = [&columns](const auto& all) {
    columns.clear();
    for (const std::string& names : all)
      for (const std::string_view name : base::split(names, ','))
        columns.emplace_back(name);
  };
  app.add_option("--columns", split_names).repeated();
}

void bind_report(const Arguments& command, ReportChoice& choice) {
  const Arguments app = command.under("Report");
  std::vector<FormatName> formats;
  for (const auto& exporter : report::exporters())
    formats.push_back({exporter.name, exporter.extension});
  bind_format(app, formats, choice);
  bind_destination(app, choice);
  app.add_count("--depth", choice.style.depth);
  app.add_option("--sort", choice.style.sort);
  app.add_count("--top", choice.style.top);
  app.add_flag("--all", choice.style.all);
  app.add_flag("--flat", choice.style.flat);
  app.add_flag("--per-rank", choice.style.per_rank);
  bind_columns(app, choice.style.columns);
  app.add_count("--top-kernels", choice.style.top_kernels);
  app.add_flag("--explain", choice.style.explain);
}

void bind_read(const Arguments& command, read::Options& options) {
  const Arguments app = command.under("Reading");
  using Take = std::function<void(const std::vector<std::string>&)>;
  const Take take_ranks = [&options](const auto& texts) {
    auto ranks = profile::parse_ranks(texts, "--rank");
    if (!ranks)
      refuse("--rank", ranks.error().what, ranks.error().hint);
    options.ranks = std::move(*ranks);
  };
  app.add_option("--rank", take_ranks).repeated();
  app.add_option("--nsys", options.nsys_path);
  app.add_option("--number-format", options.number_format).one_of({"C", "en", "de", "fr"});
}

void bind_comparison(const Arguments& command,
                     profile::SideOptions& from,
                     analyze::CompareOptions& options,
                     std::vector<std::string>& renames) {
  command.add_option("--runs", from.root);
  command.add_option("--nsys", from.nsys);
  const Arguments app = command.under("Comparison");
  app.add_option("--metric", options.values).repeated();
  bind_terms(app, "--region", options.regions, options.ranges.notes);
  bind_ranges(app, options.ranges);
  app.add_option("--rename", renames).repeated();
}

base::Result<void> finish_comparison(analyze::CompareOptions& options,
                                     const std::vector<std::string>& renames) {
  for (const std::string& rename : renames) {
    const auto equals = rename.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == rename.size())
      return base::fail(base::Code::kUsage,
                        "'" + base::printable(rename) + "' is not a renaming",
                        "--rename",
                        "Write --rename 'old name=new name'");
    options.renames[rename.substr(0, equals)] = rename.substr(equals + 1);
  }
  return {};
}

}  // namespace rangescope::cli
