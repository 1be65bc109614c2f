// Command-line options of a workload: `--name value` or `--name=value`, whole numbers and switches.
//
// Anything unknown, missing or out of range ends the program with exit code 64 and the list of
// options.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace workload {

class Options {
 public:
  Options(std::string program, std::string summary);
  void number(const char* name,
              std::int64_t* value,
              std::int64_t least,
              std::int64_t most,
              const char* help);
  void flag(const char* name, bool* value, const char* help);
  /// `--name` alone sets *given; `--name=text` sets the text too.
  void text(const char* name, bool* given, std::string* value, const char* help);
  void parse(int argc, char** argv);

 private:
  struct Option {
    std::string name, help;
    std::int64_t* number = nullptr;
    std::int64_t least = 0, most = 0;
    bool* flag = nullptr;
    std::string* text = nullptr;
  };
  [[noreturn]] void usage(const std::string& problem) const;
  std::string program_, summary_;
  std::vector<Option> options_;
};

}  // namespace workload
