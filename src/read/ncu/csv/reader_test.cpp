#include "read/ncu/csv/reader.hpp"

#include <gtest/gtest.h>
#include <zstd.h>

#include <cmath>
#include <map>

#include "base/fs.hpp"
#include "base/source_dir.hpp"
#include "read/ncu/csv/nvtx_cell.hpp"

namespace rangescope::read::ncu_csv {
namespace reader_test {

std::string golden(const std::string& name) {
  const auto packed =
      base::read_file((std::string(base::source_dir) + "/tests/golden/ncu/") + name);
  EXPECT_TRUE(packed.has_value()) << name;
  std::string text(ZSTD_getFrameContentSize(packed->data(), packed->size()), '\0');
  EXPECT_EQ(ZSTD_decompress(text.data(), text.size(), packed->data(), packed->size()), text.size());
  return text;
}

model::Session session_of(const std::string& text, const Options& options = {}) {
  auto session = read_text(text, "x.csv", options);
  EXPECT_TRUE(session.has_value()) << (session ? "" : base::to_string(session.error()));
  return session ? std::move(*session) : model::Session{};
}

double value_of(const model::Session& session, std::size_t measurement, const std::string& name) {
  for (const model::MetricValue& value : session.measurements.at(measurement).values) {
    if (session.metrics[value.metric].name == name)
      return value.value;
  }
  return std::nan("");
}

std::map<std::string, int> kernels_by_region(const model::Session& session) {
  std::map<std::string, int> counts;
  for (const model::Measurement& measurement : session.measurements) {
    std::string path;
    for (const model::OpenRange& range : measurement.ranges) {
      if (range.kind != model::RangeKind::kPushPop || range.domain != 0)
        continue;
      path += (path.empty() ? "" : " > ") + std::string(session.strings.view(range.name));
      ++counts[path];
    }
  }
  return counts;
}

TEST(NcuCsv, RawAndDetailsPagesGiveTheKernelsOfTheRegions) {
  const std::map<std::string, int> expected{
      {"decode", 24}, {"decode > layer0", 12}, {"decode > layer1", 12}};
  for (const char* page : {"k_decode_raw.csv.zst",
                           "k_decode_raw_base.csv.zst",
                           "k_decode_details.csv.zst",
                           "k_decode_details_base.csv.zst"}) {
    const model::Session session = session_of(golden(page));
    EXPECT_EQ(session.measurements.size(), 24u) << page;
    EXPECT_EQ(kernels_by_region(session), expected) << page;
    EXPECT_NEAR(value_of(session, 0, "gpu__time_duration.sum"), 19360, 5.1) << page;
    EXPECT_NEAR(
        value_of(session, 0, "sm__warps_active.avg.pct_of_peak_sustained_active"), 0.2403, 0.0001)
        << page;
    EXPECT_EQ(
        session.strings.view(session.kernel_names[session.measurements[0].kernel_name].short_name),
        "gemm_like")
        << page;
    EXPECT_EQ(session.kernel_shapes[session.measurements[1].shape].grid[0], 256u) << page;
    EXPECT_EQ(session.devices.at(0).compute_major, 9u) << page;
  }
}

TEST(NcuCsv, RangeRowsAreRanges) {
  const model::Session session = session_of(golden("ar_decode_details.csv.zst"));
  ASSERT_EQ(session.measurements.size(), 2u);
  EXPECT_EQ(session.measurements[0].scope, model::MeasuredScope::kRange);
  EXPECT_EQ(session.strings.view(session.measurements[0].ranges.back().name), "decode_all");
  EXPECT_NEAR(value_of(session, 0, "dram__bytes.sum"), 535810, 6);
  EXPECT_NEAR(value_of(session, 0, "sm__inst_executed.sum"), 15151104, 0.5);
}

constexpr std::string_view kHeader =
    "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel "
    "Name\",\"Context\",\"Stream\",\"Section "
    "Name\",\"Metric Name\","
    "\"Metric Unit\",\"Metric Value\"\n";

std::string row(const std::string& id,
                const std::string& metric,
                const std::string& unit,
                const std::string& value) {
  return "\"" + id +
         "\",\"7\",\"app\",\"h\",\"k(int)\",\"1\",\"7\",\"Command line profiler metrics\",\"" +
         metric + "\",\"" + unit + "\",\"" + value + "\"\n";
}

TEST(NcuCsv, PreambleAndProgramOutputAreSkipped) {
  const std::string text =
      "==PROF== Connected to process 7 (/app)\nhello \"ID\", said the "
      "program\n\"unclosed\n\xff\xfe not UTF-8\n" +
      std::string(kHeader) + row("0", "dram__bytes.sum", "Kbyte", "1.50") +
      "progress: 50 %\n==PROF== Disconnected\n" + row("1", "dram__bytes.sum", "Mbyte", "2.25");
  const model::Session session = session_of(text);
  ASSERT_EQ(session.measurements.size(), 2u);
  EXPECT_EQ(value_of(session, 0, "dram__bytes.sum"), 1500);
  EXPECT_EQ(value_of(session, 1, "dram__bytes.sum"), 2250000);  // scaled row by row
  ASSERT_EQ(session.losses.size(), 1u);
  EXPECT_EQ(session.losses[0].kind.id(), "foreign_lines");
  EXPECT_EQ(session.losses[0].count, 1u);
}

TEST(NcuCsv, OldAndNewWordsOfUnitsAreOne) {
  const model::Session session =
      session_of(std::string(kHeader) + row("0", "gpu__time_duration.sum", "usecond", "2.50") +
                 row("1", "gpu__time_duration.sum", "us", "2.50"));
  EXPECT_EQ(value_of(session, 0, "gpu__time_duration.sum"), 2500);
  EXPECT_EQ(value_of(session, 1, "gpu__time_duration.sum"), 2500);
  EXPECT_EQ(session.metrics[0].unit, "ns");
}

TEST(NcuCsv, RuleRowsAreRaggedAndNoMetrics) {
  const std::string text =
      "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Kernel "
      "Time\",\"Context\",\"Stream\",\"Section Name\",\"Metric Name\","
      "\"Metric Unit\",\"Metric Value\",\"Rule Name\",\"Rule Type\",\"Rule Description\"\n"
      "\"0\",\"7\",\"a\",\"h\",\"k\",\"2022-Jan-01\",\"1\",\"7\",\"GPU Speed Of Light "
      "Throughput\",\"Duration\",\"usecond\",\"3.5\",\n"
      "\"0\",\"7\",\"a\",\"h\",\"k\",\"2022-Jan-01\",\"1\",\"1\",\"SpeedOfLight\",\"\",\"\",\"\","
      "\"SOLBottleneck\","
      "\"WRN\",\"a rule, with \"\"quotes\"\"\nand a line\"\n";
  const model::Session session = session_of(text);
  ASSERT_EQ(session.measurements.size(), 1u);
  EXPECT_EQ(value_of(session, 0, "gpu__time_duration.sum"), 3500);
  EXPECT_TRUE(session.losses.empty());
}

TEST(NcuCsv, SeparatorsOfLocales) {
  const auto value = [](const std::string& a, const std::string& b) {
    return value_of(session_of(std::string(kHeader) + row("0", "sm__inst_executed.sum", "inst", a) +
                               row("0", "dram__bytes.sum", "byte", b)),
                    0,
                    "sm__inst_executed.sum");
  };
  EXPECT_EQ(value("129977", "5.79"), 129977);
  EXPECT_EQ(value("129,977", "5.79"), 129977);
  EXPECT_EQ(value("129.977", "5,79"), 129977);
  EXPECT_EQ(value("129\xe2\x80\xaf"
                  "977",
                  "5,79"),
            129977);
  EXPECT_EQ(value("129\xe2"
                  "977",
                  "5,79"),
            129977);  // the lone byte of ncu 2020.3
  EXPECT_EQ(value("1,129,977", "3"), 1129977);
}

TEST(NcuCsv, AmbiguousNumbersAreRefusedUntilTheFormatIsNamed) {
  const std::string text =
      std::string(kHeader) + row("0", "sm__inst_executed.sum", "inst", "1,234");
  const auto refused = read_text(text, "x.csv", {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, base::Code::kBadData);
  EXPECT_EQ(refused.error().where, "x.csv:2");
  EXPECT_NE(refused.error().hint.find("--number-format"), std::string::npos);
  Options options;
  options.number_format = "en";
  EXPECT_EQ(value_of(session_of(text, options), 0, "sm__inst_executed.sum"), 1234);
  options.number_format = "de";
  EXPECT_EQ(value_of(session_of(text, options), 0, "sm__inst_executed.sum"), 1.234);
  const auto both = read_text(
      std::string(kHeader) + row("0", "a__b.sum", "", "1.5") + row("0", "a__c.sum", "", "1,5"),
      "x.csv",
      {});
  ASSERT_FALSE(both.has_value());
  EXPECT_EQ(both.error().where, "x.csv:3");
}

TEST(NcuCsv, NvtxCellsWithColonsAndQuotes) {
  std::uint64_t left = 0;
  const auto stack =
      parse_cell(R"(12  "<default domain>:compute:profile:none:none:none:none:none:none"  )"
                 R"("my:dom:say "hi" now:Int64:42:RGB:0xff112233:ASCII:say "hi" now"  )"
                 R"("LLM:a b:none:none:none:none:REGISTERED:a b" )",
                 Cell::kPushPop,
                 {},
                 left);
  ASSERT_EQ(stack.size(), 3u);
  EXPECT_EQ(stack[0].thread, 12u);
  EXPECT_EQ(stack[0].domain, "");
  EXPECT_EQ(stack[0].name, "compute:profile");
  EXPECT_EQ(stack[1].domain, "my:dom");
  EXPECT_EQ(stack[1].name, "say \"hi\" now");
  EXPECT_EQ(stack[2].domain, "LLM");
  EXPECT_EQ(left, 0u);
  const auto open = parse_cell(
      R"( "3:<default domain>:x:y:none:none:none:none:none:none" )", Cell::kStartEnd, {}, left);
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].id, 3u);
  EXPECT_EQ(open[0].name, "x:y");
  const auto old =
      parse_cell(R"(9  "<default domain>:A:none:none"  "<default domain>:B:Uint32:5" )",
                 Cell::kPushPop,
                 {},
                 left);
  ASSERT_EQ(old.size(), 2u);
  EXPECT_EQ(old[1].name, "B");
  EXPECT_EQ(left, 0u);
}

TEST(NcuCsv, SummariesGiveMeans) {
  const model::Session session = session_of(
      "\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Block Size\",\"Grid "
      "Size\",\"Device\",\"CC\",\"Invocations\",\"Section Name\","
      "\"Metric Name\",\"Metric Unit\",\"Minimum\",\"Maximum\",\"Average\"\n"
      "\"4700\",\"zoo\",\"127.0.0.1\",\"gemm_like(int)\",\"(16, 16, 1)\",\"(16, 16, "
      "1)\",\"0\",\"9.0\",\"2\",\"Command "
      "line profiler metrics\","
      "\"dram__bytes.sum\",\"Kbyte\",\"530.43\",\"533.76\",\"532.10\"\n");
  ASSERT_EQ(session.measurements.size(), 1u);
  EXPECT_NEAR(value_of(session, 0, "dram__bytes.sum"), 532100, 1e-6);
  EXPECT_EQ(session.measurements[0].note, "mean over 2 launches (ncu summary)");
}

TEST(NcuCsv, CutAndFlippedFilesNeverCrash) {
  const std::string text = golden("ar_decode_raw.csv.zst") + golden("k_nested_details.csv.zst");
  for (int i = 0; i < 20; ++i) {
    const auto session =
        read_text(std::string_view(text).substr(0, text.size() * static_cast<std::size_t>(i) / 20),
                  "cut.csv",
                  {});
    if (!session) {
      EXPECT_FALSE(session.error().what.empty());
    }
  }
  std::uint64_t state = 88172645463325252ull;
  for (int i = 0; i < 200; ++i) {
    std::string damaged = text;
    for (int k = 0; k < 8; ++k) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      damaged[state % damaged.size()] = static_cast<char>(state >> 40);
    }
    const auto session = read_text(damaged, "flipped.csv", {});
    if (!session) {
      EXPECT_FALSE(session.error().where.empty());
    }
  }
}

