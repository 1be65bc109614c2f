#include "model/selection.hpp"

#include <algorithm>

namespace rangescope::model {
namespace {

template <class Test>
bool any_form(const RangeTerm& term, Test test) {
  return std::any_of(term.forms.begin(), term.forms.end(), test);
}

base::Result<std::vector<KernelPattern>> parse_patterns(const std::vector<std::string>& texts) {
  std::vector<KernelPattern> patterns;
  for (const std::string& text : texts) {
    auto pattern = TRY(KernelPattern::parse(text));
    patterns.push_back(std::move(pattern));
  }
  return patterns;
}

}  // namespace

bool RangeTerm::names_region(std::string_view domain,
                             std::span<const std::string_view> path,
                             RangeKind kind) const {
  return any_form(
      *this, [&](const RangeExpression& form) { return form.names_region(domain, path, kind); });
}

bool RangeTerm::names_itself(std::string_view domain,
                             std::span<const std::string_view> path,
                             RangeKind kind) const {
  return any_form(
      *this, [&](const RangeExpression& form) { return form.names_itself(domain, path, kind); });
}

bool RangeTerm::chooses(const RangeState& state) const {
  return any_form(*this, [&](const RangeExpression& form) {
    if (form.parts().kind == RangeKind::kPushPop)
      return form.matches(state);
    return std::any_of(state.start_end.begin(), state.start_end.end(), [&](const auto& open) {
      return form.names_start_end(open.domain, open.name);
    });
  });
}

base::Result<std::vector<RangeTerm>> parse_terms(std::string_view written,
                                                 std::vector<std::string>* notes) {
  auto normalized = TRY(normalize(written));
  std::vector<RangeTerm> terms;
  for (NormalizedTerm& normal : normalized.terms) {
    RangeTerm& term = terms.emplace_back();
    term.written = std::move(normal.written);
    for (const auto& form : {normal.push_pop, normal.start_end}) {
      if (!form)
        continue;
      auto parsed = TRY(RangeExpression::parse(*form));
      term.forms.push_back(std::move(parsed));
    }
  }
  if (notes != nullptr)
    notes->insert(notes->end(), normalized.notes.begin(), normalized.notes.end());
  return terms;
}

std::vector<std::string> expressions_of(std::span<const RangeTerm> terms) {
  std::vector<std::string> texts;
  for (const RangeTerm& term : terms) {
    for (const RangeExpression& form : term.forms) {
      if (std::find(texts.begin(), texts.end(), form.text()) == texts.end())
        texts.push_back(form.text());
    }
  }
  return texts;
}

std::vector<std::string> written_of(std::span<const RangeTerm> terms) {
  std::vector<std::string> texts;
  for (const RangeTerm& term : terms)
    texts.push_back(term.written);
  return texts;
}

base::Result<RangeSelection> RangeSelection::parse(const std::vector<std::string>& include,
                                                   const std::vector<std::string>& exclude) {
  RangeSelection selection;
  for (auto& [texts, terms] :
       {std::pair{&include, &selection.include}, {&exclude, &selection.exclude}}) {
    for (const std::string& text : *texts) {
      auto parsed = TRY(parse_terms(text, &selection.notes));
      std::ranges::move(parsed, std::back_inserter(*terms));
    }
  }
  return selection;
}

bool RangeSelection::chooses(std::string_view domain,
                             std::span<const std::string_view> path,
                             RangeKind kind) const {
  const auto named = [&](const RangeTerm& term) { return term.names_region(domain, path, kind); };
  return (include.empty() || std::any_of(include.begin(), include.end(), named)) &&
         std::none_of(exclude.begin(), exclude.end(), named);
}

std::string kernel_pattern_without_quotes(std::string_view written) {
  std::string_view prefix, name = written;
  if (written.starts_with(kRegexPrefix)) {
    prefix = kRegexPrefix;
    name = written.substr(kRegexPrefix.size());
  }
  const bool opens = name.starts_with('"') || name.starts_with('\'');
  const bool quoted = opens && name.size() > 1 && name.back() == name.front();
  if (quoted)
    name = name.substr(1, name.size() - 2);
  return std::string(prefix) + std::string(name);
}

base::Result<KernelPattern> KernelPattern::parse(std::string_view written) {
  const std::string text = kernel_pattern_without_quotes(written);
  if (text.empty())
    return base::fail(base::Code::kUsage,
                      "kernel pattern: it is empty",
                      "''",
                      "Give a kernel name or regex:PATTERN.");
  KernelPattern pattern;
  pattern.text_ = text;
  if (!text.starts_with(kRegexPrefix))
    return pattern;
  auto regex = NameRegex::parse(std::string_view(text).substr(kRegexPrefix.size()));
  if (!regex)
    return base::fail(
        base::Code::kUsage,
        "kernel pattern: not a regular expression: " + regex.error().what,
        "'" + pattern.text_ + "'",
        "Escape brackets of template names with a backslash, or give the name without regex:.");
  pattern.regex_ = std::move(*regex);
  return pattern;
}

bool KernelPattern::matches(std::string_view demangled,
                            std::string_view short_name,
                            std::string_view mangled) const {
  if (!regex_)
    return text_ == demangled || text_ == short_name || text_ == mangled;
  return (!demangled.empty() && regex_->found_in(demangled)) ||
         (!short_name.empty() && regex_->found_in(short_name));
}

base::Result<KernelSelection> KernelSelection::parse(const std::vector<std::string>& include,
                                                     const std::vector<std::string>& exclude) {
  auto chosen = TRY(parse_patterns(include));
  auto left_out = TRY(parse_patterns(exclude));
  return KernelSelection{std::move(chosen), std::move(left_out)};
}

bool KernelSelection::chooses(std::string_view demangled,
                              std::string_view short_name,
                              std::string_view mangled) const {
  const auto named = [&](const KernelPattern& pattern) {
    return pattern.matches(demangled, short_name, mangled);
  };
  return (include.empty() || std::any_of(include.begin(), include.end(), named)) &&
         std::none_of(exclude.begin(), exclude.end(), named);
}

}  // namespace rangescope::model
