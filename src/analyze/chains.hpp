// Chains of modules in the table over all processes: a module's row with one child that has the
// same numbers is shown as one row with it, `LlamaForCausalLM > model > layers.#`. JSON, CSV and
// SQL keep each region, and so does `--all`.
//
// Same numbers: equal counts (instances, threads, kernels, copies, allocations), and no time,
// amount or share that differs by more than 1 %, self times aside. Less than that is no time that
// anyone could save: what the outer row has of its own is 1 % of it at most. O(rows).
#pragma once

#include "model/report.hpp"

namespace rangescope::analyze {

/// Sets TableRow::joins_child. After the verdict, which judges each row.
void find_chains(model::Report& report);

}  // namespace rangescope::analyze
