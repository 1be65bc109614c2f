// Puts the parts of an export together: dictionaries become indexes of the session, correlation ids become launches.
//
// O(rows). Steps: (1) the correlation ids of all GPU work are merged into one bit set; (2) of the API calls only those
// stay that have such an id or wait for the GPU, in place, and each tells its id where it went; (3) every kernel, copy,
// set and graph looks its launch up. The order of every vector is that of the file, whatever the number of threads.
#pragma once

#include <array>
#include <vector>

#include "model/session.hpp"
#include "read/nsys/sqlite/ids.hpp"
#include "read/nsys/sqlite/parts.hpp"
#include "read/nsys/sqlite/target.hpp"

namespace rangescope::read::nsys_sqlite {

struct Parts {
  Nvtx nvtx;
  Calls calls;
  Activity kernels, copies, memsets, graphs, synchronizations;
  std::vector<NodeEvent> nodes;
  StringIds strings;
  Target target;

  [[nodiscard]] std::array<const Outcome*, 7> outcomes() const {
    return {&nvtx.outcome,    &calls.outcome,  &kernels.outcome,         &copies.outcome,
            &memsets.outcome, &graphs.outcome, &synchronizations.outcome};
  }
};

/// `threads` workers at most.
[[nodiscard]] model::Session assemble(Parts parts, int threads);

}  // namespace rangescope::read::nsys_sqlite
