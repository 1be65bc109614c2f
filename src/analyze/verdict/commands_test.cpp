#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analyze/verdict/program_test.hpp"

namespace rangescope::analyze {
namespace commands_test {

using verdict_test::kMs;
using verdict_test::kUs;

// Counters are measured in ranges of the program: a command without one would be refused.
TEST(Commands, CountersAreMeasuredInARangeOfTheProgram) {
  const auto commands = [](bool modules) {
    verdict_test::Program program;
    program.loop("step", 5, 10 * kMs, 2, 4900 * kUs);
    for (model::Range& range : program.session.ranges)
      range.module = modules;
    model::Report report = program.report();
    report.run.command = {"./app"};
    judge(report);
    std::vector<std::string> out;
    for (const model::Verdict& one : report.verdict)
      if (one.next.find("--metrics") != std::string::npos)
        out.push_back(one.next);
    return out;
  };
  const std::vector<std::string> found = commands(false);
  ASSERT_FALSE(found.empty());
  for (const std::string& command : found)
    EXPECT_TRUE(command.ends_with(" --include step -- ./app")) << command;
  EXPECT_TRUE(commands(true).empty());
}

}  // namespace commands_test
}  // namespace rangescope::analyze
