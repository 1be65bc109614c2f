// What a sampler writes of records as the kernel gives them. Processes have numbers that no process
// has, so that /proc says nothing of them.
#include "sample/cpu/sampler.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/temporary_folder.hpp"
#include "sample/blocks_test.hpp"
#include "sample/cpu/counters.hpp"

namespace rangescope::sample::cpu {
namespace sampler_test {

using Lines = std::vector<std::string>;
using wire::cpu::Unpacker;

constexpr std::uint32_t kPid = 5'000'000, kThread = 5'000'001, kOther = 5'000'002,
                        kChild = 5'000'010;
constexpr std::int64_t kMs = 1'000'000;

std::string name_of(std::uint64_t kind) {
  constexpr const char* kNames[] = {"other", "lock", "io", "sleep", "preempted", "gil", "child"};
  const bool stands_for_more = (kind & wire::cpu::kStandsForMore) != 0;
  return std::string(kNames[kind & 7]) + (stands_for_more ? " and more" : "");
}

/// A sampler and what its file holds, as lines. Times are in ms.
class Sampling : public ::testing::Test {
 protected:
  void make(std::uint64_t most_bytes = 1 << 20) {
    auto file = BlockFile::create(path, wire::cpu::kMagic, wire::cpu::kVersion);
    ASSERT_TRUE(file);
    made = std::make_unique<Sampler>(std::move(*file), "interval_ns 1000\n", most_bytes);
  }
  void SetUp() override { make(); }
  Sampler& sampler() { return *made; }
  void finish(std::int64_t at_ms = 1000, std::span<const CounterTotal> totals = {}) {
    sampler().finish(at_ms * kMs, "", 0, totals);
  }
  void sample(std::uint32_t tid, std::int64_t at_ms, std::vector<std::uint64_t> chain = {}) {
    Sample record;
    record.pid = kPid;
    record.tid = tid;
    record.at_ns = at_ms * kMs;
    record.chain = chain;
    sampler().sample(record);
  }
  void leaves(std::uint32_t tid, std::int64_t at_ms, bool preempted = false) {
    sampler().switched({kPid, tid}, at_ms * kMs, true, preempted);
  }
  void returns(std::uint32_t tid, std::int64_t at_ms) {
    sampler().switched({kPid, tid}, at_ms * kMs, false, false);
  }

