// Calls of Python's functions and of torch.nn.Modules as ranges, from CPU samples alone: for a
// program that launches nothing on a GPU, as those of modules.hpp are for one that does.
//
// A call is a sequence of samples and waits of a thread in the same chain of functions and modules.
// It lasts from half an interval before the first to half an interval after the last, and never
// across the start or end of a range of the program. Two calls without a sample between them are
// one. A module has no path here, because call chains name functions, not objects: it has the name
// of the class whose `forward` it runs, which CPython 3.11 and later report.
//
// Linear in stacks and samples, and 0.2 us a pattern and function of Python.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "model/session.hpp"

namespace rangescope::read::native {

/// Which become ranges, by the lines of the stream's description (wire/cpu.hpp); none where it
/// names none.
struct PythonRegions {
  bool wanted = false;
  std::size_t levels = 64;
  std::string functions, phases;

  void take(std::string_view key, std::string_view value);
};

/// Behind the threads' links. Threads that the session lacks are added. Nothing where the session
/// has launches.
void add_sampled_calls(PythonRegions wanted, model::Session& session);

}  // namespace rangescope::read::native
