// What an allocation is for, by when it lives.
//
// A recording says when memory was allocated and freed, not what for. But a training step has a
// shape: the forward pass leaves activations that the backward pass frees and gradients that the
// optimizer reads; what the optimizer allocates and keeps is its state; what was there before and
// stays are parameters. Steps end with each `Optimizer.step` (which PyTorch annotates), else with
// each `ProfilerStep#`, else with each instance of the outermost range that is repeated (where
// ranges are the program's own, and not operators).
//
// The rules, the first that fits:
//   parameters       named so by PyTorch; in use before the recording or before a module was first
//   called, and to the
//                    end of the recording or of the last step
//   older            others that were in use before the recording, and all of them where the
//                    optimizer's state is among them (an optimizer ran and allocated none)
//   optimizer state  allocated while an optimizer ran, and in use after its next run begins or at
//                    the end
//   gradients        in use when the optimizer began; freed by zero_grad, or never and as large as
//                    a parameter or state; without zero_grad in the recording, allocated by a
//                    backward pass and freed before the next optimizer, or of such a size
//   cache            in use over the end of a step, or to the end of a recording without steps
//   temporary        freed after at most kFewEvents events of its allocator, or kShortShare of a
//                    step's; not what was in use when memory ran out: that is what frees it
//   activations      the others
#pragma once

#include <string_view>
#include <vector>

#include "analyze/memory/usage.hpp"
#include "model/memory_use.hpp"
#include "model/session.hpp"

namespace rangescope::analyze {

inline constexpr std::size_t kFewEvents = 8;
inline constexpr double kShortShare = 0.02;

struct TimeSpan {
  std::int64_t start_ns = 0, end_ns = 0;
};

/// A range that a framework opened for an operator: "aten::linear",
/// "autograd::engine::evaluate_function: MmBackward0".
[[nodiscard]] bool is_operator(std::string_view name);

/// The steps of a program, as its ranges show them. All by start.
struct Steps {
  std::vector<TimeSpan> optimizers;
  std::vector<TimeSpan> zero_grads;
  std::vector<TimeSpan> backwards;  ///< passes of autograd, where the recording knows them
  std::vector<std::int64_t> ends_ns;
  std::int64_t first_module_ns = model::kOpen;  ///< when a module was first called; kOpen: unknown
};

/// O(ranges).
[[nodiscard]] Steps find_steps(const model::Session& session);

/// The use of each allocation of `allocator`, by index into the session's; of others kTemporary.
/// O(n log n).
[[nodiscard]] std::vector<model::MemoryUse> memory_uses(const model::Session& session,
                                                        std::uint32_t allocator,
                                                        const MemoryUsage& usage,
                                                        const Steps& steps);

}  // namespace rangescope::analyze
