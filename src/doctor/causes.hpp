// What can be wrong, as data: every cause that the doctor can name, with what it means, what to do,
// and where it was seen.
//
// conf/doctor holds them, a file a chapter; what ncu and nsys say of themselves is the table of
// collect/nsight/outcome.tsv. The page docs/manual/causes.md is this catalogue as Markdown
// (`rangescope doctor
// --causes`), and a test holds one against the other. Nothing enters that was not measured, or read
// in a tool's own documentation or words.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/finding.hpp"

namespace rangescope::doctor {

struct Cause {
  std::string id;           ///< "machine.counters_locked"; the part before the dot is its chapter
  std::string title;        ///< a few words
  std::string explanation;  ///< what it means for a measurement: one to three sentences
  std::string cure;         ///< imperative, no full stop
  /// Tool versions and how: "ncu 2022.3 and 2024.1: run; 2026.1: documentation".
  std::string known_from;
  int exit_code = 0;  ///< of the doctor when this is the first failure
};

/// All of one chapter: "machine", "command", "program", "ncu", "nsys".
struct Chapter {
  std::string name, title, about;
  std::vector<Cause> causes;
};
/// Read from conf/ when first asked for. Empty, with a line in the log, where conf/ cannot be read.
[[nodiscard]] std::span<const Chapter> chapters();

/// Null for an id that is in no table.
[[nodiscard]] const Cause* find_cause(std::string_view id);

/// A finding of this cause: explanation and cure from the catalogue, `hint` in place of the cure
/// where it is given. `id` must be in a table.
[[nodiscard]] model::Finding finding_of(std::string_view id,
                                        model::Grade verdict,
                                        std::string found,
                                        std::string hint = {});
/// The same for a finding that has its id and what was found.
[[nodiscard]] model::Finding explained(model::Finding finding);
/// "All is well", or "cannot be said", with evidence; run_checks() fills id and question.
[[nodiscard]] model::Finding well(std::string found);
[[nodiscard]] model::Finding skipped(std::string why);

/// 0 unless something failed; then the code of the first cause that did.
[[nodiscard]] int exit_code_of(std::span<const model::Finding> findings);

/// docs/manual/causes.md.
[[nodiscard]] std::string causes_page();

}  // namespace rangescope::doctor
