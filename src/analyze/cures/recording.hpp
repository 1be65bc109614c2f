// A session as the patterns of cures see it: its loop, the instances of the loop's step, and what
// each of them launched, in order.
//
// What a thread launches while it has no range open belongs to the instance that runs meanwhile in
// its process, where that is only one: PyTorch's backward pass has a thread of its own.
//
// The loop is the outermost range of the program that holds most of the time in ranges, else all
// outermost ranges together; its steps are the outermost ranges in it that occur three times or
// more. Without ranges, steps are what repeats (steps.hpp) and the loop is all of them; where
// nothing repeats, it is each thread from its first call to its last. O(n log n) for n operations
// and ranges.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/cures/kernel_traits.hpp"
#include "analyze/replay/changes.hpp"
#include "analyze/replay/predict.hpp"
#include "model/peaks.hpp"
#include "model/replay_costs.hpp"
#include "model/session.hpp"

namespace rangescope::analyze::cures {

using replay::Id;
using replay::Kind;
using replay::Operation;
using replay::Span;

using Ids = std::vector<Id>;

/// One time through the step.
struct Instance {
  Span span;
  std::uint32_t range = model::kNone;  ///< index into Session::ranges
  Ids works;                           ///< GPU work that it launched, in the order of their calls
  Ids kernels;                         ///< of these, the kernels
  std::vector<std::uint32_t> places;   ///< of each kernel, in `works`
  Ids calls;                           ///< its thread's operations: stretches, calls and waits
  Ids helper_calls;                    ///< the same of threads that work for it meanwhile
  Ids helpers;                         ///< these threads: PyTorch's backward pass
};

/// What the recording does not say of the machine.
struct Machine {
  const model::Peaks* peaks = nullptr;  ///< of the GPU, nullptr where they are not known
  double host_link_bytes_per_s = 0;     ///< 0 where it is not known
  model::ReplayCosts costs;
};

class Recording {
 public:
  Recording(const model::Session& session, const Machine& machine);

  [[nodiscard]] const model::Session& session() const { return session_; }
  [[nodiscard]] const model::Peaks* peaks() const { return machine_.peaks; }
  [[nodiscard]] const model::ReplayCosts& costs() const { return machine_.costs; }
  /// What copies from pinned memory reach; 0 where the link is not known.
  [[nodiscard]] replay::Parameter pinned_bytes_per_s() const;
  [[nodiscard]] const replay::Predictor& predictor() const { return predictor_; }
  [[nodiscard]] const replay::Graph& graph() const { return predictor_.graph(); }

  [[nodiscard]] const std::vector<Span>& loop() const { return loop_; }
  /// How many of the loop's ranges are left out of it, at its start.
  [[nodiscard]] std::size_t warm_up() const { return warm_up_steps_; }
  /// "loop"; "" where it is no single range.
  [[nodiscard]] const std::string& loop_name() const { return loop_name_; }
  [[nodiscard]] double loop_ns() const { return loop_ns_; }
  [[nodiscard]] const std::vector<Instance>& instances() const { return instances_; }
  /// Instances are repetitions of a step: ranges of the program, or what was found to repeat.
  [[nodiscard]] bool has_steps() const { return has_ranges_ || has_found_steps_; }
  /// "34 steps, from one GPT to the next": instances that are no ranges of the program, or more
  /// than these; "" where they are ranges.
  [[nodiscard]] std::string steps_text() const;

  [[nodiscard]] const Operation& operation(Id id) const { return graph().operations[id]; }
  [[nodiscard]] bool is_kernel(Id id) const { return operation(id).kind == Kind::kKernel; }
  /// Index into Session::kernel_names.
  [[nodiscard]] std::uint32_t name_of(Id kernel) const;
  [[nodiscard]] std::string_view kernel_name(Id kernel) const;
  [[nodiscard]] const KernelTraits& traits(Id kernel) const;
  [[nodiscard]] bool has_role(Id work, Role role) const;
  /// A kernel that makes each element from elements at the same place, or copies them.
  [[nodiscard]] bool is_element_wise(Id work) const;
  [[nodiscard]] bool is_copy_to_gpu(Id work) const;
  /// A kernel of that role, with that part in its name.
  [[nodiscard]] bool is_named(Id work, std::string_view part) const;
  [[nodiscard]] const model::Copy& copy(Id copy) const;
  /// How it was launched.
  [[nodiscard]] const model::KernelShape& shape_of(Id kernel) const;
  /// "cudaMalloc", of an operation that is a call or a wait; "" where it was not recorded.
  [[nodiscard]] std::string_view call_name(Id call) const;

