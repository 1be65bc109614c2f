// The backward pass of PyTorch by what made it in the forward pass. The autograd engine evaluates
// functions on threads of its own, where no Python and so no module is; each has the sequence
// number of the operator that made it.
//
// Sequence numbers: in traces the payload of a range (Process::operators), under emit_nvtx the end
// of its name
// (", seq = 12"). Several operators in each other may have one number: the latest that began before
// the function made it. What adds up gradients (AccumulateGrad) has none, and runs right behind the
// function whose gradient it takes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "model/backward.hpp"
#include "model/session.hpp"

namespace rangescope::analyze {

/// Process, sequence number, start, and what it is.
using Numbered = std::tuple<std::uint32_t, std::int64_t, std::int64_t, std::uint32_t>;
/// What made that function, of `operators` in order; kNone where none did. O(log n).
[[nodiscard]] std::uint32_t maker_of(const Numbered& function,
                                     const std::vector<Numbered>& operators);

/// Adds the backward pass as ranges of the domain "nn.Module": `backward`, from the first to the
/// last function of a pass on a thread, and in it the modules around the operators that made the
/// functions, each for those in a row, as far as the recording has modules. Returns a text on the
/// share of functions, or of launches (Session::backward), whose module was found, and how; ""
/// where there is no backward pass. O(n log n) in ranges with numbers and of modules.
std::string add_backward_modules(model::Session& session);

}  // namespace rangescope::analyze
