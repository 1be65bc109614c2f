#include "cli/print/history.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/document/view.hpp"

namespace rangescope::cli {
namespace history_test {

constexpr std::int64_t kDay_ns = 86'400'000'000'000;

/// A push of the day `day` after 1970, of runs that took so many ns (ascending).
runs::HistoryPoint push(const std::string& machine, int day, std::vector<double> values) {
  runs::HistoryPoint point;
  point.name = "push-" + std::to_string(day);
  point.machine = machine;
  point.commit = "0123456789abcdef";
  point.began_unix_ns = day * kDay_ns;
  point.values = std::move(values);
  return point;
}

runs::History history_of(std::vector<runs::HistoryPoint> points) {
  return {.region = "decode", .points = std::move(points)};
}

/// Cells of a column, from the first push to the last.
std::vector<std::string> column(const runs::History& history, const std::string& title) {
  const report::Document page = history_document(history, "wall_ns.median");
  const auto& grid = std::get<report::Grid>(page.sections.front().blocks.front());
  std::vector<std::string> cells;
  for (std::size_t i = 0; i < grid.columns.size(); ++i)
    if (grid.columns[i].title == title)
      for (const auto& row : grid.rows)
        cells.push_back(row[i].text);
  return cells;
}

using Cells = std::vector<std::string>;

TEST(History, AChangeIsFromThePushOfTheSameMachineBefore) {
  const runs::History history = history_of({push("h100", 1, {100e6}),
                                            push("h200", 2, {50e6}),
                                            push("h100", 3, {110e6}),
                                            push("h200", 4, {25e6})});
  EXPECT_EQ(column(history, "change"), (Cells{"-", "-", "+10.0 %", "-50.0 %"}));
}

TEST(History, RunsOfAPushAreOneMedian) {
  const runs::History history = history_of(
      {push("h100", 1, {90e6, 100e6, 500e6}), push("h100", 2, {90e6, 100e6, 120e6, 500e6})});
  EXPECT_EQ(column(history, "change"), (Cells{"-", "+10.0 %"}));
  EXPECT_EQ(column(history, "runs"), (Cells{"3", "4"}));
}

TEST(History, FromNothingThereIsNoChange) {
  const runs::History history = history_of({push("h100", 1, {0}), push("h100", 2, {5e6})});
  EXPECT_EQ(column(history, "change"), (Cells{"-", "-"}));
}

TEST(History, ACommitIsShortAndMarkedWhereFilesWereChanged) {
  runs::HistoryPoint dirty = push("h100", 1, {1});
  dirty.dirty = true;
  runs::HistoryPoint unknown = push("h100", 2, {1});
  unknown.commit = "";
  EXPECT_EQ(column(history_of({dirty, unknown}), "commit"), (Cells{"0123456789+", "-"}));
}

TEST(History, TimesAreToTheMinute) {
  EXPECT_EQ(column(history_of({push("h100", 1, {1})}), "began (UTC)"), (Cells{"1970-01-02 00:00"}));
}

TEST(History, JsonHasEveryRunAndItsUnit) {
  runs::HistoryPoint unknown = push("h100", 1, {1e6, 2e6});
  unknown.commit = "";
  const auto json = nlohmann::json::parse(history_json(history_of({unknown}), "wall_ns.median"));
  EXPECT_EQ(json.at("schema"), "rangescope.history/1");
  EXPECT_EQ(json.at("unit"), "ns");
  EXPECT_TRUE(json.at("points").at(0).at("commit").is_null());
  EXPECT_EQ(json.at("points").at(0).at("values"), nlohmann::json::parse("[1000000.0, 2000000.0]"));
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t place = text.find(part); place != std::string::npos;
       place = text.find(part, place + 1))
    ++found;
  return found;
}

TEST(History, ThePageHasALineForEachMachineAndAPointForEachPush) {
  const std::string page = history_html(
      history_of({push("h100", 1, {100e6}), push("h200", 2, {50e6}), push("h100", 3, {110e6})}),
      "wall_ns.median");
  EXPECT_EQ(count(page, "<polyline"), 2u);
  EXPECT_EQ(count(page, "<circle"), 3u);
}

TEST(History, NamesOnThePageAreNoMarkup) {
  runs::HistoryPoint point = push("h100", 1, {1});
  point.name = "<script>alert(1)</script>";
  EXPECT_EQ(count(history_html(history_of({point}), "wall_ns.median"), "<script>alert"), 0u);
}

TEST(StoredPushes, UnknownIsNullInJson) {
  runs::Stored stored;
  stored.name = "main";
  stored.machine = "h100";
  const nlohmann::ordered_json json = stored_json(std::span(&stored, 1));
  EXPECT_EQ(json.at(0).at("name"), "main");
  for (const char* key : {"commit", "dirty", "host", "verdict", "command"})
    EXPECT_TRUE(json.at(0).at(key).is_null()) << key;
  stored.dirty = false;
  EXPECT_EQ(stored_json(std::span(&stored, 1)).at(0).at("dirty"), false);
}

}  // namespace history_test
}  // namespace rangescope::cli
