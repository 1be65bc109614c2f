// Counter records made by hand: what they become, and that no record, however wrong, does harm or
// gives half a set.
#include "read/native/counters.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <span>
#include <string>

#include "read/native/gpu.hpp"

namespace rangescope::read::native {
namespace counters_test {

namespace gpu = wire::gpu;
namespace wired = wire::counters;

// A GPU stream with one block.
class Stream {
 public:
  void name(std::uint32_t id, const std::string& text) {
    gpu::Name record{};
    record.head.type = gpu::Type::kName;
    record.head.id = id;
    record.bytes = static_cast<std::uint32_t>(text.size());
    put(record, text.data(), text.size());
  }
  void metric(std::uint32_t id, const std::string& text) {
    wired::Metric record{};
    record.head = head(wired::Type::kMetric, id);
    record.bytes = static_cast<std::uint32_t>(text.size());
    put(record, text.data(), text.size());
  }
  void target(std::uint32_t id, std::vector<std::uint32_t> names, std::uint32_t claimed = 0) {
    wired::Target record{};
    record.head = head(wired::Type::kTarget, id);
    record.domain = 1;
    record.names = claimed != 0 ? claimed : static_cast<std::uint32_t>(names.size());
    put(record, names.data(), names.size() * sizeof names[0]);
  }
  void round(std::uint32_t target,
             const std::vector<double>& values,
             std::uint32_t kernel = wired::kWholeRange,
             std::uint32_t claimed = 0) {
    wired::Round record{};
    record.head = head(wired::Type::kRound, target);
    record.kernel = kernel;
    record.name = kernel == wired::kWholeRange ? 0 : 9;
    record.passes = 4;
    record.first = 7;
    record.grid[0] = 16;
    record.count = claimed != 0 ? claimed : static_cast<std::uint32_t>(values.size());
    put(record, values.data(), values.size() * sizeof values[0]);
  }
  void tally(std::uint32_t target,
             std::uint32_t rounds,
             std::uint8_t small = 0,
             std::uint32_t settled = 0,
             std::uint32_t varied = 0) {
    wired::Tally record{};
    record.varied = varied;
    record.skipped_first = settled;
    record.head = head(wired::Type::kTally, target);
    record.head.small = small;
    record.occurrences = 64;
    record.measured = 3;
    record.passes = 3;
    record.needed = 10;
    record.rounds = rounds;
    put(record, nullptr, 0);
  }
  void info(const std::string& key, const std::string& value) {
    gpu::Info record{};
    record.head.type = gpu::Type::kInfo;
    const std::string text = key + '\0' + value;
    record.bytes = static_cast<std::uint32_t>(text.size());
    put(record, text.data(), text.size());
  }
  void api(std::uint32_t id, const std::string& text) {
    gpu::Name record{};
    record.head.type = gpu::Type::kApi;
    record.head.id = id;
    record.bytes = static_cast<std::uint32_t>(text.size());
    put(record, text.data(), text.size());
  }
  void call(std::int64_t start_ns) {
    gpu::Launch record{};
    record.head.type = gpu::Type::kLaunch;
    record.head.id = 5;
    record.head.small = 3;
    record.start_ns = start_ns;
    record.duration_ns = 10;
    put(record, nullptr, 0);
  }
  void copy(std::int64_t start_ns, std::int64_t length_ns = 100) {
    gpu::Copy record{};
    record.head.type = gpu::Type::kCopy;
    record.head.id = 5;
    record.start_ns = start_ns;
    record.end_ns = start_ns + length_ns;
    put(record, nullptr, 0);
  }
  void activity(bool resumed, std::int64_t at) {
    wired::Activity record{};
    record.head = head(wired::Type::kActivity, 0);
    record.head.small = resumed ? 1 : 0;
    record.at_ns = at;
    put(record, nullptr, 0);
  }
  [[nodiscard]] std::string bytes() const {
    gpu::FileHeader file{};
    std::memcpy(file.magic, gpu::kMagic, sizeof file.magic);
    file.version = gpu::kVersion;
    file.header_bytes = sizeof file;
    gpu::BlockHeader block{
        gpu::kBlockMagic,
        static_cast<std::uint32_t>(body_.size()),
        gpu::checksum(reinterpret_cast<const std::byte*>(body_.data()), body_.size())};
    return std::string(reinterpret_cast<const char*>(&file), sizeof file) +
           std::string(reinterpret_cast<const char*>(&block), sizeof block) + body_;
  }
  std::string body_;

