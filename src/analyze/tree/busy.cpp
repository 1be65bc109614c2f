#include "analyze/tree/busy.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

#include "analyze/statistics/order.hpp"
#include "base/workers.hpp"

namespace rangescope::analyze {
namespace {

using model::Session;

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

enum class Work : std::uint32_t { kKernel, kCopy, kMemset, kGraph };

// An item of the order: two bits of kind, thirty of index.
constexpr std::uint32_t kIndexBits = 30;
constexpr std::uint32_t item(Work work, std::uint32_t index) {
  return static_cast<std::uint32_t>(work) << kIndexBits | index;
}
constexpr Work work_of(std::uint32_t item) {
  return static_cast<Work>(item >> kIndexBits);
}
constexpr std::uint32_t index_of(std::uint32_t item) {
  return item & ((1u << kIndexBits) - 1);
}

struct Piece {
  std::int64_t start, end;
  std::uint32_t context;
  Work work;

  /// No sooner than the start, whatever was recorded.
  [[nodiscard]] std::int64_t until() const { return std::max(start, end); }
};

class Timeline {
 public:
  Timeline(const Session& session, const Contexts& contexts, const KernelGroups& groups)
      : session_(session), contexts_(contexts), groups_(groups) {}

  [[nodiscard]] std::int64_t start_of(std::uint32_t item) const {
    const std::uint32_t i = index_of(item);
    switch (work_of(item)) {
      case Work::kKernel: return session_.kernels[i].start_ns;
      case Work::kCopy: return session_.copies[i].start_ns;
      case Work::kMemset: return session_.memsets[i].start_ns;
      case Work::kGraph: return session_.graph_launches[i].start_ns;
    }
    return 0;
  }

  [[nodiscard]] Piece piece(std::uint32_t item) const {
    const std::uint32_t i = index_of(item);
    switch (work_of(item)) {
      case Work::kKernel: return of(session_.kernels[i], contexts_.of_kernel, i, Work::kKernel);
      case Work::kCopy: return of(session_.copies[i], contexts_.of_copy, i, Work::kCopy);
      case Work::kMemset: return of(session_.memsets[i], contexts_.of_memset, i, Work::kMemset);
      case Work::kGraph: return of(session_.graph_launches[i], {}, i, Work::kGraph);
    }
    return {};
  }

  /// Work of each card in time order.
  std::vector<std::vector<std::uint32_t>> orders(std::size_t cards,
                                                 const std::vector<std::uint32_t>& card_of,
                                                 int threads) const {
    std::vector<std::vector<std::uint32_t>> out(cards);
    const auto place = [&](const auto& records, Work work, const auto& wanted) {
      const auto card_of_record = [&](std::size_t i) -> std::size_t {
        const std::uint32_t stream = records[i].stream;
        if (!wanted(i) || stream >= card_of.size())
          return cards;
        return card_of[stream];
      };
      Buckets by_card = bucket_sort(records.size(), cards, card_of_record);
      base::parallel_for(cards, threads, [&](std::size_t c) {
        const auto items = by_card.of(c);
        if (items.empty())
          return;
        sort_nearly(items, [&](std::uint32_t a, std::uint32_t b) {
          return std::pair(records[a].start_ns, a) < std::pair(records[b].start_ns, b);
        });
        for (std::uint32_t& index : items)
          index = item(work, index);
      });
      if (cards == 1 && out[0].empty()) {
        out[0] = std::move(by_card.items);
        return;
      }
      for (std::size_t c = 0; c < cards; ++c)
        merge(by_card.of(c), out[c]);
    };
    const auto any = [](std::size_t) { return true; };
    place(session_.kernels, Work::kKernel, [&](std::size_t i) {
      return groups_.of_kernel[i] != kNone;
    });
    place(session_.copies, Work::kCopy, any);
    place(session_.memsets, Work::kMemset, any);
    place(session_.graph_launches, Work::kGraph, any);
    return out;
  }

 private:
  /// Merges `items` into `order`, both in time order. They are few copies among many kernels:
  /// merged in place from the back (sort_nearly's merge needs them apart).
  void merge(std::span<const std::uint32_t> items, std::vector<std::uint32_t>& order) const {
    if (items.empty())
      return;
    const auto before = static_cast<std::ptrdiff_t>(order.size());
    order.insert(order.end(), items.begin(), items.end());
    if (before == 0)
      return;
    const auto is_earlier = [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(start_of(a), a) < std::pair(start_of(b), b);
    };
    std::inplace_merge(order.begin(), order.begin() + before, order.end(), is_earlier);
  }

