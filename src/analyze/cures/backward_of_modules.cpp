// Gradients that no optimizer takes: modules that are not trained, behind those that are.
//
// PyTorch keeps a parameter's first gradient, and adds further ones to it. A module whose gradients
// are added up in each backward pass, while others' are kept, is one that nothing zeroes.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "analyze/cures/candidate.hpp"
#include "base/units.hpp"
#include "model/backward.hpp"

namespace rangescope::analyze::cures {
namespace {

/// A vector of a parameter, such as a bias, is no larger.
constexpr double kVector_elements = 65'536;
constexpr std::size_t kFewestModules = 2;
constexpr double kMostPasses = 0.9;

struct BackwardModule {
  std::uint32_t range = 0;  ///< index into Session::ranges
  Ids works;                ///< of the function that makes gradients, without what adds them up
  double added_elements = 0;
  bool adds_gradients = false;
  bool has_product = false;
  bool ends_with_addition = false;
};

/// What distinguishes a module with its gradients from others of that name: names and shapes of
/// kernels.
using ModuleSignature = std::pair<model::StringId, std::vector<std::uint64_t>>;

struct BackwardPass {
  std::uint32_t thread = 0;  ///< index into Session::threads
  std::int64_t end_ns = 0;
  Ids works;                            ///< in the order of their calls
  std::vector<BackwardModule> modules;  ///< those without others in them, in order
};

bool is_addition(const Recording& recording, Id work) {
  return recording.is_named(work, "CUDAFunctor_add") && recording.elements(work) > 0;
}

/// Of weight and bias, or of a norm's two vectors: one is the gradient of a module's input alone.
void set_additions(const Recording& recording, const Ids& works, BackwardModule& module) {
  std::size_t additions = 0, vectors = 0;
  for (const Id work : works) {
    const bool makes_product =
        recording.has_role(work, Role::kProduct) || recording.has_role(work, Role::kConvolution);
    module.has_product = module.has_product || makes_product;
    if (!is_addition(recording, work)) {
      module.works.push_back(work);
      continue;
    }
    const double elements = recording.elements(work);
    const bool is_vector = elements <= kVector_elements;
    if (is_vector || module.has_product)
      module.added_elements += elements;
    ++additions;
    if (is_vector)
      ++vectors;
  }
  module.adds_gradients = additions >= 2 && vectors >= 1;
  module.ends_with_addition = !works.empty() && is_addition(recording, works.back());
}

ModuleSignature module_signature(const Recording& recording, const BackwardModule& module) {
  ModuleSignature signature{recording.session().ranges[module.range].name, {}};
  for (const Id work : module.works) {
    if (!recording.is_kernel(work))
      continue;
    const model::Kernel& kernel = recording.session().kernels[recording.operation(work).source];
    signature.second.push_back((std::uint64_t{kernel.name} << 32U) | kernel.shape);
  }
  return signature;
}

/// Backward passes and their modules, as far as steps behind the start-up launched them.
class BackwardPasses {
 public:
  explicit BackwardPasses(const Recording& recording) : recording_(recording) {
    const auto& instances = recording.instances();
    for (std::size_t index = kStartUpInstances; index < instances.size(); ++index)
      add_works(instances[index]);
    std::ranges::sort(works_);
    add_passes();
  }

  [[nodiscard]] const std::vector<BackwardPass>& all() const { return passes_; }

 private:
  using Launched = std::tuple<std::uint32_t, std::int64_t, Id>;  ///< thread, moment, work

  void add_works(const Instance& instance) {
    for (const Id work : instance.works) {
      const Id call = replay::launch_of(recording_.graph(), work);
      if (call == model::kNone)
        continue;
      const Operation& operation = recording_.operation(call);
      const Id thread = recording_.graph().lanes[operation.lane].thread;
      works_.emplace_back(thread, operation.start_ns, work);
    }
  }

