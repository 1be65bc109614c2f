// The domain in a range's name, for every table of nsys stats.
//
// Since 2024 names are "domain:name", and ":name" in the default domain. Before that the colon is
// there only with a domain, so that a name with a colon may have none: `Cache::run` is a C++ name
// in the default domain. A set of names settles it when all of them have a colon and one begins
// with it. Without that a colon followed by another one or by a space, and one behind a space, is
// part of the name; any other is taken for the end of the domain, and counted.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace rangescope::read::nsys_csv {

using FullNames = std::set<std::string, std::less<>>;

/// True where each name has its domain in front: all have a colon that can end one, or one that
/// begins the name.
bool every_domain_is_printed(const FullNames& names);

class Domains {
 public:
  /// Detail of the loss `domain_guessed`.
  static constexpr std::string_view kGuessed =
      "range names with a colon: these tables write domain:name, so the part before the colon was "
      "taken for the "
      "domain. Give nvtx_sum of the same file too to be certain";

  /// `full_names`: names of the same recording that are known to have their domain in front.
  Domains(std::span<const std::string_view> names, FullNames full_names);

  [[nodiscard]] std::pair<std::string_view, std::string_view> split(std::string_view name) const;

  /// Names that were split at a colon that may be part of the name.
  [[nodiscard]] std::uint64_t guessed() const { return guessed_; }

 private:
  [[nodiscard]] bool is_settled(std::string_view name) const;
  [[nodiscard]] bool has_no_domain(std::string_view name) const;

  FullNames full_names_;
  bool always_ = false;  ///< every name has its domain in front
  bool too_many_domains_ = false;
  std::uint64_t guessed_ = 0;
};

}  // namespace rangescope::read::nsys_csv
