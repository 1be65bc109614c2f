// What one table gave, before the tables are put together: model structs whose links are still numbers of the part's
// own dictionaries (assemble.hpp turns them into indexes of the session). Parts share nothing, so tables are read at
// once.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "model/range.hpp"
#include "model/session.hpp"
#include "read/nsys/sqlite/ids.hpp"
#include "read/nsys/sqlite/source.hpp"

namespace rangescope::read::nsys_sqlite {

// Numbers distinct keys 0, 1, 2, ... in the order in which they first appear.
//
// Open addressing with linear probing over a power of two, at most half full; keys are compared as bytes, so they have
// no padding. One lookup of a hot key is a hash and one compare. Not for several threads.

template <class Key>
class Dictionary {
  static_assert(std::has_unique_object_representations_v<Key>);

 public:
  /// The number of `key`, given when it is new.
  std::uint32_t number(const Key& key) {
    if (last_ < keys_.size() && equal(keys_[last_], key)) return last_;
    if (keys_.size() * 2 >= slots_.size()) grow();
    for (std::size_t at = hash(key) & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at] == 0) {
        keys_.push_back(key);
        slots_[at] = static_cast<std::uint32_t>(keys_.size());
        return last_ = static_cast<std::uint32_t>(keys_.size() - 1);
      }
      if (equal(keys_[slots_[at] - 1], key)) return last_ = slots_[at] - 1;
    }
  }
  /// The number of `key`, or -1. Safe from several threads while nobody adds.
  [[nodiscard]] std::int64_t find(const Key& key) const {
    if (slots_.empty()) return -1;
    for (std::size_t at = hash(key) & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at] == 0) return -1;
      if (equal(keys_[slots_[at] - 1], key)) return slots_[at] - 1;
    }
  }
  [[nodiscard]] const std::vector<Key>& keys() const { return keys_; }
  [[nodiscard]] std::size_t size() const { return keys_.size(); }
  void clear() {
    keys_.clear();
    slots_.clear();
    last_ = 0;
  }

 private:
  static bool equal(const Key& a, const Key& b) { return std::memcmp(&a, &b, sizeof(Key)) == 0; }
  static std::size_t hash(const Key& key) {
    constexpr std::size_t kWords = (sizeof(Key) + 7) / 8;
    std::uint64_t words[kWords] = {};
    std::memcpy(words, &key, sizeof(Key));
    std::uint64_t mixed = 0;
    for (const std::uint64_t word : words) {
      mixed = (mixed ^ word) * 0x9e3779b97f4a7c15u;
      mixed ^= mixed >> 32;
    }
    return static_cast<std::size_t>(mixed);
  }
  void grow() {
    const std::size_t size = slots_.empty() ? 64 : slots_.size() * 2;
    slots_.assign(size, 0);
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      std::size_t at = hash(keys_[i]) & (size - 1);
      while (slots_[at] != 0) at = (at + 1) & (size - 1);
      slots_[at] = static_cast<std::uint32_t>(i + 1);
    }
  }

  std::vector<Key> keys_;
  std::vector<std::uint32_t> slots_;  ///< number + 1, 0 where free
  std::uint32_t last_ = 0;
};

// Which correlation ids matter, and which launch each belongs to.
//
// A sparse bit set over (process, correlation id) in blocks of 1024 ids, with a rank per block: dense ids cost
// an eighth of a byte each, and even the sparsest no more than 200. Adding, rank and lookup are O(1) expected; ids come
// nearly in order, so that lookups stay in cache where a hash of 10 million ids would miss on each.