  [[nodiscard]] Unpacker unpacker(const written::Block& block) const {
    return Unpacker(block.bytes);
  }
  /// Items of all blocks of a type, each as `line` reads it.
  template <class Line>
  Lines lines(wire::samples::Type type, const Line& line) const {
    Lines out;
    for (const written::Block& block : written::blocks_of(path, type)) {
      Unpacker in(block.bytes);
      std::int64_t time_ns = 0;
      for (std::uint32_t item = 0; item < block.items; ++item)
        out.push_back(line(in, time_ns));
      EXPECT_TRUE(in.good() && in.empty());
    }
    return out;
  }
  /// "TID NAME", by number.
  [[nodiscard]] Lines threads() const {
    return lines(wire::cpu::kThreads, [](Unpacker& in, std::int64_t&) {
      (void)in.number();
      std::string thread = std::to_string(in.number());
      (void)in.number();
      (void)in.number();
      return thread + " " + std::string(in.text());
    });
  }
  /// "thread NUMBER: KIND BEGIN+LENGTH".
  [[nodiscard]] Lines waits() const {
    return lines(wire::cpu::kWaits, [](Unpacker& in, std::int64_t& time_ns) {
      time_ns += in.difference();
      const std::uint64_t length_ns = in.number();
      const std::uint64_t thread = in.number();
      const std::string kind = name_of(in.number());
      (void)in.number();
      return "thread " + std::to_string(thread) + ": " + kind + " " +
             std::to_string(time_ns / kMs) + "+" + std::to_string(length_ns / kMs);
    });
  }
  /// "thread NUMBER at TIME: FRAME FRAME", the outermost first; native frames by their address.
  [[nodiscard]] Lines samples() const {
    Lines frames;
    for (const std::string& frame :
         lines(wire::cpu::kFrames, [](Unpacker&in, std::int64_t&) -> std::string {
           const auto kind = static_cast<wire::cpu::FrameKind>(in.number());
           if (kind == wire::cpu::FrameKind::kCut)
             return "cut";
           (void)in.number();  // module
           char address[24];
           std::snprintf(
               address, sizeof address, "%llx", static_cast<unsigned long long>(in.number()));
           return address;
         }))
      frames.push_back(frame);
    Lines stacks = {""};
    lines(wire::cpu::kStacks, [&](Unpacker& in, std::int64_t&) {
      const std::string outer = stacks.at(in.number());
      stacks.push_back(outer + " " + frames.at(in.number()));
      return "";
    });
    return lines(wire::cpu::kSamples, [&](Unpacker& in, std::int64_t& time_ns) {
      time_ns += in.difference();
      const std::uint64_t thread = in.number();
      return "thread " + std::to_string(thread) + " at " + std::to_string(time_ns / kMs) + ":" +
             stacks.at(in.number());
    });
  }
  /// "PID of PARENT: NAME BEGIN+LENGTH".
  [[nodiscard]] Lines processes() const {
    return lines(wire::cpu::kProcesses, [](Unpacker& in, std::int64_t&) {
      const std::uint64_t pid = in.number(), parent = in.number(), start_ns = in.number(),
                          length_ns = in.number();
      return std::to_string(pid) + " of " + std::to_string(parent) + ": " + std::string(in.text()) +
             " " + std::to_string(start_ns / kMs) + "+" + std::to_string(length_ns / kMs);
    });
  }
  [[nodiscard]] Lines events(wire::samples::EventKind kind) const {
    return written::events_of(path, kind);
  }
  [[nodiscard]] std::string end() const {
    const auto blocks = written::blocks_of(path, wire::samples::Type::kEnd);
    return blocks.empty() ? "" : blocks[0].bytes;
  }

