// Lists of kernels for ncu, as files: of a stage before, and of other tools.
//
//   kernels:
//     - name: gemm_kernel<float>(float const*, int)
//       regex: ^gemm_kernel<float>.*$
//       description: "Kernel #1 - 30.0% of GPU time, 448 calls"
//
// `regex` is matched with demangled names and may be edited to mean a family of kernels; where it
// is absent, or matches just the name, the name is taken.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "analyze/tree/meant.hpp"
#include "base/result.hpp"

namespace rangescope::profile {

struct ListedKernel {
  std::string name;         ///< demangled, or the function's name alone
  std::string regex;        ///< only where it means more than the name
  std::string description;  ///< shown where the kernel is chosen
};

/// What a note calls it: the function's name without arguments, or the regex of one without a name.
[[nodiscard]] std::string listed_title(const ListedKernel& kernel);

/// Chosen by GPU time, with a description that has the time and the calls of each.
[[nodiscard]] std::vector<ListedKernel> listed_of(std::span<const analyze::ChosenKernel> chosen);

/// The kernels of such a file, or of a recording or a table of nsys by GPU time (all of them).
/// kNoInput, kConfig with the place, kBadData as the reader of the format; kNothingCaptured where
/// there is no kernel in it.
[[nodiscard]] base::Result<std::vector<ListedKernel>> read_kernel_list(
    const std::filesystem::path& file);

[[nodiscard]] std::string kernel_list_text(std::span<const ListedKernel> kernels);

}  // namespace rangescope::profile