TEST(NcuCsv, IsSniffedByContent) {
  const std::string text = golden("k_nested_details.csv.zst");
  EXPECT_TRUE(kReader.sniff(std::as_bytes(std::span(text)).first(4096), "x.txt"));
  const std::string other = "\"ID\",\"Name\"\n\"1\",\"x\"\n";
  EXPECT_FALSE(kReader.sniff(std::as_bytes(std::span(other)), "x.csv"));
}

/// kind count, one a line
std::string losses_of(const model::Session& session) {
  std::string text;
  for (const model::Loss& loss : session.losses)
    text += std::string(loss.kind.id()) + ' ' + std::to_string(loss.count) + '\n';
  return text;
}

const std::string kRawHead =
    "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\","
    "\"gpu__time_duration.sum\",\"launch__func_cache_config\"\n"
    "\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"ns\",\"\"\n"
    "\"0\",\"7\",\"app\",\"host\",\"k\",\"1\",\"7\",\"100\",\"CachePreferNone\"\n";

TEST(NcuCsv, RowsWithoutAKernelAreLeftOut) {
  std::string text = kRawHead;
  for (int i = 1; i <= 20; ++i)
    text += '"' + std::to_string(i) + "\",\"5\"\n";
  const model::Session session = session_of(text);
  EXPECT_EQ(session.measurements.size(), 1u);
  EXPECT_EQ(session.processes.size(), 1u);
  EXPECT_EQ(losses_of(session), "bad_rows 20\n");
}

