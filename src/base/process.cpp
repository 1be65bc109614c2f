#include "base/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ending.hpp"
#include "base/fs.hpp"
#include "base/held_folder.hpp"
#include "base/signals.hpp"
#include "base/text.hpp"

extern char** environ;

namespace rangescope::base {
namespace {

// One output stream of a child: passed on to ours, kept, written to a file, or all of these.

class ChildOutput {
 public:
  /// `target`: our own descriptor for it.
  ChildOutput(const Output& how, int target) : how_(how), target_(target) {}
  ChildOutput(const ChildOutput&) = delete;
  ChildOutput& operator=(const ChildOutput&) = delete;

  ~ChildOutput() {
    shut(read_);
    shut(write_);
    shut(file_);
  }
  /// kIo where there is no pipe or file.
  [[nodiscard]] Result<void> open() {
    if (how_.pass && !how_.keep && how_.file.empty())
      return {};
    if (!how_.file.empty()) {
      constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC;
      const int file = ::open(in_place(how_.file).c_str(), kFlags, 0666);
      if (file < 0)
        return fail(Code::kIo,
                    std::string("cannot create the file: ") + std::strerror(errno),
                    how_.file.string());
      // The child writes there itself, as long as it or its children live.
      const bool is_childs_own = !how_.pass && !how_.keep;
      (is_childs_own ? write_ : file_) = file;
      if (is_childs_own)
        return {};
    }
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      return fail(Code::kIo, std::string("cannot make a pipe: ") + std::strerror(errno));
    read_ = ends[0];
    write_ = ends[1];
    return {};
  }
  [[nodiscard]] int fd() const { return read_; }
  [[nodiscard]] int child_end() const { return write_; }
  void spawned() { shut(write_); }
  /// Whether somebody may still write what is to be shown.
  [[nodiscard]] bool shows() const { return read_ >= 0 && how_.pass; }
  /// Takes what is there. False at the end of the stream.
  bool take(std::string& kept) {
    std::array<char, kBlock> buffer;
    const ssize_t n = ::read(read_, buffer.data(), buffer.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
      return true;
    if (n <= 0) {
      shut(read_);
      return false;
    }
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(n));
    if (file_ >= 0)
      put(file_, bytes);
    if (how_.keep)
      kept += bytes;
    // The reader of our output went away: then the program's next write fails, as without us.
    if (how_.pass && !put(target_, bytes)) {
      shut(read_);
      return false;
    }
    return true;
  }
  /// The next bytes of one descriptor to another; false at the end of either.
  static bool pass_on(int from, int to) {
    std::array<char, kBlock> buffer;
    const ssize_t n = ::read(from, buffer.data(), buffer.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
      return true;
    return n > 0 && put(to, {buffer.data(), static_cast<std::size_t>(n)});
  }

 private:
  static void shut(int& fd) {
    if (fd >= 0)
      ::close(std::exchange(fd, -1));
  }
  // False where the reader is gone. A full disk must not stop the program: we go on taking its
  // bytes.
  static bool put(int fd, std::string_view bytes) { return write_all(fd, bytes) || errno != EPIPE; }

  static constexpr std::size_t kBlock = 65536;

  Output how_;
  int target_;
  int read_ = -1, write_ = -1, file_ = -1;
};

/// What children of the program that outlive it still write is shown, as without us: by a process
/// that ends with them. It holds nothing of ours but its streams (the lock of a run, for one), and
/// no signal ends it before.
void hand_over(const ChildOutput& out, const ChildOutput& err) {
  if (!out.shows() && !err.shows())
    return;
  const pid_t first = ::fork();
  if (first > 0)
    ::waitpid(first, nullptr, 0);
  if (first != 0)
    return;
  if (::fork() != 0)
    ::_exit(0);  // not our child
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
  std::array<pollfd, 2> from = {
      {{out.shows() ? out.fd() : -1, POLLIN, 0}, {err.shows() ? err.fd() : -1, POLLIN, 0}}};
  const auto [smaller, high] = std::minmax({from[0].fd, from[1].fd});
  const int low = smaller < 0 ? high : smaller;  // only one is shown
  if (low > 3)
    ::syscall(SYS_close_range, 3u, static_cast<unsigned>(low - 1), 0u);
  if (low + 1 < high)
    ::syscall(SYS_close_range, static_cast<unsigned>(low + 1), static_cast<unsigned>(high - 1), 0u);
  ::syscall(SYS_close_range, static_cast<unsigned>(high + 1), ~0u, 0u);
  while (from[0].fd >= 0 || from[1].fd >= 0) {
    if (::poll(from.data(), from.size(), -1) < 0)
      continue;
    for (int target : {STDOUT_FILENO, STDERR_FILENO}) {
      pollfd& stream = from[static_cast<std::size_t>(target - STDOUT_FILENO)];
      if (stream.fd >= 0 && stream.revents != 0 && !ChildOutput::pass_on(stream.fd, target))
        ::close(std::exchange(stream.fd, -1));
    }
  }
  ::_exit(0);
}

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

// A grandchild may keep a pipe open forever; this long without a byte after the child's end, and
// we leave it to hand_over().
constexpr nanoseconds kLinger = std::chrono::milliseconds(500);

// Nothing but having been stopped makes us so late.
constexpr nanoseconds kStill = std::chrono::seconds(2);

std::string reason(int error) {
  return std::strerror(error);
}

std::vector<std::string> environment(const Command& command) {
  std::vector<std::string> list;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string name(text.substr(0, text.find('=')));
    const bool gone = std::find(command.unset_env.begin(), command.unset_env.end(), name) !=
                      command.unset_env.end();
    if (!gone && !command.set_env.contains(name))
      list.emplace_back(text);
  }
  for (const auto& [name, value] : command.set_env) {
    std::string entry = name;
    entry += '=';
    entry += value;
    list.push_back(std::move(entry));
  }
  return list;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (std::string& text : texts)
    list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

/// Signals that are held back.
void take_what_came(const Signals& signals, std::vector<Arrived>& out) {
  const timespec at_once{};
  ::ppoll(nullptr, 0, &at_once, &signals.before());
  signals.drain([&](const Arrived& arrived) { out.push_back(arrived); });
}

/// Makes this process the program, with the signals that we came with. Returns only where that
/// fails, with errno. Async signal safe.
void become_program(const Command& command,
                    const Signals& signals,
                    const ChildOutput& out,
                    const ChildOutput& err,
                    const std::vector<char*>& argv,
                    const std::vector<char*>& env) {
  if (!command.cwd.empty() && ::chdir(command.cwd.c_str()) != 0)
    return;
  if (out.child_end() >= 0)
    ::dup2(out.child_end(), STDOUT_FILENO);
  if (err.child_end() >= 0)
    ::dup2(err.child_end(), STDERR_FILENO);
  const sigset_t handled = signals.handled();
  for (int signal = 1; signal < NSIG; ++signal)
    if (sigismember(&handled, signal) == 1)
      ::signal(signal, SIG_DFL);
  if (signals.ignored_ends_of_children())
    ::signal(SIGCHLD, SIG_IGN);
  ::pthread_sigmask(SIG_SETMASK,
                    &signals.before(),
                    nullptr);  // what was held back is the program's
  ::execvpe(argv[0], argv.data(), env.data());
}

/// No further process may be started (ulimit -u): the user's program is worth more than its
/// measurement. Comes back where it cannot be run at all.
void take_our_place(const Command& command,
                    const Signals& signals,
                    const ChildOutput& out,
                    const ChildOutput& err,
                    const std::vector<char*>& argv,
                    const std::vector<char*>& env) {
  const std::string warning =
      "rangescope: warning: no further process may be started (ulimit -u): " +
      printable(command.argv.front()) + " runs in rangescope's place, without a report\n";
  if (::write(STDERR_FILENO, warning.data(), warning.size()) < 0)
    return;
  become_program(command, signals, out, err, argv, env);
}

/// posix_spawn gives a signal that we handle its default action. A program that must ignore SIGCHLD
/// is forked instead. Returns 0, or the number of the error.
int fork_ignoring_ends_of_children(pid_t& pid,
                                   const Command& command,
                                   const Signals& signals,
                                   const ChildOutput& out,
                                   const ChildOutput& err,
                                   bool foreground,
                                   const std::vector<char*>& argv,
                                   const std::vector<char*>& env) {
  int error_pipe[2];
  if (::pipe2(error_pipe, O_CLOEXEC) != 0)
    return errno;
  sigset_t all, held;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &held);
  pid = ::fork();
  if (pid == 0) {
    if (command.own_group)
      ::setpgid(0, 0);
    if (foreground)
      ::tcsetpgrp(STDIN_FILENO, ::getpid());
    const int null = command.null_stdin ? ::open("/dev/null", O_RDONLY) : -1;
    if (null >= 0)
      ::dup2(null, STDIN_FILENO);
    become_program(command, signals, out, err, argv, env);
    const int error = errno;
    (void)!::write(error_pipe[1], &error, sizeof error);
    ::_exit(127);
  }
  int error = pid < 0 ? errno : 0;
  ::pthread_sigmask(SIG_SETMASK, &held, nullptr);
  ::close(error_pipe[1]);
  ssize_t bytes = 0;
  if (pid > 0) {
    do {
      bytes = ::read(error_pipe[0], &error, sizeof error);  // none where the program runs
    } while (bytes < 0 && errno == EINTR);
  }
  if (bytes > 0)
    ::waitpid(pid, nullptr, 0);
  ::close(error_pipe[0]);
  return error;
}

/// Why the program could not be started, by the number of the error.
Error start_error(const Command& command, int error) {
  const std::string& program = command.argv.front();
  const std::string cannot_run = "cannot run '" + program + "': ";
  std::error_code ignored;
  if (!command.cwd.empty() && !std::filesystem::is_directory(command.cwd, ignored))
    return {Code::kNoInput, "the folder to run in does not exist", command.cwd.string(), {}};
  if (error == EACCES && std::filesystem::is_directory(program, ignored))
    return {Code::kNoInput, cannot_run + "it is a folder", {}, {}};
  if (is_permission_error(error))
    return {
        Code::kPermission, cannot_run + reason(error), {}, "Make the file executable: chmod +x"};
  if (error == ENOEXEC)
    return {Code::kNoInput,
            cannot_run + "it is neither a program nor a script with a #! line",
            {},
            "Name its interpreter in front of it, or give it a #! line"};
  if (error == ENOENT && find_on_path(program))
    return {Code::kNoInput,
            cannot_run + "its interpreter (#! line or ELF loader) does not exist",
            {},
            {}};
  Code code = Code::kIo;
  if (error == ENOENT || error == ENOTDIR)
    code = Code::kNoInput;
  std::string hint;
  if (program.find(' ') != std::string::npos)
    hint = "Pass the program and each argument as separate words";
  return {code, cannot_run + reason(error), {}, std::move(hint)};
}

Result<pid_t> spawn(const Command& command,
                    const Signals& signals,
                    const ChildOutput& out,
                    const ChildOutput& err,
                    bool foreground,
                    std::vector<Arrived>& early) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // Before its first instruction: a child that reads the terminal at once would be stopped
  // otherwise.
  const bool late = foreground && posix_spawn_file_actions_addtcsetpgrp_np(
                                      &actions, STDIN_FILENO) != 0;  // glibc < 2.35
  std::error_code ignored;
  const bool elsewhere =
      !command.cwd.empty() && !std::filesystem::equivalent(command.cwd, ".", ignored);
  if (elsewhere && posix_spawn_file_actions_addchdir_np(&actions, command.cwd.c_str()) != 0) {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return fail(Code::kToolMissing,
                "cannot start a program in another folder: this C library is older than glibc 2.29",
                command.cwd.string(),
                "Change to that folder first");
  }
  if (command.null_stdin)
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (out.child_end() >= 0)
    posix_spawn_file_actions_adddup2(&actions, out.child_end(), STDOUT_FILENO);
  if (err.child_end() >= 0)
    posix_spawn_file_actions_adddup2(&actions, err.child_end(), STDERR_FILENO);
  short flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK;
  sigset_t handled = signals.handled();
  // With them the C library's own two, 32 and 33, which sigaddset refuses: left out, posix_spawn
  // makes them ignored.
  handled.__val[0] |= 3ul << 31;
  posix_spawnattr_setsigdefault(&attributes, &handled);
  posix_spawnattr_setsigmask(&attributes, &signals.before());
  if (command.own_group) {
    flags |= POSIX_SPAWN_SETPGROUP;
    posix_spawnattr_setpgroup(&attributes, 0);
  }
  posix_spawnattr_setflags(&attributes, flags);

