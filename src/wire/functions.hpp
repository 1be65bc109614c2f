// Functions of Python whose calls are regions like those of modules: phases of known frameworks, and what a user chose.
// Asked for launches by the library in the program, for CPU samples by who reads them.
//
// A pattern is held against where a function stands, "vllm.v1.worker.gpu_model_runner.GPUModelRunner.execute_model":
// path of its file without ".py", then its qualified name (its plain one before CPython 3.11). It may begin at any of
// the folders; `*` stands for anything. 0.2 us a pattern.
#pragma once

#include <fnmatch.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "wire/names.hpp"

namespace rangescope::wire {

// What a phase is called, and the function whose call it is. Names of files and functions are those of the releases
// named. "first|later" is of a function that steps: a phase begins with each call of a module or known function that it
// makes itself and goes on to the next; the first has another name.
inline constexpr struct {
  const char *name, *pattern;
} kPhasesOfFrameworks[] = {
    {"generate", "transformers.generation.utils.*generate"},            // 4.20 to 4.57
    {"prefill", "transformers.generation.utils.*_prefill"},             // 4.57 to 5.17
    {"prefill|decode step", "transformers.generation.utils.*_sample"},  // 4.39 to 5.17, as the next
    {"prefill|decode step", "transformers.generation.utils.*_beam_search"},
    {"prefill|decode step", "transformers.generation.utils.*greedy_search"},    // older ones
    {"execute model", "vllm.v1.worker.gpu_model_runner.*execute_model"},        // vLLM 0.8 to 0.11
    {"prefill", "sglang.srt.model_executor.model_runner.*forward_extend"},      // SGLang 0.4, 0.5
    {"decode step", "sglang.srt.model_executor.model_runner.*forward_decode"},  // the same
    {"training step", "lightning.pytorch.strategies.strategy.*training_step"},  // Lightning 2
    {"training step", "pytorch_lightning.strategies.strategy.*training_step"},  // the same by its other name
    {"validation step", "lightning.pytorch.strategies.strategy.*validation_step"},
    {"training step", "transformers.trainer.*training_step"},
    {"backward", "torch._tensor.*backward"},               // PyTorch 1.9 to 2.11, as the next
    {"optimizer step", "torch.optim.optimizer.*wrapper"},  // around the step of any optimizer
    {"load batch", "torch.utils.data.dataloader.*__next__"},
    {"save checkpoint", "torch.serialization.*save"},
    {"compile", "torch._dynamo.convert_frame.*compile*"},
};

class Functions {
 public:
  /// Lines "name=pattern" or "pattern", the first that holds is taken: what was chosen, then phases, then those known
  /// here. `phases` "off": what was chosen alone. Null: none. Writes into both, and keeps pointers into them.
  void choose(char* phases, char* chosen) {
    add_lines(chosen);
    if (phases != nullptr && std::strcmp(phases, "off") == 0) return;
    add_lines(phases);
    for (const auto& phase : kPhasesOfFrameworks) add(phase.name, phase.pattern);
  }
  /// 0: none; else a number for name_of().
  [[nodiscard]] std::size_t find(const char* file, const char* function) const {
    char place[4096 + 256];
    const std::size_t bytes = std::strlen(file);
    const bool python = bytes > 3 && std::strcmp(file + bytes - 3, ".py") == 0;
    std::snprintf(place, sizeof place, "/%.*s.%s", static_cast<int>(python ? bytes - 3 : bytes), file, function);
    char* behind = std::strstr(place, "/__init__.");
    if (behind != nullptr) std::memmove(behind, behind + 9, std::strlen(behind + 9) + 1);
    for (char* at = place; *at != '\0'; ++at)
      if (*at == '/') *at = '.';
    for (std::size_t i = 0; i < count_; ++i) {
      char pattern[512];
      std::snprintf(pattern, sizeof pattern, "*.%s", entries_[i].pattern);
      if (fnmatch(pattern, place, FNM_NOESCAPE) == 0) return i + 1;
    }
    return 0;
  }
  /// What its region is called: as chosen, else by the function itself.
  [[nodiscard]] const char* name_of(std::size_t number, const char* function) const {
    return entries_[number - 1].name != nullptr ? entries_[number - 1].name : function;
  }
  [[nodiscard]] bool any() const { return count_ > 0; }

 private:
  struct Entry {
    const char* name;  ///< null: the function's own
    const char* pattern;
  };
  void add(const char* name, const char* pattern) {
    if (count_ < std::size(entries_) && pattern[0] != '\0') entries_[count_++] = {name, pattern};
  }
  void add_lines(char* text) {
    char* rest = nullptr;
    for (char* line = text != nullptr ? strtok_r(text, "\n", &rest) : nullptr; line != nullptr;
         line = strtok_r(nullptr, "\n", &rest)) {
      char* equals = std::strchr(line, '=');
      if (equals != nullptr) *equals = '\0';
      add(equals != nullptr ? line : nullptr, equals != nullptr ? equals + 1 : line);
    }
  }
  Entry entries_[2 * kMostFunctions + std::size(kPhasesOfFrameworks)];
  std::size_t count_ = 0;
};

}  // namespace rangescope::wire
