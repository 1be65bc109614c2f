// Which operator of PyTorch a launch belongs to: by the sequence number that autograd gives to each
// operator of the forward pass, and to its function in the backward pass
// (torch/csrc/autograd/function.h). Call it on the launching thread. It calls functions that
// PyTorch exports and that only read variables of the thread.
//
// torch::autograd::get_current_node() returns the function that the thread evaluates, with a
// reference. The engine holds two references itself, so ours is never the last one. PyTorch 1.11 to
// 2.14; an exported name tells how a function is referenced (std::shared_ptr, since 2.13
// c10::intrusive_ptr).
//
// Cost: 4 ns a launch of the forward pass, 20 ns in the backward pass.
#pragma once

#include <cstdint>

#include "wire/gpu.hpp"

namespace rangescope::inject::python {

class Autograd {
 public:
  /// False if PyTorch is not loaded, or does not export these functions.
  bool find();
  /// The operator that this thread runs now. `in_module`: Python calls a module. If that happens in
  /// a function of the backward pass, the launch belongs to a forward pass (recomputation).
  [[nodiscard]] wire::gpu::MadeBy here(bool in_module) const;

 private:
  /// A reference to a function. It has a destructor, like PyTorch's own type, so that the ABI
  /// returns it in memory.
  struct Reference {
    Reference& operator=(Reference&&) = delete;
    ~Reference() {}
    void *function, *count;
  };
  std::uint64_t (*peek_)() = nullptr;
  std::uint64_t (*thread_)() = nullptr;
  Reference (*current_)() = nullptr;
  bool shared_ = false;  ///< by std::shared_ptr
};

}  // namespace rangescope::inject::python
