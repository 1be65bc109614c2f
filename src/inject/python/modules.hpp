// Which torch.nn.Module a thread is in, by its own interpreter frames: read, never hooked. To be
// asked on the thread itself, from a call that Python (or C++ below it) makes: its frames cannot
// change meanwhile, GIL or not.
//
// A frame of Module._call_impl or _wrapped_call_impl (by name and file of its code) has the module
// as its first local. The chain of them, outermost first, is looked up in a table: (chain around,
// object, type) has a number. What is new there is named by the `_modules` of the module around it
// and of those below, breadth first; names are held against these dictionaries and types again once
// a second, as memory of dead objects is used again, and after a launch that the thread made
// without a thread state, as Python may have ended since. No Python code runs, no reference is
// taken, nothing is written.
//
// Calls of chosen functions (wire/functions.hpp) stand in the chain too, by their code.
//
// Calls: frames do not say whether a module's call is the one of the last launch. It is another
// where the thread was not in the module between, where its arguments lie elsewhere, or where it
// begins again: the first place in it that launched (the instruction, and which module was called
// there) comes back after another one did.
//
// Cost: 2 ns a frame and 10 ns a module where caches are warm; a new chain some 20 us. Memory: 30
// KiB a thread that launches from Python, 64 bytes a module of its chains. Bounds: kMostFrames,
// kMostLevels, kMostModules, and kMostReads for a name; what lies beyond is counted as untold().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "inject/python/interpreter.hpp"
#include "inject/python/per_thread.hpp"
#include "wire/functions.hpp"

namespace rangescope::inject::python {

/// Where a launch was made.
struct Here {
  std::uint32_t module = 0;  ///< number of the chain; 0: in none
  std::uint32_t same =
      0;  ///< so many of its outermost modules are in the call that the last launch was in
  bool called = false;  ///< a module is in the chain, not functions alone
};

class Modules {
 public:
  static constexpr std::size_t kMostFrames = 1024, kMostLevels = 64;
  /// Gives a module of a chain its number: `name` below the one around it ("layers.3"), "" for the
  /// outermost. A function has no `name`, but its own as `type`.
  using Define = std::uint32_t (*)(void* user, std::uint32_t around, const char* name,
                                   const char* type, bool function);

  Modules(Define define, void* user) : define_(define), user_(user) {}
  /// False, with why, where there is no Python that can be read. `levels`: of chains, 0: all.
  /// Called again, it gives every chain its number anew.
  [[nodiscard]] bool start(std::size_t levels, const char*& why);
  [[nodiscard]] Here here(std::int64_t now_ns);
  /// Launches whose frames could not be read to their end.
  [[nodiscard]] std::uint64_t untold() const { return untold_.load(std::memory_order_relaxed); }

  /// The same of a thread state anywhere: for tests. 0: the thread has none.
  struct Thread;
  [[nodiscard]] static Thread* new_thread();
  static void end_thread(Thread* thread);
  [[nodiscard]] Here here(Thread& thread, std::uint64_t state, std::int64_t now_ns);
  Interpreter& interpreter() { return python_; }
  wire::Functions& functions() { return functions_; }

 private:
  Define define_;
  void* user_;
  Interpreter python_;
  wire::Functions functions_;
  std::size_t levels_ = kMostLevels;
  std::atomic<std::uint32_t> starts_{0};
  struct Mine {
    Thread* thread = nullptr;
  };
  PerThread<Mine> threads_;
  std::atomic<std::uint64_t> untold_{0};
};

}  // namespace rangescope::inject::python
