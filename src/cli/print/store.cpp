#include "cli/print/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/table.hpp"
#include "base/text.hpp"
#include "model/measure.hpp"
#include "report/document/document.hpp"
#include "report/document/markup_text.hpp"
#include "report/document/view.hpp"
#include "report/sink.hpp"
#include "runs/manifest.hpp"

namespace rangescope::cli {
namespace {

std::string short_commit(const std::string& commit, bool dirty) {
  return commit.empty() ? "-" : commit.substr(0, 10) + (dirty ? "+" : "");
}

/// "2026-01-02 03:04"
std::string minute_text(std::int64_t unix_ns) {
  std::string text = runs::utc_text(unix_ns).substr(0, 16);
  text[10] = ' ';
  return text;
}

std::string_view unit_of(const std::string& tag) {
  const model::Measure* measure = model::find_measure(tag);
  return measure != nullptr ? model::unit_name(measure->unit) : std::string_view();
}

struct HistoryRow {
  const runs::HistoryPoint* point;
  double least, median, most;
  std::optional<double> change;  ///< from the one before on that machine
};

std::vector<HistoryRow> history_rows(const runs::History& history) {
  std::vector<HistoryRow> rows;
  std::map<std::string, double> before;
  for (const runs::HistoryPoint& point : history.points) {
    const auto& values = point.values;
    const std::size_t half = values.size() / 2;
    const double median = values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
    HistoryRow row{&point, values.front(), median, values.back(), {}};
    const auto found = before.find(point.machine);
    if (found != before.end() && found->second > 0) row.change = median / found->second - 1;
    before[point.machine] = median;
    rows.push_back(row);
  }
  return rows;
}

std::string change_text(const HistoryRow& row) {
  return row.change ? fmt::format("{:+.1f} %", *row.change * 100) : "-";
}

/// Medians over the pushes in order, a line for each machine.
std::string plot(const std::vector<HistoryRow>& rows, std::string_view unit) {
  constexpr double kWidth = 960, kHeight = 300, kLeft = 90, kTop = 12, kBottom = 30;
  constexpr std::string_view kColors[] = {"#2f6fde", "#d9822b", "#0b7a3e", "#a3319b", "#8a6d00", "#5d6878"};
  double most = 0;
  for (const HistoryRow& row : rows) most = std::max(most, row.most);
  if (most <= 0) most = 1;
  const auto x = [&](std::size_t i) {
    return kLeft + (static_cast<double>(i) + 0.5) * (kWidth - kLeft) / static_cast<double>(rows.size());
  };
  const auto y = [&](double value) { return kTop + (1 - value / most) * (kHeight - kTop - kBottom); };
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"history\">\n", kWidth, kHeight);
  for (int tick = 0; tick <= 4; ++tick) {
    const double value = most * tick / 4;
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/><text x=\"{}\" y=\"{:.1f}\">{}</text>\n",
        kLeft, kWidth, y(value), y(value), kLeft - 6, y(value) + 4,
        report::markup_escaped(report::format_value(value, unit)));
  }
  std::map<std::string, std::vector<std::size_t>> machines;
  for (std::size_t i = 0; i < rows.size(); ++i) machines[rows[i].point->machine].push_back(i);
  std::size_t color = 0;
  for (const auto& [machine, points] : machines) {
    const std::string_view stroke = kColors[color++ % std::size(kColors)];
    std::string line;
    for (const std::size_t i : points) line += fmt::format("{:.1f},{:.1f} ", x(i), y(rows[i].median));
    svg += fmt::format("<g stroke=\"{}\" fill=\"{}\"><polyline fill=\"none\" points=\"{}\"/>\n", stroke, stroke, line);
    for (const std::size_t i : points) {
      const HistoryRow& row = rows[i];
      svg += fmt::format(
          "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/><circle cx=\"{0:.1f}\" cy=\"{3:.1f}\" "
          "r=\"4\"><title>{4}</title></circle>\n",
          x(i), y(row.least), y(row.most), y(row.median),
          report::markup_escaped(fmt::format("{} {} {}: {}", minute_text(row.point->began_unix_ns), row.point->name,
                                             short_commit(row.point->commit, row.point->dirty),
                                             report::format_value(row.median, unit))));
    }
    svg += "</g>\n";
  }
  return svg + "</svg>\n";
}

