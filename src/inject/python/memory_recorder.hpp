// PyTorch's own recorder of GPU memory, turned on from outside: torch.cuda.memory's
// _record_memory_history(), and at exit _snapshot() as a file of the run (read/snapshot).
//
// This is the only code of ours that runs in the program's interpreter: functions in their own
// globals, run by Py_AddPendingCall between two instructions of the main thread, like Python's
// signal handlers. They also learn, once, which module each tensor of the model belongs to, from
// the outermost module that is being called, and, through PyTorch's observer, in which module
// memory ran out. No hook is set in a module, no name of the program is written, no thread is made.
// An error is reported as a reason; KeyboardInterrupt is passed on to the program.
//
// It begins at the first CUDA call after torch.cuda is initialized, and needs a main thread that
// runs Python. A program that records its memory itself keeps its settings; its recording is saved
// at exit as well. In a fork nothing is saved. PyTorch 2.1 or newer, CPython 3.9 or newer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rangescope::inject::python {

class MemoryRecorder {
 public:
  /// The number of latest allocations and frees kept for a device: some 150 MB of host memory.
  static constexpr int kMostEvents = 500'000;

  /// Called once, on the main thread, with the outcome (wire::gpu::kMemoryKey).
  using Tell = void (*)(void* user, const char* outcome);
  MemoryRecorder(Tell tell, void* user) : tell_(tell), user_(user) {}

  /// Prepares the recorder. The snapshot is saved next to the GPU stream `stream`, an absolute
  /// path. `stacks`: with lines of Python. Returns the state (wire::gpu::kMemoryKey): kMemoryWaits,
  /// or why Python cannot be used. Call it once.
  [[nodiscard]] const char* start(const char* stream, bool stacks);
  /// Call it on any thread, at a CUDA call. Costs the read of a word once the recorder is on.
  void saw_call() {
    if (wants_call_.load(std::memory_order_relaxed))
      ask();
  }

 private:
  /// The functions of Python's C API that are called; every release has them.
  struct Api {
    int (*is_initialized)();
    int (*add_pending)(int (*run)(void*), void* user);
    void* (*compile)(const char* code, const char* file, int start);
    void* (*evaluate)(void* code, void* globals, void* locals);
    void* (*new_dictionary)();
    int (*set_item)(void* dictionary, const char* key, void* value);
    void* (*get_item)(void* dictionary, const char* key);  ///< borrowed
    void* (*builtins)();                                   ///< borrowed
    void* (*text)(const char* utf8);
    const char* (*utf8)(void* text);
    void* (*integer)(long value);
    void (*forget)(void* object);
  };
  static constexpr int kMostTries = 40;

  [[nodiscard]] bool find_api();
  void ask();
  static int run(void* self);
  void go_on(const char* outcome);
  [[nodiscard]] bool prepare();
  [[nodiscard]] bool set(const char* key, void* value);

  Tell tell_;
  void* user_;
  Api api_{};
  char file_[4096] = {};
  bool stacks_ = false;
  void* globals_ = nullptr;  ///< of our code
  void* code_ = nullptr;
  std::atomic<bool> wants_call_{false};
  std::atomic<std::uint64_t> calls_{0}, next_try_{0};
  int tries_ = 0;  ///< used on the main thread only, like is_reported_
  bool is_reported_ = false;
};

}  // namespace rangescope::inject::python
