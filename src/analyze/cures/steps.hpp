// The steps of a program that names none: one repetition of what it does all the time.
//
// A step begins where the outermost module that takes most of the time is called; without modules,
// at a kernel or copy behind which the same sequence comes again and again.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analyze/replay/graph.hpp"
#include "analyze/replay/replay.hpp"
#include "analyze/statistics/stretches.hpp"
#include "model/session.hpp"

namespace rangescope::analyze::cures {

struct FoundSteps {
  std::vector<replay::Span> spans;  ///< each up to the next one, of one thread; empty: none found
  std::string module;               ///< "GPT", at whose calls they begin; "" where at none
};

/// O(n) for n operations, times the number of different distances at which kernels come again.
[[nodiscard]] FoundSteps find_steps(const model::Session& session,
                                    const replay::Graph& graph,
                                    const replay::LaneIndex& lanes,
                                    const std::vector<std::vector<replay::Id>>& works_of_call);

/// How many of the first steps compile, tune and load: those that take more than twice as long as
/// most, at most a quarter of all. With a few faster ones between them only where slow steps become
/// rare later. `steps` are of one thread, in order.
[[nodiscard]] std::size_t warm_up_steps(std::span<const replay::Span> steps);

/// Steps that are ranges, each up to the beginning of the next one of its thread, where they leave
/// out more than a tenth of the time and the GPU works in half of it: a range that only launches
/// ends before its GPU work. Pauses of more than two steps stay outside.
void extend_to_next_step(const Stretches& gpu_busy, std::vector<replay::Span>& steps);

}  // namespace rangescope::analyze::cures
