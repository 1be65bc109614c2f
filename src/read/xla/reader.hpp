// Reader of profiles of XLA, `*.xplane.pb`, as jax.profiler and TensorFlow's profiler write them
// (docs/formats/xplane.md): one protobuf message, XSpace of tsl/profiler/protobuf/xplane.proto.
//
//   XSpace   planes = 1, hostnames = 4
//   XPlane   name = 2 ("/host:CPU", "/device:GPU:0"), lines = 3, event_metadata = 4, stat_metadata
//   = 5 (maps by id) XLine    id = 1, name = 2, timestamp_ns = 3, events = 4, display_name = 11
//   XEvent   metadata_id = 1, offset_ps = 2, duration_ps = 3, stats = 4
//   XStat    metadata_id = 1, double = 2, uint64 = 3, int64 = 4, str = 5, ref = 7 (a name of
//   stat_metadata) XEventMetadata, XStatMetadata   id = 1, name = 2
//
// Lines of a host are threads, of a GPU streams; what XLA derived of those (XLA Ops, Steps) is left
// out, but of a TPU, which has no streams, XLA Ops are the kernels. Events become those of
// read/kineto, which builds the session.
#pragma once

#include "read/reader.hpp"

namespace rangescope::read::xla {

extern const Reader kReader;

/// kBadData where it is no XSpace, or none with kernels or ranges.
[[nodiscard]] base::Result<model::Session> read_bytes(std::string_view data,
                                                      const std::string& name);

}  // namespace rangescope::read::xla
