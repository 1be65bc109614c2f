#include "base/process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

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

// The process of this id ends soon. Its new parent has to reap it; a zombie counts as gone.
void expect_gone(const std::string& id) {
  const auto pid = to_int(trim(id));
  ASSERT_TRUE(pid) << id;
  for (int i = 0; i < 200 && ::kill(static_cast<pid_t>(*pid), 0) == 0; ++i) {
    const auto status = read_file("/proc/" + std::to_string(*pid) + "/stat");
    if (status && status->find(") Z") != std::string::npos) break;
    std::this_thread::sleep_for(10ms);
    ASSERT_LT(i, 199) << "process " << id << " lives on";
  }
}

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
    if (line.starts_with("SigBlk") || line.starts_with("SigIgn")) lines += std::string(line) + "\n";
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
    Command command = quiet({"grep", "-hE", "SigBlk|SigIgn", "self/status", "no-such-file"});  // a shell resets SIGCHLD
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
  const auto ended = run(quiet({"sh", "-c", "head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2"}));
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
  Command command = quiet({"sh", "-c", "sleep 1000 & echo $!; wait"});
  command.own_group = true;
  command.timeout = 300ms;
  const auto ended = run(command);
  ASSERT_TRUE(ended);
  EXPECT_TRUE(ended->timed_out);
  EXPECT_EQ(ended->signal, SIGTERM);
  expect_gone(ended->out);
}

TEST(Process, TimeLimitEndsWhatLeftTheGroup) {
  Command command =
      quiet({"sh", "-c", "setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done' & sleep 1000"});
  command.own_group = command.forward_signals = true;
  command.timeout = 400ms;
  command.grace = 300ms;
  const auto ended = run(command);
  ASSERT_TRUE(ended);
  EXPECT_TRUE(ended->timed_out);
  expect_gone(ended->out);
}

TEST(Process, SigtermReachesTheWholeTreeInASharedGroup) {
  Command command = quiet({"sh", "-c", "sleep 1000 & echo $!; setsid sh -c \"kill -TERM $PPID\"; wait"});
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
  Command command = quiet({"sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"});
  command.own_group = true;
  command.timeout = 200ms;
  command.grace = 200ms;
  const auto ended = run(command);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->signal, SIGKILL);
}

TEST(Process, EnoughEndsTheWholeGroup) {
  // The child of the shell ignores SIGTERM, and the shell does not wait for it.
  Command command = quiet({"sh", "-c", "(trap '' TERM; sleep 1000) & echo $!; trap 'exit 0' TERM; wait"});
  command.own_group = true;
  command.tick_every = 20ms;
  command.grace = 300ms;
  int asked = 0;
  command.enough = [&] { return ++asked == 5; };
  const auto ended = run(command);
  ASSERT_TRUE(ended);
  EXPECT_TRUE(ended->enough);
  EXPECT_FALSE(ended->timed_out);
  EXPECT_EQ(ended->exit_code, 0);
  for (int i = 0; i < 200; ++i) {  // it was killed, which takes a moment
    const auto child = read_file("/proc/" + std::string(trim(ended->out)) + "/stat");
    if (!child || child->find(") Z") != std::string::npos) return;
    std::this_thread::sleep_for(10ms);
  }
  FAIL() << "the child lives on";
}

TEST(Process, ForwardsSignalsAndWaitsOn) {
  Command command =
      quiet({"sh", "-c", "trap 'echo got it; exit 7' TERM; kill -TERM $PPID; while :; do sleep 0.05; done"});
  command.own_group = true;
  command.forward_signals = true;
  const auto ended = run(command);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->exit_code, 7);
  EXPECT_EQ(ended->out, "got it\n");
  EXPECT_EQ(ended->forwarded, SIGTERM);
}

// In the foreground of a terminal, and as the leader of a session, we stay in the program's group. Who sent a signal is
// seen while the sender lives: a subshell that takes the signal itself, until we have had three rounds.
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
    Command command = quiet({"sh", "-c",
                             "trap 'echo term' TERM; trap 'echo usr1' USR1; kill -TERM 0;"
                             "(trap : USR1; kill -USR1 0; : > \"$0\"; read go); read go; exit 3",
                             sent.string()});
    command.forward_signals = true;
    int rounds = 0;
    command.tick_every = 1ms;
    command.tick = [&](std::chrono::nanoseconds) {
      if (std::filesystem::exists(sent) && ++rounds >= 3 && ::write(go[1], "\n", 1) < 0) ::_exit(4);
    };
    const auto ended = run(command);
    if (!ended || ended->exit_code != 3 || ended->forwarded) ::_exit(1);
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

