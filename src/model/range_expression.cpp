#include "model/range_expression.hpp"

#include <re2/re2.h>

#include <algorithm>

#include "base/text.hpp"
#include "model/range_syntax.hpp"

namespace rangescope::model {

using Kind = RangeExpression::Element::Kind;

/// Regular expressions of the elements (null for literals and quantifiers) and of the domain.
struct RangeExpression::Compiled {
  std::unique_ptr<re2::RE2> domain;
  std::vector<std::unique_ptr<re2::RE2>> names;
};

namespace {

std::unique_ptr<re2::RE2> compile(const std::string& pattern, std::string& error) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_encoding(re2::RE2::Options::EncodingLatin1);  // names are bytes; `.` then matches any of them
  if (base::is_utf8(pattern)) options.set_encoding(re2::RE2::Options::EncodingUTF8);
  auto compiled = std::make_unique<re2::RE2>(pattern, options);
  if (!compiled->ok()) error = compiled->error();
  return compiled;
}

bool search(const re2::RE2& pattern, std::string_view text) {
  return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), pattern);
}

base::Error refused(std::string_view text, const RangeRefusal& refusal) {
  std::string hint;
  if (!refusal.terms.empty()) {
    std::vector<std::string> forms;
    for (const NormalizedTerm& term : refusal.terms) {
      if (term.push_pop) forms.push_back("'" + *term.push_pop + "'");
      if (term.start_end) forms.push_back("'" + *term.start_end + "' (start/end)");
    }
    hint = "Write " + base::join(forms, refusal.terms.size() > 1 ? " and " : " or ");
    if (refusal.terms.size() > 1) hint += ", each as an expression of its own";
    hint += ".";
  }
  return {base::Code::kUsage, "range expression: " + refusal.reason, "'" + std::string(text) + "'", std::move(hint)};
}

}  // namespace

RangeExpression::RangeExpression() : compiled_(std::make_unique<Compiled>()) {}
RangeExpression::RangeExpression(RangeExpression&&) noexcept = default;
RangeExpression& RangeExpression::operator=(RangeExpression&&) noexcept = default;
RangeExpression::~RangeExpression() = default;

base::Result<RangeExpression> RangeExpression::parse(std::string_view text) {
  auto parsed = parse_range_syntax(text);
  if (const auto* refusal = std::get_if<RangeRefusal>(&parsed)) return tl::make_unexpected(refused(text, *refusal));
  RangeExpression expression;
  expression.text_ = std::string(text);
  expression.parts_ = std::move(std::get<Parts>(parsed));
  Parts& parts = expression.parts_;
  expression.compiled_->names.resize(parts.elements.size());
  if (!parts.regex) return expression;
  std::string error;
  if (parts.domain) expression.compiled_->domain = compile(*parts.domain, error);
  for (std::size_t i = 0; i < parts.elements.size() && error.empty(); ++i) {
    if (parts.elements[i].kind == Kind::kName) expression.compiled_->names[i] = compile(parts.elements[i].text, error);
  }
  if (!error.empty()) {
    return base::fail(base::Code::kUsage, "range expression: not a regular expression: " + error,
                      "'" + std::string(text) + "'",
                      "Check the brackets; a character class at the very start or end needs a slash: 'regex:/[AB]/'.");
  }
  return expression;
}

bool RangeExpression::domain_matches(std::string_view domain) const {
  if (!parts_.domain) return domain.empty();
  const std::string_view shown = domain.empty() ? kDefaultDomain : domain;
  return compiled_->domain ? search(*compiled_->domain, shown) : *parts_.domain == shown;
}

bool RangeExpression::name_matches(std::size_t element, std::string_view name) const {
  const auto& pattern = compiled_->names[element];
  return pattern ? search(*pattern, name) : parts_.elements[element].text == name;
}

// Sets of stack positions, one element after the other: O(k d). A literal name stands for its topmost occurrence, as in
// ncu ('A/+' does not match the stack A, A; 'A/*/A' matches a single A); a regular expression for any that fits.
bool RangeExpression::matches_stack(std::string_view domain, std::span<const std::string_view> names) const {
  if (parts_.kind != RangeKind::kPushPop || names.empty() || !domain_matches(domain)) return false;
  const auto& elements = parts_.elements;
  const std::size_t depth = names.size();
  std::vector<char> reached(depth, 0), next(depth, 0);
  std::size_t last_name = elements.size();
  while (last_name > 0 && elements[last_name - 1].kind != Kind::kName) --last_name;
  std::size_t previous = elements.size();  // the element before, when there is one
  Kind gap = Kind::kName;                  // kName: directly
  for (std::size_t i = 0; i < last_name; ++i) {
    if (elements[i].kind != Kind::kName) {
      gap = elements[i].kind;
      continue;
    }
    const bool first = previous == elements.size();
    const bool top = parts_.top && i + 1 == last_name;
    std::fill(next.begin(), next.end(), char{0});
    bool any = false;
    std::size_t lowest = depth;  // lowest reached position of the element before
    for (std::size_t p = 0; p < depth && !first; ++p) {
      if (reached[p]) {
        lowest = p;
        break;
      }
    }
    for (std::size_t p = depth; p-- > 0;) {
      if (top && p + 1 != depth) break;
      if (first && parts_.bottom && p != 0) continue;
      if (!name_matches(i, names[p])) continue;
      bool fits = first;
      if (!first) {
        switch (gap) {
          case Kind::kName: fits = p >= 1 && reached[p - 1]; break;
          case Kind::kOne: fits = p >= 2 && reached[p - 2]; break;
          case Kind::kAny:
            fits = lowest < p || (lowest == p && !parts_.regex && elements[previous].text == elements[i].text);
            break;
        }
      }
      if (fits) next[p] = 1, any = true;
      if (!parts_.regex) break;  // the topmost occurrence only
    }
    if (!any) return false;
    reached.swap(next);
    previous = i;
    gap = Kind::kName;
  }
  if (last_name < elements.size() && elements.back().kind == Kind::kOne) return depth >= 2 && reached[depth - 2];
  return true;
}

bool RangeExpression::names_start_end(std::string_view domain, std::string_view name) const {
  return parts_.kind == RangeKind::kStartEnd && domain_matches(domain) && has_name(name);
}

bool RangeExpression::has_name(std::string_view name) const {
  for (std::size_t i = 0; i < parts_.elements.size(); ++i) {
    if (parts_.elements[i].kind == Kind::kName && name_matches(i, name)) return true;
  }
  return false;
}

bool RangeExpression::matches(const RangeState& state) const {
  if (parts_.kind == RangeKind::kPushPop) {
    return std::any_of(state.push_pop.begin(), state.push_pop.end(),
                       [&](const RangeState::Stack& stack) { return matches_stack(stack.domain, stack.names); });
  }
  for (std::size_t i = 0; i < parts_.elements.size(); ++i) {
    const bool open = std::any_of(state.start_end.begin(), state.start_end.end(), [&](const RangeState::Open& range) {
      return domain_matches(range.domain) && name_matches(i, range.name);
    });
    if (!open) return false;
  }
  return true;
}

base::Result<std::vector<RangeExpression>> parse_expressions(std::span<const std::string> texts) {
  std::vector<RangeExpression> parsed;
  for (const std::string& text : texts) {
    auto expression = RangeExpression::parse(text);
    if (!expression) return base::fail(std::move(expression));
    parsed.push_back(std::move(*expression));
  }
  return parsed;
}

}  // namespace rangescope::model
