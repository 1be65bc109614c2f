// What can be wrong, as data: every cause that the doctor can name, with what it means, what to do, and where it was
// seen.
//
// The tables stand in machine/causes.cpp, command/causes.cpp and program/causes.cpp; causes.cpp lists the tables. The
// page docs/manual/causes.md is this catalogue as Markdown (`rangescope doctor --causes`), and a test holds one against
// the other. Nothing enters that was not measured, or read in a tool's own documentation or words.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "model/finding.hpp"

namespace rangescope::doctor {

struct Cause {
  std::string_view id;           ///< "machine.counters_locked"; the part before the dot is its chapter
  std::string_view title;        ///< a few words
  std::string_view explanation;  ///< what it means for a measurement: one to three sentences
  std::string_view cure;         ///< imperative, no full stop
  std::string_view seen;         ///< tool versions and how: "ncu 2022.3 and 2024.1: run; 2026.1: documentation"
  base::Code code = base::Code::kConfig;  ///< what the doctor exits with when this is the first failure
};

/// All of one chapter: "machine", "command", "program".
struct Chapter {
  std::string_view name, title, about;
  std::span<const Cause> causes;
};
[[nodiscard]] std::span<const Chapter> chapters();

/// Null for an id that is in no table.
[[nodiscard]] const Cause* find_cause(std::string_view id);

/// A finding of this cause: explanation and cure from the catalogue, `hint` in place of the cure where it is given.
/// `id` must be in a table.
[[nodiscard]] model::Finding finding_of(std::string_view id, model::Grade verdict, std::string found,
                                        std::string hint = {});
/// "All is well", or "cannot be said", with evidence; run_checks() fills id and question.
[[nodiscard]] model::Finding well(std::string found);
[[nodiscard]] model::Finding skipped(std::string why);

/// 0 unless something failed; then the code of the first cause that did.
[[nodiscard]] int exit_code_of(std::span<const model::Finding> findings);

/// docs/manual/causes.md.
[[nodiscard]] std::string causes_page();

}  // namespace rangescope::doctor
