// What older versions of ncu print of a report is what the report holds, and what older versions of
// nsys record is what ran.
//
// tests/golden/nsys/cpu_<version>.sqlite: tests/nsys/program.cpp under nsys 2020.4.3, 2022.4.2 and
// 2023.4.4, without the tables that say nothing about it; beside each what its own `nsys stats`
// made of it. tests/golden/ncu-old/<version>/<report>_<page>[_<locale>].csv.zst:
// tests/golden/ncu/<report> as `ncu --import --csv` of 2020.3.1, 2022.3.0 and 2024.1.1 printed it,
// in several pages, units and locales. (For k_kern the first two were given a copy whose rules of
// the type Optimization, which they do not know, were warnings.)
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "base/fs.hpp"
#include "base/source_dir.hpp"
#include "base/text.hpp"
#include "read/ncu/csv/reader.hpp"
#include "read/ncu/report/reader.hpp"
#include "read/ncu/report/unpack.hpp"
#include "read/nsys/sqlite/reader.hpp"

namespace rangescope::read {
namespace versions_test {

namespace fs = std::filesystem;

const std::string kGolden = std::string(base::source_dir) + "/tests/golden/";

model::Session csv_session(const fs::path& path, const Options& options = {}) {
  const auto packed = base::read_file(path);
  const auto text =
      packed ? ncu_report::unpack(*packed, path.string()) : base::Result<ncu_report::Unpacked>();
  EXPECT_TRUE(packed && text) << path;
  if (!packed || !text)
    return {};
  auto session = ncu_csv::read_text(text->bytes, path.filename().string(), options);
  EXPECT_TRUE(session.has_value()) << path << (session ? "" : base::to_string(session.error()));
  return session ? std::move(*session) : model::Session{};
}

model::Session report_session(const std::string& name) {
  auto session = ncu_report::kReader.read(kGolden + "ncu/" + name + ".ncu-repz", {});
  EXPECT_TRUE(session.has_value()) << name;
  return session ? std::move(*session) : model::Session{};
}

/// "decode > layer0; LLM@decode_all; start/end request" whatever the order in the file.
std::string ranges_of(const model::Session& session, const model::Measurement& one) {
  std::map<std::string, std::string> stacks;
  for (const model::OpenRange& range : one.ranges) {
    const std::string key = (range.kind == model::RangeKind::kStartEnd ? "start/end " : "") +
                            std::string(session.strings.view(session.domains[range.domain].name));
    stacks[key] += " > " + std::string(session.strings.view(range.name));
  }
  std::string text;
  for (const auto& [key, stack] : stacks)
    text += key + stack + "; ";
  return text;
}

std::string kernel_of(const model::Session& session, const model::Measurement& one) {
  if (one.kernel_name == model::kNone)
    return {};
  return std::string(session.strings.view(session.kernel_names[one.kernel_name].short_name));
}

bool has_loss(const model::Session& session, std::string_view kind) {
  return std::any_of(session.losses.begin(), session.losses.end(), [&](const model::Loss& loss) {
    return loss.kind.id() == kind;
  });
}

/// How many values were compared; each is equal to what two printed decimals can say.
std::size_t compare(const model::Session& printed,
                    const model::Session& report,
                    const std::string& file) {
  EXPECT_EQ(printed.measurements.size(), report.measurements.size()) << file;
  if (printed.measurements.size() != report.measurements.size())
    return 0;
  std::size_t compared = 0;
  for (std::size_t i = 0; i < report.measurements.size(); ++i) {
    const model::Measurement &a = printed.measurements[i], &b = report.measurements[i];
    EXPECT_EQ(ranges_of(printed, a), ranges_of(report, b)) << file;
    EXPECT_EQ(kernel_of(printed, a), kernel_of(report, b)) << file;
    EXPECT_EQ(a.scope, b.scope) << file;
    std::map<std::string, double> values;
    for (const model::MetricValue& value : b.values)
      values[report.metrics[value.metric].name] = value.value;
    for (const model::MetricValue& value : a.values) {
      const model::MetricDef& metric = printed.metrics[value.metric];
      const auto truth = values.find(metric.name);
      if (truth == values.end())
        continue;
      const double least = metric.unit == "ratio" ? 0.0051 * 0.01 : 0.0051;
      EXPECT_NEAR(value.value, truth->second, std::max(least, 0.0052 * std::abs(truth->second)))
          << file << ' ' << metric.name << " [" << metric.unit << "] of result " << i;
      ++compared;
    }
  }
  return compared;
}

TEST(OldNcu, PagesOfEveryVersionAndLocaleSayWhatTheReportSays) {
  // Values that a page of each report has by name; labels of old versions are not all known.
  const std::map<std::string, std::size_t> least{{"k_nested_raw", 100},
                                                 {"k_nested_details", 8},
                                                 {"k_kern_raw", 500},
                                                 {"k_kern_details", 40},
                                                 {"k_dom_raw", 100},
                                                 {"ar_decode_raw", 100}};
  std::map<std::string, model::Session> reports;
  std::size_t files = 0;
  for (const auto& version : fs::directory_iterator(kGolden + "ncu-old")) {
    for (const auto& entry : fs::directory_iterator(version)) {
      const std::string name = entry.path().filename().string();
      if (name.find("_per-") != std::string::npos)
        continue;
      std::string base = name.substr(0, name.find('_', name.find('_') + 1));
      if (!reports.contains(base))
        reports.emplace(base, report_session(base));
      const std::string file = version.path().filename().string() + "/" + name;
      const std::size_t compared = compare(csv_session(entry.path()), reports.at(base), file);
      for (const auto& [prefix, count] : least) {
        if (!name.starts_with(prefix))
          continue;
        EXPECT_GE(compared, count) << file;
      }
      EXPECT_GT(compared, 0u) << file;
      ++files;
    }
  }
  EXPECT_GE(files, 45u);
}

TEST(OldNcu, ValuesInAUnitThatTheMetricCannotHaveAreLeftOut) {
  // ncu 2020.3.1 does not know an H200 and prints its "SM Frequency" in nanoseconds.
  const model::Session session = csv_session(kGolden + "ncu-old/2020.3.1/k_kern_details.csv.zst");
  for (const model::Measurement& one : session.measurements)
    for (const model::MetricValue& value : one.values)
      EXPECT_NE(session.metrics[value.metric].name, "gpc__cycles_elapsed.avg.per_second");
  EXPECT_TRUE(has_loss(session, "unit_mismatch"));
}

TEST(PyTorch, PagesWithEnglishNumbersAndRenamedKernelsSayWhatTheReportSays) {
  // Printed by ncu 2025.3.1, which rewrites names of kernels; the report (without its sources) has
  // them whole.
  const model::Session report = report_session("kdet");
  for (const std::string page : {"raw", "raw_base", "details", "details_base"}) {
    const std::size_t compared =
        compare(csv_session(kGolden + "ncu/kdet_" + page + ".csv.zst"), report, "kdet_" + page);
    EXPECT_GE(compared, page.starts_with("raw") ? 2000u : 150u) << page;
    EXPECT_TRUE(csv_session(kGolden + "ncu/kdet_" + page + ".csv.zst").losses.empty()) << page;
  }
  // The log of a profiled program: its own output and ncu's progress around the rows of two decode
  // steps.
  const model::Session all = csv_session(kGolden + "ncu/kall_details.csv.zst");
  EXPECT_EQ(all.measurements.size(), 280u);
  for (const model::Measurement& one : all.measurements) {
    EXPECT_EQ(ranges_of(all, one), " > decode; ");
    EXPECT_EQ(kernel_of(all, one).find(':'), std::string::npos) << kernel_of(all, one);
  }
}

TEST(NcuCsv, EveryRecordedPageSaysWhatTheReportSays) {
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(kGolden + "ncu")) {
    const std::string name = entry.path().filename().string();
    const std::size_t page = std::min(name.find("_raw"), name.find("_details"));
    if (!name.ends_with(".csv.zst") || page == std::string::npos || name.starts_with("kall"))
      continue;
    const std::string base = name.substr(0, page);
    ++files;
    const model::Session printed = csv_session(entry.path());
    if (base == "k_workerp") {  // ranges of several threads: which one launched is not printed
      EXPECT_TRUE(has_loss(printed, "several_threads")) << name;
      continue;
    }
    EXPECT_GT(compare(printed, report_session(base), name), 0u) << name;
  }
  EXPECT_GE(files, 64u);
}

TEST(OldNcu, SummariesAreMeansOverTheLaunches) {
  const model::Session report = report_session("k_nested");
  std::map<std::string, std::pair<double, int>> sums;
  for (const model::Measurement& one : report.measurements)
    for (const model::MetricValue& value : one.values)
      if (report.metrics[value.metric].name == "gpu__time_duration.sum") {
        auto& sum = sums[kernel_of(report, one)];
        sum.first += value.value;
        ++sum.second;
      }
  std::size_t compared = 0;
  for (const char* version : {"2020.3.1", "2022.3.0", "2024.1.1"}) {
    for (const char* kind : {"per-kernel", "per-gpu", "per-nvtx"}) {
      const model::Session summary =
          csv_session(kGolden + "ncu-old/" + version + "/k_nested_" + kind + ".csv.zst");
      for (const model::Measurement& one : summary.measurements) {
        for (const model::MetricValue& value : one.values) {
          if (summary.metrics[value.metric].name != "gpu__time_duration.sum")
            continue;
          const auto& [sum, count] = sums.at(kernel_of(summary, one));
          EXPECT_NEAR(value.value, sum / count, 6) << version << ' ' << kind;
          ++compared;
        }
      }
    }
  }
  EXPECT_GE(compared, 18u);
}

TEST(OldNcu, OneLabelOfSeveralMetricsIsNoNumber) {
  const model::Session session = csv_session(kGolden + "ncu-old/2024.1.1/r_decode_all.csv.zst");
  std::size_t bodies = 0;
  for (const model::Measurement& one : session.measurements) {
    for (const model::MetricValue& value : one.values) {
      const std::string& name = session.metrics[value.metric].name;
      EXPECT_NE(name,
                "GPU and Memory Workload Distribution/Workload Distribution/SM Active Cycles");
      bodies +=
          name.starts_with("GPU Speed Of Light Throughput/Compute Throughput Breakdown/") ? 1 : 0;
    }
  }
  EXPECT_GT(bodies, 20u);
  const auto lost =
      std::find_if(session.losses.begin(), session.losses.end(), [](const model::Loss& loss) {
        return loss.kind == "ambiguous_labels";
      });
  ASSERT_NE(lost, session.losses.end());
  EXPECT_EQ(lost->count, 5u);
}

/// nsys stats: "library:registered" -> instances, total.
std::map<std::string, std::pair<std::int64_t, double>> stats_of(const std::string& name) {
  std::map<std::string, std::pair<std::int64_t, double>> rows;
  const auto text = base::read_file(kGolden + "nsys/" + name);
  EXPECT_TRUE(text.has_value()) << name;
  if (!text)
    return rows;
  std::vector<std::string_view> head;
  for (const std::string_view line : base::split(*text, '\n')) {
    const auto cells = base::split(base::trim(line), ',');
    if (head.empty()) {
      head = cells;
      continue;
    }
    if (cells.size() != head.size())
      continue;
    std::string range;
    std::pair<std::int64_t, double> row;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (head[i] == "Range")
        range = cells[i];
      if (head[i] == "Instances")
        row.first = base::to_int(cells[i]).value_or(-1);
      if (head[i] == "Total Time (ns)")
        row.second = base::to_double(cells[i]).value_or(-1);
    }
    rows[range] = row;
  }
  return rows;
}

