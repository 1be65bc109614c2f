// The domain before or behind the '@': ncu's expressions have it first (LLM@step/), nsys's captures
// last (step@LLM).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rangescope::model {

/// nsys's name of the domain that has none.
inline constexpr std::string_view kDefaultDomainOfNsys = "default";

/// LLM, libcudf: names of domains look like that, those of ranges rarely do.
[[nodiscard]] bool looks_like_domain(std::string_view word);
[[nodiscard]] bool has_small_letters(std::string_view word);

/// An expression that is in nsys's order, in ncu's: `step@LLM` is `LLM@step`; `step@default` and
/// `default@step` are `step`. nullopt where it is in ncu's order, or may be in either.
[[nodiscard]] std::optional<std::string> in_ncu_order(std::string_view written);

}  // namespace rangescope::model
