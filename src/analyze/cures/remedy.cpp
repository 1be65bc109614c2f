#include "analyze/cures/remedy.hpp"

#include <algorithm>
#include <utility>

namespace rangescope::analyze::cures {
namespace {

using replay::Graph;
using replay::Id;
using replay::Operation;

/// Batches that each worker may be ahead (torch.utils.data's prefetch_factor).
constexpr std::uint32_t kAhead = 2;

bool are_same(const Operation& recorded, const Operation& changed) {
  return recorded.kind == changed.kind && recorded.source == changed.source &&
         recorded.start_ns == changed.start_ns && recorded.end_ns == changed.end_ns;
}

/// Where operations of the recording are in a changed graph: changes remove operations, and keep
/// the order and the recorded times of the others.
class Places {
 public:
  Places(const Graph& recorded, const Graph& changed) : place_(recorded.size(), model::kNone) {
    Id place = 0;
    for (Id id = 0; id < recorded.size() && place < changed.size(); ++id) {
      if (are_same(recorded.operations[id], changed.operations[place]))
        place_[id] = place++;
    }
  }

  [[nodiscard]] Id of(Id recorded) const { return place_[recorded]; }
  [[nodiscard]] std::vector<Id> of(const std::vector<Id>& recorded) const {
    std::vector<Id> places;
    for (const Id id : recorded) {
      if (place_[id] != model::kNone)
        places.push_back(place_[id]);
    }
    return places;
  }

 private:
  std::vector<Id> place_;
};

Graph fuse(const Remedy& remedy, const Graph& graph, const Places& places, double parameter) {
  std::vector<replay::Fusion> fusions;
  for (const replay::Fusion& fusion : remedy.fused) {
    replay::Fusion left{places.of(fusion.works)};
    if (left.works.empty())
      continue;
    const auto scaled = [&](std::int64_t ns) {
      return static_cast<std::int64_t>(parameter * static_cast<double>(ns));
    };
    left.duration_ns = scaled(fusion.duration_ns);
    left.call_ns = scaled(fusion.call_ns);
    std::int64_t together_ns = 0;
    for (const Id work : left.works)
      together_ns += graph.operations[work].duration_ns;
    left.duration_ns = std::min(left.duration_ns, together_ns);
    fusions.push_back(std::move(left));
  }
  return replay::fused(graph, fusions);
}

/// No operation takes longer than before.
Graph reduce(const Remedy& remedy, Graph graph, const Places& places, double parameter) {
  for (const Remedy::Reduction& reduction : remedy.reduced) {
    const double factor = std::min(1.0, reduction.unchanged + parameter * reduction.share);
    graph = replay::scaled(std::move(graph), places.of(reduction.operations), factor);
  }
  return graph;
}

Graph copy_ahead(const Remedy& remedy,
                 const Graph& graph,
                 const Places& places,
                 double bytes_per_s) {
  std::vector<Id> copies;
  std::vector<double> bytes;
  for (std::size_t index = 0; index < remedy.copies.size(); ++index) {
    const Id copy = places.of(remedy.copies[index]);
    if (copy == model::kNone)
      continue;
    copies.push_back(copy);
    bytes.push_back(remedy.copy_bytes[index]);
  }
  return replay::copied_ahead_pinned(graph, copies, bytes, bytes_per_s);
}

}  // namespace

std::vector<Id> Remedy::operations() const {
  std::vector<Id> ids;
  for (const auto* list : {&shortened, &removed, &copies, &moved})
    ids.insert(ids.end(), list->begin(), list->end());
  for (const Reduction& reduction : reduced)
    ids.insert(ids.end(), reduction.operations.begin(), reduction.operations.end());
  for (const replay::Fusion& fusion : fused)
    ids.insert(ids.end(), fusion.works.begin(), fusion.works.end());
  return ids;
}

Graph apply(const Remedy& remedy, const Graph& recorded, const Graph& changed, double parameter) {
  Graph graph = changed;
  const auto places = [&] { return Places(recorded, graph); };
  if (!remedy.shortened.empty())
    graph = replay::scaled(std::move(graph), places().of(remedy.shortened), parameter);
  if (!remedy.reduced.empty())
    graph = reduce(remedy, std::move(graph), places(), parameter);
  if (!remedy.removed.empty())
    graph = replay::without(graph, places().of(remedy.removed));
  if (!remedy.fused.empty())
    graph = fuse(remedy, graph, places(), parameter);
  if (!remedy.copies.empty())
    graph = copy_ahead(remedy, graph, places(), parameter);
  if (!remedy.moved.empty()) {
    const auto workers = static_cast<std::uint32_t>(parameter);
    graph = replay::moved_ahead(graph, places().of(remedy.moved), workers, kAhead);
  }
  if (!remedy.captured.empty()) {
    constexpr auto kKernel = static_cast<std::size_t>(replay::Kind::kKernel);
    const auto order_ns = static_cast<double>(graph.latencies.order_ns[kKernel]);
    graph = replay::as_graph_launches(
        graph,
        remedy.captured,
        {remedy.graph_launch_ns, static_cast<std::int64_t>(parameter * order_ns)});
  }
  return graph;
}

}  // namespace rangescope::analyze::cures
