// Which side of the '@' is the domain: ncu's expressions have it first (LLM@step/), nsys's captures last (step@LLM).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rangescope::model {

/// nsys's name of the domain that has none.
inline constexpr std::string_view kDefaultDomainOfNsys = "default";

/// LLM, libcudf: written as domains are, and ranges seldom.
[[nodiscard]] bool looks_like_domain(std::string_view word);
[[nodiscard]] bool has_small_letters(std::string_view word);

/// An expression that is in nsys's order, in ncu's: `step@LLM` is `LLM@step`, `step@default` and `default@step` are
/// `step`. nullopt where it is in ncu's order or nobody can tell.
[[nodiscard]] std::optional<std::string> in_ncu_order(std::string_view written);

}  // namespace rangescope::model
