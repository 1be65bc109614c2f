// Details of an item as (key, value) pairs, which a viewer shows with it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "report/timeline/timeline.hpp"

namespace rangescope::report {

using AnnotationValue = std::variant<std::int64_t, std::uint64_t, double, bool, std::string>;

struct Annotation {
  std::string_view key;
  AnnotationValue value;
};

/// "nvtx", "cuda_api", "kernel", "memcpy", "memset", "graph"
[[nodiscard]] std::string_view item_category(ItemKind kind);
/// Domain, category, payload and colour of a range or mark; shape of a kernel; bytes of a copy.
/// Clears `out` first.
void annotate(const model::Session& session,
              const TimelineItem& item,
              std::vector<Annotation>& out);
void annotate(const model::Session& session, const model::Mark& mark, std::vector<Annotation>& out);

/// A number for each process, its pid or an invented one, none twice: viewers put together what has
/// one pid, and hosts of a job may give out the same.
[[nodiscard]] std::vector<std::int32_t> trace_pids(const model::Session& session);
/// "rank 3 on node1: /usr/bin/python3"
[[nodiscard]] std::string trace_process_name(const model::Session& session,
                                             const model::Process& process);

}  // namespace rangescope::report