  /// Of an element-wise kernel: as many as its grid takes at most, 0 where unknown.
  [[nodiscard]] double elements(Id kernel) const;
  /// Of the largest element-wise kernel among these, 0 where there is none.
  [[nodiscard]] double largest_elements(const Ids& works) const;
  /// The cheapest element-wise kernel of about that size: it reads and writes a tensor once.
  [[nodiscard]] std::optional<double> element_wise_pass_ns(const Ids& works) const;
  /// The share of its GPU that a kernel's blocks fill, at most 1; 1 where the GPU is not known.
  [[nodiscard]] double room(Id kernel) const;
  [[nodiscard]] double duration_ns(Id id) const {
    return static_cast<double>(operation(id).duration_ns);
  }
  [[nodiscard]] double duration_ns(const Ids& ids) const;
  /// How long the works of instances keep the stream busy that has most to do. `graph`: the
  /// recording's own, or one changed from it.
  [[nodiscard]] double busiest_stream_ns(const replay::Graph& graph) const;
  /// Of all kernels that instances launched.
  [[nodiscard]] double kernel_ns() const { return kernel_ns_; }
  [[nodiscard]] std::span<const Id> operations_of(Id lane) const {
    return lanes_.operations_of(lane);
  }
  /// Its operations on that thread or on that of a helper, in order.
  [[nodiscard]] std::span<const Id> operations_of(const Instance& instance, Id lane) const;
  /// In how many instances at least one of these happens.
  [[nodiscard]] std::size_t count_instances_with(const Ids& operations) const;
  /// Waits right behind the calls that made these copies: what they return for.
  [[nodiscard]] Ids waits_behind(const Instance& instance, const Ids& copies) const;
  /// The range path that holds nearly all of these, from the outermost one.
  [[nodiscard]] std::vector<std::string> path_of(const Ids& operations) const;
  /// Does it happen all the time? A program whose steps are not known also starts up: there it has
  /// to be in three quarters of the time in which the GPU works.
  [[nodiscard]] bool goes_on(const Ids& operations) const;

 private:
  struct Nested {
    std::uint32_t range = 0, parent = model::kNone;  ///< index into nested_
    std::uint32_t depth = 0;
  };
  void nest_ranges();
  void find_loop();
  void leave_out_warm_up();
  void find_loop_without_ranges();
  void find_instances();
  void extend_instances();
  void add_own_operations(std::uint32_t index);
  void add_operations_of_helpers();
  void add_operation(std::uint32_t index, Id id, Ids& calls);
  void list_works();
  [[nodiscard]] Span span_of(std::uint32_t nested) const;
  [[nodiscard]] std::vector<std::uint32_t> outermost_with_calls() const;

  const model::Session& session_;
  Machine machine_;
  replay::Predictor predictor_;
  replay::LaneIndex lanes_;
  std::vector<KernelTraits> traits_;    ///< by Session::kernel_names
  std::vector<std::vector<Id>> works_;  ///< by call: what it launched
  std::vector<Nested> nested_;          ///< ranges of the program, parents before children
  std::vector<std::uint32_t> loop_ranges_;
  std::vector<Span> loop_;
  std::vector<Instance> instances_;
  Ids instance_of_;  ///< by operation, an index into instances_
  std::string loop_name_;
  std::size_t warm_up_steps_ = 0;
  double loop_ns_ = 0, kernel_ns_ = 0;
  std::string step_module_;  ///< at whose calls found steps begin
  bool has_ranges_ = false, has_found_steps_ = false, are_extended_ = false;
};

}  // namespace rangescope::analyze::cures
