// Python frames of CPython 3.9 to 3.15 from outside: the interpreter's structures are read in the
// process's memory (process_vm_readv) while it runs on, right after a sample of the thread came.
// Nothing is stopped, so that a frame may have changed under way: each is checked by the types of
// what it points to, and a chain that does not hold together ends there.
//
// A walk that ends elsewhere than the thread's last one is repeated: what lay on the stack of a C
// function may be another's. A generator's frame has a caller while it runs: one without has
// yielded under way, to who runs now or has called what runs now. The next walk holds that one, and
// is known by it: it is of code that was seen to call the generator before.
//
// Places of fields: wire/cpython.hpp. What is read for one sample is bounded in steps and in time:
// the program may have linked its structures into rings. A thread is found by its native
// number (3.11 and later), before by what glibc notes in its own descriptor of the thread.
// Function, file and line of its definition are read, nothing else.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "sample/cpu/space.hpp"
#include "wire/cpython.hpp"

namespace rangescope::sample::cpu {

struct PythonCode {
  std::string name, file;
  std::uint32_t line = 0;
  std::string lines = {};            ///< which of its bytes are of which line
  std::uint64_t begin = 0, end = 0;  ///< of its instructions; 3.11 and later
  mutable std::map<std::uint32_t, std::uint32_t> frames = {};  ///< by line, for who numbers frames
};
struct PythonFrame {
  const PythonCode* code = nullptr;  ///< lives until the next frames()
  bool entry =
      false;  ///< C code called it: the frames below are of another call of the interpreter
  std::uint32_t line = 0;  ///< that it is at; 0: unknown, or not asked for
};

class Python {
 public:
  /// A Python that cannot be read: why, and the file of its interpreter. A program may be linked to
  /// that without running Python.
  struct Unread {
    std::string why;
    const Module* module = nullptr;
  };
  /// The Python in a process; null where there is none, or not yet, or one that is `unread`.
  [[nodiscard]] static std::unique_ptr<Python> find(const Space& space,
                                                    std::uint32_t pid,
                                                    Unread& unread);

