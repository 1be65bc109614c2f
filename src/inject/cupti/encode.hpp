// Turns activity records into records of the GPU stream, interning names, streams and launch shapes on the way.
//
// Runs on CUPTI's worker thread and on ours, never on the program's launching threads (but see node()). Cost: one hash
// look-up and one 24-byte copy a kernel. Memory is bounded: a table that fills up is forgotten and its definitions are
// written anew.
#pragma once

#include <cstdint>

#include "inject/cupti/gpu_stream.hpp"
#include "inject/cupti/intern.hpp"
#include "inject/cupti/records.hpp"

namespace rangescope::inject::cupti {

class Encoder {
 public:
  explicit Encoder(GpuStream& stream) : stream_(stream) {}

  void kernel(const KernelRecord& record);
  void copy(const CopyRecord& record, wire::gpu::Type type);
  void graph(const GraphRecord& record);
  /// `end` 0: not known. `api_name` is asked for only the first time that a `cbid` is seen.
  void launch(const Api& api, std::uint32_t cbid, std::uint32_t correlation, std::uint32_t tid, std::uint64_t start,
              std::uint64_t end);
  void device(const DeviceRecord& record);
  void context(const ContextRecord& record);
  void node(std::uint32_t tid, std::uint8_t type, std::uint64_t at, std::uint64_t node, std::uint64_t original);
  void loss(wire::gpu::LossKind kind, std::uint64_t count, const char* detail);
  void info(const char* key, const char* value);
  /// The id of any text, defined anew each time it is asked for: for things that are written seldom.
  std::uint32_t text_id(const char* text, std::size_t bytes);
  void clock_sample(std::int64_t before, std::int64_t cupti, std::int64_t after);

  /// Kernels, copies, sets and graph launches that had no end when they were delivered.
  [[nodiscard]] std::uint64_t unfinished() const { return unfinished_; }

 private:
  std::uint32_t name_id(const char* name);
  std::uint32_t stream_id(std::uint32_t device, std::uint32_t context, std::uint32_t stream);

  static constexpr std::uint32_t kCbids = 2048;

  GpuStream& stream_;
  NameTable names_;
  KindTable kinds_;
  StreamTable streams_;
  std::uint32_t next_name_ = 1;
  std::uint32_t next_kind_ = 1;
  std::uint32_t next_stream_ = 0;
  std::uint8_t api_index_[kCbids] = {};
  std::uint32_t next_api_ = 1;
  std::uint64_t unfinished_ = 0;
};

}  // namespace rangescope::inject::cupti