  template <class T>
  [[nodiscard]] Piece of(const T& record,
                         const std::vector<std::uint32_t>& of_item,
                         std::size_t i,
                         Work work) const {
    return {record.start_ns,
            record.end_ns,
            context_of(session_, contexts_, of_item, i, record.launch, record.stream),
            work};
  }

  const Session& session_;
  const Contexts& contexts_;
  const KernelGroups& groups_;
};

/// Ends of the unions so far, and what they measure.
struct RegionState {
  std::int64_t all_end = kNever, kernel_end = kNever, copy_end = kNever, exclusive_end = kNever;
  std::uint64_t busy = 0, gaps = 0, overlap = 0, exclusive_busy = 0, copies = 0;
};

std::uint64_t grow(std::int64_t& until, std::int64_t start, std::int64_t end) {
  if (end <= until)
    return 0;
  const auto added = static_cast<std::uint64_t>(length_ns(std::max(start, until), end));
  until = end;
  return added;
}

/// What the new part of one union has in common with the other. Work comes in order of its start,
/// so that whatever the other union covers from `start` on is one interval that ends at
/// `other_end`.
std::uint64_t meet(std::int64_t start,
                   std::int64_t end,
                   std::int64_t own_end,
                   std::int64_t other_end) {
  return static_cast<std::uint64_t>(length_ns(std::max(start, own_end), std::min(end, other_end)));
}

void measure_regions(const Timeline& timeline,
                     const Sets& sets,
                     const std::vector<std::uint32_t>& order,
                     std::vector<RegionBusy>& out) {
  std::vector<RegionState> states(sets.regions);
  for (const std::uint32_t item : order) {
    const Piece piece = timeline.piece(item);
    const std::int64_t end = piece.until();
    for (const SetEntry& entry : sets.of(sets.of_context[piece.context])) {
      RegionState& state = states[entry.region];
      if (state.all_end != kNever && piece.start > state.all_end)
        state.gaps += static_cast<std::uint64_t>(length_ns(state.all_end, piece.start));
      state.busy += grow(state.all_end, piece.start, end);
      if (entry.exclusive)
        state.exclusive_busy += grow(state.exclusive_end, piece.start, end);
      if (piece.work == Work::kKernel) {
        state.overlap += meet(piece.start, end, state.kernel_end, state.copy_end);
        state.kernel_end = std::max(state.kernel_end, end);
      } else if (piece.work == Work::kCopy) {
        state.overlap += meet(piece.start, end, state.copy_end, state.kernel_end);
        state.copies += grow(state.copy_end, piece.start, end);
      }
    }
  }
  out.resize(sets.regions);
  for (std::size_t r = 0; r < sets.regions; ++r) {
    const RegionState& state = states[r];
    out[r] = {state.busy, state.exclusive_busy, state.overlap, state.copies, state.gaps};
  }
}

/// Cards that are used by a common process must be measured one after the other: they share
/// occurrences.
std::vector<std::vector<std::size_t>> card_groups(const Session& session,
                                                  std::size_t cards,
                                                  const std::vector<std::uint32_t>& card_of) {
  std::vector<std::size_t> leader(cards);
  std::iota(leader.begin(), leader.end(), std::size_t{0});
  const std::function<std::size_t(std::size_t)> find = [&](std::size_t c) {
    return leader[c] == c ? c : leader[c] = find(leader[c]);
  };
  std::map<std::uint32_t, std::size_t> card_of_process;
  for (std::size_t s = 0; s < session.streams.size(); ++s) {
    const auto [first_card, added] =
        card_of_process.emplace(session.streams[s].process, card_of[s]);
    if (!added)
      leader[find(card_of[s])] = find(first_card->second);
  }
  std::map<std::size_t, std::vector<std::size_t>> groups;
  for (std::size_t c = 0; c < cards; ++c)
    groups[find(c)].push_back(c);
  std::vector<std::vector<std::size_t>> out;
  for (auto& [first, group] : groups)
    out.push_back(std::move(group));
  return out;
}

/// The busy time of occurrences and the gaps of cells.
class OccurrenceBusy {
 public:
  OccurrenceBusy(const Timeline& timeline, const Tree& tree, const Contexts& contexts, Busy& out)
      : timeline_(timeline), tree_(tree), contexts_(contexts), out_(out) {
    out.occurrence_busy.assign(tree.cell.size(), 0);
    out.occurrence_kernel.assign(tree.cell.size(), 0);
    out.cell_gaps.assign(tree.cells.size(), 0);
    until_.assign(tree.cell.size(), kNever);
  }