// Ctrl-C reaches both; here the child is dead, and the signal still pending, before we wait for either.
TEST(Process, ASignalThatComesWithTheChildsEndDoesNotEndUs) {
  Command command;
  command.argv = {"sh", "-c", "kill -INT $$"};
  command.forward_signals = true;
  command.tick_every = 0ms;
  command.tick = [](std::chrono::nanoseconds) {
    wait_for_a_death();
    const pid_t somebody = ::fork();
    if (somebody == 0) ::_exit(::kill(::getppid(), SIGINT));
    ::waitpid(somebody, nullptr, 0);
  };
  const auto ended = run(command);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->signal, SIGINT);
  EXPECT_EQ(ended->forwarded, SIGINT);
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

// Ctrl-Z stops the whole group for longer than the time limit: while we wait, or as soon as the program has begun.
/// `run` in a process group of its own, which stops as a whole: by us, or by what it runs.
class Stopped {
 public:
  explicit Stopped(const char* program, bool stops_itself) {
    if (::pipe(ready_) != 0 || ::pipe(go_) != 0) std::abort();
    tool_ = ::fork();
    if (tool_ == 0) {
      ::setpgid(0, 0);
      ::dup2(go_[0], STDIN_FILENO);
      ::dup2(ready_[1], STDOUT_FILENO);
      ::close(go_[1]);
      Command command;
      command.argv = {"sh", "-c", program};
      command.forward_signals = true;
      command.timeout = 4s;
      const auto ended = run(command);
      ::_exit(ended && !ended->timed_out ? ended->exit_code.value_or(1) : 2);
    }
    char byte = 0;
    if (!stops_itself) stopped_ = ::read(ready_[0], &byte, 1) == 1 && ::kill(-tool_, SIGSTOP) == 0;
    int status = 0;
    stopped_ = stopped_ && ::waitpid(tool_, &status, WUNTRACED) == tool_ && WIFSTOPPED(status);
  }
  ~Stopped() {
    for (const int end : {ready_[0], ready_[1], go_[0], go_[1]}) ::close(end);
  }
  Stopped(const Stopped&) = delete;
  Stopped& operator=(const Stopped&) = delete;
  [[nodiscard]] bool stopped() const { return stopped_; }
  /// Its exit code.
  int go_on() {
    int status = 0;
    if (::write(go_[1], "\n", 1) != 1 || ::kill(-tool_, SIGCONT) != 0 || ::waitpid(tool_, &status, 0) != tool_)
      return -1;
    return WEXITSTATUS(status);
  }

 private:
  int ready_[2] = {}, go_[2] = {};
  pid_t tool_ = -1;
  bool stopped_ = true;
};

TEST(Process, TimeInWhichAllStoodStillIsNotTheProgramsOwn) {
  Stopped by_us("echo ready; read line; exit 3", false), by_itself("kill -STOP 0; echo ready; read line; exit 3", true);
  ASSERT_TRUE(by_us.stopped());
  ASSERT_TRUE(by_itself.stopped());
  std::this_thread::sleep_for(5s);
  EXPECT_EQ(by_us.go_on(), 3);
  EXPECT_EQ(by_itself.go_on(), 3);
}

TEST(Process, ABackgroundChildThatKeepsThePipeDoesNotHoldUs) {
  const auto ended = run(quiet({"sh", "-c", "sleep 100 & echo $!"}));
  ASSERT_TRUE(ended);
  const auto child = to_int(trim(ended->out));
  ASSERT_TRUE(child) << ended->out;
  EXPECT_EQ(::kill(static_cast<pid_t>(*child), SIGKILL), 0) << "it had ended when run() returned";
}

// What it says later is shown all the same, when run() has long returned.
TEST(Process, LateOutputOfABackgroundChildIsShown) {
  const auto folder = std::filesystem::temp_directory_path() / ("rangescope-late-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const auto shown = folder / "shown", go = folder / "go";
  Command command;
  command.argv = {"sh", "-c",
                  "(while [ ! -e " + go.string() + " ]; do sleep 0.05; done; echo late; echo later) & echo early"};
  command.out = {.pass = true, .keep = true, .file = folder / "copy"};
  command.forward_signals = true;
  const int before = ::dup(STDOUT_FILENO), to = ::open(shown.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  ASSERT_GE(::dup2(to, STDOUT_FILENO), 0);
  const auto ended = run(command);
  ::dup2(before, STDOUT_FILENO);
  ::close(before);
  ::close(to);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->out, "early\n");
  ASSERT_TRUE(write_file(go, ""));
  for (int i = 0; i < 1000 && read_file(shown).value_or("") != "early\nlate\nlater\n"; ++i)
    std::this_thread::sleep_for(10ms);
  EXPECT_EQ(read_file(shown).value_or(""), "early\nlate\nlater\n");
  std::filesystem::remove_all(folder);
}

TEST(Process, TicksWhileItRuns) {
  Command command = quiet({"sleep", "0.3"});
  command.tick_every = 20ms;
  int ticks = 0;
  command.tick = [&](std::chrono::nanoseconds) { ++ticks; };
  ASSERT_TRUE(run(command));
  EXPECT_GE(ticks, 1);
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
