#include "cli/print/history.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "base/embedded.hpp"
#include "base/text.hpp"
#include "model/measure.hpp"
#include "report/document/view.hpp"
#include "report/sink.hpp"
#include "runs/manifest.hpp"

RANGESCOPE_EMBED(history_head, RANGESCOPE_HTML);

namespace rangescope::cli {
namespace {

std::string short_commit(const std::string& commit, bool dirty) {
  if (commit.empty())
    return "-";
  std::string text = commit.substr(0, 10);
  if (dirty)
    text += "+";
  return text;
}

/// "2026-01-02 03:04"
std::string minute_text(std::int64_t unix_ns) {
  std::string text = runs::utc_text(unix_ns).substr(0, 16);
  text[10] = ' ';
  return text;
}

std::string text_or_dash(const std::string& text) {
  if (text.empty())
    return "-";
  return text;
}

std::string_view unit_of(const std::string& tag) {
  const model::Measure* measure = model::find_measure(tag);
  if (measure == nullptr)
    return {};
  return model::unit_name(measure->unit);
}

/// Of sorted values.
double median_of(const std::vector<double>& values) {
  const std::size_t half = values.size() / 2;
  if (values.size() % 2 == 1)
    return values[half];
  return (values[half - 1] + values[half]) / 2;
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
    const double median = median_of(values);
    HistoryRow row{&point, values.front(), median, values.back(), {}};
    const auto found = before.find(point.machine);
    if (found != before.end() && found->second > 0)
      row.change = median / found->second - 1;
    before[point.machine] = median;
    rows.push_back(row);
  }
  return rows;
}

std::string change_text(const HistoryRow& row) {
  if (!row.change)
    return "-";
  return fmt::format("{:+.1f} %", *row.change * 100);
}

/// Medians over the pushes in order, a line for each machine.
std::string plot(const std::vector<HistoryRow>& rows, std::string_view unit) {
  constexpr double kWidth = 960, kHeight = 300, kLeft = 90, kTop = 12, kBottom = 30;
  constexpr std::string_view kColors[] = {
      "#2f6fde", "#d9822b", "#0b7a3e", "#a3319b", "#8a6d00", "#5d6878"};
  double largest = 0;
  for (const HistoryRow& row : rows)
    largest = std::max(largest, row.most);
  if (largest <= 0)
    largest = 1;
  const auto x = [&](std::size_t i) {
    return kLeft +
           (static_cast<double>(i) + 0.5) * (kWidth - kLeft) / static_cast<double>(rows.size());
  };
  const auto y = [&](double value) {
    return kTop + (1 - value / largest) * (kHeight - kTop - kBottom);
  };
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"history\">\n", kWidth, kHeight);
  for (int tick = 0; tick <= 4; ++tick) {
    const double value = largest * tick / 4;
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/><text x=\"{}\" "
        "y=\"{:.1f}\">{}</text>\n",
        kLeft,
        kWidth,
        y(value),
        y(value),
        kLeft - 6,
        y(value) + 4,
        report::markup_escaped(report::format_value(value, unit)));
  }
  std::map<std::string, std::vector<std::size_t>> machines;
  for (std::size_t i = 0; i < rows.size(); ++i)
    machines[rows[i].point->machine].push_back(i);
  std::size_t color = 0;
  for (const auto& [machine, points] : machines) {
    const std::string_view stroke = kColors[color++ % std::size(kColors)];
    std::string line;
    for (const std::size_t i : points)
      line += fmt::format("{:.1f},{:.1f} ", x(i), y(rows[i].median));
    svg += fmt::format("<g stroke=\"{}\" fill=\"{}\"><polyline fill=\"none\" points=\"{}\"/>\n",
                       stroke,
                       stroke,
                       line);
    for (const std::size_t i : points) {
      const HistoryRow& row = rows[i];
      svg += fmt::format(
          "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/><circle "
          "cx=\"{0:.1f}\" cy=\"{3:.1f}\" "
          "r=\"4\"><title>{4}</title></circle>\n",
          x(i),
          y(row.least),
          y(row.most),
          y(row.median),
          report::markup_escaped(fmt::format("{} {} {}: {}",
                                             minute_text(row.point->began_unix_ns),
                                             row.point->name,
                                             short_commit(row.point->commit, row.point->dirty),
                                             report::format_value(row.median, unit))));
    }
    svg += "</g>\n";
  }
  return svg + "</svg>\n";
}

}  // namespace

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

report::Grid stored_grid(std::span<const runs::Stored> pushes) {
  report::Grid grid({{"run", false},
                     {"began (UTC)", false},
                     {"commit", false},
                     {"machine", false, false, 2},
                     {"runs", true, false, 1},
                     {"regions", true, false, 1},
                     {"verdict", false, true},
                     {"command", false, false, 1}});
  for (const runs::Stored& push : pushes)
    grid.add({{push.name},
              {minute_text(push.began_unix_ns)},
              {short_commit(push.commit, push.dirty.value_or(false))},
              {push.machine},
              {std::to_string(push.runs)},
              {std::to_string(push.regions)},
              {text_or_dash(push.verdict)},
              {text_or_dash(push.command)}});
  return grid;
}

nlohmann::ordered_json stored_json(std::span<const runs::Stored> pushes) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  const auto text = [](const std::string& value) {
    nlohmann::ordered_json json;
    if (!value.empty())
      json = value;
    return json;
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
    if (push.dirty)
      one["dirty"] = *push.dirty;
    out.push_back(std::move(one));
  }
  return out;
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
    if (!point.commit.empty())
      one["commit"] = point.commit;
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
  page.sections.front().blocks.emplace(
      page.sections.front().blocks.begin(),
      report::Markup{plot(history_rows(history), unit_of(tag)), "", ""});
  report::StringSink sink;
  report::render_html(page, sink);
  return std::string(rangescope_history_head) + sink.text() + "</body></html>\n";
}

}  // namespace rangescope::cli
