// What to try for each kind of verdict: a table (advice.tsv), and nothing else decides.
#pragma once

#include <string>

#include "model/verdict.hpp"

namespace rangescope::model {

/// The first row of the table that is for the verdict's kind and whose evidence holds, as an
/// imperative sentence with the reason why it applies here; "" where there is none.
[[nodiscard]] std::string advice_for(const Verdict& verdict);

}  // namespace rangescope::model
