// Damaged, old, new and lying reports. Files are built by hand here, field by field, from
// docs/formats/ncu-report.md.
#include <gtest/gtest.h>
#include <zstd.h>

#include <protozero/pbf_writer.hpp>

#include "read/ncu/report/golden_test.hpp"
#include "read/ncu/report/reader.hpp"

namespace rangescope::read::ncu_report {
namespace damage_test {

using Writer = protozero::pbf_writer;

template <class Build>
std::string message(Build&& build) {
  std::string bytes;
  Writer writer(bytes);
  build(writer);
  return bytes;
}

std::string u32(std::size_t value) {
  std::string bytes;
  for (int i = 0; i < 4; ++i)
    bytes += static_cast<char>(value >> (8 * i) & 255);
  return bytes;
}

std::string file_header() {
  const std::string header = message([](Writer& w) { w.add_uint32(1, 7); });
  return std::string("NVR\0", 4) + u32(header.size()) + header;
}

struct Block {
  std::vector<std::string> kernels, ranges, graphs;
  std::vector<std::string> strings;
  std::uint32_t pid = 0;  // 0: no process block, as in 2019
  bool newer = false;     // fields nobody knows yet
  std::uint64_t lie = 0;  // added to the payload size
};

std::string bytes_of(const Block& block) {
  std::string payload;
  for (const auto* entries : {&block.kernels, &block.ranges, &block.graphs}) {
    for (const std::string& entry : *entries)
      payload += u32(entry.size()) + entry;
  }
  const std::string header = message([&](Writer& w) {
    w.add_uint32(1, 0);
    w.add_uint32(2, static_cast<std::uint32_t>(block.kernels.size()));
    w.add_message(4, message([&](Writer& table) {
                    for (const std::string& string : block.strings)
                      table.add_string(1, string);
                  }));
    w.add_uint64(5, payload.size() + block.lie);
    if (block.pid != 0) {
      w.add_message(6, message([&](Writer& process) {
                      process.add_uint32(1, block.pid);
                      process.add_string(2, "host");
                      process.add_string(3, "/bin/app");
                    }));
    }
    if (!block.ranges.empty())
      w.add_uint32(7, static_cast<std::uint32_t>(block.ranges.size()));
    if (!block.graphs.empty())
      w.add_uint32(9, static_cast<std::uint32_t>(block.graphs.size()));
    if (block.newer)
      w.add_string(77, "of the future");
  });
  return u32(header.size()) + header + payload;
}

std::string metric(std::uint32_t name, double value) {
  return message([&](Writer& w) {
    w.add_uint32(1, name);
    w.add_message(2, message([&](Writer& v) { v.add_double(3, value); }));
  });
}

std::string kernel(const std::string& name, double value, bool newer = false) {
  return message([&](Writer& w) {
    w.add_uint64(1, 5);
    w.add_string(6, name);
    w.add_string(7, name + "()");
    w.add_message(13, metric(0, value));
    if (newer) {
      w.add_fixed64(90, 1);
      w.add_message(19, message([](Writer& rule) {  // a rule whose message has a type of the future
                      rule.add_string(1, "Rule");
                      rule.add_string(4, "Section");
                      rule.add_message(3, message([](Writer& body) {
                                         body.add_message(1, message([](Writer& item) {
                                                            item.add_message(
                                                                1, message([](Writer& text) {
                                                                  text.add_string(1, "text");
                                                                  text.add_uint32(2, 99);
                                                                }));
                                                          }));
                                       }));
                    }));
    }
  });
}

model::Session session_of(const std::string& bytes) {
  const auto file = File::parse(bytes, "built");
  EXPECT_TRUE(file.has_value()) << (file ? "" : base::to_string(file.error()));
  if (!file)
    return {};
  auto session = to_session(*file);
  EXPECT_TRUE(session.has_value()) << (session ? "" : base::to_string(session.error()));
  return session ? std::move(*session) : model::Session{};
}

TEST(NcuReport, ValuesThatAreNoNumbersAreALoss) {
  const model::Session session = session_of(
      file_header() + bytes_of({.kernels = {kernel("k", std::numeric_limits<double>::quiet_NaN())},
                                .strings = {"dram__bytes.sum"}}));
  ASSERT_EQ(session.measurements.size(), 1u);
  EXPECT_TRUE(session.measurements[0].values.empty());
  ASSERT_EQ(session.losses.size(), 1u);
  EXPECT_EQ(session.losses[0].kind.id(), "no_number");
  EXPECT_EQ(session.losses[0].count, 1u);
  EXPECT_NE(session.losses[0].detail.find("dram__bytes.sum"), std::string::npos);
}

TEST(NcuReportLayouts, Of2019HasNoProcess) {
  const model::Session session =
      session_of(file_header() +
                 bytes_of({.kernels = {kernel("old", 12)}, .strings = {"gpu__time_duration.sum"}}));
  ASSERT_EQ(session.measurements.size(), 1u);
  EXPECT_EQ(session.processes.at(0).pid, 0u);
  EXPECT_EQ(session.measurements[0].values.at(0).value, 12);
  EXPECT_EQ(session.metrics[0].unit, "ns");
  EXPECT_TRUE(session.losses.empty());
}

TEST(NcuReportLayouts, StringsOfAllBlocksAreOneList) {
  // the second block's table goes on where the first ended, although another process wrote it
  std::string second = message([](Writer& w) {
    w.add_string(6, "b");
    w.add_message(13, metric(1, 3));
  });
  const model::Session session =
      session_of(file_header() +
                 bytes_of({.kernels = {kernel("a", 1)}, .strings = {"dram__bytes.sum"}, .pid = 1}) +
                 bytes_of({.kernels = {second}, .strings = {"gpu__time_duration.sum"}, .pid = 2}));
  ASSERT_EQ(session.measurements.size(), 2u);
  EXPECT_EQ(session.metrics[session.measurements[1].values.at(0).metric].name,
            "gpu__time_duration.sum");
  EXPECT_EQ(session.processes[session.measurements[1].process].pid, 2u);
}

TEST(NcuReportLayouts, OfTheFutureIsReadAndCounted) {
  const model::Session session =
      session_of(file_header() + bytes_of({.kernels = {kernel("new", 1, true)},
                                           .strings = {"dram__bytes.sum"},
                                           .pid = 1,
                                           .newer = true}));
  ASSERT_EQ(session.measurements.size(), 1u);
  ASSERT_EQ(session.losses.size(), 1u);
  EXPECT_EQ(session.losses[0].kind.id(), "unknown_fields");
  EXPECT_EQ(session.losses[0].count, 2u);
  EXPECT_EQ(session.losses[0].severity, model::Severity::kInfo);
}

TEST(NcuReportLayouts, GraphsAndRangesStandAfterKernels) {
  const std::string range = message([](Writer& w) { w.add_message(4, metric(0, 5)); });
  const std::string graph = message([](Writer& w) {
    w.add_message(4, metric(0, 6));
    w.add_uint64(12, 7);
  });
  const model::Session session =
      session_of(file_header() + bytes_of({.kernels = {kernel("k", 4)},
                                           .ranges = {range},
                                           .graphs = {graph},
                                           .strings = {"dram__bytes.sum"},
                                           .pid = 1}));
  ASSERT_EQ(session.measurements.size(), 3u);
  EXPECT_EQ(session.measurements[0].scope, model::MeasuredScope::kKernel);
  EXPECT_EQ(session.measurements[1].scope, model::MeasuredScope::kRange);
  EXPECT_EQ(session.measurements[2].scope, model::MeasuredScope::kGraph);
  EXPECT_EQ(session.measurements[2].values.at(0).value, 6);
}

TEST(NcuReportDamage, SizesThatLieCostNothing) {
  const std::string honest =
      bytes_of({.kernels = {kernel("k", 1)}, .strings = {"dram__bytes.sum"}, .pid = 1});
  const model::Session payload =
      session_of(file_header() + honest +
                 bytes_of({.kernels = {}, .strings = {}, .pid = 1, .lie = std::uint64_t{1} << 60}));
  EXPECT_EQ(payload.measurements.size(), 1u);
  EXPECT_EQ(payload.losses.at(0).kind.id(), "torn_tail");
  const model::Session header = session_of(file_header() + honest + u32(0xfffffff0u) + "x");
  EXPECT_EQ(header.losses.at(0).kind.id(), "torn_tail");
  const std::string many = message([](Writer& w) {
    w.add_uint64(2, std::uint64_t{1} << 62);
    w.add_uint64(5, 0);
  });
  const model::Session counts = session_of(file_header() + honest + u32(many.size()) + many);
  EXPECT_EQ(counts.losses.at(0).kind.id(), "damaged_block");
}

TEST(NcuReportDamage, OneDamagedResultIsLeftOut) {
  std::string torn = kernel("k", 1);
  torn.back() = static_cast<char>(0xff);
  torn += static_cast<char>(0xff);
  const model::Session session = session_of(
      file_header() +
      bytes_of({.kernels = {kernel("k", 1), torn}, .strings = {"dram__bytes.sum"}, .pid = 1}));
  EXPECT_EQ(session.measurements.size(), 1u);
  ASSERT_EQ(session.losses.size(), 1u);
  EXPECT_EQ(session.losses[0].kind.id(), "damaged_result");
  EXPECT_NE(session.losses[0].detail.find("offset "), std::string::npos);
}

TEST(NcuReportDamage, ForeignFilesAreRefusedWithThePlace) {
  for (const std::string& bytes : {std::string(),
                                   std::string("NVR"),
                                   std::string("hello"),
                                   std::string("NVR\0\x10\0\0\0abc", 11)}) {
    const auto file = File::parse(bytes, "x.ncu-rep");
    ASSERT_FALSE(file.has_value());
    EXPECT_EQ(file.error().code, base::Code::kBadData);
    EXPECT_TRUE(file.error().where.starts_with("x.ncu-rep: offset ")) << file.error().where;
  }
}

TEST(NcuReportDamage, EveryReportCutAtTwentyPlaces) {
  for (const std::string& name : golden_reports()) {
    const std::string bytes = golden(name + ".ncu-repz");
    for (std::size_t i = 0; i < 20; ++i) {
      const std::string_view cut = std::string_view(bytes).substr(0, bytes.size() * i / 20);
      const auto file = File::parse(cut, name);
      if (!file) {
        EXPECT_EQ(file.error().code, base::Code::kBadData);
        continue;
      }
      const auto session = to_session(*file);
      if (session) {
        EXPECT_FALSE(session->losses.empty()) << name << " cut at " << i << "/20: silence";
      }
    }
  }
}

TEST(NcuReportDamage, AZstdStreamIsBounded) {
  const std::string zeros(std::size_t{8} << 20, '\0');
  std::string packed(ZSTD_compressBound(zeros.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), zeros.data(), zeros.size(), 3));
  const auto refused = unpack(packed, "bomb.ncu-repz", std::size_t{1} << 20);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, base::Code::kBadData);
  EXPECT_EQ(unpack(packed, "x", std::size_t{8} << 20)->bytes.size(), zeros.size());
}

