// The table of keys (keys.tsv).
#include "base/embedded.hpp"
#include "config/schema.hpp"

RANGESCOPE_EMBED(keys, RANGESCOPE_TSV);

namespace rangescope::config {
namespace {

std::vector<Key> read_keys() {
  std::vector<Key> out;
  for (const auto& [path, type, limits, flag, trust, about] : base::rows<6>(rangescope_keys)) {
    Key& key = out.emplace_back(Key{path, KeyType::kBool, about, flag});
    while (key.type != KeyType::kAny && type_name(key.type) != type)
      key.type = static_cast<KeyType>(static_cast<int>(key.type) + 1);
    key.free = trust == "free";
    const auto dots = limits.find("..");
    if (key.type == KeyType::kDuration && dots != std::string_view::npos)
      key.min = static_cast<double>(parse_duration(limits.substr(0, dots)).value_or(0));
    if (key.type != KeyType::kInt) {
      key.allowed = limits;
      continue;
    }
    if (dots == std::string_view::npos)
      continue;
    key.min = base::to_double(limits.substr(0, dots)).value_or(key.min);
    key.max = base::to_double(limits.substr(dots + 2)).value_or(key.max);
  }
  return out;
}

}  // namespace

std::span<const Key> keys() {
  static const std::vector<Key> table = read_keys();
  return table;
}

}  // namespace rangescope::config
