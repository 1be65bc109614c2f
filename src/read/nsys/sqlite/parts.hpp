// What one table gave, before the tables are put together: model structs whose links are still
// numbers of the part's own numberings (assemble.cpp turns them into indexes of the session). Parts
// share nothing, so tables are read at once.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "base/numbering.hpp"
#include "model/range.hpp"
#include "model/session.hpp"
#include "read/nsys/sqlite/ids.hpp"
#include "read/nsys/sqlite/source.hpp"
#include "read/nsys/sqlite/target.hpp"

namespace rangescope::read::nsys_sqlite {

using base::Numbering;

// Which correlation ids matter, and which launch each belongs to.
//
// A sparse bit set over (process, correlation id) in blocks of 1024 ids, with a rank per block:
// dense ids cost an eighth of a byte each, and even the sparsest no more than 200. Adding, rank and
// lookup are O(1) expected; ids come nearly in order, so that lookups stay in cache where a hash of
// 10 million ids would miss on each.

class Correlations {
 public:
  void add(std::uint64_t process, std::uint32_t id) {
    Block& block = blocks_at(process, id >> 10);
    block.bits[id >> 6 & 15] |= std::uint64_t{1} << (id & 63);
  }
  /// Everything in `other` too; ids of the process `from` become ids of `to`.
  void merge(const Correlations& other, std::uint64_t from, std::uint64_t to) {
    for (std::size_t i = 0; i < other.blocks_.size(); ++i) {
      const Key& key = other.numbers_.keys()[i];
      Block& block = blocks_at(key.process == from ? to : key.process, key.block);
      for (std::size_t word = 0; word < block.bits.size(); ++word)
        block.bits[word] |= other.blocks_[i].bits[word];
    }
  }
  /// Ends adding: numbers the ids in order of block and id.
  void seal() {
    std::uint32_t total = 0;
    for (Block& block : blocks_) {
      block.base = total;
      std::uint16_t within = 0;
      for (std::size_t word = 0; word < block.bits.size(); ++word) {
        block.before[word] = within;
        within = static_cast<std::uint16_t>(within + std::popcount(block.bits[word]));
      }
      total += within;
    }
    size_ = total;
  }
  /// The position of an id among all, or kNone when it was not added. Only after seal().
  [[nodiscard]] std::uint32_t rank(std::uint64_t process, std::uint32_t id) const {
    const std::int64_t number = numbers_.find({process, id >> 10});
    if (number < 0)
      return model::kNone;
    const Block& block = blocks_[static_cast<std::size_t>(number)];
    const std::size_t word = id >> 6 & 15;
    const std::uint64_t bit = std::uint64_t{1} << (id & 63);
    if ((block.bits[word] & bit) == 0)
      return model::kNone;
    return block.base + block.before[word] +
           static_cast<std::uint32_t>(std::popcount(block.bits[word] & (bit - 1)));
  }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  struct Key {
    std::uint64_t process;
    std::uint64_t block;
  };
  struct Block {
    std::array<std::uint64_t, 16> bits{};
    std::array<std::uint16_t, 16> before{};
    std::uint32_t base = 0;
  };
  Block& blocks_at(std::uint64_t process, std::uint64_t block) {
    const std::uint32_t number = numbers_.number({process, block});
    if (number == blocks_.size())
      blocks_.emplace_back();
    return blocks_[number];
  }

