#include "sample/gpu/sample_writer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "base/temporary_folder.hpp"
#include "sample/blocks_test.hpp"

namespace rangescope::sample {
namespace sample_writer_test {

using wire::samples::EventKind;
using wire::samples::Type;
using written::Block;

struct Row {
  std::int64_t start_ns, end_ns;
  std::vector<float> values;
  bool operator==(const Row&) const = default;
};

/// A value of a column that is stored byte by byte: the lowest byte of all items first.
template <class Value>
Value transposed_value(std::string_view column, std::size_t items, std::size_t item) {
  char bytes[sizeof(Value)];
  for (std::size_t byte = 0; byte < sizeof(Value); ++byte)
    bytes[byte] = column[byte * items + item];
  return written::value_at<Value>({bytes, sizeof bytes}, 0);
}

std::vector<Row> rows_of(const Block& block, std::size_t metrics) {
  const std::size_t items = block.items;
  std::vector<Row> rows(items);
  std::int64_t start_ns = 0, end_ns = 0;
  const std::string_view starts = block.bytes, ends = starts.substr(8 * items);
  for (std::size_t item = 0; item < items; ++item) {
    start_ns += transposed_value<std::int64_t>(starts, items, item);
    end_ns += transposed_value<std::int64_t>(ends, items, item);
    rows[item] = {start_ns, end_ns, {}};
    for (std::size_t metric = 0; metric < metrics; ++metric) {
      const std::string_view column = starts.substr((16 + 4 * metric) * items);
      rows[item].values.push_back(transposed_value<float>(column, items, item));
    }
  }
  return rows;
}

/// A stream of an amount, which adds up, and of a share, which does not.
class SampleStreams : public ::testing::Test {
 protected:
  SampleWriter writer(std::uint64_t most_bytes = 1 << 20) const {
    Description description{"CUPTI PM sampling",
                            "gpu",
                            3,
                            "GPU-1",
                            "NVIDIA H100",
                            "GH100",
                            1000,
                            {"dram__bytes.sum", "sm__busy.pct"},
                            {1, 0}};
    return std::move(*SampleWriter::create(path, std::move(description), most_bytes));
  }
  std::vector<Row> rows() const {
    std::vector<Row> all;
    for (const Block& block : written::blocks_of(path, Type::kSamples))
      for (const Row& row : rows_of(block, 2))
        all.push_back(row);
    return all;
  }
  static void add(SampleWriter& to, std::int64_t start, std::int64_t end, double a, double b) {
    const double values[] = {a, b};
    to.add(start, end, values);
  }
  /// A stream that has come near its bound once: two samples become one from now on.
  SampleWriter merging_two() const {
    SampleWriter stream = writer(1);
    add(stream, 0, 100, 1, 1);
    stream.flush(false);
    return stream;
  }
  const base::TemporaryFolder temporary{"rangescope-stream"};
  const std::filesystem::path path = temporary.path() / "gpu-3.samples";
};

TEST_F(SampleStreams, BeginWithWhatTheyHold) {
  writer();
  const auto blocks = written::blocks_of(path);
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0].type, Type::kDescription);
  EXPECT_EQ(blocks[0].bytes,
            "source CUPTI PM sampling\nclock gpu\ndevice 3\nuuid GPU-1\nname NVIDIA H100\n"
            "chip GH100\ninterval_ns 1000\nmetric dram__bytes.sum\nmetric sm__busy.pct\n");
}

TEST_F(SampleStreams, SamplesKeepTimesAndValues) {
  SampleWriter stream = writer();
  add(stream, 1'000'000'000'000, 1'000'000'001'000, 512, 0.25);
  add(stream, 1'000'000'001'000, 1'000'000'002'500, 1024, 0.5);
  stream.flush(true);
  EXPECT_EQ(rows(),
            (std::vector<Row>{{1'000'000'000'000, 1'000'000'001'000, {512, 0.25f}},
                              {1'000'000'001'000, 1'000'000'002'500, {1024, 0.5f}}}));
}

