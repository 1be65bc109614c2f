// Reader of the traces that torch.profiler exports (Kineto), plain or gzip'ed, PyTorch 1.8 to 2.11,
// NVIDIA and AMD (docs/formats/kineto.md). The file is never held whole: splitter.hpp cuts it into
// events, simdjson reads each.
#pragma once

#include "read/reader.hpp"

namespace rangescope::read::kineto {

extern const Reader kReader;

/// The same of bytes, for tests and fuzzing.
[[nodiscard]] base::Result<model::Session> read_text(std::string_view text,
                                                     const std::string& name);

/// What the first bytes of a gzip file hold, as far as they go; "" where they are none.
[[nodiscard]] std::string unpacked_head(std::string_view head);

}  // namespace rangescope::read::kineto
