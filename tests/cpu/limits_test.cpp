// What a recorder keeps is bounded, and what it left out is told: records as the kernel gives them, through the file,
// into a session.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/fs.hpp"
#include "read/native/cpu.hpp"
#include "sample/cpu/sampler.hpp"

namespace rangescope {
namespace {

namespace cpu = sample::cpu;

template <class Records>
model::Session recorded(std::uint64_t most_bytes, std::size_t most_stacks, const Records& records) {
  const auto path =
      std::filesystem::temp_directory_path() / ("rangescope-limits-" + std::to_string(::getpid()) + ".cpu");
  auto file = sample::BlockFile::create(path, wire::cpu::kMagic, wire::cpu::kVersion);
  EXPECT_TRUE(file);
  cpu::Sampler sampler(std::move(*file), "interval_ns 1000\n", most_bytes, most_stacks);
  const cpu::CounterEvent event = *cpu::counter_event("page-faults");
  const int refused = 0;
  sampler.describe({&event, 1}, {&refused, 1});
  sampler.mapped({1, 0x1000, 0x1000'0000, 0, "//anon", true});
  records(sampler);
  sampler.finish(1'000'000, "", 0, {});
  model::Session session;
  const auto mapping = base::Mapping::open(path);
  EXPECT_TRUE(mapping);
  EXPECT_TRUE(read::native::read_cpu(mapping->bytes(), "test", session));
  std::filesystem::remove(path);
  return session;
}

void sample_at(cpu::Sampler& sampler, std::uint32_t tid, std::int64_t at_ns, std::uint64_t address) {
  cpu::Sample sample;
  sample.pid = 1;
  sample.tid = tid;
  sample.at_ns = at_ns;
  sample.chain = {&address, 1};
  sampler.sample(sample);
}

/// A process with code without a file, of which every sample is at another place.
model::Session sampled(std::uint64_t most_bytes, std::size_t most_stacks, std::uint64_t samples) {
  return recorded(most_bytes, most_stacks, [&](cpu::Sampler& sampler) {
    for (std::uint64_t i = 0; i < samples; ++i) {
      sample_at(sampler, 1, static_cast<std::int64_t>(i), 0x1000 + 8 * i);
      sampler.counted({1, 1}, static_cast<std::int64_t>(i), 0);
    }
  });
}

std::uint64_t cut(const model::Session& session) {
  return static_cast<std::uint64_t>(
      std::count_if(session.losses.begin(), session.losses.end(),
                    [](const model::Loss& loss) { return loss.kind.id() == "cpu_samples_cut"; }));
}

/// Samples of which nothing but the mark of a cut chain is known.
std::int64_t nameless(const model::Session& session) {
  const model::CpuProfile& profile = session.cpu;
  return std::count_if(profile.samples.begin(), profile.samples.end(), [&](const model::CpuSample& sample) {
    return profile.frames[profile.stacks[sample.stack].frame].kind == model::FrameKind::kCut;
  });
}

TEST(Limits, StacksAreBoundedAndSamplesStay) {
  const auto whole = sampled(1 << 20, 1 << 20, 3000);
  EXPECT_EQ(cut(whole), 0u);
  EXPECT_EQ(nameless(whole), 0);
  EXPECT_EQ(whole.cpu.samples.size(), 3000u);
  EXPECT_EQ(whole.cpu.counts.size(), 3000u);
  const auto bounded = sampled(1 << 20, 1000, 3000);
  EXPECT_EQ(cut(bounded), 1u);
  EXPECT_EQ(bounded.cpu.samples.size(), 3000u);
  EXPECT_GT(nameless(bounded), 2000);
  EXPECT_LT(nameless(bounded), 3000);
}

TEST(Recorder, ThreadsRunOnWhenTheMainOneHasEnded) {
  const auto session = recorded(1 << 20, 1 << 20, [](cpu::Sampler& sampler) {
    sampler.forked({1, 2, 1}, 10);
    sample_at(sampler, 1, 20, 0x1000);
    sampler.ended({1, 1, 0}, 30);
    sample_at(sampler, 2, 40, 0x1008);
    sampler.ended({1, 2, 0}, 50);
    sample_at(sampler, 2, 60, 0x1010);  // of another process, whose code is not known
  });
  EXPECT_EQ(session.cpu.samples.size(), 3u);
  EXPECT_EQ(nameless(session), 1);
}

TEST(Limits, TheFileIsBounded) {
  const auto session = sampled(64 << 10, 1 << 20, 200'000);
  EXPECT_EQ(cut(session), 1u);
  EXPECT_GT(session.cpu.samples.size(), 8000u);
  EXPECT_LT(session.cpu.samples.size(), 100'000u);
}

}  // namespace
}  // namespace rangescope
