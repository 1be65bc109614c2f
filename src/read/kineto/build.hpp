// From events of a trace to a session.
//
// Operators (cpu_op) and annotations (user_annotation, ProfilerStep#) become push/pop ranges of the
// default domain, as they nest on their thread; modules (with_modules, with_stack) and Python
// functions those of the domains "nn.Module" and "python"; annotations on GPU streams those of the
// domain "gpu_annotation", on a thread for each stream; what the profiler itself did those of the
// domain "overhead", on one thread, since traces do not name the thread. GPU work belongs to the
// CUDA call of its correlation id, and where no call was recorded to the operator of its external
// id.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "model/session.hpp"
#include "read/kineto/event.hpp"
#include "read/kineto/splitter.hpp"

namespace rangescope::read::kineto {

/// All that `splitter` gives; `name` is what errors call it. kBadData where it is no trace of
/// PyTorch.
[[nodiscard]] base::Result<model::Session> build(Splitter splitter, const std::string& name);

/// The same of events in other files: AMD's and XLA's. Their ranges are no operators.
class Events {
 public:
  Events();
  ~Events();
  void add(const Event& event);
  /// An event that could not be read.
  void bad();
  /// One whose duration is missing, negative or no number.
  void bad_length();
  /// Events that describe a program.
  [[nodiscard]] std::uint64_t known() const;
  /// Links and sorts. Call it once.
  [[nodiscard]] model::Session finish();

 private:
  struct Held;
  std::unique_ptr<Held> held_;
};

}  // namespace rangescope::read::kineto
