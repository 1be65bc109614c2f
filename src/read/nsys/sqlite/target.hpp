// What an export tells about the machine and itself: product, clock, processes, threads, GPUs.
//
// TARGET_INFO_SYSTEM_ENV and the environment in META_DATA_CAPTURE are never read: they hold
// secrets.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/session.hpp"
#include "read/nsys/sqlite/ids.hpp"
#include "read/nsys/sqlite/source.hpp"

namespace rangescope::read::nsys_sqlite {

/// TARGET_INFO_GPU, or TARGET_INFO_CUDA_GPU before 2022.
struct Gpu {
  std::int64_t id = -1;
  std::int64_t cuda_ordinal = -1;  ///< cuDevice; -1 where the schema has none
  std::string name, uuid, bus, chip;
  model::Device numbers;  ///< what of it is no text
};

/// A row of TARGET_INFO_CUDA_STREAM.
struct StreamInfo {
  std::uint32_t pid = 0, context = 0, stream = 0;
  model::StreamKind kind = model::StreamKind::kUnknown;
};

struct Target {
  std::string product, schema;
  model::Clock clock;
  std::int64_t duration_ns = 0;                    ///< 0 where unknown
  std::map<std::uint64_t, std::string> processes;  ///< process -> executable
  std::map<std::uint64_t, std::string> threads;    ///< globalTid -> name
  std::vector<Gpu> gpus;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t>
      gpu_of;  ///< (pid, CUDA ordinal) -> Gpu::id
  std::vector<StreamInfo> streams;
  std::vector<model::Loss> diagnostics;  ///< what nsys itself reports as lost
  std::vector<Scanned> scans;

  /// The card behind a CUDA ordinal of a process, or nullptr.
  [[nodiscard]] const Gpu* gpu(std::uint32_t pid, std::uint32_t ordinal) const;
};

[[nodiscard]] Target read_target(const Source& source, const StringIds& strings);

}  // namespace rangescope::read::nsys_sqlite
