// Calls of torch.nn.Modules as ranges: an instance lasts from the first to the last launch that one
// call of the module made, on one thread. In the session they look like push/pop ranges
// (model::Range::module), so that later code treats both in the same way.
//
// Modules are inside the innermost range of the program and never around one: if a range begins or
// ends between two launches, the call continues as another instance. A range contains the calls
// that began in it. Calls around it, found by the launches before and after it, are not repeated.
// Modules are around ranges of libraries (model/domain.hpp), each of which is in one call. Linear
// in launches and in ranges of their threads.
//
// Threads of PyTorch's backward pass run no Python. Their launches are in the modules that made
// their functions, below the region `backward` of the domain of modules: a function has the
// sequence number of its operator, and belongs to the chain of the first launch after the begin of
// that operator. Functions without a number run after the function whose gradient they use. Parts
// of the forward pass that are recomputed there are below the module that needs them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/session.hpp"
#include "wire/gpu.hpp"

namespace rangescope::read::native {

class ModuleCalls {
 public:
  /// Defines a module of a chain, or a function, whose name is `type`. `around`: the number of the
  /// chain around it, or 0.
  void define(std::uint32_t number,
              std::uint32_t around,
              std::string_view name,
              std::string_view type,
              bool function,
              model::Session& session);
  /// session.launches[launch] was made in the chain that ends with `module`, 0 of none, at
  /// `start_ns` of any clock.
  void launched(std::uint32_t launch,
                std::uint32_t module,
                std::uint32_t same,
                std::int64_t start_ns = 0,
                wire::gpu::MadeBy origin = {});
  /// session.launches[from + i] is now at places[i], or was removed (kNone).
  void moved(std::size_t from, const std::vector<std::uint32_t>& places) {
    for (Launched& launched : launches_)
      launched.launch = places[launched.launch - from];
    const auto is_removed = [](const Launched& launched) {
      return launched.launch == model::kNone;
    };
    std::erase_if(launches_, is_removed);
  }
  /// Adds the ranges of launches[from ...]. Call it when their times and threads are known, and the
  /// ranges of the program. If there are ranges of emit_nvtx, those represent the backward pass.
  void place(std::size_t from, model::Session& session);

  /// A launch, or a call that was in no module, of one thread.
  struct Step {
    std::int64_t start_ns = 0, end_ns = 0;
    std::uint32_t module = 0, same = 0;
  };
  using Steps = std::map<std::uint32_t, std::vector<Step>>;  ///< by thread
  /// Adds the ranges of steps, which may be in any order. `inner_only`: a range contains only the
  /// modules that began inside it; else also those that `Step::same` does not continue.
  void place(Steps threads, bool inner_only, model::Session& session) const;

 private:
  struct Module {
    std::vector<std::uint32_t> chain;  ///< numbers, this one last
    std::string path;                  ///< "model.layers.3.mlp"; "" of the outermost
    model::StringId name = 0;          ///< "model.layers.3.mlp (LlamaMLP)"
    model::StringId later = 0;         ///< of a function that steps: from the second step on
    bool function = false;
    bool backward = false;  ///< in the domain of modules
  };
  struct Chain;
  class ThreadCalls;
  struct Launched {
    std::uint32_t launch, module, same;
    std::int64_t start_ns;
    wire::gpu::MadeBy origin;
  };
  /// An operator of the forward pass that launched.
  struct Operator {
    std::uint32_t sequence, module;
    std::int64_t start_ns;
  };
  /// The last launch of a thread that evaluated a function.
  struct Evaluated {
    std::uint32_t sequence = 0, maker = 0, around = 0;
  };
  [[nodiscard]] const Operator* maker_of(const Launched& function) const;
  std::uint32_t below(std::uint32_t chain, std::uint32_t inner, bool functions);
  void place_function(const Launched& launched,
                      bool engine,
                      bool collective,
                      Evaluated& last,
                      Step& step,
                      model::Session& session);

  std::unordered_map<std::uint32_t, Module> modules_;
  std::vector<Launched> launches_;
  /// By PyTorch's number of the thread.
  std::unordered_map<std::uint16_t, std::vector<Operator>> operators_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> below_;
};

}  // namespace rangescope::read::native
