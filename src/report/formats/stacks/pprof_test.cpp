#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <protozero/pbf_reader.hpp>

#include "report/formats.hpp"
#include "report/sink.hpp"

namespace rangescope::report {
namespace pprof_test {

model::Region region(std::uint32_t id,
                     std::uint32_t parent,
                     std::vector<std::string> path,
                     double own_ns) {
  model::Region one;
  one.id = id;
  one.parent = parent;
  one.path = std::move(path);
  one.occurrences = 2;
  one.wall.exclusive_ns = own_ns;
  return one;
}

std::string unpacked(const std::string& packed) {
  std::string out(1 << 20, '\0');
  z_stream stream{};
  EXPECT_EQ(::inflateInit2(&stream, 16 + MAX_WBITS), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  ::inflateEnd(&stream);
  return out;
}

struct Read {
  std::vector<std::string> texts;
  std::vector<std::vector<std::int64_t>> values;
};

Read read(const model::Report& report) {
  StringSink sink;
  EXPECT_TRUE(export_pprof(report, nullptr, {}, sink));
  const std::string data = unpacked(sink.text());
  Read out;
  for (protozero::pbf_reader profile(data); profile.next();) {
    if (profile.tag() == 6) {
      out.texts.push_back(profile.get_string());
    } else if (profile.tag() == 2) {
      protozero::pbf_reader sample = profile.get_message();
      EXPECT_TRUE(sample.next(2));
      const auto values = sample.get_packed_int64();
      out.values.emplace_back(values.begin(), values.end());
    } else {
      profile.skip();
    }
  }
  return out;
}

// 3 J an occurrence of `step`, of which 1 J is that of `gemm`; nothing else was recorded.
TEST(Pprof, EnergyIsThatOfTheRangeItself) {
  model::Report report;
  report.regions = {region(0, model::kNone, {"step"}, 10), region(1, 0, {"step", "gemm"}, 5)};
  report.regions[0].metrics["energy"].value = 3;
  report.regions[1].metrics["energy"].value = 1;
  const Read read = pprof_test::read(report);
  EXPECT_EQ(read.values, (std::vector<std::vector<std::int64_t>>{{10, 4000}, {5, 2000}}));
  EXPECT_EQ(std::count(read.texts.begin(), read.texts.end(), "millijoules"), 1);
  EXPECT_EQ(std::count(read.texts.begin(), read.texts.end(), "gpu"), 0)
      << "no GPU work was recorded: no column of 0";
}

// Names are the program's own: control characters do not reach a terminal, other bytes stay UTF-8.
TEST(Pprof, NamesArePrintable) {
  model::Report report;
  report.regions = {region(0, model::kNone, {"a\x1b[31m\xff"}, 10),
                    region(1, model::kNone, {""}, NAN)};
  const Read read = pprof_test::read(report);
  EXPECT_EQ(std::count(read.texts.begin(), read.texts.end(), "a\\x1b[31m\\xff"), 1);
  EXPECT_EQ(read.values, (std::vector<std::vector<std::int64_t>>{{10}}));
}

TEST(Pprof, NothingIsSaid) {
  StringSink sink;
  EXPECT_EQ(export_pprof({}, nullptr, {}, sink).error().code, base::Code::kNothingCaptured);
}

}  // namespace pprof_test
}  // namespace rangescope::report
