// Writes one stream of samples (format: wire/samples.hpp), bounded: when half of the bytes it may
// take are gone, two samples become one, when half of the rest are gone four, and so on. A file
// never passes its bound.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "sample/blocks.hpp"

namespace rangescope::sample {

/// What a stream holds, as its description says.
struct Description {
  std::string source;  ///< "CUPTI PM sampling", "NVML"
  std::string clock;   ///< "gpu" or "monotonic"
  int device = 0;      ///< as CUDA counts them
  std::string uuid, name, chip;
  std::int64_t interval_ns = 0;
  std::vector<std::string> metrics;
  /// By metric: two samples merge to the sum of the values, not to their mean by time.
  std::vector<char> adds_up;
};

class SampleWriter {
 public:
  /// Makes the file. kIo where that cannot be.
  [[nodiscard]] static base::Result<SampleWriter> create(const std::filesystem::path& file,
                                                         Description description,
                                                         std::uint64_t most_bytes);

  /// `values`: one a metric, NaN for none.
  void add(std::int64_t start_ns, std::int64_t end_ns, const double* values);
  void event(wire::samples::EventKind kind, std::string_view text, std::uint32_t count = 0) {
    file_.event(kind, text, count);
  }
  /// Writes what is buffered; `last`: and that this is the end.
  void flush(bool last);

 private:
  SampleWriter(BlockFile file, Description description, std::uint64_t most_bytes);
  void take(std::int64_t start_ns, std::int64_t end_ns);

  BlockFile file_;
  Description description_;
  std::uint64_t most_bytes_ = 0, samples_ = 0;
  std::uint32_t merge_ = 1, merged_ = 0;
  std::int64_t merged_start_ns_ = 0, merged_end_ns_ = 0, covered_ns_ = 0;
  std::int64_t least_lead_ns_ =
      std::numeric_limits<std::int64_t>::max();  ///< of our clock, when a sample was read
  std::vector<double> sums_;
  std::vector<std::int64_t> starts_, ends_;
  std::vector<std::vector<float>> columns_;
};

}  // namespace rangescope::sample
