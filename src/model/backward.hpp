// What PyTorch's backward pass is called in recordings and in reports, where names of its ranges
// tell it and where launches do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rangescope::model {

struct Session;

/// Begins the name of a range that autograd opens around a function.
inline constexpr std::string_view kEvaluates = "autograd::engine::evaluate_function: ";
/// Whether any range is called so.
[[nodiscard]] bool has_evaluated_functions(const Session& session);
/// The domain of calls of PyTorch's modules.
inline constexpr std::string_view kModuleDomain = "nn.Module";
/// Outermost region of the backward pass in that domain.
inline constexpr std::string_view kBackward = "backward";
/// Around the step of any optimizer of PyTorch, in the same domain.
inline constexpr std::string_view kOptimizerStep = "optimizer step";

/// The domain of PyTorch's modules, which is made where there is none; kNone with `make` false.
std::uint32_t module_domain(Session& session, bool make);

/// How the modules of functions of the backward pass, or of their launches, were found.
struct BackwardShares {
  std::size_t by_number = 0;  ///< by the sequence number of the operator that made the function
  std::size_t by_place = 0;   ///< it has none: by the function before it
  std::size_t total = 0;
  /// `noun`: "function". "" of none.
  [[nodiscard]] std::string text(std::string_view noun) const;
};

}  // namespace rangescope::model
