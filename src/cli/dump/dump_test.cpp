#include "cli/dump/dump.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "report/sink.hpp"

namespace rangescope::cli {
namespace dump_test {

using sample::cpu::DumpedFrame;
using sample::cpu::DumpedThread;
using sample::cpu::DumpedWait;
using wire::cpu::WaitKind;

DumpedFrame python_frame(const std::string& name, const std::string& file, std::uint32_t line) {
  return {.name = name, .file = file, .line = line};
}

DumpedFrame library_frame(const std::string& name) {
  return {.name = name, .module = "/lib/x86_64-linux-gnu/libc.so.6"};
}

/// Of a Python function of the program's own file.
DumpedThread running_in(const std::string& function, std::uint32_t tid = 1) {
  DumpedThread thread{.tid = tid, .name = "main", .state = 'R'};
  thread.python = {python_frame(function, "/home/u/train.py", 10)};
  return thread;
}

DumpedThread waiting_in(const std::string& function,
                        WaitKind kind,
                        std::uint32_t tid = 1,
                        std::uint32_t holder = 0) {
  DumpedThread thread = running_in(function, tid);
  thread.state = 'S';
  thread.wait = DumpedWait{.kind = kind, .holder = holder};
  return thread;
}

DumpedProcess process_of(std::uint32_t pid,
                         std::vector<DumpedThread> threads,
                         std::optional<std::uint32_t> rank = {}) {
  DumpedProcess process;
  process.dump.target.pid = pid;
  process.dump.target.argv = {"python3", "train.py"};
  process.dump.threads = std::move(threads);
  process.rank = rank;
  return process;
}

std::vector<std::uint32_t> order_of(std::vector<DumpedProcess> processes) {
  put_odd_first(processes);
  std::vector<std::uint32_t> pids;
  for (const DumpedProcess& process : processes)
    pids.push_back(process.dump.target.pid);
  return pids;
}

using Pids = std::vector<std::uint32_t>;

TEST(PutOddFirst, TheRankThatDoesSomethingElseIsFirst) {
  EXPECT_EQ(order_of({process_of(10, {running_in("step")}, 0),
                      process_of(11, {running_in("step")}, 1),
                      process_of(12, {running_in("load")}, 2),
                      process_of(13, {running_in("step")}, 3)}),
            (Pids{12, 10, 11, 13}));
}

TEST(PutOddFirst, WaitingIsSomethingElseThanRunningInTheSameFunction) {
  EXPECT_EQ(order_of({process_of(10, {running_in("step")}, 0),
                      process_of(11, {waiting_in("step", WaitKind::kLock)}, 1),
                      process_of(12, {running_in("step")}, 2)}),
            (Pids{11, 10, 12}));
}

TEST(PutOddFirst, TheLineIsNoDifference) {
  DumpedThread later = running_in("step");
  later.python.front().line = 99;
  EXPECT_EQ(order_of({process_of(10, {running_in("step")}, 0),
                      process_of(11, {later}, 1),
                      process_of(12, {running_in("step")}, 2)}),
            (Pids{10, 11, 12}));
}

TEST(PutOddFirst, OnlyTheFirstThreadIsCompared) {
  EXPECT_EQ(order_of({process_of(10, {running_in("step"), running_in("poll", 2)}, 0),
                      process_of(11, {running_in("step"), running_in("idle", 2)}, 1),
                      process_of(12, {running_in("step")}, 2)}),
            (Pids{10, 11, 12}));
}

TEST(PutOddFirst, WithoutAMajorityNoneIsOdd) {
  EXPECT_EQ(order_of({process_of(10, {running_in("a")}, 0),
                      process_of(11, {running_in("a")}, 1),
                      process_of(12, {running_in("b")}, 2),
                      process_of(13, {running_in("b")}, 3)}),
            (Pids{10, 11, 12, 13}));
}

TEST(PutOddFirst, OfTwoNoneIsOdd) {
  EXPECT_EQ(order_of({process_of(10, {running_in("a")}, 0), process_of(11, {running_in("b")}, 1)}),
            (Pids{10, 11}));
}

TEST(PutOddFirst, RanksGoBeforeProcessesWithoutOneAndAreComparedAlone) {
  EXPECT_EQ(order_of({process_of(9, {running_in("launch")}),
                      process_of(10, {running_in("step")}, 0),
                      process_of(11, {running_in("step")}, 1),
                      process_of(12, {running_in("load")}, 2)}),
            (Pids{12, 10, 11, 9}));
}

TEST(PutOddFirst, WithoutRanksAllProcessesAreCompared) {
  EXPECT_EQ(order_of({process_of(10, {running_in("work")}),
                      process_of(11, {running_in("work")}),
                      process_of(12, {running_in("stuck")})}),
            (Pids{12, 10, 11}));
}

std::string text_of(const std::vector<DumpedProcess>& processes) {
  report::StringSink sink;
  write_dump_text(processes, sink);
  return sink.text();
}

/// The first line: what a person wants to know first.
std::string answer_for(const DumpedProcess& process) {
  const std::string text = text_of({process});
  return text.substr(0, text.find('\n'));
}

TEST(DumpAnswer, CountsWhoRunsAndWhoWaits) {
  EXPECT_EQ(answer_for(process_of(1,
                                  {running_in("step"),
                                   waiting_in("poll", WaitKind::kIo, 2),
                                   waiting_in("poll", WaitKind::kIo, 3)})),
            "1 of 3 threads runs, 2 wait; no deadlock found");
  EXPECT_EQ(answer_for(process_of(1, {waiting_in("poll", WaitKind::kSleep)})),
            "0 of 1 thread run, 1 waits; no deadlock found");
}

TEST(DumpAnswer, SaysNotThatThereIsNoDeadlockWhereHoldersAreUnknown) {
  EXPECT_EQ(answer_for(process_of(
                1, {waiting_in("a", WaitKind::kLock), waiting_in("b", WaitKind::kLock, 2)})),
            "0 of 2 threads run, 2 wait; who has the locks that 2 of them wait for is not known");
}

// A single lock with an unknown holder is what every pool of idle threads shows.
TEST(DumpAnswer, OneUnknownHolderIsNoPossibleDeadlock) {
  EXPECT_EQ(answer_for(process_of(
                1, {waiting_in("a", WaitKind::kLock), waiting_in("b", WaitKind::kGil, 2)})),
            "0 of 2 threads run, 2 wait; no deadlock found");
}

TEST(DumpAnswer, ADeadlockGoesFirstWithWhoHasWhat) {
  DumpedProcess process = process_of(1,
                                     {waiting_in("transfer", WaitKind::kLock, 12, 13),
                                      waiting_in("audit", WaitKind::kLock, 13, 12)});
  process.dump.cycles = {{0, 1}};
  EXPECT_EQ(answer_for(process),
            "deadlock: transfer (train.py:10) in thread 12 main waits for a lock that thread 13 "
            "has; audit (train.py:10) in thread 13 main waits for a lock that thread 12 has");
}

TEST(DumpAnswer, AThreadThatSeveralWaitForIsNamedWithWhatItDoes) {
  DumpedThread holder = waiting_in("write_log", WaitKind::kSleep, 7);
  holder.wait->since_ns = 3'000'000'000;
  EXPECT_EQ(
      answer_for(process_of(1,
                            {waiting_in("serve", WaitKind::kLock, 1, 7),
                             waiting_in("serve", WaitKind::kGil, 2, 7),
                             holder})),
      "2 threads wait for what thread 7 main has: write_log (train.py:10) sleeps for 3.000 s");
}

TEST(DumpAnswer, AThreadThatOneWaitsForIsOrdinary) {
  EXPECT_EQ(answer_for(process_of(
                1, {waiting_in("serve", WaitKind::kLock, 1, 2), running_in("write_log", 2)})),
            "1 of 2 threads runs, 1 waits; no deadlock found");
}

/// In asyncio's loop, which called `innermost`.
DumpedThread loop_thread(const DumpedFrame& innermost) {
  DumpedThread thread = waiting_in("", WaitKind::kSleep);
  thread.python = {
      innermost,
      python_frame("BaseEventLoop._run_once", "/usr/lib/python3.11/asyncio/base_events.py", 1922),
      python_frame("main", "/home/u/server.py", 3)};
  return thread;
}

TEST(DumpAnswer, AnEventLoopThatACallBlocksIsNamed) {
  EXPECT_EQ(
      answer_for(process_of(1, {loop_thread(python_frame("handle", "/home/u/server.py", 8))})),
      "the event loop of thread 1 main is blocked: handle (server.py:8) sleeps");
}

TEST(DumpAnswer, AnEventLoopThatWaitsForEventsIsIdle) {
  EXPECT_EQ(answer_for(
                process_of(1,
                           {loop_thread(python_frame(
                               "EpollSelector.select", "/usr/lib/python3.11/selectors.py", 468))})),
            "0 of 1 thread run, 1 waits; no deadlock found");
}

/// The line of the only thread, without its name.
std::string doing(const DumpedThread& thread) {
  const std::string text = text_of({process_of(1, {thread})});
  const std::string head = "\nthread 1 main ";
  const std::size_t line = text.find(head) + head.size();
  return text.substr(line, text.find('\n', line) - line);
}

TEST(DumpedThreadLine, SaysWhatItWaitsForAndSinceWhen) {
  DumpedThread thread = waiting_in("read", WaitKind::kIo);
  thread.wait->since_ns = 250'000'000;
  thread.wait->call = "read";
  thread.wait->on = "socket:[1234]";
  EXPECT_EQ(doing(thread), "waits for I/O for 250.0 ms (read socket:[1234])");
  EXPECT_EQ(doing(waiting_in("join", WaitKind::kChild)), "waits for a child");
  EXPECT_EQ(doing(waiting_in("spin", WaitKind::kPreempted)), "could run");
}

TEST(DumpedThreadLine, AStoppedThreadIsNotSaidToRun) {
  DumpedThread thread = running_in("step");
  EXPECT_EQ(doing(thread), "runs");
  thread.state = 'T';
  EXPECT_EQ(doing(thread), "is stopped");
}

/// Lines of the stack of the only thread.
std::vector<std::string> stack_of(const DumpedThread& thread) {
  const std::string text = text_of({process_of(1, {thread})});
  std::vector<std::string> lines;
  for (const std::string_view line : base::split(text, '\n'))
    if (line.starts_with("  "))
      lines.emplace_back(line.substr(2));
  return lines;
}

TEST(DumpedStack, NativeFramesEndWhereTheInterpreterBegins) {
  DumpedThread thread = running_in("step");
  thread.native = {library_frame("read"),
                   {.name = "_PyEval_EvalFrameDefault", .module = "/usr/bin/python3.11"},
                   library_frame("__libc_start_main")};
  EXPECT_EQ(stack_of(thread), (std::vector<std::string>{"read [libc.so.6]", "step (train.py:10)"}));
  thread.python.clear();
  EXPECT_EQ(stack_of(thread),
            (std::vector<std::string>{"read [libc.so.6]",
                                      "_PyEval_EvalFrameDefault [python3.11]",
                                      "__libc_start_main [libc.so.6]"}));
}

TEST(DumpedStack, SaysThatItIsCut) {
  DumpedThread thread{.tid = 1, .name = "main", .state = 'R'};
  thread.native = {library_frame("read"), library_frame("")};
  thread.native_cut = true;
  EXPECT_EQ(stack_of(thread),
            (std::vector<std::string>{"read [libc.so.6]", "[libc.so.6]", "(the stack is cut)"}));
}

// A name may come from a program that wants to write to the terminal.
TEST(DumpedStack, NamesAreShownWithoutControlCharacters) {
  DumpedThread thread = running_in("step\x1b[2J");
  EXPECT_EQ(stack_of(thread).front().find('\x1b'), std::string::npos);
}

TEST(DumpText, ARankIsNamed) {
  EXPECT_NE(text_of({process_of(4711, {running_in("step")}, 3)})
                .find("process 4711 (rank 3): python3 train.py; 1 thread"),
            std::string::npos);
}

nlohmann::json json_of(const DumpedProcess& process) {
  report::StringSink sink;
  write_dump_json({process}, sink);
  return nlohmann::json::parse(sink.text());
}

TEST(DumpJson, UnknownIsNull) {
  DumpedProcess process =
      process_of(1, {running_in("step"), waiting_in("serve", WaitKind::kLock, 2)});
  const nlohmann::json written = json_of(process).at("processes").at(0);
  EXPECT_TRUE(written.at("rank").is_null());
  EXPECT_TRUE(written.at("threads").at(0).at("wait").is_null()) << "it runs";
  EXPECT_EQ(written.at("threads").at(1).at("wait").at("kind"), "lock");
  EXPECT_TRUE(written.at("threads").at(1).at("wait").at("holder").is_null());
  EXPECT_TRUE(written.at("threads").at(1).at("wait").at("for_ns").is_null());
}

TEST(DumpJson, ADeadlockIsTheIdsOfItsThreads) {
  DumpedProcess process = process_of(1,
                                     {running_in("step", 11),
                                      waiting_in("a", WaitKind::kLock, 12, 13),
                                      waiting_in("b", WaitKind::kLock, 13, 12)},
                                     0);
  process.dump.cycles = {{1, 2}};
  const nlohmann::json written = json_of(process).at("processes").at(0);
  EXPECT_EQ(written.at("rank"), 0);
  EXPECT_EQ(written.at("deadlocks"), nlohmann::json::parse("[[12, 13]]"));
  EXPECT_EQ(written.at("threads").at(1).at("wait").at("holder"), 13);
}

// The innermost function of the program's own files, not that of a library that it called.
TEST(DumpJson, ThePlaceIsTheProgramsOwnFunction) {
  DumpedThread thread = running_in("step");
  thread.python.insert(thread.python.begin(),
                       python_frame("wait", "/usr/lib/python3.11/threading.py", 320));
  EXPECT_EQ(json_of(process_of(1, {thread})).at("processes").at(0).at("threads").at(0).at("place"),
            "step (train.py:10)");
  thread.python.pop_back();
  EXPECT_EQ(json_of(process_of(1, {thread})).at("processes").at(0).at("threads").at(0).at("place"),
            "wait (threading.py:320)");
}

}  // namespace dump_test
}  // namespace rangescope::cli
