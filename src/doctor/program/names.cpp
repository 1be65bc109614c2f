// Checks of what was meant against what was seen: names, domains, kinds, nesting, ends.
#include <fmt/format.h>

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

/// "domain@name/": an expression that matches this range below any other.
std::string expression_for(const SeenRange& range) {
  std::string expression;
  if (!range.domain.empty())
    expression = model::escape_range_name(range.domain) + "@";
  expression += model::escape_range_name(range.path.back());
  if (range.kind == RangeKind::kPushPop)
    expression += "/";
  return expression;
}

/// The expression behind its first "domain@", or all of it.
std::string without_domain(const std::string& expression) {
  return expression.substr(expression.find('@') + 1);
}

std::string domain_name(const std::string& domain) {
  if (domain.empty())
    return "the default domain";
  return "domain '" + base::printable(domain) + "'";
}

std::string list(const std::vector<std::string>& items) {
  std::vector<std::string> shown;
  for (const std::string& item : items)
    if (shown.size() < kShown)
      shown.push_back(base::printable(item));
  std::string text = base::join(shown, ", ");
  if (items.size() > kShown)
    text += fmt::format(", and {} more", items.size() - kShown);
  return text;
}

void try_with(Finding& finding, const ProgramLook& look, const std::string& expression) {
  std::vector<std::string> argv{"rangescope", "profile", "--include", expression, "--"};
  argv.insert(argv.end(), look.command.begin(), look.command.end());
  finding.commands.push_back(base::shell_quote(argv));
}