TEST(NcuCsv, AShortRowEndsNoTable) {
  const model::Session session =
      session_of(kRawHead + "\"1\",\"7\",\"app\",\"host\",\"k\",\"1\"\n" +
                 "\"2\",\"7\",\"app\",\"host\",\"k\",\"1\",\"7\",\"200\",\"\"\n");
  ASSERT_EQ(session.measurements.size(), 3u);
  EXPECT_EQ(value_of(session, 2, "gpu__time_duration.sum"), 200);
  EXPECT_EQ(losses_of(session), "short_rows 1\n");
}

TEST(NcuCsv, ValueThatIsNoNumberIsALoss) {
  const model::Session session = session_of(
      kRawHead + "\"1\",\"7\",\"app\",\"host\",\"k\",\"1\",\"7\",\"abc\",\"CachePreferNone\"\n");
  EXPECT_EQ(session.measurements.size(), 2u);
  EXPECT_TRUE(std::isnan(value_of(session, 1, "gpu__time_duration.sum")));
  EXPECT_EQ(losses_of(session),
            "bad_numbers 1\n");  // and the name of a cache configuration is none
}

TEST(NcuCsv, DurationsAreNumbersFromZero) {
  for (const char* duration : {"nan", "-100"}) {
    const model::Session session =
        session_of(kRawHead + "\"1\",\"7\",\"app\",\"host\",\"k\",\"1\",\"7\",\"" + duration +
                   "\",\"CachePreferNone\"\n");
    EXPECT_TRUE(std::isnan(value_of(session, 1, "gpu__time_duration.sum"))) << duration;
    EXPECT_EQ(losses_of(session), "bad_numbers 1\n") << duration;
    const model::Session details =
        session_of(std::string(kHeader) + row("0", "gpu__time_duration.sum", "us", duration));
    EXPECT_TRUE(std::isnan(value_of(details, 0, "gpu__time_duration.sum"))) << duration;
    EXPECT_EQ(losses_of(details), "bad_numbers 1\n") << duration;
  }
}