  [[nodiscard]] Ids works_in(const model::Range& range) const {
    const auto first =
        std::ranges::lower_bound(works_, Launched{range.thread, range.start_ns, Id{0}});
    Ids works;
    for (auto next = first; next != works_.end(); ++next) {
      const auto& [thread, called_ns, work] = *next;
      if (thread != range.thread || called_ns > range.end_ns)
        break;
      works.push_back(work);
    }
    return works;
  }

  void add_passes() {
    const model::Session& session = recording_.session();
    std::vector<std::uint32_t> ranges = ranges_of_modules(session);
    // Calls of the program are in its own domain; what autograd evaluates for modules is in theirs.
    std::erase_if(ranges, [&](std::uint32_t index) {
      return session.strings.view(session.domains[session.ranges[index].domain].name) !=
             model::kModuleDomain;
    });
    for (std::size_t index = 0; index < ranges.size(); ++index) {
      const model::Range& range = session.ranges[ranges[index]];
      if (session.strings.view(range.name) == model::kBackward) {
        passes_.push_back({range.thread, range.end_ns, works_in(range), {}});
        continue;
      }
      const bool is_in_pass = !passes_.empty() && range.thread == passes_.back().thread &&
                              range.end_ns <= passes_.back().end_ns;
      const bool has_inner = index + 1 < ranges.size() &&
                             session.ranges[ranges[index + 1]].thread == range.thread &&
                             session.ranges[ranges[index + 1]].start_ns < range.end_ns;
      if (!is_in_pass || has_inner)
        continue;
      BackwardModule module;
      module.range = ranges[index];
      set_additions(recording_, works_in(range), module);
      passes_.back().modules.push_back(std::move(module));
    }
    std::erase_if(passes_, [](const BackwardPass& pass) { return pass.works.empty(); });
  }

