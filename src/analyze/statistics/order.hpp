// Counting sort of numbers into buckets, and the order in which workers best take tasks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "base/sort_nearly.hpp"

namespace rangescope::analyze {

using base::sort_nearly;

/// Indexes 0 ... keys - 1 of buckets: counting sort of n items by bucket(i), stable. O(n +
/// buckets).
struct Buckets {
  std::vector<std::uint32_t> items;  ///< item numbers, bucket by bucket
  std::vector<std::size_t> begin;    ///< begin[b] ... begin[b + 1] in `items`
  [[nodiscard]] std::span<std::uint32_t> of(std::size_t bucket) {
    return {items.data() + begin[bucket], begin[bucket + 1] - begin[bucket]};
  }
  [[nodiscard]] std::span<const std::uint32_t> of(std::size_t bucket) const {
    return {items.data() + begin[bucket], begin[bucket + 1] - begin[bucket]};
  }
};

/// Items whose bucket is `buckets` or more are left out.
template <class BucketOf>
Buckets bucket_sort(std::size_t n, std::size_t buckets, BucketOf bucket_of) {
  Buckets out;
  out.begin.assign(buckets + 1, 0);
  for (std::size_t i = 0; i < n; ++i) {
    if (const std::size_t b = bucket_of(i); b < buckets)
      ++out.begin[b + 1];
  }
  for (std::size_t b = 0; b < buckets; ++b)
    out.begin[b + 1] += out.begin[b];
  out.items.resize(out.begin[buckets]);
  std::vector<std::size_t> next(out.begin.begin(), out.begin.end() - 1);
  for (std::size_t i = 0; i < n; ++i) {
    if (const std::size_t b = bucket_of(i); b < buckets)
      out.items[next[b]++] = static_cast<std::uint32_t>(i);
  }
  return out;
}

/// 0 ... n - 1, that of the largest `size_of` first.
template <class SizeOf>
[[nodiscard]] std::vector<std::uint32_t> largest_first(std::size_t n, SizeOf size_of) {
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(
      order.begin(), order.end(), [&](auto a, auto b) { return size_of(a) > size_of(b); });
  return order;
}

}  // namespace rangescope::analyze
