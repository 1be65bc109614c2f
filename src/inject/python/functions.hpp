// Functions whose calls are regions like those of modules: phases of known frameworks, and what a user chose.
//
// A pattern is held against where a function stands, "vllm.v1.worker.gpu_model_runner.GPUModelRunner.execute_model":
// path of its file without ".py", then its qualified name (its plain one before CPython 3.11). It may begin at any of
// the folders;
// `*` stands for anything. Asked once a second for each code object that runs, 0.2 us a pattern.
#pragma once

#include <cstddef>

#include "wire/names.hpp"

namespace rangescope::inject::python {

class Functions {
 public:
  /// Lines "name=pattern" or "pattern", the first that holds is taken: what was chosen, then phases, then those known
  /// here. `phases` "off": what was chosen alone. Null: none.
  void choose(const char* phases, const char* chosen);
  /// 0: none; else a number for name_of().
  [[nodiscard]] std::size_t find(const char* file, const char* function) const;
  /// What its region is called: as chosen, else by the function itself.
  [[nodiscard]] const char* name_of(std::size_t number, const char* function) const;
  [[nodiscard]] bool any() const { return count_ > 0; }

 private:
  struct Entry {
    const char* name;  ///< null: the function's own
    const char* pattern;
  };
  void add(const char* name, const char* pattern);
  void add_lines(const char* lines);
  Entry entries_[2 * wire::kMostFunctions + 20];
  std::size_t count_ = 0;
};

}  // namespace rangescope::inject::python
