// Programs that fork, cancel, jump and are killed at any instant behave as without the library, and
// what they finished is in the capture. A failure names the seed that shows it: `interrupted
// schedule TRUTH SEED`.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>

#include "harness.hpp"
#include "truth.hpp"

namespace rangescope::victims {
namespace {

class Interrupted : public Victim {
 protected:
  std::vector<std::string> command(const char* scenario, std::uint32_t seed = 1) {
    return {RANGESCOPE_INTERRUPTED, scenario, (folder_ / "truth").string(), std::to_string(seed)};
  }
  // Both ways; the truth is that of the recorded run.
  model::Session recorded(const char* scenario, std::uint32_t seed = 1) {
    const Outcome plain = run(command(scenario, seed), {}, folder_);
    fs::remove(folder_ / "truth");
    auto session = recorded_alone(command(scenario, seed));
    EXPECT_EQ(outcome_, plain);
    truth_ = Truth::open((folder_ / "truth").c_str());
    return session;
  }
  Truth* truth_ = nullptr;
};

std::uint64_t lost(const model::Session& session, std::string_view kind) {
  for (const model::Loss& loss : session.losses) {
    if (loss.kind.id() == kind)
      return loss.count;
  }
  return 0;
}

// Longer runs and other seeds: RANGESCOPE_SCHEDULE_SECONDS=60 (instead of RANGESCOPE_SCHEDULES),
// RANGESCOPE_SCHEDULE_SEED, RANGESCOPE_KILLS.
std::uint32_t number_in(const char* variable, std::uint32_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr || *text == '\0'
             ? otherwise
             : static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
}

// Ranges with these names that ended.
std::size_t closed_pairs(const model::Session& session) {
  std::size_t count = 0;
  for (const model::Range& range : session.ranges) {
    const auto name = session.strings.view(range.name);
    count += range.end_ns != model::kOpen && (name == "pair" || name.starts_with("name ")) ? 1 : 0;
  }
  return count;
}

TEST_F(Interrupted, ForkWhileAnotherThreadRegisters) {
  const auto session = recorded("fork_while_registering");
  EXPECT_EQ(outcome_.out, "hung 0\n");
  EXPECT_EQ(closed(session, "pair"), 100u);
  EXPECT_EQ(session.processes.size(), 101u);
}

TEST_F(Interrupted, ForkAndAnotherThreadOfTheChildComesFirst) {
  EXPECT_EQ(show(recorded("fork_then_thread")),
            "p0: parent 2\n"
            "p1: thread of child 1\n"
            "p1: <span of child> 1\n"
            "p1: child 1\n");
}

TEST_F(Interrupted, HooksAreNoCancellationPoints) {
  const auto session = recorded("cancel_with_lock");
  EXPECT_EQ(outcome_.out, "locked 0\n");
  EXPECT_EQ(closed(session, "pair"), 50u * 2001u);
}

TEST_F(Interrupted, HandlersThatRegister) {
  if (kHandlersAreCalls)
    GTEST_SKIP() << "ThreadSanitizer calls handlers as functions (harness.hpp)";
  const auto session = recorded("handler_registers");
  EXPECT_EQ(outcome_.ended, "exit 0");
  EXPECT_EQ(closed(session, "calm"), 5u);
  EXPECT_EQ(session.domains.size(),
            65u);  // equal names are one, whoever makes them at the same time
  for (const model::Loss& loss : session.losses)
    EXPECT_EQ(loss.kind.id(), "reentrant_event");
}

TEST_F(Interrupted, HandlersThatNeverComeBack) {
  if (kHandlersAreCalls)
    GTEST_SKIP() << "ThreadSanitizer calls handlers as functions (harness.hpp)";
  for (const char* scenario :
       {"handler_jumps", "handler_jumps_from_own_stack", "handler_jumps_and_calls_go_deeper"}) {
    SCOPED_TRACE(scenario);
    // Under AddressSanitizer the program dies of a jump off an alternate stack, also without the
    // library (github.com/google/sanitizers/issues/189).
    if (kSanitized && std::string_view(scenario) == "handler_jumps_from_own_stack")
      continue;
    const auto session = recorded(scenario);
    EXPECT_EQ(outcome_.ended, "exit 0");
    EXPECT_EQ(closed(session, "calm"), 5u);
    EXPECT_GT(lost(session, "abandoned_call"), 0u);
    EXPECT_GE(closed_pairs(session) + lost(session, "reentrant_event"), truth_->done.load());
    EXPECT_LE(closed_pairs(session), truth_->begun.load());
    EXPECT_LE(lost(session, "reentrant_event") * 100, truth_->done.load());
    EXPECT_FALSE(has_loss(session, "damaged_records"));
  }
}

TEST_F(Interrupted, KilledAHundredTimes) {
  const auto seed = number_in("RANGESCOPE_SCHEDULE_SEED", 1);
  std::mt19937 random(seed);
  std::uint64_t done = 0;
  for (int round = 0;
       round < static_cast<int>(number_in("RANGESCOPE_KILLS", kSanitized ? 10 : 100));
       ++round) {
    std::error_code error;
    fs::remove_all(folder_ / "captures", error);
    fs::remove(folder_ / "truth", error);
    const auto delay = std::chrono::microseconds(500 + random() % 30000);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", round " + std::to_string(round) +
                 ", killed after " + std::to_string(delay.count()) + " us");
    auto argv_texts = command("work_for_ever");
    std::vector<char*> argv;
    for (std::string& text : argv_texts)
      argv.push_back(text.data());
    argv.push_back(nullptr);
    auto env_texts = environment({{"NVTX_INJECTION64_PATH", RANGESCOPE_LIBRARY},
                                  {"RANGESCOPE_DIR", (folder_ / "captures").string()}});
    std::vector<char*> env;
    for (std::string& text : env_texts)
      env.push_back(text.data());
    env.push_back(nullptr);
    const Truth* truth = Truth::open((folder_ / "truth").c_str());
    ASSERT_NE(truth, nullptr);
    pid_t child = 0;
    ASSERT_EQ(posix_spawn(&child, argv[0], nullptr, nullptr, argv.data(), env.data()), 0);
    // Odd rounds kill what works, however slow the machine is; even ones also what still starts.
    const auto latest = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (round % 2 == 1 && truth->done.load() < 20 && std::chrono::steady_clock::now() < latest)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(delay);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const auto session = captured();
    EXPECT_GE(closed(session, "pair"), truth->done.load());
    EXPECT_LE(closed(session, "pair"), truth->begun.load());
    EXPECT_FALSE(has_loss(session, "damaged_records"));
    done += truth->done.load();
  }
  EXPECT_GT(done, 100u);
}

TEST_F(Interrupted, Schedules) {
  if (kHandlersAreCalls)
    GTEST_SKIP() << "ThreadSanitizer calls handlers as functions (harness.hpp)";
  using Clock = std::chrono::steady_clock;
  const auto seconds = number_in("RANGESCOPE_SCHEDULE_SECONDS", 0);
  const auto first = number_in("RANGESCOPE_SCHEDULE_SEED", 1),
             count = number_in("RANGESCOPE_SCHEDULES", kSanitized ? 10 : 40);
  const auto until = Clock::now() + std::chrono::seconds(seconds);
  for (std::uint32_t seed = first; seconds > 0 ? Clock::now() < until : seed < first + count;
       ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::error_code error;
    fs::remove(folder_ / "truth", error);
    const auto session = recorded("schedule", seed);
    ASSERT_NE(truth_, nullptr);
    EXPECT_EQ(truth_->others.load(), 0u) << "children that ended otherwise";
    // Of what a handler did inside a hook nothing is recorded: it is counted, by call.
    EXPECT_GE(closed(session, "pair") + lost(session, "reentrant_event"), truth_->done.load());
    EXPECT_LE(closed(session, "pair"), truth_->begun.load());
    for (const model::Loss& loss : session.losses)
      EXPECT_EQ(loss.kind.id(), "reentrant_event");
    if (HasFailure())
      break;
  }
}

}  // namespace
}  // namespace rangescope::victims