  /// Adds the work of a card. Cards that share no process may be added at the same time.
  void add(const std::vector<std::uint32_t>& order) {
    for (const std::uint32_t item : order) {
      const Piece piece = timeline_.piece(item);
      if (piece.context == 0)
        continue;
      const std::int64_t end = piece.until();
      std::uint64_t kernel_ns = 0;
      if (piece.work == Work::kKernel)
        kernel_ns = static_cast<std::uint64_t>(length_ns(piece.start, end));
      for_each_around(piece.context, [&](std::uint32_t o) {
        std::int64_t& until = until_[o];
        if (until != kNever && piece.start > until)
          out_.cell_gaps[tree_.cell[o]] +=
              static_cast<std::uint64_t>(length_ns(until, piece.start));
        out_.occurrence_busy[o] += grow(until, piece.start, end);
        out_.occurrence_kernel[o] += kernel_ns;
      });
    }
  }

  /// Makes the occurrences of the work of a card ready for that of another one.
  void forget(const std::vector<std::uint32_t>& order) {
    for (const std::uint32_t item : order)
      for_each_around(timeline_.piece(item).context, [&](std::uint32_t o) { until_[o] = kNever; });
  }

 private:
  /// action(occurrence), of all that contain a launch.
  template <class Action>
  void for_each_around(std::uint32_t context, Action action) const {
    for (const std::uint32_t entry : contexts_.of(context)) {
      for (std::uint32_t o = entry & ~kInherited; o != kNone; o = tree_.parent[o])
        action(o);
    }
  }

  const Timeline& timeline_;
  const Tree& tree_;
  const Contexts& contexts_;
  Busy& out_;
  std::vector<std::int64_t> until_;  ///< end of the union so far, by occurrence
};

/// What identifies the card behind a stream, and the kind of number that this is.
std::pair<int, std::uint64_t> card_key(const Session& session, const model::Stream& stream) {
  if (stream.device >= session.devices.size())
    return {3, stream.process};  // a stream of no known device: its process's own
  const model::Device& device = session.devices[stream.device];
  if (device.uuid)
    return {0, device.uuid};
  if (device.pci_bus)
    return {1, device.pci_bus};
  return {2, std::uint64_t{stream.process} << 32 | device.ordinal};
}

}  // namespace

std::vector<std::uint32_t> cards_of_streams(const Session& session, std::size_t& cards) {
  std::map<std::pair<int, std::uint64_t>, std::uint32_t> numbers;
  std::vector<std::uint32_t> card_of(session.streams.size());
  for (std::size_t s = 0; s < session.streams.size(); ++s) {
    const auto next_number = static_cast<std::uint32_t>(numbers.size());
    card_of[s] = numbers.emplace(card_key(session, session.streams[s]), next_number).first->second;
  }
  cards = numbers.size();
  return card_of;
}

Busy measure_busy(const Session& session,
                  const Tree& tree,
                  const Contexts& contexts,
                  const Sets& sets,
                  const KernelGroups& groups,
                  int threads) {
  Busy out;
  std::size_t cards = 0;
  std::vector<std::uint32_t> card_of = cards_of_streams(session, cards);
  const Timeline timeline(session, contexts, groups);
  threads = threads_for(session.kernels.size(), threads);
  const auto orders = timeline.orders(cards, card_of, threads);
  const auto sharing = card_groups(session, cards, card_of);

  OccurrenceBusy occurrences(timeline, tree, contexts, out);
  const auto measure_occurrences = [&](const std::vector<std::size_t>& sharing_cards) {
    for (std::size_t i = 0; i < sharing_cards.size(); ++i) {
      if (i > 0)
        occurrences.forget(orders[sharing_cards[i - 1]]);
      occurrences.add(orders[sharing_cards[i]]);
    }
  };

  std::vector<std::vector<RegionBusy>> of_card(cards);
  base::parallel_for(cards + sharing.size(), threads, [&](std::size_t task) {
    if (task < sharing.size()) {
      measure_occurrences(sharing[task]);
    } else {
      measure_regions(
          timeline, sets, orders[task - sharing.size()], of_card[task - sharing.size()]);
    }
  });
  out.regions.resize(sets.regions);
  for (const auto& regions : of_card) {
    for (std::size_t r = 0; r < regions.size(); ++r) {
      out.regions[r].busy += regions[r].busy;
      out.regions[r].exclusive_busy += regions[r].exclusive_busy;
      out.regions[r].overlap += regions[r].overlap;
      out.regions[r].copies += regions[r].copies;
      out.regions[r].gaps += regions[r].gaps;
    }
  }
  return out;
}

}  // namespace rangescope::analyze
