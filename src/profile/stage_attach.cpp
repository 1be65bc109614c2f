// The native stage of a process that runs already (`attach`): its threads are sampled for a window, and nothing of it
// is changed. It goes on, whatever becomes of us: the kernel ends the sampling with the last descriptor.
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/fs.hpp"
#include "base/held_folder.hpp"
#include "base/log.hpp"
#include "base/signals.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "profile/engine.hpp"
#include "profile/sampling.hpp"
#include "sample/blocks.hpp"
#include "wire/launched.hpp"

namespace rangescope::profile {
namespace {

using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

/// Until the window is over, the process has ended, or a signal comes that would end us: what ended it, for a note.
std::string wait_for_end(const Attach& to) {
  constexpr nanoseconds kLook = std::chrono::milliseconds(200);  // where no descriptor tells of its end
  const auto begun = Clock::now();
  const base::Signals signals(true);
#if defined(SYS_pidfd_open)
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, to.target.pid, 0u));
#else
  const int process = -1;
#endif
  std::string ended_by;
  while (ended_by.empty()) {
    nanoseconds wait = kLook;
    if (to.length) wait = std::min(wait, *to.length - (Clock::now() - begun));
    if (wait.count() <= 0) break;
    pollfd polled{process, POLLIN, 0};
    const timespec most{wait.count() / 1'000'000'000, wait.count() % 1'000'000'000};
    ::ppoll(&polled, 1, &most, &signals.before());
    signals.drain(
        [&](const base::Arrived& arrived) { ended_by = base::signal_name(arrived.signal) + " ended the window"; });
    if (ended_by.empty() && !sample::cpu::still_runs(to.target))
      ended_by = "process " + std::to_string(to.target.pid) + " ended before the window did";
  }
  if (process >= 0) ::close(process);
  return ended_by;
}

}  // namespace

base::Result<void> Engine::attach_stage() {
  const Attach& to = *args_.attach;
  const std::filesystem::path captures = run_ / "native";
  TRY(record_->about_to_run({.collector = "native", .argv = to.target.argv, .cwd = to.target.cwd},
                            &to.target.environment));
  const sample::cpu::Running which{to.target.pid, to.tree};
  auto cpu = TRY(begin_cpu(args_.sampling, captures, &which));
  sample::cpu::Recorder& recorder = *cpu;

  base::info("attached to process " + std::to_string(to.target.pid) + " (" +
             base::printable(base::shell_quote(config_.list("workload.command"))) + ")" +
             (to.length ? " for " + base::format_ns(static_cast<double>(to.length->count())) : "") +
             "; Ctrl-C ends the window");
  wire::launched::Launched window;
  window.start_ns = recorder.from_ns();
  window.start_unix_ns = runs::unix_now_ns() - (sample::now_ns() - window.start_ns);
  window.attached_pid = to.target.pid;
  window.ran_ns = to.target.age_ns;
  const auto note_window = [&] {
    return base::write_file(captures / wire::launched::kFile, wire::launched::text_of(window));
  };
  TRY(note_window());
  if (const std::string early = wait_for_end(to); !early.empty()) note(early);
  recorder.stop();
  window.end_ns = recorder.until_ns();
  TRY(note_window());
  ToolRun ran;
  ran.ended.left = true;
  ran.ended.start_unix_ns = window.start_unix_ns;
  ran.ended.wall_ns = window.end_ns - window.start_ns;
  return read_native("native", captures, cpu, ran);
}

}  // namespace rangescope::profile
