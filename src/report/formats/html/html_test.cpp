#include "report/formats.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "report/document/json_writer.hpp"
#include "report/document/source_text.hpp"
#include "report/document/web_pages.hpp"
#include "report/formats/html/data.hpp"
#include "report/sample_report_test.hpp"
#include "report/sink.hpp"

namespace rangescope::report {
namespace html_test {

using nlohmann::json;

std::string page(const model::Report& report, const model::Session* session) {
  StringSink sink;
  EXPECT_TRUE(export_html(report, session, {}, sink));
  return sink.text();
}

// What the browser sees as the text of the element.
std::string embedded(const std::string& html) {
  const std::string open = R"(<script type="application/json" id="data">)";
  const auto from = html.find(open);
  const auto to = html.find("</script>", from);
  return html.substr(from + open.size(), to - from - open.size());
}

// One thread: outer[0,1000] > n inner ranges; one stream: n kernels launched by them.
model::Session busy_session(std::uint32_t n) {
  model::Session session;
  session.end_ns = std::int64_t{n} * 100;
  session.processes.push_back({.pid = 7});
  session.threads.push_back({.process = 0, .tid = 7});
  session.devices.push_back({});
  session.streams.push_back({.process = 0, .device = 0, .context = 1, .id = 7});
  session.kernel_names.push_back({.demangled = session.strings.intern("gemm<a&b>")});
  session.kernel_shapes.emplace_back();
  session.ranges.push_back(
      {.start_ns = 0, .end_ns = session.end_ns, .name = session.strings.intern("outer")});
  const auto inner = session.strings.intern("inner");
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::int64_t at = std::int64_t{i} * 100;
    session.ranges.push_back({.start_ns = at, .end_ns = at + 50, .name = inner});
    session.launches.push_back(
        {.start_ns = at + 10, .end_ns = at + 20, .thread = 0, .correlation = i + 1});
    session.kernels.push_back({.start_ns = at + 30, .end_ns = at + 90, .launch = i});
  }
  return session;
}

json timeline_of(const model::Report& report,
                 const model::Session& session,
                 std::uint64_t most = kHtmlItems) {
  StringSink sink;
  JsonWriter writer(sink);
  write_html_timeline(report, session, writer, most);
  writer.finish();
  return json::parse(sink.text());
}

std::uint64_t items_of(const json& level) {
  std::uint64_t n = 0;
  for (const json& chunk : level["chunks"])
    n += chunk["n"].get<std::uint64_t>();
  return n;
}

// The numbers of a chunk, decoded by another hand than the one that wrote them.
std::vector<std::uint64_t> numbers(const std::string& text) {
  std::vector<std::uint64_t> out;
  std::uint32_t bits = 0;
  int have = 0, shift = 0;
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c == '=')
      break;
    const auto digit =
        std::string("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/").find(c);
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    have += 6;
    if (have < 8)
      continue;
    have -= 8;
    const std::uint32_t byte = bits >> have & 255;
    value |= std::uint64_t{byte & 127} << shift;
    shift += 7;
    if (byte >= 128)
      continue;
    out.push_back(value);
    value = 0, shift = 0;
  }
  return out;
}

TEST(Html, KeepsHostileNamesWithinTheData) {
  model::Report report = nvtx_sample();
  const std::string name = "</script><script>alert(1)</script>&\xE2\x80\xA8<!--";
  report.regions[0].path = {name};
  const std::string html = page(report, nullptr);
  EXPECT_EQ(html.find("alert(1)</script>"), std::string::npos);
  const std::string data = embedded(html);
  EXPECT_EQ(data.find_first_of("<>&"), std::string::npos);
  EXPECT_EQ(data.find("\xE2\x80\xA8"), std::string::npos);
  EXPECT_EQ(json::parse(data)["regions"][0]["path"][0], name);
}

