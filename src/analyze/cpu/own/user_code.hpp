// Which functions are the program's own: those of the user's files, and not of libraries,
// interpreters or the operating system. They are what a reader can change, so costs and waits are
// given by them.
//
// Python: files outside the standard library, site-packages and dist-packages. Native code:
// functions with a name in a process's own executable (no interpreter's), or in a shared library
// outside the system's folders; what is inlined there from the system's headers is a library's.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/report.hpp"
#include "model/session.hpp"

namespace rangescope::analyze {

enum class Origin : std::uint8_t {
  kElsewhere,  ///< libraries, interpreters, the operating system
  kOwn,
  kPartOfCaller,  ///< a comprehension of the program: time of the function that it is in
};
struct UserCode {
  std::vector<Origin> origins;  ///< by CpuProfile::frames
  std::vector<std::uint32_t>
      innermost;  ///< by CpuProfile::stacks, the frame of the innermost own function or kNone
};
/// O(frames + stacks).
[[nodiscard]] UserCode user_code(const model::Session& session);

[[nodiscard]] model::CodePlace code_place(const model::Session& session, std::uint32_t frame);

/// Is a wait in this chain one of a thread that has nothing to do? By names of functions, from the
/// innermost function out to the program's own: accept, the poll of an event loop, the queue of a
/// pool's worker, the join of a thread.
[[nodiscard]] bool is_idle_wait(const model::Session& session, const UserCode& code,
                                std::uint32_t stack, bool first_thread);

/// By place and kind, the longest first; at most fifty. Waits for a core and for the GIL are none
/// of these. O(waits + samples) after sorting, and the depth of each wait's stack.
[[nodiscard]] std::vector<model::CpuWaitRow> waits_by_function(const model::Session& session);

/// Is it CPython's executable or library? What it runs there is Python, or the functions that
/// Python calls.
[[nodiscard]] bool is_python_module(std::string_view file);
/// The same of any language whose programs are read by an interpreter.
[[nodiscard]] bool is_interpreter_module(std::string_view file);

}  // namespace rangescope::analyze
