// perf_event_open: samples of a program that is about to be started, its children and threads too,
// without root.
//
// One event for every CPU is opened on the calling thread, disabled, inherited and enabled on exec:
// the next program that this thread spawns has them from its first instruction, and this thread
// never does. (An inherited event needs a buffer for each CPU: the kernel refuses one that follows
// a thread over CPUs.) The event is the software clock of the CPU, in user mode only where
// /proc/sys/kernel/perf_event_paranoid is 2 (its default); with it come the records of mappings,
// names, forks and ends. Time is CLOCK_MONOTONIC.
//
// A program that runs already has events of its own on each of its threads instead (follow()),
// which its new threads and children inherit, and which write into the buffers of those of the
// calling thread: these never end, as a thread may.
//
// Context switches are records of a second event, so that they can be left out for a while where
// they come too fast. Where the kernel may be sampled, that event also gives the registers of each
// thread that goes to sleep, with its address behind a system call; at perf_event_paranoid 2 an
// ordinary user has the times of the switches alone.
//
// Counters are further events of the same kind, which write into the buffer of the first: a record
// after each `period` of them, without a chain and without waking anybody
// (docs/design/cpu-counters.md).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "sample/cpu/counters.hpp"

struct perf_event_attr;
struct perf_event_header;

namespace rangescope::sample::cpu {

/// Registers of user mode that unwinding needs, by their number in DWARF.
inline constexpr std::size_t kRegisters = 17;  ///< rax rdx rcx rbx rsi rdi rbp rsp r8 ... r15 rip
inline constexpr std::size_t kRsi = 4, kRdi = 5, kRbp = 6, kRsp = 7, kRip = 16;
/// No memory is there.
inline constexpr std::uint64_t kUnknownRegister = ~std::uint64_t{0};

struct Sample {
  std::uint32_t pid = 0, tid = 0;
  std::int64_t at_ns = 0;
  std::span<const std::uint64_t>
      chain;            ///< by frame pointers, the innermost first; context markers left out
  bool kernel = false;  ///< the thread was in the kernel, called from the chain
  std::span<const std::uint64_t> in_kernel;  ///< likewise of the kernel, where that was wanted
  bool registers = false;
  std::uint64_t values[kRegisters] = {};
  std::span<const std::byte> stack;  ///< from the stack pointer upwards
  /// By the records of context switches the thread has run on its core since, or was preempted then
  /// and has not run.
  bool stayed = false;
  std::int64_t preempted_ns = -1;
};
/// An address of a chain, the innermost first: of a caller the byte before its return address.
[[nodiscard]] inline std::uint64_t address_in(std::span<const std::uint64_t> chain,
                                              std::size_t index) {
  return index == 0 ? chain[0] : chain[index] - 1;
}
struct Mapped {
  std::uint32_t pid = 0;
  std::uint64_t start = 0, length = 0, offset = 0;
  std::string_view path;
  bool executable = false;
};
struct Task {
  std::uint32_t pid = 0, tid = 0, parent_pid = 0, parent_tid = 0;
};

/// What happened, in order of time as far as one drain() sees it. Spans live until the call
/// returns.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void sample(const Sample& sample) = 0;
  /// Another period of a counter, by its index.
  virtual void counted(const Task& task, std::int64_t at_ns, std::uint32_t counter) = 0;
  virtual void mapped(const Mapped& mapped) = 0;
  virtual void named(const Task& task, std::string_view name, bool exec) = 0;
  virtual void forked(const Task& task, std::int64_t at_ns) = 0;
  virtual void ended(const Task& task, std::int64_t at_ns) = 0;
  /// Registers of a thread that leaves its core, right before switched() of the same; no chain, the
  /// stack's top.
  virtual void leaves(const Sample& sample) = 0;
  virtual void switched(const Task& task, std::int64_t at_ns, bool out, bool preempted) = 0;
  virtual void lost(std::uint64_t records) = 0;
  virtual void throttled() = 0;
};

struct EventOptions {
  std::int64_t interval_ns = 5'025'126;  ///< of CPU time between two samples of a thread: 199 Hz
  bool stacks = false;                   ///< copies of the stacks, with the registers, are wanted
  bool kernel_chains = false;            ///< call chains within the kernel, where it may be sampled
  std::vector<CounterEvent> counters = {};
  bool follow = false;  ///< not the next program: threads that follow() names
  bool with_children =
      false;  ///< of follow(): processes that they fork, too (before Linux 5.13 always)
};

/// How many records of a kind drain() gave.
struct Drained {
  std::uint64_t samples = 0, switches = 0;
};