TEST(NcuCsv, ValuesWithoutUnitsAreNotTakenForBaseUnits) {
  const auto error_of = [](const std::string& text) {
    const auto session = read_text(text, "x.csv", {});
    return session ? "" : session.error().where + ": " + session.error().what;
  };
  const std::size_t units = kRawHead.find('\n') + 1, rows = kRawHead.find('\n', units) + 1;
  EXPECT_EQ(error_of(kRawHead.substr(0, units) + kRawHead.substr(rows)),
            "x.csv:2: the row of units is missing");
  EXPECT_EQ(
      error_of(kRawHead.substr(0, units) + "\"\",\"\",\"\",\"\",\"\"\n" + kRawHead.substr(rows)),
      "x.csv:2: the row of units is shorter than the header");
  std::string no_column(kHeader);
  no_column.replace(no_column.find("\"Metric Unit\","), 14, "");
  EXPECT_EQ(error_of(no_column + row("0", "gpu__time_duration.sum", "us", "1")),
            "x.csv:1: the header has a column 'Metric Name' but no 'Metric Unit'");
  std::string no_unit = kRawHead;
  no_unit.replace(no_unit.find("\"ns\""), 4, "\"\"");
  EXPECT_EQ(losses_of(session_of(no_unit)), "unit_mismatch 1\n");
  EXPECT_TRUE(std::isnan(value_of(session_of(no_unit), 0, "gpu__time_duration.sum")));
}

TEST(NcuCsv, UnitsOfALogThatWasAppendedToAreItsOwn) {
  std::string second = kRawHead;
  second.replace(second.find("\"ns\""), 4, "\"us\"");
  const model::Session session = session_of(kRawHead + second);
  EXPECT_EQ(losses_of(session), "");
  EXPECT_EQ(value_of(session, 0, "gpu__time_duration.sum"), 100);
  EXPECT_EQ(value_of(session, 1, "gpu__time_duration.sum"), 100'000);
}

TEST(NcuCsv, FileThatEndsInsideARowIsTorn) {
  const std::string row = "\"1\",\"7\",\"app\",\"host\",\"k\",\"1\",\"7\",\"200\",";
  for (const std::size_t length : {row.size(), row.size() - 7, std::size_t{11}}) {
    const model::Session session = session_of(kRawHead + row.substr(0, length));
    EXPECT_NE(losses_of(session).find("torn_tail 1"), std::string::npos)
        << length << losses_of(session);
  }
  EXPECT_EQ(losses_of(session_of(kRawHead + row + "\"CachePreferNone\"")), "");
}

}  // namespace reader_test
}  // namespace rangescope::read::ncu_csv
