// Makes of the kernel's records of a program a stream of numbered threads, modules, frames, stacks,
// samples and waits.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/redact.hpp"
#include "sample/blocks.hpp"
#include "sample/cpu/perf.hpp"
#include "sample/cpu/python.hpp"
#include "sample/cpu/space.hpp"
#include "sample/cpu/system_calls.hpp"
#include "wire/cpu.hpp"

namespace rangescope::sample::cpu {

/// What the thread's memory holds is as typical of it as what it held at the sample.
[[nodiscard]] bool is_in_time(const Sample& sample, std::int64_t now_ns);

class Sampler final : public Sink {
 public:
  static constexpr std::size_t kMostStacks =
      2'000'000;                                      ///< and frames: they are kept until the end
  static constexpr std::size_t kMostText = 32 << 20;  ///< of Python's functions
  Sampler(BlockFile file,
          std::string description,
          std::uint64_t most_bytes,
          std::size_t most_stacks = kMostStacks);
  ~Sampler() override;

  void sample(const Sample& sample) override;
  void counted(const Task& task, std::int64_t at_ns, std::uint32_t counter) override;
  void mapped(const Mapped& mapped) override;
  void named(const Task& task, std::string_view name, bool exec) override;
  void forked(const Task& task, std::int64_t at_ns) override;
  void ended(const Task& task, std::int64_t at_ns) override;
  void leaves(const Sample& sample) override;
  void switched(const Task& task, std::int64_t at_ns, bool out, bool preempted) override;
  void lost(std::uint64_t records) override { lost_ += records; }
  void throttled() override { ++throttled_; }

  /// Which counters there are, before anything else; those with an errno are not counted, and why.
  void describe(std::span<const CounterEvent> counters, std::span<const int> refused);
  // A program that runs already: nothing counts until its window begins. What was there before
  // comes by these functions.
  void waits_for_window() { from_ns_ = INT64_MAX; }
  /// Threads that came and went meanwhile.
  [[nodiscard]] std::uint64_t short_lives() const { return short_lives_; }
  [[nodiscard]] bool knows(std::uint32_t tid) const { return threads_.contains(tid); }
  void found(std::uint32_t pid, std::uint32_t parent_pid, std::string_view name);
  void found_thread(const Task& task, std::string_view name) {
    thread(task.pid, task.tid).name = name;
  }
  /// From then on; `asleep` asks which threads wait: their switches will show when they go on.
  void window_begins(std::int64_t at_ns, const std::function<bool(const Task&)>& asleep);
  /// Samples may be handled some milliseconds late: no Python runs, whose frames would be others by
  /// then, no stack is larger than its copy, and no program was started just now.
  [[nodiscard]] bool patient(std::int64_t now_ns) const {
    return !prompt_ && now_ns - exec_ns_ > kSettled_ns;
  }
  /// Asks for the system call of waits where it is not known, while they last.
  void ask_for_calls();
  /// Looks at threads that wait for a while: in which system call, called by whom. True where one
  /// runs, or was not looked at: another wait may begin, or end, at any time.
  bool look_at_waits(std::int64_t now_ns);
  /// Switches are not recorded from then on, and again.
  void watching_ends(std::int64_t at_ns);
  void watching_begins(std::int64_t at_ns);
  /// Writes what is buffered.
  void flush();
  /// The program has ended: open waits end too, then names, then the end.
  void finish(std::int64_t now_ns,
              const std::filesystem::path& cache,
              std::int64_t own_cpu_ns,
              std::span<const CounterTotal> totals);
  /// Called when a process executes another program.
  void on_exec(std::function<void(std::uint32_t pid)> call) { on_exec_ = std::move(call); }
  /// A program that should have been, as wire::cpu::kNotRecorded has it.
  void not_recorded(std::string_view text) { file_.event(wire::cpu::kNotRecorded, text, 1); }
  /// The recording ended before the program did.
  void cut(std::string_view why) { file_.event(wire::cpu::kBounded, why, 1); }

 private:
  static constexpr std::int64_t kSettled_ns = 300'000'000;
  static constexpr std::size_t kMostAsked = 16;  ///< each costs some microseconds
  static constexpr std::uint32_t kNone = 0;  ///< numbers below are one more than those in the file
  struct Process {
    Space space;
    std::string name;
    std::uint32_t own_pid = 0;  ///< in its own namespace
    std::unique_ptr<Python> python;
    Python::Unread unread_python;    ///< until it is seen to run, and noted
    std::int64_t look_again_ns = 0;  ///< for a Python
    bool main_ended = false;
    std::uint32_t parent_pid = 0;
    std::int64_t start_ns = -1;  ///< of its fork
    bool written = false;        ///< as one that runs
  };
  struct Thread {
    std::uint32_t number = kNone, pid = 0;
    std::uint32_t creator = 0;  ///< the thread of its process that started it; 0: none did
    std::uint32_t own_tid = 0;  ///< in its own namespace
    std::string name;
    std::int64_t out_since_ns = -1;
    std::int64_t switched_ns = -1;              ///< its last record
    std::int64_t on_since_ns = -1, ran_ns = 0;  ///< of its time on a core, until its first sample
    bool born = false, sampled = false;         ///< its start was seen
    bool preempted = false, looked = false;
    bool left_out = false;             ///< it had left its core when the watching ended
    bool left_with_registers = false;  ///< those of its next wait are known
    bool by_registers = false;         ///< those of this wait
    std::uint64_t registers[kRegisters] = {};
    std::optional<SystemCall> call;  ///< that it left in
    std::uint64_t path = 0;          ///< SystemCalls::learn()
    std::uint32_t holder = kNone;    ///< number of the thread that has what it waits for
    wire::cpu::WaitKind kind = wire::cpu::WaitKind::kOther;
    std::uint32_t stack = kNone;  ///< of the wait
  };
  struct FrameKey {
    std::uint64_t module = 0, address = 0;
    bool operator==(const FrameKey&) const = default;
  };
  struct Hash {
    std::size_t operator()(const FrameKey& key) const {
      return (key.module * 0x9e3779b97f4a7c15u) ^ (key.address * 0xc2b2ae3d27d4eb4fu);
    }
  };

