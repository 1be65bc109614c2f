// Sequences of kernels that one kernel of a library does: attention, cross entropy, embedding and
// normalization by hand.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analyze/cures/candidate.hpp"
#include "base/units.hpp"

namespace rangescope::analyze::cures {
namespace {

/// Kernels from `first` to `last`, both included, and copies on the GPU and fills between them.
Ids between(const Recording& recording,
            const Instance& instance,
            std::size_t first,
            std::size_t last) {
  Ids works;
  for (std::size_t place = instance.places[first]; place <= instance.places[last]; ++place) {
    const Id work = instance.works[place];
    const Kind kind = recording.operation(work).kind;
    const bool stays_on_gpu =
        kind == Kind::kKernel || kind == Kind::kMemset ||
        (kind == Kind::kCopy && recording.copy(work).kind == model::CopyKind::kDeviceToDevice);
    if (stays_on_gpu)
      works.push_back(work);
  }
  return works;
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
      if (findings.is_claimed(instance.kernels[index]))
        continue;
      std::optional<Sequence> sequence = match(instance, index);
      if (!sequence)
        continue;
      findings.claim(sequence->works);
      sequences.push_back(std::move(*sequence));
    }
  }
  return sequences;
}

void add_sequences(const Recording& recording,
                   Findings& findings,
                   Candidate candidate,
                   const char* what,
                   std::vector<Sequence> sequences) {
  if (sequences.empty())
    return;
  std::size_t kernels = 0;
  double ns = 0;
  for (Sequence& sequence : sequences) {
    for (const Id work : sequence.works) {
      if (!recording.is_kernel(work))
        continue;
      ++kernels;
      ns += recording.duration_ns(work);
    }
    candidate.remedy.fused.push_back(
        {std::move(sequence.works), static_cast<std::int64_t>(sequence.one_ns)});
  }
  candidate.observation = fmt::format("{} ({:.3g} kernels per instance, {} of {})",
                                      what,
                                      per_instance(recording, kernels),
                                      base::format_ns(ns),
                                      base::format_ns(recording.kernel_ns()));
  candidate.evidence = {{"kernels", static_cast<double>(kernels)},
                        {"sequences", static_cast<double>(sequences.size())},
                        {"kernel_ns", ns}};
  findings.add(std::move(candidate));
}

// ---- Attention

/// What products of attention take without the scores that they write or read, each as many as the
/// largest element-wise kernel among `works` takes. A quarter of a product is left at least; 0.4 of
/// it (0.33 to 0.66, heads of 64 and 128, H100) where sizes or the GPU's memory are not known.
double products_without_scores_ns(const Recording& recording, const Ids& works) {
  const double elements = recording.largest_elements(works);
  double element_bytes = 0;
  for (const Id work : works) {
    const bool is_full =
        recording.is_element_wise(work) && are_equal_sizes(recording.elements(work), elements);
    if (!is_full)
      continue;
    const KernelTraits& traits = recording.traits(work);
    const double bytes = traits.bytes_per_element / std::max(1.0, traits.tensors);
    if (element_bytes == 0 || bytes < element_bytes)
      element_bytes = bytes;
  }
  constexpr double kShareOfPeak = 0.8, kLeastLeft = 0.25, kLeftWhereUnknown = 0.4;
  const double bytes_per_s =
      recording.peaks() == nullptr ? 0 : kShareOfPeak * recording.peaks()->memory_bytes_per_s;
  const bool is_known = bytes_per_s > 0 && elements > 0;
  const double scores_ns = is_known ? elements * element_bytes / bytes_per_s * 1e9 : 0;
  const double least_left = is_known ? kLeastLeft : kLeftWhereUnknown;
  double left_ns = 0;
  for (const Id work : works) {
    const double product_ns = recording.duration_ns(work);
    if (!recording.has_role(work, Role::kProduct))
      continue;
    const double computing_ns = is_known ? product_ns - scores_ns : 0;
    left_ns += std::max(least_left * product_ns, computing_ns);
  }
  return left_ns;
}

/// `products` before and behind a softmax or its gradient; in between what scales and masks.
std::optional<Sequence> attention_around(const Recording& recording,
                                         const Instance& instance,
                                         std::size_t softmax,
                                         std::size_t products) {
  constexpr std::size_t kMostBetween = 4;
  const std::size_t count = instance.kernels.size();
  const auto is_between = [&](std::size_t index) {
    return recording.is_element_wise(instance.kernels[index]);
  };
  const auto is_product = [&](std::size_t index) {
    return recording.has_role(instance.kernels[index], Role::kProduct);
  };
  std::size_t first = softmax, last = softmax + 1;
  while (first > 0 && softmax - first < kMostBetween && is_between(first - 1))
    --first;
  while (last < count && last - softmax <= kMostBetween && is_between(last))
    ++last;
  for (std::size_t product = 0; product < products; ++product, --first, ++last) {
    if (first == 0 || !is_product(first - 1))
      return std::nullopt;
    if (last >= count || !is_product(last))
      return std::nullopt;
  }
  Ids works = between(recording, instance, first, last - 1);
  const double one_ns = products_without_scores_ns(recording, works);
  return Sequence{std::move(works), one_ns};
}