  /// Lines of all frames from now on, not of the innermost alone.
  void ask_for_all_lines() { all_lines_ = true; }
  /// For who looks once: a machine with other work may take the core for longer than a sample's
  /// reads may last. The number of reads stays bounded.
  void be_patient() { most_time_ns_ = 1'000'000'000; }

  enum class Reading : std::uint8_t { kNone, kRead, kTorn };
  /// Frames of a thread, the innermost first. `own_tid`: in the process's own namespace. kNone: it
  /// runs no Python code; kTorn: its frames changed while they were read, again and again.
  [[nodiscard]] Reading frames(std::uint32_t own_tid, std::vector<PythonFrame>& out);
  /// The code that holds an instruction, among those that were read; null for none.
  [[nodiscard]] const PythonCode* code_with(std::uint64_t instruction) const;
  /// Counts who calls whom in frames that were read, for go_back().
  void note_callers(const std::vector<PythonFrame>& frames);
  /// Makes of the frames that were read those of the sample, a moment earlier, at which the
  /// innermost of `calls` calls of the loop ran `running`. False where that cannot be known.
  [[nodiscard]] bool go_back(const PythonCode& running,
                             std::size_t calls,
                             std::vector<PythonFrame>& frames) const;
  /// Is that code the interpreter's loop?
  [[nodiscard]] bool is_loop(std::uint64_t address) const {
    return (address >= loop_ && address < loop_end_) || (address >= cold_ && address < cold_end_);
  }
  /// An address of the part of the loop that lies apart becomes the loop's begin, by which it has a
  /// name.
  [[nodiscard]] std::uint64_t named(std::uint64_t address) const {
    return address >= cold_ && address < cold_end_ ? loop_ : address;
  }
  /// Is that in the runtime's own structure? The lock that threads wait for there is the GIL
  /// (others have memory of their own).
  [[nodiscard]] bool holds(std::uint64_t address) const {
    return address - runtime_ < runtime_bytes_;
  }
  /// The thread that has the GIL, which another waits for at that place; in the process's own
  /// namespace, 0: unknown.
  [[nodiscard]] std::uint32_t gil_holder(std::uint64_t futex);
  /// Those of these locks (addresses of their semaphores) whose `with` block the frames of the last
  /// frames() are in, or wait to get into: dump/python_locks.cpp.
  using Locks = std::vector<std::uint64_t>;
  [[nodiscard]] Locks locks_in_frames(std::span<const std::uint64_t> wanted) const;
  [[nodiscard]] const Module* module() const { return module_; }
  [[nodiscard]] const std::string& version() const { return version_; }

 private:
  Python() = default;
  struct Interpreter;
  /// nullopt: the process runs no Python.
  [[nodiscard]] static std::optional<Interpreter> interpreter_of(const Space& space);
  void set_places(const Interpreter& interpreter);
  /// False where its memory cannot be read.
  bool read_version(const Interpreter& interpreter);
  void find_cold(Tables& tables, std::uint64_t bias);
  void begin();
  bool read(std::uint64_t address, void* into, std::size_t bytes);
  /// Bytes that were read, up to the first part that could not be.
  std::size_t read(std::span<const iovec> remote, void* into, std::size_t bytes);
  /// A word, by way of the page that was read last.
  bool word(std::uint64_t address, std::uint64_t& value);
  std::uint64_t thread_state(std::uint32_t own_tid);
  /// The thread's state in the list of an interpreter, 0: it is not there. Counts `left` down.
  std::uint64_t state_in(std::uint64_t interpreter, std::uint32_t own_tid, std::size_t& left);
  bool is_state_of(std::uint64_t state, std::uint32_t own_tid);
  /// 0 where it cannot be read.
  std::uint32_t tid_of(std::uint64_t state);
  Reading read_whole(std::uint32_t own_tid, std::vector<PythonFrame>& out);
  Reading walk(std::uint64_t state, std::vector<PythonFrame>& out, std::uint64_t& outermost);
  struct Step;
  /// nullopt: the frame changed meanwhile.
  std::optional<Step> read_step(std::uint64_t frame, bool with_instruction);
  /// Fills `steps_`. False where a frame changed meanwhile.
  bool read_steps(std::uint64_t state);
  /// Finds the functions of `steps_`, and leaves in it only those that have one.
  Reading name_steps(std::vector<PythonFrame>& out);
  void join_generator(std::vector<PythonFrame>& out);
  /// Reads the code objects of `steps_`, for code_at().
  void read_codes();
  const PythonCode* code_at(std::uint64_t address);
  bool text(std::uint64_t address, std::size_t max_length, std::string& out);

  std::uint32_t pid_ = 0;
  std::string version_;
  int minor_ = 0;  ///< 11 of 3.11
  wire::cpython::Fields fields_{};
  const Module* module_ = nullptr;
  std::uint64_t runtime_ = 0, runtime_bytes_ = 0, code_type_ = 0, loop_ = 0, loop_end_ = 0,
                cold_ = 0, cold_end_ = 0;
  struct Known {
    std::uint64_t state = 0;    ///< 0: it has none,
    std::int64_t until_ns = 0;  ///< as far as we know until then
  };
  std::unordered_map<std::uint32_t, Known> threads_;
  std::unordered_map<std::uint32_t, std::uint64_t> outermost_;  ///< frames that walks ended at
  struct Step {
    std::uint64_t frame = 0, code = 0;
    bool entry = false, generator = false, shim = false;
    std::uint64_t instruction = 0;  ///< that it is at; 0: was not read
    std::uint64_t caller = 0;       ///< its frame
  };
  std::vector<Step> steps_;           ///< of a walk
  std::vector<PythonFrame> yielded_;  ///< of one that ended at a generator, which had just yielded
  Step yielder_;                      ///< that generator
  std::unordered_map<std::uint64_t, std::vector<std::uint64_t>>
      callers_;  ///< of generators, by code
  std::unordered_map<std::uint64_t, std::unique_ptr<PythonCode>> codes_;
  std::map<std::uint64_t, const PythonCode*> by_instruction_;  ///< by `begin`
  struct Caller {
    const PythonCode* code = nullptr;
    bool through_c = false;  ///< C code called the loop again
    std::uint32_t count = 0;
  };
  [[nodiscard]] std::vector<Caller> callers_of(const PythonCode* code) const;
  std::unordered_map<const PythonCode*, std::vector<Caller>> noted_callers_;
  std::vector<std::unique_ptr<PythonCode>> old_codes_;  ///< of the last frames()
  std::unordered_map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> code_texts_;
  std::size_t code_bytes_ = 0;
  std::vector<std::uint64_t> addresses_;  ///< of code objects that were read, in order
  std::vector<iovec> remote_;             ///< the same, to be read
  std::vector<char> objects_;             ///< their first `object_bytes_`, of each
  std::size_t object_bytes_ = 0;
  std::size_t reads_left_ = 0;
  std::int64_t most_time_ns_ = 10'000'000;  ///< for one sample
  std::int64_t began_ns_ = 0, rests_until_ns_ = 0;
  bool gave_up_ = false, all_lines_ = false;
  std::uint64_t page_ = 1;
  char page_bytes_[4096];
};

/// The address by which code has a name; `python`: null for none.
[[nodiscard]] inline std::uint64_t named_address(const Python* python, std::uint64_t address) {
  return python == nullptr ? address : python->named(address);
}

}  // namespace rangescope::sample::cpu
