// The parts of CPU time: Python, native code by library, CUDA calls by kind, waits by kind.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/session.hpp"
#include "model/strings.hpp"

namespace rangescope::analyze {

enum PartKind : std::uint8_t { kPython, kNative, kCuda, kWaiting };
inline constexpr std::string_view kPartKinds[] = {"python", "native", "cuda", "waiting"};

/// Numbers the parts of a session; a number holds the kind and the name.
class PartNames {
 public:
  /// Keeps a reference to `session`. O(stacks).
  explicit PartNames(const model::Session& session);

  [[nodiscard]] static PartKind kind_of(std::uint32_t part) {
    return static_cast<PartKind>(part & 3);
  }
  [[nodiscard]] std::string_view name_of(std::uint32_t part) const {
    return names_.view(part >> 2);
  }

  /// Of samples outside CUDA calls.
  [[nodiscard]] std::uint32_t of_stack(std::uint64_t stack) const {
    return stack < of_stack_.size() ? of_stack_[stack] : unknown_;
  }
  [[nodiscard]] std::uint32_t of_wait(model::WaitKind kind) const {
    return waits_[static_cast<std::size_t>(kind)];
  }
  [[nodiscard]] std::uint32_t of_call(const model::Launch& call);
  [[nodiscard]] std::uint32_t unknown() const { return unknown_; }  ///< native code without samples
  [[nodiscard]] std::uint32_t kernel() const { return kernel_; }    ///< of the operating system
  /// Where waits were not recorded.
  [[nodiscard]] std::uint32_t unrecorded_wait() const { return unrecorded_wait_; }

 private:
  std::uint32_t part(PartKind kind, std::string_view name) {
    return names_.intern(name) << 2 | kind;
  }
  void name_stacks();
  [[nodiscard]] std::uint32_t part_of_native(const model::CpuFrame& frame, std::string_view module);

  const model::Session& session_;
  model::Strings names_;
  std::vector<std::uint32_t> of_stack_;
  std::uint32_t unknown_ = 0, kernel_ = 0, unrecorded_wait_ = 0;
  std::uint32_t waits_[std::size(model::kWaitNames)] = {};
};

}  // namespace rangescope::analyze
