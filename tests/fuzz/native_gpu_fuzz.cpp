// GPU streams of native captures, counters included, as the work of a process with two threads and
// a few ranges: links stay within their tables.
#include <cstddef>
#include <cstdint>

#include "read/native/gpu.hpp"
#include "share.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rangescope;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto head = read::native::gpu_stream_head(bytes);
  model::Session s;
  const std::uint32_t pid = head ? head->pid : 1;
  s.processes.push_back({.pid = pid});
  s.threads = {{.process = 0, .tid = pid}, {.process = 0, .tid = pid + 1}};
  const std::int64_t start = head ? head->start_ns : 0;
  for (std::uint32_t thread = 0; thread < 2; ++thread) {
    s.ranges.push_back({.start_ns = start, .name = s.strings.intern("outer"), .thread = thread});
    s.ranges.push_back({.start_ns = start,
                        .end_ns = model::kOpen - 1,
                        .name = s.strings.intern("inner"),
                        .thread = thread});
  }
  const auto read = read::native::read_gpu(bytes, "fuzz", 0, s);
  if (!read && read.error().what.empty())
    __builtin_trap();
  const auto within = [](std::uint32_t index, const auto& table) {
    return index == model::kNone || index < table.size();
  };
  for (const model::Kernel& kernel : s.kernels)
    if (!within(kernel.launch, s.launches) || kernel.name >= s.kernel_names.size() ||
        kernel.shape >= s.kernel_shapes.size() || kernel.stream >= s.streams.size() ||
        !within(kernel.graph_node, s.graph_nodes))
      __builtin_trap();
  for (const model::Launch& launch : s.launches)
    if (launch.thread >= s.threads.size())
      __builtin_trap();
  for (const model::Copy& copy : s.copies)
    if (!within(copy.launch, s.launches) || copy.stream >= s.streams.size())
      __builtin_trap();
  for (const model::Stream& stream : s.streams)
    if (stream.process >= s.processes.size() || !within(stream.device, s.devices))
      __builtin_trap();
  for (const model::GraphNode& node : s.graph_nodes)
    if (!within(node.captured_path, s.captured_paths))
      __builtin_trap();
  for (const model::Measurement& result : s.measurements) {
    if (!within(result.kernel_name, s.kernel_names) || !within(result.shape, s.kernel_shapes))
      __builtin_trap();
    for (const model::MetricValue& value : result.values)
      if (value.metric >= s.metrics.size())
        __builtin_trap();
  }
  return ::fuzz::count(read.has_value());
}
