// Small kernels that an instance launches over and over, one for each tensor of a list.
#include <fmt/format.h>

#include <algorithm>

#include "analyze/cures/candidate.hpp"
#include "analyze/cures/repetition.hpp"
#include "base/units.hpp"

namespace rangescope::analyze::cures {
namespace {

/// How near to the memory's peak element-wise kernels of lists come.
constexpr replay::Parameter kMemoryShare{1 / 0.8, 1, 2};
/// Many small products as one: no launch latency each, and all of the GPU.
constexpr replay::Parameter kBatched{0.5, 0.1, 1};
/// Adam in one kernel moves 7 values of each parameter; in 7 kernels 16.
constexpr double kFusedOptimizer = 7.0 / 16;

/// The kernels of an instance, cut where one does not fit.
template <class Fits>
std::vector<Ids> segments_of(const Recording& recording, const Instance& instance, Fits fits) {
  std::vector<Ids> segments(1);
  for (const Id work : instance.works) {
    if (recording.operation(work).kind == Kind::kMemset)
      continue;
    if (fits(work)) {
      segments.back().push_back(work);
    } else if (!segments.back().empty()) {
      segments.emplace_back();
    }
  }
  return segments;
}

bool is_of_one_tensor(const Recording& recording, const Findings& findings, Id work) {
  if (!recording.is_kernel(work) || findings.is_claimed(work))
    return false;
  const Role role = recording.traits(work).role;
  const bool takes_one_tensor = role == Role::kPointwise || role == Role::kFill ||
                                role == Role::kCopy || role == Role::kReduction;
  return takes_one_tensor && recording.duration_ns(work) <= kSmallKernel_ns;
}

/// What the memory takes at its peak; where sizes are not known, what the kernels take when they
/// share the GPU.
double together_ns(const Recording& recording, const Ids& kernels) {
  double bytes = 0, shared_ns = 0, shortest_ns = recording.duration_ns(kernels.front());
  bool all_known = recording.peaks() != nullptr && recording.peaks()->memory_bytes_per_s > 0;
  for (const Id kernel : kernels) {
    const double elements = recording.elements(kernel);
    bytes += elements * recording.traits(kernel).bytes_per_element;
    shared_ns += recording.room(kernel) * recording.duration_ns(kernel);
    shortest_ns = std::min(shortest_ns, recording.duration_ns(kernel));
    all_known = all_known && elements > 0;
  }
  const double moved_ns =
      all_known ? bytes / recording.peaks()->memory_bytes_per_s * 1e9 : shared_ns;
  return std::max(shortest_ns, std::min(moved_ns, recording.duration_ns(kernels)));
}

enum class List : std::uint8_t { kOptimizer, kZeroing, kClipping, kOther };

/// Calls that launched the kernels, and what their thread did in front of them.
Ids launching_operations(const Recording& recording, const Repetition& run) {
  Ids operations;
  for (const Id kernel : run.kernels) {
    const Id call = replay::launch_of(recording.graph(), kernel);
    if (call == model::kNone)
      continue;
    operations.push_back(call);
    const Id before = recording.graph().find_dependency(call, replay::Reason::kOrder);
    if (before != model::kNone)
      operations.push_back(before);
  }
  return operations;
}

/// Names of kernels tell Adam alone. SGD's are additions like any others, but the thread that
/// launches them is seen in torch.optim.
bool is_launched_by_optimizer(const Recording& recording,
                              Findings& findings,
                              const Repetition& run) {
  constexpr CodePlace kOptimizers[] = {{"torch/optim/", ""}};
  const auto [samples, in_optimizer] =
      findings.samples().share_at(recording, launching_operations(recording, run), kOptimizers);
  return in_optimizer > 0 && 2 * in_optimizer >= samples;
}

List list_of(const Recording& recording, Findings& findings, const Repetition& run) {
  bool all_fill = true;
  for (const Id kernel : run.kernels.first(run.pattern)) {
    const bool is_of_adam =
        recording.is_named(kernel, "addcdiv") || recording.is_named(kernel, "addcmul");
    if (is_of_adam)
      return List::kOptimizer;
    if (recording.is_named(kernel, "NormTwoOps"))
      return List::kClipping;
    all_fill = all_fill && recording.has_role(kernel, Role::kFill);
  }
  if (all_fill)
    return List::kZeroing;
  return is_launched_by_optimizer(recording, findings, run) ? List::kOptimizer : List::kOther;
}

/// Each kernel of the pattern as one over all tensors; an optimizer as one altogether.
void fuse_run(const Recording& recording, const Repetition& run, List list, Remedy& remedy) {
  if (list == List::kOptimizer) {
    const Ids all(run.kernels.begin(), run.kernels.end());
    const double one_ns = kFusedOptimizer * together_ns(recording, all);
    remedy.fused.push_back({all, static_cast<std::int64_t>(one_ns)});
    return;
  }
  for (std::size_t phase = 0; phase < run.pattern; ++phase) {
    Ids same;
    for (std::size_t index = phase; index < run.kernels.size(); index += run.pattern)
      same.push_back(run.kernels[index]);
    const double one_ns = together_ns(recording, same);
    remedy.fused.push_back({std::move(same), static_cast<std::int64_t>(one_ns)});
  }
}

constexpr std::string_view kCureOfList[] = {
    "optimizer_one_by_one", "zeroing_one_by_one", "clipping_one_by_one", "tensors_one_by_one"};

/// What a run of norms is for: the products with the factor that follow it belong to it.
List joined(List list, List before) {
  return list == List::kOther && before == List::kClipping ? List::kClipping : list;
}

}  // namespace

void find_tensor_by_tensor(const Recording& recording, Findings& findings) {
  if (!recording.has_steps())
    return;
  std::vector<Candidate> candidates;
  for (const std::string_view cure : kCureOfList)
    candidates.push_back({cure, "", {}, kMemoryShare, {}});
  std::vector<std::size_t> kernels(candidates.size());
  for (const Instance& instance : recording.instances()) {
    List before = List::kOther;
    for (const Ids& segment : segments_of(recording, instance, [&](Id work) {
           return is_of_one_tensor(recording, findings, work);
         })) {
      for (const Repetition& run : repetitions_in(recording, segment)) {
        before = joined(list_of(recording, findings, run), before);
        const auto list = static_cast<std::size_t>(before);
        fuse_run(recording, run, before, candidates[list].remedy);
        kernels[list] += run.kernels.size();
        findings.claim({run.kernels.begin(), run.kernels.end()});
      }
    }
  }
  for (std::size_t list = 0; list < candidates.size(); ++list) {
    if (kernels[list] == 0)
      continue;
    Candidate& candidate = candidates[list];
    candidate.observation =
        fmt::format("{:.4g} small kernels per instance, tensor by tensor ({} each)",
                    per_instance(recording, kernels[list]),
                    base::format_ns(recording.duration_ns(candidate.remedy.operations()) /
                                    static_cast<double>(kernels[list])));
    candidate.evidence = {{"kernels", static_cast<double>(kernels[list])},
                          {"kernels_per_instance", per_instance(recording, kernels[list])}};
    findings.add(std::move(candidate));
  }
}

void find_products_one_by_one(const Recording& recording, Findings& findings) {
  if (!recording.has_steps())
    return;
  Candidate candidate{"products_one_by_one", "", {}, kBatched, {}};
  constexpr double kLeavesRoom = 0.5, kShort_ns = 5'000;
  const auto is_small = [&](Id product) {
    return recording.room(product) <= kLeavesRoom || recording.duration_ns(product) <= kShort_ns;
  };
  std::size_t products = 0;
  for (const Instance& instance : recording.instances()) {
    for (const Ids& segment : segments_of(recording, instance, [&](Id work) {
           return recording.has_role(work, Role::kProduct) && !findings.is_claimed(work) &&
                  is_small(work) && recording.duration_ns(work) <= kSmallKernel_ns;
         })) {
      for (const Repetition& run : repetitions_in(recording, segment)) {
        const Ids all(run.kernels.begin(), run.kernels.end());
        double shared_ns = 0;
        for (const Id product : all)
          shared_ns += recording.room(product) * recording.duration_ns(product);
        candidate.remedy.fused.push_back({all, static_cast<std::int64_t>(shared_ns)});
        products += all.size();
        findings.claim(all);
      }
    }
  }
  if (products == 0)
    return;
  candidate.observation =
      fmt::format("{:.4g} equal small products per instance in a row ({} each)",
                  per_instance(recording, products),
                  base::format_ns(recording.duration_ns(candidate.remedy.operations()) /
                                  static_cast<double>(products)));
  candidate.evidence = {{"products", static_cast<double>(products)},
                        {"products_per_instance", per_instance(recording, products)}};
  findings.add(std::move(candidate));
}

}  // namespace rangescope::analyze::cures
