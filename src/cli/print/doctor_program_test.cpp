#include "cli/print/doctor_program.hpp"

#include <gtest/gtest.h>

#include <algorithm>
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

}  // namespace doctor_program_test
}  // namespace rangescope::cli
