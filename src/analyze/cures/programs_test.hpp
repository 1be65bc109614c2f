// Programs that several tests of cures run, and what is asked of them.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "analyze/cures/cures.hpp"
#include "analyze/cures/kernel_names_test.hpp"
#include "analyze/cures/steps_test.hpp"

namespace rangescope::analyze::cures::testing {

using namespace kernels;
using enum model::CopyKind;

inline std::set<std::string> cures_in(const Steps& steps) {
  const model::Peaks peaks = h100();
  const Machine machine{&peaks, peaks.host_link_bytes_per_s, replay_costs()};
  const Recording recording(steps.session(), machine);
  std::set<std::string> cures;
  for (const Candidate& candidate : candidates_of(recording))
    cures.emplace(candidate.cure);
  return cures;
}

inline void repeat(int times, const auto& action) {
  for (int time = 0; time < times; ++time)
    action();
}

inline void capture(Steps& s) {
  s.call("cuStreamBeginCapture_v2", 2 * kUs);
  s.compute(2 * kMs);
  s.call("cuStreamEndCapture", 40 * kUs);
  s.call("cuGraphInstantiateWithFlags", 300 * kUs);
}

/// Gradients of four parameters lists of a backward pass; of which modules they are added up.
struct Gradients {
  bool adds_first = false, adds_others = false;
  std::int64_t pause_of_others_ns = 0;  ///< what the thread does between two of their products
};

inline void backward_of_layer(Steps& s, const char* name, bool adds, std::int64_t pause_ns = 0) {
  s.in_module(name, [&] {
    s.kernel(kProduct, 50 * kUs, 512);
    s.compute(pause_ns);
    s.kernel(kProduct, 50 * kUs, 512);
    if (!adds)
      return;
    s.kernel(kAdd, 2 * kUs, kSmall);
    s.kernel(kAdd, 9 * kUs, kLarge);
  });
}

inline void backward_pass(Steps& s, Gradients gradients) {
  s.on_other_thread([&] {
    s.in_module("backward", [&] {
      backward_of_layer(s, "head (Linear)", gradients.adds_first);
      const std::int64_t pause_ns = gradients.pause_of_others_ns;
      backward_of_layer(s, "backbone.1 (Linear)", gradients.adds_others, pause_ns);
      backward_of_layer(s, "backbone.0 (Linear)", gradients.adds_others, pause_ns);
    });
  });
}

constexpr std::uint64_t kFewRows_bytes = 64 << 20, kManyRows_bytes = 960 << 20;

/// A linear layer of that name, whose product is as large as given.
inline void linear_layer(Steps& s, const char* name, std::int64_t product_ns) {
  s.in_module(name, [&] { s.kernel(kProduct, product_ns, 512); });
}

/// Rows are gathered, two layers work on them, and their gradients are added to those of the rows.
inline void layers_of_gathered_rows(Steps& s,
                                    std::uint64_t gathered_bytes,
                                    bool adds_between = false) {
  s.allocate(gathered_bytes);
  s.kernel(kGather, 500 * kUs, kLarge);
  linear_layer(s, "message.0 (Linear)", 300 * kUs);
  linear_layer(s, "message.1 (Linear)", 300 * kUs);
  s.on_other_thread([&] {
    s.in_module("backward", [&] {
      linear_layer(s, "message.1 (Linear)", 600 * kUs);
      if (adds_between)
        s.kernel(kAdd, 100 * kUs, kLarge);
      linear_layer(s, "message.0 (Linear)", 600 * kUs);
      s.allocate(kFewRows_bytes);
      s.kernel(kFill, 10 * kUs, kLarge);
      s.kernel(kAddRows, 800 * kUs, 1056);
    });
  });
  s.wait();
}

/// A layer works on all rows, of which a mask selects some; behind their gradients follow the
/// layer's, as far as it is this layer whose rows were selected.
inline void layer_before_selection(Steps& s,
                                   std::uint64_t selected_bytes,
                                   bool is_of_layer = true) {
  linear_layer(s, "decoder (Linear)", 2 * kMs);
  s.kernel(kSelect, 3 * kUs, kSmall);
  s.copy(kDeviceToHost, 4, kUs);
  s.wait();
  s.allocate(selected_bytes);
  s.kernel(kIndex, 200 * kUs, kLarge);
  s.on_other_thread([&] {
    s.in_module("backward", [&] {
      s.allocate(kManyRows_bytes);
      s.kernel(kFill, 300 * kUs, kLarge);
      s.kernel(kSelect, 3 * kUs, kSmall);
      s.kernel(kAddSelectedRows, 200 * kUs, kLarge);
      if (!is_of_layer)
        linear_layer(s, "other (Linear)", 100 * kUs);
      linear_layer(s, "decoder (Linear)", 4 * kMs);
    });
  });
  s.wait();
}

/// A table's gradient is zeroed, rows of a batch are added to it, and an optimizer goes through it.
/// A block of zeros has 1,024 elements, one of rows 128, and one of the optimizer 65,536.
inline void train_embedding(Steps& s, std::uint32_t blocks_of_rows) {
  s.kernel(kProduct, 50 * kUs, 512);
  s.kernel(kFill, 150 * kUs, kLarge);
  s.kernel(kSelect, 5 * kUs, kSmall);
  s.kernel(kScatterRows, 7 * kUs, blocks_of_rows);
  repeat(4, [&] { s.kernel(kOptimizer, 90 * kUs, 300); });
  s.wait();
}

/// One tensor of so many.
inline void stack(Steps& s, std::uint32_t tensors) {
  constexpr std::uint32_t kBlocksOfEach = 37;
  s.kernel(kCat, 5 * kUs, kBlocksOfEach);
  for (model::KernelShape& shape : s.session().kernel_shapes) {
    if (shape.grid[0] == kBlocksOfEach)
      shape.grid[1] = tensors;
  }
}

/// Each sample is scaled, and some are flipped before; then 16 are stacked.
inline void augment_samples(Steps& s, bool flips, std::uint32_t stacked) {
  s.kernel(kProduct, 90 * kUs, 512);
  for (int sample = 0; sample < 16; ++sample) {
    if (flips && sample % 3 == 1)
      s.kernel(kIndex, 2 * kUs, kSmall);
    s.kernel(kMul, 2 * kUs, kSmall);
    s.compute(100 * kUs);
    s.kernel(kAdd, 2 * kUs, kSmall);
  }
  stack(s, stacked);
  s.wait();
}

inline void one_hot_loss(Steps& s, const char* behind_targets) {
  s.kernel(kFill, 300 * kUs, kLarge);
  s.kernel(kScatter, 6 * kUs, kSmall);
  s.kernel(kMul, 340 * kUs, kLarge);
  s.kernel(behind_targets, 640 * kUs, 4096);
  s.kernel(kMul, 500 * kUs, kLarge);
  s.kernel(kSum, 180 * kUs, 4096);
}

/// What the line with that cure saves of the loop before it, 0 where there is none.
inline double saved_share(const Steps& steps, std::string_view cure) {
  model::Report report;
  report.run.duration_ns = 1e9;
  add_cures(steps.session(), reference(), "", report);
  for (const model::Verdict& line : report.verdict) {
    if (line.cure == cure)
      return *line.saves_ns / line.after->before_ns;
  }
  return 0;
}

}  // namespace rangescope::analyze::cures::testing
