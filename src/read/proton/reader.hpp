// Reader of the profiles of Triton's Proton, `.hatchet` (docs/formats/proton.md): JSON, a tree of
// frames in Hatchet's form, and behind it what the GPUs are.
//
//   [{"frame": {"name": "ROOT"}, "metrics": {...}, "children": [
//      {"frame": {"name": "scope"}, "metrics": {}, "children": [
//         {"frame": {"name": "kernel"}, "metrics": {"count": 10, "time (ns)": 204800,
//         "device_type": "CUDA", ...}}]}]},
//    {"CUDA": {"0": {"arch": "90", "num_sms": 132, ...}}}]
//
// Frames with a device are kernels, the others ranges with the kernels below them.
#pragma once

#include "read/reader.hpp"

namespace rangescope::read::proton {

extern const Reader kReader;

/// kBadData where it is no JSON, or no frame of it has a time.
[[nodiscard]] base::Result<model::Session> read_text(std::string_view text,
                                                     const std::string& name);

}  // namespace rangescope::read::proton