/// From the product of queries and keys to that with values; in the backward pass from the
/// gradients of values and probabilities to those of queries and keys.
std::optional<Sequence> attention_at(const Recording& recording,
                                     const Instance& instance,
                                     std::size_t softmax) {
  const Id kernel = instance.kernels[softmax];
  if (recording.has_role(kernel, Role::kSoftmax))
    return attention_around(recording, instance, softmax, 1);
  if (recording.has_role(kernel, Role::kSoftmaxGradient))
    return attention_around(recording, instance, softmax, 2);
  return std::nullopt;
}

// ---- Cross entropy

/// A softmax, its logarithm, what picks and adds up: the cast in front, and small kernels behind.
std::optional<Sequence> cross_entropy_around(const Recording& recording,
                                             const Instance& instance,
                                             std::size_t softmax) {
  constexpr std::size_t kMostBetween = 3;
  if (!recording.has_role(instance.kernels[softmax], Role::kSoftmax))
    return std::nullopt;
  std::size_t last = softmax + 1;
  const auto is_logarithm = [&](std::size_t index) {
    return recording.is_named(instance.kernels[index], "log_kernel");
  };
  while (last < instance.kernels.size() && last - softmax <= kMostBetween && !is_logarithm(last))
    ++last;
  if (last >= instance.kernels.size() || !is_logarithm(last))
    return std::nullopt;
  while (last + 1 < instance.kernels.size()) {
    const Id next = instance.kernels[last + 1];
    const bool is_part =
        recording.has_role(next, Role::kScatter) || recording.has_role(next, Role::kReduction) ||
        recording.has_role(next, Role::kIndexing) || recording.is_named(next, "neg_kernel");
    if (!is_part)
      break;
    ++last;
  }
  std::size_t first = softmax;
  if (first > 0 && recording.has_role(instance.kernels[first - 1], Role::kCopy))
    --first;
  Ids works = between(recording, instance, first, last);
  const double one_ns =
      recording.element_wise_pass_ns(works).value_or(recording.duration_ns(works.front()));
  return Sequence{std::move(works), one_ns};
}

// ---- One-hot products

std::optional<Sequence> one_hot_from(const Recording& recording,
                                     const Instance& instance,
                                     std::size_t fill) {
  const auto has_role = [&](std::size_t index, Role role) {
    return index < instance.kernels.size() && recording.has_role(instance.kernels[index], role);
  };
  if (!has_role(fill, Role::kFill) || !has_role(fill + 1, Role::kScatter))
    return std::nullopt;
  std::size_t last = fill + 2;
  if (has_role(last, Role::kCopy))
    ++last;
  if (!has_role(last, Role::kProduct))
    return std::nullopt;
  while (has_role(last + 1, Role::kProduct) &&
         recording.is_named(instance.kernels[last + 1], "splitKreduce"))
    ++last;
  Ids works = between(recording, instance, fill, last);
  const Id shortest =
      *std::ranges::min_element(works, {}, [&](Id work) { return recording.duration_ns(work); });
  return Sequence{works, recording.duration_ns(shortest)};
}

// ---- One-hot losses

/// Of up to 1,024 classes a warp takes a row, for a softmax or, by an argument, its logarithm.
bool is_log_softmax(const Recording& recording, Id kernel) {
  if (recording.is_named(kernel, "LogSoftMaxForward"))
    return true;
  const bool is_logarithm =
      recording.is_named(kernel, ", true, false>") || recording.is_named(kernel, ", true, true>");
  return is_logarithm && recording.is_named(kernel, "softmax_warp_forward");
}

