// Precisions that cost more than they need to: products of matrices that the tensor cores would
// take faster, and float64.
#include <fmt/format.h>

#include <algorithm>

#include "analyze/cures/candidate.hpp"
#include "base/units.hpp"

namespace rangescope::analyze::cures {
namespace {

double peak(const model::Peaks& peaks, const char* precision) {
  const auto found = peaks.flop_per_s.find(precision);
  return found == peaks.flop_per_s.end() ? 0 : found->second;
}

std::string count_and_time(const Recording& recording, const Ids& kernels, const char* what) {
  return fmt::format("{} {} take {} of {}", kernels.size(), what,
                     base::format_ns(recording.duration_ns(kernels)),
                     base::format_ns(recording.kernel_ns()));
}

}  // namespace

void find_fp32_products(const Recording& recording, Findings& findings) {
  if (recording.peaks() == nullptr) return;
  const double fp32 = peak(*recording.peaks(), "fp32");
  const double tf32 = peak(*recording.peaks(), "tensor_tf32");
  if (!(fp32 > 0) || tf32 <= fp32) return;
  const Ids products = kernels_with(recording, &KernelTraits::on_fp32_units);
  if (products.empty()) return;
  // A small product does not come as near to the tensor cores' peak as to that of the FP32 units.
  constexpr double kFartherFromPeak = 1.5;
  const double factor = fp32 / tf32;
  Candidate candidate{"fp32_products",
                      count_and_time(recording, products, "float32 products without tensor cores"),
                      {},
                      {factor, factor, kFartherFromPeak * factor},
                      {{"products", static_cast<double>(products.size())},
                       {"product_ns", recording.duration_ns(products)},
                       {"peak_ratio", tf32 / fp32}}};
  candidate.remedy.shortened = products;
  findings.add(std::move(candidate));
}

void find_unaligned_products(const Recording& recording, Findings& findings) {
  const Ids products = kernels_with(recording, &KernelTraits::is_unaligned);
  if (products.empty()) return;
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
  if (!is_of_pytorch) return;
  // Half the bytes, at best. All kernels of a feature extractor, an FFT and a product among them,
  // took 0.59 times as long (PyTorch 2.11, H100).
  constexpr replay::Parameter kOfDouble{0.58, 0.5, 0.8};
  Candidate candidate{"double_precision",
                      count_and_time(recording, doubles, "kernels that compute in float64"),
                      {},
                      kOfDouble,
                      {{"kernels", static_cast<double>(doubles.size())},
                       {"kernel_ns", recording.duration_ns(doubles)}}};
  candidate.remedy.shortened = doubles;
  findings.add(std::move(candidate));
}

}  // namespace rangescope::analyze::cures
