#include <gtest/gtest.h>

#include "analyze/verdict/rule.hpp"

namespace rangescope::analyze {
namespace own_code_test {

/// A program without ranges that runs for a second.
model::Report program_of_a_second() {
  model::Report report;
  report.run.duration_ns = 1e9;
  model::Region& program = report.regions.emplace_back();
  program.path = {"program"};
  model::CpuWork work;
  work.interval_ns = 5e6;
  program.cpu = std::move(work);
  return report;
}

void add_own_function(model::Report& report, const char* name, double ns) {
  model::CpuWork work = *report.regions.front().cpu;
  model::CpuFunction function;
  function.name = name;
  function.file = "/srv/app/server.py";
  function.line = 11;
  function.self_ns = ns;
  work.own_functions.push_back(std::move(function));
  work.python.ns += ns;
  report.regions.front().cpu = std::move(work);
}

model::CpuWaitRow wait_in(const char* name, model::WaitKind kind, double ns) {
  model::CpuWaitRow wait;
  wait.kind = kind;
  wait.place = {name, "/srv/app/server.py", 20};
  wait.own = true;
  wait.count = wait.threads = 1;
  wait.total_ns = wait.blocked_ns = ns;
  return wait;
}

/// "KIND PLACE: TEXT", empty where nothing is found.
std::string first_line(const model::Report& report) {
  std::vector<model::Verdict> found;
  find_own_code(Case(report), found);
  if (found.empty())
    return {};
  const model::Verdict& first = found.front();
  return first.kind + " " + first.path + ": " + first.text;
}

TEST(OwnCode, NamesTheFunctionAndTheWaitThatDelays) {
  model::Report report = program_of_a_second();
  add_own_function(report, "slow", 0.8e9);
  add_own_function(report, "quick", 0.1e9);
  report.waits = {wait_in("lookup", model::WaitKind::kLock, 0.6e9)};
  EXPECT_EQ(first_line(report),
            "own_function slow (server.py:11): 89 % of the CPU time (800.0 ms of 900.0 ms); "
            "lookup (server.py:20): waits 600.0 ms for a lock");
}

TEST(OwnCode, SaysWhatKeepsThreadsFromRunning) {
  model::Report report = program_of_a_second();
  add_own_function(report, "spin", 0.5e9);
  model::CpuWork work = *report.regions.front().cpu;
  work.waiting.ns = 0.5e9;
  work.parts = {{"waiting", "GIL", 0.45e9}, {"waiting", "preempted", 0.05e9}};
  report.regions.front().cpu = std::move(work);
  EXPECT_EQ(first_line(report),
            "own_function spin (server.py:11): 100.0 % of the CPU time (500.0 ms of 500.0 ms); "
            "45 % waiting for the GIL");
}

TEST(OwnCode, SleepingCountsInFullAndOtherWaitsByAPart) {
  model::Report report = program_of_a_second();
  add_own_function(report, "slow", 0.4e9);
  report.waits = {wait_in("pause", model::WaitKind::kSleep, 0.5e9)};
  EXPECT_TRUE(first_line(report).starts_with("own_wait pause (server.py:20): sleeps 500.0 ms"));
  report.waits = {wait_in("receive", model::WaitKind::kIo, 0.5e9)};
  EXPECT_TRUE(first_line(report).starts_with("own_function slow"));
}

TEST(OwnCode, AWaitInWhichALockIsHeldStandsBeforeALongerSleepOfATimer) {
  model::Report report = program_of_a_second();
  report.waits = {wait_in("timer", model::WaitKind::kSleep, 0.9e9),
                  wait_in("update", model::WaitKind::kLock, 0.8e9),
                  wait_in("query", model::WaitKind::kIo, 0.8e9)};
  EXPECT_TRUE(first_line(report).starts_with("own_wait timer"));
  report.waits[1].holder_waits = report.waits[2].place;
  report.waits[1].holder_waits_for = model::WaitKind::kIo;
  report.waits[2].holds_up = report.waits[1].place;
  EXPECT_EQ(first_line(report),
            "own_wait query (server.py:20): waits 800.0 ms for I/O while it holds a lock that "
            "update (server.py:20) waits for");
  report.waits.pop_back();
  report.waits.front().idle = true;
  EXPECT_EQ(first_line(report),
            "own_wait update (server.py:20): waits 800.0 ms for a lock, held by a thread that "
            "waits for I/O in query (server.py:20)");
}

TEST(OwnCode, ThoseWhoWaitForTheLockOfTheFunctionStandBesideItBeforeALongerWait) {
  model::Report report = program_of_a_second();
  add_own_function(report, "slow", 0.8e9);
  report.waits = {wait_in("client", model::WaitKind::kIo, 0.7e9),
                  wait_in("lookup", model::WaitKind::kLock, 0.1e9)};
  EXPECT_NE(first_line(report).find("; client (server.py:20)"), std::string::npos);
  report.waits[1].meanwhile = {"slow", "/srv/app/server.py", 11};
  EXPECT_EQ(first_line(report),
            "own_function slow (server.py:11): 100.0 % of the CPU time (800.0 ms of 800.0 ms); "
            "lookup (server.py:20): waits 100.0 ms for a lock, held by a thread that runs slow "
            "(server.py:11)");
}

TEST(OwnCode, IdleThreadsAndLibrariesAreNoCause) {
  model::Report report = program_of_a_second();
  model::CpuWaitRow idle = wait_in("serve", model::WaitKind::kIo, 0.9e9);
  idle.idle = true;
  model::CpuWaitRow library = wait_in("read", model::WaitKind::kIo, 0.9e9);
  library.own = false;
  report.waits = {idle, library};
  EXPECT_EQ(first_line(report), "");
  report.waits.push_back(wait_in("fetch", model::WaitKind::kIo, 0.3e9));
  EXPECT_TRUE(first_line(report).starts_with("own_wait fetch"));
}

TEST(OwnCode, ADeadlockIsOfTwoThreadsThatWaitForLocksToTheEnd) {
  model::Report report = program_of_a_second();
  model::CpuWaitRow transfer = wait_in("transfer", model::WaitKind::kLock, 0.9e9);
  model::CpuWaitRow audit = wait_in("audit", model::WaitKind::kLock, 0.9e9);
  transfer.to_the_end = audit.to_the_end = true;
  report.waits = {transfer};
  EXPECT_TRUE(first_line(report).starts_with("own_wait transfer"));
  report.waits = {transfer, audit};
  EXPECT_TRUE(first_line(report).starts_with(
      "deadlock transfer (server.py:20) and audit (server.py:20): wait for locks"));
  report.run.exit_code = 0;  // a program with a deadlock does not end by itself
  EXPECT_TRUE(first_line(report).starts_with("own_wait transfer"));
}

TEST(OwnCode, CpuWorkInTheEventLoopBlocksIt) {
  model::Report report = program_of_a_second();
  add_own_function(report, "check_password", 0.8e9);
  model::CpuWork work = *report.regions.front().cpu;
  work.own_functions.front().event_loop_ns = 0.7e9;
  report.regions.front().cpu = work;
  std::vector<model::Verdict> found;
  find_own_code(Case(report), found);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.front().text,
            "100.0 % of the CPU time (800.0 ms of 800.0 ms); blocks the event loop for 700.0 ms "
            "in all");
  EXPECT_EQ(found.front().evidence.at("blocks_event_loop"), 1);
  work.own_functions.front().event_loop_ns = 0.1e9;  // most of it is in worker threads
  report.regions.front().cpu = work;
  EXPECT_EQ(first_line(report).find("event loop"), std::string::npos);
}

TEST(OwnCode, WhatIsNamedIsNotSaidAgainOfTheProgram) {
  model::Report report = program_of_a_second();
  report.regions.front().wall.inclusive_ns = report.regions.front().wall.exclusive_ns = 1e9;
  report.regions.front().occurrences = 1;
  report.rows.emplace_back().members = {0};
  model::Outside outside;
  report.outside = outside;
  std::vector<model::Verdict> found;
  find_hot_region(Case(report), found);
  EXPECT_EQ(found.size(), 1u) << "nothing else is known";
  add_own_function(report, "slow", 0.8e9);
  found.clear();
  find_own_code(Case(report), found);
  find_hot_region(Case(report), found);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.front().kind, "own_function");
}

TEST(OwnCode, ProgramsWithGpuWorkAreJudgedByIt) {
  model::Report report = program_of_a_second();
  add_own_function(report, "slow", 0.8e9);
  model::GpuWork total;
  total.kernels = 1;
  report.total = total;
  EXPECT_EQ(first_line(report), "");
}

}  // namespace own_code_test
}  // namespace rangescope::analyze
