#include "base/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/fs.hpp"
#include "base/process_tree.hpp"

extern char** environ;

namespace rangescope::base {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

constexpr std::array kForwarded = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
// A grandchild may keep a pipe open for ever; this long without a byte after the child's end, and we stop listening.
constexpr nanoseconds kLinger = std::chrono::milliseconds(500);

std::string reason(int error) {
  return std::strerror(error);
}

// ---- Signals: handlers write (signal, was it the terminal's) into a pipe that the waiting loop polls ----------------
struct Arrived {
  int signal;
  bool from_kernel;
};

int g_pipe[2] = {-1, -1};
std::atomic<bool> g_in_use{false};

void on_signal(int signal, siginfo_t* info, void*) {
  const int saved = errno;
  const Arrived arrived{signal, info != nullptr && info->si_code > 0};
  [[maybe_unused]] const ssize_t n = ::write(g_pipe[1], &arrived, sizeof arrived);
  errno = saved;
}

// Owns the handlers and the pipe while a child runs. Signals that we ignore stay ignored (nohup).
class Signals {
 public:
  Signals(bool forward, bool copies) {
    if (g_in_use.exchange(true)) return;
    mine_ = ::pipe2(g_pipe, O_CLOEXEC | O_NONBLOCK) == 0;
    if (!mine_) {
      g_in_use = false;
      return;
    }
    install(SIGCHLD);
    if (forward) {
      for (const int signal : kForwarded) install(signal);
    }
    if (copies) install(SIGPIPE);  // whoever reads our copy may go away; the program must not notice
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals() {
    if (!mine_) return;
    for (const auto& [signal, action] : old_) ::sigaction(signal, &action, nullptr);
    ::close(std::exchange(g_pipe[0], -1));
    ::close(std::exchange(g_pipe[1], -1));
    g_in_use = false;
  }
  [[nodiscard]] bool mine() const { return mine_; }
  [[nodiscard]] int fd() const { return mine_ ? g_pipe[0] : -1; }
  /// Handled here: the child must start with their default actions.
  [[nodiscard]] sigset_t handled() const {
    sigset_t set;
    sigemptyset(&set);
    for (const auto& [signal, action] : old_) sigaddset(&set, signal);
    return set;
  }
  template <class F>
  void drain(F on_arrival) const {
    Arrived arrived{};
    while (mine_ && ::read(g_pipe[0], &arrived, sizeof arrived) == sizeof arrived) {
      if (arrived.signal != SIGCHLD && arrived.signal != SIGPIPE) on_arrival(arrived);
    }
  }

 private:
  void install(int signal) {
    struct sigaction old {};
    ::sigaction(signal, nullptr, &old);
    if (signal != SIGCHLD && (old.sa_flags & SA_SIGINFO) == 0 && old.sa_handler == SIG_IGN) return;
    struct sigaction action {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigemptyset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
    old_.emplace_back(signal, old);
  }
  bool mine_ = false;
  std::vector<std::pair<int, struct sigaction>> old_;
};

// ---- One output stream of the child --------------------------------------------------------------------------------
class Stream {
 public:
  Stream(const Output& how, int target) : how_(how), target_(target) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    shut(read_);
    shut(write_);
    shut(file_);
  }
  [[nodiscard]] Result<void> open() {
    if (how_.pass && !how_.keep && how_.file.empty()) return {};
    if (!how_.file.empty()) {
      const int file = ::open(how_.file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
      if (file < 0) return fail(Code::kIo, "cannot create the file: " + reason(errno), how_.file.string());
      const bool alone = !how_.pass && !how_.keep;  // the child writes there itself, as long as it or its children live
      (alone ? write_ : file_) = file;
      if (alone) return {};
    }
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail(Code::kIo, "cannot make a pipe: " + reason(errno));
    read_ = ends[0];
    write_ = ends[1];
    return {};
  }
  [[nodiscard]] int fd() const { return read_; }
  [[nodiscard]] int child_end() const { return write_; }
  void spawned() { shut(write_); }
  /// Takes what is there. False at the end of the stream.
  bool take(std::string& kept) {
    std::array<char, 65536> buffer;
    const ssize_t n = ::read(read_, buffer.data(), buffer.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (n <= 0) {
      shut(read_);
      return false;
    }
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(n));
    if (file_ >= 0) put(file_, bytes);
    if (how_.keep) kept += bytes;
    // Whoever read our output went away: then the program's next write says so to it, as without us.
    if (how_.pass && !put(target_, bytes)) {
      shut(read_);
      return false;
    }
    return true;
  }

 private:
  static void shut(int& fd) {
    if (fd >= 0) ::close(std::exchange(fd, -1));
  }
  // False where nobody reads any more. A full disk must not stop the program: we go on taking its bytes.
  static bool put(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return errno != EPIPE;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  Output how_;
  int target_;
  int read_ = -1, write_ = -1, file_ = -1;
};

std::vector<std::string> environment(const Command& command) {
  std::vector<std::string> list;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string name(text.substr(0, text.find('=')));
    const bool gone = std::find(command.unset_env.begin(), command.unset_env.end(), name) != command.unset_env.end();
    if (!gone && !command.set_env.contains(name)) list.emplace_back(text);
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
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

Result<pid_t> spawn(const Command& command, const Signals& signals, const Stream& out, const Stream& err,
                    bool foreground) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // Before its first instruction: a child that reads the terminal at once would be stopped otherwise.
  if (foreground) posix_spawn_file_actions_addtcsetpgrp_np(&actions, STDIN_FILENO);
  if (!command.cwd.empty()) posix_spawn_file_actions_addchdir_np(&actions, command.cwd.c_str());
  if (command.null_stdin) posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (out.child_end() >= 0) posix_spawn_file_actions_adddup2(&actions, out.child_end(), STDOUT_FILENO);
  if (err.child_end() >= 0) posix_spawn_file_actions_adddup2(&actions, err.child_end(), STDERR_FILENO);
  short flags = POSIX_SPAWN_SETSIGDEF;
  const sigset_t handled = signals.handled();
  posix_spawnattr_setsigdefault(&attributes, &handled);
  if (command.own_group) {
    flags |= POSIX_SPAWN_SETPGROUP;
    posix_spawnattr_setpgroup(&attributes, 0);
  }
  posix_spawnattr_setflags(&attributes, flags);

  std::vector<std::string> argv_texts = command.argv, env_texts = environment(command);
  const std::vector<char*> argv = pointers(argv_texts), env = pointers(env_texts);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), env.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error == 0) return pid;

  const std::string& program = command.argv.front();
  std::error_code ignored;
  if (!command.cwd.empty() && !std::filesystem::is_directory(command.cwd, ignored))
    return fail(Code::kNoInput, "the folder to run in does not exist", command.cwd.string());
  if (error == EACCES && std::filesystem::is_directory(program, ignored))
    return fail(Code::kNoInput, "cannot run '" + program + "': it is a folder");
  if (error == EACCES || error == EPERM)
    return fail(Code::kPermission, "cannot run '" + program + "': " + reason(error), {},
                "Make the file executable: chmod +x");
  if (error == ENOEXEC)
    return fail(Code::kNoInput, "cannot run '" + program + "': it is neither a program nor a script with a #! line", {},
                "Name its interpreter in front of it, or give it a #! line");
  if (error == ENOENT && find_on_path(program))
    return fail(Code::kNoInput, "cannot run '" + program + "': its interpreter (#! line or ELF loader) does not exist");
  return fail(error == ENOENT || error == ENOTDIR ? Code::kNoInput : Code::kIo,
              "cannot run '" + program + "': " + reason(error), {},
              program.find(' ') == std::string::npos ? "" : "Give the program and each argument as a word of its own");
}

std::int64_t ns(const timeval& time) {
  return time.tv_sec * 1'000'000'000LL + time.tv_usec * 1'000LL;
}

// While the child is the foreground job of our terminal (own_group), and back to us when it is over.
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
    if (mine_) give(::getpgrp());
  }
  /// The child was stopped (Ctrl-Z): stop too, and on `fg` hand the terminal over again.
  void stopped() {
    if (!terminal_) return;  // somebody stopped it by hand, and will continue it by hand
    if (mine_) give(::getpgrp());
    ::kill(::getpid(), SIGSTOP);
    mine_ = ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
    if (mine_) give(group_);
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

// The whole of what was started, once it has been asked to end. While the child runs, orphans of its tree become ours
// (Linux's "child subreaper"), so that nobody is lost: tools double-fork their helpers and put them into other
// sessions.
class Ending {
 public:
  /// `adopt`: of one run at a time, since orphans cannot be told apart.
  Ending(bool own_group, bool adopt) : own_group_(own_group), adopt_(adopt) {
    ::prctl(PR_GET_CHILD_SUBREAPER, &was_reaper_);
    if (!adopt) return;
    before_ = process_tree(::getpid());
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;
  ~Ending() {
    if (adopt_) ::prctl(PR_SET_CHILD_SUBREAPER, was_reaper_);
  }
  void of(pid_t child) { child_ = child; }

  /// `signal` to everybody. `had_it`: the terminal sent it to our group, and so to a child that shares it.
  void send(int signal, bool had_it) const {
    if (had_it) return;
    ::kill(own_group_ ? -child_ : child_, signal);
    // In a group of its own a tool's helpers in other groups are the tool's to end, as long as it lives.
    if (own_group_ || !asks_to_end(signal)) return;
    for (const TreeMember& member : others()) ::kill(member.pid, signal);
  }
  /// Orphans that ended are ours to bury, or a program that makes thousands would fill the process table.
  void bury() const {
    siginfo_t dead{};
    while (adopt_ && ::waitid(P_ALL, 0, &dead, WEXITED | WNOHANG | WNOWAIT) == 0 && dead.si_pid > 0 &&
           dead.si_pid != child_) {
      ::waitpid(dead.si_pid, nullptr, WNOHANG);
      dead = {};
    }
  }
  void kill_all() const {
    ::kill(own_group_ ? -child_ : child_, SIGKILL);
    for (const TreeMember& member : others()) ::kill(member.pid, SIGKILL);
  }
  /// The child is gone: the others get a moment, then SIGTERM and `grace`, then SIGKILL.
  void finish(nanoseconds grace) const {
    if (gone_within(std::chrono::milliseconds(200))) return;
    send_others(SIGTERM);
    if (gone_within(grace)) return;
    send_others(SIGKILL);
  }

 private:
  [[nodiscard]] std::vector<TreeMember> others() const {
    if (!adopt_) return {};
    auto members = process_tree(::getpid());
    std::erase_if(members, [&](const TreeMember& member) {
      return member.pid == child_ || std::any_of(before_.begin(), before_.end(), [&](const TreeMember& old) {
               return old.pid == member.pid && old.start == member.start;
             });
    });
    return members;
  }
  void send_others(int signal) const {
    if (own_group_) ::kill(-child_, signal);
    for (const TreeMember& member : others()) ::kill(member.pid, signal);
  }
  [[nodiscard]] bool gone_within(nanoseconds time) const {
    const auto until = Clock::now() + time;
    for (bury(); !others().empty() || (own_group_ && group_alive(child_)); bury()) {
      if (Clock::now() >= until) return false;
      ::poll(nullptr, 0, 20);
    }
    return true;
  }

  bool own_group_, adopt_;
  int was_reaper_ = 0;
  pid_t child_ = -1;
  std::vector<TreeMember> before_;  // we, and what runs already
};

// Did the child end because it was asked to? (A program may take SIGINT as a word to itself and go on for hours.)
bool ended_by_request(const Ended& ended) {
  if (ended.timed_out || ended.enough) return true;
  if (!ended.forwarded || !asks_to_end(*ended.forwarded)) return false;
  return *ended.forwarded == SIGTERM || *ended.forwarded == SIGHUP || ended.signal ||
         ended.exit_code == 128 + *ended.forwarded;
}

void fill(Ended& ended, int status, const rusage& usage) {
  if (WIFSIGNALED(status)) {
    ended.signal = WTERMSIG(status);
    ended.core_dumped = WCOREDUMP(status);
  } else {
    ended.exit_code = WEXITSTATUS(status);
  }
  ended.user_ns = ns(usage.ru_utime);
  ended.system_ns = ns(usage.ru_stime);
  ended.peak_rss_bytes = usage.ru_maxrss * 1024LL;
}

}  // namespace

Result<Ended> run(const Command& command) {
  if (command.argv.empty() || command.argv.front().empty()) return fail(Code::kUsage, "there is no program to run");
  Stream out(command.out, STDOUT_FILENO), err(command.err, STDERR_FILENO);
  for (Stream* stream : {&out, &err}) {
    if (auto opened = stream->open(); !opened) return fail(std::move(opened));
  }
  const Signals signals(command.forward_signals, out.fd() >= 0 || err.fd() >= 0);
  if (command.forward_signals && !signals.mine())
    return fail(Code::kInternal, "two programs are run with signals at once");

  Ended ended;
  ended.start_unix_ns =
      std::chrono::duration_cast<nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  const auto start = Clock::now();
  Ending ending(command.own_group, command.forward_signals);
  Foreground foreground(command.own_group);
  const auto spawned = spawn(command, signals, out, err, foreground.mine());
  if (!spawned) return fail(Result<pid_t>(spawned));
  const pid_t pid = *spawned;
  out.spawned();
  err.spawned();

  foreground.given_to(pid);
  ending.of(pid);
  auto next_tick = start + command.tick_every;
  std::optional<Clock::time_point> deadline, linger_until;
  if (command.timeout) deadline = start + *command.timeout;
  bool running = true;
  while (running || out.fd() >= 0 || err.fd() >= 0) {
    const auto now = Clock::now();
    if (!running && now >= *linger_until) break;
    if (running && deadline && now >= *deadline) {
      if (ended.timed_out || ended.enough)
        ending.kill_all();
      else
        ending.send(SIGTERM, false);
      if (!ended.enough) ended.timed_out = true;
      deadline = now + command.grace;
    }
    if (running && (command.tick || command.enough) && now >= next_tick) {
      if (command.tick) command.tick(now - start);
      if (command.enough && !ended.timed_out && !ended.enough && command.enough()) {
        ending.send(SIGTERM, false);
        ended.enough = true;
        deadline = now + command.grace;
      }
      next_tick = now + command.tick_every;
    }
    if (running) {
      int status = 0;
      rusage usage{};
      siginfo_t dead{};
      rlimit files{};  // of one that ended and is not yet reaped
      if (::waitid(P_PID, static_cast<id_t>(pid), &dead, WEXITED | WNOHANG | WNOWAIT) == 0 && dead.si_pid == pid &&
          ::prlimit(pid, RLIMIT_NOFILE, nullptr, &files) == 0)
        ended.open_files = files.rlim_cur;
      const pid_t got = ::wait4(pid, &status, WNOHANG | (command.own_group ? WUNTRACED : 0), &usage);
      if (got == pid && WIFSTOPPED(status)) {
        foreground.stopped();
        if (deadline) *deadline += Clock::now() - now;  // time in which it stood still is not its own
        continue;
      }
      if (got == pid) {
        ended.wall_ns = (Clock::now() - start).count();
        fill(ended, status, usage);
        running = false;
        if (ended_by_request(ended)) ending.finish(command.grace);
        linger_until = Clock::now() + kLinger;
        continue;
      }
      if (got < 0 && errno != EINTR) return fail(Code::kInternal, "cannot wait for the program: " + reason(errno));
    }

    // SIGCHLD wakes us; where another run owns the handlers, a short wait does.
    auto until = now + (signals.mine() ? std::chrono::seconds(60) : nanoseconds(std::chrono::milliseconds(5)));
    if (deadline && running) until = std::min(until, *deadline);
    if ((command.tick || command.enough) && running) until = std::min(until, next_tick);
    if (!running) until = std::min(until, *linger_until);
    const auto wait_ms = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
    std::array<pollfd, 3> polled = {{{signals.fd(), POLLIN, 0}, {out.fd(), POLLIN, 0}, {err.fd(), POLLIN, 0}}};
    ::poll(polled.data(), polled.size(), static_cast<int>(std::max<std::int64_t>(wait_ms, 0)));
    bool moved = false;
    if (polled[1].revents != 0) moved |= out.take(ended.out);
    if (polled[2].revents != 0) moved |= err.take(ended.err);
    ending.bury();
    if (moved && !running) linger_until = Clock::now() + kLinger;
    signals.drain([&](const Arrived& arrived) {
      ended.forwarded = arrived.signal;
      ending.send(arrived.signal, arrived.from_kernel && !command.own_group);
    });
  }
  return ended;
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? "SIG" + std::to_string(signal) : std::string("SIG") + name;
}

std::string describe(const Ended& ended) {
  if (ended.exit_code) return "exit code " + std::to_string(*ended.exit_code);
  std::string text = signal_name(ended.signal.value_or(0)) + " (" + std::to_string(ended.signal.value_or(0)) + ")";
  if (ended.core_dumped) text += ", core dumped";
  return text;
}

void die_by(int signal) {
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::signal(signal, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
  ::raise(signal);
  ::_exit(128 + signal);
}

}  // namespace rangescope::base
