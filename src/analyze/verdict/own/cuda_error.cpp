// A CUDA program that could not use a GPU: everything else that its report says is of the CPU.
#include <algorithm>

#include "analyze/verdict/rule.hpp"

namespace rangescope::analyze {

void find_cuda_error(const Case& facts, std::vector<model::Verdict>& out) {
  const std::vector<model::Loss>& losses = facts.report().losses;
  const auto failed = std::ranges::find(losses, model::LossKind("cuda_failed"), &model::Loss::kind);
  if (failed == losses.end())
    return;
  model::Verdict verdict =
      facts.about_run("cuda_failed", "no GPU was used: " + failed->detail, std::nullopt);
  verdict.severity = model::Weight::kError;
  verdict.next = "rangescope doctor";
  out.push_back(std::move(verdict));
}

}  // namespace rangescope::analyze
