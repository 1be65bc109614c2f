// Which functions are the program's own: those of the user's files, and not of libraries,
// interpreters or the operating system. They are what a reader can change, so costs and waits are
// given by them.
//
// Python: files outside the standard library, site-packages and dist-packages. Native code:
// functions with a name in a process's own executable (no interpreter's), or in a shared library
// outside the system's folders; what is inlined there from the system's headers is a library's, and
// so are C++'s and Rust's standard libraries and Go's runtime.
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
/// Has a thread that waits in a call chain nothing to do? Decided by names of functions, from the
/// innermost function out to the program's own: accept, the poll of an event loop, the queue of a
/// pool's worker, the join of a thread.
enum class Idle : std::uint8_t {
  kNo,
  kInWorkers,  ///< in all threads but the first: a worker's wait for work
  kInAnyThread,
};
struct UserCode {
  std::vector<Origin> origins;           ///< by CpuProfile::frames
  std::vector<std::uint32_t> innermost;  ///< by stack: frame of the innermost own function or kNone
  std::vector<Idle> idle;                ///< by stack
  std::vector<bool> in_event_loop;       ///< by stack: asyncio's loop is in it
  std::vector<bool> is_callback;         ///< by stack: the loop called its innermost own function

  [[nodiscard]] bool is_idle(const model::CpuWait& wait, const model::CpuThread& thread) const;
};
/// Of a frame that stands alone; `executable` is the file that its process runs.
[[nodiscard]] Origin origin_of_frame(bool is_python,
                                     std::string_view name,
                                     std::string_view file,
                                     std::string_view module,
                                     std::string_view executable);
/// O(frames + stacks).
[[nodiscard]] UserCode user_code(const model::Session& session);

/// Native functions elsewhere are named with their library instead of a file: "read [libc.so.6]".
[[nodiscard]] model::CodePlace code_place(const model::Session& session,
                                          const UserCode& code,
                                          std::uint32_t frame);

/// By place and kind: those that delay work first, then the longest; at most fifty. Waits for a
/// core and for the GIL are left out. O(n log n) in samples, O(depth of the stack) for each wait.
[[nodiscard]] std::vector<model::CpuWaitRow> waits_by_function(const model::Session& session,
                                                               const UserCode& code);

/// Is a file name that of CPython's executable or library?
[[nodiscard]] bool is_python_module(std::string_view file);
/// Is it an interpreter of any language?
[[nodiscard]] bool is_interpreter_module(std::string_view file);

}  // namespace rangescope::analyze
