// Samples the CPU of a program that is started next by this thread, or of one that runs already,
// until stop(): call chains by thread, waits between context switches, and after the end the names
// of all functions. Writes
// `<folder>/program.cpu` (format: wire/cpu.hpp).
//
// The program is not changed: no signal, no ptrace, nothing loaded into it. A thread of rangescope
// takes the kernel's records as they come, follows each chain at once and keeps addresses only: no
// byte of the program's stack reaches a disk. Memory is bounded by Sampler::kMostStacks, the file
// by Options::most_bytes; what did not fit is counted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "base/result.hpp"
#include "sample/cpu/counters.hpp"

namespace rangescope::sample::cpu {

struct Options {
  std::filesystem::path folder;          ///< exists
  std::int64_t interval_ns = 5'025'126;  ///< of CPU time of a thread: 199 Hz
  /// Of attach(): this one where threads come and go faster; 0: never.
  std::int64_t short_interval_ns = 0;
  std::uint64_t most_bytes = 512ull << 20;
  std::filesystem::path cache;  ///< of names by build id; "" for none
  std::vector<CounterEvent> counters = {};
  bool may_poll = false;  ///< where the kernel refuses: read /proc (polls.hpp), and say why
  std::string regions =
      {};  ///< lines of the stream's description, which Python becomes regions (wire/cpu.hpp)
  /// Of start(): programs that use NVTX are to load this; those that do not are named.
  std::filesystem::path library = {};
};

/// A process that runs already, and with `tree` its descendants of now and later.
struct Running {
  std::uint32_t pid = 0;
  bool tree = false;
  bool of_ours = false;  ///< we run it, and record more of it than its CPU
};

/// What the system gives of CPU samples.
struct Allowed {
  bool kernel = true;    ///< samples of the kernel too
  bool switches = true;  ///< waits
};
/// Opens what start() would open, and closes it. Errors as Recorder::start().
[[nodiscard]] base::Result<Allowed> allowed();

/// Leaves a file of CPU samples that only says why there are none.
[[nodiscard]] base::Result<void> leave_refusal(const std::filesystem::path& folder,
                                               const base::Error& why);

class Recorder {
 public:
  /// Must be called by the thread that starts the program, last before it; nothing else may be
  /// started until stop(). kPermission, kToolMissing as Events::open(); kIo.
  [[nodiscard]] static base::Result<Recorder> start(const Options& options);
  /// Of what runs, without counters. The window begins when this returns; its begin is from_ns().
  /// kPermission, kToolMissing, kIo as start(); kNoInput where the process has ended meanwhile.
  [[nodiscard]] static base::Result<Recorder> attach(const Options& options, const Running& to);
  [[nodiscard]] std::int64_t from_ns() const;
  [[nodiscard]] std::int64_t until_ns() const;  ///< behind stop()
  Recorder(Recorder&&) noexcept;
  Recorder& operator=(Recorder&&) = delete;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder();
  /// After the program has ended: nothing is recorded any more, and no thread of ours is left.
  void stop();
  /// Behind stop(), in this process or in a child of it: what is left, then names. Seconds for
  /// programs with large libraries. Without it the file is that of a recording that was cut.
  void finish();

 private:
  struct State;
  static base::Result<std::unique_ptr<State>> make(const Options& options, const Running* to);
  [[nodiscard]] base::Result<void> begin();
  explicit Recorder(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rangescope::sample::cpu
