#include "base/process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "base/fs.hpp"
#include "base/signals.hpp"
#include "base/temporary_folder.hpp"
#include "base/text.hpp"

namespace rangescope::base {
namespace process_test {

using namespace std::chrono_literals;

Command quiet(std::vector<std::string> argv) {
  Command command;
  command.argv = std::move(argv);
  command.out = {.pass = false, .keep = true, .file = {}};
  command.err = {.pass = false, .keep = true, .file = {}};
  return command;
}

// The background of a script and nohup ignore these, and what is started by them does so too.
const bool kSignalsAreDefault = [] {
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT})
    ::signal(signal, SIG_DFL);
  return true;
}();

constexpr auto kPatience = 2min;  // for what has to come, on a machine that others keep busy

/// Waits until `condition` holds. False where it has not for minutes.
template <class Condition>
bool comes(const Condition& condition) {
  const auto latest = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > latest)
      return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

/// Waits for the end of a process that is not our child, whether or not it has been reaped.
void expect_gone(const std::string& id) {
  const auto pid = to_int(trim(id));
  ASSERT_TRUE(pid) << id;
  pollfd ended{static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(*pid), 0)), POLLIN, 0};
  if (ended.fd < 0) {
    EXPECT_EQ(errno, ESRCH);
    return;
  }
  EXPECT_EQ(::poll(&ended, 1, static_cast<int>(std::chrono::milliseconds(kPatience).count())), 1)
      << "process " << id << " lives on";
  ::close(ended.fd);
}

/// A file by which a shell says how far it has come: its command is `shell`, where $0 is the file.
class Reached {
 public:
  [[nodiscard]] bool already() const { return std::filesystem::exists(file_); }
  void say() const { ASSERT_TRUE(write_file(file_, "")); }
  [[nodiscard]] Command shell(const char* script) const {
    return quiet({"sh", "-c", script, file_.string()});
  }
  /// Its time limit ends right after it has come there.
  [[nodiscard]] Command limited_shell(const char* script) const {
    Command command = shell(script);
    command.own_group = true;
    command.timeout = 1ns;
    command.started = [this](pid_t) { EXPECT_TRUE(comes([this] { return already(); })); };
    return command;
  }

 private:
  TemporaryFolder folder_{"rangescope-process"};
  std::filesystem::path file_ = folder_.path() / "reached";
};

TEST(Process, KeepsBothStreamsAndTheExitCode) {
  const auto ended = run(quiet({"sh", "-c", "echo out; echo err >&2; exit 3"}));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->exit_code, 3);
  EXPECT_FALSE(ended->signal);
  EXPECT_EQ(ended->out, "out\n");
  EXPECT_EQ(ended->err, "err\n");
  EXPECT_EQ(describe(*ended), "exit code 3");
}

TEST(Process, ArgumentsArriveAsTheyAre) {
  const auto ended = run(quiet({"printf", "%s|", "a b", "$HOME", "", "'\""}));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->out, "a b|$HOME||'\"|");
}

TEST(Process, FatalSignal) {
  const auto ended = run(quiet({"sh", "-c", "kill -SEGV $$"}));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->signal, SIGSEGV);
  EXPECT_FALSE(ended->exit_code);
  EXPECT_TRUE(describe(*ended).starts_with("SIGSEGV (11)"));
}

TEST(Process, EnvironmentAndFolder) {
  ::setenv("RANGESCOPE_TEST_GONE", "1", 1);
  Command command = quiet({"sh", "-c", "echo \"$A ${RANGESCOPE_TEST_GONE-unset}\"; pwd"});
  command.set_env = {{"A", "x=y z"}};
  command.unset_env = {"RANGESCOPE_TEST_GONE"};
  command.cwd = "/";
  const auto ended = run(command);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->out, "x=y z unset\n/\n");
}

/// Lines of /proc/self/status.
std::string blocked_and_ignored_signals() {
  std::string lines;
  const std::string status = read_file("/proc/self/status").value_or("");
  for (const std::string_view line : split(status, '\n'))
    if (line.starts_with("SigBlk") || line.starts_with("SigIgn"))
      lines += std::string(line) + "\n";
  return lines;
}

TEST(Process, SignalsAreBlockedAndIgnoredAsTheyAreHere) {
  Command command = quiet({"grep", "-E", "SigBlk|SigIgn", "/proc/self/status"});
  command.forward_signals = true;
  const auto ended = run(command);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->out, blocked_and_ignored_signals());
}

