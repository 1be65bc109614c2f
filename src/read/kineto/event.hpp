// One event of a trace, as far as a session can hold it.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "read/kineto/splitter.hpp"

namespace rangescope::read::kineto {

/// Views are valid until the next event is parsed.
struct Event {
  char phase = 0;  ///< X complete, M metadata, i instant; flows (s, f) add nothing to ids
  std::string_view category, name;
  std::optional<std::int64_t>
      start_ns;  ///< exact: digits are read as text, since a double has too few of them
  std::optional<std::int64_t> length_ns;
  bool bad_length = false;  ///< there is one that is negative or no number: NaN, 1e30
  bool fraction = false;    ///< times are finer than a microsecond
  std::optional<std::uint32_t> pid, tid;
  bool legacy_cpu = false,
       legacy_gpu = false;  ///< of torch.autograd.profiler before Kineto, which names no category

  std::optional<std::uint32_t> external_id, correlation, device, context, stream, registers,
      shared_bytes;
  std::optional<std::int64_t> sequence, bytes;
  /// Of a wait for a CUDA event: in which stream it was recorded, and the correlation id of that
  /// call.
  std::optional<std::uint32_t> awaited_stream, record_correlation;
  std::optional<std::uint64_t> graph_node, graph;
  std::optional<std::uint64_t> address;  ///< of a memory event, as the next ones
  std::optional<std::int64_t> device_type, total_allocated, total_reserved;
  std::optional<std::uint32_t> device_id;
  std::array<std::uint32_t, 3> grid{}, block{};
  std::string_view label;                     ///< "name" of metadata, "cuda_sync_kind"
  std::string shapes;                         ///< of an operator's inputs: "[[2, 3], []]"
  std::string_view collective, dtype, group;  ///< of a collective operation
  std::string_view group_id, group_ranks;     ///< of its process group: "0", "[0, 1]"
  std::optional<std::int64_t> elements, elements_out, group_size;
  std::list<std::string>
      repaired;  ///< texts with escapes that JSON does not have; empty without allocating
};

class EventParser {
 public:
  EventParser();
  ~EventParser();
  EventParser& operator=(EventParser&&) = delete;

  /// False when it is no object or no JSON.
  [[nodiscard]] bool parse(std::string_view text, Event& event);

 private:
  struct Parser;  ///< simdjson's, whose header takes seconds to compile
  std::unique_ptr<Parser> parser_;
};

/// "1712195495520883.123" microseconds as nanoseconds; nothing for what is no number below 2^62.
[[nodiscard]] std::optional<std::int64_t> microseconds(std::string_view text, bool& fraction);

/// JSON in one line: "[[2,3], []]" -> "[[2, 3], []]".
[[nodiscard]] std::string one_line(std::string_view json);

}  // namespace rangescope::read::kineto