  std::vector<std::string> argv_texts = command.argv, env_texts = environment(command);
  const std::vector<char*> argv = pointers(argv_texts), env = pointers(env_texts);
  pid_t pid = -1;
  const int error =
      signals.ignored_ends_of_children()
          ? fork_ignoring_ends_of_children(pid, command, signals, out, err, foreground, argv, env)
          : ::posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), env.data());
  // What came until now the child may not have had, although it came from the terminal to our whole
  // group: a signal of before the fork is ours alone. If the child got it too, the second one comes
  // after its end, or before its main().
  if (error == 0)
    take_what_came(signals, early);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error == 0) {
    if (late)
      ::tcsetpgrp(STDIN_FILENO, pid),
          ::kill(-pid, SIGCONT);  // it may have asked the terminal already
    return pid;
  }
  if (error == EAGAIN && command.forward_signals)
    take_our_place(command, signals, out, err, argv, env);

  return tl::make_unexpected(start_error(command, error));
}

// While the child is the foreground job of our terminal (own_group), and back to us when it is
// over.
class Foreground {
 public:
  explicit Foreground(bool wanted) {
    terminal_ = wanted && ::isatty(STDIN_FILENO) != 0;
    mine_ = terminal_ && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
  }
  [[nodiscard]] bool mine() const { return mine_; }
  /// The child that the terminal was given to, by spawn().
  void given_to(pid_t group) { group_ = group; }
  Foreground(const Foreground&) = delete;
  Foreground& operator=(const Foreground&) = delete;
  ~Foreground() {
    if (mine_)
      give(::getpgrp());
  }
  /// The child was stopped (Ctrl-Z): stop too, and on `fg` hand the terminal over again.
  void stopped() {
    if (!terminal_)
      return;  // somebody stopped it by hand, and will continue it by hand
    if (mine_)
      give(::getpgrp());
    ::kill(::getpid(), SIGSTOP);
    mine_ = ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
    if (mine_)
      give(group_);
    ::kill(-group_, SIGCONT);
  }

