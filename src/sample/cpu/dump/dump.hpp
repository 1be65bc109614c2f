// What a running process does at this moment: every thread with its state, its Python and native
// stack, what it waits for, since when, and who has the lock. Threads that wait for each other in a
// circle are a deadlock.
//
// A thread that sleeps is not touched: its stack stays as it is, and /proc knows its system call.
// One that runs is stopped by ptrace for as long as it takes to read its registers and copy its
// stack, some 0.1 ms; all of them together for 4 ms at most, the rest has no native stack. Of a
// mutex glibc notes the owner, of the GIL the interpreter. A lock of Python's threading has none:
// its holder is found by what a `with` statement leaves on the stack of its frame
// (sample/cpu/dump/python_locks.cpp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sample/cpu/target.hpp"
#include "wire/cpu.hpp"

namespace rangescope::sample::cpu {

struct DumpedFrame {
  std::string name, file,
      module;  ///< file: "" where unknown; module: the file of native code, "" of Python's
  std::uint32_t line =
      0;  ///< that it is at; where that is unknown, where the function begins; 0: unknown
  std::uint32_t first_line = 0;  ///< where a Python function begins; 0: native, or unknown
};

struct DumpedWait {
  wire::cpu::WaitKind kind = wire::cpu::WaitKind::kOther;
  std::string call;  ///< "futex", "read"; "" where it has no name here
  std::string on;    ///< what its file is: "socket:[1234]", "/tmp/x"; "" where it waits for none
  std::optional<std::int64_t> since_ns;  ///< it has not run for so long; unknown on some kernels
  std::uint64_t lock = 0;                ///< address of the lock, 0: none
  std::uint32_t holder = 0;              ///< id of the thread that has it; 0: unknown
};

struct DumpedThread {
  std::uint32_t tid = 0;
  std::string name;
  char state = '?';                         ///< as ps has it
  std::optional<DumpedWait> wait;           ///< nothing where it runs, or could
  std::vector<DumpedFrame> python, native;  ///< the innermost first
  bool native_cut = false;                  ///< the native stack is not whole
};

struct Dump {
  Target target;
  std::string executable;             ///< its file; "" where unknown
  std::vector<DumpedThread> threads;  ///< the first one of the process first
  std::vector<std::vector<std::size_t>>
      cycles;                      ///< deadlocks: threads, of which each waits for the next one
  std::int64_t read_ns = 0;        ///< it took so long to read, naming of functions left out
  std::int64_t stopped_ns = 0;     ///< threads were stopped for so long, in all
  std::string python;              ///< its version; "" for none
  std::vector<std::string> notes;  ///< what is missing, and why
};

/// `cache`: of names of functions, as in names_of_module().
[[nodiscard]] Dump dump(Target target, const std::filesystem::path& cache);

/// Circles in "the holder of what the thread waits for", each once, as indexes. O(threads).
[[nodiscard]] std::vector<std::vector<std::size_t>> cycles_of(
    const std::vector<DumpedThread>& threads);

}  // namespace rangescope::sample::cpu
