// Calls of torch.nn.Modules as ranges: a module's occurrence is from the first to the last launch that one call of it
// made, on one thread. They are in the session like push/pop ranges (model::Range::module), so that everything behind
// them needs no second form.
//
// Modules are inside of the innermost range of the program and never around one: where a range begins or ends between
// two launches, the call goes on as another occurrence. Linear in launches and in ranges of their threads.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/session.hpp"

namespace rangescope::read::native {

class ModuleCalls {
 public:
  /// A module of a chain, or a function, whose name is `type`; `around`: 0, or one that was defined.
  void define(std::uint32_t number, std::uint32_t around, std::string_view name, std::string_view type, bool function,
              model::Session& session);
  /// session.launches[launch] was made in the chain that ends with `module`.
  void launched(std::uint32_t launch, std::uint32_t module, std::uint32_t same) {
    launches_.push_back({launch, module, same});
  }
  /// session.launches[from + i] is at places[i] now, or nowhere.
  void moved(std::size_t from, const std::vector<std::uint32_t>& places) {
    for (Launched& one : launches_) one.launch = places[one.launch - from];
    std::erase_if(launches_, [](const Launched& one) { return one.launch == model::kNone; });
  }
  /// Adds the ranges of launches[from ...]. After their times and threads are known.
  void place(std::size_t from, model::Session& session) const;

  /// A launch, or a call that was in no module, of one thread.
  struct Step {
    std::int64_t start_ns = 0, end_ns = 0;
    std::uint32_t module = 0, same = 0;
  };
  using Steps = std::map<std::uint32_t, std::vector<Step>>;  ///< by thread
  /// Adds the ranges of such steps, in any order.
  void place(Steps threads, model::Session& session) const;

 private:
  struct Module {
    std::vector<std::uint32_t> chain;  ///< numbers, this one last
    std::string path;                  ///< "model.layers.3.mlp"; "" of the outermost
    model::StringId name = 0;          ///< "model.layers.3.mlp (LlamaMLP)"
    model::StringId later = 0;         ///< of a function that steps: from the second step on
  };
  struct Launched {
    std::uint32_t launch, module, same;
  };
  std::unordered_map<std::uint32_t, Module> modules_;
  std::vector<Launched> launches_;
};

}  // namespace rangescope::read::native
