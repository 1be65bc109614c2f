#include "cli/print/doctor_program.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <span>
#include <string>

#include "base/text.hpp"

namespace rangescope::cli {
namespace doctor_program_test {

// A command of a way to measure is read on a terminal and pasted into one.
TEST(DoctorProgram, LongCommandsAreBrokenBetweenWords) {
  std::string command = "mkdir -p out && env A='b c' ncu";
  for (int i = 0; i < 20; ++i)
    command += " --option-" + std::to_string(i) + "='a value of " + std::to_string(i) + "'";
  command += " ./app 'it'\\''s  two  words, and so many that no line has room for them: " +
             std::string(40, '.') + "'";
  doctor::Way way;
  way.name = "ncu";
  way.works = true;
  way.command = command;
  const std::string text = program_text({}, std::span(&way, 1));
  const std::string_view begin = "       $ ", next = " \\\n         ";
  const std::size_t at = text.find(begin);
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_TRUE(
      base::replace_all(text.substr(at + begin.size()), next, " ").starts_with(command + "\n"))
      << text;
  for (const std::string_view line : base::split(text, '\n'))
    EXPECT_TRUE(line.size() <= 100 || line.find(" two ") != std::string_view::npos) << line;
  EXPECT_GE(std::count(text.begin(), text.end(), '\\'), 6);
}

using doctor::ProgramLook;
using doctor::RangeFacts;
using doctor::SeenRange;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

SeenRange seen(const std::string& name, std::uint64_t occurrences) {
  SeenRange range;
  range.path = {name};
  range.occurrences = occurrences;
  return range;
}

/// A program that uses CUDA, whose range `step` was asked for and occurred 8 times.
ProgramLook look_at_step() {
  ProgramLook look;
  look.facts.cuda = true;
  look.facts.ranges = {seen("step", 8)};
  RangeFacts& step = look.facts.meant.emplace_back();
  step.term.written = "step/";
  step.seen = {0};
  step.occurrences = 8;
  step.registered = 8;
  step.threads = step.processes = 1;
  step.kernels = 16;
  step.sequences = {8};
  return look;
}

/// The text about the range `step` once `change` was made to what was seen of it.
std::string text_about_step(const std::function<void(RangeFacts&)>& change) {
  ProgramLook look = look_at_step();
  change(look.facts.meant.front());
  return program_text(look, {});
}

TEST(DoctorProgram, AProgramThatDidNotStartHasNoText) {
  ProgramLook look = look_at_step();
  look.not_started = base::Error{base::Code::kNoInput, "no such program", {}, {}};
  EXPECT_EQ(program_text(look, {}), "");
}

TEST(DoctorProgram, SaysWhoEndedTheProgram) {
  ProgramLook look;
  look.ended.exit_code = 3;
  EXPECT_TRUE(contains(program_text(look, {}), "The program ended by exit code 3 after"));
  look.cut_short = true;
  EXPECT_TRUE(contains(program_text(look, {}), "The program was interrupted after"));
  look.ended.timed_out = true;
  EXPECT_TRUE(contains(program_text(look, {}), "was ended by the time limit of the probe run"));
  look.all_known = true;
  EXPECT_TRUE(contains(program_text(look, {}), "was ended early: everything was known"));
}

TEST(DoctorProgram, KernelsAreComparedFromInstanceToInstance) {
  EXPECT_TRUE(contains(text_about_step([](RangeFacts&) {}), "; the same kernels each time\n"));
  EXPECT_TRUE(contains(text_about_step([](RangeFacts& step) { step.shapes_differ = true; }),
                       "; the same kernels each time, in different launch shapes\n"));
  EXPECT_TRUE(contains(text_about_step([](RangeFacts& step) {
                         step.sequences = {5, 3};
                       }),
                       "; 2 different kernel sequences\n"));
  EXPECT_TRUE(contains(text_about_step([](RangeFacts& step) {
                         step.sequences = {7, 1};
                         step.only_first_differs = true;
                       }),
                       "; alike except for the first\n"));
}

TEST(DoctorProgram, OneInstanceOrNoKernelsAreNotComparable) {
  const auto once = [](RangeFacts& step) { step.occurrences = 1; };
  EXPECT_FALSE(contains(text_about_step(once), "each time"));
  EXPECT_FALSE(contains(text_about_step([](RangeFacts& step) { step.kernels = 0; }), "each time"));
}

TEST(DoctorProgram, WorkOfOtherThreadsIsSaidWhereItExplainsWhatIsMissing) {
  const auto other_threads = [](RangeFacts& step) {
    step.other_thread_kernels = 5;
    step.other_threads = 2;
  };
  EXPECT_FALSE(contains(text_about_step(other_threads), "other thread"));
  EXPECT_TRUE(contains(text_about_step([&](RangeFacts& step) {
                         other_threads(step);
                         step.kernels = 0;
                       }),
                       "; 5 kernels by 2 other threads"));
}

TEST(DoctorProgram, WithoutRecordedGpuWorkNothingIsSaidOfIt) {
  ProgramLook look = look_at_step();
  EXPECT_TRUE(contains(program_text(look, {}), "inside: 16 kernels, 0 copies"));
  look.facts.gpu_unavailable = "CUPTI is in use";
  EXPECT_FALSE(contains(program_text(look, {}), "inside:"));
}

TEST(DoctorProgram, ARangeThatDidNotOccurIsSaid) {
  EXPECT_TRUE(contains(text_about_step([](RangeFacts& step) { step.seen.clear(); }),
                       "  step/\n    not seen\n"));
}

TEST(DoctorProgram, OpenInstancesAreNoMedian) {
  const std::string text = text_about_step([](RangeFacts& step) { step.unclosed = 8; });
  EXPECT_TRUE(contains(text, "8 instances on 1 thread of 1 process; 8 still open at the end\n"))
      << text;
}

TEST(DoctorProgram, WithoutAChoiceTwentyRangesAreOfferedWithTheOptionThatTakesThem) {
  ProgramLook look;
  for (int number = 0; number < 22; ++number)
    look.facts.ranges.push_back(seen("my step " + std::to_string(number), 1));
  const std::string text = program_text(look, {});
  EXPECT_TRUE(contains(text, "  my step 0: 1 instance; --include 'my step 0/'\n")) << text;
  EXPECT_FALSE(contains(text, "my step 20"));
  EXPECT_TRUE(contains(text, "  and 2 more\n")) << text;
}

TEST(DoctorProgram, AWayThatDoesNotWorkHasItsReason) {
  std::vector<doctor::Way> ways(2);
  ways[0] = {.name = "native", .works = true, .reason = "it records ranges"};
  ways[1] = {.name = "ncu", .works = false, .reason = "no ncu was found"};
  const std::string text = program_text(look_at_step(), ways);
  EXPECT_TRUE(contains(text, "  yes  native: it records ranges\n")) << text;
  EXPECT_TRUE(contains(text, "  no   ncu: no ncu was found\n")) << text;
}

}  // namespace doctor_program_test
}  // namespace rangescope::cli
