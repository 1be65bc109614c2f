#include "analyze/memory/memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "analyze/analyze.hpp"
#include "analyze/memory/asked_points.hpp"
#include "analyze/memory/usage.hpp"
#include "analyze/session_test.hpp"
#include "analyze/verdict/verdict.hpp"

namespace rangescope::analyze {
namespace memory_test {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

/// A session with one thread and one allocator of one GPU.
class MemoryBuilder : public testing::SessionBuilder {
 public:
  MemoryBuilder() {
    thread_ = thread(process(100), 100);
    session.allocators.allocators.emplace_back();
  }
  std::uint32_t range(std::string_view name,
                      std::int64_t start,
                      std::int64_t end,
                      std::string_view in_domain = "") {
    return SessionBuilder::range(thread_, name, start, end, in_domain);
  }
  void allocation(std::int64_t start,
                  std::int64_t end,
                  std::uint64_t mebibytes,
                  bool older = false) {
    model::Allocation& allocation = session.allocators.allocations.emplace_back();
    allocation.start_ns = start;
    allocation.end_ns = end;
    allocation.bytes = mebibytes * kMiB;
    allocation.thread = thread_;
    allocation.older = older;
    if (end != model::kOpen)
      session.end_ns = std::max(session.end_ns, end);
  }
  [[nodiscard]] model::Report report() const {
    auto out = analyze(session, {});
    EXPECT_TRUE(out) << out.error().what;
    return std::move(*out);
  }