/// A line a push, below the name of the region.
report::Document history_document(const runs::History& history, const std::string& tag) {
  report::Grid grid({{"began (UTC)", false},
                     {"run", false, true},
                     {"commit", false},
                     {"machine", false, false, 1},
                     {"runs", true, false, 2},
                     {tag, true},
                     {"change", true}});
  for (const HistoryRow& row : history_rows(history))
    grid.add({{minute_text(row.point->began_unix_ns)},
              {row.point->name},
              {short_commit(row.point->commit, row.point->dirty)},
              {row.point->machine},
              {std::to_string(row.point->values.size())},
              {report::format_value(row.median, unit_of(tag))},
              {change_text(row)}});
  report::Document page;
  page.begin(history.region + ": " + tag, false).add(std::move(grid));
  return page;
}

constexpr std::string_view kPageHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>rangescope history</title><style>
:root{color-scheme:light dark;--line:#c3cad5}
body{font:15px/1.45 system-ui,sans-serif;margin:0 auto;padding:1rem;max-width:70rem}
h1{font-size:1.3rem;overflow-wrap:anywhere}
svg{width:100%;height:auto}svg text{font-size:12px;text-anchor:end;fill:currentColor}
svg .grid{stroke:var(--line);stroke-width:.5}
svg polyline{stroke-width:2}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:.28rem .6rem;text-align:left;border-bottom:1px solid var(--line);overflow-wrap:anywhere}
.n{text-align:right;white-space:nowrap}
</style></head><body>
)";

}  // namespace

std::string stored_table(std::span<const runs::Stored> pushes, std::size_t width, bool color) {
  base::Table table({{"run", false},
                     {"began (UTC)", false},
                     {"commit", false},
                     {"machine", false, false, 2},
                     {"runs", true, false, 1},
                     {"regions", true, false, 1},
                     {"verdict", false, true},
                     {"command", false, false, 1}});
  for (const runs::Stored& push : pushes)
    table.add({{push.name},
               {minute_text(push.began_unix_ns)},
               {short_commit(push.commit, push.dirty.value_or(false))},
               {push.machine},
               {std::to_string(push.runs)},
               {std::to_string(push.regions)},
               {push.verdict.empty() ? "-" : push.verdict},
               {push.command.empty() ? "-" : push.command}});
  return table.render(width, color);
}

std::string stored_json(std::span<const runs::Stored> pushes) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  const auto text = [](const std::string& value) {
    return value.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
  };
  for (const runs::Stored& push : pushes) {
    nlohmann::ordered_json one = {{"name", push.name},
                                  {"machine", push.machine},
                                  {"host", text(push.host)},
                                  {"commit", text(push.commit)},
                                  {"dirty", nullptr},
                                  {"began_unix_ns", push.began_unix_ns},
                                  {"pushed_unix_ns", push.pushed_unix_ns},
                                  {"runs", push.runs},
                                  {"regions", push.regions},
                                  {"verdict", text(push.verdict)},
                                  {"command", text(push.command)}};
    if (push.dirty) one["dirty"] = *push.dirty;
    out.push_back(std::move(one));
  }
  return base::printable_json(out.dump(2)) + "\n";
}

std::string history_table(const runs::History& history, const std::string& tag, std::size_t width, bool color) {
  return report::terminal_text(history_document(history, tag), {.width = width, .color = color});
}

std::string history_json(const runs::History& history, const std::string& tag) {
  nlohmann::ordered_json points = nlohmann::ordered_json::array();
  for (const runs::HistoryPoint& point : history.points) {
    nlohmann::ordered_json one = {{"name", point.name},
                                  {"machine", point.machine},
                                  {"commit", nullptr},
                                  {"dirty", point.dirty},
                                  {"began_unix_ns", point.began_unix_ns},
                                  {"values", point.values}};
    if (!point.commit.empty()) one["commit"] = point.commit;
    points.push_back(std::move(one));
  }
  const nlohmann::ordered_json out = {{"schema", "rangescope.history/1"},
                                      {"region", history.region},
                                      {"metric", tag},
                                      {"unit", unit_of(tag)},
                                      {"points", std::move(points)}};
  return base::printable_json(out.dump(2)) + "\n";
}

std::string history_html(const runs::History& history, const std::string& tag) {
  report::Document page = history_document(history, tag);
  page.sections.front().blocks.emplace(page.sections.front().blocks.begin(),
                                       report::Markup{plot(history_rows(history), unit_of(tag)), "", ""});
  report::StringSink sink;
  report::render_html(page, sink);
  return std::string(kPageHead) + sink.text() + "</body></html>\n";
}

}  // namespace rangescope::cli