/// One-hot rows of the classes' number, kernels of equal size that weight and multiply them with
/// the logarithms of a softmax, and a sum. The log-softmax is one of these kernels, or right in
/// front of them; it is needed either way. What is left reads the logarithms once, as the sum does.
std::optional<Sequence> one_hot_loss_from(const Recording& recording,
                                          const Instance& instance,
                                          std::size_t fill) {
  const Ids& kernels = instance.kernels;
  const auto has_role = [&](std::size_t index, Role role) {
    return index < kernels.size() && recording.has_role(kernels[index], role);
  };
  if (!has_role(fill, Role::kFill) || !has_role(fill + 1, Role::kScatter))
    return std::nullopt;
  if (!recording.is_named(kernels[fill + 1], "fill"))
    return std::nullopt;  // of tensors
  const double elements = recording.elements(kernels[fill]);
  std::optional<std::size_t> log_softmax;
  if (fill > 0 && is_log_softmax(recording, kernels[fill - 1]))
    log_softmax = fill - 1;
  bool multiplies = false;
  std::size_t sum = fill + 2;
  for (; sum < kernels.size(); ++sum) {
    const Id kernel = kernels[sum];
    if (is_log_softmax(recording, kernel)) {
      log_softmax = sum;
      continue;
    }
    const bool is_of_size =
        recording.is_element_wise(kernel) && are_equal_sizes(recording.elements(kernel), elements);
    if (!is_of_size)
      break;
    multiplies = multiplies || recording.is_named(kernel, "MulFunctor");
  }
  if (!log_softmax || !multiplies || !has_role(sum, Role::kReduction))
    return std::nullopt;
  Ids works = between(recording, instance, fill, sum);
  std::erase(works, kernels[*log_softmax]);
  return Sequence{std::move(works), recording.duration_ns(kernels[sum])};
}

// ---- Normalization

std::optional<Sequence> normalization_around(const Recording& recording,
                                             const Instance& instance,
                                             std::size_t mean) {
  constexpr std::size_t kMostBefore = 4, kMostBetween = 4;
  const bool is_mean = recording.is_named(instance.kernels[mean], "MeanOps") ||
                       recording.is_named(instance.kernels[mean], "WelfordOps");
  if (!is_mean)
    return std::nullopt;
  std::size_t root = mean + 1;
  const auto is_root = [&](std::size_t index) {
    return recording.is_named(instance.kernels[index], "rsqrt_kernel") ||
           recording.is_named(instance.kernels[index], "sqrt_kernel");
  };
  while (root < instance.kernels.size() && root - mean <= kMostBetween && !is_root(root) &&
         recording.is_element_wise(instance.kernels[root]))
    ++root;
  if (root >= instance.kernels.size() || !is_root(root))
    return std::nullopt;
  std::size_t first = mean, last = root;
  const auto is_before = [&](std::size_t index) {
    return recording.is_element_wise(instance.kernels[index]) ||
           recording.is_named(instance.kernels[index], "MeanOps");
  };
  while (first > 0 && mean - first < kMostBefore && is_before(first - 1))
    --first;
  while (last + 1 < instance.kernels.size() && last - root < kMostBetween &&
         recording.is_element_wise(instance.kernels[last + 1]))
    ++last;
  Ids works = between(recording, instance, first, last);
  const auto one_ns = recording.element_wise_pass_ns(works);
  if (!one_ns)
    return std::nullopt;
  return Sequence{std::move(works), *one_ns};
}

}  // namespace

void find_attention(const Recording& recording, Findings& findings) {
  Candidate candidate{"attention_by_hand", "", {}, {1, 0.5, 1.7}, {}};
  add_sequences(recording,
                findings,
                std::move(candidate),
                "attention by hand",
                sequences_in(recording, findings, [&](const Instance& instance, std::size_t index) {
                  return attention_at(recording, instance, index);
                }));
}

void find_cross_entropy(const Recording& recording, Findings& findings) {
  Candidate candidate{"cross_entropy_by_hand", "", {}, {1, 0.6, 1.5}, {}};
  add_sequences(recording,
                findings,
                std::move(candidate),
                "cross entropy by hand",
                sequences_in(recording, findings, [&](const Instance& instance, std::size_t index) {
                  return cross_entropy_around(recording, instance, index);
                }));
}

void find_one_hot(const Recording& recording, Findings& findings) {
  Candidate candidate{"one_hot_product", "", {}, {1, 1, 2}, {}};
  add_sequences(recording,
                findings,
                std::move(candidate),
                "a product with one-hot rows",
                sequences_in(recording, findings, [&](const Instance& instance, std::size_t index) {
                  return one_hot_from(recording, instance, index);
                }));
}

void find_one_hot_losses(const Recording& recording, Findings& findings) {
  Candidate candidate{"one_hot_loss", "", {}, {1, 1, 2}, {}};
  add_sequences(recording,
                findings,
                std::move(candidate),
                "a loss of one-hot targets",
                sequences_in(recording, findings, [&](const Instance& instance, std::size_t index) {
                  return one_hot_loss_from(recording, instance, index);
                }));
}

void find_normalization(const Recording& recording, Findings& findings) {
  Candidate candidate{"normalization_by_hand", "", {}, {1, 0.8, 1.5}, {}};
  add_sequences(recording,
                findings,
                std::move(candidate),
                "normalization by hand",
                sequences_in(recording, findings, [&](const Instance& instance, std::size_t index) {
                  return normalization_around(recording, instance, index);
                }));
}

}  // namespace rangescope::analyze::cures
