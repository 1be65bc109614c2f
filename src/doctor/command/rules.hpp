// The rules by which a command line is judged. Each names its mistakes and corrects the line in place, so that mistakes
// combine; explain.cpp calls them in order. Each function stands in the file named above it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/causes.hpp"
#include "doctor/command/line.hpp"

namespace rangescope::doctor {

struct Explaining {
  CommandLine line;
  const collect::Abilities* can = nullptr;
  std::map<std::string, std::string> environment;
  std::vector<model::Finding> findings;
  bool lost = false;  ///< something is missing that only the person knows

  /// Certain, whatever the program does.
  void fail(std::string_view id, std::string found, std::string hint = {}) {
    findings.push_back(finding_of(id, model::Grade::kFail, std::move(found), std::move(hint)));
  }
  /// Wrong unless the program is of an unusual kind; the cause says which.
  void warn(std::string_view id, std::string found, std::string hint = {}) {
    findings.push_back(finding_of(id, model::Grade::kWarn, std::move(found), std::move(hint)));
  }
  [[nodiscard]] std::string me() const { return can ? line.tool + " " + to_string(can->version) : line.tool; }
};

// rules_words.cpp: what is wrong with the words themselves. Each looks at a freshly parsed line, changes the words that
// it was parsed from, and says whether it did: then the line is parsed again.
using Words = std::vector<Word>;
[[nodiscard]] bool mend_words(Explaining& about, Words& words);
void judge_program(Explaining& about);

// rules_options.cpp: names, repetition, values.
void judge_options(Explaining& about);

// rules_ranges.cpp: ncu's range expressions.
void judge_ranges(Explaining& about);
/// LLM, libcudf: written as domains are, and ranges seldom.
[[nodiscard]] bool looks_like_domain(std::string_view word);
[[nodiscard]] bool has_small_letters(std::string_view word);

// rules_ncu.cpp: what is collected, of which kernels, in which mode.
void judge_content(Explaining& about);
void judge_kernels(Explaining& about);
void judge_modes(Explaining& about);

// rules_nsys.cpp: gating and domains.
void judge_capture(Explaining& about);

/// Takes an option for a yes-or-no one? And is this such a value?
[[nodiscard]] bool is_boolean_option(std::string_view tool, std::string_view option);
[[nodiscard]] bool is_boolean(std::string_view value);
/// Values separated by commas?
[[nodiscard]] bool is_list_option(std::string_view option);

}  // namespace rangescope::doctor