 private:
  // A background group that sets the foreground group gets SIGTTOU, unless it is blocked.
  static void give(pid_t group) {
    sigset_t ttou, old;
    sigemptyset(&ttou);
    sigaddset(&ttou, SIGTTOU);
    ::pthread_sigmask(SIG_BLOCK, &ttou, &old);
    ::tcsetpgrp(STDIN_FILENO, group);
    ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
  }
  bool terminal_ = false, mine_ = false;
  pid_t group_ = 0;
};

bool asks_to_end(int signal) {
  return signal == SIGTERM || signal == SIGHUP || signal == SIGINT || signal == SIGQUIT;
}

// Did the child end because it was asked to? (A program may take SIGINT as a word to itself and go
// on for hours.)
bool ended_by_request(const Ended& ended) {
  if (ended.timed_out || ended.enough)
    return true;
  if (!ended.forwarded || !asks_to_end(*ended.forwarded))
    return false;
  return *ended.forwarded == SIGTERM || *ended.forwarded == SIGHUP || ended.signal ||
         ended.exit_code == 128 + *ended.forwarded;
}

bool by_terminal(int signal) {
  return signal == SIGINT || signal == SIGQUIT || signal == SIGHUP;
}

// While a program runs in our process group, we are in one of our own: a signal to the group
// reaches the program once, as without us.
class LeftGroup {
 public:
  explicit LeftGroup(bool wanted) : group_(::getpgrp()), done_(wanted && ::setpgid(0, 0) == 0) {}
  ~LeftGroup() {
    if (done_)
      ::setpgid(0, group_);  // fails where the group has ended
  }
  LeftGroup(const LeftGroup&) = delete;
  LeftGroup& operator=(const LeftGroup&) = delete;
  [[nodiscard]] bool done() const { return done_; }

