#include "model/range_expression.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "model/range_syntax.hpp"

namespace rangescope::model {

using Kind = RangeExpression::Element::Kind;

namespace {

base::Error refused(std::string_view text, const RangeRefusal& refusal) {
  std::string hint;
  if (!refusal.terms.empty()) {
    std::vector<std::string> forms;
    for (const NormalizedTerm& term : refusal.terms) {
      if (term.push_pop)
        forms.push_back("'" + *term.push_pop + "'");
      if (term.start_end)
        forms.push_back("'" + *term.start_end + "' (start/end)");
    }
    hint = "Write " + base::join(forms, refusal.terms.size() > 1 ? " and " : " or ");
    if (refusal.terms.size() > 1)
      hint += ", each as a separate expression";
    hint += ".";
  }
  return {base::Code::kUsage,
          "range expression: " + refusal.reason,
          "'" + std::string(text) + "'",
          std::move(hint)};
}

}  // namespace

base::Result<RangeExpression> RangeExpression::parse(std::string_view text) {
  auto parsed = parse_range_syntax(text);
  if (const auto* refusal = std::get_if<RangeRefusal>(&parsed))
    return tl::make_unexpected(refused(text, *refusal));
  RangeExpression expression;
  expression.text_ = std::string(text);
  expression.parts_ = std::move(std::get<Parts>(parsed));
  Parts& parts = expression.parts_;
  expression.names_.resize(parts.elements.size());
  if (!parts.regex)
    return expression;
  const auto compile = [&](const std::string& pattern,
                           std::optional<NameRegex>& into) -> base::Result<void> {
    auto regex = NameRegex::parse(pattern);
    if (!regex)
      return base::fail(base::Code::kUsage,
                        "range expression: not a regular expression: " + regex.error().what,
                        "'" + std::string(text) + "'",
                        "Check the brackets; a character class at the very start or end needs a "
                        "slash: 'regex:/[AB]/'.");
    into = std::move(*regex);
    return {};
  };
  if (parts.domain)
    TRY(compile(*parts.domain, expression.domain_));
  for (std::size_t i = 0; i < parts.elements.size(); ++i) {
    if (parts.elements[i].kind == Kind::kName)
      TRY(compile(parts.elements[i].text, expression.names_[i]));
  }
  return expression;
}

bool RangeExpression::domain_matches(std::string_view domain) const {
  if (!parts_.domain)
    return domain.empty();
  const std::string_view shown = domain.empty() ? kDefaultDomain : domain;
  return domain_ ? domain_->found_in(shown) : *parts_.domain == shown;
}

bool RangeExpression::name_matches(std::size_t element, std::string_view name) const {
  const auto& pattern = names_[element];
  return pattern ? pattern->found_in(name) : parts_.elements[element].text == name;
}

bool RangeExpression::matches_stack(std::string_view domain,
                                    std::span<const std::string_view> names) const {
  if (parts_.kind != RangeKind::kPushPop || names.empty() || !domain_matches(domain))
    return false;
  const auto& elements = parts_.elements;
  return wire::stack_matches(
      {elements.size(), parts_.bottom, parts_.top, parts_.regex},
      names.size(),
      [&](std::size_t i) { return elements[i].kind; },
      [&](std::size_t i, std::size_t j) { return elements[i].text == elements[j].text; },
      [&](std::size_t i, std::size_t position) { return name_matches(i, names[position]); });
}

bool RangeExpression::names_region(std::string_view domain,
                                   std::span<const std::string_view> path,
                                   RangeKind kind) const {
  if (path.empty())
    return false;
  return kind == RangeKind::kStartEnd ? names_start_end(domain, path.back())
                                      : matches_stack(domain, path);
}

bool RangeExpression::names_itself(std::string_view domain,
                                   std::span<const std::string_view> path,
                                   RangeKind kind) const {
  if (kind == RangeKind::kStartEnd)
    return names_region(domain, path, kind);
  return wire::begins_to_match(
      path.size(), [&](std::size_t depth) { return matches_stack(domain, path.first(depth)); });
}

bool RangeExpression::names_start_end(std::string_view domain, std::string_view name) const {
  return parts_.kind == RangeKind::kStartEnd && domain_matches(domain) && has_name(name);
}

bool RangeExpression::has_name(std::string_view name) const {
  for (std::size_t i = 0; i < parts_.elements.size(); ++i) {
    if (parts_.elements[i].kind == Kind::kName && name_matches(i, name))
      return true;
  }
  return false;
}

bool RangeExpression::matches(const RangeState& state) const {
  if (parts_.kind == RangeKind::kPushPop) {
    return std::any_of(
        state.push_pop.begin(), state.push_pop.end(), [&](const RangeState::Stack& stack) {
          return matches_stack(stack.domain, stack.names);
        });
  }
  for (std::size_t i = 0; i < parts_.elements.size(); ++i) {
    const bool open = std::any_of(
        state.start_end.begin(), state.start_end.end(), [&](const RangeState::Open& range) {
          return domain_matches(range.domain) && name_matches(i, range.name);
        });
    if (!open)
      return false;
  }
  return true;
}

}  // namespace rangescope::model