/// As a file: 30 KB that stand for a gigabyte.
TEST(NcuReportDamage, AZstdStreamIsBoundedByItsOwnSize) {
  const std::string zeros(std::size_t{1} << 20, '\0');
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(),
                                                                     &ZSTD_freeCCtx);
  std::string packed(std::size_t{1} << 20, '\0');
  ZSTD_outBuffer out{packed.data(), packed.size(), 0};
  for (int piece = 0; piece < 1024; ++piece) {
    ZSTD_inBuffer in{zeros.data(), zeros.size(), 0};
    const auto how = piece == 1023 ? ZSTD_e_end : ZSTD_e_continue;
    ASSERT_FALSE(ZSTD_isError(ZSTD_compressStream2(context.get(), &out, &in, how)));
    ASSERT_EQ(in.pos, in.size);
  }
  packed.resize(out.pos);
  const auto refused = File::parse(packed, "bomb.ncu-repz");
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().what.find("unpacks to more than 268435456 bytes"), std::string::npos)
      << refused.error().what;
}

TEST(NcuReportLayouts, OfAMetricThatIsHeldTwiceTheLastCounts) {
  const std::string twice = message([](Writer& w) {
    w.add_string(6, "k");
    w.add_message(13, metric(0, 6940));
    w.add_message(13, metric(1, 7));
    w.add_message(13, metric(0, 6880));
  });
  const model::Session session =
      session_of(file_header() + bytes_of({.kernels = {twice},
                                           .strings = {"gpu__time_duration.sum", "dram__bytes.sum"},
                                           .pid = 1}));
  ASSERT_EQ(session.measurements.at(0).values.size(), 2u);
  EXPECT_EQ(session.measurements[0].values[0].value, 6880);
  EXPECT_EQ(session.measurements[0].values[1].value, 7);
}

}  // namespace damage_test
}  // namespace rangescope::read::ncu_report