 private:
  pid_t group_;
  bool done_;
};

void fill(Ended& ended, int status) {
  if (WIFSIGNALED(status)) {
    ended.signal = WTERMSIG(status);
    ended.core_dumped = WCOREDUMP(status);
  } else {
    ended.exit_code = WEXITSTATUS(status);
  }
}

/// A child starts as a copy of us: Linux counts our memory as its peak until its own is larger.
/// Then the peak is unknown.
Ended::Usage usage_of(const rusage& child, std::int64_t own_peak_kib) {
  const auto ns = [](const timeval& time) {
    return std::int64_t{time.tv_sec} * 1'000'000'000 + std::int64_t{time.tv_usec} * 1'000;
  };
  Ended::Usage usage{ns(child.ru_utime), ns(child.ru_stime), 0};
  if (child.ru_maxrss > own_peak_kib)
    usage.peak_rss_bytes = std::int64_t{child.ru_maxrss} * 1024;
  return usage;
}

std::int64_t own_peak_rss_kib() {
  rusage own{};
  (void)::getrusage(RUSAGE_SELF, &own);
  return own.ru_maxrss;
}

/// Waits for a program that runs until it and its output have ended, and passes on to it the
/// signals that we get.
class Supervision {
 public:
  struct Parts {
    const Command& command;
    const Signals& signals;
    ChildOutput &out, &err;
    Ending& ending;
    Foreground& foreground;
    pid_t pid;
    bool shares_group;  ///< the program is in our process group
    Clock::time_point start;
    std::int64_t own_peak_kib;
  };
  Supervision(const Parts& parts, Ended& ended)
      : parts_(parts),
        command_(parts.command),
        ended_(ended),
        next_tick_(parts.start + parts.command.tick_every),
        awaited_(parts.start) {
    if (command_.timeout)
      deadline_ = parts.start + *command_.timeout;
  }
  Supervision(const Supervision&) = delete;
  Supervision& operator=(const Supervision&) = delete;

