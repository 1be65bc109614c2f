// What the injected library records of calls beside launches: memory, events, streams; and GPU work
// whose times cannot be true. Against what the victim's scenes did.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "run.hpp"

namespace rangescope {
namespace {

using Operation = model::MemoryOperation;
using Kind = model::MemoryKind;

std::string call_name(const model::Session& session, std::uint32_t launch) {
  return std::string(session.strings.view(session.launches.at(launch).name));
}

std::string range_at(const model::Session& session, const model::MemoryEvent& event) {
  for (const model::Range& range : session.ranges) {
    const bool around = range.start_ns <= event.at_ns && event.at_ns <= range.end_ns;
    if (around && range.thread == event.thread)
      return std::string(session.strings.view(range.name));
  }
  return {};
}

class Memory : public testing::TestWithParam<Environment> {};

TEST_P(Memory, EveryAllocationAndFreeIsThere) {
  const Recorded recorded = run("allocates", GetParam());
  const model::Session& s = recorded.session;
  struct Expected {
    const char* call;
    Operation operation;
    Kind kind;
    std::uint64_t bytes;
    const char* range;
  };
  const std::vector<Expected> expected = {
      {"cuMemAlloc_v2", Operation::kAllocate, Kind::kDevice, 1 << 20, "setup"},
      {"cuMemHostAlloc", Operation::kAllocate, Kind::kPinned, 4096, "setup"},
      {"cuMemAllocManaged", Operation::kAllocate, Kind::kManaged, 8192, "setup"},
      {"cuMemAlloc_v2", Operation::kAllocate, Kind::kDevice, 2 << 20, "step"},
      {"cuMemFree_v2", Operation::kFree, Kind::kDevice, 2 << 20, "step"},
      {"cuMemAllocFromPoolAsync", Operation::kAllocate, Kind::kDevice, 512, "step"},
      {"cuMemFreeAsync", Operation::kFree, Kind::kDevice, 512, "step"},
      {"cuMemAlloc_v2", Operation::kAllocate, Kind::kDevice, 2 << 20, "step"},
      {"cuMemFree_v2", Operation::kFree, Kind::kDevice, 2 << 20, "step"},
      {"cuMemAllocFromPoolAsync", Operation::kAllocate, Kind::kDevice, 512, "step"},
      {"cuMemFreeAsync", Operation::kFree, Kind::kDevice, 512, "step"},
      {"cuMemAlloc_v2", Operation::kFailedAllocation, Kind::kDevice, 1ull << 40, "too much"},
      {"cuMemFreeHost", Operation::kFree, Kind::kPinned, 4096, ""},
      {"cuMemFree_v2", Operation::kFree, Kind::kManaged, 8192, ""}};
  ASSERT_EQ(s.memory_events.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE("event " + std::to_string(i));
    const model::MemoryEvent& event = s.memory_events[i];
    EXPECT_EQ(call_name(s, event.launch), expected[i].call);
    EXPECT_EQ(event.operation, expected[i].operation);
    EXPECT_EQ(event.kind, expected[i].kind);
    EXPECT_EQ(event.bytes, expected[i].bytes);
    EXPECT_EQ(range_at(s, event), expected[i].range);
    EXPECT_EQ(event.device, is_on_device(event.kind) ? 0u : model::kNone);
    const bool pooled = event.bytes == 512;
    EXPECT_EQ(event.pool, pooled ? 0xbeefu : 0u);
    EXPECT_EQ(event.stream == model::kNone, !pooled);
  }
  EXPECT_EQ(s.memory_events[3].address, s.memory_events[4].address);
  EXPECT_NE(s.memory_events[13].thread, s.memory_events[0].thread);
  // The one that freed nothing is a call all the same.
  std::map<std::string, int> calls;
  for (std::uint32_t launch = 0; launch < s.launches.size(); ++launch)
    ++calls[call_name(s, launch)];
  EXPECT_EQ(calls["cuMemFree_v2"], 4);
  for (const model::Loss& loss : s.losses)
    ADD_FAILURE() << loss.kind.id() << ": " << loss.detail;
}

INSTANTIATE_TEST_SUITE_P(Ways,
                         Memory,
                         testing::Values(Environment{},
                                         Environment{{"RANGESCOPE_LAUNCH_RECORDS", "callback"}},
                                         Environment{{"RANGESCOPE_CUPTI", CUPTI_OLD},
                                                     {"STANDIN_VERSION", "19"}}));

TEST(CallDetails, EventsJoinStreams) {
  const Recorded recorded = run("events");
  const model::Session& s = recorded.session;
  ASSERT_EQ(s.event_calls.size(), 9u);
  const model::Copy& copy = s.copies.at(0);
  const model::Kernel& kernel = s.kernels.at(0);
  for (std::size_t i = 0; i < 9; i += 3) {
    EXPECT_EQ(s.event_calls[i].operation, model::EventOperation::kRecord);
    EXPECT_EQ(s.event_calls[i].stream, copy.stream);
    EXPECT_EQ(call_name(s, s.event_calls[i].launch), "cuEventRecord");
    EXPECT_EQ(s.event_calls[i + 1].operation, model::EventOperation::kStreamWait);
    EXPECT_EQ(s.event_calls[i + 1].stream, kernel.stream);
    EXPECT_EQ(s.event_calls[i + 2].operation, model::EventOperation::kSynchronize);
    EXPECT_EQ(s.event_calls[i + 2].event, s.event_calls[i].event);
  }
  EXPECT_EQ(s.streams.at(copy.stream).kind, model::StreamKind::kNonBlocking);
  EXPECT_EQ(s.streams.at(kernel.stream).kind, model::StreamKind::kBlocking);
  ASSERT_EQ(s.synchronizations.size(), 6u);
  EXPECT_EQ(s.synchronizations[0].kind, model::SyncKind::kEvent);
  EXPECT_EQ(s.synchronizations[1].kind, model::SyncKind::kStream);
  EXPECT_EQ(s.synchronizations[1].stream, kernel.stream);
  EXPECT_TRUE(is_pageable(copy));
  EXPECT_TRUE(s.losses.empty());
}

TEST(CallDetails, CanBeTurnedOff) {
  const Environment off = {{"RANGESCOPE_CALL_DETAILS", "off"}};
  const model::Session s = run("events", off).session;
  EXPECT_TRUE(s.event_calls.empty());
  EXPECT_EQ(s.kernels.size(), 3u);
  EXPECT_EQ(s.synchronizations.size(), 6u);
  EXPECT_TRUE(run("allocates", off).session.memory_events.empty());
}

// Of twenty works of each kind one has times that cannot be.
TEST(Impossible, IsALossAndNoNumber) {
  const std::map<std::string, const char*> cases = {{"backward", "ended before it started"},
                                                    {"early", "before the call that launched it"},
                                                    {"later", "outside of the recorded time"},
                                                    {"past", "outside of the recorded time"}};
  for (const std::string work : {"kernel", "copy", "set", "graph"}) {
    for (const auto& [how, detail] : cases) {
      SCOPED_TRACE(work + " " + how);
      Environment environment = {{"STANDIN_IMPOSSIBLE", work + ":" + how}};
      environment["RANGESCOPE_CUDA_GRAPHS"] = "graph";
      const model::Session s = run("all kinds", environment).session;
      const auto left = [&](const char* kind) { return work == kind ? 19u : 20u; };
      EXPECT_EQ(s.kernels.size(), left("kernel"));
      EXPECT_EQ(s.copies.size(), left("copy"));
      EXPECT_EQ(s.memsets.size(), left("set"));
      EXPECT_EQ(s.graph_launches.size(), left("graph"));
      ASSERT_EQ(s.losses.size(), 1u);
      EXPECT_EQ(s.losses[0].kind.id(), "impossible_time");
      EXPECT_EQ(s.losses[0].count, 1u);
      EXPECT_NE(s.losses[0].detail.find(detail), std::string::npos) << s.losses[0].detail;
    }
  }
}

}  // namespace
}  // namespace rangescope