TEST(Process, AnIgnoredSigchldStaysIgnoredInTheProgram) {
  ::signal(SIGCHLD, SIG_IGN);
  const std::string here = blocked_and_ignored_signals();
  for (const bool own_group : {false, true}) {
    Command command = quiet(
        {"grep", "-hE", "SigBlk|SigIgn", "self/status", "no-such-file"});  // a shell resets SIGCHLD
    command.own_group = own_group;
    command.cwd = "/proc";
    const auto ended = run(command);
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->out, here);
    EXPECT_EQ(ended->exit_code, 2);
    const auto missing = run(quiet({"/no/such/program"}));
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, Code::kNoInput);
    EXPECT_EQ(blocked_and_ignored_signals(), here);
  }
  ::signal(SIGCHLD, SIG_DFL);
}

TEST(Process, MoreOutputThanAPipeHolds) {
  const auto ended =
      run(quiet({"sh", "-c", "head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2"}));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->out.size(), 1'000'000u);
  EXPECT_EQ(ended->err.size(), 1'000'000u);
}

TEST(Process, WritesToAFileToo) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("process_test." + std::to_string(::getpid()));
  Command command = quiet({"echo", "kept"});
  command.out.file = file;
  ASSERT_TRUE(run(command));
  EXPECT_EQ(read_file(file).value_or(""), "kept\n");
  std::filesystem::remove(file);
}

TEST(Process, TimeLimitEndsTheWholeGroup) {
  const Reached reached;
  const auto ended = run(reached.limited_shell("sleep 1000 & echo $!; : > \"$0\"; wait"));
  ASSERT_TRUE(ended);
  EXPECT_TRUE(ended->timed_out);
  EXPECT_EQ(ended->signal, SIGTERM);
  expect_gone(ended->out);
}

TEST(Process, TimeLimitEndsWhatLeftTheGroup) {
  const Reached reached;
  Command command = reached.limited_shell(
      "setsid sh -c 'trap \"\" TERM; echo $$; : > \"$0\"; while :; do sleep 1; done' \"$0\" & "
      "sleep 1000");
  command.forward_signals = true;
  command.grace = 10ms;
  const auto ended = run(command);
  ASSERT_TRUE(ended);
  EXPECT_TRUE(ended->timed_out);
  expect_gone(ended->out);
}

TEST(Process, SigtermReachesTheWholeTreeInASharedGroup) {
  Command command =
      quiet({"sh", "-c", "sleep 1000 & echo $!; setsid sh -c \"kill -TERM $PPID\"; wait"});
  command.forward_signals = true;
  const auto ended = run(command);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->signal, SIGTERM);
  expect_gone(ended->out);
}

TEST(Process, WhatAnOrdinaryEndLeavesBehindIsLeftAlone) {
  Command command = quiet({"sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!"});
  command.own_group = true;
  const auto ended = run(command);
  ASSERT_TRUE(ended);
  const auto left = to_int(trim(ended->out));
  ASSERT_TRUE(left);
  EXPECT_EQ(::kill(static_cast<pid_t>(*left), SIGKILL), 0);
}

TEST(Process, KillsWhatIgnoresSigterm) {
  const Reached reached;
  Command command = reached.limited_shell("trap '' TERM; : > \"$0\"; while :; do sleep 1; done");
  command.grace = 10ms;
  const auto ended = run(command);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->signal, SIGKILL);
}

TEST(Process, EnoughEndsTheWholeGroup) {
  // The child of the shell ignores SIGTERM, and the shell does not wait for it.
  const Reached reached;
  Command command =
      reached.shell("trap '' TERM; sleep 1000 & echo $!; trap 'exit 0' TERM; : > \"$0\"; wait");
  command.own_group = true;
  command.tick_every = 0ms;
  command.now = [start = std::chrono::steady_clock::now()] {
    return start;
  };                     // the shell has time to take the signal
  command.grace = 10ms;  // its child has not
  command.enough = [&] { return reached.already(); };
  const auto ended = run(command);
  ASSERT_TRUE(ended);
  EXPECT_TRUE(ended->enough);
  EXPECT_FALSE(ended->timed_out);
  EXPECT_EQ(ended->exit_code, 0);
  expect_gone(ended->out);
}

TEST(Process, ForwardsSignalsAndWaitsOn) {
  Command command =
      quiet({"sh",
             "-c",
             "trap 'echo got it; exit 7' TERM; kill -TERM $PPID; while :; do sleep 0.05; done"});
  command.own_group = true;
  command.forward_signals = true;
  const auto ended = run(command);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->exit_code, 7);
  EXPECT_EQ(ended->out, "got it\n");
  EXPECT_EQ(ended->forwarded, SIGTERM);
}

