// Python functions whose calls become regions, like those of modules: phases of known frameworks,
// and functions that a user chose. Used for launches by the library in the program, and for CPU
// samples by their reader.
//
// A pattern is matched against the place of a function,
// "vllm.v1.worker.gpu_model_runner.GPUModelRunner.execute_model": the path of its file without
// ".py", then its qualified name (before CPython 3.11 its plain name). A pattern may begin at any
// of the folders; `*` matches anything. 0.2 us a pattern.
#pragma once

#include <fnmatch.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "wire/names.hpp"

namespace rangescope::wire {

// The name of a phase, and the function whose call it is. File and function names are those of the
// releases in the comments. "first|later" is for a function that runs steps: each call of a module
// or known function that it makes itself begins a phase, which lasts until the next one; the first
// phase has another name.
//
// "other|first|second|third" with "@1.mode" after the pattern: the attribute `mode` of the
// function's argument 1 chooses the name. A number (also of an enumeration) counts from the first
// name. A dictionary of numbers chooses the first name if all are above 1 (requests to be filled),
// the second if all are 1 (a token each), the third if there are both.
inline constexpr struct {
  const char *name, *pattern;
} kPhasesOfFrameworks[] = {
    {"generate", "transformers.generation.utils.*generate"},            // 4.20 to 4.57
    {"prefill", "transformers.generation.utils.*_prefill"},             // 4.57 to 5.17
    {"prefill|decode step", "transformers.generation.utils.*_sample"},  // 4.39 to 5.17, as the next
    {"prefill|decode step", "transformers.generation.utils.*_beam_search"},
    {"prefill|decode step", "transformers.generation.utils.*greedy_search"},  // older ones
    // Both of vLLM's model runners.
    {"execute model|prefill|decode step|mixed batch",
     "vllm.v1.worker.gpu[_.]model_runner.*execute_model@1.num_scheduled_tokens"},
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
  /// Sets the patterns: lines "name=pattern" or "pattern" of `chosen`, then of `phases`, then those
  /// of known frameworks. The first that matches a function counts. `phases` "off": only `chosen`.
  /// Null: none. Writes into both texts, and keeps pointers into them.
  void choose(char* phases, char* chosen) {
    add_lines(chosen);
    if (phases != nullptr && std::strcmp(phases, "off") == 0)
      return;
    add_lines(phases);
    for (const auto& phase : kPhasesOfFrameworks)
      add(phase.name, phase.pattern);
  }
  /// The number of the pattern that matches, for name_of(); 0: none does.
  [[nodiscard]] std::size_t find(const char* file, const char* function) const {
    char place[4096 + 256];
    const std::size_t bytes = std::strlen(file);
    const bool has_suffix = bytes > 3 && std::strcmp(file + bytes - 3, ".py") == 0;
    const auto stem_bytes = static_cast<int>(has_suffix ? bytes - 3 : bytes);
    std::snprintf(place, sizeof place, "/%.*s.%s", stem_bytes, file, function);
    char* init = std::strstr(place, "/__init__.");
    if (init != nullptr)
      std::memmove(init, init + 9, std::strlen(init + 9) + 1);
    for (char* c = place; *c != '\0'; ++c)
      if (*c == '/')
        *c = '.';
    for (std::size_t i = 0; i < count_; ++i) {
      char pattern[512];
      std::snprintf(pattern, sizeof pattern, "*.%.*s", entries_[i].bytes, entries_[i].pattern);
      if (fnmatch(pattern, place, FNM_NOESCAPE) == 0)
        return i + 1;
    }
    return 0;
  }
  /// The argument, and its attribute, that distinguish the function's calls. False if there is
  /// none.
  [[nodiscard]] bool by_argument(std::size_t number,
                                 std::size_t& argument,
                                 const char*& attribute) const {
    argument = entries_[number - 1].argument;
    attribute = entries_[number - 1].attribute;
    return attribute != nullptr;
  }
  /// The name of calls with this number from the argument; the first name, "other", for 0 and for
  /// numbers without a name.
  void name_of(std::size_t number,
               std::uint64_t argument_number,
               char* into,
               std::size_t most) const {
    const char* const other = entries_[number - 1].name;
    const char* text = other;
    for (; argument_number > 0; --argument_number) {
      const char* bar = std::strchr(text, '|');
      text = bar != nullptr ? bar + 1 : other;
      if (bar == nullptr)
        break;
    }
    std::snprintf(into, most, "%.*s", static_cast<int>(std::strcspn(text, "|")), text);
  }
  /// The name of the function's region: the chosen one, else the function's own.
  [[nodiscard]] const char* name_of(std::size_t number, const char* function) const {
    return entries_[number - 1].name != nullptr ? entries_[number - 1].name : function;
  }
  [[nodiscard]] bool any() const { return count_ > 0; }

 private:
  struct Entry {
    const char* name;  ///< null: the function's own
    const char* pattern;
    int bytes;              ///< of the pattern, without its argument
    std::size_t argument;   ///< "@1.mode": its number
    const char* attribute;  ///< "@1.mode": "mode"; null: the function's calls have one name
  };
  void add(const char* name, const char* pattern) {
    if (count_ == std::size(entries_) || pattern[0] == '\0')
      return;
    const std::size_t bytes = std::strcspn(pattern, "@");
    Entry& entry = entries_[count_++];
    entry = {name, pattern, static_cast<int>(bytes), 0, nullptr};
    const char* suffix = pattern + bytes;  // "@1.mode"
    const bool has_argument =
        suffix[0] == '@' && suffix[1] >= '0' && suffix[1] <= '9' && suffix[2] == '.';
    if (name == nullptr || !has_argument)
      return;
    entry.argument = static_cast<std::size_t>(suffix[1] - '0');
    entry.attribute = suffix + 3;
  }
  void add_line(char* line) {
    char* equals = std::strchr(line, '=');
    if (equals == nullptr)
      return add(nullptr, line);
    *equals = '\0';
    add(line, equals + 1);
  }
  void add_lines(char* text) {
    if (text == nullptr)
      return;
    char* rest = nullptr;
    for (char* line = strtok_r(text, "\n", &rest); line != nullptr;
         line = strtok_r(nullptr, "\n", &rest))
      add_line(line);
  }
  Entry entries_[2 * kMostFunctions + std::size(kPhasesOfFrameworks)];
  std::size_t count_ = 0;
};

}  // namespace rangescope::wire
