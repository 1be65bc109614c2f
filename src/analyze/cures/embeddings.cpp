// Gradients of embedding tables as large as the tables, of which a batch touches few rows: they are
// zeroed, and the optimizer goes through all of them.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "analyze/cures/candidate.hpp"
#include "base/units.hpp"
#include "model/backward.hpp"

namespace rangescope::analyze::cures {
namespace {

/// Below that, sorting and adding up rows costs as much as the rows that are left out.
constexpr double kFewestTimesAsLarge = 10;
constexpr double kMostTouched = 1 / kFewestTimesAsLarge;

/// The gradient of one table.
struct TableGradient {
  Id zeros = 0;
  std::size_t last = 0;         ///< its last kernel, index into Instance::kernels
  double elements = 0;          ///< of the table
  double touched_elements = 0;  ///< at most
};

/// What PyTorch launches between zeroing a table's gradient and adding up rows of it.
bool lists_rows(const Recording& recording, Id kernel) {
  constexpr std::string_view kParts[] = {"DeviceScan",
                                         "unique_by_key",
                                         "krn_partial",
                                         "compute_num_of_partial_segments",
                                         "compute_grad_weight"};
  return recording.has_role(kernel, Role::kSelection) ||
         std::ranges::any_of(
             kParts, [&](std::string_view part) { return recording.is_named(kernel, part); });
}

/// The kernel that adds up rows has a thread for each element of each row of the batch.
std::optional<TableGradient> table_gradient_from(const Recording& recording,
                                                 const Instance& instance,
                                                 std::size_t fill) {
  const Id zeros = instance.kernels[fill];
  if (!recording.has_role(zeros, Role::kFill))
    return std::nullopt;
  std::size_t last = fill + 1;
  while (last < instance.kernels.size() && lists_rows(recording, instance.kernels[last]))
    ++last;
  if (last >= instance.kernels.size())
    return std::nullopt;
  const Id sum = instance.kernels[last];
  if (!recording.is_named(sum, "sum_and_scatter"))
    return std::nullopt;
  const model::KernelShape& shape = recording.shape_of(sum);
  return TableGradient{zeros, last, recording.elements(zeros), blocks_of(shape) * shape.block[0]};
}

/// An addition of the table's size: of the gradient that a layer has which shares its weights, or
/// of those of batches before. A gradient that is dense anyway cannot be sparse.
bool is_added_to_another(const Recording& recording,
                         const Instance& instance,
                         const TableGradient& gradient) {
  return std::ranges::any_of(instance.kernels, [&](Id kernel) {
    return recording.is_named(kernel, "CUDAFunctor_add") &&
           recording.elements(kernel) == gradient.elements;
  });
}

std::vector<TableGradient> table_gradients(const Recording& recording, const Instance& instance) {
  std::vector<TableGradient> gradients;
  for (std::size_t index = 0; index < instance.kernels.size(); ++index) {
    const auto gradient = table_gradient_from(recording, instance, index);
    if (!gradient)
      continue;
    index = gradient->last;
    const bool is_sparse = gradient->touched_elements <= kMostTouched * gradient->elements;
    if (is_sparse && !is_added_to_another(recording, instance, *gradient))
      gradients.push_back(*gradient);
  }
  return gradients;
}

/// Kernels of one name over lists of tensors.
struct OptimizerPass {
  Ids kernels;
  double elements = 0;
};

/// What an optimizer launches over all gradients; where its steps were not recorded, each kernel
/// over lists of tensors is taken for its own. A step that was found may begin with it.
std::vector<OptimizerPass> optimizer_passes(const Recording& recording,
                                            const ModuleCalls& modules,
                                            const Instance& instance) {
  std::map<std::uint32_t, OptimizerPass> by_name;
  for (const Id kernel : instance.kernels) {
    const bool is_of_optimizer =
        modules.empty() || modules.phase_of(kernel) == model::kOptimizerStep;
    if (!is_of_optimizer || !recording.is_named(kernel, "multi_tensor_apply"))
      continue;
    OptimizerPass& pass = by_name[recording.name_of(kernel)];
    pass.kernels.push_back(kernel);
    pass.elements += kMultiTensorChunk_elements * blocks_of(recording.shape_of(kernel));
  }
  std::vector<OptimizerPass> passes;
  for (auto& [name, pass] : by_name)
    passes.push_back(std::move(pass));
  return passes;
}

/// The norm of all gradients, which PyTorch does not take of sparse ones.
bool clips_gradients(const Recording& recording, const Instance& instance) {
  return std::ranges::any_of(
      instance.kernels, [&](Id kernel) { return recording.is_named(kernel, "LpNormFunctor"); });
}

/// Of an instance: what sparse gradients save.
struct SparseGradients {
  Ids zeros;
  std::vector<Remedy::Reduction> optimizer;
  std::size_t tables = 0;
  double elements = 0, touched_elements = 0;
};

SparseGradients sparse_gradients(const Recording& recording,
                                 const ModuleCalls& modules,
                                 const Instance& instance) {
  SparseGradients sparse;
  if (clips_gradients(recording, instance))
    return sparse;
  for (const TableGradient& gradient : table_gradients(recording, instance)) {
    sparse.zeros.push_back(gradient.zeros);
    sparse.elements += gradient.elements;
    sparse.touched_elements += gradient.touched_elements;
    ++sparse.tables;
  }
  if (sparse.tables == 0)
    return sparse;
  for (OptimizerPass& pass : optimizer_passes(recording, modules, instance)) {
    // A pass over fewer elements than the tables have is of something else.
    if (pass.elements < sparse.elements)
      continue;
    const double left = pass.elements - sparse.elements + sparse.touched_elements;
    sparse.optimizer.push_back({std::move(pass.kernels), left / pass.elements});
  }
  return sparse;
}

}  // namespace

void find_dense_gradients(const Recording& recording, Findings& findings) {
  if (!recording.has_steps())
    return;
  const ModuleCalls& modules = findings.modules();
  Candidate candidate{"dense_gradients", "", {}, {1, 1, 2}, {}};
  Ids works;
  double elements = 0, touched_elements = 0;
  std::size_t tables = 0, with_tables = 0;
  for (const Instance& instance : recording.instances()) {
    SparseGradients sparse = sparse_gradients(recording, modules, instance);
    if (sparse.optimizer.empty())
      continue;
    append(candidate.remedy.removed, sparse.zeros);
    append(works, sparse.zeros);
    for (Remedy::Reduction& reduction : sparse.optimizer) {
      append(works, reduction.operations);
      candidate.remedy.reduced.push_back(std::move(reduction));
    }
    elements += sparse.elements;
    touched_elements += sparse.touched_elements;
    tables += sparse.tables;
    ++with_tables;
  }
  if (2 * with_tables <= recording.instances().size())
    return;
  findings.claim(works);
  const auto elements_of_step =
      static_cast<std::int64_t>(elements / static_cast<double>(with_tables));
  candidate.observation = fmt::format(
      "an optimizer goes through embeddings of {} parameters, of which a step has gradients of {} "
      "at most ({} of {})",
      base::format_count(elements_of_step),
      base::format_share(touched_elements / elements),
      base::format_ns(recording.duration_ns(works)),
      base::format_ns(recording.kernel_ns()));
  candidate.evidence = {{"tables", per_instance(recording, tables)},
                        {"touched_share", touched_elements / elements},
                        {"kernel_ns", recording.duration_ns(works)}};
  findings.add(std::move(candidate));
}

}  // namespace rangescope::analyze::cures
