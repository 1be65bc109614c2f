// Which file lies where in a process's memory, as the kernel's records of mappings tell it.
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

/// A file that holds code, or memory without one: "[vdso]", "//anon" (then it is a process's own).
struct Module {
  std::uint32_t number = 0;
  std::string path;
  std::uint32_t pid = 0;  ///< one that maps it
  /// Its tables, opened when they are first asked for: most files of a program never show in a chain. Null for none.
  [[nodiscard]] Tables* tables();
  [[nodiscard]] const Tables* opened() const { return tables_.get(); }
  [[nodiscard]] bool file() const { return path.starts_with('/') && !path.starts_with("//"); }

 private:
  std::unique_ptr<Tables> tables_;
  bool tried_ = false;
};

/// A file is one module, however many processes map it.
class Modules {
 public:
  /// `pid` opens the file: it may lie in a container of its own.
  Module& find(std::string_view path, std::uint32_t pid);
  [[nodiscard]] const std::vector<std::unique_ptr<Module>>& all() const { return all_; }

 private:
  std::vector<std::unique_ptr<Module>> all_;
  std::unordered_map<std::string, Module*> by_name_;
};

struct Area {
  std::uint64_t start = 0, end = 0, offset = 0;
  Module* module = nullptr;
};

class Space {
 public:
  /// What lay there before is gone.
  void map(const Area& area);
  void clear() { areas_.clear(); }
  [[nodiscard]] const Area* find(std::uint64_t address) const;
  [[nodiscard]] const std::map<std::uint64_t, Area>& areas() const { return areas_; }

 private:
  std::map<std::uint64_t, Area> areas_;  ///< by start
};

/// An address in its file, as program headers and symbols count.
struct Place {
  Module* module = nullptr;
  std::uint64_t address = 0;
};
[[nodiscard]] Place place_of(const Space& space, std::uint64_t address);

}  // namespace rangescope::sample::cpu
