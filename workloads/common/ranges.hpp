// NVTX ranges that the workload also counts itself: its truth, against which a profile is checked.
//
// A push/pop range is counted under the path of ranges that are open on its thread; a start/end
// range stands alone. On the CUDA backend kernel launches are counted too (inclusive), unless
// cuBLAS ran, whose launches nobody here can know.
#pragma once

#include <cstdint>
#include <string>

namespace workload {

/// A push/pop range for the life of the object, on the calling thread.
class Range {
 public:
  explicit Range(const char* name);
  ~Range();
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

/// A start/end range for the life of the object.
class Interval {
 public:
  explicit Interval(const char* name);
  ~Interval();
  Interval(const Interval&) = delete;
  Interval& operator=(const Interval&) = delete;

 private:
  std::uint64_t id_;
};

/// What was counted, as one JSON object with the given header fields (already JSON) first:
/// {<header>, "regions": [{"path": [...], "domain": "", "kind": "push_pop", "occurrences": n,
/// "kernels": n or null}]}
[[nodiscard]] std::string truth_json(const std::string& header);

/// The end of every workload's main: with `truth` the JSON goes to stdout, or to `file` where one
/// is named; otherwise one line says what was computed. The exit code.
[[nodiscard]] int finish(const std::string& header, bool truth, const std::string& file);

}  // namespace workload
