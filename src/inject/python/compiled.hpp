// Code that torch.compile's Inductor generated: a file of Python whose function `call` (or
// partition_0, ...) launches the kernels of a graph. A comment above each launch names the nodes of
// the model's graph that the kernel computes:
//
//   # Topologically Sorted Source Nodes: [linear, relu], Original ATen: [aten.addmm, aten.relu]
//   stream0 = get_raw_stream(0)
//   triton_poi_fused_addmm_relu_0.run(buf1, primals_2, 16384, stream=stream0)
//
// PyTorch 2.1 writes `# Source Nodes: [...]`.
//
// Nodes are called like the functions and modules of the model's source, "linear_3".
#pragma once

#include <cstddef>
#include <cstdint>

namespace rangescope::inject::python {

/// Whether Inductor wrote that file: it is named by a hash of its text, in a folder of the hash's
/// first letters.
[[nodiscard]] bool is_compiled(const char* file);

/// The nodes of a launch, "[linear, relu]", cut at `most` - 1 bytes. False where the file cannot be
/// read or does not say them. Reads the file up to the line.
[[nodiscard]] bool source_nodes(const char* file, std::uint32_t line, char* into, std::size_t most);

}  // namespace rangescope::inject::python
