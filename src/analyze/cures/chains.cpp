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

/// What one kernel takes for all of a chain: it reads what comes from outside, and writes one
/// result. An input of a kernel that is not the result of the one before it may be new, or one that
/// the chain has read or made: as many as possible, none, or half of them.
struct FusedTimes {
  double expected_ns = 0, low_ns = 0, high_ns = 0;
};

FusedTimes fused_times(const Recording& recording, const Ids& chain) {
  double tensor_ns = recording.duration_ns(chain.front());
  double more_inputs = 0;
  for (const Id kernel : chain) {
    const double tensors = std::max(2.0, recording.traits(kernel).tensors);
    tensor_ns = std::min(tensor_ns, recording.duration_ns(kernel) / tensors);
    more_inputs += tensors - 2;
  }
  const double chain_ns = recording.duration_ns(chain);
  const auto with_inputs = [&](double inputs) {
    return std::min(chain_ns, (1 + inputs) * tensor_ns);
  };
  return {with_inputs(1 + more_inputs / 2), with_inputs(1), with_inputs(1 + more_inputs)};
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
    while (length > 0 && !are_same(index, length))
      length = border[length - 1];
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
      if (recording_.operation(work).kind == Kind::kMemset)
        continue;
      const bool is_kernel = is_link(recording_, findings_, work);
      const bool continues =
          is_kernel && (chain.empty() || are_equal_sizes(recording_.elements(chain.front()),
                                                         recording_.elements(work)));
      if (!continues)
        finish(chain);
      if (is_kernel)
        chain.push_back(work);
    }
    finish(chain);
  }

  [[nodiscard]] const std::vector<Ids>& all() const { return chains_; }

 private:
  /// Without ranges a chain may go on from one step to the next: it begins again where its names
  /// do.
  void finish(Ids& chain) {
    std::size_t length = chain.size();
    if (!recording_.has_steps())
      length = period_of(recording_, chain);
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
  for (const Instance& instance : recording.instances())
    chains.look_through(instance);
  Candidate candidate{"pointwise_chain", "", {}, {}, {}};
  std::size_t kernels = 0, longest = 0;
  double chain_ns = 0;
  FusedTimes fused;
  const auto call_ns = static_cast<std::int64_t>(recording.costs().compiled_call_ns.expected);
  for (const Ids& chain : chains.all()) {
    const FusedTimes times = fused_times(recording, chain);
    candidate.remedy.fused.push_back(
        {chain, static_cast<std::int64_t>(times.expected_ns), call_ns});
    fused.expected_ns += times.expected_ns;
    fused.low_ns += times.low_ns;
    fused.high_ns += times.high_ns;
    kernels += chain.size();
    longest = std::max(longest, chain.size());
    chain_ns += recording.duration_ns(chain);
  }
  if (chains.all().empty())
    return;
  const double half_as_fast = 1.5 * fused.expected_ns;
  candidate.parameter = {1,
                         fused.low_ns / fused.expected_ns,
                         std::max(half_as_fast, fused.high_ns) / fused.expected_ns};
  candidate.observation =
      fmt::format("{} element-wise kernels of equal size follow one another ({} of {})",
                  longest,
                  base::format_ns(chain_ns),
                  base::format_ns(recording.kernel_ns()));
  candidate.evidence = {{"kernels", static_cast<double>(kernels)},
                        {"longest_chain", static_cast<double>(longest)},
                        {"chains", static_cast<double>(chains.all().size())},
                        {"chain_ns", chain_ns}};
  findings.add(std::move(candidate));
}

}  // namespace rangescope::analyze::cures
