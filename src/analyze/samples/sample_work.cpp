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
  /// Counts an execution; returns the number of its kind.
  std::uint32_t add(std::uint64_t key, std::uint32_t name, std::int64_t length_ns) {
    const auto next_number = static_cast<std::uint32_t>(list.size());
    const auto [number, added] = number_of_.emplace(key, next_number);
    if (added)
      list.push_back({name, 0, 0, 0});
    WorkKind& kind = list[number->second];
    const auto length = static_cast<double>(length_ns);
    ++kind.calls;
    kind.total_ns += length;
    kind.squares_ns2 += length * length;
    return number->second;
  }

  /// Lets what took least time share the last of `most` kinds. Returns the new number of each.
  std::vector<std::uint32_t> merge_smallest(std::size_t most) {
    std::vector<std::uint32_t> number(list.size());
    std::vector<std::uint32_t> order(list.size());
    std::iota(order.begin(), order.end(), 0U);
    const auto total_ns = [&](std::uint32_t kind) { return list[kind].total_ns; };
    std::ranges::stable_sort(order, std::ranges::greater(), total_ns);
    std::vector<WorkKind> kept;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const WorkKind& kind = list[order[i]];
      number[order[i]] = static_cast<std::uint32_t>(std::min(i, most - 1));
      if (i < most - 1) {
        kept.push_back(kind);
      } else if (i == most - 1) {
        kept.push_back({kNone, kind.calls, kind.total_ns, 0});
      } else {
        kept.back().calls += kind.calls;
        kept.back().total_ns += kind.total_ns;
      }
    }
    list = std::move(kept);
    return number;
  }

  std::vector<WorkKind> list;

 private:
  std::unordered_map<std::uint64_t, std::uint32_t> number_of_;
};

bool starts_earlier(const SampledPiece& a, const SampledPiece& b) {
  return std::pair(a.start_ns, a.end_ns) < std::pair(b.start_ns, b.end_ns);
}

/// When any of `pieces` ran, which are by start.
std::vector<std::pair<std::int64_t, std::int64_t>> time_of(
    const std::vector<SampledPiece>& pieces) {
  std::vector<std::pair<std::int64_t, std::int64_t>> intervals;
  for (const SampledPiece& piece : pieces) {
    if (!intervals.empty() && piece.start_ns <= intervals.back().second)
      intervals.back().second = std::max(intervals.back().second, piece.end_ns);
    else
      intervals.emplace_back(piece.start_ns, piece.end_ns);
  }
  return intervals;
}

/// Collects what ran on one card.
class CardWork {
 public:
  CardWork(const model::Session& session,
           const Contexts& contexts,
           const Sets& sets,
           const std::vector<std::uint32_t>& card_of,
           std::uint32_t card)
      : session_(session), contexts_(contexts), sets_(sets), card_of_(card_of), card_(card) {}

  void add_kernels(const KernelGroups& groups) {
    const auto no_set = static_cast<std::uint32_t>(sets_.size());
    for (std::size_t k = 0; k < session_.kernels.size(); ++k) {
      const model::Kernel& kernel = session_.kernels[k];
      if (!is_on_card(kernel.stream))
        continue;
      const std::uint32_t g = groups.of_kernel[k];
      if (g == kNone) {
        add(kernel, key_of(What::kForeignKernel, kernel.name, kernel.shape), kNone, no_set);
        continue;
      }
      const Group& group = groups.groups[g];
      add(kernel, key_of(What::kKernel, group.name, group.shape), group.name, group.set);
    }
    sort_from(0);
    out_.kernels = time_of(out_.pieces);
  }

  /// Copies, memsets and graphs that were recorded as a whole. After the kernels.
  void add_other_work() {
    const std::size_t kernels = out_.pieces.size();
    add_each(session_.copies, contexts_.of_copy, [](const model::Copy& copy) {
      return key_of(What::kCopy, static_cast<std::uint64_t>(copy.kind), 0);
    });
    add_each(session_.memsets, contexts_.of_memset, [](const model::Memset&) {
      return key_of(What::kMemset, 0, 0);
    });
    add_each(session_.graph_launches, {}, [](const model::GraphLaunch& graph) {
      return key_of(What::kGraph, 0, graph.graph_id);
    });
    sort_from(kernels);
    const auto middle = out_.pieces.begin() + static_cast<std::ptrdiff_t>(kernels);
    std::inplace_merge(out_.pieces.begin(), middle, out_.pieces.end(), starts_earlier);
  }

  SampledWork take(std::size_t most_kinds) {
    if (kinds_.list.size() > most_kinds) {
      const std::vector<std::uint32_t> new_number = kinds_.merge_smallest(most_kinds);
      for (SampledPiece& piece : out_.pieces)
        piece.kind = new_number[piece.kind];
    }
    out_.kinds = std::move(kinds_.list);
    set_paces();
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool is_on_card(std::uint32_t stream) const {
    return stream < card_of_.size() && card_of_[stream] == card_;
  }

  template <class Item>
  [[nodiscard]] std::uint32_t set_of(const std::vector<std::uint32_t>& of_item,
                                     std::size_t i,
                                     const Item& item) const {
    if (!launched(session_, item.launch, item.stream))
      return Sets::kNoLaunch;
    return sets_.of_context[context_of(session_, contexts_, of_item, i, item.launch, item.stream)];
  }

  /// Those of the card, which have no name.
  template <class Item>
  void add_each(const std::vector<Item>& items,
                const std::vector<std::uint32_t>& of_item,
                auto key) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      const Item& item = items[i];
      if (is_on_card(item.stream))
        add(item, key(item), kNone, set_of(of_item, i, item));
    }
  }

  template <class Item>
  void add(const Item& item, std::uint64_t key, std::uint32_t name, std::uint32_t set) {
    const std::int64_t length = length_ns(item.start_ns, item.end_ns);
    if (length <= 0)
      return;
    const std::uint32_t kind = kinds_.add(key, name, length);
    out_.pieces.push_back({item.start_ns, item.start_ns + length, kind, set, 1});
  }

  void sort_from(std::size_t first_piece) {
    const auto first = out_.pieces.begin() + static_cast<std::ptrdiff_t>(first_piece);
    if (!std::is_sorted(first, out_.pieces.end(), starts_earlier))
      std::stable_sort(first, out_.pieces.end(), starts_earlier);
  }

  /// Copies, and kernels that differ in size, keep a pace of 1: the rate is theirs.
  void set_paces() {
    for (SampledPiece& piece : out_.pieces) {
      const WorkKind& kind = out_.kinds[piece.kind];
      const auto calls = static_cast<double>(kind.calls);
      const double mean = kind.total_ns / calls;
      const bool alike = kind.squares_ns2 / calls - mean * mean < kAlike * kAlike * mean * mean;
      const auto length = static_cast<double>(piece.end_ns - piece.start_ns);
      if (kind.name != kNone && alike)
        piece.pace = static_cast<float>(mean / length);
    }
  }

  const model::Session& session_;
  const Contexts& contexts_;
  const Sets& sets_;
  const std::vector<std::uint32_t>& card_of_;
  std::uint32_t card_;
  SampledWork out_;
  Kinds kinds_;
};

}  // namespace

SampledWork work_of_card(const model::Session& session,
                         const Contexts& contexts,
                         const Sets& sets,
                         const KernelGroups& groups,
                         const std::vector<std::uint32_t>& card_of,
                         std::uint32_t card,
                         std::size_t most_kinds) {
  CardWork work(session, contexts, sets, card_of, card);
  work.add_kernels(groups);
  work.add_other_work();
  return work.take(most_kinds);
}

}  // namespace rangescope::analyze
