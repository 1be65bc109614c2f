// A distribution that merges: exact moments, and a histogram that quantiles are read from.
//
// The histogram is log-linear, as HdrHistogram's (G. Tene, hdrhistogram.org) and with the guarantee of DDSketch
// (C. Masson, J. E. Rim, H. K. Lee, VLDB 12(12), 2019): a bin is an integer's highest six bits, so that values below 64
// stand exactly and every larger one within 1/64 of itself (kRelativeError). Unlike a t-digest or KLL its merge is
// addition of integers: any order and grouping of merges gives the same bins, and so the same digits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/report.hpp"

namespace rangescope::digest {

__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;

/// Quantiles of a sketch differ from the exact ones by at most this share of them.
inline constexpr double kRelativeError = 1.0 / 64;

struct Moments {
  std::uint64_t n = 0;
  std::int64_t min = 0, max = 0;  ///< 0 while n is 0
  Wide sum = 0;
  UnsignedWide squares = 0;

  void add(std::int64_t value, std::uint64_t times = 1);
  void add(const Moments& other);
  /// Less those of a part of it; min and max stay.
  void take(const Moments& part);
  [[nodiscard]] double mean() const;
  bool operator==(const Moments&) const = default;
};

class Sketch {
 public:
  static constexpr std::size_t kBins = 1920;
  /// Negative values count as 0.
  [[nodiscard]] static std::size_t bin_of(std::int64_t value);
  [[nodiscard]] static std::int64_t middle_of(std::size_t bin);

  void add(std::int64_t value, std::uint64_t times = 1) {
    if (times > 0) at(bin_of(value)) += times;
  }
  void add(const Sketch& other);
  void take(const Sketch& part);
  void clear() { counts_.clear(); }
  /// Bins [first, first + count), all empty, to be filled: the outer ones must be.
  [[nodiscard]] std::uint64_t* reset(std::size_t first, std::size_t count) {
    first_ = first;
    counts_.assign(count, 0);
    return counts_.data();
  }

  /// Bins [first, first + counts.size()); the outer ones may be empty.
  [[nodiscard]] std::size_t first() const { return first_; }
  [[nodiscard]] const std::vector<std::uint64_t>& counts() const { return counts_; }
  /// The counter of a bin below kBins.
  std::uint64_t& at(std::size_t bin);
  [[nodiscard]] std::uint64_t total() const;
  bool operator==(const Sketch& other) const {
    return counts_ == other.counts_ && (counts_.empty() || first_ == other.first_);
  }

 private:
  std::size_t first_ = 0;
  std::vector<std::uint64_t> counts_;
};

struct Distribution {
  Moments moments;
  Sketch sketch;

  void add(std::int64_t value, std::uint64_t times = 1) {
    moments.add(value, times);
    sketch.add(value, times);
  }
  void add(const Distribution& other) {
    moments.add(other.moments);
    sketch.add(other.sketch);
  }
  void clear() {
    moments = {};
    sketch.clear();
  }
  /// Median and 95th percentile are those of the sketch, within the least and the largest value.
  [[nodiscard]] model::Spread spread() const;
  bool operator==(const Distribution&) const = default;
};

}  // namespace rangescope::digest
