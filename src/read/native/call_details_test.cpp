#include "read/native/call_details.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "base/source_dir.hpp"
#include "read/native/reader.hpp"

namespace rangescope::read::native {
namespace call_details_test {

namespace gpu = wire::gpu;
constexpr std::uint8_t kDevice = 3, kPinned = 2;  // CUPTI's numbers

/// Calls of one thread at 100, 200, 300 ..., each of 50 ns.
class Calls {
 public:
  Calls() { session_.threads.push_back({.process = 0, .tid = 1}); }

  std::uint32_t call() {
    const std::int64_t start_ns = 100 * static_cast<std::int64_t>(session_.launches.size() + 1);
    session_.launches.push_back({.start_ns = start_ns, .end_ns = start_ns + 50});
    return static_cast<std::uint32_t>(session_.launches.size() - 1);
  }
  void allocate(std::uint64_t address,
                std::uint64_t bytes,
                std::uint8_t kind = kDevice,
                gpu::MemoryOperation operation = gpu::MemoryOperation::kAllocate) {
    gpu::Memory memory{};
    memory.head.small = kind;
    memory.address = address;
    memory.bytes = bytes;
    memory.context = 1;
    memory.operation = operation;
    details_.add(memory, call(), model::kNone);
  }
  void free(std::uint64_t address) { allocate(address, 0, 0, gpu::MemoryOperation::kFree); }

  model::Session finish() {
    details_.finish({{1, 7}});
    return std::move(session_);
  }
  CallDetails& details() { return details_; }
  model::Session& session() { return session_; }

 private:
  model::Session session_;
  CallDetails details_{0, session_};
};

TEST(CallDetails, AFreeHasTheBytesOfItsAllocation) {
  Calls calls;
  calls.allocate(0x1000, 64);
  calls.allocate(0x2000, 32, kPinned);
  calls.free(0x1000);
  calls.free(0x3000);  // from before the recording
  calls.allocate(0x1000, 8);
  calls.free(0x1000);
  const model::Session s = calls.finish();
  const std::vector<std::uint64_t> bytes = {64, 32, 64, 0, 8, 8};
  ASSERT_EQ(s.memory_events.size(), bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i)
    EXPECT_EQ(s.memory_events[i].bytes, bytes[i]);
  EXPECT_EQ(s.memory_events[0].at_ns, 150) << "there when the call returns";
  EXPECT_EQ(s.memory_events[2].at_ns, 300) << "gone when the call begins";
  EXPECT_EQ(s.memory_events[2].device, 7u);
  EXPECT_EQ(s.memory_events[1].device, model::kNone);
  EXPECT_EQ(s.memory_events[3].kind, model::MemoryKind::kUnknown);
}

TEST(CallDetails, CallsOutsideOfAWindowTakeTheirDetailsAlong) {
  Calls calls;
  calls.allocate(0x1000, 64);
  calls.allocate(0x2000, 32);
  calls.allocate(0x3000, 16);
  calls.session().launches.erase(calls.session().launches.begin());
  calls.details().moved(0, {model::kNone, 0, 1});
  const model::Session s = calls.finish();
  ASSERT_EQ(s.memory_events.size(), 2u);
  EXPECT_EQ(s.memory_events[0].bytes, 32u);
  EXPECT_EQ(s.memory_events[0].launch, 0u);
  EXPECT_EQ(s.memory_events[1].at_ns, 350);
}

// Recorded by the stand-ins of tests/cupti: scenes "allocates" and "events" of their victim.
TEST(CallDetails, OldCapturesReadAsEver) {
  const std::filesystem::path folder = std::string(base::source_dir) + "/tests/golden/native-calls";
  const auto read = [&](const char* capture) {
    auto session = kReader.read(folder / capture, {});
    EXPECT_TRUE(session);
    return session ? std::move(*session) : model::Session{};
  };
  const model::Session allocates = read("allocates");
  std::map<model::MemoryOperation, std::uint64_t> bytes;
  for (const model::MemoryEvent& event : allocates.memory_events) {
    EXPECT_NE(event.thread, model::kNone);
    bytes[event.operation] += event.bytes;
  }
  const std::uint64_t steps = 2 * ((2 << 20) + 512), other = 4096 + 8192;
  EXPECT_EQ(bytes[model::MemoryOperation::kAllocate], steps + other + (1 << 20));
  EXPECT_EQ(bytes[model::MemoryOperation::kFree], steps + other);
  EXPECT_EQ(bytes[model::MemoryOperation::kFailedAllocation], std::uint64_t{1} << 40);

  const model::Session events = read("events");
  EXPECT_EQ(events.event_calls.size(), 9u);
  std::map<model::StreamKind, int> kinds;
  for (const model::Stream& stream : events.streams)
    ++kinds[stream.kind];
  EXPECT_EQ(kinds[model::StreamKind::kBlocking], 1);
  EXPECT_EQ(kinds[model::StreamKind::kNonBlocking], 1);
  EXPECT_EQ(kinds[model::StreamKind::kLegacyDefault], 1);
}

}  // namespace call_details_test
}  // namespace rangescope::read::native
