// GPU_METRICS: what `nsys profile --gpu-metrics-devices` sampled, a row for each metric of each sample.
//
//   GPU_METRICS              timestamp, typeId (its lowest byte is the GPU), metricId, value
//   TARGET_INFO_GPU_METRICS  typeId, metricId, metricName: "SMs Active [Throughput %]", "SYS Clock Frequency [MHz]"
//
// A sample ends at its time stamp and begins where the one before it ended. Percentages are whole numbers.
#pragma once

#include <vector>

#include "model/sample.hpp"
#include "read/nsys/sqlite/parts.hpp"
#include "read/nsys/sqlite/target.hpp"

namespace rangescope::read::nsys_sqlite {

struct GpuMetrics {
  Outcome outcome;
  struct Stream {
    std::int64_t gpu = 0;  ///< Gpu::id
    model::SampleStream samples;
  };
  std::vector<Stream> streams;
};

/// O(rows). Names that are counters of conf/sample too are called as there, so that one formula serves both.
[[nodiscard]] GpuMetrics read_gpu_metrics(const Source& source);

/// Hands the streams over, with what is known of their GPUs.
void add_gpu_metrics(GpuMetrics&& from, const std::vector<Gpu>& gpus, model::Session& session);

}  // namespace rangescope::read::nsys_sqlite
