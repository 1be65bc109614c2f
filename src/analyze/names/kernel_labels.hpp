// Names by which a table tells kernels apart: the short name, and of several with the same short
// name what differs.
#pragma once

#include <string>
#include <string_view>

#include "model/report.hpp"

namespace rangescope::analyze {

/// Sets KernelRow::label of every row of the report. Kernels that share a short name get the words
/// of their full names that the fewest of the others have, at most three:
/// `multi_tensor_apply_kernel<BinaryOpScalarFunctor, divides>`; where words do not differ, the grid
/// and block of their launches. O(kernels of one short name squared).
void tell_kernels_apart(model::Report& report);

/// A kernel's name without what compilers and template arguments add: no return type, template
/// arguments, parameters, anonymous namespaces and numbers of lambdas. "void ns::k<float,
/// 4>(float*)" becomes "ns::k".
[[nodiscard]] std::string folded_kernel(std::string_view name);

}  // namespace rangescope::analyze