  const Recording& recording_;
  std::vector<Launched> works_;
  std::vector<BackwardPass> passes_;
};

/// Modules that keep their gradients in one place: there they are zeroed, or used first.
std::map<ModuleSignature, bool> trained_modules(const Recording& recording,
                                                const BackwardPasses& passes) {
  std::map<ModuleSignature, bool> trained;
  for (const BackwardPass& pass : passes.all()) {
    for (const BackwardModule& module : pass.modules) {
      if (!module.adds_gradients && module.has_product)
        trained[module_signature(recording, module)] = true;
    }
  }
  return trained;
}

/// What an optimizer takes in a step, by its kernels over lists of tensors and by those of Adam.
double optimized_elements(const Recording& recording, std::size_t passes) {
  std::map<std::uint32_t, double> by_name;
  for (const Instance& instance : recording.instances()) {
    for (const Id kernel : instance.kernels) {
      const bool takes_list = recording.is_named(kernel, "multi_tensor_apply");
      const bool is_of_adam = recording.is_named(kernel, "addcdiv");
      double& elements = by_name[recording.name_of(kernel)];
      if (takes_list)
        elements += kMultiTensorChunk_elements * blocks_of(recording.shape_of(kernel));
      if (is_of_adam && !takes_list)
        elements += recording.elements(kernel);
    }
  }
  double most_elements = 0;
  for (const auto& [name, elements] : by_name)
    most_elements = std::max(most_elements, elements);
  return most_elements / static_cast<double>(std::max<std::size_t>(1, passes));
}

/// What a pass does behind the last module that is trained.
struct Untrained {
  Ids works;
  Ids stretches;  ///< what the thread does between the first call for them and the last one
  double elements = 0;
};

/// However long: all that the thread does there is the backward pass of these modules.
Ids stretches_between_calls(const Recording& recording, const Ids& works) {
  if (works.empty())
    return {};
  const Id first = replay::launch_of(recording.graph(), works.front());
  const Id last = replay::launch_of(recording.graph(), works.back());
  // Operations of a lane are in the order of their ids.
  const auto operations = recording.operations_of(recording.operation(first).lane);
  auto next = std::ranges::upper_bound(operations, first);
  Ids stretches;
  for (; next != operations.end() && *next < last; ++next)
    if (recording.operation(*next).kind == Kind::kStretch)
      stretches.push_back(*next);
  return stretches;
}

Untrained untrained_end(const Recording& recording,
                        const BackwardPass& pass,
                        const std::map<ModuleSignature, bool>& trained) {
  const auto is_trained = [](const BackwardModule& module) {
    return module.has_product && !module.adds_gradients;
  };
  const auto last = std::ranges::find_if(pass.modules.rbegin(), pass.modules.rend(), is_trained);
  if (last == pass.modules.rend())
    return {};
  const auto behind = last.base();
  const auto first = std::find_if(behind, pass.modules.end(), [](const BackwardModule& module) {
    return module.adds_gradients;
  });
  Untrained untrained;
  std::size_t adding = 0;
  std::int64_t end_ns = 0;
  bool all_add = true;
  for (auto module = first; module != pass.modules.end(); ++module) {
    if (module->adds_gradients) {
      if (trained.contains(module_signature(recording, *module)))
        return {};
      ++adding;
      end_ns = recording.session().ranges[module->range].end_ns;
      untrained.elements += module->added_elements;
    }
  }
  if (adding < kFewestModules)
    return {};
  for (auto module = first; module != pass.modules.end(); ++module) {
    const bool is_behind = recording.session().ranges[module->range].start_ns >= end_ns;
    if (is_behind && !module->ends_with_addition)
      all_add = false;
  }
  const std::int64_t start_ns = recording.session().ranges[first->range].start_ns;
  if (all_add)
    end_ns = pass.end_ns;
  for (const Id work : pass.works) {
    const std::int64_t called_ns =
        recording.operation(replay::launch_of(recording.graph(), work)).start_ns;
    if (called_ns >= start_ns && called_ns <= end_ns)
      untrained.works.push_back(work);
  }
  untrained.stretches = stretches_between_calls(recording, untrained.works);
  return untrained;
}

}  // namespace

void find_frozen_gradients(const Recording& recording, Findings& findings) {
  if (recording.instances().size() <= kStartUpInstances)
    return;
  const BackwardPasses passes(recording);
  if (passes.all().empty())
    return;
  const std::map<ModuleSignature, bool> trained = trained_modules(recording, passes);
  Ids works, stretches;
  std::size_t with_untrained = 0;
  double elements = 0;
  for (const BackwardPass& pass : passes.all()) {
    const Untrained untrained = untrained_end(recording, pass, trained);
    if (untrained.works.empty())
      continue;
    ++with_untrained;
    elements += untrained.elements;
    append(works, untrained.works);
    append(stretches, untrained.stretches);
  }
  const auto count = static_cast<double>(passes.all().size());
  if (works.empty() || static_cast<double>(with_untrained) < kMostPasses * count)
    return;
  const double elements_of_pass = elements / static_cast<double>(with_untrained);
  // An optimizer that takes them as well trains them.
  if (optimized_elements(recording, passes.all().size()) >= elements_of_pass)
    return;
  findings.claim(works);
  Candidate candidate{
      "frozen_gradients",
      fmt::format("the backward pass adds up gradients of {} parameters that no optimizer takes "
                  "({} of {})",
                  base::format_count(static_cast<std::int64_t>(elements_of_pass)),
                  base::format_ns(recording.duration_ns(works)),
                  base::format_ns(recording.kernel_ns())),
      {},
      {},
      {{"works", static_cast<double>(works.size())},
       {"elements", elements_of_pass},
       {"kernel_ns", recording.duration_ns(works)}}};
  candidate.remedy.removed = std::move(works);
  append(candidate.remedy.removed, stretches);
  findings.add(std::move(candidate));
}

}  // namespace rangescope::analyze::cures