/// Regardless of case; names below three letters are parts of too many others.
bool is_part_of(const std::string& name, const std::string& longer) {
  return name.size() >= 3 && base::lower(longer).find(base::lower(name)) != std::string::npos;
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
    if (parts.regex || names.empty())
      return {unknown({})};
    std::vector<std::string> unseen;
    for (const std::string& name : names)
      if (std::none_of(facts_.ranges.begin(), facts_.ranges.end(), [&](const SeenRange& range) {
            return range.path.back() == name;
          }))
        unseen.push_back(name);
    if (!unseen.empty())
      return {unknown(unseen)};
    std::string domain = parts.domain.value_or("");
    if (domain == model::kDefaultDomain)
      domain.clear();
    if (parts.kind == RangeKind::kStartEnd && names.size() > 1) {
      std::vector<Finding> out;
      for (const std::string& name : names)
        for (Finding& finding : one_name(name, domain, parts.kind))
          out.push_back(std::move(finding));
      return out;
    }
    if (names.size() == 1)
      return one_name(names.front(), domain, parts.kind);
    return nested(names, domain);
  }

 private:
  /// The program may have the range, but ended before it came there.
  [[nodiscard]] bool ended_early() const {
    if (look_.cut_short)
      return !look_.all_known;
    return !look_.ended.ok();
  }

  /// "'decode' names none of the 3 ranges that were seen: ..."
  [[nodiscard]] std::string unknown_text() const {
    std::vector<std::string> ranges;
    for (const SeenRange& range : facts_.ranges)
      ranges.push_back(fmt::format("{} ({})", range.shown(), times(range.occurrences)));
    return fmt::format("'{}' names none of the {} seen: {}",
                       base::printable(range_.term.written),
                       base::counted(ranges.size(), "range that was", "ranges that were"),
                       list(ranges));
  }

  Finding unknown(const std::vector<std::string>& unseen) {
    std::string written = range_.term.written;
    if (!unseen.empty())
      written = unseen.front();
    const auto nearest = nearest_expressions(facts_, written);
    const bool is_early = ended_early();
    const char* id = is_early ? "program.not_reached" : "program.unknown_range";
    Finding finding = finding_of(id, Grade::kFail, unknown_text());
    if (!nearest.empty()) {
      finding.hint = "Write " + base::shell_quote(nearest.front());
      try_with(finding, look_, nearest.front());
    } else if (is_early && !look_.cut_short) {
      finding.hint = "Fix the failure first: the range may come after it";
    } else if (!is_early && !facts_.ranges.empty()) {
      const std::string most_frequent = expression_for(facts_.ranges.front());
      finding.hint = "Use a name that occurs, such as " + base::shell_quote(most_frequent);
      try_with(finding, look_, most_frequent);
    }
    return finding;
  }

  /// The range of this name that differs least from what was meant, and in what.
  std::vector<Finding> one_name(const std::string& name,
                                const std::string& domain,
                                RangeKind kind) {
    std::vector<const SeenRange*> namesakes;
    for (const SeenRange& range : facts_.ranges)
      if (range.path.back() == name)
        namesakes.push_back(&range);
    const auto find = [&](bool in_domain, bool of_kind) -> const SeenRange* {
      for (const SeenRange* range : namesakes)
        if ((range->domain == domain) == in_domain && (range->kind == kind) == of_kind)
          return range;
      return nullptr;
    };
    if (find(true, true) != nullptr)
      return nested({name}, domain);  // an anchor must be wrong
    if (const SeenRange* range = find(true, false))
      return {wrong_kind(*range, kind)};
    const SeenRange* elsewhere = find(false, !range_.kind_said);
    if (elsewhere == nullptr)
      elsewhere = find(false, true);
    if (elsewhere != nullptr)
      return {wrong_domain(*elsewhere, domain)};
    elsewhere = find(false, false);
    if (elsewhere == nullptr)
      return {};
    std::vector<Finding> out{wrong_domain(*elsewhere, domain)};
    if (range_.kind_said)
      out.push_back(wrong_kind(*elsewhere, kind));
    return out;
  }

  /// `found`: behind the term as written.
  Finding wrong(std::string_view id, const std::string& found, const std::string& right) {
    Finding finding = finding_of(id,
                                 Grade::kFail,
                                 "'" + base::printable(range_.term.written) + "' " + found,
                                 "Write " + base::shell_quote(right));
    try_with(finding, look_, right);
    return finding;
  }

  Finding wrong_kind(const SeenRange& range, RangeKind meant) {
    return wrong("program.wrong_kind",
                 fmt::format("means a {} range, and {} is a {} range ({})",
                             model::range_kind_text(meant),
                             base::printable(range.shown()),
                             model::range_kind_text(range.kind),
                             times(range.occurrences)),
                 expression_for(range));
  }

  Finding wrong_domain(const SeenRange& range, const std::string& domain) {
    return wrong("program.wrong_domain",
                 fmt::format("means {}, and {} was seen in {} ({})",
                             domain_name(domain),
                             base::printable(range.path.back()),
                             domain_name(range.domain),
                             times(range.occurrences)),
                 expression_for(range));
  }

  /// A path that ends in the last of the names and has the others above it, in their order: in the
  /// domain that was meant, else in another one.
  [[nodiscard]] const SeenRange* with_all_names(const std::vector<std::string>& names,
                                                const std::string& domain) const {
    for (const bool in_domain : {true, false})
      for (const SeenRange& range : facts_.ranges) {
        if (range.kind != RangeKind::kPushPop || (range.domain == domain) != in_domain)
          continue;
        std::size_t next = 0;
        for (const std::string& name : range.path)
          if (next < names.size() && name == names[next])
            ++next;
        if (next == names.size() && range.path.back() == names.back())
          return &range;
      }
    return nullptr;
  }

  /// The expression would match the range if it named its domain.
  [[nodiscard]] bool matches_in_its_domain(const SeenRange& range) const {
    std::string expression;
    if (!range.domain.empty())
      expression = model::escape_range_name(range.domain) + "@";
    expression += without_domain(range_.expression().text());
    const auto moved = model::RangeExpression::parse(expression);
    const std::vector<std::string_view> path(range.path.begin(), range.path.end());
    return moved && moved->matches_stack(range.domain, path);
  }

  std::vector<Finding> nested(const std::vector<std::string>& names, const std::string& domain) {
    std::vector<Finding> out;
    std::string right;
    std::vector<std::string> paths;
    if (const SeenRange* range = with_all_names(names, domain)) {
      right = model::expression_of(range->domain, range->path, range->kind);
      paths.push_back(range->shown());
      if (range->domain != domain) {
        out.push_back(wrong(
            "program.wrong_domain",
            fmt::format(
                "means {}, and {} was seen", domain_name(domain), base::printable(range->shown())),
            right));
        if (matches_in_its_domain(*range))
          return out;  // only the domain was wrong
      }
    } else {
      for (const SeenRange& namesake : facts_.ranges) {
        if (namesake.path.back() != names.back())
          continue;
        if (right.empty())
          right = model::expression_of(namesake.domain, namesake.path, namesake.kind);
        paths.push_back(namesake.shown());
      }
    }
    if (paths.empty())
      return {unknown({})};
    out.push_back(wrong("program.wrong_nesting", "was not seen; seen was " + list(paths), right));
    return out;
  }

  const ProgramLook& look_;
  const ProgramFacts& facts_;
  const RangeFacts& range_;
};

}  // namespace

