#include "analyze/samples/sample_work.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace rangescope::analyze {
namespace {

// Durations of one kernel in one shape that vary by more (standard deviation / mean) are of
// different work.
constexpr double kAlike = 0.25;

enum class What : std::uint64_t { kKernel, kForeignKernel, kCopy, kMemset, kGraph };

std::uint64_t key_of(What what, std::uint64_t first, std::uint64_t second) {
  return static_cast<std::uint64_t>(what) << 61 | (first & 0x1fffffff) << 32 |
         (second & 0xffffffff);
}

class Kinds {
 public:
  std::uint32_t of(std::uint64_t key, std::uint32_t name, std::int64_t length) {
    const auto [at, added] = known_.emplace(key, static_cast<std::uint32_t>(list.size()));
    if (added)
      list.push_back({name, 0, 0, 0});
    ++list[at->second].calls;
    list[at->second].total_ns += static_cast<double>(length);
    list[at->second].squares_ns2 += static_cast<double>(length) * static_cast<double>(length);
    return at->second;
  }
  std::vector<WorkKind> list;

 private:
  std::unordered_map<std::uint64_t, std::uint32_t> known_;
};

}  // namespace

SampledWork work_of_card(const model::Session& session,
                         const Contexts& contexts,
                         const Sets& sets,
                         const KernelGroups& groups,
                         const std::vector<std::uint32_t>& card_of,
                         std::uint32_t card,
                         std::size_t most_kinds) {
  SampledWork out;
  Kinds kinds;
  const auto on_card = [&](std::uint32_t stream) {
    return stream < card_of.size() && card_of[stream] == card;
  };
  const auto nowhere = static_cast<std::uint32_t>(sets.size());
  const auto set_of =
      [&](const std::vector<std::uint32_t>& of_item, std::size_t i, const auto& item) {
        if (!launched(session, item.launch, item.stream))
          return Sets::kNoLaunch;
        return sets.of_context[context_of(session, contexts, of_item, i, item.launch, item.stream)];
      };
  const auto add = [&](const auto& item, std::uint64_t key, std::uint32_t name, std::uint32_t set) {
    const std::int64_t length = length_ns(item.start_ns, item.end_ns);
    if (length <= 0)
      return;
    out.pieces.push_back(
        {item.start_ns, item.start_ns + length, kinds.of(key, name, length), set, 1});
  };
  for (std::size_t k = 0; k < session.kernels.size(); ++k) {
    const model::Kernel& kernel = session.kernels[k];
    if (!on_card(kernel.stream))
      continue;
    const std::uint32_t g = groups.of_kernel[k];
    if (g == kNone) {
      add(kernel, key_of(What::kForeignKernel, kernel.name, kernel.shape), kNone, nowhere);
    } else {
      const Group& group = groups.groups[g];
      add(kernel, key_of(What::kKernel, group.name, group.shape), group.name, group.set);
    }
  }
  const auto earlier = [](const SampledPiece& a, const SampledPiece& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns < b.end_ns;
  };
  const auto in_order = [&](auto from, auto to) {
    if (!std::is_sorted(from, to, earlier))
      std::stable_sort(from, to, earlier);
  };
  in_order(out.pieces.begin(), out.pieces.end());
  for (const SampledPiece& piece : out.pieces) {
    if (!out.kernels.empty() && piece.start_ns <= out.kernels.back().second)
      out.kernels.back().second = std::max(out.kernels.back().second, piece.end_ns);
    else
      out.kernels.emplace_back(piece.start_ns, piece.end_ns);
  }
  const std::size_t kernels = out.pieces.size();
  for (std::size_t i = 0; i < session.copies.size(); ++i) {
    const model::Copy& copy = session.copies[i];
    if (on_card(copy.stream))
      add(copy,
          key_of(What::kCopy, static_cast<std::uint64_t>(copy.kind), 0),
          kNone,
          set_of(contexts.of_copy, i, copy));
  }
  for (std::size_t i = 0; i < session.memsets.size(); ++i) {
    const model::Memset& memset = session.memsets[i];
    if (on_card(memset.stream))
      add(memset, key_of(What::kMemset, 0, 0), kNone, set_of(contexts.of_memset, i, memset));
  }
  for (std::size_t i = 0; i < session.graph_launches.size(); ++i) {
    const model::GraphLaunch& graph = session.graph_launches[i];
    if (on_card(graph.stream))
      add(graph, key_of(What::kGraph, 0, graph.graph_id), kNone, set_of({}, i, graph));
  }
  const auto middle = out.pieces.begin() + static_cast<std::ptrdiff_t>(kernels);
  in_order(middle, out.pieces.end());
  std::inplace_merge(out.pieces.begin(), middle, out.pieces.end(), earlier);

  // What took least time shares one kind.
  if (kinds.list.size() > most_kinds) {
    std::vector<std::uint32_t> order(kinds.list.size()), place(kinds.list.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
      return kinds.list[a].total_ns > kinds.list[b].total_ns;
    });
    std::vector<WorkKind> kept;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const WorkKind& kind = kinds.list[order[i]];
      place[order[i]] = static_cast<std::uint32_t>(std::min(i, most_kinds - 1));
      if (i < most_kinds - 1) {
        kept.push_back(kind);
      } else if (i == most_kinds - 1) {
        kept.push_back({kNone, kind.calls, kind.total_ns, 0});
      } else {
        kept.back().calls += kind.calls;
        kept.back().total_ns += kind.total_ns;
      }
    }
    kinds.list = std::move(kept);
    for (SampledPiece& piece : out.pieces)
      piece.kind = place[piece.kind];
  }
  out.kinds = std::move(kinds.list);
  for (SampledPiece& piece : out.pieces) {
    const WorkKind& kind = out.kinds[piece.kind];
    const double calls = static_cast<double>(kind.calls), mean = kind.total_ns / calls;
    const bool alike = kind.squares_ns2 / calls - mean * mean < kAlike * kAlike * mean * mean;
    if (kind.name != kNone && alike)  // copies, and kernels that differ in size: theirs is the rate
      piece.pace = static_cast<float>(mean / static_cast<double>(piece.end_ns - piece.start_ns));
  }
  return out;
}

}  // namespace rangescope::analyze
