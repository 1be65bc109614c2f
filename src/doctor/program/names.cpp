// Checks of what was meant against what was seen: names, domains, kinds, nesting, ends.
#include <algorithm>

#include "base/text.hpp"
#include "base/units.hpp"
#include "doctor/program/checks.hpp"

namespace rangescope::doctor {
namespace {

using model::Finding;
using model::Grade;
using model::RangeKind;

constexpr std::size_t kShown = 3;

std::string times(std::uint64_t count) {
  return base::counted(count, "time");
}

/// An expression that names this range wherever it stands in its stack.
std::string expression_for(const SeenRange& seen) {
  const std::string name = model::escape_range_name(seen.path.back());
  return (seen.domain.empty() ? "" : model::escape_range_name(seen.domain) + "@") + name +
         (seen.kind == RangeKind::kPushPop ? "/" : "");
}

std::string domain_name(const std::string& domain) {
  return domain.empty() ? "the default domain" : "domain '" + base::printable(domain) + "'";
}

std::string list(const std::vector<std::string>& items) {
  std::string text;
  for (std::size_t i = 0; i < items.size() && i < kShown; ++i)
    text += (i ? ", " : "") + base::printable(items[i]);
  if (items.size() > kShown) text += ", and " + std::to_string(items.size() - kShown) + " more";
  return text;
}

void try_with(Finding& finding, const ProgramLook& look, const std::string& expression) {
  std::vector<std::string> argv{"rangescope", "profile", "--include", expression, "--"};
  argv.insert(argv.end(), look.command.begin(), look.command.end());
  finding.commands.push_back(base::shell_quote(argv));
}

/// Why a term matched nothing, as one or more findings.
class Missing {
 public:
  Missing(const ProgramLook& look, const RangeFacts& range)
      : look_(look), facts_(look.facts), range_(range) {}

  std::vector<Finding> explain() {
    const auto& parts = range_.expression().parts();
    std::vector<std::string> names;
    for (const auto& element : parts.elements)
      if (element.kind == model::RangeExpression::Element::Kind::kName)
        names.push_back(element.text);
    if (parts.regex || names.empty()) return {unknown({})};
    std::vector<std::string> unseen;
    for (const std::string& name : names)
      if (std::none_of(facts_.ranges.begin(), facts_.ranges.end(),
                       [&](const SeenRange& seen) { return seen.path.back() == name; }))
        unseen.push_back(name);
    if (!unseen.empty()) return {unknown(unseen)};
    std::string domain = parts.domain.value_or("");
    if (domain == model::kDefaultDomain) domain.clear();
    if (parts.kind == RangeKind::kStartEnd && names.size() > 1) {
      std::vector<Finding> out;
      for (const std::string& name : names)
        for (Finding& finding : one_name(name, domain, parts.kind))
          out.push_back(std::move(finding));
      return out;
    }
    return names.size() == 1 ? one_name(names.front(), domain, parts.kind) : nested(names, domain);
  }

 private:
  Finding unknown(const std::vector<std::string>& unseen) {
    const auto near =
        nearest_expressions(facts_, unseen.empty() ? range_.term.written : unseen.front());
    std::string found = "'" + base::printable(range_.term.written) + "' names none of the " +
                        base::counted(facts_.ranges.size(), "range that was", "ranges that were") +
                        " seen";
    std::vector<std::string> all;
    for (const SeenRange& seen : facts_.ranges)
      all.push_back(seen.shown() + " (" + times(seen.occurrences) + ")");
    found += ": " + list(all);
    const bool early =
        (look_.cut_short && !look_.all_known) || (!look_.cut_short && !look_.ended.ok());
    Finding finding =
        finding_of(early ? "program.not_reached" : "program.unknown_range", Grade::kFail, found,
                   near.empty() ? "" : "Write " + base::shell_quote(near.front()));
    if (near.empty() && early && !look_.cut_short)
      finding.hint = "Fix the failure first: the range may come after it";
    if (near.empty() && !early && !facts_.ranges.empty())
      finding.hint = "Use a name that occurs, such as " +
                     base::shell_quote(expression_for(facts_.ranges.front()));
    if (!near.empty())
      try_with(finding, look_, near.front());
    else if (!facts_.ranges.empty() && !early)
      try_with(finding, look_, expression_for(facts_.ranges.front()));
    return finding;
  }