  Process& process(std::uint32_t pid);
  Thread& thread(std::uint32_t pid, std::uint32_t tid);
  std::uint32_t number_of(Thread& thread, std::uint32_t tid);
  std::uint32_t native_frame(const Place& place);
  std::uint32_t below(std::uint32_t parent, std::uint32_t frame);
  std::uint32_t python_frame(const PythonCode& code, std::uint32_t line);
  /// Notes a Python that cannot be read, where the chain of a sample is in its interpreter.
  void note_unread_python(Process& process, const Sample& sample);
  /// Looks whether the process is a Python, now and then.
  void find_python(Process& process, std::uint32_t pid, std::int64_t now_ns);
  /// Reads the Python frames of a thread into `python_`, where there are any.
  void read_python(
      Process& process, std::uint32_t pid, Thread& thread, std::uint32_t tid, std::int64_t now_ns);
  /// Makes of `python_`, read after the sample, the frames of the sample. `in_time`: they may stay
  /// as they are where the sample does not tell what it ran.
  void go_back_to_sample(const Sample& sample, Python& python, bool in_time);
  /// The stack's number, of the chains in `unwound_` and `python_`.
  void read_stack(std::uint32_t tid, std::uint64_t from, std::size_t max_bytes);
  void unwind_further(const Space& space, const Sample& sample);
  std::uint32_t stack_of(const Process& process);
  /// The stack with the kernel's part of a chain, its innermost first, on top.
  std::uint32_t below_kernel(std::uint32_t stack, std::span<const std::uint64_t> chain);
  void put_process(std::uint32_t pid, const Process& process, std::int64_t at_ns);
  static wire::cpu::WaitKind kind_of(const Process& process, const std::optional<SystemCall>& call);
  bool ask(Thread& waiting, std::uint32_t tid);
  void chain_of_wait(Thread& waiting, std::uint32_t tid, std::int64_t now_ns);
  void find_holder(Thread& waiting);
  std::uint32_t known_stack_of_wait(const Thread& waiting);
  static std::uint64_t place_of_wait(const Thread& waiting);
  void read_chain_of_short_wait();
  void wait_ended(Thread& thread, std::uint32_t tid, std::int64_t at_ns);
  void put(wire::samples::Type type, wire::cpu::Packer& packer);
  void name_frames(const std::filesystem::path& cache);

  BlockFile file_;
  base::Redactor redactor_;  ///< of paths: a folder may have a secret's name
  std::function<void(std::uint32_t pid)> on_exec_;
  [[nodiscard]] bool crowded() const {
    return std::size_t{stack_count_} + frame_count_ >= most_stacks_ || python_text_ >= kMostText;
  }
  std::uint64_t most_bytes_;
  std::size_t most_stacks_;
  std::size_t python_text_ = 0;
  bool full_ = false, forgot_code_ = false, prompt_ = false;
  Modules modules_;
  std::unordered_map<std::uint32_t, Process> processes_;
  std::unordered_map<std::uint32_t, Thread> threads_;
  std::unordered_map<FrameKey, std::uint32_t, Hash> frames_;
  std::unordered_map<std::string, std::uint32_t>
      python_frames_;  ///< by text and line; one Python or many
  std::unordered_map<std::uint64_t, std::uint32_t> stacks_;
  std::int64_t exec_ns_ = now_ns();
  std::int64_t begun_ns_ = now_ns(),
               from_ns_ = INT64_MIN;  ///< what was before `from` does not count
  std::uint32_t thread_count_ = 0, frame_count_ = 0, stack_count_ = 0, modules_written_ = 0;
  std::uint64_t lost_ = 0, throttled_ = 0, samples_ = 0;
  std::uint64_t short_threads_ = 0;    ///< that ended before their first sample,
  std::int64_t short_threads_ns_ = 0;  ///< and what they used of the CPU
  std::uint64_t short_lives_ = 0;
  std::uint64_t python_due_ = 0,
                python_lost_ = 0;  ///< samples of Python code; without its functions
  wire::cpu::Packer threads_out_, frames_out_, stacks_out_, samples_out_, waits_out_, counts_out_,
      blind_out_, creators_out_, holders_out_, processes_out_, lines_out_;
  bool thinned_ = false;              ///< switches are or were left out for a while
  std::int64_t window_ns_ = 0;        ///< since then they are watched
  std::int64_t blind_since_ns_ = -1;  ///< since then they are not; -1: they are
  SystemCalls calls_;
  static constexpr std::size_t kMostShortChains = 4096;
  std::unordered_map<std::uint64_t, std::uint32_t> stacks_of_waits_;  ///< by place_of_wait()
  std::size_t short_chains_read_ = 0;
  std::vector<std::uint32_t>
      ask_;  ///< threads whose system call is not known, or that wait for a lock
  Unwound unwound_, longer_;
  std::vector<PythonFrame> python_;
  bool unread_ = false;  ///< the thread may run Python code whose frames are not in `python_`
  const PythonCode not_read_{wire::cpu::kNotRead, "", 0};
  std::vector<std::string> python_unread_, python_versions_;
  std::vector<std::byte> stack_;  ///< read in the program's memory
};

}  // namespace rangescope::sample::cpu
