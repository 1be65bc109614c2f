// Distributions as a digest's file has them (model/sketch.hpp).
#pragma once

#include <cstdint>
#include <string_view>

#include "model/report.hpp"
#include "model/sketch.hpp"

namespace rangescope::analyze::tally {

using model::kRelativeError;
using model::Moments;
using model::Sketch;
using model::UnsignedWide;
using model::Wide;

/// Bins as a file has them, checked: they are only taken apart where they are added. Valid as long as the file's bytes.
struct PackedBins {
  const std::uint8_t* pairs = nullptr;  ///< a byte each: empty ones before it, and above them its count less 1
  std::string_view more;                ///< begins with what is above 15 of halves; empty: nothing is
  std::uint32_t used = 0, first = 0, end = 0;
};

/// A distribution as a file has it.
struct Packed {
  Moments moments;
  PackedBins bins;

  void clear() { *this = {}; }
};

struct Distribution : model::Distribution {
  using model::Distribution::add;
  void add(const Packed& other);
  /// Median and 95th percentile are those of the sketch.
  [[nodiscard]] model::Spread spread() const;
  bool operator==(const Distribution&) const = default;
};

}  // namespace rangescope::analyze::tally
