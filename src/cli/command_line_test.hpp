// Command lines in a test: words in, and what the command answers, in the test's own process.
#pragma once

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fs.hpp"
#include "base/source_dir.hpp"
#include "base/temporary_folder.hpp"
#include "cli/app.hpp"
#include "cli/subcommand.hpp"

namespace rangescope::cli {
namespace command_line_test {

using Words = std::vector<std::string>;

struct Answer {
  int code = 0;
  std::string out, err;  ///< on standard output and standard error
};

/// What `rangescope WORDS` answers, with these commands only.
inline Answer answer_of(const std::vector<std::unique_ptr<Subcommand>>& commands, Words words) {
  words.insert(words.begin(), "rangescope");
  std::vector<char*> argv;
  for (std::string& word : words)
    argv.push_back(word.data());
  Answer answer;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  answer.code = run_app(static_cast<int>(argv.size()), argv.data(), commands);
  answer.err = testing::internal::GetCapturedStderr();
  answer.out = testing::internal::GetCapturedStdout();
  return answer;
}

inline Answer answer_of(MakeSubcommand* make, Words words) {
  std::vector<std::unique_ptr<Subcommand>> commands;
  commands.push_back(make());
  words.insert(words.begin(), std::string(commands.front()->name()));
  return answer_of(commands, std::move(words));
}

/// Has the text this part?
inline bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// A command that declares what a test asks for, runs what it asks for, and takes a program if it
/// asks for one.
class DeclaredCommand : public Subcommand {
 public:
  using Declare = std::function<void(const Arguments&)>;
  using Run = std::function<base::Result<int>(const Words& program)>;
  DeclaredCommand(std::string_view name, bool takes_program, Declare declare, Run run)
      : Subcommand(name, takes_program), declare_(std::move(declare)), run_(std::move(run)) {}
  void options(const Arguments& app) override {
    if (declare_)
      declare_(app);
  }
  base::Result<int> run() override { return run_ ? run_(program_) : base::Result<int>(0); }

 private:
  Declare declare_;
  Run run_;
};

inline Answer answer_of(std::unique_ptr<DeclaredCommand> command, Words words) {
  words.insert(words.begin(), std::string(command->name()));
  std::vector<std::unique_ptr<Subcommand>> commands;
  commands.push_back(std::move(command));
  return answer_of(commands, std::move(words));
}

/// An empty folder that the test works in, with the shipped configuration, nothing else in the
/// environment, and an empty standard input.
class InAFolder : public ::testing::Test {
 protected:
  InAFolder() {
    for (char** variable = environ; *variable != nullptr; ++variable)
      environment_before_.emplace_back(*variable);
    ::clearenv();
    ::setenv("HOME", folder().c_str(), 1);
    ::setenv("PATH", folder().c_str(), 1);
    ::setenv("RANGESCOPE_CONF", (std::string(base::source_dir) + "/conf").c_str(), 1);
    std::filesystem::current_path(folder());
    input_before_ = ::dup(STDIN_FILENO);
    const int nothing = ::open("/dev/null", O_RDONLY);
    ::dup2(nothing, STDIN_FILENO);
    ::close(nothing);
  }
  ~InAFolder() override {
    if (input_before_ >= 0) {
      ::dup2(input_before_, STDIN_FILENO);
      ::close(input_before_);
    }
    std::filesystem::current_path(folder_before_);
    ::clearenv();
    for (const std::string& variable : environment_before_) {
      const std::size_t equals = variable.find('=');
      if (equals != std::string::npos)
        ::setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
    }
  }

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_.path(); }
  /// Writes a file of the folder; its path.
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = folder() / name;
    std::filesystem::create_directories(file.parent_path());
    EXPECT_TRUE(base::write_file(file, text));
    return file;
  }
  /// A file that can be run as a program.
  void write_program(const std::string& name) const {
    std::filesystem::permissions(write(name, "#!/bin/true\n"), std::filesystem::perms::owner_all);
  }
  [[nodiscard]] std::string text_of(const std::string& name) const {
    return base::read_file(folder() / name).value_or("(no file)");
  }

 private:
  base::TemporaryFolder folder_{"rangescope-cli-test"};
  std::filesystem::path folder_before_ = std::filesystem::current_path();
  std::vector<std::string> environment_before_;
  int input_before_ = -1;
};

}  // namespace command_line_test
}  // namespace rangescope::cli
