// Sorting what is nearly sorted: recorders write events almost in time order.
//
// sort_nearly() takes out the elements that are smaller than one before them, sorts only those, and
// merges them back: O(n + m log m) for m misplaced elements; when more than an eighth is misplaced
// all are sorted, O(n log n). An element that is taken out comes behind all that stay and equal it.
// (The idea is dropmerge sort: Emil Ernerfeldt, github.com/emilk/drop-merge-sort, without its
// backtracking.)
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace rangescope::base {

/// Stable.
template <class Items, class Less>
void sort_nearly(Items&& items, Less less) {
  const std::span index(items);
  const std::size_t n = index.size();
  std::size_t sorted = 1;
  while (sorted < n && !less(index[sorted], index[sorted - 1]))
    ++sorted;
  if (sorted >= n)
    return;
  std::vector<typename decltype(index)::value_type> misplaced;
  std::size_t kept = sorted;  // index[0, kept) stays in place, ascending
  for (std::size_t i = sorted; i < n; ++i) {
    if (less(index[i], index[kept - 1])) {
      misplaced.push_back(index[i]);
      if (misplaced.size() > n / 8 + 16) {
        // Put the rest back behind what was kept, and sort everything.
        std::copy(
            misplaced.begin(), misplaced.end(), index.begin() + static_cast<std::ptrdiff_t>(kept));
        std::stable_sort(index.begin(), index.end(), less);
        return;
      }
    } else {
      index[kept++] = index[i];
    }
  }
  std::stable_sort(misplaced.begin(), misplaced.end(), less);
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

}  // namespace rangescope::base