  const base::TemporaryFolder folder{"rangescope-sampler"};
  const std::filesystem::path path = folder.path() / "program.cpu";
  std::unique_ptr<Sampler> made;
};

// --- waits ---

TEST_F(Sampling, AWaitLastsFromTheSwitchAwayToTheSwitchBack) {
  leaves(kThread, 10);
  returns(kThread, 17);
  leaves(kThread, 20, true);
  returns(kThread, 21);
  finish();
  EXPECT_EQ(waits(), (Lines{"thread 0: other 10+7", "thread 0: preempted 20+1"}));
}

TEST_F(Sampling, AWaitThatLastsUntilTheEndOfTheProgramEndsThere) {
  leaves(kThread, 10);
  finish(250);
  EXPECT_EQ(waits(), Lines{"thread 0: other 10+240"});
}

TEST_F(Sampling, ASwitchBackWithoutOneAwayIsNoWait) {
  returns(kThread, 17);
  finish();
  EXPECT_TRUE(waits().empty());
}

TEST_F(Sampling, ANewThreadWaitsForACoreUntilItRuns) {
  sampler().forked({kPid, kThread, kPid, kPid}, 5 * kMs);
  returns(kThread, 8);
  finish();
  EXPECT_EQ(waits(), Lines{"thread 0: preempted 5+3"});
}

// Where /proc is read instead of the kernel's records, who runs all the time never switches.
TEST_F(Sampling, ANewThreadThatIsSampledDoesNotWait) {
  sampler().forked({kPid, kThread, kPid, kPid}, 5 * kMs);
  sample(kThread, 15);
  finish();
  EXPECT_TRUE(waits().empty());
}

TEST_F(Sampling, TheIdleThreadOfACoreDoesNotWait) {
  sampler().switched({0, 0}, 1 * kMs, true, false);
  sampler().switched({0, 0}, 2 * kMs, false, false);
  finish();
  EXPECT_TRUE(waits().empty());
  EXPECT_TRUE(threads().empty());
}

TEST_F(Sampling, AThreadThatEndsWaitsNoLonger) {
  leaves(kThread, 10);
  sampler().ended({kPid, kThread}, 30 * kMs);
  finish();
  EXPECT_EQ(waits(), Lines{"thread 0: other 10+20"});
}

// --- what a thread waits for: the system call before the place that it returns to ---

/// Code of this process that makes a system call, and the registers of a thread that is in it.
class InCall : public Sampling {
 protected:
  void SetUp() override {
    make();
    const auto code = reinterpret_cast<std::uint64_t>(bytes);
    sampler().mapped({pid, code, sizeof bytes, 0, "//anon", true});
  }
  void waits_in(std::uint8_t low, std::uint8_t high, std::uint64_t first = 0) {
    bytes[25] = low;
    bytes[26] = high;
    Sample left;
    left.pid = pid;
    left.tid = kThread;
    left.registers = true;
    left.values[0] = static_cast<std::uint64_t>(-ENOSYS);
    left.values[kRdi] = first;
    left.values[kRip] = reinterpret_cast<std::uint64_t>(bytes) + 31;
    sampler().leaves(left);
    sampler().switched({pid, kThread}, 10 * kMs, true, false);
  }
  void returns() { sampler().switched({pid, kThread}, 20 * kMs, false, false); }
  const std::uint32_t pid = static_cast<std::uint32_t>(::getpid());
  unsigned char bytes[32] = {0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
                             0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
                             0x90, 0x90, 0xb8, 0,    0,    0,    0,    0x0f, 0x05, 0x90};
};

TEST_F(InCall, ThreadsSleepInNanosleep) {
  waits_in(SYS_nanosleep, 0);
  returns();
  finish();
  EXPECT_EQ(waits(), Lines{"thread 0: sleep 10+10"});
}

TEST_F(InCall, ThreadsWaitForAChildInWait4) {
  waits_in(SYS_wait4, 0);
  returns();
  finish();
  EXPECT_EQ(waits(), Lines{"thread 0: child 10+10"});
}

TEST_F(InCall, RegistersOfOneWaitSayNothingOfTheNext) {
  waits_in(SYS_nanosleep, 0);
  returns();
  sampler().switched({pid, kThread}, 30 * kMs, true, false);
  sampler().switched({pid, kThread}, 35 * kMs, false, false);
  finish();
  EXPECT_EQ(waits(), (Lines{"thread 0: sleep 10+10", "thread 0: other 30+5"}));
}

TEST_F(InCall, OutsideOfASystemCallAThreadWaitsForMemory) {
  Sample left;
  left.pid = pid;
  left.tid = kThread;
  left.registers = true;
  left.values[0] = 1;  // no result of a system call is due
  sampler().leaves(left);
  sampler().switched({pid, kThread}, 10 * kMs, true, false);
  returns();
  finish();
  EXPECT_EQ(waits(), Lines{"thread 0: io 10+10"});
}

TEST_F(InCall, ThePreemptedWaitForACoreWhateverTheyWereDoing) {
  waits_in(SYS_nanosleep, 0);
  returns();
  Sample left;
  left.pid = pid;
  left.tid = kThread;
  left.registers = true;
  sampler().leaves(left);
  sampler().switched({pid, kThread}, 30 * kMs, true, true);
  sampler().switched({pid, kThread}, 31 * kMs, false, false);
  finish();
  EXPECT_EQ(waits()[1], "thread 0: preempted 30+1");
}

TEST_F(InCall, AMutexSaysWhichThreadHasIt) {
  // struct __pthread_mutex_s: locked with waiters, owner, one user
  const std::uint32_t mutex[] = {2, 0, kOther, 1, 0};
  sampler().found_thread({pid, kOther}, "holder");
  waits_in(
      static_cast<std::uint8_t>(SYS_futex), SYS_futex >> 8, reinterpret_cast<std::uint64_t>(mutex));
  sampler().ask_for_calls();
  returns();
  finish();
  EXPECT_EQ(waits(), Lines{"thread 1: lock 10+10"});
  EXPECT_EQ(threads()[0], std::to_string(kOther) + " holder");
  EXPECT_EQ(lines(wire::cpu::kHolders,
                  [](Unpacker& in, std::int64_t& time_ns) {
                    time_ns += in.difference();
                    const std::uint64_t waiting = in.number(), holder = in.number();
                    return std::to_string(time_ns / kMs) + ": " + std::to_string(waiting) +
                           " waits for " + std::to_string(holder);
                  }),
            Lines{"10: 1 waits for 0"});
}

// --- switches that are recorded for a part of the time only ---

TEST_F(Sampling, WhatSwitchedInTheWindowGoesOnBehindTheBlindTime) {
  leaves(kThread, 98);
  sampler().watching_ends(100 * kMs);
  sampler().watching_begins(260 * kMs);
  returns(kThread, 262);
  finish();
  EXPECT_EQ(waits(), (Lines{"thread 0: other 98+2", "thread 0: other and more 260+2"}));
  EXPECT_EQ(lines(wire::cpu::kBlind,
                  [](Unpacker& in, std::int64_t& time_ns) {
                    time_ns += in.difference();
                    return std::to_string(time_ns / kMs) + "+" + std::to_string(in.number() / kMs);
                  }),
            Lines{"100+160"});
}

TEST_F(Sampling, WhoSleptLongBeforeTheBlindTimeSleepsThroughIt) {
  leaves(kThread, 50);
  sampler().watching_ends(100 * kMs);
  sampler().watching_begins(260 * kMs);
  returns(kThread, 262);
  finish();
  EXPECT_EQ(waits(), Lines{"thread 0: other 50+212"});
}

TEST_F(Sampling, ASampleInTheBlindTimeShowsThatAThreadSleepsNoMore) {
  leaves(kThread, 50);
  sampler().watching_ends(100 * kMs);
  sample(kThread, 150);
  sampler().watching_begins(260 * kMs);
  finish();
  EXPECT_EQ(waits(), Lines{"thread 0: other 50+50"});
}

TEST_F(Sampling, ASwitchBackFirstInAWindowMeansAWaitFromItsBegin) {
  returns(kThread, 90);
  sampler().watching_ends(100 * kMs);
  sampler().watching_begins(260 * kMs);
  returns(kThread, 263);
  finish();
  EXPECT_EQ(waits(), Lines{"thread 0: other and more 260+3"});
}

TEST_F(Sampling, ABlindTimeLastsUntilTheEndAtMost) {
  sampler().watching_ends(100 * kMs);
  finish(180);
  EXPECT_EQ(lines(wire::cpu::kBlind,
                  [](Unpacker& in, std::int64_t& time_ns) {
                    time_ns += in.difference();
                    return std::to_string(time_ns / kMs) + "+" + std::to_string(in.number() / kMs);
                  }),
            Lines{"100+80"});
}

// --- threads and processes ---

TEST_F(Sampling, AThreadHasItsOwnNameOrThatOfItsProcess) {
  sampler().named({kPid, kPid}, "server", true);
  sampler().named({kPid, kThread}, "worker", false);
  sample(kThread, 1);
  sample(kOther, 2);
  finish();
  EXPECT_EQ(threads(),
            (Lines{std::to_string(kThread) + " worker", std::to_string(kOther) + " server"}));
}

TEST_F(Sampling, AnotherProgramInTheSameProcessIsAnotherThread) {
  sampler().named({kPid, kPid}, "shell", true);
  sample(kPid, 1);
  sampler().named({kPid, kPid}, "program", true);
  sample(kPid, 2);
  finish();
  EXPECT_EQ(threads(), (Lines{std::to_string(kPid) + " shell", std::to_string(kPid) + " program"}));
  EXPECT_EQ(samples(), (Lines{"thread 0 at 1:", "thread 1 at 2:"}));
}

TEST_F(Sampling, AProgramThatReplacesAnotherIsReported) {
  std::vector<std::uint32_t> executed;
  sampler().on_exec([&](std::uint32_t pid) { executed.push_back(pid); });
  sampler().named({kPid, kThread}, "thread's own name", false);
  sampler().named({kChild, kChild}, "program", true);
  EXPECT_EQ(executed, std::vector<std::uint32_t>{kChild});
}

TEST_F(Sampling, AThreadIsWrittenWithTheThreadThatStartedIt) {
  sampler().forked({kPid, kThread, kPid, kPid}, 1 * kMs);
  sampler().forked({kPid, kOther, kPid, kThread}, 2 * kMs);
  sampler().forked({kChild, kChild, kPid, kPid}, 3 * kMs);
  sample(kThread, 4);
  sample(kOther, 5);
  finish();
  const Lines all = threads();
  const auto tid = [&](std::uint64_t number) { return all.at(number).substr(0, 7); };
  EXPECT_EQ(lines(wire::cpu::kCreators,
                  [&](Unpacker& in, std::int64_t&) {
                    const std::string started = tid(in.number());
                    return started + " by " + tid(in.number());
                  }),
            Lines{std::to_string(kOther) + " by " + std::to_string(kThread)})
      << "a process is started by no thread of its own; the first thread was never seen";
}

TEST_F(Sampling, AProcessLastsFromItsForkToTheEndOfItsLastThread) {
  sampler().named({kPid, kPid}, "server", true);
  sampler().forked({kChild, kChild, kPid, kPid}, 10 * kMs);
  sampler().named({kChild, kChild}, "worker", true);
  sampler().forked({kChild, kChild + 1, kChild, kChild}, 11 * kMs);
  sampler().ended({kChild, kChild}, 20 * kMs);
  sampler().ended({kChild, kChild + 1}, 35 * kMs);
  sampler().flush();
  const Lines written = processes();
  ASSERT_FALSE(written.empty());
  EXPECT_EQ(written[0], std::to_string(kChild) + " of " + std::to_string(kPid) + ": worker 10+25");
}

TEST_F(Sampling, AForkedProcessHasTheNameAndCodeOfItsParent) {
  sampler().named({kPid, kPid}, "server", true);
  sampler().mapped({kPid, 0x1000, 0x1000, 0, "//anon", true});
  sampler().forked({kChild, kChild, kPid, kPid}, 10 * kMs);
  Sample record;
  const std::uint64_t chain[] = {0x1010};
  record.pid = record.tid = kChild;
  record.at_ns = 11 * kMs;
  record.chain = chain;
  sampler().sample(record);
  sampler().ended({kChild, kChild}, 20 * kMs);
  sampler().flush();
  EXPECT_EQ(processes()[0],
            std::to_string(kChild) + " of " + std::to_string(kPid) + ": server 10+10");
  EXPECT_EQ(samples(), Lines{"thread 0 at 11: cut 1010"});
}

TEST_F(Sampling, AnotherProgramLosesTheCodeOfTheOneBefore) {
  sampler().mapped({kPid, 0x1000, 0x1000, 0, "//anon", true});
  sampler().named({kPid, kPid}, "program", true);
  sample(kPid, 1, {0x1010});
  finish();
  EXPECT_EQ(samples(), Lines{"thread 0 at 1: cut"});
}

TEST_F(Sampling, ThreadsThatEndBeforeTheirFirstSampleAreCountedWithTheirTime) {
  sampler().forked({kPid, kThread, kPid, kPid}, 10 * kMs);
  returns(kThread, 11);
  leaves(kThread, 13);
  returns(kThread, 20);
  sampler().ended({kPid, kThread}, 21 * kMs);
  sampler().forked({kPid, kOther, kPid, kPid}, 30 * kMs);
  returns(kOther, 31);
  sample(kOther, 32);
  sampler().ended({kPid, kOther}, 33 * kMs);
  finish();
  EXPECT_EQ(sampler().short_lives(), 2u);
  EXPECT_EQ(events(wire::cpu::kShortThreads), Lines{"1 " + std::to_string(3 * kMs)});
}

// --- a program that ran before the recording ---

TEST_F(Sampling, BeforeTheWindowNothingCounts) {
  sampler().waits_for_window();
  sample(kThread, 10);
  leaves(kOther, 20);
  sampler().window_begins(100 * kMs, [](const Task&) { return false; });
  returns(kOther, 120);
  sample(kThread, 130);
  finish();
  EXPECT_EQ(samples(), Lines{"thread 1 at 130:"});
  EXPECT_EQ(waits(), Lines{"thread 0: other 100+20"}) << "of the wait what lies in the window";
}

TEST_F(Sampling, WhoSleepsWhenTheWindowBeginsWaitsFromThereOn) {
  sampler().waits_for_window();
  sampler().found_thread({kPid, kThread}, "sleeps");
  sampler().found_thread({kPid, kOther}, "runs");
  sampler().window_begins(100 * kMs, [](const Task& task) { return task.tid == kThread; });
  returns(kThread, 150);
  returns(kOther, 150);
  finish();
  EXPECT_EQ(threads(), Lines{std::to_string(kThread) + " sleeps"});
  EXPECT_EQ(waits(), Lines{"thread 0: other 100+50"});
}

TEST_F(Sampling, ThreadsThatEndedBeforeTheWindowAreNotMissing) {
  sampler().waits_for_window();
  sampler().forked({kPid, kThread, kPid, kPid}, 10 * kMs);
  sampler().ended({kPid, kThread}, 20 * kMs);
  sampler().window_begins(100 * kMs, [](const Task&) { return false; });
  finish();
  EXPECT_EQ(sampler().short_lives(), 1u);
  EXPECT_TRUE(events(wire::cpu::kShortThreads).empty());
}

TEST_F(Sampling, AProcessThatRanBeforeBeginsWithTheWindow) {
  sampler().waits_for_window();
  sampler().found(kPid, 1, "server");
  sampler().found(kPid, 1, "another name");  // it has one
  sampler().window_begins(100 * kMs, [](const Task&) { return false; });
  sampler().found_thread({kPid, kPid}, "server");
  sampler().ended({kPid, kPid}, 140 * kMs);
  sampler().flush();
  EXPECT_EQ(processes(), Lines{std::to_string(kPid) + " of 1: server 100+40"});
}

// --- frames ---

TEST_F(Sampling, StacksAreTreesOfFramesThatAreWrittenOnce) {
  sampler().mapped({kPid, 0x1000, 0x1000, 0, "//anon", true});
  sample(kThread, 1, {0x1010, 0x1101});
  sample(kThread, 2, {0x1020, 0x1101});
  sample(kThread, 3, {0x1010, 0x1101});
  finish();
  EXPECT_EQ(samples(),
            (Lines{"thread 0 at 1: cut 1100 1010",
                   "thread 0 at 2: cut 1100 1020",
                   "thread 0 at 3: cut 1100 1010"}))
      << "a caller is at the byte before the place that is returned to";
  const auto frames = written::blocks_of(path, wire::cpu::kFrames);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].items, 4u) << "the cut, two functions and their caller";
}