/// A record in a ring, or put together from both ends of one.
struct PerfRecord {
  const perf_event_header* header;
  std::int64_t at_ns;
  std::uint32_t ring;
  std::uint64_t behind;  ///< where the ring goes on
  bool stayed = false;   ///< as of a Sample
  std::int64_t preempted_ns = -1;
};

class Events {
 public:
  /// kPermission where the kernel or a seccomp filter forbids it, kToolMissing where it is not
  /// built in; the hint says what to change.
  [[nodiscard]] static base::Result<Events> open(const EventOptions& options);
  Events(Events&&) noexcept = default;
  Events& operator=(Events&&) = delete;
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  ~Events() { close(); }

  /// Samples a thread that runs, and what it starts from now on; without counters. One that has
  /// ended is none. kPermission where it is another's, or no descriptors are left: two of them a
  /// thread and core.
  [[nodiscard]] base::Result<void> follow(std::uint32_t tid);
  /// Waits until a sample is there, or the timeout is over. False where none came.
  bool wait(std::int64_t timeout_ns) const;
  /// Gives everything that has come.
  Drained drain(Sink& sink);
  /// Begins or stops recording context switches, of all threads.
  void watch_switches(bool on);
  /// Quiet: samples do not end wait(). Waking us costs the program more than the sample itself. A
  /// program that is started meanwhile wakes us. Never quiet where follow() is used.
  void be_quiet(bool quiet);
  [[nodiscard]] bool quiet() const { return quiet_; }
  void close();
  [[nodiscard]] bool switches() const { return !switch_fds_.empty(); }
  /// Samples are taken while a thread is in the kernel too; else only in user mode.
  [[nodiscard]] bool kernel() const { return kernel_; }
  /// Copied of each stack; 0: registers and stacks are not available, or were not wanted.
  [[nodiscard]] std::uint32_t stack_bytes() const { return stack_bytes_; }
  /// errno of each counter that was asked for: why the system does not count it; 0: it does.
  [[nodiscard]] const std::vector<int>& refused() const { return refused_; }
  /// What each counter came to; before close().
  [[nodiscard]] std::vector<CounterTotal> totals() const;

 private:
  Events() = default;
  [[nodiscard]] perf_event_attr clock_event() const;
  [[nodiscard]] perf_event_attr switch_event() const;
  int open_rings(perf_event_attr& attributes, int cpus, std::size_t page, std::size_t data);
  /// Of one event in addition to the clock: a descriptor for each ring. 0, or errno.
  int open_further(perf_event_attr& attributes, std::uint32_t number, std::vector<int>& fds);
  void open_switches();
  void open_quiet(perf_event_attr attributes, std::size_t ring_bytes);
  /// False for records of the clock that is not used then, and for those of our own threads.
  [[nodiscard]] bool is_wanted(const perf_event_header& header, std::int64_t at_ns) const;
  void open_counters(const std::vector<CounterEvent>& counters);
  void read_sample(const perf_event_header& header,
                   bool stayed,
                   std::int64_t preempted_ns,
                   Sink& sink);
  /// Appends the records of a ring up to that time.
  void collect(std::uint32_t ring_index, std::int64_t until_ns, std::vector<PerfRecord>& records);
  void give(const PerfRecord& record, Sink& sink, Drained& drained);
  struct Ring {
    int fd = -1, cpu = 0;
    void* pages = nullptr;
    std::size_t bytes = 0;            ///< of the data
    std::uint64_t read_position = 0;  ///< of the first record that was not given yet
  };
  EventOptions options_;
  std::vector<Ring> rings_;
  std::vector<int> switch_fds_, followed_, quiet_fds_, time_fds_;
  std::vector<std::vector<int>> counters_;  ///< descriptors, a ring each
  std::vector<int> refused_;
  std::unordered_map<std::uint64_t, std::uint32_t>
      counter_of_;  ///< by the kernel's number of the event
  std::uint32_t stack_bytes_ = 0, own_pid_ = 0;
  bool kernel_ = true, quiet_ = false;
  std::int64_t watched_since_ns_ = 0;  ///< context switches; INT64_MAX: they are not
  std::int64_t turned_ns_ = 0;         ///< since then it is as `quiet_` says
  std::vector<std::byte> joined_;      ///< records that went round the end of a ring
  std::vector<std::uint64_t> chain_, kernel_chain_;
};

/// What the answer of the kernel means, and what to change; for tests apart from the system call.
[[nodiscard]] base::Error refusal(int error, int paranoid, bool seccomp);

}  // namespace rangescope::sample::cpu
