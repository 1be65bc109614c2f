// The domains of ranges in tables of nsys stats.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace rangescope::read::nsys_csv {

/// The domains of the ranges of a trace table. Since 2024 names are "domain:name", ":name" in the default domain;
/// before that the colon is there only with a domain, so that a name with a colon may have none. Tables of sums of the
/// same recording always have it and settle that; without them a colon followed by another one or by a space, and one
/// behind a space, is taken for a part of the name.
class Domains {
 public:
  using FullNames = std::set<std::string, std::less<>>;
  Domains(std::span<const std::string_view> names, const FullNames& full_names);

  /// Domain ("" is the default one) and name.
  [[nodiscard]] std::pair<std::string_view, std::string_view> split(std::string_view name) const;
  /// Names that were split at a colon that may be part of the name.
  [[nodiscard]] std::uint64_t guessed() const { return guessed_; }

 private:
  [[nodiscard]] bool known(std::string_view name) const;
  [[nodiscard]] bool bare(std::string_view name) const;

  const FullNames& full_names_;
  bool always_ = false;  ///< every name has its domain in front
  bool many_ = false;    ///< too many domains to be any
  std::uint64_t guessed_ = 0;
};

}  // namespace rangescope::read::nsys_csv