std::vector<std::string> nearest_expressions(const ProgramFacts& facts,
                                             const std::string& written,
                                             std::size_t limit) {
  std::string name = written.substr(written.rfind('@') + 1);
  while (!name.empty() && (name.back() == '/' || name.back() == '*'))
    name.pop_back();
  std::vector<std::string> names;
  for (const SeenRange& range : facts.ranges)
    names.push_back(range.path.back());
  std::vector<std::string> out;
  const auto add_ranges_called = [&](const std::string& found) {
    for (const SeenRange& range : facts.ranges) {
      if (range.path.back() != found || out.size() >= limit)
        continue;
      const std::string expression = expression_for(range);
      if (std::find(out.begin(), out.end(), expression) == out.end())
        out.push_back(expression);
    }
  };
  for (const std::string& found : base::nearest(name, names, limit))
    add_ranges_called(found);
  if (!out.empty())
    return out;
  // Not a slip of a letter: part of a longer name, or the other way round.
  for (const std::string& candidate : names)
    if (is_part_of(name, candidate) || is_part_of(candidate, name))
      add_ranges_called(candidate);
  return out;
}

Findings check_names(const ProgramLook& look) {
  if (look.facts.ranges.empty())
    return {};
  std::vector<Finding> out;
  std::vector<std::string> found;
  for (const RangeFacts& range : look.facts.meant) {
    if (range.seen.empty()) {
      for (Finding& finding : Missing(look, range).explain())
        out.push_back(std::move(finding));
    } else {
      found.push_back(
          fmt::format("{} ({})", base::printable(range.term.written), times(range.occurrences)));
    }
  }
  if (out.empty() && !found.empty())
    out.push_back(well(base::join(found, ", ")));
  return out;
}

Findings check_ends(const ProgramLook& look) {
  if (look.cut_short || look.ended.signal)
    return {};  // then open ranges are the end's doing
  std::vector<Finding> out;
  const auto check =
      [&](const std::string& name, std::uint64_t unclosed, std::uint64_t occurrences) {
        if (unclosed == 0)
          return;
        const Grade grade = unclosed == occurrences ? Grade::kFail : Grade::kWarn;
        const std::string found = fmt::format("{}: {} of {} still open when the program ended",
                                              base::printable(name),
                                              unclosed,
                                              base::counted(occurrences, "instance"));
        if (look.facts.unbalanced_pops > 0)
          out.push_back(finding_of("program.popped_elsewhere",
                                   grade,
                                   fmt::format("{}, and {} found nothing to close",
                                               found,
                                               base::counted(look.facts.unbalanced_pops, "pop"))));
        else
          out.push_back(finding_of("program.range_never_ends", grade, found));
      };
  for (const RangeFacts& range : look.facts.meant)
    check(range.term.written, range.unclosed, range.occurrences);
  if (look.facts.meant.empty())
    for (const SeenRange& range : look.facts.ranges)
      check(range.shown(), range.unclosed, range.occurrences);
  return out;
}

}  // namespace rangescope::doctor
