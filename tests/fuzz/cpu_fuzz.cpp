// Streams of CPU samples: every number points to something that is there, and parents stand before
// their children.
#include <cstddef>
#include <cstdint>

#include "read/native/cpu.hpp"
#include "share.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rangescope;
  model::Session session;
  session.processes.push_back({1, 0, 0, 0, 1'000'000'000});
  session.threads.push_back({0, 1, 0});
  const auto read = read::native::read_cpu(std::as_bytes(std::span(data, size)), "fuzz", session);
  if (!read && read.error().what.empty())
    __builtin_trap();
  const model::CpuProfile& cpu = session.cpu;
  for (std::size_t s = 0; s < cpu.stacks.size(); ++s) {
    if (cpu.stacks[s].frame >= cpu.frames.size())
      __builtin_trap();
    if (cpu.stacks[s].parent != model::kNone && cpu.stacks[s].parent >= s)
      __builtin_trap();
  }
  const auto stack = [&](std::uint32_t number) {
    return number == model::kNone || number < cpu.stacks.size();
  };
  for (const model::CpuSample& sample : cpu.samples)
    if (sample.thread >= cpu.threads.size() || !stack(sample.stack) || sample.at_ns < 0)
      __builtin_trap();
  for (const model::CpuWait& wait : cpu.waits)
    if (wait.thread >= cpu.threads.size() || !stack(wait.stack) || wait.end_ns < wait.start_ns)
      __builtin_trap();
  for (const model::CpuCount& count : cpu.counts)
    if (count.thread >= cpu.threads.size() || count.counter >= cpu.counters.size() ||
        count.at_ns < 0)
      __builtin_trap();
  for (const model::CpuThread& thread : cpu.threads)
    if (thread.thread != model::kNone && thread.thread >= session.threads.size())
      __builtin_trap();
  for (const model::CpuFrame& frame : cpu.frames)
    if (session.strings.view(frame.name).empty() && frame.name != 0)
      __builtin_trap();
  return ::fuzz::count(read.has_value());
}
