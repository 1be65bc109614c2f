// CPU samples by the stretch of a thread that they fall into. O(log samples) a stretch.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/cures/recording.hpp"

namespace rangescope::analyze::cures {

/// Python functions that are looked for in stacks.
struct CodePlace {
  std::string_view file_part;  ///< "torch/serialization.py"
  std::string_view function;   ///< without its class; "": each of the file
};

class StackSamples {
 public:
  explicit StackSamples(const model::Session& session);

  [[nodiscard]] bool empty() const { return samples_.empty(); }
  /// Stacks of the samples of an operation's thread while it lasted.
  [[nodiscard]] std::vector<std::uint32_t> in(const Recording& recording, Id operation) const;
  template <class Fits>
  [[nodiscard]] bool has_function(std::uint32_t stack, Fits fits) const {
    for (; stack != model::kNone; stack = session_.cpu.stacks[stack].parent) {
      if (fits(function_of(stack)))
        return true;
    }
    return false;
  }
  struct Share {
    std::size_t samples = 0, at_places = 0;
  };
  /// Of these operations: how many samples there are, and how many have one of these places in
  /// their stack.
  [[nodiscard]] Share share_at(const Recording& recording,
                               const std::vector<Id>& operations,
                               std::span<const CodePlace> places) const;
  /// The same of samples in libraries, by parts of their paths, or in what these called.
  [[nodiscard]] Share share_in(const Recording& recording,
                               const std::vector<Id>& operations,
                               std::span<const std::string_view> libraries) const;
  /// How many CPUs the process kept busy while these operations of its threads lasted: samples of
  /// all threads by those of theirs, 1 where no others were seen.
  [[nodiscard]] double busy_cpus(const Recording& recording,
                                 const std::vector<Id>& operations) const;
  /// A system call that CUDA's driver made, and no launch, copy or wait.
  [[nodiscard]] bool enters_kernel_from_driver(std::uint32_t stack) const;
  /// "make (train.py)": the innermost Python function of most samples; "" where there is none.
  [[nodiscard]] std::string python_function(const Recording& recording,
                                            const std::vector<Id>& operations) const;

 private:
  template <class Fits>
  [[nodiscard]] Share share_of_stacks(const Recording& recording,
                                      const std::vector<Id>& operations,
                                      Fits fits) const;
  struct Sample {
    std::uint32_t thread = 0;  ///< index into Session::threads
    std::int64_t at_ns = 0;
    std::uint32_t stack = 0;
  };
  [[nodiscard]] std::string_view function_of(std::uint32_t stack) const;
  [[nodiscard]] std::string_view module_of(std::uint32_t stack) const;
  [[nodiscard]] bool is_at(std::uint32_t frame, const CodePlace& place) const;

  const model::Session& session_;
  std::vector<Sample> samples_;  ///< by thread, within it by time
  /// Process id and time, sorted: of threads that are not in Session::threads too.
  std::vector<std::pair<std::uint32_t, std::int64_t>> sampled_processes_;
};

}  // namespace rangescope::analyze::cures
