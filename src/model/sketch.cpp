#include "model/sketch.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace rangescope::model {
namespace {

constexpr int kBits = 5;  // below the leading one

}  // namespace

void Moments::add(std::int64_t value, std::uint64_t times) {
  if (times == 0)
    return;
  min = n == 0 ? value : std::min(min, value);
  max = n == 0 ? value : std::max(max, value);
  n += times;
  const auto wide =
      static_cast<UnsignedWide>(static_cast<Wide>(value));  // sums of a hostile file wrap around
  sum = static_cast<Wide>(static_cast<UnsignedWide>(sum) + wide * times);
  squares += wide * wide * times;
}

void Moments::take(const Moments& part) {
  n -= std::min(n, part.n);
  sum = static_cast<Wide>(static_cast<UnsignedWide>(sum) - static_cast<UnsignedWide>(part.sum));
  squares -= std::min(squares, part.squares);
}

double Moments::mean() const {
  return n == 0 ? 0
                : static_cast<double>(static_cast<long double>(sum) / static_cast<long double>(n));
}

std::size_t Sketch::bin_of(std::int64_t value) {
  if (value <= 0)
    return 0;
  const auto bits = static_cast<std::uint64_t>(value);
  const int shift = std::max(0, static_cast<int>(std::bit_width(bits)) - 1 - kBits);
  return (static_cast<std::size_t>(shift) << kBits) + static_cast<std::size_t>(bits >> shift);
}

std::int64_t Sketch::middle_of(std::size_t bin) {
  const std::size_t shift = bin >> kBits < 2 ? 0 : (bin >> kBits) - 1;
  const std::uint64_t low = static_cast<std::uint64_t>(bin - (shift << kBits)) << shift;
  const std::uint64_t middle = low + ((std::uint64_t{1} << shift) - 1) / 2;
  return static_cast<std::int64_t>(
      std::min<std::uint64_t>(middle, std::numeric_limits<std::int64_t>::max()));
}

std::uint64_t& Sketch::at(std::size_t bin) {
  if (counts_.empty())
    first_ = bin;
  if (bin < first_) {
    counts_.insert(counts_.begin(), first_ - bin, 0);
    first_ = bin;
  }
  if (bin - first_ >= counts_.size())
    counts_.resize(bin - first_ + 1, 0);
  return counts_[bin - first_];
}

std::uint64_t* Sketch::reach(std::size_t first, std::size_t end) {
  if (counts_.empty() || first < first_ || end > first_ + counts_.size()) {
    at(first);
    at(end - 1);
  }
  return counts_.data() + (first - first_);
}

void Sketch::add(const Sketch& other) {
  if (other.counts_.empty())
    return;
  std::uint64_t* counts = reach(other.first_, other.first_ + other.counts_.size());
  for (std::size_t i = 0; i < other.counts_.size(); ++i)
    counts[i] += other.counts_[i];
}

void Sketch::take(const Sketch& part) {
  for (std::size_t i = 0; i < part.counts_.size(); ++i)
    if (const std::size_t bin = part.first_ + i; bin >= first_ && bin - first_ < counts_.size())
      counts_[bin - first_] -= std::min(counts_[bin - first_], part.counts_[i]);
}

std::uint64_t Sketch::total() const {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : counts_)
    sum += count;
  return sum;
}

double Distribution::value_at(std::uint64_t place) const {
  const Moments& m = moments;
  if (place == 0)
    return static_cast<double>(m.min);
  if (place + 1 >= m.n)
    return static_cast<double>(m.max);
  const auto& counts = sketch.counts();
  std::uint64_t values_below = 0;
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (values_below += counts[i]; values_below > place)
      return static_cast<double>(std::clamp(Sketch::middle_of(sketch.first() + i), m.min, m.max));
  return static_cast<double>(m.max);
}

}  // namespace rangescope::model
