// Batches that a program makes on the CPU, and copies to the GPU.
#pragma once

#include <vector>

#include "analyze/cures/recording.hpp"

namespace rangescope::analyze::cures {

/// A long stretch of the launching thread, and the copy right behind it.
struct Batch {
  Id stretch = 0, copy = 0;
};

[[nodiscard]] std::vector<Batch> batches_of(const Recording& recording);

}  // namespace rangescope::analyze::cures
