// A distribution that merges: exact moments, and a histogram that quantiles are read from.
//
// The histogram is log-linear, as HdrHistogram's (G. Tene, hdrhistogram.org) and with the guarantee
// of DDSketch (C. Masson, J. E. Rim, H. K. Lee, VLDB 12(12), 2019): a bin is an integer's highest
// six bits, so that values below 64 stand exactly and every larger one within 1/64 of itself
// (kRelativeError). Unlike a t-digest or KLL its merge is addition of integers: any order and
// grouping of merges gives the same bins, and so the same digits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rangescope::model {

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
  void add(const Moments& other) {
    if (other.n == 0)
      return;
    min = n == 0 || other.min < min ? other.min : min;
    max = n == 0 || other.max > max ? other.max : max;
    n += other.n;
    sum = static_cast<Wide>(static_cast<UnsignedWide>(sum) + static_cast<UnsignedWide>(other.sum));
    squares += other.squares;
  }
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
    if (times > 0)
      at(bin_of(value)) += times;
  }
  void add(const Sketch& other);
  void take(const Sketch& part);
  void clear() { counts_.clear(); }

  /// Bins [first, first + counts.size()); the outer ones may be empty.
  [[nodiscard]] std::size_t first() const { return first_; }
  [[nodiscard]] const std::vector<std::uint64_t>& counts() const { return counts_; }
  /// The counter of a bin below kBins.
  std::uint64_t& at(std::size_t bin);
  [[nodiscard]] std::uint64_t total() const;
  bool operator==(const Sketch& other) const {
    return counts_ == other.counts_ && (counts_.empty() || first_ == other.first_);
  }

  /// The counter of `first`, where those up to `end` are counted too.
  std::uint64_t* reach(std::size_t first, std::size_t end);

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
  /// The value at a place of the sorted sample: of the sketch, within the least and the largest
  /// value.
  [[nodiscard]] double value_at(std::uint64_t place) const;
  bool operator==(const Distribution&) const = default;
};

}  // namespace rangescope::model
