// Element-wise kernels of equal size that follow one another: each reads what the one before it
// wrote.
#include <fmt/format.h>

#include <algorithm>

#include "analyze/cures/candidate.hpp"
#include "base/units.hpp"

namespace rangescope::analyze::cures {
namespace {

bool is_link(const Recording& recording, const Findings& findings, Id work) {
  return recording.is_element_wise(work) && !findings.is_claimed(work);
}

/// The smallest distance at which names repeat through all of the chain; its length where they do
/// not. Linear: what is left of it by the longest beginning that is its end too (Knuth, Morris and
/// Pratt's table).
std::size_t period_of(const Recording& recording, const Ids& chain) {
  const auto are_same = [&](std::size_t left, std::size_t right) {
    return recording.name_of(chain[left]) == recording.name_of(chain[right]);
  };
  std::vector<std::size_t> border(chain.size(), 0);  // by the last kernel of each beginning
  for (std::size_t index = 1; index < chain.size(); ++index) {
    std::size_t length = border[index - 1];
    while (length > 0 && !are_same(index, length)) length = border[length - 1];
    border[index] = are_same(index, length) ? length + 1 : 0;
  }
  return chain.empty() ? 0 : chain.size() - border.back();
}

class Chains {
 public:
  Chains(const Recording& recording, const Findings& findings)
      : recording_(recording), findings_(findings) {}

  void look_through(const Instance& instance) {
    Ids chain;
    for (const Id work : instance.works) {
      if (recording_.operation(work).kind == Kind::kMemset) continue;
      const bool is_kernel = is_link(recording_, findings_, work);
      const bool continues =
          is_kernel && (chain.empty() || are_equal_sizes(recording_.elements(chain.front()),
                                                         recording_.elements(work)));
      if (!continues) finish(chain);
      if (is_kernel) chain.push_back(work);
    }
    finish(chain);
  }

  [[nodiscard]] const std::vector<Ids>& all() const { return chains_; }

 private:
  /// Without ranges a chain may go on from one step to the next: it begins again where its names
  /// do.
  void finish(Ids& chain) {
    std::size_t length = chain.size();
    if (!recording_.has_ranges()) length = period_of(recording_, chain);
    for (std::size_t first = 0; length >= 2 && first + length <= chain.size(); first += length) {
      const auto begin = chain.begin() + static_cast<std::ptrdiff_t>(first);
      chains_.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(length));
    }
    chain.clear();
  }

  const Recording& recording_;
  const Findings& findings_;
  std::vector<Ids> chains_;
};

}  // namespace

void find_pointwise_chains(const Recording& recording, Findings& findings) {
  Chains chains(recording, findings);
  for (const Instance& instance : recording.instances()) chains.look_through(instance);
  // One kernel reads every input and writes one result: no less than the cheapest of them does.
  Candidate candidate{"pointwise_chain", "", {}, {1, 1, 1.5}, {}};
  std::size_t kernels = 0, longest = 0;
  double chain_ns = 0;
  for (const Ids& chain : chains.all()) {
    double cheapest_ns = recording.duration_ns(chain.front());
    for (const Id kernel : chain)
      cheapest_ns = std::min(cheapest_ns, recording.duration_ns(kernel));
    candidate.remedy.fused.push_back({chain, static_cast<std::int64_t>(cheapest_ns)});
    kernels += chain.size();
    longest = std::max(longest, chain.size());
    chain_ns += recording.duration_ns(chain);
  }
  if (chains.all().empty()) return;
  candidate.observation =
      fmt::format("{} element-wise kernels of equal size follow one another ({} of {})", longest,
                  base::format_ns(chain_ns), base::format_ns(recording.kernel_ns()));
  candidate.evidence = {{"kernels", static_cast<double>(kernels)},
                        {"longest_chain", static_cast<double>(longest)},
                        {"chains", static_cast<double>(chains.all().size())},
                        {"chain_ns", chain_ns}};
  findings.add(std::move(candidate));
}

}  // namespace rangescope::analyze::cures