TEST_F(SampleStreams, EachBlockIsReadByItself) {
  SampleWriter stream = writer();
  add(stream, 5000, 6000, 1, 1);
  stream.flush(false);
  add(stream, 6000, 7000, 2, 2);
  stream.flush(false);
  EXPECT_EQ(written::blocks_of(path, Type::kSamples).size(), 2u);
  EXPECT_EQ(rows(), (std::vector<Row>{{5000, 6000, {1, 1}}, {6000, 7000, {2, 2}}}));
}

TEST_F(SampleStreams, AValueThatWasNotReadIsNotANumber) {
  SampleWriter stream = writer();
  add(stream, 0, 1000, std::numeric_limits<double>::quiet_NaN(), 0.5);
  stream.flush(true);
  ASSERT_EQ(rows().size(), 1u);
  EXPECT_TRUE(std::isnan(rows()[0].values[0]));
  EXPECT_EQ(rows()[0].values[1], 0.5f);
}

TEST_F(SampleStreams, WithinTheBoundNothingIsMerged) {
  SampleWriter stream = writer();
  for (int i = 0; i < 5000; ++i)
    add(stream, i * 1000, (i + 1) * 1000, i, 0);
  stream.flush(true);
  EXPECT_EQ(rows().size(), 5000u);
  EXPECT_TRUE(written::events_of(path, EventKind::kCoarser).empty());
}

TEST_F(SampleStreams, NearTheBoundMergingDoublesAndIsReported) {
  SampleWriter stream = writer(1);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 2; ++i)
      add(stream, round * 2000 + i * 1000, round * 2000 + (i + 1) * 1000, 1, 1);
    stream.flush(false);
  }
  EXPECT_EQ(written::events_of(path, EventKind::kCoarser),
            (std::vector<std::string>{"2 the file of samples came near its size limit",
                                      "4 the file of samples came near its size limit"}));
  EXPECT_EQ(rows().size(), 3u) << "two, and one of two";
}

TEST_F(SampleStreams, MergedAmountsAddUpAndSharesAreWeightedByTime) {
  SampleWriter stream = merging_two();
  add(stream, 100, 200, 10, 0.2);
  add(stream, 200, 500, 30, 0.6);  // three times as long
  stream.flush(true);
  EXPECT_EQ(rows().back(), (Row{100, 500, {40, 0.5f}}));
}

TEST_F(SampleStreams, SamplesAreNotMergedOverAGap) {
  SampleWriter stream = merging_two();
  add(stream, 100, 200, 10, 0.2);
  add(stream, 1300, 1400, 30, 0.6);
  stream.flush(true);
  EXPECT_EQ(rows(),
            (std::vector<Row>{{0, 100, {1, 1}}, {100, 200, {10, 0.2f}}, {1300, 1400, {30, 0.6f}}}));
}

TEST_F(SampleStreams, HalfAMergedSampleWaitsForTheEnd) {
  SampleWriter stream = merging_two();
  add(stream, 100, 200, 10, 0.2);
  stream.flush(false);
  EXPECT_EQ(rows().size(), 1u);
  stream.flush(true);
  EXPECT_EQ(rows().size(), 2u);
}

TEST_F(SampleStreams, TheEndSaysHowFarTheClocksAreApart) {
  SampleWriter stream = writer();
  const std::int64_t now = now_ns();
  add(stream, now - 2'000'000'000, now - 1'000'000'000, 1, 1);
  stream.flush(true);
  const auto end = written::blocks_of(path, Type::kEnd);
  ASSERT_EQ(end.size(), 1u);
  const auto lead = end[0].bytes.find("\nlead_ns ");
  ASSERT_NE(lead, std::string::npos);
  EXPECT_GE(std::stoll(end[0].bytes.substr(lead + 9)), 1'000'000'000);
}

TEST_F(SampleStreams, WithoutSamplesTheClocksAreNotCompared) {
  writer().flush(true);
  const auto end = written::blocks_of(path, Type::kEnd);
  ASSERT_EQ(end.size(), 1u);
  EXPECT_TRUE(end[0].bytes.starts_with("cpu_ns "));
  EXPECT_EQ(end[0].bytes.find("lead_ns"), std::string::npos);
}

}  // namespace sample_writer_test
}  // namespace rangescope::sample
