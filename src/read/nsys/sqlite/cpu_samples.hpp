// CPU samples of an export: COMPOSITE_EVENTS (one a sample, with its thread) and SAMPLING_CALLCHAINS (its frames, the
// innermost at depth 0, with names in StringIds). nsys names no interval in time where cycles trigger it, so it is the
// median gap between samples of one thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/session.hpp"
#include "read/nsys/sqlite/source.hpp"
#include "read/nsys/sqlite/string_ids.hpp"

namespace rangescope::read::nsys_sqlite {

struct CpuSamples {
  struct Sample {
    std::int64_t id = 0, start_ns = 0;
    std::uint64_t thread = 0;  ///< globalTid
  };
  struct Frame {
    std::int64_t sample = 0, depth = 0, symbol = 0, module = 0;
  };
  std::vector<Sample> samples;
  std::vector<Frame> frames;
  std::map<std::int64_t, std::string> names;  ///< of symbols and modules
  std::vector<Scanned> scans;
};

[[nodiscard]] CpuSamples read_cpu_samples(const Source& source);

/// Fills `names`.
void name_cpu_samples(const StringIds& strings, CpuSamples& read);
/// Into Session::cpu, with the threads that the session has already. O(n log n).
void add_cpu_samples(CpuSamples read, model::Session& session);

}  // namespace rangescope::read::nsys_sqlite