  std::vector<Finding> one_name(const std::string& name, const std::string& domain,
                                RangeKind kind) {
    std::vector<const SeenRange*> same;
    for (const SeenRange& seen : facts_.ranges)
      if (seen.path.back() == name) same.push_back(&seen);
    const auto in = [&](bool this_domain, bool this_kind) -> const SeenRange* {
      for (const SeenRange* seen : same)
        if ((seen->domain == domain) == this_domain && (seen->kind == kind) == this_kind)
          return seen;
      return nullptr;
    };
    std::vector<Finding> out;
    const SeenRange* other = nullptr;
    const std::string wanted = kind == RangeKind::kPushPop ? "push/pop" : "start/end";
    if (in(true, true)) {  // right name, kind and domain: only an anchor can be wrong
      return nested({name}, domain);
    } else if ((other = in(true, false)) != nullptr) {
      out.push_back(wrong_kind(*other, wanted));
    } else if ((other = in(false, !range_.kind_said)) != nullptr ||
               (other = in(false, true)) != nullptr) {
      out.push_back(wrong_domain(*other, domain));
    } else if ((other = in(false, false)) != nullptr) {
      out.push_back(wrong_domain(*other, domain));
      if (range_.kind_said) out.push_back(wrong_kind(*other, wanted));
    }
    return out;
  }

  /// `found`: behind the term as written.
  Finding wrong(std::string_view id, const std::string& found, const std::string& right) {
    Finding finding =
        finding_of(id, Grade::kFail, "'" + base::printable(range_.term.written) + "' " + found,
                   "Write " + base::shell_quote(right));
    try_with(finding, look_, right);
    return finding;
  }

  Finding wrong_kind(const SeenRange& seen, const std::string& wanted) {
    return wrong("program.wrong_kind",
                 "means a " + wanted + " range, and " + base::printable(seen.shown()) + " is a " +
                     (seen.kind == RangeKind::kPushPop ? "push/pop" : "start/end") + " range (" +
                     times(seen.occurrences) + ")",
                 expression_for(seen));
  }

  Finding wrong_domain(const SeenRange& seen, const std::string& domain) {
    return wrong("program.wrong_domain",
                 "means " + domain_name(domain) + ", and " + base::printable(seen.path.back()) +
                     " was seen in " + domain_name(seen.domain) + " (" + times(seen.occurrences) +
                     ")",
                 expression_for(seen));
  }

  std::vector<Finding> nested(const std::vector<std::string>& names, const std::string& domain) {
    // A path that holds all the names in this order, in this domain or in another one.
    const SeenRange* found = nullptr;
    for (const bool here : {true, false})
      for (const SeenRange& seen : facts_.ranges) {
        if (found || seen.kind != RangeKind::kPushPop || (seen.domain == domain) != here) continue;
        std::size_t next = 0;
        for (const std::string& name : seen.path)
          if (next < names.size() && name == names[next]) ++next;
        if (next == names.size() && seen.path.back() == names.back()) found = &seen;
      }
    std::string right;
    std::vector<std::string> paths;
    if (found) {
      right = model::expression_of(found->domain, found->path, found->kind);
      paths.push_back(found->shown());
    } else {
      for (const SeenRange& seen : facts_.ranges)
        if (seen.path.back() == names.back()) {
          if (right.empty()) right = model::expression_of(seen.domain, seen.path, seen.kind);
          paths.push_back(seen.shown());
        }
    }
    if (paths.empty()) return {unknown({})};
    std::vector<Finding> out;
    if (found && found->domain != domain)
      out.push_back(wrong(
          "program.wrong_domain",
          "means " + domain_name(domain) + ", and " + base::printable(found->shown()) + " was seen",
          right));
    const std::string& expression = range_.expression().text();
    const auto moved = model::RangeExpression::parse(
        (found && !found->domain.empty() ? model::escape_range_name(found->domain) + "@" : "") +
        expression.substr(expression.find('@') == std::string::npos ? 0
                                                                    : expression.find('@') + 1));
    if (found && found->domain != domain && moved) {
      const std::vector<std::string_view> path(found->path.begin(), found->path.end());
      if (moved->matches_stack(found->domain, path)) return out;  // only the domain was wrong
    }
    out.push_back(wrong("program.wrong_nesting", "was not seen; seen was " + list(paths), right));
    return out;
  }

