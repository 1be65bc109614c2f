// Which torch.nn.Module a thread is in, by its own interpreter frames, which are read, without
// hooks. Call it on the thread itself, from a call that Python (or C++ below it) makes: its frames
// cannot change during the call, with or without the GIL.
//
// A frame of Module._call_impl or _wrapped_call_impl (by name and file of its code) has the module
// as its first local. The chain of modules, outermost first, is looked up in a table: (chain
// around, object, type) has a number. A new module is named by the `_modules` of the module around
// it and of those below, breadth first. Names are compared with these dictionaries and types again
// once a second, because memory of dead objects is reused, and after a launch that the thread made
// without a thread state, because Python may have ended since. No Python code runs, no reference is
// taken, nothing is written.
//
// Calls of chosen functions (wire/functions.hpp) are in the chain too, by their code.
//
// Frames do not tell whether a module's call is the same as at the last launch. It is a new call if
// the thread was not in the module in between, if its arguments have another address, or if it
// begins again: the place of its first launch (the instruction, and the module that was called
// there) is seen again after another place.
//
// Cost: 2 ns a frame and 10 ns a module with warm caches; a new chain some 20 us. Memory: 30 KiB
// for a thread that launches from Python, 64 bytes for a module of its chains. Bounds: kMostFrames,
// kMostLevels, kMostModules, and kMostReads for a name; launches beyond them are counted as
// untold().
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
  /// The number of its outermost modules that are still in the same call as at the last launch.
  std::uint32_t same = 0;
  bool called = false;  ///< a module is in the chain, not only functions
};

struct Level;

class Modules {
 public:
  static constexpr std::size_t kMostFrames = 1024, kMostLevels = 64;
  /// Gives a module of a chain its number: `name` below the one around it ("layers.3"), "" for the
  /// outermost. A function has no `name`, but its own as `type`.
  using Define = std::uint32_t (*)(
      void* user, std::uint32_t around, const char* name, const char* type, bool function);

  Modules(Define define, void* user) : define_(define), user_(user) {}
  /// False, with the reason in `why`, if there is no Python that can be read. `levels`: of a chain,
  /// 0: all. If it is called again, every chain is defined again.
  [[nodiscard]] bool start(std::size_t levels, const char*& why);
  /// Where the calling thread launches now.
  [[nodiscard]] Here here(std::int64_t now_ns);
  /// Launches whose frames could not all be read.
  [[nodiscard]] std::uint64_t untold() const { return untold_.load(std::memory_order_relaxed); }

  /// The same for any thread state: for tests. 0: the thread has none.
  struct Thread;
  [[nodiscard]] static Thread* new_thread();
  static void end_thread(Thread* thread);
  [[nodiscard]] Here here(Thread& thread, std::uint64_t state, std::int64_t now_ns);
  Interpreter& interpreter() { return python_; }
  wire::Functions& functions() { return functions_; }

 private:
  /// The number of level `index` in the chain `around`, defined if it is new; 0 if that fails.
  std::uint32_t number_of(Thread& thread,
                          std::size_t index,
                          std::uint32_t around,
                          std::int64_t now_ns);
  /// Of compiled code the file, else the name.
  bool read_name(Thread& thread,
                 const Level& level,
                 char* file,
                 std::size_t file_size,
                 char* name,
                 std::size_t name_size) const;
  void name_compiled(Thread& thread,
                     const Level& level,
                     const char* file,
                     char* name,
                     std::size_t name_size) const;
  /// The nearest module around level `index`; 0 if there is none.
  [[nodiscard]] static std::uint64_t module_above(const Thread& thread, std::size_t index);

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
