// Sequences of kernels that one kernel of a library does: attention, cross entropy, embedding and
// normalization by hand.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analyze/cures/candidate.hpp"
#include "base/units.hpp"

namespace rangescope::analyze::cures {
namespace {

/// Kernels from `first` to `last`, both included.
Ids between(const Instance& instance, std::size_t first, std::size_t last) {
  const auto begin = instance.kernels.begin();
  return {begin + static_cast<std::ptrdiff_t>(first),
          begin + static_cast<std::ptrdiff_t>(last) + 1};
}

/// The cheapest element-wise kernel of the size of the largest: it reads and writes a tensor once.
std::optional<double> one_pass(const Recording& recording, const Ids& works) {
  double largest = 0;
  for (const Id work : works) {
    if (recording.is_element_wise(work)) largest = std::max(largest, recording.elements(work));
  }
  std::optional<double> cheapest_ns;
  for (const Id work : works) {
    const bool is_full =
        recording.is_element_wise(work) && are_equal_sizes(recording.elements(work), largest);
    if (!is_full) continue;
    const double ns = recording.duration_ns(work);
    if (!cheapest_ns || ns < *cheapest_ns) cheapest_ns = ns;
  }
  return cheapest_ns;
}

struct Sequence {
  Ids works;
  double one_ns = 0;
};

template <class Match>
std::vector<Sequence> sequences_in(const Recording& recording, Findings& findings, Match match) {
  std::vector<Sequence> sequences;
  for (const Instance& instance : recording.instances()) {
    for (std::size_t index = 0; index < instance.kernels.size(); ++index) {
      if (findings.is_claimed(instance.kernels[index])) continue;
      std::optional<Sequence> sequence = match(instance, index);
      if (!sequence) continue;
      findings.claim(sequence->works);
      sequences.push_back(std::move(*sequence));
    }
  }
  return sequences;
}

void add_sequences(const Recording& recording, Findings& findings, Candidate candidate,
                   const char* what, std::vector<Sequence> sequences) {
  if (sequences.empty()) return;
  std::size_t kernels = 0;
  double ns = 0;
  for (Sequence& sequence : sequences) {
    kernels += sequence.works.size();
    ns += recording.duration_ns(sequence.works);
    candidate.remedy.fused.push_back(
        {std::move(sequence.works), static_cast<std::int64_t>(sequence.one_ns)});
  }
  candidate.observation = fmt::format("{} ({:.3g} kernels per instance, {} of {})", what,
                                      per_instance(recording, kernels), base::format_ns(ns),
                                      base::format_ns(recording.kernel_ns()));
  candidate.evidence = {{"kernels", static_cast<double>(kernels)},
                        {"sequences", static_cast<double>(sequences.size())},
                        {"kernel_ns", ns}};
  findings.add(std::move(candidate));
}

// ---- Attention

/// From the product of queries and keys to that with values; between them what scales and masks.
std::optional<Sequence> attention_around(const Recording& recording, const Instance& instance,
                                         std::size_t softmax) {
  constexpr std::size_t kMostBetween = 4;
  if (!recording.has_role(instance.kernels[softmax], Role::kSoftmax)) return std::nullopt;
  const auto is_between = [&](std::size_t index) {
    return recording.is_element_wise(instance.kernels[index]);
  };
  const auto is_product = [&](std::size_t index) {
    return recording.has_role(instance.kernels[index], Role::kProduct);
  };
  std::size_t first = softmax, last = softmax + 1;
  for (std::size_t step = 0; first > 0 && step <= kMostBetween; ++step) {
    --first;
    if (!is_between(first)) break;
  }
  for (std::size_t step = 0; last < instance.kernels.size() && step <= kMostBetween; ++step) {
    if (!is_between(last)) break;
    ++last;
  }
  const bool is_whole = is_product(first) && last < instance.kernels.size() && is_product(last);
  if (!is_whole) return std::nullopt;
  const double products_ns = recording.duration_ns(instance.kernels[first]) +
                             recording.duration_ns(instance.kernels[last]);
  return Sequence{between(instance, first, last), products_ns};
}

// ---- Cross entropy

/// A softmax, its logarithm, what picks and adds up: the cast in front, and small kernels behind.
std::optional<Sequence> cross_entropy_around(const Recording& recording, const Instance& instance,
                                             std::size_t softmax) {
  constexpr std::size_t kMostBetween = 3;
  if (!recording.has_role(instance.kernels[softmax], Role::kSoftmax)) return std::nullopt;
  std::size_t last = softmax + 1;
  const auto is_logarithm = [&](std::size_t index) {
    return recording.is_named(instance.kernels[index], "log_kernel");
  };
  while (last < instance.kernels.size() && last - softmax <= kMostBetween && !is_logarithm(last))
    ++last;
  if (last >= instance.kernels.size() || !is_logarithm(last)) return std::nullopt;
  while (last + 1 < instance.kernels.size()) {
    const Id next = instance.kernels[last + 1];
    const bool is_part =
        recording.has_role(next, Role::kScatter) || recording.has_role(next, Role::kReduction) ||
        recording.has_role(next, Role::kIndexing) || recording.is_named(next, "neg_kernel");
    if (!is_part) break;
    ++last;
  }
  std::size_t first = softmax;
  if (first > 0 && recording.has_role(instance.kernels[first - 1], Role::kCopy)) --first;
  Ids works = between(instance, first, last);
  const double one_ns = one_pass(recording, works).value_or(recording.duration_ns(works.front()));
  return Sequence{std::move(works), one_ns};
}

// ---- One-hot products

std::optional<Sequence> one_hot_from(const Recording& recording, const Instance& instance,
                                     std::size_t fill) {
  const auto has_role = [&](std::size_t index, Role role) {
    return index < instance.kernels.size() && recording.has_role(instance.kernels[index], role);
  };
  if (!has_role(fill, Role::kFill) || !has_role(fill + 1, Role::kScatter)) return std::nullopt;
  std::size_t last = fill + 2;
  if (has_role(last, Role::kCopy)) ++last;
  if (!has_role(last, Role::kProduct)) return std::nullopt;
  while (has_role(last + 1, Role::kProduct) &&
         recording.is_named(instance.kernels[last + 1], "splitKreduce"))
    ++last;
  Ids works = between(instance, fill, last);
  const Id shortest =
      *std::ranges::min_element(works, {}, [&](Id work) { return recording.duration_ns(work); });
  return Sequence{works, recording.duration_ns(shortest)};
}

// ---- Normalization

std::optional<Sequence> normalization_around(const Recording& recording, const Instance& instance,
                                             std::size_t mean) {
  constexpr std::size_t kMostBefore = 4, kMostBetween = 4;
  const bool is_mean = recording.is_named(instance.kernels[mean], "MeanOps") ||
                       recording.is_named(instance.kernels[mean], "WelfordOps");
  if (!is_mean) return std::nullopt;
  std::size_t root = mean + 1;
  const auto is_root = [&](std::size_t index) {
    return recording.is_named(instance.kernels[index], "rsqrt_kernel") ||
           recording.is_named(instance.kernels[index], "sqrt_kernel");
  };
  while (root < instance.kernels.size() && root - mean <= kMostBetween && !is_root(root) &&
         recording.is_element_wise(instance.kernels[root]))
    ++root;
  if (root >= instance.kernels.size() || !is_root(root)) return std::nullopt;
  std::size_t first = mean, last = root;
  const auto is_before = [&](std::size_t index) {
    return recording.is_element_wise(instance.kernels[index]) ||
           recording.is_named(instance.kernels[index], "MeanOps");
  };
  while (first > 0 && mean - first < kMostBefore && is_before(first - 1)) --first;
  while (last + 1 < instance.kernels.size() && last - root < kMostBetween &&
         recording.is_element_wise(instance.kernels[last + 1]))
    ++last;
  Ids works = between(instance, first, last);
  const auto one_ns = one_pass(recording, works);
  if (!one_ns) return std::nullopt;
  return Sequence{std::move(works), *one_ns};
}

}  // namespace

void find_attention(const Recording& recording, Findings& findings) {
  // Heads of 64 and 128: fused it takes 0.33 to 0.66 of two products that write and read the
  // scores (H100).
  Candidate candidate{"attention_by_hand", "", {}, {0.4, 0.2, 0.7}, {}};
  add_sequences(recording, findings, std::move(candidate), "attention by hand",
                sequences_in(recording, findings, [&](const Instance& instance, std::size_t index) {
                  return attention_around(recording, instance, index);
                }));
}

void find_cross_entropy(const Recording& recording, Findings& findings) {
  Candidate candidate{"cross_entropy_by_hand", "", {}, {1, 0.6, 1.5}, {}};
  add_sequences(recording, findings, std::move(candidate), "cross entropy by hand",
                sequences_in(recording, findings, [&](const Instance& instance, std::size_t index) {
                  return cross_entropy_around(recording, instance, index);
                }));
}

void find_one_hot(const Recording& recording, Findings& findings) {
  Candidate candidate{"one_hot_product", "", {}, {1, 1, 2}, {}};
  add_sequences(recording, findings, std::move(candidate), "a product with one-hot rows",
                sequences_in(recording, findings, [&](const Instance& instance, std::size_t index) {
                  return one_hot_from(recording, instance, index);
                }));
}

void find_normalization(const Recording& recording, Findings& findings) {
  Candidate candidate{"normalization_by_hand", "", {}, {1, 0.8, 1.5}, {}};
  add_sequences(recording, findings, std::move(candidate), "normalization by hand",
                sequences_in(recording, findings, [&](const Instance& instance, std::size_t index) {
                  return normalization_around(recording, instance, index);
                }));
}

}  // namespace rangescope::analyze::cures
