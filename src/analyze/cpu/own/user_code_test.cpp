#include "analyze/cpu/own/user_code.hpp"

#include <gtest/gtest.h>

#include "analyze/cpu/own/call_tree.hpp"
#include "analyze/session_test.hpp"

namespace rangescope::analyze {
namespace user_code_test {

/// A Python service: two threads in one process of 1,000 ns.
struct Service : testing::SessionBuilder {
  std::uint32_t p = process(1);
  Service() {
    session.begin_ns = 0;
    session.end_ns = 1'000'000'000;
    session.cpu.interval_ns = 1'000'000;
    session.cpu.threads = {{1, 1, 0, model::kNone}, {1, 2, 0, model::kNone}};
  }
  std::uint32_t stack(std::uint32_t parent,
                      std::string_view name,
                      std::string_view file,
                      std::uint32_t line = 0) {
    model::CpuFrame frame;
    frame.kind = model::FrameKind::kPython;
    frame.name = session.strings.intern(name);
    frame.file = session.strings.intern(file);
    frame.line = line;
    session.cpu.frames.push_back(frame);
    session.cpu.stacks.push_back(
        {parent, static_cast<std::uint32_t>(session.cpu.frames.size() - 1)});
    return static_cast<std::uint32_t>(session.cpu.stacks.size() - 1);
  }
  std::uint32_t again(std::uint32_t parent, std::uint32_t same) {
    session.cpu.stacks.push_back({parent, session.cpu.stacks[same].frame});
    return static_cast<std::uint32_t>(session.cpu.stacks.size() - 1);
  }
};

TEST(UserCode, LibrariesGeneratedCodeAndComprehensionsAreNotTheProgramsOwn) {
  Service service;
  const auto stack = [&](std::uint32_t parent, const char* name, const char* file) {
    return service.stack(parent, name, file);
  };
  const std::uint32_t run = stack(model::kNone, "Thread.run", "/usr/lib/python3.11/threading.py");
  const std::uint32_t handle = stack(run, "handle", "/srv/app/server.py");
  const std::uint32_t each = stack(handle, "handle.<locals>.<genexpr>", "/srv/app/server.py");
  const std::uint32_t match = stack(each, "findall", "/usr/lib/python3.11/re/__init__.py");
  const std::uint32_t site = stack(model::kNone, "addpackage", "<frozen site>");
  const std::uint32_t started = stack(site, "<module>", "<string>");
  const UserCode code = user_code(service.session);
  const std::uint32_t function = service.session.cpu.stacks[handle].frame;
  EXPECT_EQ(code.innermost[run], model::kNone);
  EXPECT_EQ(code.innermost[handle], function);
  EXPECT_EQ(code.innermost[each], function);
  EXPECT_EQ(code.innermost[match], function);
  EXPECT_EQ(code.innermost[started], model::kNone);
}

TEST(UserCode, OurPythonPackageIsNotTheProgramsOwnWhereverItLies) {
  Service service;
  const std::uint32_t train = service.stack(model::kNone, "train", "/srv/app/ranges.py");
  const std::uint32_t exit =
      service.stack(train, "annotate.__exit__", "/home/me/rangescope/python/rangescope/ranges.py");
  const UserCode code = user_code(service.session);
  EXPECT_EQ(code.innermost[train], service.session.cpu.stacks[train].frame);
  EXPECT_EQ(code.innermost[exit], code.innermost[train]);
}

// `python -c 'import server; ...'`: whether a sample is in a file of the program is chance.
TEST(UserCode, ATextIsTheProgramWhateverFilesItImports) {
  for (const char* text : {"<string>", "<stdin>"}) {
    Service service;
    const std::uint32_t main = service.stack(model::kNone, "<module>", text);
    const std::uint32_t serve = service.stack(main, "serve", text);
    const std::uint32_t loads =
        service.stack(serve, "loads", "/usr/lib/python3.11/json/__init__.py");
    const auto own_function_of_loads = [&] { return user_code(service.session).innermost[loads]; };
    EXPECT_EQ(own_function_of_loads(), service.session.cpu.stacks[serve].frame);
    service.stack(serve, "handle", "/srv/app/server.py");
    EXPECT_EQ(own_function_of_loads(), service.session.cpu.stacks[serve].frame);
  }
}

TEST(UserCode, TheTextThatMultiprocessingStartsChildrenByIsNotTheProgram) {
  Service service;
  const std::uint32_t main = service.stack(model::kNone, "<module>", "<string>");
  const std::uint32_t spawn =
      service.stack(main, "spawn_main", "/usr/lib/python3.11/multiprocessing/spawn.py");
  const std::uint32_t work = service.stack(spawn, "work", "/srv/app/job.py");
  const UserCode code = user_code(service.session);
  EXPECT_EQ(code.innermost[spawn], model::kNone);
  EXPECT_EQ(code.innermost[work], service.session.cpu.stacks[work].frame);
}

TEST(UserCode, WaitsForALockNameWhatTheOtherThreadRunsAndIdleThreadsComeLast) {
  Service service;
  const std::uint32_t lookup = service.stack(model::kNone, "lookup", "/srv/app/server.py", 15);
  const std::uint32_t slow = service.stack(lookup, "slow", "/srv/app/server.py", 10);
  const std::uint32_t serve =
      service.stack(model::kNone, "select", "/usr/lib/python3.11/selectors.py");
  service.session.cpu.samples = {
      {150'000'000, 1, slow}, {160'000'000, 1, slow}, {700'000'000, 1, slow}};
  service.session.cpu.waits = {{100'000'000, 200'000'000, 0, lookup, model::WaitKind::kLock},
                               {300'000'000, 350'000'000, 0, lookup, model::WaitKind::kLock},
                               {0, 900'000'000, 1, serve, model::WaitKind::kIo}};
  const auto rows = waits_by_function(service.session, user_code(service.session));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(place_text(rows[0].place), "lookup (server.py:15)");
  EXPECT_EQ(rows[0].kind, model::WaitKind::kLock);
  EXPECT_EQ(rows[0].count, 2);
  EXPECT_EQ(rows[0].total_ns, 150e6);
  EXPECT_EQ(place_text(rows[0].meanwhile), "slow (server.py:10)");
  EXPECT_TRUE(rows[0].own);
  EXPECT_FALSE(rows[0].idle);
  EXPECT_FALSE(rows[0].to_the_end);
  EXPECT_TRUE(rows[1].idle);
}

TEST(UserCode, CallbacksOfTheEventLoopAreToldFromThoseOfWorkerThreads) {
  Service service;
  const std::uint32_t module = service.stack(model::kNone, "<module>", "/srv/app/server.py", 1);
  const std::uint32_t loop =
      service.stack(module, "run_forever", "/usr/lib/python3.11/asyncio/base_events.py");
  const std::uint32_t login = service.stack(loop, "login", "/srv/app/server.py", 10);
  const std::uint32_t hash = service.stack(login, "sha256", "/usr/lib/python3.11/hashlib.py");
  const std::uint32_t worker =
      service.stack(model::kNone, "_worker", "/usr/lib/python3.11/concurrent/futures/thread.py");
  const std::uint32_t login_in_thread = service.again(worker, login);
  model::CpuWork work;
  OwnCode(service.session)
      .fill({{hash, {60, 0}}, {login_in_thread, {40, 0}}, {loop, {10, 0}}}, work);
  ASSERT_EQ(work.own_functions.size(), 2u);
  EXPECT_EQ(work.own_functions[0].self_ns, 100);
  EXPECT_EQ(work.own_functions[0].event_loop_ns, 60);
  EXPECT_EQ(work.own_functions[1].name, "<module>");
  EXPECT_EQ(work.own_functions[1].event_loop_ns, 0) << "the loop itself blocks nothing";
}

/// Two threads of which one waits for a lock in `update` while the other sleeps in `write_log`.
struct LockedLog : Service {
  std::uint32_t update = stack(model::kNone, "update", "/srv/app/server.py", 13);
  std::uint32_t write_log = stack(update, "write_log", "/srv/app/server.py", 10);
  std::uint32_t timer = stack(model::kNone, "timer", "/srv/app/server.py", 30);
  [[nodiscard]] std::vector<model::CpuWaitRow> rows() const {
    return waits_by_function(session, user_code(session));
  }
};

TEST(UserCode, AWaitInWhichALockIsHeldIsNamedWithThoseThatWaitForIt) {
  LockedLog service;
  service.session.cpu.threads.push_back({1, 3, 0, model::kNone});
  service.session.cpu.samples = {{110'000'000, 1, service.update}};
  service.session.cpu.waits = {
      {100'000'000, 200'000'000, 0, service.update, model::WaitKind::kLock},
      {110'000'000, 199'000'000, 1, service.write_log, model::WaitKind::kSleep},
      {0, 900'000'000, 2, service.timer, model::WaitKind::kSleep}};
  const auto rows = service.rows();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(place_text(rows[0].place), "timer (server.py:30)");
  EXPECT_FALSE(rows[0].holds_up.known());
  EXPECT_EQ(place_text(rows[1].place), "update (server.py:13)");
  EXPECT_EQ(place_text(rows[1].holder_waits), "write_log (server.py:10)");
  EXPECT_EQ(rows[1].holder_waits_for, model::WaitKind::kSleep);
  EXPECT_FALSE(rows[1].meanwhile.known());
  EXPECT_EQ(place_text(rows[2].place), "write_log (server.py:10)");
  EXPECT_EQ(place_text(rows[2].holds_up), "update (server.py:13)");
}

TEST(UserCode, ASleepInFrontOfALockHoldsNobodyUp) {
  LockedLog service;
  service.session.cpu.threads.push_back({1, 3, 0, model::kNone});
  service.session.cpu.waits = {
      {100'000'000, 200'000'000, 0, service.update, model::WaitKind::kLock},
      {50'000'000, 300'000'000, 1, service.write_log, model::WaitKind::kSleep},
      {60'000'000, 310'000'000, 2, service.write_log, model::WaitKind::kSleep}};
  for (const model::CpuWaitRow& row : service.rows()) {
    EXPECT_FALSE(row.holder_waits.known());
    EXPECT_FALSE(row.holds_up.known());
  }
}

TEST(UserCode, WaitsOfLibrariesAreNamedWithTheLibraryAndDelayNoOwnCode) {
  Service service;
  const std::uint32_t stack = service.stack(model::kNone, "read", "/glibc/io/read.c", 24);
  model::CpuFrame& read = service.session.cpu.frames.back();
  read.kind = model::FrameKind::kNative;
  read.module = service.session.strings.intern("/usr/lib/x86_64-linux-gnu/libc.so.6");
  service.session.cpu.waits = {{0, 900'000'000, 0, stack, model::WaitKind::kIo}};
  const auto rows = waits_by_function(service.session, user_code(service.session));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(place_text(rows[0].place), "read [libc.so.6]");
  EXPECT_FALSE(rows[0].own);
  EXPECT_FALSE(rows[0].idle);
}

TEST(UserCode, StandardLibrariesInAnExecutableAreNotTheProgramsOwn) {
  Service service;
  const auto is_own = [&](const char* name) {
    const std::uint32_t stack = service.stack(model::kNone, name, "");
    model::CpuFrame& frame = service.session.cpu.frames.back();
    frame.kind = model::FrameKind::kNative;
    frame.module = service.session.strings.intern("/home/me/program");
    frame.file = 0;
    return user_code(service.session).innermost[stack] != model::kNone;
  };
  for (const char* own : {"main",
                          "main.main",
                          "app::run",
                          "void app::sort<int*>(int*)",
                          "<program::Item as core::fmt::Display>::fmt"})
    EXPECT_TRUE(is_own(own)) << own;
  for (const char* library : {"_start",
                              "runtime.futex.abi0",
                              "internal/poll.(*FD).Read",
                              "std::rt::lang_start",
                              "void std::sort<int*>(int*, int*)",
                              "<u64 as core::ops::Add>::add",
                              "<alloc::vec::Vec<u8> as core::fmt::Write>::write_str"})
    EXPECT_FALSE(is_own(library)) << library;
}

TEST(CallTree, FoldsEqualTimesRecursionAndWhatIsDeepInALibrary) {
  Service service;
  const std::uint32_t main = service.stack(model::kNone, "main", "/srv/app/job.py", 1);
  const std::uint32_t step = service.stack(main, "step", "/srv/app/job.py", 5);
  const std::uint32_t recursive = service.again(step, step);
  const std::uint32_t loads =
      service.stack(recursive, "loads", "/usr/lib/python3.11/json/__init__.py", 299);
  const std::uint32_t scan =
      service.stack(loads, "scan", "/usr/lib/python3.11/json/scanner.py", 20);
  const std::uint32_t save = service.stack(step, "save", "/srv/app/job.py", 30);
  const UserCode code = user_code(service.session);
  const auto rows = CallTree(service.session, code).rows({{scan, {60, 0}}, {save, {10, 30}}});
  std::string text;
  for (const model::CpuTreeRow& row : rows) {
    text += std::string(row.depth, ' ');
    for (const model::CodePlace& place : row.chain)
      text += place.name + " ";
    text += std::to_string(static_cast<int>(row.cpu_ns)) + "+" +
            std::to_string(static_cast<int>(row.waiting_ns)) + "\n";
  }
  EXPECT_EQ(text,
            "main step 70+30\n"
            " loads 60+0\n"
            " save 10+30\n");
}

}  // namespace user_code_test
}  // namespace rangescope::analyze
