#include "read/nsys/csv/names.hpp"

#include <algorithm>

namespace rangescope::read::nsys_csv {

Domains::Domains(std::span<const std::string_view> names, const FullNames& full_names) : full_names_(full_names) {
  const auto has_colon = [](std::string_view name) { return name.find(':') != std::string_view::npos; };
  const auto begins = [](std::string_view name) { return name.starts_with(':'); };
  always_ = std::all_of(names.begin(), names.end(), has_colon) && std::any_of(names.begin(), names.end(), begins);
  if (always_) return;
  std::set<std::string_view> domains;
  for (const std::string_view name : names) {
    if (known(name) || bare(name)) continue;
    domains.insert(name.substr(0, name.find(':')));
    ++guessed_;
  }
  constexpr std::size_t kMostDomains = 64;  // "step17:forward" is a name
  many_ = domains.size() > kMostDomains;
  if (many_) guessed_ = 0;
}

bool Domains::known(std::string_view name) const {
  return full_names_.contains(name) || full_names_.contains(':' + std::string(name));
}

bool Domains::bare(std::string_view name) const {
  if (full_names_.contains(':' + std::string(name))) return true;
  const std::size_t colon = name.find(':');
  if (colon == std::string_view::npos) return true;
  if (full_names_.contains(name)) return false;
  if (many_) return true;
  const char next = colon + 1 < name.size() ? name[colon + 1] : ' ';
  return next == ':' || next == ' ' || name.substr(0, colon).find(' ') != std::string_view::npos;
}

std::pair<std::string_view, std::string_view> Domains::split(std::string_view name) const {
  if (!always_ && bare(name)) return {{}, name};
  const std::size_t colon = name.find(':');
  return {name.substr(0, colon), name.substr(colon + 1)};
}

}  // namespace rangescope::read::nsys_csv
