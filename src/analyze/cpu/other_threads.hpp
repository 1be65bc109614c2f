// What threads have to do with each other: workers of a pool with the thread that started it, who
// waits with who has what it waits for.
#pragma once

#include <cstdint>
#include <vector>

#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::analyze {

/// By stack, each a library that has a pool of threads (OpenMP of GCC, LLVM and Intel, OpenBLAS,
/// TBB); 0: none.
struct PoolStacks {
  std::vector<model::StringId> work;  ///< a thread of its pool does the work of who uses the pool
  /// The chain passes it: of other threads those that use the pool.
  std::vector<model::StringId> inside;
  std::vector<model::StringId> waits;  ///< such a thread waits in it for the pool, spinning
};
/// O(stacks).
[[nodiscard]] PoolStacks pool_stacks(const model::Session& session);

/// By sample that is a pool's work: the thread, as the session numbers those, whose work it is.
/// That is the thread that was in the library at the time, where it is the only one or the one that
/// started the worker; else the one that started it. kNone of other samples, and where no thread is
/// known.
[[nodiscard]] std::vector<std::uint32_t> pool_users(const model::Session& session,
                                                    const PoolStacks& pools);

/// Times of 2 ms or more in which a thread with ranges or CUDA calls waited in such a library,
/// spinning or not, and the worker that worked until the end of it: CpuWait::holder.
[[nodiscard]] std::vector<model::CpuWait> pool_waits(const model::Session& session,
                                                     const PoolStacks& pools);

/// What children of process `pid` waited for while its first thread waited for them, where none of
/// their first threads worked. Nothing of the time in which one did: its samples are the program's.
/// Other waits come before those that may be for the end of a pipe; children that wait for children
/// of their own are left out. O(n log n) in waits.
[[nodiscard]] std::vector<model::CpuWait> waits_of_children(const model::Session& session,
                                                            std::uint32_t pid);

/// What a chain is busy with, for a sentence: its innermost Python function, else its innermost
/// function with a name; kNone where nothing has one.
[[nodiscard]] std::uint32_t telling_frame(const model::CpuProfile& cpu, std::uint32_t stack);

/// The longest first, and no more than a reader looks at.
void longest_holders(std::vector<model::CpuHolder>& holders);

}  // namespace rangescope::analyze
