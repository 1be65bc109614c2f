// What threads have to do with each other: workers of a pool with the thread that started it, who waits with who has
// what it waits for.
#pragma once

#include <cstdint>
#include <vector>

#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::analyze {

/// By stack: a thread of a pool (OpenMP of GCC, LLVM and Intel, OpenBLAS, TBB) does the work of who uses the pool in
/// it, and does not wait for work, spinning or not. O(stacks).
[[nodiscard]] std::vector<bool> pool_work(const model::Session& session);

/// What a chain is busy with, for a sentence: its innermost Python function, else its innermost function with a name;
/// kNone where nothing has one.
[[nodiscard]] std::uint32_t telling_frame(const model::CpuProfile& cpu, std::uint32_t stack);

/// The longest first, and no more than a reader looks at.
void longest_holders(std::vector<model::CpuHolder>& holders);

}  // namespace rangescope::analyze
