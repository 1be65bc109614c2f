#include "cli/watch/watch.hpp"

#include <gtest/gtest.h>

#include "cli/watch/metrics_server.hpp"

namespace rangescope::cli {
namespace watch_test {

using Words = std::vector<std::string>;

/// The child's words, without this program's path in front.
Words recording(const Words& words, bool is_of_running = false) {
  Words argv = recording_of(words, "+vars.watched_by=1", is_of_running);
  argv.erase(argv.begin());
  return argv;
}

TEST(RecordingOf, TheChildIsQuietAndNotWatched) {
  EXPECT_EQ(recording({"profile", "--watch", "--keep", "3", "--", "./app"}),
            (Words{"profile", "-q", "+vars.watched_by=1", "--keep", "3", "--", "./app"}));
}

// A switch may have a value; a child that watched too would start another one, and so on.
TEST(RecordingOf, ASwitchWithAValueGoesToo) {
  EXPECT_EQ(recording({"profile", "--watch=true", "--", "./app"}),
            (Words{"profile", "-q", "+vars.watched_by=1", "--", "./app"}));
}

TEST(RecordingOf, OptionsOfWatchingGoWithTheirValues) {
  const Words plain{"profile", "-q", "+vars.watched_by=1", "--top", "3", "--", "./app"};
  EXPECT_EQ(recording({"profile", "--watch-every", "1s", "--top", "3", "--", "./app"}), plain);
  EXPECT_EQ(recording({"profile", "--watch-every=1s", "--top", "3", "--", "./app"}), plain);
  EXPECT_EQ(recording({"profile", "--top", "3", "--openmetrics", "9400", "--", "./app"}), plain);
  EXPECT_EQ(recording({"profile", "--top", "3", "--openmetrics=[::1]:9400", "--", "./app"}), plain);
}

TEST(RecordingOf, TheProgramKeepsItsOwnOptions) {
  EXPECT_EQ(
      recording({"profile", "--watch", "--", "./app", "--watch", "--openmetrics", "1"}),
      (Words{
          "profile", "-q", "+vars.watched_by=1", "--", "./app", "--watch", "--openmetrics", "1"}));
}

TEST(RecordingOf, OfARunningProcessTheTagIsBehindItsId) {
  EXPECT_EQ(recording({"attach", "4711", "--watch", "--for", "10s"}, true),
            (Words{"attach", "-q", "4711", "--for", "10s", "+vars.watched_by=1"}));
}

TEST(WatchChoice, AnyOfItsOptionsAsks) {
  WatchChoice choice;
  EXPECT_FALSE(choice.is_asked_for());
  choice.openmetrics = "9400";
  EXPECT_TRUE(choice.is_asked_for());
  choice = {};
  choice.every = std::chrono::seconds(1);
  EXPECT_TRUE(choice.is_asked_for());
}

TEST(MetricsServer, ListensOnNumericAddressesOnly) {
  for (const char* address :
       {"", "http", "localhost:9400", "127.0.0.1:", ":9400", "127.0.0.1:65536", "-1", "[::1]"}) {
    MetricsServer server;
    const auto listening = server.listen(address);
    ASSERT_FALSE(listening) << address;
    EXPECT_EQ(listening.error().code, base::Code::kUsage) << address;
  }
}

/// A report of `count` regions named r0, r1 ..., of which each takes 1 s more.
model::Report report_of(int count) {
  model::Report report;
  for (int number = 0; number < count; ++number) {
    model::Region& region = report.regions.emplace_back();
    region.path = {"r" + std::to_string(number)};
    region.occurrences = 1;
    region.wall.inclusive_ns = (number + 1) * 1e9;
    region.wall.histogram.assign(model::kLengthBounds.size() + 1, 0);
    region.wall.histogram.back() = 1;
  }
  return report;
}

/// How many of the page's lines begin so.
std::ptrdiff_t lines_with(const std::string& page, const std::string& begin) {
  std::ptrdiff_t lines = 0;
  for (std::size_t line = page.find("\n" + begin); line != std::string::npos;
       line = page.find("\n" + begin, line + 1))
    ++lines;
  return lines;
}

TEST(MetricsPage, HasThe200LargestRegionsAndCountsAll) {
  const std::string page = metrics_page(report_of(250));
  EXPECT_EQ(lines_with(page, "rangescope_regions 250\n"), 1);
  EXPECT_EQ(lines_with(page, "rangescope_wall_inclusive_seconds{"), 200);
  EXPECT_NE(page.find("\"r249\""), std::string::npos);
  EXPECT_EQ(page.find("\"r49\""), std::string::npos) << "the 200th largest is r50";
}

TEST(MetricsPage, HasHistogramsOfThe50Largest) {
  const std::string page = metrics_page(report_of(60));
  EXPECT_EQ(lines_with(page, "rangescope_wall_duration_seconds_count{"), 50);
  EXPECT_EQ(lines_with(page, "rangescope_wall_inclusive_seconds{"), 60);
}

TEST(MetricsPage, RegionsOfOneProcessOrThreadAreNotServed) {
  model::Report report = report_of(3);
  report.regions[0].process = 0;
  report.regions[1].thread = 7;
  const std::string page = metrics_page(report);
  EXPECT_EQ(lines_with(page, "rangescope_regions 1\n"), 1);
  EXPECT_EQ(lines_with(page, "rangescope_wall_inclusive_seconds{"), 1);
}

TEST(MetricsPage, EndsAsOpenMetricsWantsIt) {
  EXPECT_TRUE(metrics_page(report_of(1)).ends_with("# EOF\n"));
}

}  // namespace watch_test
}  // namespace rangescope::cli
