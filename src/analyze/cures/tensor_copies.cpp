// Copies of tensors on the GPU that a program need not make: layouts, casts and transposes of what
// does not change, caches that grow by copying.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <set>

#include "analyze/cures/candidate.hpp"
#include "base/units.hpp"

namespace rangescope::analyze::cures {
namespace {

/// The sizes of what an instance computes.
class Activations {
 public:
  Activations(const Recording& recording, const Instance& instance) {
    for (const Id work : instance.works) {
      if (recording.has_role(work, Role::kPointwise))
        elements_.insert(recording.elements(work));
    }
  }

  /// Only the next smaller and the next larger size can be near enough.
  [[nodiscard]] bool has_size(double elements) const {
    const auto larger = elements_.lower_bound(elements);
    if (larger != elements_.end() && are_equal_sizes(*larger, elements))
      return true;
    return larger != elements_.begin() && are_equal_sizes(*std::prev(larger), elements);
  }

 private:
  std::set<double> elements_;
};

/// Copies directly in front of a product, of something that no other kernel of the instance made.
template <class Fits>
Ids copies_of_weights(const Recording& recording, const Findings& findings, Fits fits) {
  Ids copies;
  for (const Instance& instance : recording.instances()) {
    std::optional<Activations> activations;
    for (std::size_t index = 0; index + 1 < instance.kernels.size(); ++index) {
      const Id work = instance.kernels[index];
      const bool is_candidate = recording.has_role(work, Role::kCopy) &&
                                !findings.is_claimed(work) && fits(recording.traits(work));
      if (!is_candidate)
        continue;
      if (!recording.has_role(instance.kernels[index + 1], Role::kProduct))
        continue;
      if (!activations)
        activations.emplace(recording, instance);
      // Nothing that the instance computes is as large: it is no activation, but a weight.
      if (!activations->has_size(recording.elements(work)))
        copies.push_back(work);
    }
  }
  return copies;
}

/// Parameters do not change in it: it has no backward pass, which has a thread of its own, and no
/// optimizer.
bool is_inference(const Recording& recording, const Instance& instance) {
  return instance.helpers.empty() && std::ranges::none_of(instance.kernels, [&](Id kernel) {
           return recording.is_named(kernel, "multi_tensor_apply") ||
                  recording.is_named(kernel, "addcdiv");
         });
}

/// Casts in a row directly in front of a product, one of which is of a bias: torch.autocast casts
/// bias, weight and input of a layer. The input needs no cast where the layer before is of that
/// type as well.
Ids casts_of_layers(const Recording& recording, const Findings& findings) {
  constexpr std::size_t kMostInFront = 3;
  /// A weight has as many rows as its bias has elements.
  constexpr double kWeightPerBias = 64;
  Ids casts;
  const auto is_cast = [&](Id work) {
    return recording.has_role(work, Role::kCopy) && recording.traits(work).casts &&
           !findings.is_claimed(work);
  };
  for (const Instance& instance : recording.instances()) {
    if (!is_inference(recording, instance))
      continue;
    Ids in_front;
    for (const Id kernel : instance.kernels) {
      if (is_cast(kernel)) {
        in_front.push_back(kernel);
        continue;
      }
      const bool is_layer = recording.has_role(kernel, Role::kProduct) && in_front.size() >= 2 &&
                            in_front.size() <= kMostInFront;
      if (is_layer) {
        const auto elements_of = [&](Id cast) { return recording.elements(cast); };
        const auto [bias, weight] = std::ranges::minmax(in_front, {}, elements_of);
        if (elements_of(weight) >= kWeightPerBias * elements_of(bias))
          append(casts, in_front);
      }
      in_front.clear();
    }
  }
  return casts;
}

void add_removal(const Recording& recording,
                 Findings& findings,
                 std::string_view cure,
                 const char* what,
                 Ids kernels) {
  if (kernels.size() < recording.instances().size())
    return;
  findings.claim(kernels);
  Candidate candidate{cure,
                      fmt::format("{:.3g} {} per instance ({} of {})",
                                  per_instance(recording, kernels.size()),
                                  what,
                                  base::format_ns(recording.duration_ns(kernels)),
                                  base::format_ns(recording.kernel_ns())),
                      {},
                      {},
                      {{"kernels", static_cast<double>(kernels.size())},
                       {"kernel_ns", recording.duration_ns(kernels)}}};
  candidate.remedy.removed = std::move(kernels);
  findings.add(std::move(candidate));
}

/// From the first to the last, as a share of the mean: the slope of the line through them.
double growth_of(const std::vector<double>& durations_ns) {
  const auto count = static_cast<double>(durations_ns.size());
  double mean_ns = 0;
  for (const double ns : durations_ns)
    mean_ns += ns / count;
  double covariance = 0, variance = 0;
  for (std::size_t index = 0; index < durations_ns.size(); ++index) {
    const double from_middle = static_cast<double>(index) - (count - 1) / 2;
    covariance += from_middle * (durations_ns[index] - mean_ns);
    variance += from_middle * from_middle;
  }
  const double slope_ns = covariance / std::max(1.0, variance);
  return mean_ns > 0 ? slope_ns * (count - 1) / mean_ns : 0;
}

/// What an instance concatenates, and the products by which a GPU that gets slower shows.
struct Concatenations {
  Ids copies;
  double products_ns = 0;
};

Concatenations concatenations_of(const Recording& recording, const Instance& instance) {
  Concatenations found;
  for (const Id work : instance.works) {
    if (recording.has_role(work, Role::kConcatenation))
      found.copies.push_back(work);
    if (recording.has_role(work, Role::kProduct))
      found.products_ns += recording.duration_ns(work);
  }
  return found;
}

/// Concatenations that grow from one to the next in an instance, or from instance to instance more
/// than its products do.
double growth_of_caches(const Recording& recording,
                        const std::vector<Concatenations>& by_instance) {
  constexpr std::size_t kEnough = 6;
  std::vector<double> of_instances, of_products;
  double within = std::numeric_limits<double>::infinity();
  for (const auto& [copies, products_ns] : by_instance) {
    of_instances.push_back(recording.duration_ns(copies));
    of_products.push_back(products_ns);
    std::vector<double> of_copies;
    for (const Id copy : copies)
      of_copies.push_back(recording.duration_ns(copy));
    within = std::min(within, copies.size() >= kEnough ? growth_of(of_copies) : 0);
  }
  if (by_instance.size() < kEnough)
    return within;
  const double slowing = std::max(0.0, growth_of(of_products));
  return std::max(within, growth_of(of_instances) - slowing);
}

/// How long it takes to read the kernel's result and to write a tensor of that size: from an
/// element-wise kernel right behind it, which may read or write more tensors.
std::optional<double> pass_behind_ns(const Recording& recording,
                                     const Instance& instance,
                                     std::size_t index) {
  constexpr std::size_t kBehind = 2;
  const std::size_t end = std::min(instance.kernels.size(), index + 1 + kBehind);
  for (std::size_t next = index + 1; next < end; ++next) {
    const Id kernel = instance.kernels[next];
    if (!recording.is_element_wise(kernel))
      continue;
    constexpr double kReadAndWritten = 2;
    return recording.duration_ns(kernel) * kReadAndWritten / recording.traits(kernel).tensors;
  }
  return std::nullopt;
}

/// What a batch norm takes in NHWC; nothing where that is not known, or no less. In NCHW a block
/// takes a channel, so that few channels leave SMs idle; in NHWC all of them work. Then statistics
/// read the images, and gradients read two and write one, at half of the memory's speed: what an
/// element-wise kernel takes for a tensor, twice and five times. Results took one and a half times
/// as long as the element-wise kernel behind them (PyTorch 2.11, H100).
std::optional<double> in_channels_last_ns(const Recording& recording,
                                          const Instance& instance,
                                          std::size_t index) {
  constexpr double kStatistics = 2, kGradients = 5, kResults = 1.5;
  const Id kernel = instance.kernels[index];
  if (!recording.has_role(kernel, Role::kBatchNorm))
    return std::nullopt;
  std::optional<double> pass_ns;
  double passes = recording.is_named(kernel, "backward") ? kGradients : kStatistics;
  if (recording.is_named(kernel, "transform_input")) {
    passes = kResults;
    pass_ns = pass_behind_ns(recording, instance, index);
  } else if (recording.room(kernel) < 1) {
    pass_ns = recording.element_wise_pass_ns(instance.kernels);
  }
  if (!pass_ns || passes * *pass_ns >= recording.duration_ns(kernel))
    return std::nullopt;
  return passes * *pass_ns;
}

/// Of sequences: channels_last is a layout of images alone.
bool is_of_one_dimension(const ModuleCalls& modules, Id work) {
  const std::string_view name = modules.class_of(work);
  return name == "Conv1d" || name == "ConvTranspose1d";
}

void add_batch_norms(const Recording& recording, Findings& findings, Candidate& candidate) {
  Ids batch_norms;
  for (const Instance& instance : recording.instances()) {
    for (std::size_t index = 0; index < instance.kernels.size(); ++index) {
      const auto ns = in_channels_last_ns(recording, instance, index);
      if (!ns)
        continue;
      const Id kernel = instance.kernels[index];
      candidate.remedy.fused.push_back({{kernel}, static_cast<std::int64_t>(*ns)});
      batch_norms.push_back(kernel);
    }
  }
  if (batch_norms.empty())
    return;
  findings.claim(batch_norms);
  candidate.observation += fmt::format(", and batch norms that are slow in NCHW ({})",
                                       base::format_ns(recording.duration_ns(batch_norms)));
  candidate.evidence["batch_norm_ns"] = recording.duration_ns(batch_norms);
}

}  // namespace

void find_layout_conversions(const Recording& recording, Findings& findings) {
  Ids conversions = works_that(recording, [&](Id work) {
    return recording.has_role(work, Role::kLayout) &&
           !is_of_one_dimension(findings.modules(), work);
  });
  if (conversions.size() < recording.instances().size())
    return;
  findings.claim(conversions);
  const double conversion_ns = recording.duration_ns(conversions);
  Candidate candidate{
      "layout_conversions",
      fmt::format("{:.3g} conversions between NCHW and NHWC per instance "
                  "({} of {})",
                  per_instance(recording, conversions.size()),
                  base::format_ns(conversion_ns),
                  base::format_ns(recording.kernel_ns())),
      {},
      {1, 0.5, 1.5},
      {{"kernels", static_cast<double>(conversions.size())}, {"kernel_ns", conversion_ns}}};
  candidate.remedy.removed = std::move(conversions);
  add_batch_norms(recording, findings, candidate);
  findings.add(std::move(candidate));
}

void find_casts(const Recording& recording, Findings& findings) {
  Ids casts = copies_of_weights(
      recording, findings, [](const KernelTraits& traits) { return traits.casts; });
  const Ids of_layers = casts_of_layers(recording, findings);
  if (!of_layers.empty()) {
    append(casts, of_layers);
    std::ranges::sort(casts);
    casts.erase(std::unique(casts.begin(), casts.end()), casts.end());
  }
  if (casts.empty())
    return;
  add_removal(recording,
              findings,
              "weight_casts",
              "casts of weights in front of products",
              std::move(casts));
}

void find_transposed_copies(const Recording& recording, Findings& findings) {
  Ids copies = copies_of_weights(recording, findings, [](const KernelTraits& traits) {
    return traits.is_strided && !traits.casts;
  });
  if (copies.empty())
    return;
  add_removal(recording,
              findings,
              "transposed_copies",
              "strided copies of weights in front of products",
              std::move(copies));
}

void find_grown_caches(const Recording& recording, Findings& findings) {
  constexpr double kGrows = 0.05;
  /// A kernel that writes one part takes about as long, however large the cache is.
  constexpr double kOnePart_ns = 2'000;
  std::vector<Concatenations> by_instance;
  Ids copies;
  for (const Instance& instance : recording.instances()) {
    Concatenations of_instance = concatenations_of(recording, instance);
    if (of_instance.copies.empty())
      continue;
    append(copies, of_instance.copies);
    by_instance.push_back(std::move(of_instance));
  }
  if (copies.empty())
    return;
  const double grown = growth_of_caches(recording, by_instance);
  if (grown < kGrows)
    return;
  const double copy_ns = recording.duration_ns(copies);
  const double left = std::min(1.0, kOnePart_ns * static_cast<double>(copies.size()) / copy_ns);
  Candidate candidate{
      "grown_cache",
      fmt::format(
          "torch.cat copies a growing cache {:.3g} times per instance, the last one {} longer "
          "({} of {})",
          per_instance(recording, copies.size()),
          base::format_share(grown),
          base::format_ns(copy_ns),
          base::format_ns(recording.kernel_ns())),
      {},
      {left, left / 2, 2 * left},
      {{"copies", static_cast<double>(copies.size())},
       {"copy_ns", copy_ns},
       {"grown_share", grown}}};
  candidate.remedy.shortened = std::move(copies);
  findings.add(std::move(candidate));
}

}  // namespace rangescope::analyze::cures
