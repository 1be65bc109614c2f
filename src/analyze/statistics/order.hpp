// Sorting what is nearly sorted: recorders write events almost in time order.
//
// sort_nearly() takes out the elements that are smaller than one before them, sorts only those, and merges them back:
// O(n + m log m) for m misplaced elements; when more than an eighth is misplaced it is std::sort, O(n log n).
// (The idea is dropmerge sort: Emil Ernerfeldt, github.com/emilk/drop-merge-sort, without its backtracking.)
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace rangescope::analyze {

/// `less` must be a total order without ties (compare the index last), so that the result is the only one possible.
template <class Less>
void sort_nearly(std::span<std::uint32_t> index, Less less) {
  const std::size_t n = index.size();
  std::size_t sorted = 1;
  while (sorted < n && !less(index[sorted], index[sorted - 1])) ++sorted;
  if (sorted >= n) return;
  std::vector<std::uint32_t> misplaced;
  std::size_t kept = sorted;  // index[0, kept) stays in place, ascending
  for (std::size_t i = sorted; i < n; ++i) {
    if (less(index[i], index[kept - 1])) {
      misplaced.push_back(index[i]);
      if (misplaced.size() > n / 8 + 16) {
        // Put the rest back behind what was kept, and sort everything.
        std::copy(misplaced.begin(), misplaced.end(), index.begin() + static_cast<std::ptrdiff_t>(kept));
        std::sort(index.begin(), index.end(), less);
        return;
      }
    } else {
      index[kept++] = index[i];
    }
  }
  std::sort(misplaced.begin(), misplaced.end(), less);
  // Merge from the back: index[kept, n) is free and exactly as large as `misplaced`.
  std::size_t a = kept, b = misplaced.size(), out = n;
  while (b > 0) {
    if (a > 0 && less(misplaced[b - 1], index[a - 1])) {
      index[--out] = index[--a];
    } else {
      index[--out] = misplaced[--b];
    }
  }
}

/// Indexes 0 ... keys - 1 of buckets: counting sort of n items by bucket(i), stable. O(n + buckets).
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
    if (const std::size_t b = bucket_of(i); b < buckets) ++out.begin[b + 1];
  }
  for (std::size_t b = 0; b < buckets; ++b) out.begin[b + 1] += out.begin[b];
  out.items.resize(out.begin[buckets]);
  std::vector<std::size_t> next(out.begin.begin(), out.begin.end() - 1);
  for (std::size_t i = 0; i < n; ++i) {
    if (const std::size_t b = bucket_of(i); b < buckets) out.items[next[b]++] = static_cast<std::uint32_t>(i);
  }
  return out;
}

}  // namespace rangescope::analyze