TEST(Html, IsOneFileWithAllNumbers) {
  const std::string html = page(gpu_sample(), nullptr);
  EXPECT_EQ(html.find("src=\"http"), std::string::npos);
  const json data = json::parse(embedded(html));
  EXPECT_TRUE(data["timeline"].is_null());
  const json& region = data["regions"][1];
  std::map<std::string, json> values;
  for (std::size_t i = 0; i < data["measures"].size(); ++i)
    values[data["measures"][i]["tag"]] = region["v"][i];
  EXPECT_EQ(values["wall_ns.inclusive"], 6e9);
  EXPECT_EQ(values["gpu.busy_ns"], 3.9e9 / 4);  // of four occurrences that were recorded: of each
  EXPECT_EQ(region["each"], true);
  EXPECT_FALSE(data["regions"][0].contains("each"));
  EXPECT_EQ(region["bound"]["reason"], "DRAM at 82 % of its peak");
  EXPECT_EQ(region["metrics"]["sm__cycles.avg"]["absent"], "no complete round");
  EXPECT_TRUE(region["metrics"]["sm__cycles.avg"]["value"].is_null());
}

TEST(Html, SaysEachCommandOnceAndNotTheOneThatMadeIt) {
  model::Report report;
  report.verdict.resize(4);
  const char* const next[] = {"rangescope plan", "rangescope plan", "make the page", "look"};
  for (std::size_t i = 0; i < 4; ++i)
    report.verdict[i].next = next[i];
  report.verdict[2].next_is_page = true;
  StringSink sink;
  EXPECT_TRUE(export_html(report, nullptr, {}, sink));
  std::vector<std::string> shown;
  const json data = json::parse(embedded(sink.text()));
  for (const json& one : data.at("verdict"))
    shown.push_back(one.at("next"));
  EXPECT_EQ(shown, (std::vector<std::string>{"rangescope plan", "", "", "look"}));
}

TEST(Html, HasWhatACureSavesAndWhatWasSupposed) {
  model::Report report;
  report.regions.resize(1);
  report.verdict.resize(3);
  model::Verdict& cured = report.verdict[0];
  cured.cure = "fusion";
  cured.text = "eight kernels follow one another";
  cured.attempt = "torch.compile(step)";
  cured.saves_low_ns = 500;
  cured.saves_high_ns = 700;
  cured.after = model::Outcome{"loop", 0, 800, 200, false};
  // Of ten ranks: what the run saves is a tenth of what their sum does.
  model::Verdict& of_ranks = report.verdict[2];
  of_ranks = cured;
  of_ranks.saves_ns = 60;
  of_ranks.saves_low_ns = 50;
  of_ranks.saves_high_ns = 70;
  report.what_if.emplace().changes.push_back({"copies=0", "3 copies, 12.0 ms"});
  report.what_if->run = {1000, 400, 300, 450, 0.2, true};
  report.what_if->regions.push_back({0, {800, 200, 100, 300}});
  StringSink sink;
  EXPECT_TRUE(export_html(report, nullptr, {}, sink));
  const json data = json::parse(embedded(sink.text()));
  EXPECT_EQ(data["verdict"][0]["text"], cured.text);
  EXPECT_EQ(data["verdict"][0]["try"], cured.attempt);
  EXPECT_EQ(data["verdict"][0]["predicted"],
            (json{{"before", 800.0},
                  {"after", 200.0},
                  {"low", 100.0},
                  {"high", 300.0},
                  {"at_most", false}}));
  EXPECT_FALSE(data["verdict"][1].contains("predicted"));
  EXPECT_EQ(data["verdict"][2]["predicted"], data["verdict"][0]["predicted"]);
  EXPECT_EQ(data["what_if"]["changes"][0]["change"], "copies=0");
  EXPECT_EQ(data["what_if"]["run"]["at_most"], true);
  EXPECT_EQ(data["what_if"]["regions"][0]["after"], 200.0);
}

TEST(Html, NoTextEndsTheScriptItStandsIn) {
  StringSink sink;
  JsonWriter page(sink, true);
  page.text("\xE2\x80\xA8\xE2\x80\xA9\xE2\x82\xAC</script>&");
  page.finish();
  EXPECT_EQ(sink.text(), "\"\\u2028\\u2029\xE2\x82\xAC\\u003c/script\\u003e\\u0026\"\n");
}

