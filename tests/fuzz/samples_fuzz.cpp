// Streams of samples: columns are of one length, samples in order and without overlap, values
// plausible.
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "read/native/samples.hpp"
#include "share.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rangescope;
  model::Session session;
  const auto read =
      read::native::read_samples(std::as_bytes(std::span(data, size)), "fuzz", session);
  if (!read && read.error().what.empty())
    __builtin_trap();
  for (const model::SampleStream& stream : session.samples) {
    if (stream.start_ns.size() != stream.end_ns.size() || stream.start_ns.empty())
      __builtin_trap();
    for (std::size_t s = 0; s < stream.start_ns.size(); ++s)
      if (stream.end_ns[s] <= stream.start_ns[s] ||
          (s > 0 && stream.start_ns[s] < stream.end_ns[s - 1]))
        __builtin_trap();
    for (const model::SampledMetric& metric : stream.metrics) {
      if (metric.values.size() != stream.start_ns.size())
        __builtin_trap();
      for (const float value : metric.values)
        if (value < 0 || std::isinf(value))
          __builtin_trap();
    }
  }
  return ::fuzz::count(read.has_value());
}