// In the foreground of a terminal, and as the leader of a session, we stay in the program's group.
// Who sent a signal is seen while the sender lives: a subshell that takes the signal itself, until
// we have had three rounds.
TEST(Process, WhatTheProgramSendsToItsGroupComesOnce) {
  int out[2], go[2];
  ASSERT_EQ(::pipe(out), 0);
  ASSERT_EQ(::pipe(go), 0);
  const TemporaryFolder folder("rangescope-process");
  const std::filesystem::path sent = folder.path() / "sent";
  const pid_t tool = ::fork();
  if (tool == 0) {
    ::setpgid(0, 0);
    ::dup2(go[0], STDIN_FILENO);
    Command command = quiet({"sh",
                             "-c",
                             "trap 'echo term' TERM; trap 'echo usr1' USR1; kill -TERM 0;"
                             "(trap : USR1; kill -USR1 0; : > \"$0\"; read go); read go; exit 3",
                             sent.string()});
    command.forward_signals = true;
    int rounds = 0;
    command.tick_every = 1ms;
    command.tick = [&](std::chrono::nanoseconds) {
      if (std::filesystem::exists(sent) && ++rounds >= 3 && ::write(go[1], "\n", 1) < 0)
        ::_exit(4);
    };
    const auto ended = run(command);
    if (!ended || ended->exit_code != 3 || ended->forwarded)
      ::_exit(1);
    ::_exit(::write(out[1], ended->out.data(), ended->out.size()) < 0 ? 2 : 0);
  }
  ::close(out[1]);
  char text[64];
  const ssize_t got = ::read(out[0], text, sizeof text);
  ::close(out[0]);
  ::close(go[0]);
  ::close(go[1]);
  int status = 0;
  ASSERT_EQ(::waitpid(tool, &status, 0), tool);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(std::string(text, static_cast<std::size_t>(std::max<ssize_t>(got, 0))), "term\nusr1\n");
}

void wait_for_a_death() {
  siginfo_t dead{};
  ::waitid(P_ALL, 0, &dead, WEXITED | WNOWAIT);
}

/// A program that ends by Ctrl-C, which reaches both; it is dead, and the signal to us still
/// pending, before we wait for either.
Command ends_by_ctrl_c(Command command) {
  command.forward_signals = true;
  command.tick_every = 0ms;
  command.tick = [](std::chrono::nanoseconds) {
    wait_for_a_death();
    const pid_t somebody = ::fork();
    if (somebody == 0)
      ::_exit(::kill(::getppid(), SIGINT));
    ::waitpid(somebody, nullptr, 0);
  };
  return command;
}

TEST(Process, ASignalThatComesWithTheChildsEndDoesNotEndUs) {
  const auto ended = run(ends_by_ctrl_c(quiet({"sh", "-c", "kill -INT $$"})));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->signal, SIGINT);
  EXPECT_EQ(ended->forwarded, SIGINT);
}

TEST(Process, ASignalThatComesWithTheChildsEndReachesTheWholeTree) {
  const Reached reached;
  const auto ended = run(ends_by_ctrl_c(
      reached.shell("setsid sh -c 'echo $$; : > \"$0\"; exec sleep 1000 >/dev/null 2>&1' \"$0\" & "
                    "while ! [ -e \"$0\" ]; do sleep 0.01; done; kill -INT $$")));
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->signal, SIGINT);
  expect_gone(ended->out);
}

// The same of one that it sent to us itself, as to its group.
TEST(Process, ASignalThatTheProgramSendsAndEndsByIsItsOwn) {
  Command command;
  command.argv = {"sh", "-c", "kill -TERM $PPID; kill -TERM $$"};
  command.forward_signals = true;
  command.tick_every = 0ms;
  command.tick = [](std::chrono::nanoseconds) { wait_for_a_death(); };
  const auto ended = run(command);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->signal, SIGTERM);
  EXPECT_FALSE(ended->forwarded);
}

/// `run` in a process group of its own that stops as a whole, as by Ctrl-Z. Its clock is ours: an
/// hour passes when we say so.
class Stopped {
 public:
  enum class By { kUs, kItself };
  explicit Stopped(const char* script, By by) {
    void* shared =
        ::mmap(nullptr, sizeof *hours_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || ::pipe(ready_) != 0 || ::pipe(go_) != 0)
      std::abort();
    hours_ = new (shared) std::atomic<int>(0);
    tool_ = ::fork();
    if (tool_ == 0)
      ::_exit(run_tool(script));
    char byte = 0;
    if (by == By::kUs)
      stopped_ = ::read(ready_[0], &byte, 1) == 1 && ::kill(-tool_, SIGSTOP) == 0;
    int status = 0;
    stopped_ = stopped_ && ::waitpid(tool_, &status, WUNTRACED) == tool_ && WIFSTOPPED(status);
  }
  ~Stopped() {
    for (const int end : {ready_[0], ready_[1], go_[0], go_[1]})
      ::close(end);
    ::munmap(hours_, sizeof *hours_);
  }
  Stopped(const Stopped&) = delete;
  Stopped& operator=(const Stopped&) = delete;
  [[nodiscard]] bool stopped() const { return stopped_; }
  void let_an_hour_pass() { ++*hours_; }
  /// Its exit code.
  int go_on() {
    int status = 0;
    if (::write(go_[1], "\n", 1) != 1 || ::kill(-tool_, SIGCONT) != 0 ||
        ::waitpid(tool_, &status, 0) != tool_)
      return -1;
    return WEXITSTATUS(status);
  }