TEST(OldNsys, EveryVersionTellsTheRangesThatRan) {
  // What the program does (tests/nsys/program.cpp): 60 iterations and 40 rounds of a worker.
  const std::map<std::string, std::int64_t> ran{{"step", 60},
                                                {"load", 160},
                                                {"compute", 60},
                                                {"colored", 60},
                                                {":registered", 60},
                                                {"wide", 60},
                                                {"worker", 40}};
  for (const std::string version : {"2020.4.3", "2022.4.2", "2023.4.4"}) {
    auto session = nsys_sqlite::kReader.read(kGolden + "nsys/cpu_" + version + ".sqlite", {});
    ASSERT_TRUE(session.has_value()) << version << base::to_string(session.error());
    std::map<std::string, std::pair<std::int64_t, double>> found;
    std::int64_t iterations = 0;
    for (const model::Range& range : session->ranges) {
      const std::string name(session->strings.view(range.name)),
          domain(session->strings.view(session->domains[range.domain].name));
      if (range.kind == model::RangeKind::kStartEnd) {
        iterations += name == "iteration" ? 1 : 0;
        continue;
      }
      auto& row = found[domain.empty() ? name : domain + ":" + name];
      ++row.first;
      row.second += static_cast<double>(range.end_ns - range.start_ns);
    }
    EXPECT_EQ(iterations, 60) << version;
    EXPECT_EQ(found, stats_of("cpu_" + version + "_nvtx_pushpop_sum.csv")) << version;
    for (const auto& [name, count] : ran) {
      const std::string key = name == ":registered" ? "library:registered" : name;
      EXPECT_EQ(found[key].first, count) << version << ' ' << key;
    }
    EXPECT_EQ(session->sources.at(0).tool.find(version) != std::string::npos, version != "2020.4.3")
        << session->sources.at(0).tool;  // exports of 2020 do not say who wrote them
    EXPECT_EQ(session->marks.size(), 60u) << version;
  }
}

}  // namespace versions_test
}  // namespace rangescope::read
