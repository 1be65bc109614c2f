#include "analyze/tally/sketch.hpp"

#include "analyze/statistics/spread.hpp"
#include "analyze/tally/coding.hpp"

namespace rangescope::analyze::tally {
namespace {

void add_bins(Sketch& sketch, const PackedBins& other) {
  if (other.used == 0) return;
  std::uint64_t* to = sketch.reach(other.first, other.end);
  if (other.more.empty()) {
    for (const std::uint8_t *pair = other.pairs, *end = pair + other.used; pair != end; ++pair) {
      to += *pair & 15;
      *to++ += std::uint64_t{1} + (*pair >> 4);
    }
    return;
  }
  coding::Reader more(other.more);
  constexpr std::uint64_t kMore = 15;
  for (const std::uint8_t *pair = other.pairs, *end = pair + other.used; pair != end; ++pair) {
    std::uint64_t gap = *pair & kMore, above = *pair >> 4;
    if (gap == kMore) gap += more.number();
    if (above == kMore) above += more.number();
    to += gap;
    *to++ += above + 1;
  }
}

}  // namespace

void Distribution::add(const Packed& other) {
  moments.add(other.moments);
  add_bins(sketch, other.bins);
}

model::Spread Distribution::spread() const {
  return analyze::spread_of(*this);
}

}  // namespace rangescope::analyze::tally
