// Traces of PyTorch's profiler: a session whose links lie within it, or an error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "read/kineto/reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rangescope;
  const auto read = read::kineto::read_text({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!read) {
    if (read.error().what.empty()) __builtin_trap();
    return 0;
  }
  const model::Session& s = *read;
  for (const model::Range& range : s.ranges)
    if (range.thread >= s.threads.size() || range.domain >= s.domains.size() || range.end_ns < range.start_ns ||
        (range.attributes != model::kNone && range.attributes >= s.attributes.size()))
      __builtin_trap();
  for (const model::Thread& thread : s.threads)
    if (thread.process >= s.processes.size()) __builtin_trap();
  for (const model::Launch& launch : s.launches)
    if (launch.thread >= s.threads.size()) __builtin_trap();
  const auto works = [&](const auto& all) {
    for (const auto& work : all)
      if (work.stream >= s.streams.size() || (work.launch != model::kNone && work.launch >= s.launches.size()))
        __builtin_trap();
  };
  works(s.kernels);
  works(s.copies);
  works(s.memsets);
  for (const model::Kernel& kernel : s.kernels)
    if (kernel.name >= s.kernel_names.size() || kernel.shape >= s.kernel_shapes.size()) __builtin_trap();
  for (const model::Stream& stream : s.streams)
    if (stream.process >= s.processes.size() || stream.device >= s.devices.size()) __builtin_trap();
  return 0;
}