 private:
  int run_tool(const char* script) {
    ::setpgid(0, 0);
    ::dup2(go_[0], STDIN_FILENO);
    ::dup2(ready_[1], STDOUT_FILENO);
    ::close(go_[1]);
    Command command;
    command.argv = {"sh", "-c", script};
    command.forward_signals = true;
    command.timeout = 30min;
    command.now = [start = std::chrono::steady_clock::now(), this] {
      return start + hours_->load() * 1h;
    };
    const auto ended = run(command);
    return ended && !ended->timed_out ? ended->exit_code.value_or(1) : 2;
  }
  int ready_[2] = {}, go_[2] = {};
  std::atomic<int>* hours_ = nullptr;
  pid_t tool_ = -1;
  bool stopped_ = true;
};

// While we wait, or as soon as the program has begun.
TEST(Process, TimeInWhichAllStoodStillIsNotTheProgramsOwn) {
  Stopped by_us("echo ready; read line; exit 3", Stopped::By::kUs);
  Stopped by_itself("kill -STOP 0; echo ready; read line; exit 3", Stopped::By::kItself);
  for (Stopped* stopped : {&by_us, &by_itself}) {
    ASSERT_TRUE(stopped->stopped());
    stopped->let_an_hour_pass();
    EXPECT_EQ(stopped->go_on(), 3);
  }
}

TEST(Process, ABackgroundChildThatKeepsThePipeDoesNotHoldUs) {
  const auto ended = run(quiet({"sh", "-c", "sleep 1000 & echo $!"}));
  ASSERT_TRUE(ended);
  const auto child = to_int(trim(ended->out));
  ASSERT_TRUE(child) << ended->out;
  EXPECT_EQ(::kill(static_cast<pid_t>(*child), SIGKILL), 0) << "it had ended when run() returned";
}

// What it says later is shown all the same, when run() has long returned.
TEST(Process, LateOutputOfABackgroundChildIsShown) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("rangescope-late-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const auto shown = folder / "shown", go = folder / "go";
  Command command;
  command.argv = {"sh",
                  "-c",
                  "(while [ ! -e " + go.string() +
                      " ]; do sleep 0.05; done; echo late; echo later) & echo early"};
  command.out = {.pass = true, .keep = true, .file = folder / "copy"};
  command.forward_signals = true;
  const int before = ::dup(STDOUT_FILENO),
            to = ::open(shown.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  ASSERT_GE(::dup2(to, STDOUT_FILENO), 0);
  const auto ended = run(command);
  ::dup2(before, STDOUT_FILENO);
  ::close(before);
  ::close(to);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->out, "early\n");
  ASSERT_TRUE(write_file(go, ""));
  EXPECT_TRUE(comes([&] { return read_file(shown).value_or("") == "early\nlate\nlater\n"; }))
      << read_file(shown).value_or("");
  std::filesystem::remove_all(folder);
}

TEST(Process, TicksWhileItRuns) {
  const Reached reached;  // here by us
  Command command = reached.shell("while [ ! -e \"$0\" ]; do sleep 0.01; done");
  command.tick_every = 1ms;
  int ticks = 0;
  command.tick = [&](std::chrono::nanoseconds) {
    if (++ticks == 3)
      reached.say();
  };
  ASSERT_TRUE(run(command));
  EXPECT_GE(ticks, 3);
}

TEST(Process, SaysWhyItCannotRun) {
  EXPECT_EQ(run(quiet({"/nowhere/program"})).error().code, Code::kNoInput);
  EXPECT_EQ(run(quiet({"/etc/passwd"})).error().code, Code::kPermission);
  EXPECT_EQ(run(quiet({})).error().code, Code::kUsage);
  Command command = quiet({"true"});
  command.cwd = "/nowhere";
  const auto wrong = run(command);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().where, "/nowhere");
}

TEST(ProcessDeath, DiesBySignal) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(die_by(SIGTERM), testing::KilledBySignal(SIGTERM), "");
}

}  // namespace process_test
}  // namespace rangescope::base
