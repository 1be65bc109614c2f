// Layers that make each row of their result from one row of their input, and do so for more rows
// than they need to: for rows that were gathered right before them, or for all rows, of which a
// mask selects a few right behind them.
//
// The backward pass tells where rows come from and go to: the gradient of a selection is zeros of
// the size of what was selected from, to which the gradients of the selected rows are added. It
// also tells that nothing else uses what is between the layers: further gradients would be added up
// there. Without a backward pass neither is known, and no cure is proposed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "analyze/cures/candidate.hpp"
#include "base/units.hpp"

namespace rangescope::analyze::cures {
namespace {

/// A model is worth a change if at least a third of the rows need not be worked on.
constexpr double kMostNeeded = 2.0 / 3;

/// Indexes into Instance::kernels.
struct KernelRange {
  std::size_t first = 0, end = 0;
};

bool works_row_by_row(std::string_view module_class) {
  constexpr std::string_view kClasses[] = {"Linear",
                                           "ReLU",
                                           "LeakyReLU",
                                           "ELU",
                                           "GELU",
                                           "SiLU",
                                           "Sigmoid",
                                           "Tanh",
                                           "LayerNorm",
                                           "RMSNorm"};
  return std::ranges::find(kClasses, module_class) != std::end(kClasses);
}

/// One instance, and in which modules its kernels were launched.
class Step {
 public:
  Step(const Recording& recording,
       const ModuleCalls& modules,
       const ResultBytes& bytes,
       const Instance& instance)
      : recording_(recording), modules_(modules), bytes_(bytes), kernels_(instance.kernels) {}

  [[nodiscard]] std::size_t size() const { return kernels_.size(); }
  [[nodiscard]] Id kernel(std::size_t index) const { return kernels_[index]; }
  [[nodiscard]] bool has_role(std::size_t index, Role role) const {
    return index < size() && recording_.has_role(kernels_[index], role);
  }
  [[nodiscard]] bool is_named(std::size_t index, std::string_view part) const {
    return index < size() && recording_.is_named(kernels_[index], part);
  }
  [[nodiscard]] bool is_forward(std::size_t index) const {
    return !modules_.is_in_backward_pass(kernels_[index]);
  }
  [[nodiscard]] std::string_view module_class(std::size_t index) const {
    return modules_.class_of(kernels_[index]);
  }
  [[nodiscard]] bool is_of_linear(std::size_t index) const {
    return index < size() && module_class(index) == "Linear" && is_forward(index);
  }
  [[nodiscard]] bool is_of_row_layer(std::size_t index) const {
    return is_forward(index) && works_row_by_row(module_class(index));
  }
  [[nodiscard]] std::optional<double> result_bytes(std::size_t index) const {
    return bytes_.of(kernels_[index]);
  }

  [[nodiscard]] std::set<model::StringId> modules_in(KernelRange range) const {
    std::set<model::StringId> names;
    for (std::size_t index = range.first; index < range.end; ++index)
      names.insert(modules_.name_of(kernels_[index]));
    return names;
  }
  /// All kernels of these modules in a pass, where they follow one another.
  [[nodiscard]] std::optional<KernelRange> only_kernels_of(const std::set<model::StringId>& modules,
                                                           bool is_forward_pass) const {
    std::optional<KernelRange> range;
    for (std::size_t index = 0; index < size(); ++index) {
      const bool is_one =
          is_forward(index) == is_forward_pass && modules.contains(modules_.name_of(kernel(index)));
      if (!is_one)
        continue;
      if (!range)
        range = KernelRange{index, index};
      if (range->end != index)
        return std::nullopt;
      ++range->end;
    }
    return range;
  }
  [[nodiscard]] Ids kernels_in(KernelRange range) const {
    const auto begin = kernels_.begin();
    return {begin + static_cast<std::ptrdiff_t>(range.first),
            begin + static_cast<std::ptrdiff_t>(range.end)};
  }

