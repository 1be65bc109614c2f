// Lookups in maps and lists with an answer for what they lack. They cost what find() and [] cost.
#pragma once

#include <cstddef>
#include <type_traits>

namespace rangescope::base {

/// A copy of the value of `key`, or `fallback`.
template <class Map, class Key>
[[nodiscard]] typename Map::mapped_type find_or(
    const Map& map, const Key& key, std::type_identity_t<typename Map::mapped_type> fallback) {
  const auto found = map.find(key);
  if (found == map.end())
    return fallback;
  return found->second;
}

/// The value of `key`; null if the map lacks it.
template <class Map, class Key>
[[nodiscard]] auto find_value(Map& map, const Key& key) -> decltype(&map.find(key)->second) {
  const auto found = map.find(key);
  if (found == map.end())
    return nullptr;
  return &found->second;
}

/// A copy of list[index], or `fallback` if the list is shorter.
template <class List>
[[nodiscard]] typename List::value_type element_or(
    const List& list, std::size_t index, std::type_identity_t<typename List::value_type> fallback) {
  if (index >= list.size())
    return fallback;
  return list[index];
}

}  // namespace rangescope::base
