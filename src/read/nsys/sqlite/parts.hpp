// What one table gave, before the tables are put together: model structs whose links are still numbers of the part's
// own dictionaries (assemble.hpp turns them into indexes of the session). Parts share nothing, so tables are read at
// once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/session.hpp"
#include "read/nsys/sqlite/correlation.hpp"
#include "read/nsys/sqlite/dictionary.hpp"
#include "read/nsys/sqlite/ids.hpp"
#include "read/nsys/sqlite/source.hpp"

namespace rangescope::read::nsys_sqlite {

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