 private:
  const Recording& recording_;
  const ModuleCalls& modules_;
  const ResultBytes& bytes_;
  const Ids& kernels_;
};

/// Layers that could work on fewer rows, in both passes.
struct RowLayers {
  Ids works;
  Ids selections;           ///< by a mask: they stay, and so does what they wait for
  double needed_share = 1;  ///< of the rows that they work on
};

/// Rows added to zeros at the places that they were taken from.
bool adds_rows(const Step& step, std::size_t index) {
  return step.is_named(index, "indexFunc") || step.is_named(index, "indexing_backward");
}

std::optional<RowLayers> row_layers(const Step& step,
                                    KernelRange forward,
                                    KernelRange backward,
                                    std::optional<double> needed_bytes,
                                    std::optional<double> used_bytes) {
  if (!needed_bytes || !used_bytes)
    return std::nullopt;
  const double needed_share = *needed_bytes / *used_bytes;
  if (needed_share > kMostNeeded)
    return std::nullopt;
  RowLayers layers{step.kernels_in(forward), {}, needed_share};
  append(layers.works, step.kernels_in(backward));
  return layers;
}

/// Layers in both passes, as far as their modules are called once, without anything between them.
struct BothPasses {
  KernelRange forward, backward;
};
std::optional<BothPasses> both_passes(const Step& step, KernelRange forward) {
  const std::set<model::StringId> modules = step.modules_in(forward);
  const auto all_forward = step.only_kernels_of(modules, true);
  const auto backward = step.only_kernels_of(modules, false);
  if (!all_forward || !backward)
    return std::nullopt;
  const bool is_all = all_forward->first == forward.first && all_forward->end == forward.end;
  if (!is_all)
    return std::nullopt;
  return BothPasses{forward, *backward};
}

/// A gather of rows by their numbers, and the layers behind it. Behind their gradients follows that
/// of the gather.
std::optional<RowLayers> layers_behind_gather(const Step& step, std::size_t gather) {
  const bool is_gather = step.has_role(gather, Role::kGather) && step.is_forward(gather) &&
                         step.module_class(gather) != "Embedding";
  if (!is_gather || !step.is_of_linear(gather + 1))
    return std::nullopt;
  KernelRange forward{gather + 1, gather + 2};
  while (forward.end < step.size() && step.is_of_row_layer(forward.end))
    ++forward.end;
  const auto passes = both_passes(step, forward);
  if (!passes)
    return std::nullopt;
  const std::size_t zeros = passes->backward.end;
  if (!step.has_role(zeros, Role::kFill) || !adds_rows(step, zeros + 1))
    return std::nullopt;
  return row_layers(
      step, passes->forward, passes->backward, step.result_bytes(zeros), step.result_bytes(gather));
}

/// Comparisons make a mask; counting and listing what it selects comes in front of the selection.
bool prepares_selection(const Step& step, std::size_t index) {
  constexpr std::string_view kParts[] = {"Compare", "compare_scalar", "bitwise_not", "logical"};
  if (index >= step.size())
    return false;
  if (step.has_role(index, Role::kSelection))
    return true;
  return std::ranges::any_of(kParts,
                             [&](std::string_view part) { return step.is_named(index, part); });
}

/// The zeros to which gradients of selected rows are added at `addition`: at most the kernels that
/// list and sort the places are between.
std::optional<std::size_t> zeros_before(const Step& step, std::size_t addition) {
  constexpr std::size_t kMostBetween = 24;
  for (std::size_t back = 1; back <= std::min(kMostBetween, addition); ++back) {
    if (step.has_role(addition - back, Role::kFill))
      return addition - back;
  }
  return std::nullopt;
}

/// That at `selection`, and those right behind it: the same mask selects targets too.
Ids selections_from(const Step& step, std::size_t selection) {
  Ids selections;
  for (std::size_t index = selection; step.has_role(index, Role::kIndexing); ++index) {
    selections.push_back(step.kernel(index));
    while (prepares_selection(step, index + 1))
      ++index;
  }
  return selections;
}

/// A selection of rows by a mask, and the layers in front of it. Their gradients follow on that of
/// the selection.
std::optional<RowLayers> layers_before_selection(const Step& step, std::size_t selection) {
  if (!step.has_role(selection, Role::kIndexing) || !step.is_forward(selection) || selection == 0)
    return std::nullopt;
  std::size_t last = selection - 1;
  while (last > 0 && step.is_forward(last) && prepares_selection(step, last))
    --last;
  const bool is_by_mask = last + 1 < selection;
  if (!is_by_mask || !step.is_of_linear(last))
    return std::nullopt;
  KernelRange forward{last, last + 1};
  while (forward.first > 0 && step.is_of_row_layer(forward.first - 1))
    --forward.first;
  const auto passes = both_passes(step, forward);
  if (!passes || passes->backward.first == 0)
    return std::nullopt;
  const std::size_t addition = passes->backward.first - 1;
  if (!adds_rows(step, addition))
    return std::nullopt;
  const auto zeros = zeros_before(step, addition);
  if (!zeros)
    return std::nullopt;
  auto layers = row_layers(step,
                           passes->forward,
                           passes->backward,
                           step.result_bytes(selection),
                           step.result_bytes(*zeros));
  if (layers)
    layers->selections = selections_from(step, selection);
  return layers;
}

/// A product of fewer rows does not come as near to the GPU's peak.
constexpr replay::Parameter kOfFewerRows{1, 1, 1.5};

/// `rows`: on which rows layers work; `others`: which rows would do.
struct Wording {
  std::string_view cure, rows, others;
};

template <class LayersAt>
void find_row_layers(const Recording& recording,
                     Findings& findings,
                     const Wording& wording,
                     LayersAt layers_at) {
  if (!recording.has_steps() || recording.session().allocators.empty())
    return;
  const ModuleCalls& modules = findings.modules();
  if (modules.empty())
    return;
  const ResultBytes& bytes = findings.result_bytes();
  Candidate candidate{wording.cure, "", {}, kOfFewerRows, {}};
  Ids works, selections;
  double most_needed = 0;
  for (const Instance& instance : recording.instances()) {
    const Step step(recording, modules, bytes, instance);
    for (std::size_t index = 0; index < step.size(); ++index) {
      std::optional<RowLayers> layers = layers_at(step, index);
      if (!layers)
        continue;
      append(works, layers->works);
      append(selections, layers->selections);
      most_needed = std::max(most_needed, layers->needed_share);
      candidate.remedy.reduced.push_back({std::move(layers->works), layers->needed_share});
    }
  }
  if (2 * recording.count_instances_with(works) <= recording.instances().size())
    return;
  findings.claim(works);
  findings.claim(selections);
  candidate.observation = fmt::format("linear layers work on {}; {} {} as many ({} of {})",
                                      wording.rows,
                                      wording.others,
                                      base::format_share(most_needed),
                                      base::format_ns(recording.duration_ns(works)),
                                      base::format_ns(recording.kernel_ns()));
  candidate.evidence = {{"kernels", static_cast<double>(works.size())},
                        {"needed_share", most_needed},
                        {"kernel_ns", recording.duration_ns(works)}};
  findings.add(std::move(candidate));
}

}  // namespace

void find_gathered_rows(const Recording& recording, Findings& findings) {
  find_row_layers(recording,
                  findings,
                  {"gathered_rows", "gathered rows", "their source has"},
                  layers_behind_gather);
}

void find_rows_selected_later(const Recording& recording, Findings& findings) {
  find_row_layers(recording,
                  findings,
                  {"rows_selected_later", "all rows", "behind them a mask selects"},
                  layers_before_selection);
}

}  // namespace rangescope::analyze::cures
