// Functions of Python whose calls are regions like those of modules: phases of known frameworks,
// and what a user chose. Asked for launches by the library in the program, for CPU samples by who
// reads them.
//
// A pattern is held against where a function stands,
// "vllm.v1.worker.gpu_model_runner.GPUModelRunner.execute_model": path of its file without ".py",
// then its qualified name (its plain one before CPython 3.11). It may begin at any of the folders;
// `*` stands for anything. 0.2 us a pattern.
#pragma once

#include <fnmatch.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "wire/names.hpp"

namespace rangescope::wire {

// What a phase is called, and the function whose call it is. Names of files and functions are those
// of the releases named. "first|later" is of a function that steps: a phase begins with each call
// of a module or known function that it makes itself and goes on to the next; the first has another
// name.
//
// "other|first|second|third" with "@1.mode" behind the pattern is named by what the function's
// argument 1 holds in its attribute `mode`: a number (an enumeration's) counts from the first; of a
// dictionary of numbers it is the first where all are above 1 (requests to be filled), the second
// where all are 1 (a token each), the third where both are there.
inline constexpr struct {
  const char *name, *pattern;
} kPhasesOfFrameworks[] = {
    {"generate", "transformers.generation.utils.*generate"},            // 4.20 to 4.57
    {"prefill", "transformers.generation.utils.*_prefill"},             // 4.57 to 5.17
    {"prefill|decode step", "transformers.generation.utils.*_sample"},  // 4.39 to 5.17, as the next
    {"prefill|decode step", "transformers.generation.utils.*_beam_search"},
    {"prefill|decode step", "transformers.generation.utils.*greedy_search"},  // older ones
    {"execute model|prefill|decode step|mixed batch",
     "vllm.v1.worker.gpu[_.]model_runner.*execute_model@1.num_scheduled_tokens"},  // both of its
                                                                                   // model runners
    {"sample tokens", "vllm.v1.worker.gpu_model_runner.*sample_tokens"},
    {"forward|prefill|decode step|mixed batch",
     "sglang.srt.model_executor.model_runner.ModelRunner.forward@1.forward_mode"},  // CPython 3.11
    {"forward|prefill|decode step|mixed batch",
     "sglang.srt.model_executor.model_runner.forward@1.forward_mode"},          // before it
    {"training step", "lightning.pytorch.strategies.strategy.*training_step"},  // Lightning 2
    {"training step",
     "pytorch_lightning.strategies.strategy.*training_step"},  // the same by its other name
    {"validation step", "lightning.pytorch.strategies.strategy.*validation_step"},
    {"training step", "transformers.trainer.*training_step"},
    {"backward", "torch._tensor.*backward"},               // PyTorch 1.9 to 2.11, as the next
    {"optimizer step", "torch.optim.optimizer.*wrapper"},  // around the step of any optimizer
    {"load batch", "torch.utils.data.dataloader.*__next__"},
    {"save checkpoint", "torch.serialization.*save"},
    {"compile", "torch._dynamo.convert_frame.*compile*"},
    {"compile", "jax._src.compiler.*compile_or_get_cached"},
};

class Functions {
 public:
  /// Lines "name=pattern" or "pattern", the first that holds is taken: what was chosen, then
  /// phases, then those known here. `phases` "off": what was chosen alone. Null: none. Writes into
  /// both, and keeps pointers into them.
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
    std::snprintf(place, sizeof place, "/%.*s.%s", static_cast<int>(python ? bytes - 3 : bytes),
                  file, function);
    char* behind = std::strstr(place, "/__init__.");
    if (behind != nullptr) std::memmove(behind, behind + 9, std::strlen(behind + 9) + 1);
    for (char* at = place; *at != '\0'; ++at)
      if (*at == '/') *at = '.';
    for (std::size_t i = 0; i < count_; ++i) {
      char pattern[512];
      std::snprintf(pattern, sizeof pattern, "*.%.*s", entries_[i].bytes, entries_[i].pattern);
      if (fnmatch(pattern, place, FNM_NOESCAPE) == 0) return i + 1;
    }
    return 0;
  }
  /// What its calls are told apart by: an argument, and its attribute. False where by nothing.
  [[nodiscard]] bool by_argument(std::size_t number, std::size_t& argument,
                                 const char*& attribute) const {
    argument = entries_[number - 1].argument;
    attribute = entries_[number - 1].attribute;
    return attribute != nullptr;
  }
  /// The name of those calls, by what was found: 0 is any other.
  void name_of(std::size_t number, std::uint64_t which, char* into, std::size_t most) const {
    const char* const first = entries_[number - 1].name;
    const char* text = first;
    for (; which > 0; --which) {
      const char* bar = std::strchr(text, '|');
      text = bar != nullptr ? bar + 1 : first;
      if (bar == nullptr) break;  // more than names
    }
    std::snprintf(into, most, "%.*s", static_cast<int>(std::strcspn(text, "|")), text);
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
    int bytes;              ///< of the pattern, without its argument
    std::size_t argument;   ///< "@1.mode": its number,
    const char* attribute;  ///< and its attribute; null: calls are not told apart
  };
  void add(const char* name, const char* pattern) {
    if (count_ == std::size(entries_) || pattern[0] == '\0') return;
    const std::size_t bytes = std::strcspn(pattern, "@");
    const char* at = pattern + bytes;
    const bool told =
        name != nullptr && at[0] == '@' && at[1] >= '0' && at[1] <= '9' && at[2] == '.';
    entries_[count_++] = {name, pattern, static_cast<int>(bytes),
                          told ? static_cast<std::size_t>(at[1] - '0') : 0,
                          told ? at + 3 : nullptr};
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
