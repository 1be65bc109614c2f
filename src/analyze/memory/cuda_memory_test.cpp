#include "analyze/memory/cuda_memory.hpp"

#include <gtest/gtest.h>

#include <string>

#include "analyze/analyze.hpp"
#include "analyze/session_test.hpp"

namespace rangescope::analyze {
namespace cuda_memory_test {

using model::MemoryKind;
using model::MemoryOperation;

/// One thread that calls CUDA for memory of GPU 0; a call takes 10 ns.
class CallBuilder : public testing::SessionBuilder {
 public:
  CallBuilder() {
    process_ = process(100);
    thread_ = thread(process_, 100);
    device_ = device(process_, 0);
  }
  void range(std::string_view name, std::int64_t start, std::int64_t end) {
    SessionBuilder::range(thread_, name, start, end);
  }
  void call(std::int64_t start,
            MemoryOperation operation,
            std::uint64_t address,
            std::uint64_t bytes,
            MemoryKind kind = MemoryKind::kDevice) {
    model::MemoryEvent event;
    event.launch = launch(thread_, start, start + 10);
    event.at_ns = operation == MemoryOperation::kFree ? start : start + 10;
    event.address = address;
    event.bytes = bytes;
    event.process = process_;
    event.thread = thread_;
    event.device = is_on_device(kind) ? device_ : model::kNone;
    event.kind = kind;
    event.operation = operation;
    session.memory_events.push_back(event);
    session.end_ns = std::max(session.end_ns, start + 10);
  }
  void allocate(std::int64_t start,
                std::uint64_t address,
                std::uint64_t bytes,
                MemoryKind kind = MemoryKind::kDevice) {
    call(start, MemoryOperation::kAllocate, address, bytes, kind);
  }
  void free(std::int64_t start, std::uint64_t address, std::uint64_t bytes) {
    call(start, MemoryOperation::kFree, address, bytes);
  }
  [[nodiscard]] model::Report report() {
    auto done = analyze(session, {});
    EXPECT_TRUE(done);
    return done ? std::move(*done) : model::Report{};
  }

 private:
  std::uint32_t process_ = 0, thread_ = 0, device_ = 0;
};

std::string shown(const model::RegionCudaMemory& memory) {
  const auto text = [](double value) { return std::to_string(static_cast<std::int64_t>(value)); };
  return std::to_string(memory.allocations) + " allocations of " + text(memory.allocated_bytes) +
         ", " + std::to_string(memory.frees) + " frees, peak " + text(memory.peak_bytes) +
         ", kept " + text(memory.kept_bytes) + ", calls " + text(memory.call_ns) + " ns";
}

TEST(CudaMemory, OfEachRegion) {
  CallBuilder builder;
  builder.range("setup", 0, 100);
  builder.allocate(10, 1, 1000);
  builder.allocate(30, 2, 64, MemoryKind::kPinned);
  builder.range("step", 200, 400);
  builder.range("inner", 210, 300);
  builder.allocate(220, 3, 500);
  builder.free(350, 3, 500);
  builder.range("step", 500, 700);
  builder.allocate(510, 3, 700);
  builder.free(900, 3, 700);
  const model::Report report = builder.report();
  ASSERT_EQ(report.regions.size(), 3u);
  EXPECT_EQ(shown(*report.regions[0].cuda_memory),
            "2 allocations of 1064, 0 frees, peak 1000, kept 1064, calls 20 ns");
  EXPECT_EQ(shown(*report.regions[1].cuda_memory),
            "2 allocations of 1200, 1 frees, peak 1700, kept 0, calls 30 ns")
      << "freed later, outside: not kept";
  EXPECT_EQ(shown(*report.regions[2].cuda_memory),
            "1 allocations of 500, 0 frees, peak 1500, kept 0, calls 10 ns");
}

TEST(CudaMemory, ByKind) {
  CallBuilder builder;
  builder.free(0, 77, 5000);  // from before the recording
  builder.allocate(20, 1, 1000);
  builder.allocate(40, 2, 64, MemoryKind::kPinned);
  builder.allocate(60, 3, 500);
  builder.free(80, 1, 1000);
  builder.call(100, MemoryOperation::kFailedAllocation, 0, 1 << 30);
  builder.allocate(120, 1, 10);  // the address again
  const model::Report report = builder.report();
  ASSERT_EQ(report.cuda_memory.size(), 2u);
  const model::CudaMemory& device = report.cuda_memory[0];
  EXPECT_EQ(device.device, 0u);
  EXPECT_EQ(device.kind, MemoryKind::kDevice);
  EXPECT_EQ(device.allocations, 3);
  EXPECT_EQ(device.frees, 2);
  EXPECT_EQ(device.failures, 1);
  EXPECT_EQ(device.allocated_bytes, 1510);
  EXPECT_EQ(device.peak_bytes, 1500) << "what is older is in no sum";
  EXPECT_EQ(device.peak_at_ns, 70);
  EXPECT_EQ(device.kept, 2);
  EXPECT_EQ(device.kept_bytes, 510);
  EXPECT_EQ(device.call_ns, 60);
  const model::CudaMemory& pinned = report.cuda_memory[1];
  EXPECT_FALSE(pinned.device);
  EXPECT_EQ(pinned.kind, MemoryKind::kPinned);
  EXPECT_EQ(pinned.kept_bytes, 64);
}

TEST(CudaMemory, NothingWithoutSuchCalls) {
  CallBuilder builder;
  builder.range("step", 0, 100);
  const model::Report report = builder.report();
  EXPECT_TRUE(report.cuda_memory.empty());
  EXPECT_FALSE(report.regions.at(0).cuda_memory);
}

}  // namespace cuda_memory_test
}  // namespace rangescope::analyze