 private:
  static gpu::RecordHeader head(wired::Type type, std::uint32_t id) {
    return {static_cast<gpu::Type>(type), 0, 0, id};
  }
  template <class Record>
  void put(Record record, const void* more, std::size_t bytes) {
    const std::size_t size = (sizeof record + bytes + 7) / 8 * 8;
    record.head.words = static_cast<std::uint16_t>(size / 8);
    std::string text(size, '\0');
    std::memcpy(text.data(), &record, sizeof record);
    if (bytes > 0)
      std::memcpy(text.data() + sizeof record, more, bytes);
    body_ += text;
  }
};

Stream sample() {
  Stream s;
  s.name(1, "");
  s.name(2, "step");
  s.name(3, "decode");
  s.name(9, "_Z4gemmPKfS0_Pfi");
  s.metric(0, "dram__bytes.sum");
  s.metric(1, "sm__throughput.avg.pct_of_peak_sustained_elapsed");
  s.target(0, {2, 3});
  s.round(0, {1e9, 50});
  s.round(0, {2e9, std::nan("")});
  s.round(0, {3e6, 25}, 4);
  return s;
}

model::Session session_of(const std::string& bytes) {
  model::Session s;
  s.processes.push_back({});
  (void)read_gpu(std::as_bytes(std::span(bytes)), "x.gpu", 0, s);
  return s;
}

const model::Loss* loss(const model::Session& s, const std::string& kind) {
  for (const model::Loss& one : s.losses) {
    if (one.kind.id() == kind)
      return &one;
  }
  return nullptr;
}

TEST(CounterRecords, RoundsBecomeMeasurements) {
  const model::Session s = session_of(sample().bytes());
  ASSERT_EQ(s.measurements.size(), 3u);
  const model::Measurement& range = s.measurements[0];
  EXPECT_EQ(range.scope, model::MeasuredScope::kRange);
  ASSERT_EQ(range.ranges.size(), 2u);
  EXPECT_EQ(s.strings.view(range.ranges[0].name), "step");
  EXPECT_EQ(s.strings.view(range.ranges[1].name), "decode");
  EXPECT_EQ(range.passes, 4u);
  EXPECT_EQ(range.occurrence, 7u);
  ASSERT_EQ(range.values.size(), 2u);
  EXPECT_EQ(s.metrics[range.values[0].metric].unit, "byte");
  EXPECT_DOUBLE_EQ(range.values[1].value, 0.5) << "percent is 0..1";
  EXPECT_EQ(s.measurements[1].values.size(), 1u) << "NaN is absent";
  EXPECT_EQ(s.measurements[1].note,
            "counters: CUPTI gave no value of sm__throughput.avg.pct_of_peak_sustained_elapsed");
  const model::Measurement& kernel = s.measurements[2];
  EXPECT_EQ(kernel.scope, model::MeasuredScope::kKernel);
  EXPECT_EQ(kernel.ordinal, 4u);
  EXPECT_EQ(s.strings.view(s.kernel_names.at(kernel.kernel_name).short_name), "gemm");
  EXPECT_EQ(s.kernel_shapes.at(kernel.shape).grid[0], 16u);
  EXPECT_EQ(loss(s, "counters_damaged"), nullptr);
}

TEST(CounterRecords, WhatIsMissingIsSaid) {
  Stream s = sample();
  s.target(1, {3});
  s.tally(0, 1, 2);
  s.tally(1, 0);
  s.activity(false, 1000);
  s.activity(true, 5000);
  s.activity(false, 7000);
  const model::Session session = session_of(s.bytes());
  ASSERT_NE(loss(session, "counters_incomplete"), nullptr);
  const std::string detail = loss(session, "counters_incomplete")->detail;
  EXPECT_NE(detail.find("'decode' has no counters: 10 passes are needed, 3 done"),
            std::string::npos)
      << detail;
  EXPECT_EQ(detail.find("--skip-first"), std::string::npos) << detail;
  Stream settling = sample();
  settling.tally(0, 0, 0, 7);  // the seven that lack were there, and settled
  const model::Session seldom = session_of(settling.bytes());
  ASSERT_NE(loss(seldom, "counters_incomplete"), nullptr);
  EXPECT_NE(
      loss(seldom, "counters_incomplete")->detail.find("; --skip-first 0 also measures warm-up"),
      std::string::npos);
  ASSERT_NE(loss(session, "counters_gave_up"), nullptr);
  EXPECT_NE(loss(session, "counters_gave_up")->detail.find("'step > decode'"), std::string::npos);
  ASSERT_EQ(session.gpu_pauses.size(), 2u);
  EXPECT_EQ(session.gpu_pauses[0].end_ns, 5000);
  EXPECT_EQ(session.gpu_pauses[1].end_ns, model::kOpen);
}

TEST(CounterRecords, OtherSizesAreANoteOnTheMetricsOfTheRange) {
  Stream s = sample();
  s.tally(0, 1, 0, 0, 2);
  const model::Session session = session_of(s.bytes());
  for (const model::Measurement& m : session.measurements)
    EXPECT_TRUE(m.note.starts_with(
        "counters: 2 of 3 measured instances launched the same kernels in different sizes"))
        << m.note;
  EXPECT_TRUE(session_of(sample().bytes()).measurements[0].note.empty());
}

TEST(CounterRecords, NoHalfSetsAndNothingOfStrangers) {
  Stream s = sample();
  s.round(0, {1}, wired::kWholeRange, 2);  // cut: says two values, holds one
  s.round(0, {1, 2, 3});                   // a metric that was never named
  s.round(5, {1, 2});                      // a range that was never named
  s.target(6, {77});                       // a name that was never named
  s.round(6, {1, 2});
  s.round(0, {1, 2}, wired::kWholeRange, 0x40000000);  // more than any record holds
  s.target(7, {2}, 0x40000000);
  s.tally(99, 0);
  s.metric(0xfffffff0, "far away");
  const model::Session session = session_of(s.bytes());
  EXPECT_EQ(session.measurements.size(), 3u);
  ASSERT_NE(loss(session, "counters_damaged"), nullptr);
  EXPECT_EQ(loss(session, "counters_damaged")->count, 5u);
}

TEST(CounterRecords, CutOrChangedAnywhere) {
  Stream whole = sample();
  whole.tally(0, 1);
  whole.activity(false, 5);
  std::mt19937 random(3);
  for (int i = 0; i < 3000; ++i) {
    Stream s = whole;
    for (std::size_t n = random() % 3; n > 0; --n)
      s.body_[random() % s.body_.size()] ^= static_cast<char>(1 + random() % 255);
    if (random() % 3 == 0)
      s.body_.resize(random() % s.body_.size() / 8 * 8);
    const model::Session session =
        session_of(s.bytes());  // the checksum fits: nothing but the records is wrong
    EXPECT_LE(session.measurements.size(), 3u);
    for (const model::Measurement& m : session.measurements) {
      for (const model::MetricValue& v : m.values) {
        ASSERT_LT(v.metric, session.metrics.size());
        ASSERT_TRUE(std::isfinite(v.value));
      }
      ASSERT_FALSE(m.ranges.empty());
    }
  }
}

}  // namespace counters_test
}  // namespace rangescope::read::native