  const ProgramLook& look_;
  const ProgramFacts& facts_;
  const RangeFacts& range_;
};

}  // namespace

std::vector<std::string> nearest_expressions(const ProgramFacts& facts, const std::string& written,
                                             std::size_t most) {
  std::string name =
      written.substr(written.rfind('@') == std::string::npos ? 0 : written.rfind('@') + 1);
  while (!name.empty() && (name.back() == '/' || name.back() == '*')) name.pop_back();
  std::vector<std::string> known;
  for (const SeenRange& seen : facts.ranges) known.push_back(seen.path.back());
  std::vector<std::string> out;
  const auto add = [&](const std::string& near) {
    for (const SeenRange& seen : facts.ranges)
      if (seen.path.back() == near && out.size() < most)
        if (const std::string one = expression_for(seen);
            std::find(out.begin(), out.end(), one) == out.end())
          out.push_back(one);
  };
  for (const std::string& near : base::nearest(name, known, most)) add(near);
  // Not a slip of a letter: part of a longer name, or the other way round.
  if (out.empty() && name.size() >= 3)
    for (const std::string& one : known)
      if (base::lower(one).find(base::lower(name)) != std::string::npos ||
          (one.size() >= 3 && base::lower(name).find(base::lower(one)) != std::string::npos))
        add(one);
  return out;
}

Findings check_names(const ProgramLook& look) {
  if (look.facts.ranges.empty()) return {};
  std::vector<Finding> out;
  std::string seen;
  for (const RangeFacts& range : look.facts.meant) {
    if (range.seen.empty()) {
      for (Finding& finding : Missing(look, range).explain()) out.push_back(std::move(finding));
    } else {
      seen += (seen.empty() ? "" : ", ") + base::printable(range.term.written) + " (" +
              times(range.occurrences) + ")";
    }
  }
  if (out.empty() && !seen.empty()) out.push_back(well(seen));
  return out;
}

Findings check_ends(const ProgramLook& look) {
  if (look.cut_short || look.ended.signal) return {};  // then open ranges are the end's doing
  std::vector<Finding> out;
  const auto check = [&](const std::string& name, std::uint64_t unclosed,
                         std::uint64_t occurrences) {
    if (unclosed == 0) return;
    const bool none = unclosed == occurrences;
    const std::string found = base::printable(name) + ": " + std::to_string(unclosed) + " of " +
                              base::counted(occurrences, "instance") +
                              " still open when the program ended";
    if (look.facts.unbalanced_pops > 0)
      out.push_back(finding_of("program.popped_elsewhere", none ? Grade::kFail : Grade::kWarn,
                               found + ", and " + base::counted(look.facts.unbalanced_pops, "pop") +
                                   " found nothing to close"));
    else
      out.push_back(
          finding_of("program.range_never_ends", none ? Grade::kFail : Grade::kWarn, found));
  };
  for (const RangeFacts& range : look.facts.meant)
    check(range.term.written, range.unclosed, range.occurrences);
  if (look.facts.meant.empty())
    for (const SeenRange& seen : look.facts.ranges)
      check(seen.shown(), seen.unclosed, seen.occurrences);
  return out;
}

}  // namespace rangescope::doctor
