// A cure that applies to a recording: what was seen, what it changes, and by what numbers.
//
// A family of cures is a function in a file of its own (products.cpp, waits.cpp, ...) that looks
// for its patterns; catalog.tsv has the words, the reason and the source of each cure. Families run
// from the special to the general: what one has claimed is not a pattern of those behind it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/cures/module_calls.hpp"
#include "analyze/cures/recording.hpp"
#include "analyze/cures/remedy.hpp"
#include "analyze/cures/result_bytes.hpp"
#include "analyze/cures/stack_samples.hpp"

namespace rangescope::analyze::cures {

struct Candidate {
  std::string_view cure;    ///< an id of catalog.tsv
  std::string observation;  ///< "8 element-wise kernels of equal size follow one another"
  Remedy remedy;
  replay::Parameter parameter;
  std::map<std::string, double> evidence;
};

/// Candidates so far, and the work that they explain.
class Findings {
 public:
  explicit Findings(const Recording& recording)
      : recording_(recording), claimed_(recording.graph().size()) {}

  [[nodiscard]] bool is_claimed(Id id) const { return claimed_[id]; }
  void claim(const Ids& ids) {
    for (const Id id : ids)
      claimed_[id] = true;
  }
  void add(Candidate candidate) { candidates_.push_back(std::move(candidate)); }
  [[nodiscard]] const std::vector<Candidate>& candidates() const { return candidates_; }
  /// Sorted when the first family asks for them.
  [[nodiscard]] const StackSamples& samples() {
    if (!samples_)
      samples_.emplace(recording_.session());
    return *samples_;
  }
  /// Likewise.
  [[nodiscard]] const ModuleCalls& modules() {
    if (!modules_)
      modules_.emplace(recording_);
    return *modules_;
  }
  [[nodiscard]] const ResultBytes& result_bytes() {
    if (!result_bytes_)
      result_bytes_.emplace(recording_);
    return *result_bytes_;
  }

 private:
  const Recording& recording_;
  std::optional<StackSamples> samples_;
  std::optional<ModuleCalls> modules_;
  std::optional<ResultBytes> result_bytes_;
  std::vector<bool> claimed_;
  std::vector<Candidate> candidates_;
};

inline void append(Ids& ids, const Ids& more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

/// The GPU work of all instances that fits.
template <class Fits>
[[nodiscard]] Ids works_that(const Recording& recording, Fits fits) {
  Ids works;
  for (const Instance& instance : recording.instances()) {
    for (const Id work : instance.works) {
      if (fits(work))
        works.push_back(work);
    }
  }
  return works;
}

/// A number or a few, which the program reads on the CPU.
[[nodiscard]] inline bool is_value_to_host(const Recording& recording, Id work) {
  constexpr std::uint64_t kMostOfAValue_bytes = 64;
  return recording.operation(work).kind == Kind::kCopy &&
         recording.copy(work).kind == model::CopyKind::kDeviceToHost &&
         recording.copy(work).bytes <= kMostOfAValue_bytes;
}

/// How many there are in an instance, on average.
[[nodiscard]] inline double per_instance(const Recording& recording, std::size_t count) {
  return static_cast<double>(count) / static_cast<double>(recording.instances().size());
}

/// "20 values per instance"; "3 values" where there is not one in each.
[[nodiscard]] std::string count_text(const Recording& recording,
                                     std::size_t count,
                                     std::string_view what);

/// The first instances start up: compiling, capturing and tuning belong there.
inline constexpr std::size_t kStartUpInstances = 2;

/// What happens last in an instance of the first half of the loop is a long start-up.
[[nodiscard]] inline bool is_late(const Recording& recording, std::size_t instance) {
  return 2 * instance >= recording.instances().size();
}

[[nodiscard]] inline Ids kernels_with(const Recording& recording, bool KernelTraits::*trait) {
  return works_that(recording, [&](Id work) {
    return recording.is_kernel(work) && recording.traits(work).*trait;
  });
}

using Family = void(const Recording& recording, Findings& findings);

Family find_frozen_gradients;                         // backward_of_modules.cpp
Family find_gathered_rows, find_rows_selected_later;  // row_layers.cpp
Family find_dense_gradients;                          // embeddings.cpp
Family find_attention, find_cross_entropy, find_one_hot, find_one_hot_losses,
    find_normalization;                                              // patterns.cpp
Family find_mask_indexing, find_values_read, find_synchronizations;  // waits.cpp
Family find_layout_conversions, find_casts, find_transposed_copies,
    find_grown_caches;                                   // tensor_copies.cpp
Family find_tensor_by_tensor, find_products_one_by_one;  // one_by_one.cpp
Family find_sample_loops, find_stacked_samples;          // sample_loops.cpp
Family find_pointwise_chains;                            // chains.cpp
Family find_fp32_convolutions, find_fp32_products, find_unaligned_products,
    find_doubles;                                      // products.cpp
Family find_small_copies, find_pageable_copies;        // transfers.cpp
Family find_allocations, find_batches_on_main_thread;  // host.cpp
Family find_interpreter_work;                          // interpreter_work.cpp
Family find_kernels_compiled;                          // kernels_compiled.cpp
Family find_own_functions;                             // own_functions.cpp
Family find_graph_captures;                            // captures.cpp
Family find_launches;                                  // launches.cpp

/// Of all families, in their order.
[[nodiscard]] std::vector<Candidate> candidates_of(const Recording& recording);

}  // namespace rangescope::analyze::cures
