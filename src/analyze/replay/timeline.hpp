// The calls of each thread and the GPU work of each stream as a session holds them, with what a
// dependence graph asks of them: which call launched a work, and which calls waited for what they
// launched.
//
// Calls inside other calls (nsys records the runtime's and the driver's) belong to the outermost
// one. A call *blocks* when its work lies inside it: pageable copies, whose work each of them
// shows, and calls of an API that always does so (CUDA_LAUNCH_BLOCKING, cudaMemcpy). O(n log n) for
// n calls and works.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/replay/graph.hpp"
#include "model/session.hpp"

namespace rangescope::analyze::replay {

struct Call {
  std::int64_t start_ns = 0, end_ns = 0;
  Id thread = 0;
  Id launch = 0;              ///< index into Session::launches
  bool synchronizes = false;  ///< it does nothing but wait
  bool blocks = false;        ///< it returns when the work that it launched has ended
  /// Of what it launched, indexes into Timeline::works: what began first, and what ended last.
  Id first_work = model::kNone, last_work = model::kNone;

  [[nodiscard]] bool launched() const { return first_work != model::kNone; }
};

struct Work {
  std::int64_t start_ns = 0, end_ns = 0;
  Id call = model::kNone;  ///< index into Timeline::calls
  Id stream = 0;           ///< index into Session::streams
  Id source = 0;           ///< index into the vector of its kind
  Kind kind = Kind::kKernel;
  bool in_graph = false;  ///< a node of a CUDA graph: its graph orders it, not its stream
};

struct Timeline {
  std::int64_t begin_ns = 0;
  std::vector<Call> calls;  ///< by thread, within it by time, none inside another
  std::vector<Work> works;  ///< by start
};

[[nodiscard]] Timeline timeline_of(const model::Session& session);

}  // namespace rangescope::analyze::replay
