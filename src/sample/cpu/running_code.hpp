// Which Python code a thread ran at a sample, by the registers and the stack of the sample itself.
//
// The interpreter's loop keeps the place of its next instruction in a register, or in its frame on
// the stack where it has called a function that needs the register (gcc's builds of CPython 3.11 to
// 3.15; before 3.11 instructions are no part of the code). Unlike the frames, which are read in the
// program's memory some ten to some hundred microseconds later, that is of the sample's moment.
#pragma once

#include <cstddef>

#include "sample/cpu/perf.hpp"
#include "sample/cpu/python.hpp"
#include "sample/cpu/unwind.hpp"

namespace rangescope::sample::cpu {

struct RunningCode {
  const PythonCode* code = nullptr;  ///< null: not known
  std::size_t calls = 0;             ///< of the interpreter's loop that the thread was in
};

[[nodiscard]] RunningCode running_code(const Python& python,
                                       const Unwound& unwound,
                                       const Sample& sample);

}  // namespace rangescope::sample::cpu
