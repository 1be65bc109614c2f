// Names that carry a number for each instance: `aten::mm, op_id = 34`, `iter 17`. Folded, all
// instances are one region.
//
// kAuto cuts what torch.autograd.profiler.emit_nvtx writes behind an operator's name (getNvtxStr of
// PyTorch's torch/csrc/profiler/util.cpp, which older versions write shorter), each part once at
// most, in this order, at the end:
//
//   ", seq = N"   ", op_id = N"   ", sizes = [[4, 8], [], [8, 2]]"   ", input_op_ids = [(21,0),
//   (0,-1)]"
//
// Of what XLA (JAX, TensorFlow) writes behind ":#" it leaves the HLO's or the module's name:
// "TSL:Thunk:#hlo_op=fusion.3,hlo_module=jit_step,program_id=7#" is "Thunk: fusion.3", and
// "XlaModule:#hlo_module= jit_step,program_id=7#" is "XlaModule: jit_step".
//
// kNumbers then writes `#` for every run of digits that no letter follows, and before which stands
//   - no letter and no digit behind one: `iter 17`, `step_3`, `layer.0.attn`, `[7]`, `17`;
//   - or a word of letters alone (`layer0`), unless that is a single letter (`f16`, `h100`, `v2`)
//   or the name of a format
//     (`int8`, `fp16`, `sha256`): there the digits say what it is and not which one.
// A hexadecimal id becomes `#` too: `0x` with four digits or more, a word of six hexadecimal digits
// or more among which are digits and letters (`req-3fa9c1b2`), and the groups of a UUID.
// So `conv2d`, `64x64`, `0x7f`, `w8a8` and `float32` stay, whatever other names a recording has: a
// name is folded the same way in the timeline, in results of ncu, and in the run that it is
// compared with. Bytes beyond ASCII are letters.
#pragma once

#include <string>
#include <string_view>

#include "analyze/options.hpp"
#include "model/session.hpp"

namespace rangescope::analyze {

inline constexpr std::size_t kMostNames = 20'000;

/// The name under `how`.
[[nodiscard]] std::string folded_name(std::string_view name, FoldNames how);

/// Folds the range names of sessions, before they are joined: results of ncu find the timeline by
/// names.
class NameFolder {
 public:
  /// A name stays as it was recorded where `ranges` has it so and not folded: `iter 0` can be left
  /// out of `iter #`.
  NameFolder(FoldNames how, const model::RangeSelection& ranges) : how_(how), ranges_(ranges) {}

  /// Ranges, paths of results and of graph nodes, and totals by name. A sentence on how many names
  /// became how many; "" where none did. O(ranges), plus the text of each distinct name once.
  [[nodiscard]] std::string fold(model::Session& session) const;

  /// Leaves a session kMostNames names of ranges, unless names are to stay as recorded: numbers are
  /// folded first; of what is left those with the least time become one. A loss counts them.
  /// O(ranges).
  void bound(model::Session& session) const;

 private:
  [[nodiscard]] std::string fold(model::Session& session, FoldNames how) const;
  [[nodiscard]] bool stays(std::string_view recorded, std::string_view folded) const;
  /// Gives one name to all of them that do not stay.
  void merge_others(std::vector<model::StringId> others, model::Session& session) const;

  FoldNames how_;
  model::RangeSelection ranges_;
};

}  // namespace rangescope::analyze
