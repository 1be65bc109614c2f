// What samples say of one row of a table (a region, a kernel), and the metric that comes of it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "model/report.hpp"
#include "model/sample.hpp"

namespace rangescope::analyze {

inline constexpr double kLeastSamples = 5;    ///< that a value must rest on
inline constexpr double kOtherActive = 0.05;  ///< a device that is less active than this is idle

/// What is known of one metric for one row of a table (a set, a kind, a region).
struct SamplePart {
  double amount = 0;    ///< kAmount: as it is; kShare: nanoseconds at full load
  double variance = 0;  ///< of the amount: what is not known of whose it is
  double edges = 0;     ///< of the amount: what boundaries may have moved
  double weight = 0;    ///< kMean: nanoseconds behind `amount`
  double largest = 0;   ///< kMax
  void add(const SamplePart& other);
};

/// Amounts and shares add up; states do not.
[[nodiscard]] bool adds(model::SampleKind kind);

/// What all streams together say of one metric of one row.
struct SampledRow {
  SamplePart part;
  model::SampleKind kind = model::SampleKind::kShare;
  std::string unit;
  double sampled_ns = 0, total_ns = 0;  ///< of the row's work
  double interval_ns = 1;
};

/// The metric of a row: absent, with the reason, where it rests on too little. `per`: occurrences
/// or calls; `busy_ns`: time that shares are of, where work overlaps; `of`: what was sampled, "GPU
/// work".
[[nodiscard]] model::Metric sampled_metric(const SampledRow& row,
                                           double per,
                                           double busy_ns,
                                           std::string_view of);

/// The column of the device's activity; number of metrics where there is none.
[[nodiscard]] std::size_t activity_column(const model::SampleStream& stream);

/// A report's row of a stream, its gaps as a loss. Sums, clock and what ran are the caller's.
[[nodiscard]] model::SampledDevice describe_stream(const model::SampleStream& stream,
                                                   model::Report& report);

}  // namespace rangescope::analyze
