#include "read/nsys/csv/domains.hpp"

#include <algorithm>

namespace rangescope::read::nsys_csv {
namespace {

/// "Cache::run", "step: forward", "load batch:3": the first colon is part of the name.
bool colon_is_in_name(std::string_view name) {
  const std::size_t colon = name.find(':');
  const char next = colon + 1 < name.size() ? name[colon + 1] : ' ';
  return next == ':' || next == ' ' || name.substr(0, colon).find(' ') != std::string_view::npos;
}

bool has_colon(std::string_view name) {
  return name.find(':') != std::string_view::npos;
}

bool begins_with_colon(std::string_view name) {
  return name.starts_with(':');
}

}  // namespace

bool every_domain_is_printed(const FullNames& names) {
  if (!std::ranges::all_of(names, has_colon))
    return false;
  if (std::ranges::any_of(names, begins_with_colon))
    return true;
  return std::ranges::none_of(names, colon_is_in_name);
}

Domains::Domains(std::span<const std::string_view> names, FullNames full_names)
    : full_names_(std::move(full_names)) {
  always_ = std::ranges::all_of(names, has_colon) && std::ranges::any_of(names, begins_with_colon);
  if (always_)
    return;
  std::set<std::string_view> domains;
  for (const std::string_view name : names) {
    if (is_settled(name) || has_no_domain(name))
      continue;
    domains.insert(name.substr(0, name.find(':')));
    ++guessed_;
  }
  constexpr std::size_t kMostDomains = 64;  // "step17:forward" is a name
  too_many_domains_ = domains.size() > kMostDomains;
  if (too_many_domains_)
    guessed_ = 0;
}

bool Domains::is_settled(std::string_view name) const {
  return full_names_.contains(name) || full_names_.contains(':' + std::string(name));
}

bool Domains::has_no_domain(std::string_view name) const {
  if (full_names_.contains(':' + std::string(name)))
    return true;
  if (!has_colon(name))
    return true;
  if (full_names_.contains(name))
    return false;
  return too_many_domains_ || colon_is_in_name(name);
}

std::pair<std::string_view, std::string_view> Domains::split(std::string_view name) const {
  if (!always_ && has_no_domain(name))
    return {{}, name};
  const std::size_t colon = name.find(':');
  return {name.substr(0, colon), name.substr(colon + 1)};
}

}  // namespace rangescope::read::nsys_csv