 private:
  std::uint32_t thread_ = 0;
};

/// "activations of forward: 3 MiB", one part a line.
std::string parts_text(const model::DeviceMemory& memory) {
  std::string text;
  for (const model::MemoryPart& part : memory.parts) {
    text += std::string(model::memory_use_name(part.use)) + " of " + part.owner + ": ";
    text += std::to_string(static_cast<std::uint64_t>(part.bytes) / kMiB) + " MiB\n";
  }
  return text;
}

TEST(MemoryUsage, HighestOfAnyStretch) {
  MemoryBuilder builder;
  for (std::int64_t i = 0; i < 1000; ++i)
    builder.allocation(10 * i, 10 * i + 15, (i * 37) % 101);
  const MemoryUsage usage(builder.session, 0);
  for (const auto& [from, to] :
       {std::pair<std::int64_t, std::int64_t>{0, 20'000}, {5, 7}, {95, 4321}, {3000, 3001}}) {
    double highest = 0;
    for (std::int64_t at = from; at <= to; ++at)
      highest = std::max(highest, usage.at(at));
    EXPECT_EQ(usage.highest(from, to), highest) << from << " to " << to;
  }
  EXPECT_EQ(usage.peak(), usage.highest(0, 20'000));
  EXPECT_EQ(usage.at(usage.peak_at()), usage.peak());
}

/// Two training steps: what each allocation is for follows from when it lives.
TEST(Memory, UsesOfATrainingStep) {
  MemoryBuilder builder;
  builder.allocation(-1, model::kOpen, 10, true);  // parameters
  for (const std::int64_t step : {0, 1000}) {
    builder.range("forward", step + 1, step + 300);
    builder.range("Optimizer.step#Adam.step", step + 600, step + 700);
    builder.range("Optimizer.zero_grad#Adam.zero_grad", step + 800, step + 900);
    builder.allocation(step + 10, step + 500, 7);  // activations
    for (std::int64_t i = 0; i < 20; ++i)
      builder.allocation(step + 20 + i, step + 21 + i, 1);
    builder.allocation(step + 400, step + 850, 10);  // gradients
    builder.allocation(step + 610, step + 620, 5);   // of the optimizer, temporary
  }
  builder.allocation(650, model::kOpen, 20);  // state
  builder.allocation(100, model::kOpen, 3);   // a workspace
  std::ranges::stable_sort(
      builder.session.allocators.allocations, {}, &model::Allocation::start_ns);
  const model::Report report = builder.report();
  ASSERT_EQ(report.memory.size(), 1u);
  const model::DeviceMemory& memory = report.memory[0];
  EXPECT_EQ(memory.peak_bytes, 50 * kMiB);
  EXPECT_EQ(memory.peak_at_ns, 1400);
  EXPECT_EQ(parts_text(memory),
            "optimizer state of Optimizer.step#Adam.step: 20 MiB\n"
            "parameters of before the recording: 10 MiB\n"
            "gradients of step 2: 10 MiB\n"
            "activations of forward: 7 MiB\n"
            "cache of forward: 3 MiB\n");
  EXPECT_EQ(memory.owned_share, 1);
  EXPECT_FALSE(memory.growth);
}

/// Of several ranks the one that needs most is named.
TEST(Memory, TheFullestGpuIsNamedWithItsRank) {
  MemoryBuilder builder;
  builder.allocation(10, 90, 3);
  const std::uint32_t other = builder.process(200);
  builder.session.allocators.allocators.push_back({.process = other});
  builder.allocation(20, 80, 5);
  builder.session.allocators.allocations.back().allocator = 1;
  for (const std::uint32_t process : {0U, 1U})
    builder.session.processes[process].rank = process;
  const auto named = [&] {
    model::Report report = builder.report();
    judge(report, "");
    for (const model::Verdict& verdict : report.verdict)
      if (verdict.kind == "peak_memory")
        return verdict.text.substr(0, verdict.text.find(':'));
    return std::string();
  };
  EXPECT_EQ(named(), "peak memory of GPU 0 of rank 1 5.000 MiB");
  for (model::Process& process : builder.session.processes)
    process.rank = model::kNone;
  EXPECT_EQ(named(), "peak memory of GPU 0 of process 200 5.000 MiB");
}

TEST(Memory, OfRegions) {
  MemoryBuilder builder;
  builder.allocation(-1, model::kOpen, 100, true);
  builder.range("step", 0, 100);
  builder.range("layer", 10, 50);
  builder.allocation(20, 30, 5);
  builder.allocation(25, 60, 7);
  builder.allocation(70, 200, 1);
  const model::Report report = builder.report();
  ASSERT_EQ(report.regions.size(), 2u);
  const model::RegionMemory& step = *report.regions[0].memory;
  const model::RegionMemory& layer = *report.regions[1].memory;
  EXPECT_EQ(step.allocated_bytes, 13 * kMiB);
  EXPECT_EQ(step.allocations, 3);
  EXPECT_EQ(step.peak_bytes, 112 * kMiB);
  EXPECT_EQ(step.held_bytes, 1 * kMiB) << "what is freed before the step ends is not held";
  EXPECT_EQ(layer.allocated_bytes, 12 * kMiB);
  EXPECT_EQ(layer.held_bytes, 7 * kMiB);
}

/// Each step keeps one more block: a leak, whose owner is the range that allocates it.
TEST(Memory, Grows) {
  MemoryBuilder builder;
  for (std::int64_t step = 0; step < 8; ++step) {
    builder.range("step", 1000 * step + 1, 1000 * step + 900);
    builder.range("log", 1000 * step + 500, 1000 * step + 600);
    builder.allocation(1000 * step + 550, model::kOpen, 2);
    builder.allocation(1000 * step + 560, 1000 * step + 700, 50);
  }
  const model::Report report = builder.report();
  ASSERT_TRUE(report.memory[0].growth);
  EXPECT_EQ(report.memory[0].growth->bytes_per_step, 2 * kMiB);
  EXPECT_EQ(report.memory[0].growth->owner, "step > log");
}

/// Layers of a model are one owner from four on.
TEST(Memory, AlikeOwnersAreOne) {
  MemoryBuilder builder;
  for (std::int64_t layer = 0; layer < 5; ++layer) {
    builder.range("layer." + std::to_string(layer), 100 * layer, 100 * layer + 90, "nn.Module");
    builder.allocation(100 * layer + 10, 1000, 4);
  }
  builder.range("head", 600, 690, "nn.Module");
  builder.allocation(610, 1000, 1);
  EXPECT_EQ(parts_text(builder.report().memory[0]),
            "temporary of layer.#: 20 MiB\ntemporary of head: 1 MiB\n");
}

/// PyTorch's recorder names no threads: what launches next, and on which thread, says whose it is.
TEST(AskedPoints, WithoutAThreadTheNextLaunchSaysWhere) {
  MemoryBuilder builder;
  model::Session& session = builder.session;
  const std::uint32_t backward = builder.thread(0, 200);
  builder.launch(0, 100, 110);
  builder.launch(backward, 200, 210);
  builder.launch(0, 250, 260, model::LaunchKind::kSynchronize);
  builder.launch(0, 300, 310);
  builder.range("late", 295, 400);
  for (const std::int64_t at_ns : {-5, 90, 105, 190, 240, 500})
    builder.allocation(at_ns, at_ns + 1, 1);
  session.allocators.allocations[0].older = true;
  for (model::Allocation& allocation : session.allocators.allocations)
    allocation.thread = model::kNone;
  model::FailedAllocation& failure = session.allocators.failures.emplace_back();
  failure.at_ns = 120;

  const AskedPoints points = asked_points(session);
  ASSERT_EQ(points.of_allocation.size(), 6u);
  const auto place = [&](std::uint32_t point) {
    if (point == model::kNone)
      return std::string("nowhere");
    const model::Launch& call = points.calls[point];
    return std::to_string(call.start_ns) + " on " + std::to_string(call.thread);
  };
  EXPECT_EQ(place(points.of_allocation[0]), "nowhere") << "it was there before";
  EXPECT_EQ(place(points.of_allocation[1]), "100 on 0");
  EXPECT_EQ(place(points.of_allocation[2]), "105 on 0") << "inside of the call";
  EXPECT_EQ(place(points.of_allocation[3]), "200 on 1");
  EXPECT_EQ(place(points.of_allocation[4]), "240 on 0") << "a range begins before the launch";
  EXPECT_EQ(place(points.of_allocation[5]), "nowhere") << "nothing follows";
  EXPECT_EQ(place(points.of_failure[0]), "200 on 1");
}

/// The first allocation of a program may be too large.
TEST(Memory, RunsOutAtOnce) {
  MemoryBuilder builder;
  model::FailedAllocation& failure = builder.session.allocators.failures.emplace_back();
  failure.at_ns = 10;
  failure.bytes = 5 * kMiB;
  failure.thread = 0;
  builder.range("load", 0, 100);
  const model::Report report = builder.report();
  ASSERT_EQ(report.memory.size(), 1u);
  ASSERT_TRUE(report.memory[0].failure);
  EXPECT_EQ(report.memory[0].failure->owner, "load");
  EXPECT_EQ(report.memory[0].failure->in_use_bytes, 0);
}

/// A recording from the program's start: weights are there before the first module is called, and
/// outlive the last step.
TEST(Memory, ParametersOfAWholeProgram) {
  MemoryBuilder builder;
  builder.allocation(5, 5000, 10);  // freed when main() returns
  for (const std::int64_t step : {1000, 2000, 3000}) {
    builder.session.ranges[builder.range("Model", step, step + 500)].module = true;
    builder.session.ranges[builder.range("optimizer step", step + 600, step + 700)].module = true;
    builder.allocation(step + 10, step + 550, 7);
    builder.allocation(step + 400, step + 1200, 10);
  }
  builder.allocation(1650, 5000, 20);
  std::ranges::stable_sort(
      builder.session.allocators.allocations, {}, &model::Allocation::start_ns);
  const model::Report report = builder.report();
  std::map<std::string_view, double> uses;
  for (const model::MemoryPart& use : report.memory.at(0).uses)
    uses[model::memory_use_name(use.use)] = use.bytes / kMiB;
  EXPECT_EQ(uses["parameters"], 10);
  EXPECT_EQ(uses["optimizer state"], 20);
  EXPECT_EQ(uses["gradients"], 10);
}

}  // namespace memory_test
}  // namespace rangescope::analyze
