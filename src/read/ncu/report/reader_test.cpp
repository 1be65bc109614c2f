#include "read/ncu/report/reader.hpp"

#include <cmath>
#include <map>
#include <set>

#include "base/text.hpp"
#include "model/metric_unit.hpp"
#include "read/ncu/report/decode.hpp"
#include "read/ncu/report/golden_test.hpp"

namespace rangescope::read::ncu_report {
namespace reader_test {

model::Session golden_session(const std::string& name) {
  auto session = kReader.read(golden_path(name + ".ncu-repz"), {});
  EXPECT_TRUE(session.has_value()) << name << (session ? "" : base::to_string(session.error()));
  return session ? std::move(*session) : model::Session{};
}

std::string path_of(const model::Session& session,
                    const model::Measurement& measurement,
                    std::uint32_t domain) {
  std::string path;
  for (const model::OpenRange& range : measurement.ranges) {
    if (range.kind != model::RangeKind::kPushPop || range.domain != domain)
      continue;
    path += (path.empty() ? "" : " > ") + std::string(session.strings.view(range.name));
  }
  return path;
}

/// Path -> kernels, inclusive, of one domain: what truth.json counts.
std::map<std::string, int> kernels_by_region(const model::Session& session,
                                             std::uint32_t domain = 0) {
  std::map<std::string, int> counts;
  for (const model::Measurement& measurement : session.measurements) {
    const std::string path = path_of(session, measurement, domain);
    for (std::size_t at = path.find(" > "); at != std::string::npos; at = path.find(" > ", at + 1))
      ++counts[path.substr(0, at)];
    ++counts[path];
  }
  return counts;
}

double value_of(const model::Session& session,
                const model::Measurement& measurement,
                const std::string& name) {
  for (const model::MetricValue& value : measurement.values) {
    if (session.metrics[value.metric].name == name)
      return value.value;
  }
  return std::nan("");
}

TEST(NcuReport, ValuesEqualTheRawPageToItsPrintPrecision) {
  std::size_t compared = 0;
  for (const std::string& name : golden_reports()) {
    if (name.front() == 'l')
      continue;  // no base-unit page was recorded of these
    const std::string bytes = golden(name + ".ncu-repz");
    auto file = File::parse(bytes, name);
    ASSERT_TRUE(file.has_value());
    const auto rows = csv_rows(golden(name + "_raw_base.csv.zst"));
    ASSERT_EQ(rows.size(), file->results.size() + 2) << name;
    std::uint64_t unknown = 0;
    for (std::size_t r = 0; r < file->results.size(); ++r) {
      const auto result = decode(*file, file->results[r], unknown);
      ASSERT_TRUE(result.has_value());
      std::map<std::string_view, const MetricEntry*> metrics;
      for (const MetricEntry& metric : result->metrics)
        metrics[file->string(metric.name)] = &metric;
      for (std::size_t c = 0; c < rows[0].size(); ++c) {
        const auto found = metrics.find(rows[0][c]);
        if (found == metrics.end() || !found->second->value.is_number())
          continue;
        const auto printed = base::to_double(base::replace_all(rows[r + 2][c], ",", ""));
        if (!printed || std::isnan(*printed))
          continue;  // an enumerator by its name
        EXPECT_NEAR(*printed, found->second->value.as_double(), 0.0051)
            << name << " " << rows[0][c] << " row " << r;
        ++compared;
      }
    }
    EXPECT_EQ(unknown, 0u) << name;
  }
  EXPECT_GT(compared, 20000u);
}

TEST(NcuReport, KernelReplayGivesTheKernelsOfTheRegions) {
  // truth.json of the recorded program: decode 24 kernels, 12 in each layer, in 6 instances
  const model::Session session = golden_session("k_decode");
  const std::map<std::string, int> expected{
      {"decode", 24}, {"decode > layer0", 12}, {"decode > layer1", 12}};
  EXPECT_EQ(kernels_by_region(session), expected);
  const std::map<std::string, int> llm{{"decode_all", 24}};
  ASSERT_EQ(session.domains.size(), 2u);
  EXPECT_EQ(session.strings.view(session.domains[1].name), "LLM");
  EXPECT_EQ(kernels_by_region(session, 1), llm);
  std::set<std::uint64_t> occurrences;
  for (const auto& measurement : session.measurements) {
    for (const auto& range : measurement.ranges) {
      if (session.strings.view(range.name) == "decode")
        occurrences.insert(range.instance);
    }
  }
  EXPECT_EQ(occurrences.size(), 6u);
  EXPECT_EQ(session.measurements.front().ordinal, 0u);
  EXPECT_EQ(session.measurements[1].ordinal, 1u);
  EXPECT_EQ(session.measurements[22].occurrence, 5u);
}

TEST(NcuReport, FiltersOfTheCaptureShowInTheRegions) {
  const std::map<std::string, int> nested{{"prefill", 4}, {"prefill > layer1", 4}};
  EXPECT_EQ(kernels_by_region(golden_session("k_nested")), nested);
  EXPECT_EQ(kernels_by_region(golden_session("k_exc")), nested);
  // the worker's own stack counts, not that of the thread that waits for it
  const std::map<std::string, int> worker{{"worker", 2}};
  EXPECT_EQ(kernels_by_region(golden_session("k_workerp")), worker);
}

TEST(NcuReport, RangeResultsMeasureTheRangeThatTheFilterNamed) {
  const model::Session session = golden_session("r_decode");
  std::map<std::string, int> measured;
  for (const auto& measurement : session.measurements) {
    ASSERT_EQ(measurement.scope, model::MeasuredScope::kRange);
    ASSERT_FALSE(measurement.ranges.empty());
    ++measured[std::string(session.strings.view(measurement.ranges.back().name))];
    EXPECT_GT(value_of(session, measurement, "gpu__time_duration.sum"), 1000);
  }
  const std::map<std::string, int> expected{{"A", 1}, {"decode", 6}};
  EXPECT_EQ(measured, expected);
  for (const char* name : {"r_async", "ar_async"}) {
    const model::Session async = golden_session(name);
    ASSERT_EQ(async.measurements.size(), 1u);
    EXPECT_EQ(async.strings.view(async.measurements[0].ranges.back().name), "async");
    EXPECT_GT(value_of(async, async.measurements[0], "sm__inst_executed.sum"), 0);
  }
  const model::Session domain = golden_session("ar_decode");
  ASSERT_EQ(domain.measurements.size(), 2u);
  EXPECT_EQ(domain.strings.view(domain.measurements[0].ranges.back().name), "decode_all");
  EXPECT_EQ(domain.strings.view(domain.domains[domain.measurements[0].ranges.back().domain].name),
            "LLM");
}

TEST(NcuReport, DescribesDeviceKernelAndShape) {
  const model::Session session = golden_session("k_decode");
  ASSERT_EQ(session.devices.size(), 1u);
  const model::Device& device = session.devices[0];
  EXPECT_EQ(session.strings.view(device.name), "NVIDIA H200");
  EXPECT_EQ(session.strings.view(device.chip), "GH100");
  EXPECT_EQ(device.compute_major, 9u);
  EXPECT_EQ(device.sm_count, 132u);
  EXPECT_NEAR(device.memory_bytes_per_s, 4.81e12, 0.01e12);
  const model::Measurement& first = session.measurements.front();
  EXPECT_EQ(session.strings.view(session.kernel_names[first.kernel_name].short_name), "gemm_like");
  EXPECT_EQ(session.strings.view(session.kernel_names[first.kernel_name].demangled),
            "gemm_like(const float *, const float *, float *, int)");
  const model::KernelShape& shape = session.kernel_shapes[first.shape];
  EXPECT_EQ(shape.grid[0], 16u);
  EXPECT_EQ(shape.block[1], 16u);
  EXPECT_EQ(shape.registers_per_thread, 32u);
  EXPECT_EQ(session.streams[first.stream].id, 13u);
  EXPECT_NEAR(value_of(session, first, "sm__warps_active.avg.pct_of_peak_sustained_active"),
              0.2403,
              0.0001);
  EXPECT_EQ(session.sources[0].tool, "Nsight Compute 2025.3.1.0");
  EXPECT_EQ(first.note, "ncu kernel replay, caches flushed before each pass, clocks not locked");
}

TEST(NcuReport, NothingOfTheEnvironmentIsKept) {
  const std::string bytes = golden("k_nested.ncu-repz");
  const auto file = File::parse(bytes, "k_nested");
  ASSERT_TRUE(file.has_value());
  EXPECT_TRUE(file->session.command_line.find("--nvtx-include prefill/layer1/") !=
              std::string_view::npos);
}

TEST(NcuReport, IsSniffedByContent) {
  const std::string bytes = golden("ar_async.ncu-repz");
  EXPECT_TRUE(File::sniff(std::string_view(bytes).substr(0, 4096)));
  const std::string packed = golden_path("ar_async.ncu-repz");
  const auto head = base::read_head(packed, 4096);
  EXPECT_TRUE(kReader.sniff(std::as_bytes(std::span(*head)), packed));
  EXPECT_FALSE(File::sniff(std::string_view("NVR\0\x10\0\0\0 a mesh of a game", 24)));
  EXPECT_FALSE(File::sniff("\x28\xb5\x2f\xfd and then nothing of the kind"));
  EXPECT_FALSE(File::sniff(""));
}

TEST(MetricUnit, EqualsWhatNcuPrints) {
  const auto check = [](const std::string& file, model::UnitSpelling spelling) {
    std::size_t rows = 0;
    const std::string text = golden(file);
    for (const std::string_view line : base::split(text, '\n')) {
      const std::size_t tab = line.find('\t');
      if (tab == std::string_view::npos || line.starts_with("metric\t"))
        continue;
      EXPECT_EQ(model::metric_unit(line.substr(0, tab), spelling), line.substr(tab + 1))
          << line.substr(0, tab);
      ++rows;
    }
    return rows;
  };
  EXPECT_EQ(check("metric_units_2024.1.1_base.tsv.zst", model::UnitSpelling::kNcu2024), 2685u);
  EXPECT_EQ(check("metric_units_2025.3.1_base.tsv.zst", model::UnitSpelling::kNcu2025), 1851u);
}

TEST(MetricUnit, ReadsEveryScaleThatNcuPrints) {
  const auto parsed = [](std::string_view text) {
    const auto scaled = model::parse_ncu_unit(text);
    return scaled.unit + " " + std::to_string(scaled.factor);
  };
  EXPECT_EQ(parsed("Mbyte"), "byte 1000000.000000");
  EXPECT_EQ(parsed("us"), "ns 1000.000000");
  EXPECT_EQ(parsed("msecond"), "ns 1000000.000000");
  EXPECT_EQ(parsed("Ghz"), "Hz 1000000000.000000");
  EXPECT_EQ(parsed("cycle/nsecond"), "Hz 1000000000.000000");
  EXPECT_EQ(parsed("Gbyte/s"), "byte/s 1000000000.000000");
  EXPECT_EQ(parsed("%"), "ratio 0.010000");
  EXPECT_EQ(parsed("/second"), "1/s 1.000000");
  EXPECT_EQ(parsed("Kbyte/block"), "byte/block 1000.000000");
  EXPECT_EQ(parsed("register/thread"), "register/thread 1.000000");
  EXPECT_EQ(parsed(""), " 1.000000");
}

}  // namespace reader_test
}  // namespace rangescope::read::ncu_report