  Numbering<Key> numbers_;
  std::vector<Block> blocks_;
  std::size_t size_ = 0;
};

/// How the reading of one table went.
struct Outcome {
  std::string table;
  Scanned scanned;
  std::uint64_t bad_rows = 0;        ///< left out
  std::string bad_reason;            ///< of the first one: "start is not a number"
  std::optional<base::Error> error;  ///< the table cannot be used at all
};

/// CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY, _MEMSET, _GRAPH_TRACE, _SYNCHRONIZATION or _CUDA_EVENT, or
/// CUDA_GPU_MEMORY_USAGE_EVENTS. In the elements, `launch` holds the correlation id (kNone
/// without), `stream`, `graph_node`, `name` and `shape` hold numbers of the numberings here.
struct Activity {
  Outcome outcome;
  std::vector<model::Kernel> kernels;
  std::vector<model::Copy> copies;
  std::vector<model::Memset> memsets;
  std::vector<model::GraphLaunch> graphs;
  std::vector<model::Synchronization> synchronizations;
  std::vector<std::uint64_t> awaited_events;  ///< of each synchronization, 0: none
  std::vector<model::MemoryEvent> memory;
  std::vector<model::EventCall> events;
  Numbering<StreamKey> streams;
  Numbering<NameKey> names;
  Numbering<model::KernelShape> shapes;
  Numbering<NodeKey> nodes;
  Correlations correlations;
};

/// CUPTI_ACTIVITY_KIND_RUNTIME: every call. `thread` and `name` hold numbers of the numberings
/// here.
struct Calls {
  Outcome outcome;
  std::vector<model::Launch> launches;
  Numbering<std::uint64_t> threads;  ///< globalTid
  Numbering<std::int64_t> names;     ///< StringIds
};

/// A range or mark whose name has this bit holds a number of `Nvtx::text_ids` in the rest of it.
inline constexpr model::StringId kTextId = 0x80000000u;

struct AttributesKey {
  std::uint64_t payload = 0;
  std::uint32_t category = 0, color = 0;
  std::uint32_t has_color = 0, payload_type = 0;
};
struct DomainKey {
  std::uint64_t process = 0;
  std::int64_t id = 0;
};
/// A name that the program gave to something: a domain, a category, a thread, a CUDA object.
struct Naming {
  std::uint32_t domain = 0;  ///< number of `Nvtx::domains`
  std::uint64_t thread = 0;  ///< globalTid
  std::uint64_t id = 0;
  std::uint32_t type = 0;    ///< eventType
  model::StringId name = 0;  ///< as in ranges
};

/// NVTX_EVENTS. `thread`, `end_thread`, `domain` and `attributes` hold numbers of the numberings
/// here.
struct Nvtx {
  Outcome outcome;
  model::Strings strings;
  std::vector<model::Range> ranges;  ///< by start, outer before inner
  std::vector<model::Mark> marks;
  std::vector<Naming> namings;
  Numbering<std::uint64_t> threads;
  Numbering<std::int64_t> text_ids;
  Numbering<DomainKey> domains;
  Numbering<AttributesKey> attributes;
  std::uint64_t unknown_types = 0;
};

/// A row of CUDA_GRAPH_NODE_EVENTS (CUDA_GRAPH_EVENTS up to schema 3.4): when and on which thread a
/// node was made, or, of a node of an instantiated graph, which one it was cloned from.
struct NodeEvent {
  std::uint64_t id = 0, original = 0;  ///< original 0: not a clone
  std::int64_t at_ns = 0;
  std::uint64_t thread = 0;  ///< globalTid
};

[[nodiscard]] Activity read_kernels(const Source& source);
[[nodiscard]] Activity read_copies(const Source& source);
[[nodiscard]] Activity read_memsets(const Source& source);
[[nodiscard]] Activity read_graphs(const Source& source);
[[nodiscard]] Activity read_synchronizations(const Source& source);
[[nodiscard]] Activity read_memory(const Source& source);
[[nodiscard]] Activity read_event_records(const Source& source);
/// ENUM_CUDA_MEM_KIND, which counts as CUPTI does, but from 0.
[[nodiscard]] model::MemoryKind memory_kind_of(const Value& value);
[[nodiscard]] Calls read_calls(const Source& source);
[[nodiscard]] std::vector<NodeEvent> read_node_events(const Source& source, Scanned& scanned);
[[nodiscard]] Nvtx read_nvtx(const Source& source);

/// Brings ranges into the order of their starts, equal ones by descending end (the outer one
/// first), then as they came. O(n) when they are sorted already, O(n + k log k) when k are out of
/// place. Exports are nearly sorted.
void order_ranges(std::vector<model::Range>& ranges);

/// The table when it exists, with an error in `outcome` when one of the columns is missing.
[[nodiscard]] const Table* usable_table(const Source& source,
                                        std::string_view name,
                                        std::initializer_list<std::string_view> columns,
                                        Outcome& outcome);
inline void bad_row(Outcome& outcome, const char* reason) {
  if (outcome.bad_rows++ == 0)
    outcome.bad_reason = reason;
}
/// Forgets all but the outcome, and makes room for so many rows.
template <class Part, class Event>
void begin(Part& part, std::vector<Event>& events, std::size_t rows) {
  Outcome outcome = std::move(part.outcome);
  part = Part{};
  part.outcome = std::move(outcome);
  part.outcome.bad_rows = 0;
  events.reserve(rows);
}
/// A count or id that fits 32 bits; 0 for anything else.
[[nodiscard]] inline std::uint32_t small(const Value& value) {
  if (!value.integer())
    return 0;
  return static_cast<std::uint32_t>(value.bits);
}
/// A size or amount; 0 for anything else.
[[nodiscard]] inline std::uint64_t positive(const Value& value) {
  if (!value.integer() || value.bits <= 0)
    return 0;
  return static_cast<std::uint64_t>(value.bits);
}

struct Parts {
  Nvtx nvtx;
  Calls calls;
  Activity kernels, copies, memsets, graphs, synchronizations, memory, event_records;
  std::vector<NodeEvent> nodes;
  StringIds strings;
  Target target;

  [[nodiscard]] std::array<const Outcome*, 9> outcomes() const {
    return {&nvtx.outcome,
            &calls.outcome,
            &kernels.outcome,
            &copies.outcome,
            &memsets.outcome,
            &graphs.outcome,
            &synchronizations.outcome,
            &memory.outcome,
            &event_records.outcome};
  }
};

/// Puts them together (assemble.cpp), by `threads` workers at most.
[[nodiscard]] model::Session assemble(Parts parts, int threads);

}  // namespace rangescope::read::nsys_sqlite
