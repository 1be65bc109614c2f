// Which call of which PyTorch module launched a work. O(n log n) for n works and calls of modules.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analyze/cures/recording.hpp"

namespace rangescope::analyze::cures {

/// Calls of modules, as indexes into Session::ranges: by thread, outer ones before inner ones.
[[nodiscard]] std::vector<std::uint32_t> ranges_of_modules(const model::Session& session);

class ModuleCalls {
 public:
  explicit ModuleCalls(const Recording& recording);

  [[nodiscard]] bool empty() const { return is_empty_; }
  /// Of the innermost call, which also names its place in the model: "layers.0.update (Linear)"; 0
  /// outside of modules.
  [[nodiscard]] model::StringId name_of(Id work) const { return names_[work]; }
  /// "Linear"; "" outside of modules.
  [[nodiscard]] std::string_view class_of(Id work) const;
  /// The outermost call: "Decoder", "backward" or "optimizer step"; "" outside of modules.
  [[nodiscard]] std::string_view phase_of(Id work) const {
    return session_.strings.view(phases_[work]);
  }
  [[nodiscard]] bool is_in_backward_pass(Id work) const { return is_in_backward_pass_[work]; }

 private:
  const model::Session& session_;
  bool is_empty_ = true;
  std::vector<model::StringId> names_;     ///< by work
  std::vector<model::StringId> phases_;    ///< likewise
  std::vector<bool> is_in_backward_pass_;  ///< likewise
};

}  // namespace rangescope::analyze::cures
