// What a replay needs and no recording has. Values and their sources: conf/replay.
#pragma once

namespace rangescope::model {

/// A value that was measured elsewhere: what is expected, and what was seen at least and at most.
struct MeasuredValue {
  double expected = 0, low = 0, high = 0;
};

struct ReplayCosts {
  MeasuredValue tracing_ns;        ///< what records of CUPTI add to a call
  MeasuredValue graph_launch_ns;   ///< a call that launches a CUDA graph
  MeasuredValue compiled_call_ns;  ///< a call of a function of torch.compile that launches a kernel
  /// What copies from pinned memory reach, of Peaks::host_link_bytes_per_s.
  MeasuredValue pinned_share;
};

}  // namespace rangescope::model
