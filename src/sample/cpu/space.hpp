// Which file lies where in a process's memory, by the kernel's records of mappings.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sample/cpu/unwind.hpp"

namespace rangescope::sample::cpu {

inline constexpr const char* kKernel = "[kernel]";

/// A file that holds code, or memory without one: "[vdso]", "//anon" (then it is a process's own).
struct Module {
  std::uint32_t number = 0;
  std::string path;
  std::uint32_t pid = 0;  ///< one that maps it
  /// Its tables, opened when they are first asked for: most files of a program never show in a
  /// chain. Null for none.
  [[nodiscard]] Tables* tables();
  [[nodiscard]] const Tables* opened() const { return tables_.get(); }
  /// Another process maps it. What could not be opened by way of one that has ended is tried again.
  void mapped_by(std::uint32_t another_pid) {
    if (tables_ != nullptr || pid == another_pid)
      return;
    pid = another_pid;
    tried_ = false;
  }
  [[nodiscard]] bool file() const { return path.starts_with('/') && !path.starts_with("//"); }

 private:
  std::unique_ptr<Tables> tables_;
  bool tried_ = false;
};

/// A file is one module, however many processes map it. What is mapped under ever new names is one
/// module from some point on, which has no names.
class Modules {
 public:
  static constexpr std::size_t kMost = 32 << 10, kMostText = 4 << 20;
  /// `pid` opens the file: it may lie in a container of its own.
  Module& find(std::string_view path, std::uint32_t pid);
  [[nodiscard]] const std::vector<std::unique_ptr<Module>>& all() const { return all_; }
  [[nodiscard]] bool crowded() const { return all_.size() >= kMost || text_bytes_ >= kMostText; }

 private:
  std::size_t text_bytes_ = 0;
  std::vector<std::unique_ptr<Module>> all_;
  std::unordered_map<std::string, Module*> by_name_;
};

struct Area {
  std::uint64_t start = 0, end = 0, offset = 0;
  Module* module = nullptr;
  std::uint64_t number = 0;  ///< in order of mapping
};

/// The kernel does not tell what was unmapped: of a program that maps code at ever new places, the
/// older half of it is forgotten when there are kMost places, memory without a file first.
class Space {
 public:
  static constexpr std::size_t kMost = 64 << 10;
  /// What lay there before is gone.
  void map(const Area& area);
  void clear() { areas_.clear(); }
  [[nodiscard]] bool forgot() const { return forgot_; }
  [[nodiscard]] const Area* find(std::uint64_t address) const;
  [[nodiscard]] const std::map<std::uint64_t, Area>& areas() const { return areas_; }

 private:
  void forget(bool files);
  std::map<std::uint64_t, Area> areas_;  ///< by start
  std::uint64_t mapped_ = 0;
  bool forgot_ = false;
};

/// An address in its file, as program headers and symbols count.
struct Place {
  Module* module = nullptr;
  std::uint64_t address = 0;
};
[[nodiscard]] Place place_of(const Space& space, std::uint64_t address);

}  // namespace rangescope::sample::cpu
