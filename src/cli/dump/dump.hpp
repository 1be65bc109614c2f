// What `attach PID --dump` prints: of each process what its threads do at this moment, the answer
// first.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "report/exporter.hpp"
#include "sample/cpu/dump/dump.hpp"

namespace rangescope::cli {

struct DumpedProcess {
  sample::cpu::Dump dump;
  std::optional<std::uint32_t> rank;  ///< in its parallel job
};

/// Puts ranks first (where there are three or more), and of them those whose first thread does
/// something else than that of most. Without ranks all processes are compared so.
void put_odd_first(std::vector<DumpedProcess>& processes);

void write_dump_text(const std::vector<DumpedProcess>& processes, report::Sink& sink);
/// rangescope.dump/1 (docs/formats/dump-json.md).
void write_dump_json(const std::vector<DumpedProcess>& processes, report::Sink& sink);

}  // namespace rangescope::cli
