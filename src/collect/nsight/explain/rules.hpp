// The rules by which a command line is judged. Each reports mistakes and corrects the line in
// place, so that one line may have several; explain.cpp calls them in order. Each function is in
// the file named above it.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "collect/nsight/explain/line.hpp"
#include "model/finding.hpp"

namespace rangescope::collect::command {

struct Explaining {
  CommandLine line;
  const Abilities* can = nullptr;
  std::map<std::string, std::string> environment;
  std::vector<model::Finding> findings;
  bool lost = false;  ///< only the user knows what is missing: there is no corrected line

  /// A mistake, whatever the program does. Without a hint, that of the cause applies.
  void fail(std::string_view id, std::string found, std::string hint = {}) {
    add(id, model::Grade::kFail, std::move(found), std::move(hint));
  }
  /// A mistake unless the program is unusual; the cause says in which way.
  void warn(std::string_view id, std::string found, std::string hint = {}) {
    add(id, model::Grade::kWarn, std::move(found), std::move(hint));
  }
  [[nodiscard]] std::string me() const {
    if (!can)
      return line.tool;
    return line.tool + " " + to_string(can->version);
  }
  /// Of the installed tool; year 0 without one.
  [[nodiscard]] Version version() const {
    if (!can)
      return {};
    return can->version;
  }
  /// Values that the help lists for an option; empty if it lists none.
  [[nodiscard]] const std::vector<std::string>& listed(const std::string& option) const;

 private:
  void add(std::string_view id, model::Grade grade, std::string found, std::string hint) {
    findings.push_back(
        {"command." + std::string(id), {}, grade, std::move(found), std::move(hint), {}});
  }
};

/// The known name nearest to `name`; "" if none is near.
[[nodiscard]] inline std::string nearest_name(std::string_view name,
                                              std::span<const std::string> known) {
  const std::vector<std::string> nearest = base::nearest(name, known, 1);
  if (nearest.empty())
    return {};
  return nearest.front();
}
/// The hint "Write TEXT", or `otherwise` without a text.
[[nodiscard]] inline std::string write_or(const std::string& text, const std::string& otherwise) {
  if (text.empty())
    return otherwise;
  return "Write " + text;
}

// words.cpp: mistakes that change how the line is parsed. mend_words() corrects one of them in the
// words and returns true; then the line has to be parsed again.
using Words = std::vector<Word>;
[[nodiscard]] bool mend_words(Explaining& about, Words& words);
void judge_program(Explaining& about);

// values.cpp: names, repetition, values.
void judge_options(Explaining& about);
void judge_ncu_values(Explaining& about);
/// Reports a value that the tool does not take, and writes the likely one.
void invalid(Explaining& about,
             const std::string& name,
             const std::string& value,
             const std::vector<std::string>& known_values);

// launch.cpp: launchers in front of the tool, and where the output goes.
void judge_launch(Explaining& about);

// ranges.cpp: ncu's range expressions.
void judge_ranges(Explaining& about);

// kernels.cpp: what ncu collects, of which kernels, in which mode.
void judge_content(Explaining& about);
void judge_kernels(Explaining& about);
void judge_modes(Explaining& about);
/// The rules that apply to a line that rangescope has planned.
void judge_plan(Explaining& about);

// capture.cpp: nsys's gating and domains; its reports and exports.
void judge_capture(Explaining& about);
void judge_reports(Explaining& about);

}  // namespace rangescope::collect::command
