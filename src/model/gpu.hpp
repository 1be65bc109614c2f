// What happened on GPUs: devices, streams, launches on the CPU side, and the kernels, copies, sets
// and graphs they caused.
//
// Everything is compact and index-linked, since there may be ten million kernels.
#pragma once

#include <array>
#include <compare>
#include <cstdint>

#include "model/memory.hpp"
#include "model/range.hpp"
#include "model/strings.hpp"

namespace rangescope::model {

/// A GPU as one process saw it (CUDA ordinals are per process; `uuid` says which are the same
/// card).
struct Device {
  std::uint32_t process = kNone;
  std::uint32_t ordinal = 0;
  StringId name = 0;
  StringId uuid = 0;
  StringId pci_bus = 0;
  StringId chip = 0;  ///< "GH100"
  std::uint32_t compute_major = 0, compute_minor = 0;
  std::uint32_t sm_count = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t l2_bytes = 0;
  double sm_clock_hz = 0;         ///< highest SM clock, 0 where unknown
  double memory_bytes_per_s = 0;  ///< theoretical bandwidth, 0 where unknown
  bool mig = false;
};

/// How a stream is ordered with the work of the legacy default stream of its context.
enum class StreamKind : std::uint8_t {
  kUnknown,
  kLegacyDefault,  ///< the default stream: its work and that of blocking streams do not overlap
  kBlocking,
  kNonBlocking,  ///< made with cudaStreamNonBlocking
};

/// A CUDA stream of a context of a device of a process.
struct Stream {
  std::uint32_t process = 0;
  std::uint32_t device = kNone;  ///< index into Session::devices
  std::uint32_t context = 0;     ///< CUPTI context id
  std::uint32_t id = 0;          ///< CUPTI stream id
  StringId name = 0;
  StreamKind kind = StreamKind::kUnknown;
};

enum class LaunchKind : std::uint8_t { kKernel, kCopy, kMemset, kGraph, kSynchronize, kOther };

/// The API call that caused GPU work (or waited for it), on the thread that made it. 40 bytes.
struct Launch {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = kOpen;  ///< kOpen where only the start was recorded
  std::uint32_t thread = 0;
  std::uint32_t correlation = 0;  ///< CUPTI correlation id, unique within its process
  StringId name = 0;  ///< API name, "cudaLaunchKernel_v7000"; 0 where it was not recorded
  LaunchKind kind = LaunchKind::kKernel;
};

/// Names of a kernel; one entry per distinct function.
struct KernelName {
  StringId demangled = 0;
  StringId short_name = 0;
  StringId mangled = 0;
};

/// Launch configuration, interned: kernels with equal configurations share one.
struct KernelShape {
  std::array<std::uint32_t, 3> grid{};
  std::array<std::uint32_t, 3> block{};
  std::array<std::uint32_t, 3> cluster{};
  std::uint32_t registers_per_thread = 0;
  std::uint32_t static_shared_bytes = 0;
  std::uint32_t dynamic_shared_bytes = 0;
  auto operator<=>(const KernelShape&) const = default;
};

/// One kernel execution. 40 bytes.
struct Kernel {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t launch =
      kNone;                 ///< index into Session::launches; kNone when its call was not recorded
  std::uint32_t name = 0;    ///< index into Session::kernel_names
  std::uint32_t shape = 0;   ///< index into Session::kernel_shapes
  std::uint32_t stream = 0;  ///< index into Session::streams
  std::uint32_t graph_node = kNone;  ///< index into Session::graph_nodes when a graph launch ran it
};

/// CUpti_ActivityMemcpyKind, the numbers that nsys also writes.
enum class CopyKind : std::uint8_t {
  kUnknown = 0,
  kHostToDevice = 1,
  kDeviceToHost = 2,
  kHostToArray = 3,
  kArrayToHost = 4,
  kArrayToArray = 5,
  kArrayToDevice = 6,
  kDeviceToArray = 7,
  kDeviceToDevice = 8,
  kHostToHost = 9,
  kPeerToPeer = 10,
};

struct Copy {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t bytes = 0;
  std::uint32_t launch = kNone;
  std::uint32_t stream = 0;
  std::uint32_t graph_node = kNone;
  CopyKind kind = CopyKind::kUnknown;
  bool migration = false;  ///< of unified memory: the driver moved pages, no call did
  MemoryKind source = MemoryKind::kUnknown, destination = MemoryKind::kUnknown;
};

/// The host's side is ordinary memory: the driver copies through a buffer of its own, and the call
/// waits for it. Unknown kinds are not.
[[nodiscard]] constexpr bool is_pageable(const Copy& copy) {
  return copy.source == MemoryKind::kPageable || copy.destination == MemoryKind::kPageable;
}

struct Memset {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t bytes = 0;
  std::uint32_t launch = kNone;
  std::uint32_t stream = 0;
  std::uint32_t graph_node = kNone;
};

enum class SyncKind : std::uint8_t { kUnknown, kEvent, kStreamWaitEvent, kStream, kContext };

/// A wait of the CPU (or of a stream) for the GPU.
struct Synchronization {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t launch = kNone;  ///< the API call, when recorded
  std::uint32_t stream = kNone;
  SyncKind kind = SyncKind::kUnknown;
};

/// What a call does with a CUDA event.
enum class EventOperation : std::uint8_t {
  kRecord,       ///< marks how far `stream` has got
  kStreamWait,   ///< `stream` goes on when the event has been reached
  kSynchronize,  ///< the calling thread does
};

/// A call that records a CUDA event, or waits for one.
struct EventCall {
  std::uint64_t event = 0;       ///< names the event within its process until that is destroyed
  std::uint32_t launch = kNone;  ///< the call, index into Session::launches
  std::uint32_t stream = kNone;  ///< index into Session::streams; kNone of kSynchronize
  EventOperation operation = EventOperation::kRecord;
};

/// A whole CUDA graph launch, as one span on the GPU (its kernels are not listed singly then).
struct GraphLaunch {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t graph_id = 0;
  std::uint64_t exec_id = 0;
  std::uint32_t launch = kNone;
  std::uint32_t stream = 0;
  std::uint32_t kernel_nodes = 0;  ///< kernel nodes of the graph, 0 where unknown
};

/// A node of a CUDA graph and the range path that was open when it was captured.
struct GraphNode {
  std::uint64_t id = 0;
  std::uint64_t graph_id = 0;
  std::uint32_t process = 0;
  std::uint32_t captured_path = kNone;  ///< index into Session::captured_paths
};

}  // namespace rangescope::model