class Correlations {
 public:
  void add(std::uint64_t process, std::uint32_t id) {
    Block& block = blocks_at(process, id >> 10);
    block.bits[id >> 6 & 15] |= std::uint64_t{1} << (id & 63);
  }
  /// Everything in `other` too; ids of the process `from` become ids of `to`.
  void merge(const Correlations& other, std::uint64_t from, std::uint64_t to);
  /// Ends adding: numbers the ids in order of block and id.
  void seal();
  /// The position of an id among all, or kNone when it was not added. Only after seal().
  [[nodiscard]] std::uint32_t rank(std::uint64_t process, std::uint32_t id) const {
    const std::int64_t number = numbers_.find({process, id >> 10});
    if (number < 0) return model::kNone;
    const Block& block = blocks_[static_cast<std::size_t>(number)];
    const std::size_t word = id >> 6 & 15;
    const std::uint64_t bit = std::uint64_t{1} << (id & 63);
    if ((block.bits[word] & bit) == 0) return model::kNone;
    return block.base + block.before[word] + static_cast<std::uint32_t>(std::popcount(block.bits[word] & (bit - 1)));
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  void clear();

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
    if (number == blocks_.size()) blocks_.emplace_back();
    return blocks_[number];
  }

  Dictionary<Key> numbers_;
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

/// CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY, _MEMSET, _GRAPH_TRACE or _SYNCHRONIZATION. In the elements, `launch` holds the
/// correlation id (kNone without), `stream`, `graph_node`, `name` and `shape` hold numbers of the dictionaries here.
struct Activity {
  Outcome outcome;
  std::vector<model::Kernel> kernels;
  std::vector<model::Copy> copies;
  std::vector<model::Memset> memsets;
  std::vector<model::GraphLaunch> graphs;
  std::vector<model::Synchronization> synchronizations;
  Dictionary<StreamKey> streams;
  Dictionary<NameKey> names;
  Dictionary<model::KernelShape> shapes;
  Dictionary<NodeKey> nodes;
  Correlations correlations;
};

/// CUPTI_ACTIVITY_KIND_RUNTIME: every call. `thread` and `name` hold numbers of the dictionaries here.
struct Calls {
  Outcome outcome;
  std::vector<model::Launch> launches;
  Dictionary<std::uint64_t> threads;  ///< globalTid
  Dictionary<std::int64_t> names;     ///< StringIds
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

/// NVTX_EVENTS. `thread`, `end_thread`, `domain` and `attributes` hold numbers of the dictionaries here.
struct Nvtx {
  Outcome outcome;
  model::Strings strings;
  std::vector<model::Range> ranges;  ///< by start, outer before inner
  std::vector<model::Mark> marks;
  std::vector<Naming> namings;
  Dictionary<std::uint64_t> threads;
  Dictionary<std::int64_t> text_ids;
  Dictionary<DomainKey> domains;
  Dictionary<AttributesKey> attributes;
  std::uint64_t unknown_types = 0;
};

[[nodiscard]] Activity read_kernels(const Source& source);
[[nodiscard]] Activity read_copies(const Source& source);
[[nodiscard]] Activity read_memsets(const Source& source);
[[nodiscard]] Activity read_graphs(const Source& source);
[[nodiscard]] Activity read_synchronizations(const Source& source);
[[nodiscard]] Calls read_calls(const Source& source);
[[nodiscard]] Nvtx read_nvtx(const Source& source);

/// Brings ranges into the order of their starts, equal ones by descending end (the outer one first), then as they came.
/// O(n) when they are sorted already, O(n + k log k) when k are out of place. Exports are nearly sorted.
void order_ranges(std::vector<model::Range>& ranges);

/// The table when it exists, with an error in `outcome` when one of the columns is missing.
[[nodiscard]] const Table* usable_table(const Source& source, std::string_view name,
                                        std::initializer_list<std::string_view> columns, Outcome& outcome);
inline void bad_row(Outcome& outcome, const char* reason) {
  if (outcome.bad_rows++ == 0) outcome.bad_reason = reason;
}
/// A count or id that fits 32 bits; 0 for anything else.
[[nodiscard]] inline std::uint32_t small(const Value& value) {
  return value.integer() ? static_cast<std::uint32_t>(value.bits) : 0;
}

}  // namespace rangescope::read::nsys_sqlite
