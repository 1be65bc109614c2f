// The cures that this version knows: a table (catalog.tsv), from which the manual's page is made.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rangescope::analyze::cures {

struct Cure {
  std::string_view id;
  std::string_view done;     ///< "fused"
  std::string_view attempt;  ///< a concrete line of PyTorch or CUDA
  std::string_view applies, not_when, reason, source;
};

[[nodiscard]] const std::vector<Cure>& catalog();
/// Must be an id of the table.
[[nodiscard]] const Cure& cure_of(std::string_view id);

/// docs/manual/cures.md
[[nodiscard]] std::string cures_page();

}  // namespace rangescope::analyze::cures