  /// Signals that came before the program could get them.
  void pass_on(const std::vector<Arrived>& early) {
    for (const Arrived& arrived : early) {
      if (is_programs_own(arrived))
        continue;
      ended_.forwarded = arrived.signal;
      parts_.ending.send(arrived.signal, false);
    }
  }

  [[nodiscard]] Result<void> run() {
    while (running_ || parts_.out.fd() >= 0 || parts_.err.fd() >= 0) {
      const auto now = command_.now();
      // Ctrl-Z stopped both of us, wherever we were: that time is not the program's own.
      if (deadline_ && !command_.own_group && now - awaited_ > kStill)
        *deadline_ += now - awaited_;
      if (!running_ && now >= *linger_until_)
        break;
      if (running_) {
        end_at_deadline(now);
        tick(now);
        const bool has_changed = TRY(look_at_child(now));
        if (has_changed)
          continue;
      }
      wait_until(next_round(now), now);
    }
    return {};
  }

  /// What came with the child's end (Ctrl-C reaches both) is still held back.
  void note_what_came() {
    std::vector<Arrived> late;
    take_what_came(parts_.signals, late);
    for (const Arrived& arrived : late)
      if (!is_programs_own(arrived))
        ended_.forwarded = arrived.signal;
  }

 private:
  /// A word among the program's own processes.
  [[nodiscard]] bool is_programs_own(const Arrived& arrived) const {
    return parts_.shares_group && parts_.ending.sent_it(arrived.sender);
  }

  void end_at_deadline(Clock::time_point now) {
    if (!deadline_ || now < *deadline_)
      return;
    if (ended_.timed_out || ended_.enough)
      parts_.ending.kill_all();
    else
      parts_.ending.send_all(SIGTERM);
    if (!ended_.enough)
      ended_.timed_out = true;
    deadline_ = now + command_.grace;
  }

  void tick(Clock::time_point now) {
    if (!has_ticks() || now < next_tick_)
      return;
    if (command_.tick)
      command_.tick(now - parts_.start);
    if (command_.enough && !ended_.timed_out && !ended_.enough && command_.enough()) {
      parts_.ending.send_all(SIGTERM);
      ended_.enough = true;
      deadline_ = now + command_.grace;
    }
    next_tick_ = now + command_.tick_every;
  }
  [[nodiscard]] bool has_ticks() const { return command_.tick || command_.enough; }

