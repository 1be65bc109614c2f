// Which operator of PyTorch made what a thread launches: by the sequence number that autograd gives
// to each operator of the forward pass, and to the function that it leaves for the backward pass
// (torch/csrc/autograd/function.h). To be asked on the launching thread. Two functions that PyTorch
// exports are called; they read variables of the thread.
//
// torch::autograd::get_current_node() is the function that the thread evaluates, counted as
// referenced as long as it is asked: the engine holds two references meanwhile, so that the last
// one is never ours. PyTorch 1.11 to 2.14; how a function is referenced (std::shared_ptr,
// since 2.13 c10::intrusive_ptr) shows in an exported name.
//
// Cost: 4 ns a launch of the forward pass, 20 ns in the backward pass.
#pragma once

#include <cstdint>

#include "wire/gpu.hpp"

namespace rangescope::inject::python {

class Autograd {
 public:
  /// False where PyTorch is not loaded, or is one that does not say it.
  bool find();
  /// Of this thread now. `in_module`: Python calls a module, also below a function of the backward
  /// pass: what is launched is a forward pass (of a part that was not kept).
  [[nodiscard]] wire::gpu::MadeBy here(bool in_module) const;

 private:
  /// A function that is referenced. Like PyTorch's own it has a destructor, so that the ABI returns
  /// it in memory.
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
