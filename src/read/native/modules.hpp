// Calls of torch.nn.Modules as ranges: a module's occurrence is from the first to the last launch
// that one call of it made, on one thread. They are in the session like push/pop ranges
// (model::Range::module), so that everything behind them needs no second form.
//
// Modules are inside of the innermost range of the program and never around one: where a range
// begins or ends between two launches, the call goes on as another occurrence. Inside of a range
// are the calls that began in it: those around it, by the launches before and after it, are not
// repeated. They are around ranges of libraries (model/domain.hpp), which are whole in one call.
// Linear in launches and in ranges of their threads.
//
// Launches of PyTorch's backward pass, whose threads run no Python, are in the modules that made
// their functions, below the region `backward` of the domain of modules: a function has the
// sequence number of its operator, and belongs to the chain of the first launch behind that
// operator's beginning. Functions without a number run behind the one whose gradient they take.
// Parts of the forward pass that are made again there are below the module that needs them.
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
  /// A module of a chain, or a function, whose name is `type`; `around`: 0, or one that was
  /// defined.
  void define(std::uint32_t number, std::uint32_t around, std::string_view name,
              std::string_view type, bool function, model::Session& session);
  /// session.launches[launch] was made in the chain that ends with `module`, 0 of none, at
  /// `start_ns` of any clock.
  void launched(std::uint32_t launch, std::uint32_t module, std::uint32_t same,
                std::int64_t start_ns = 0, wire::gpu::MadeBy of = {});
  /// session.launches[from + i] is at places[i] now, or nowhere.
  void moved(std::size_t from, const std::vector<std::uint32_t>& places) {
    for (Launched& one : launches_) one.launch = places[one.launch - from];
    std::erase_if(launches_, [](const Launched& one) { return one.launch == model::kNone; });
  }
  /// Adds the ranges of launches[from ...]. After their times and threads are known, and ranges of
  /// the program. The backward pass is left to ranges of emit_nvtx where there are any.
  void place(std::size_t from, model::Session& session);

  /// A launch, or a call that was in no module, of one thread.
  struct Step {
    std::int64_t start_ns = 0, end_ns = 0;
    std::uint32_t module = 0, same = 0;
  };
  using Steps = std::map<std::uint32_t, std::vector<Step>>;  ///< by thread
  /// Adds the ranges of such steps, in any order. `inner_only`: a range has the modules that began
  /// inside it; else all, where `Step::same` does not say that a call goes on.
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
  struct Launched {
    std::uint32_t launch, module, same;
    std::int64_t start_ns;
    wire::gpu::MadeBy of;
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
  void place_function(const Launched& launched, bool engine, bool collective, Evaluated& last,
                      Step& step, model::Session& session);

  std::unordered_map<std::uint32_t, Module> modules_;
  std::vector<Launched> launches_;
  std::unordered_map<std::uint16_t, std::vector<Operator>>
      operators_;  ///< by PyTorch's number of the thread
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> below_;
};

}  // namespace rangescope::read::native
