// Precisions that cost more than they need to: products of matrices that the tensor cores would
// take faster, and float64.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "analyze/cures/batches.hpp"
#include "analyze/cures/candidate.hpp"
#include "base/units.hpp"

namespace rangescope::analyze::cures {
namespace {

double peak(const model::Peaks& peaks, const char* precision) {
  const auto found = peaks.flop_per_s.find(precision);
  return found == peaks.flop_per_s.end() ? 0 : found->second;
}

std::string count_and_time(const Recording& recording, const Ids& kernels, const char* what) {
  return fmt::format("{} {} take {} of {}",
                     kernels.size(),
                     what,
                     base::format_ns(recording.duration_ns(kernels)),
                     base::format_ns(recording.kernel_ns()));
}

// ---- Float64

/// What a program makes on the CPU for kernels in float64.
struct DoubleBatches {
  Ids stretches, copies;
  double share = 0;  ///< of the stretches' samples that are in NumPy's loops over float64
};

/// NumPy names its loops by the type: DOUBLE_multiply, _aligned_contig_cast_int_to_double.
bool loops_over_doubles(std::string_view function) {
  return function.starts_with("DOUBLE_") || function.find("_to_double") != std::string_view::npos;
}

/// Copies to the GPU behind which kernels in float64 take most of the time up to the next copy,
/// also in the next instance, where steps that were found end with the copy. Kernels of an FFT read
/// float64 too, but their names do not show it.
std::vector<bool> is_copied_for_doubles(const Recording& recording) {
  std::vector<bool> is_for_doubles(recording.graph().size());
  Id copy = model::kNone;
  double doubles_ns = 0, others_ns = 0;
  const auto finish = [&] {
    if (copy != model::kNone)
      is_for_doubles[copy] = doubles_ns > others_ns;
    doubles_ns = others_ns = 0;
  };
  for (const Instance& instance : recording.instances()) {
    for (const Id work : instance.works) {
      if (recording.is_copy_to_gpu(work)) {
        finish();
        copy = work;
      }
      if (!recording.is_kernel(work))
        continue;
      double& sum_ns = recording.traits(work).is_double ? doubles_ns : others_ns;
      sum_ns += recording.duration_ns(work);
    }
  }
  finish();
  return is_for_doubles;
}

DoubleBatches double_batches(const Recording& recording, const StackSamples& samples) {
  DoubleBatches doubles;
  std::size_t sampled = 0, looping = 0;
  const std::vector<bool> is_for_doubles = is_copied_for_doubles(recording);
  for (const Batch& batch : batches_of(recording)) {
    if (!is_for_doubles[batch.copy])
      continue;
    doubles.stretches.push_back(batch.stretch);
    doubles.copies.push_back(batch.copy);
    for (const std::uint32_t stack : samples.in(recording, batch.stretch)) {
      ++sampled;
      if (samples.has_function(stack, loops_over_doubles))
        ++looping;
    }
  }
  if (sampled > 0)
    doubles.share = static_cast<double>(looping) / static_cast<double>(sampled);
  return doubles;
}

// ---- Float32

struct Fp32Peaks {
  double fp32 = 0, tf32 = 0;  ///< FLOP per second
};

/// Nothing where the GPU is not known, or its tensor cores do not take float32.
std::optional<Fp32Peaks> fp32_peaks(const Recording& recording) {
  if (recording.peaks() == nullptr)
    return std::nullopt;
  const double fp32 = peak(*recording.peaks(), "fp32");
  const double tf32 = peak(*recording.peaks(), "tensor_tf32");
  if (!(fp32 > 0) || tf32 <= fp32)
    return std::nullopt;
  return Fp32Peaks{fp32, tf32};
}

/// With the product that FFT and Winograd have between their transforms.
Ids fp32_convolutions(const Recording& recording) {
  Ids convolutions;
  for (const Instance& instance : recording.instances()) {
    bool is_behind_transform = false;
    for (const Id kernel : instance.kernels) {
      const KernelTraits& traits = recording.traits(kernel);
      const bool is_their_product = is_behind_transform && traits.on_fp32_units;
      if (traits.is_fp32_convolution || is_their_product)
        convolutions.push_back(kernel);
      is_behind_transform = traits.is_fp32_convolution && traits.transforms_tiles;
    }
  }
  return convolutions;
}

}  // namespace

void find_fp32_convolutions(const Recording& recording, Findings& findings) {
  const Ids convolutions = fp32_convolutions(recording);
  if (convolutions.empty() || !fp32_peaks(recording))
    return;
  findings.claim(convolutions);
  // Farther from the peaks than products: all convolutions of a network of 64 channels took 0.43
  // times as long (cuDNN 9, H100), and images of few channels gain less.
  constexpr replay::Parameter kOfFloat32{0.4, 0.2, 0.6};
  Candidate candidate{
      "fp32_convolutions",
      count_and_time(
          recording, convolutions, "kernels of float32 convolutions without tensor cores"),
      {},
      kOfFloat32,
      {{"kernels", static_cast<double>(convolutions.size())},
       {"kernel_ns", recording.duration_ns(convolutions)}}};
  candidate.remedy.shortened = convolutions;
  findings.add(std::move(candidate));
}

void find_fp32_products(const Recording& recording, Findings& findings) {
  const auto peaks = fp32_peaks(recording);
  Ids products = kernels_with(recording, &KernelTraits::on_fp32_units);
  Ids of_convolutions = fp32_convolutions(recording);
  std::ranges::sort(of_convolutions);
  std::erase_if(products,
                [&](Id kernel) { return std::ranges::binary_search(of_convolutions, kernel); });
  if (products.empty() || !peaks)
    return;
  // A small product does not come as near to the tensor cores' peak as to that of the FP32 units.
  constexpr double kFartherFromPeak = 1.5;
  const double factor = peaks->fp32 / peaks->tf32;
  Candidate candidate{"fp32_products",
                      count_and_time(recording, products, "float32 products without tensor cores"),
                      {},
                      {factor, factor, kFartherFromPeak * factor},
                      {{"products", static_cast<double>(products.size())},
                       {"product_ns", recording.duration_ns(products)},
                       {"peak_ratio", 1 / factor}}};
  candidate.remedy.shortened = products;
  findings.add(std::move(candidate));
}

void find_unaligned_products(const Recording& recording, Findings& findings) {
  const Ids products = kernels_with(recording, &KernelTraits::is_unaligned);
  if (products.empty())
    return;
  // 154 TFLOP/s of kernels with loads of single elements, 650 to 820 of aligned ones (H100).
  constexpr replay::Parameter kOfUnaligned{0.2, 0.15, 0.4};
  Candidate candidate{"unaligned_products",
                      count_and_time(recording, products, "products of unaligned sizes"),
                      {},
                      kOfUnaligned,
                      {{"products", static_cast<double>(products.size())},
                       {"product_ns", recording.duration_ns(products)}}};
  candidate.remedy.shortened = products;
  findings.add(std::move(candidate));
}

/// Double is a choice in the kernels of a program of its own; PyTorch promotes to it what meets one
/// float64 tensor, which NumPy makes by default.
void find_doubles(const Recording& recording, Findings& findings) {
  const Ids doubles = kernels_with(recording, &KernelTraits::is_double);
  const bool is_of_pytorch = std::ranges::any_of(
      doubles, [&](Id kernel) { return recording.is_named(kernel, "at::native"); });
  if (!is_of_pytorch)
    return;
  // Half the bytes, at best. All kernels of a feature extractor, an FFT and a product among them,
  // took 0.59 times as long (PyTorch 2.11, H100).
  constexpr replay::Parameter kOfDouble{0.58, 0.5, 0.8};
  const DoubleBatches batches = double_batches(recording, findings.samples());
  std::string observation = count_and_time(recording, doubles, "kernels that compute in float64");
  if (batches.share > 0) {
    const double looping_ns = batches.share * recording.duration_ns(batches.stretches);
    observation +=
        fmt::format(", and NumPy's loops over their input {}", base::format_ns(looping_ns));
  }
  Candidate candidate{"double_precision",
                      std::move(observation),
                      {},
                      kOfDouble,
                      {{"kernels", static_cast<double>(doubles.size())},
                       {"kernel_ns", recording.duration_ns(doubles)},
                       {"share_of_batches", batches.share}}};
  candidate.remedy.shortened = doubles;
  append(candidate.remedy.shortened, batches.copies);
  candidate.remedy.reduced.push_back({batches.stretches, batches.share, 1 - batches.share});
  findings.add(std::move(candidate));
}

}  // namespace rangescope::analyze::cures
