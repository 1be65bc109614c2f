// Programs of a run whose ranges and GPU work cannot be recorded, each with the one reason: what
// their environment, their user, their view of the file system and their files show while they run.
//
// A program is looked at when it is executed and then ever less often, until it has loaded the
// library. After the run the files of those that did not are searched for NVTX: a program that has
// no ranges is missing nothing. Cost: some files of /proc for each look, about 50 us; for each
// suspicious program one pass over its files. Nothing of a program is stopped or changed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sample/cpu/unwind.hpp"

namespace rangescope::sample::cpu {

/// A program that was not recorded. `kind` is the loss that it is (model/loss_kinds.tsv).
struct UnrecordedProgram {
  std::string kind;
  std::uint32_t pid = 0;
  std::string sentence;
};

class Unrecorded {
 public:
  /// What the programs of the run are to load, and the folder that they are to write to.
  Unrecorded(std::filesystem::path library, std::filesystem::path captures);
  Unrecorded(Unrecorded&&) noexcept;
  ~Unrecorded();
  /// The process executes another program from now on.
  void executed(std::uint32_t pid, std::int64_t now_ns);
  /// Looks at programs whose turn it is, and for new ones below this process.
  void look(std::int64_t now_ns);
  /// After the run. Reads the files of programs for which there may be a reason.
  [[nodiscard]] std::vector<UnrecordedProgram> reasons();

 private:
  struct Program;
  struct SearchedFile;
  struct MappedFile {
    std::string path;
    std::uint64_t start = 0, offset = 0;
  };
  void look_at(Program& program, std::int64_t now_ns);
  static void read_environment(Program& program);
  static void read_name(Program& program);
  [[nodiscard]] static bool executes_another(const Program& program);
  [[nodiscard]] std::uint64_t address_of_environment(std::uint32_t pid,
                                                     const std::vector<MappedFile>& files);
  [[nodiscard]] std::optional<std::string> current_injection(const Program& program,
                                                             const std::vector<MappedFile>& files);
  [[nodiscard]] bool is_hidden_from(std::uint32_t pid) const;
  void open_executable(Program& program);
  [[nodiscard]] bool uses_nvtx(const Program& program);
  [[nodiscard]] std::optional<UnrecordedProgram> reason_of(const Program& program);
  Tables* tables_of(const std::string& path, std::uint32_t pid);

  std::filesystem::path library_, captures_;
  std::vector<std::unique_ptr<Program>> programs_;
  std::map<std::uint32_t, Program*> running_;
  std::vector<std::unique_ptr<SearchedFile>> executables_;
  std::map<std::string, bool> searched_libraries_;
  std::map<std::string, std::unique_ptr<Tables>> tables_;
  std::int64_t next_search_ns_ = 0, search_interval_ns_;
};

}  // namespace rangescope::sample::cpu