TEST_F(Sampling, CodeThatIsOnlyMappedToBeReadIsNoFrame) {
  sampler().mapped({kPid, 0x1000, 0x1000, 0, "//anon", false});
  sample(kThread, 1, {0x1010});
  finish();
  EXPECT_EQ(samples(), Lines{"thread 0 at 1: cut"});
}

TEST_F(Sampling, TheKernelIsTheInnermostFrame) {
  sampler().mapped({kPid, 0x1000, 0x1000, 0, "//anon", true});
  const std::uint64_t chain[] = {0x1010}, in_kernel[] = {0xff20, 0xff11};
  Sample record;
  record.pid = record.tid = kPid;
  record.chain = chain;
  record.kernel = true;
  sampler().sample(record);
  record.in_kernel = in_kernel;
  sampler().sample(record);
  finish();
  EXPECT_EQ(samples(), (Lines{"thread 0 at 0: cut 1010 0", "thread 0 at 0: cut 1010 ff10 ff20"}));
}

// --- counters, limits and losses ---

TEST_F(Sampling, ACounterThatTheSystemRefusesIsListedWithTheReason) {
  const CounterEvent counters[] = {*counter_event("cycles"),
                                   *counter_event("page-faults"),
                                   *counter_event("instructions"),
                                   *counter_event("context-switches")};
  const int refused[] = {ENOENT, 0, EOPNOTSUPP, EACCES};
  sampler().describe(counters, refused);
  finish();
  EXPECT_EQ(lines(wire::cpu::kCounters,
                  [](Unpacker& in, std::int64_t&) {
                    const std::string name(in.text());
                    const std::uint64_t period = in.number();
                    return name + " " + std::to_string(period) + " " + std::to_string(in.number());
                  }),
            (Lines{"cycles 10000019 0",
                   "page-faults 1 1",
                   "instructions 10000019 0",
                   "context-switches 1 0"}));
  const Lines missing = events(wire::cpu::kNotCounted);
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_TRUE(missing[0].starts_with("3 cycles: this machine does not provide this counter"));
  EXPECT_NE(missing[0].find("; context-switches: it counts in the kernel"), std::string::npos);
  EXPECT_NE(missing[0].find("; instructions: this machine"), std::string::npos);
}

