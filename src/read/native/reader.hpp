// The reader `native`: one capture file, or a run's folder of captures (one for each process image)
// as one session on CLOCK_MONOTONIC. Format: docs/formats/native-trace.md.
#pragma once

#include "read/reader.hpp"

namespace rangescope::read::native {

extern const Reader kReader;

}  // namespace rangescope::read::native
