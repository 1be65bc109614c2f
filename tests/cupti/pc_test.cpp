// Samples of the program counter end to end without a GPU: the injected library drives the stand-in
// (pc_sampling.cpp says what it gives), and what it writes is read back.
#include <gtest/gtest.h>

#include <fstream>
#include <tuple>

#include "run.hpp"

namespace rangescope {
namespace {

constexpr const char* kPlan =
    "rangescope-counters 1\npc 1\nper range\nrounds 2\nskip-first 0\ntrace-first 2\n";
constexpr const char* kDecode = "include p x - - ndecode\n";

Recorded sampled(const std::string& scene,
                 int times,
                 const std::string& include = kDecode,
                 Environment environment = {}) {
  std::string folder = (fs::temp_directory_path() / "rangescope-pc-XXXXXX").string();
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  std::ofstream(folder + "/plan") << kPlan << include;
  environment["RANGESCOPE_COUNTERS"] = folder + "/plan";
  Recorded result;
  run_into(result, scene, environment, std::to_string(times));
  fs::remove_all(folder);
  return result;
}

// {short name, offset, file, line, reason}: samples
using Counts =
    std::map<std::tuple<std::string, std::uint64_t, std::string, std::uint32_t, std::string>,
             std::uint64_t>;

Counts counts(const model::Session& s) {
  Counts out;
  for (const model::PcSample& sample : s.pc.samples) {
    const model::PcPlace& place = s.pc.places.at(sample.place);
    out[{std::string(s.strings.view(s.kernel_names.at(place.function).short_name)),
         place.offset,
         std::string(s.strings.view(place.file)),
         place.line,
         std::string(s.strings.view(sample.reason))}] += sample.samples;
  }
  return out;
}

TEST(Pc, ReasonsAndLinesOfTheOccurrencesThatWereSampled) {
  const Recorded got = sampled("decode", 40);
  EXPECT_EQ(got.status, 0);
  const Counts expected = {{{"gemm", 0x10, "/src/gemm.cu", 112, "long_scoreboard"}, 32},
                           {{"gemm", 0x20, "/src/gemm.cu", 7, "wait"}, 4},
                           {{"gemm", 0x20, "/src/gemm.cu", 7, "selected"}, 6},
                           {{"reduce", 0x10, "", 0, "long_scoreboard"}, 2},
                           {{"reduce", 0x20, "", 0, "wait"}, 4},
                           {{"reduce", 0x20, "", 0, "selected"}, 6}};
  EXPECT_EQ(counts(got.session), expected) << "two occurrences of two kernels";
  EXPECT_EQ(got.kernels("gemm"), 40u) << "the timeline goes on";
  EXPECT_EQ(got.session.gpu_pauses.size(), 2u) << "the occurrences that took longer";
  ASSERT_NE(got.loss("pc_serialized"), nullptr);
  EXPECT_EQ(got.loss("pc_serialized")->count, 2u);
  EXPECT_EQ(got.loss("gpu_partial"), nullptr) << got.loss("gpu_partial")->detail;
  EXPECT_EQ(got.loss("counters_incomplete"), nullptr);
}

TEST(Pc, ASampleIsOfTheKernelOfItsLaunch) {
  const Recorded got = sampled("nested", 40, "include p r [ - n.\n");  // the outermost ranges
  EXPECT_EQ(got.status, 0);
  std::map<std::string, std::uint64_t> of_range;
  for (const model::PcSample& sample : got.session.pc.samples) {
    const model::Launch& launch = got.session.launches.at(sample.launch);
    std::string path;
    for (const model::Range& range : got.session.ranges)
      if (range.thread == launch.thread && range.start_ns <= launch.start_ns &&
          launch.start_ns <= range.end_ns)
        path += "/" + std::string(got.session.strings.view(range.name));
    of_range[path] += sample.samples;
  }
  const std::map<std::string, std::uint64_t> expected = {{"/step", 2 * 8},
                                                         {"/step/decode", 2 * (21 + 6)}};
  EXPECT_EQ(of_range, expected);
}

TEST(Pc, KernelsOfGraphsAreOfTheGraphsLaunch) {
  const Recorded got = sampled("graph", 40, "include p x - - nreplay\n");
  EXPECT_EQ(got.status, 0);
  const Counts all = counts(got.session);
  EXPECT_EQ(all.at({"gemm", 0x10, "/src/gemm.cu", 112, "long_scoreboard"}), 32u);
  EXPECT_EQ(all.at({"reduce", 0x10, "", 0, "long_scoreboard"}), 32u);
  for (const model::PcSample& sample : got.session.pc.samples)
    EXPECT_EQ(got.session.launches.at(sample.launch).kind, model::LaunchKind::kGraph);
  EXPECT_EQ(got.loss("pc_samples_unknown"), nullptr)
      << "the context was ready before the graph was made";
}

TEST(Pc, NothingIsSampledWhileAStreamIsCaptured) {
  const Recorded got = sampled("captured", 40);
  EXPECT_EQ(got.status, 0) << "no capture was broken, and none was sampled";
  EXPECT_FALSE(got.session.pc.samples.empty());
}

TEST(Pc, EndsBeforeTheFirstKernelOfNccl) {
  const Recorded got = sampled("nccl", 40);
  EXPECT_EQ(got.status, 0);
  ASSERT_NE(got.loss("gpu_partial"), nullptr);
  EXPECT_NE(got.loss("gpu_partial")->detail.find("NCCL"), std::string::npos);
  const Recorded first =
      sampled("nccl", 40, "skip-first 18\n" + std::string(kDecode));  // sampled, or about to be
  EXPECT_EQ(first.status, 0);
  ASSERT_NE(first.loss("gpu_partial"), nullptr);
}

TEST(Pc, RefusalsAreToldAndTheProgramRunsOn) {
  for (const auto& [fault, words] :
       {std::pair{"pc_denied", "Run as root"}, {"pc_start", "cuptiPCSamplingStart"}}) {
    const Recorded got = sampled("decode", 40, kDecode, {{"STANDIN_FAULT", fault}});
    EXPECT_EQ(got.status, 0);
    EXPECT_EQ(got.kernels("gemm"), 40u);
    EXPECT_TRUE(got.session.pc.samples.empty());
    ASSERT_NE(got.loss("gpu_partial"), nullptr) << fault;
    EXPECT_NE(got.loss("gpu_partial")->detail.find(words), std::string::npos)
        << got.loss("gpu_partial")->detail;
  }
  const Recorded old =
      sampled("decode", 40, kDecode, {{"STANDIN_VERSION", "21"}, {"RANGESCOPE_CUPTI", CUPTI_OLD}});
  ASSERT_NE(old.loss("gpu_partial"), nullptr);
  EXPECT_NE(old.loss("gpu_partial")->detail.find("CUPTI 12.3 does not name the kernel"),
            std::string::npos);
  const Recorded driver = sampled("decode", 40, kDecode, {{"STANDIN_DRIVER", "12080"}});
  ASSERT_NE(driver.loss("gpu_partial"), nullptr);
  EXPECT_NE(driver.loss("gpu_partial")->detail.find("the driver is of CUDA 12.8"),
            std::string::npos);
}

TEST(Pc, WhatIsLostIsTold) {
  const Recorded full = sampled("decode", 40, kDecode, {{"STANDIN_FAULT", "pc_full"}});
  EXPECT_EQ(full.status, 0);
  ASSERT_NE(full.loss("pc_buffer_full"), nullptr);
  EXPECT_EQ(full.loss("pc_buffer_full")->count, 1u);
  EXPECT_FALSE(full.session.pc.samples.empty()) << "the next occurrence, with a larger buffer";
  const Recorded few = sampled("decode", 40, kDecode, {{"STANDIN_PCS", "2"}});
  ASSERT_NE(few.loss("pc_samples_unknown"), nullptr) << "the second kernel of each occurrence";
  EXPECT_EQ(few.loss("pc_samples_unknown")->count, 2u * 6);
}

TEST(Pc, AContextThatEndsAndAProgramThatEnds) {
  EXPECT_EQ(sampled("destroyed", 5).status, 0);
  const Recorded short_one = sampled("decode", 2);
  EXPECT_EQ(short_one.status, 0);
  EXPECT_NE(short_one.loss("pc_not_sampled"), nullptr);
}

}  // namespace
}  // namespace rangescope