  /// True where the child was stopped, or has ended.
  [[nodiscard]] Result<bool> look_at_child(Clock::time_point now) {
    const pid_t pid = parts_.pid;
    int status = 0;
    siginfo_t dead{};
    rlimit files{};  // of one that ended and is not yet reaped
    if (::waitid(P_PID, static_cast<id_t>(pid), &dead, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        dead.si_pid == pid && ::prlimit(pid, RLIMIT_NOFILE, nullptr, &files) == 0)
      ended_.open_files = files.rlim_cur;
    rusage usage{};
    const int options = WNOHANG | (command_.own_group ? WUNTRACED : 0);
    const pid_t got = ::wait4(pid, &status, options, &usage);
    if (got == pid && WIFSTOPPED(status)) {
      parts_.foreground.stopped();
      if (deadline_)
        *deadline_ += command_.now() - now;  // time in which it was stopped is not its own
      return true;
    }
    if (got == pid) {
      ended_.wall_ns = (command_.now() - parts_.start).count();
      fill(ended_, status);
      ended_.usage = usage_of(usage, parts_.own_peak_kib);
      running_ = false;
      note_what_came();
      if (ended_by_request(ended_))
        parts_.ending.finish(command_.grace);
      linger_until_ = command_.now() + kLinger;
      return true;
    }
    if (got < 0 && errno != EINTR)
      return fail(Code::kInternal, "cannot wait for the program: " + reason(errno));
    return false;
  }

  [[nodiscard]] Clock::time_point next_round(Clock::time_point now) const {
    // SIGCHLD wakes us, and is held back but while we wait; where another run owns the handlers, a
    // short wait does.
    auto until = now + (parts_.signals.mine() ? std::chrono::seconds(60)
                                              : nanoseconds(std::chrono::milliseconds(5)));
    if (deadline_ && running_)
      until = std::min(until, *deadline_);
    if (has_ticks() && running_)
      until = std::min(until, next_tick_);
    if (deadline_ && !command_.own_group)
      until = std::min(until, now + kStill);
    if (!running_)
      until = std::min(until, *linger_until_);
    return until;
  }

  /// Takes the output and signals that come until then; returns with the first of them.
  void wait_until(Clock::time_point until, Clock::time_point now) {
    const auto wait_ns =
        std::max<std::int64_t>(std::chrono::ceil<nanoseconds>(until - now).count(), 0);
    const timespec wait{wait_ns / 1'000'000'000, wait_ns % 1'000'000'000};
    std::array<pollfd, 2> polled = {{{parts_.out.fd(), POLLIN, 0}, {parts_.err.fd(), POLLIN, 0}}};
    const int ready = ::ppoll(polled.data(), polled.size(), &wait, &parts_.signals.before());
    awaited_ = until;
    bool moved = false;
    if (ready > 0 && polled[0].revents != 0)
      moved |= parts_.out.take(ended_.out);
    if (ready > 0 && polled[1].revents != 0)
      moved |= parts_.err.take(ended_.err);
    parts_.ending.bury();
    if (moved && !running_)
      linger_until_ = command_.now() + kLinger;
    parts_.signals.drain([&](const Arrived& arrived) {
      if (is_programs_own(arrived))
        return;
      ended_.forwarded = arrived.signal;
      const bool is_from_terminal = arrived.from_kernel && by_terminal(arrived.signal);
      parts_.ending.send(arrived.signal, is_from_terminal && parts_.shares_group);
    });
  }

  Parts parts_;
  const Command& command_;
  Ended& ended_;
  Clock::time_point next_tick_;
  Clock::time_point awaited_;  ///< when this round was to come
  std::optional<Clock::time_point> deadline_, linger_until_;
  bool running_ = true;
};

}  // namespace

Result<Ended> run(const Command& command) {
  if (command.running == 0 && (command.argv.empty() || command.argv.front().empty()))
    return fail(Code::kUsage, "there is no program to run");
  ChildOutput out(command.out, STDOUT_FILENO), err(command.err, STDERR_FILENO);
  for (ChildOutput* stream : {&out, &err})
    TRY(stream->open());
  const Signals signals(command.forward_signals);
  if (command.forward_signals && !signals.mine())
    return fail(Code::kInternal, "two programs are run with signals at once");

  Ended ended;
  ended.start_unix_ns =
      std::chrono::duration_cast<nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  const auto start = command.now();
  Ending ending(command);
  Foreground foreground(command.own_group);
  std::vector<Arrived> early;
  const std::int64_t own_peak_kib = own_peak_rss_kib();
  const pid_t pid =
      TRY(command.running != 0 ? Result<pid_t>(command.running)
                               : spawn(command, signals, out, err, foreground.mine(), early));
  out.spawned();
  err.spawned();
  if (command.started)
    command.started(pid);

  const LeftGroup left(command.leave_group);
  foreground.given_to(pid);
  ending.of(pid);
  const bool shares_group = !command.own_group && !left.done();
  Supervision supervision(
      {command, signals, out, err, ending, foreground, pid, shares_group, start, own_peak_kib},
      ended);
  supervision.pass_on(early);
  TRY(supervision.run());
  supervision.note_what_came();  // or it ends us once the handlers go
  hand_over(out, err);
  return ended;
}

Command question(std::vector<std::string> argv, std::optional<std::chrono::nanoseconds> limit) {
  Command command;
  command.argv = std::move(argv);
  command.set_env = {{"LC_ALL", "C"}};
  command.out = command.err = {.pass = false, .keep = true, .file = {}};
  command.own_group = command.null_stdin = true;
  command.timeout = limit;
  return command;
}

std::string describe(const Ended& ended) {
  if (ended.exit_code)
    return "exit code " + std::to_string(*ended.exit_code);
  std::string text =
      signal_name(ended.signal.value_or(0)) + " (" + std::to_string(ended.signal.value_or(0)) + ")";
  if (ended.core_dumped)
    text += ", core dumped";
  return text;
}

}  // namespace rangescope::base
