// Tables of nsys stats, with whatever a program may print between them: a session whose links lie within it, or an
// error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "read/nsys_csv/reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rangescope;
  const read::nsys_csv::Text one{{reinterpret_cast<const char*>(data), size}, "fuzz"};
  const auto read = read::nsys_csv::read_texts(std::span(&one, 1));
  if (!read) {
    if (read.error().what.empty()) __builtin_trap();
    return 0;
  }
  const model::Session& s = *read;
  for (const model::Range& range : s.ranges)
    if (range.thread >= s.threads.size() || range.domain >= s.domains.size() || range.end_ns < range.start_ns)
      __builtin_trap();
  for (const model::Launch& launch : s.launches)
    if (launch.thread >= s.threads.size()) __builtin_trap();
  for (const model::Kernel& kernel : s.kernels)
    if (kernel.stream >= s.streams.size() || kernel.name >= s.kernel_names.size() ||
        kernel.shape >= s.kernel_shapes.size() || (kernel.launch != model::kNone && kernel.launch >= s.launches.size()))
      __builtin_trap();
  for (const model::Stream& stream : s.streams)
    if (stream.process >= s.processes.size() || stream.device >= s.devices.size()) __builtin_trap();
  for (const model::Projection& projection : s.projections)
    if (projection.range >= s.ranges.size()) __builtin_trap();
  return 0;
}
