// Activity records of any supported CUPTI as plain values. CUPTI's structs have version suffixes and grew over time;
// this is the only place that knows which release wrote what.
//
// From CUDA 12.0 to 13.0 every struct that is read here grew at its end or in its padding, never in the middle
// (asserted in records.cpp against the headers); so a field is read where it has always been, and newer ones only where
// the library is new enough to write them. A release that moves a field needs a new Family, and a table here.
#pragma once

#include <cstdint>

#include "inject/cupti/api.hpp"

namespace rangescope::inject::cupti {

struct KernelRecord {
  std::uint64_t start, end;
  std::uint32_t correlation;
  std::uint32_t device, context, stream;
  std::uint64_t graph_node;
  const char* name;  ///< mangled, the library's own
  std::uint32_t grid[3], block[3], cluster[3];
  std::uint32_t registers_per_thread, static_shared_bytes, dynamic_shared_bytes;
};

/// A copy (also between peers) or, with `kind` the memory kind, a memset.
struct CopyRecord {
  std::uint64_t start, end, bytes;
  std::uint32_t correlation;
  std::uint32_t device, context, stream;
  std::uint64_t graph_node;
  std::uint8_t kind, source, destination;
};

struct GraphRecord {
  std::uint64_t start, end;
  std::uint32_t correlation;
  std::uint32_t device, context, stream;
  std::uint32_t graph;
};

struct ApiRecord {
  std::uint64_t start, end;
  std::uint32_t correlation;
  std::uint32_t thread;
  std::uint32_t cbid;
};

struct DeviceRecord {
  std::uint32_t id;
  const char* name;
  std::uint8_t uuid[16];
  bool mig;
  std::uint64_t memory_bytes, l2_bytes, memory_bytes_per_s, sm_clock_hz;
  std::uint32_t compute_major, compute_minor, sm_count;
};

struct ContextRecord {
  std::uint32_t id, device, null_stream, parent;
  bool green;
  std::uint32_t sm_count;
};

[[nodiscard]] KernelRecord read_kernel(const CUpti_Activity& record, Family family);
[[nodiscard]] CopyRecord read_copy(const CUpti_Activity& record, Family family);       ///< MEMCPY
[[nodiscard]] CopyRecord read_peer_copy(const CUpti_Activity& record, Family family);  ///< MEMCPY2
[[nodiscard]] CopyRecord read_memset(const CUpti_Activity& record, Family family);
[[nodiscard]] GraphRecord read_graph(const CUpti_Activity& record, Family family);
[[nodiscard]] ApiRecord read_api(const CUpti_Activity& record, Family family);
[[nodiscard]] DeviceRecord read_device(const CUpti_Activity& record, Family family);
/// `version`: 12.x grew the context record within the family.
[[nodiscard]] ContextRecord read_context(const CUpti_Activity& record, std::uint32_t version);

}  // namespace rangescope::inject::cupti