TEST(HtmlTimeline, LinksKernelsToTheirCalls) {
  const model::Session session = busy_session(3);
  model::Report report;
  report.regions.push_back(sample_region(report, {"outer"}, model::kNone, 1, 300, 150));
  report.regions.push_back(sample_region(report, {"outer", "inner"}, 0, 3, 150, 150));
  const json timeline = timeline_of(report, session);
  ASSERT_EQ(timeline["lanes"].size(), 2U);
  EXPECT_EQ(timeline["lanes"][0]["rows"], 3);  // outer, inner, call
  const json names = json::parse(R"([["outer",0],["inner",1],["launch",-1],["gemm<a&b>",-1]])");
  EXPECT_EQ(timeline["names"], names);
  const json& chunk = timeline["lanes"][1]["levels"][0]["chunks"][0];
  EXPECT_EQ(chunk["s"], 30);
  EXPECT_EQ(chunk["e"], 290);
  // delta (zigzag), duration, row, name, lane of the call + 1, distance to the call (zigzag)
  EXPECT_EQ(
      numbers(chunk["d"]),
      (std::vector<std::uint64_t>{0, 60, 0, 3, 1, 40, 200, 60, 0, 3, 1, 40, 200, 60, 0, 3, 1, 40}));
}

TEST(HtmlTimeline, LevelsStandForEveryItemAndStaySmall) {
  const model::Session session = busy_session(200'000);
  const json timeline = timeline_of({}, session);
  for (const json& lane : timeline["lanes"]) {
    ASSERT_GE(lane["levels"].size(), 2U);
    EXPECT_TRUE(lane["full"]);
    const std::uint64_t items = lane["items"];
    for (const json& level : lane["levels"]) {
      if (level["r"] == 0.0) {
        EXPECT_EQ(items_of(level), items);
        continue;
      }
      const double bins = static_cast<double>(session.end_ns) / level["r"].get<double>();
      EXPECT_LE(static_cast<double>(items_of(level)), (2 * bins + 2) * lane["rows"].get<double>());
      std::uint64_t stands_for = 0;
      for (const json& chunk : level["chunks"]) {
        const auto list = numbers(chunk["d"]);
        for (std::size_t i = 4; i < list.size(); i += 6)
          stands_for += list[i];
      }
      EXPECT_EQ(stands_for, items);
    }
  }
}

TEST(SourceText, IsThatOfTheLineOfSourcesThatAreAsTheyWere) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "source_text_test";
  std::filesystem::create_directories(folder);
  const auto written = [&](const char* name) {
    std::ofstream(folder / name) << "first\n  sum += values[i];\nlast";
    return model::StallLine{.file = (folder / name).string(), .line = 2};
  };
  constexpr std::int64_t kLater = 4'000'000'000'000'000'000;
  model::StallLine line = written("kernel.cu");
  EXPECT_EQ(source_text(line, 0), "sum += values[i];");
  EXPECT_EQ(source_text(line, kLater), "sum += values[i];");
  EXPECT_EQ(source_text(line, 1), "") << "changed since";
  line.line = 4;
  EXPECT_EQ(source_text(line, 0), "");
  EXPECT_EQ(source_text(written("id_rsa"), 0), "") << "a recording from elsewhere may name it";
  line.file = "kernel.cu";
  EXPECT_EQ(source_text(line, 0), "");
  std::filesystem::remove_all(folder);
}

TEST(HtmlTimeline, LeavesOutWhatDoesNotFitAndSaysSo) {
  const model::Session session = busy_session(100'000);
  const json timeline = timeline_of({}, session, 30'000);
  for (const json& lane : timeline["lanes"]) {
    EXPECT_FALSE(lane["full"]);
    EXPECT_GE(lane["levels"].size(), 1U);
    for (const json& level : lane["levels"])
      EXPECT_GT(level["r"], 0.0);
  }
}

}  // namespace html_test
}  // namespace rangescope::report
