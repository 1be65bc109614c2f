// Golden text of every format: tests/golden/report/. RANGESCOPE_UPDATE_GOLDEN=1 writes it anew;
// look at the diff.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/fs.hpp"
#include "base/source_dir.hpp"
#include "report/document/figures.hpp"
#include "report/document/findings.hpp"
#include "report/document/json_writer.hpp"
#include "report/document/report_document.hpp"
#include "report/document/view.hpp"
#include "report/exporter.hpp"
#include "report/sample_report_test.hpp"
#include "report/sink.hpp"

namespace rangescope::report {
namespace report_test {

std::string written(const model::Report& report, std::string_view format, const Style& style = {}) {
  StringSink sink;
  const auto exporter = find_exporter(format);
  EXPECT_TRUE(exporter);
  const auto done = (*exporter)->write(report, nullptr, style, sink);
  return done ? sink.text() : base::to_string(done.error());
}

void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(base::source_dir) + "/tests/golden/report/" + name;
  if (std::getenv("RANGESCOPE_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(base::write_file(path, text));
  }
  const auto golden = base::read_file(path);
  ASSERT_TRUE(golden) << base::to_string(golden.error());
  EXPECT_EQ(*golden, text)
      << "if this is meant: RANGESCOPE_UPDATE_GOLDEN=1 report_test, and look at the diff of "
      << path;
}

TEST(OpenMetrics, ASumIsOfWhatTheBinsCount) {
  model::Report report;
  model::Region& step = report.regions.emplace_back();
  step.path = {"step"};
  step.wall.inclusive_ns = 1e9;
  step.wall.profiler_ns = 2e8;  // subtracted once it is much, given back when it is not
  step.wall.histogram.assign(model::kLengthBounds.size() + 1, 0);
  step.wall.histogram.back() = 3;
  const std::string text = written(report, "openmetrics");
  EXPECT_NE(text.find("_duration_seconds_sum{path=\"step\",domain=\"\",kind=\"push_pop\",process="
                      "\"\",thread=\"\"} 1.2\n"),
            std::string::npos)
      << text;
}

TEST(Summary, SaysHowWellTheGpuIsUsedAndAgainstWhat) {
  model::Report report;
  report.run.duration_ns = 4e9;
  report.notes = {"peaks: NVIDIA H200 SXM (data sheet)"};
  model::Region& decode = report.regions.emplace_back();
  decode.path = {"decode"};
  decode.occurrences = 2;
  decode.wall.inclusive_ns = decode.wall.exclusive_ns = 1e9;
  decode.wall.per_occurrence_ns.mean = 5e8;
  decode.wall.per_occurrence_ns.stddev = 1e7;
  decode.bound = model::Bound{"memory", "memory 0.60", 0.6, 0.1};
  decode.utilization.emplace();
  decode.utilization->useful = 0.00007;
  decode.utilization->bandwidth = 0.5;
  decode.utilization->useful_tokens = 4;
  decode.utilization->formula = "useful: 2 FLOP / ...";
  model::RooflinePoint point;
  point.level = "dram";
  point.precision = "fp32";
  point.peak_flop_per_s = 66.9e12;
  point.peak_bytes_per_s = 4.8e12;
  decode.roofline = {point};
  report.families = {{"gemm", 2, 30, 6e8, 0.6}};
  report.outside = model::Outside{};
  model::Verdict& verdict = report.verdict.emplace_back();
  verdict.path = "decode";
  verdict.kind = "memory_bound";
  verdict.text = "memory-bound";
  verdict.saves_ns = 1e9;
  verdict.saves_share = 0.25;
  const std::string page = markdown_text(summary_document(report));
  for (const char* said :
       {"| decode |",
        "| decode | 0.007 % | 50.0 % | - | 8 | 125.0 ms | useful: 2 FLOP",
        "Against the peaks: NVIDIA H200 SXM (data sheet); fp32 66.90 TFLOP/s, dram 4.800 TB/s.",
        "decode: memory-bound (saves up to 1.000 s, 25.0 % of the run)\n   - try: Move fewer bytes",
        "- **memory**: decode: memory 0.60",
        "| gemm | 2 | 30 | 600.0 ms | 60.0 % |",
        "![Time by range](summary.svg)"})
    EXPECT_NE(page.find(said), std::string::npos) << said << " in\n" << page;
  EXPECT_NE(summary_figure(report).find(">decode</text>"), std::string::npos);
}

TEST(Figures, RooflineHasRoofsAndPointsAndAHistogramItsBins) {
  model::Report report;
  EXPECT_EQ(roofline_figure(report), "");
  model::Region& region =
      report.regions.emplace_back(sample_region(report, {"a<b"}, model::kNone, 1, 1e9, 1e9));
  model::RooflinePoint point;
  point.level = "dram";
  point.precision = "fp32";
  point.intensity = 10;
  point.flop_per_s = 1e13;
  point.peak_flop_per_s = 66.9e12;
  point.peak_bytes_per_s = 4.8e12;
  region.roofline = {point};
  const std::string roofline = roofline_figure(report);
  EXPECT_NE(roofline.find("<circle"), std::string::npos);
  EXPECT_NE(roofline.find("<title>a&lt;b</title>"), std::string::npos);
  EXPECT_NE(roofline.find(">fp32</text>"), std::string::npos);
  const std::vector<double> durations{1000, 1000, 1000, 100000};
  const std::string histogram = histogram_figure("gemm", durations);
  EXPECT_NE(histogram.find("<title>3</title>"), std::string::npos);
  EXPECT_NE(histogram.find("<title>1</title>"), std::string::npos);
  EXPECT_NE(histogram.find("4 calls by duration"), std::string::npos);
  EXPECT_EQ(histogram_figure("gemm", std::span(durations).first(1)), "");
}

TEST(Figures, KernelsAreDotsUnderTheRoofsAndAMetricIsSpreadOverThem) {
  model::Report report;
  EXPECT_EQ(kernel_roofline_figure(report), "");
  model::RooflinePoint point{.level = "dram", .precision = "fp32", .intensity = 10};
  point.flop_per_s = 1e13;
  for (int i = 0; i < 10; ++i) {
    model::KernelCounters& kernel = report.kernel_counters.emplace_back();
    kernel.name = "kernel_" + std::to_string(i);
    kernel.roofline = {point};
  }
  const std::string scatter = kernel_roofline_figure(report);
  EXPECT_NE(scatter.find("<title>kernel_9</title>"), std::string::npos);
  EXPECT_NE(scatter.find(">kernel_7</text>"), std::string::npos);
  EXPECT_EQ(scatter.find(">kernel_8</text>"), std::string::npos) << "eight have their names";
  const std::vector<double> values{0, 0, 0, 1};
  const std::string spread = distribution_figure("sm_throughput", "ratio", values);
  EXPECT_NE(spread.find("<title>3</title>"), std::string::npos);
  EXPECT_NE(spread.find("<title>1</title>"), std::string::npos);
  EXPECT_NE(spread.find("4 kernels by sm_throughput, ratio"), std::string::npos);
  EXPECT_EQ(distribution_figure("sm_throughput", "ratio", std::span(values).first(1)), "");
}

TEST(Table, ABarLongerThanTheScaleSaysSo) {
  model::Report report;
  report.run.duration_ns = 10e9;
  report.regions.push_back(sample_region(report, {"step"}, model::kNone, 4, 0.66e9, 0.66e9));
  report.outside = model::Outside{.wall_ns = 9.34e9};
  const std::string text = written(report, "table");
  EXPECT_NE(text.find("\nwhole run"), std::string::npos) << text;
  EXPECT_NE(text.find("██████   6.6 %"), std::string::npos) << text;
  EXPECT_NE(text.find("█████▶  93.4 %"), std::string::npos) << text;
}

TEST(Table, GpuWorkThatOutlastsItsRangeIsAMultipleOfIt) {
  model::Report report = gpu_sample();
  model::Region& region = report.regions[0];
  for (const auto& [busy, said] : {std::pair{0.5, " 50.0 %"},
                                   {1.0, " 100.0 %"},
                                   {1.25, " 1.25x"},
                                   {60.47, " 60.5x"},
                                   {6047.0, " 6,047x"}}) {
    region.gpu->busy_ns = busy * region.wall.inclusive_ns;
    const std::string text = written(report, "table", {.width = 140});
    EXPECT_NE(text.find(said), std::string::npos) << text;
    EXPECT_EQ(text.find("6047.0 %"), std::string::npos);
  }
}

TEST(Table, WhatWasEstimatedHasItsInterval) {
  model::Report report = nvtx_sample();
  report.metric_columns = {{"J/token", "J/token"}};
  report.regions[0].metrics["J/token"] = {.value = 2,
                                          .unit = "J/token",
                                          .min = 1.9,
                                          .max = 2.1,
                                          .source = "sampled energy / --work 'decode=1 token'"};
  report.regions[0].gpu.emplace().partial = true;
  report.regions[0].gpu->recorded_occurrences = 3;
  report.regions[0].gpu->kernels = 8;
  const std::string text = written(report, "table", {.width = 240});
  EXPECT_NE(text.find(" 3 each"), std::string::npos) << "8 of 3 instances, " << text;
  EXPECT_NE(text.find("2 J/token ±5 %"), std::string::npos) << text;
}

TEST(Verdict, LongNamesAreCutAndNoNameIsQuoted) {
  model::Report report;
  report.verdict.resize(2);
  report.verdict[0].path = std::string(2000, 'a') + "z";
  report.verdict[0].text = "text";
  report.verdict[1].region = 0;
  report.verdict[1].text = "text";
  Document document;
  const Style narrow{.width = 40};
  document.sections.push_back(verdict_section(report, narrow));
  EXPECT_EQ(terminal_text(document, narrow),
            "1. note: aaaaaaaaaaaa…aaaaaaaaaaaz: text\n2. note: \"\": text\n");
}

TEST(Losses, ThePageIsTheTable) {
  expect_golden("../../../docs/manual/losses.md", loss_page());
}

TEST(Golden, TableOfNvtx) {
  expect_golden("nvtx.txt", written(nvtx_sample(), "table"));
}
TEST(Golden, TableWithGpu) {
  expect_golden("gpu.txt", written(gpu_sample(), "table", {.width = 140, .explain = true}));
}
TEST(Table, NotesAreWrappedForAPersonAndWholeInAPipe) {
  model::Report report = nvtx_sample();
  report.notes = {"a note of so many words that it needs two lines of forty columns"};
  const auto has = [&](const Style& style, const char* text) {
    return written(report, "table", style).find(text) != std::string::npos;
  };
  EXPECT_TRUE(has({.width = 40},
                  "note: a note of so many words that it needs two lines of forty columns\n"));
  EXPECT_TRUE(has({.width = 40, .wrap = true},
                  "\nnote: a note of so many words that it\n  needs two lines of forty columns\n"));
}

TEST(Golden, NarrowColouredTable) {
  expect_golden("narrow.txt", written(nvtx_sample(), "table", {.width = 60, .color = true}));
}
TEST(Golden, JsonOfNvtx) {
  expect_golden("nvtx.json", written(nvtx_sample(), "json"));
}
TEST(Golden, JsonWithGpu) {
  expect_golden("gpu.json", written(gpu_sample(), "json"));
}
TEST(Golden, Csv) {
  expect_golden("gpu.csv", written(gpu_sample(), "csv"));
}
TEST(Golden, CsvOfOddNames) {
  expect_golden("nvtx.csv", written(nvtx_sample(), "csv", {.columns = {"occurrences", "wall"}}));
}
TEST(Golden, MarkdownOfNvtx) {
  expect_golden("nvtx.md", written(nvtx_sample(), "md"));
}
TEST(Golden, MarkdownWithGpu) {
  expect_golden("gpu.md", written(gpu_sample(), "md"));
}

TEST(Json, SaysWhatTheModelSays) {
  const auto json = nlohmann::json::parse(written(gpu_sample(), "json"));
  EXPECT_EQ(json["schema"], "rangescope.report/1");
  const auto& region = json["regions"][1];
  EXPECT_EQ(region["path"], nlohmann::json({"decode", "layer|0, \"x\""}));
  EXPECT_EQ(region["kind"], "push_pop");
  EXPECT_EQ(region["wall_ns"]["inclusive"], 6e9);
  EXPECT_EQ(region["gpu"]["exclusive_kernels"], 640);
  EXPECT_EQ(region["gpu"]["launch_latency_ns"]["p95"], 9e3);
  EXPECT_EQ(region["gpu"]["partial"], true);
  EXPECT_EQ(json["regions"][0]["gpu"]["partial"], false);
  EXPECT_EQ(region["utilization"]["executed"], 0.25);
  EXPECT_TRUE(region["utilization"]["useful"].is_null());
  EXPECT_TRUE(json["regions"][0]["utilization"].is_null());
  EXPECT_EQ(region["metrics"]["dram__bytes.sum"]["rounds"], 3);
  EXPECT_TRUE(region["metrics"]["sm__cycles.avg"]["value"].is_null());
  EXPECT_TRUE(region["process"].is_null());
  EXPECT_EQ(json["regions"][3]["process"], 7);
  EXPECT_EQ(json["unattributed"]["kernels"], 3);
}

TEST(Json, WhatTerminalsObeyIsEscaped) {
  const std::string raw = "a\xc2\x9b[31m\x7f\xe2\x80\xae b \xc2\xa9 \xe2\x82\xac";
  StringSink sink;
  JsonWriter json(sink);
  json.open_object();
  json.field(raw, raw);
  json.close();
  json.finish();
  const std::string& out = sink.text();
  EXPECT_EQ(out.find("\xc2\x9b"), std::string::npos);
  EXPECT_EQ(out.find('\x7f'), std::string::npos);
  EXPECT_NE(out.find("a\\u009b[31m\\u007f\\u202e b \xc2\xa9 \xe2\x82\xac"), std::string::npos)
      << out;
  EXPECT_EQ(nlohmann::json::parse(out)[raw], raw);
}

TEST(Json, NamesThatAreNotUtf8AreEscapedAndFlagged) {
  const auto json = nlohmann::json::parse(written(nvtx_sample(), "json"));
  EXPECT_EQ(json["regions"][2]["path"][0], "caf\\xe9");
  EXPECT_EQ(json["regions"][2]["name_escaped"], true);
  EXPECT_EQ(json["regions"][0]["name_escaped"], false);
}

TEST(Json, OfNothing) {
  const auto json = nlohmann::json::parse(written(model::Report{}, "json"));
  EXPECT_TRUE(json["regions"].empty());
  EXPECT_TRUE(json["unattributed"].is_null());
}

TEST(JsonWriter, EscapesAndNumbers) {
  StringSink sink;
  JsonWriter json(sink);
  json.open_line_object();
  json.field("a\"\\\n\x01", "\x7f\t");
  json.field("n", 0.1);
  json.field("big", 12345678901234.0);
  json.field("huge", 1e300);
  json.field("nan", std::nan(""));
  json.close();
  json.finish();
  EXPECT_EQ(sink.text(),
            "{\"a\\\"\\\\\\n\\u0001\": \"\\u007f\\t\", \"n\": 0.1, \"big\": 12345678901234, "
            "\"huge\": 1e+300, \"nan\": "
            "null}\n");
}

std::string labels(const Style& style) {
  const model::Report report = nvtx_sample();
  const auto views = scopes(report, style);
  std::string text;
  for (const RowView& row : views->front().rows)
    text += row.label + "; ";
  return text;
}

TEST(View, DepthSortAndTop) {
  EXPECT_EQ(labels({}), "decode; layer|0, \"x\"; caf\\xe9; LLM@step; request [start/end]; ");
  EXPECT_EQ(labels({.depth = 1}), "decode; caf\\xe9; LLM@step; request [start/end]; ");
  EXPECT_EQ(labels({.sort = "wall"}),
            "request [start/end]; decode; layer|0, \"x\"; LLM@step; caf\\xe9; ");
  EXPECT_EQ(labels({.sort = "wall_ns.exclusive", .top = 2}),
            "request [start/end]; decode; layer|0, \"x\"; ");
  EXPECT_EQ(scopes(nvtx_sample(), {.top = 1})->front().hidden, 4u);
}

TEST(View, UnknownNamesGetTheNearest) {
  const base::Error sort = scopes(nvtx_sample(), {.sort = "wal"}).error();
  EXPECT_EQ(sort.what, "no region has a value named 'wal'");
  EXPECT_TRUE(sort.hint.starts_with("did you mean 'wall'")) << sort.hint;
  const base::Error column = columns(gpu_sample(), {.columns = {"gpu.bussy_ns"}}).error();
  EXPECT_TRUE(column.hint.starts_with("did you mean 'gpu.busy_ns'")) << column.hint;
  EXPECT_EQ(columns(gpu_sample(), {.columns = {"dram__bytes.sum"}})->front().tag,
            "metrics.dram__bytes.sum");
  const auto exporter = find_exporter("jsn");
  ASSERT_FALSE(exporter);
  EXPECT_EQ(exporter.error().hint, "did you mean 'json'?");
  const auto removed = find_exporter("otlp");
  ASSERT_FALSE(removed);
  EXPECT_TRUE(removed.error().hint.starts_with("-f otlp was removed: write -f pprof "))
      << removed.error().hint;
}

TEST(View, NamesThatNoReportCanHaveAreKnownBeforeTheProgramRuns) {
  const auto refusal = [](std::vector<std::string> columns, std::string sort = {}) {
    Style style;
    style.columns = std::move(columns);
    style.sort = std::move(sort);
    const auto checked = check_values(style, std::vector<std::string>{"flop"});
    return checked ? std::string() : base::to_string(checked.error());
  };
  EXPECT_EQ(refusal({"wall", "gpu.busy_ns", "bound", "metrics.x"}, "wall"), "");
  EXPECT_EQ(refusal({"dram__bytes.sum", "cpu_branch_mpki", "flop"}), "");
  EXPECT_NE(refusal({"wall", "wal"}).find("'wall'"), std::string::npos);
  EXPECT_NE(refusal({}, "gpu.bsy_ns").find("'gpu.busy_ns'"), std::string::npos);
  EXPECT_NE(refusal({}, "time").find("no region has a value named 'time'"), std::string::npos);
  EXPECT_NE(refusal({}, "zzzzzzzz").find("rangescope help columns"), std::string::npos);
  EXPECT_NE(refusal({}, "bound").find("is text"), std::string::npos);
}

TEST(View, ThousandsOfLevels) {
  model::Report report;
  std::vector<std::string> path;
  for (std::uint32_t i = 0; i < 2000; ++i) {
    path.push_back("r");
    report.regions.push_back(sample_region(report, path, i == 0 ? model::kNone : i - 1, 1, 1, 1));
  }
  const std::string text = written(report, "table", {.width = 100, .all = true});
  EXPECT_NE(text.find("1999: r"), std::string::npos);
}

TEST(Sinks, AFileIsWrittenWholeOrNotAtAll) {
  const auto path =
      std::filesystem::temp_directory_path() / ("report_test." + std::to_string(::getpid()));
  {
    FileSink sink(path);
    sink.write("half");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  FileSink sink(path);
  sink.write("whole");
  ASSERT_TRUE(sink.finish());
  EXPECT_EQ(base::read_file(path).value_or(""), "whole");
  std::filesystem::remove(path);
  FileSink nowhere("/nowhere/report.json");
  nowhere.write("x");
  EXPECT_EQ(nowhere.finish().error().code, base::Code::kIo);
  FileSink full("/dev/full");
  full.write("x");
  EXPECT_FALSE(full.finish());
}

}  // namespace report_test
}  // namespace rangescope::report
