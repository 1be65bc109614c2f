// Members of JSON values that may be of any kind.
#pragma once

#include <nlohmann/json.hpp>

namespace rangescope::read {

/// The member `key`; null if `json` is no object or lacks it.
[[nodiscard]] inline const nlohmann::json* json_member(const nlohmann::json& json,
                                                       const char* key) {
  if (!json.is_object())
    return nullptr;
  const auto found = json.find(key);
  if (found == json.end())
    return nullptr;
  return &*found;
}

}  // namespace rangescope::read
