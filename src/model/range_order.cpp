#include "model/range_order.hpp"

#include <algorithm>

#include "model/domain.hpp"
#include "model/range_expression.hpp"

namespace rangescope::model {

bool looks_like_domain(std::string_view word) {
  if (is_library_domain(word))
    return true;
  return word.size() > 1 && std::all_of(word.begin(), word.end(), [](char c) {
           return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
         });
}

bool has_small_letters(std::string_view word) {
  return std::any_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

std::optional<std::string> in_ncu_order(std::string_view written) {
  const std::string default_first = std::string(kDefaultDomainOfNsys) + "@";
  if (written.starts_with(default_first) && written.size() > default_first.size())
    return std::string(written.substr(default_first.size()));

  const auto expression = RangeExpression::parse(written);
  if (!expression)
    return std::nullopt;
  const RangeExpression::Parts& parts = expression->parts();
  if (parts.regex || !parts.domain || parts.elements.size() != 1)
    return std::nullopt;
  std::string range = *parts.domain;
  const std::string& domain = parts.elements[0].text;
  const bool push_pop = range.size() > 1 && range.ends_with('/');
  if (push_pop)
    range.pop_back();
  std::string ordered = escape_range_name(range) + (push_pop ? "/" : "");
  if (domain == kDefaultDomainOfNsys)
    return ordered;
  if (!push_pop && !(looks_like_domain(domain) && has_small_letters(range)))
    return std::nullopt;
  return domain + "@" + ordered;
}

}  // namespace rangescope::model