TEST_F(Sampling, WhereEveryCounterIsCountedNoneIsMissing) {
  const CounterEvent counter = *counter_event("page-faults");
  const int refused = 0;
  sampler().describe({&counter, 1}, {&refused, 1});
  sampler().counted({kPid, kThread}, 7 * kMs, 0);
  const CounterTotal total{12, 100, 200};
  finish(1000, {&total, 1});
  EXPECT_TRUE(events(wire::cpu::kNotCounted).empty());
  const auto three_numbers = [](Unpacker& in, std::int64_t&) {
    const std::uint64_t first = in.number(), second = in.number();
    return std::to_string(first) + " " + std::to_string(second) + " " + std::to_string(in.number());
  };
  EXPECT_EQ(lines(wire::cpu::kTotals, three_numbers), Lines{"12 100 200"});
  EXPECT_EQ(lines(wire::cpu::kCounts,
                  [](Unpacker& in, std::int64_t&) {
                    const std::int64_t at_ms = in.difference() / kMs;
                    const std::uint64_t thread = in.number();
                    return std::to_string(at_ms) + " " + std::to_string(thread) + " " +
                           std::to_string(in.number());
                  }),
            Lines{"7 0 0"});
}

TEST_F(Sampling, AFileAtItsLimitTakesNothingMoreAndSaysSo) {
  make(1);
  sample(kThread, 1);
  sampler().flush();
  sample(kThread, 2);
  leaves(kThread, 3);
  returns(kThread, 5);
  sampler().counted({kPid, kThread}, 6 * kMs, 0);
  finish();
  EXPECT_EQ(samples(), Lines{"thread 0 at 1:"});
  EXPECT_TRUE(waits().empty());
  EXPECT_TRUE(written::blocks_of(path, wire::cpu::kCounts).empty());
  EXPECT_EQ(events(wire::cpu::kBounded), Lines{"1 the file of CPU samples reached its size limit"});
}

TEST_F(Sampling, TheEndCountsSamplesAndWhatTheKernelLost) {
  sample(kThread, 1);
  sample(kThread, 2);
  sampler().lost(3);
  sampler().lost(4);
  sampler().throttled();
  sampler().finish(1000 * kMs, "", 77, {});
  EXPECT_EQ(end(), "cpu_ns 77\nlost 7\nsamples 2\npython_late 0\n");
  EXPECT_EQ(events(wire::cpu::kThrottled), Lines{"1 "});
}

TEST_F(Sampling, SamplesMayWaitForUsOnceAProgramHasSettled) {
  const std::int64_t begun = now_ns();
  sampler().named({kPid, kPid}, "program", true);
  EXPECT_FALSE(sampler().patient(begun));
  EXPECT_TRUE(sampler().patient(now_ns() + 301 * kMs));
}

}  // namespace sampler_test
}  // namespace rangescope::sample::cpu
