#include "cli/starter.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/text.hpp"
#include "model/range_expression.hpp"

namespace rangescope::cli {
namespace {

using doctor::SeenRange;

constexpr std::size_t kMostIncludes = 10;
constexpr std::size_t kManyAlike = 4;  // names that differ in digits only, from here on one pattern

std::string without_digits(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (c < '0' || c > '9')
      out += c;
    else if (out.empty() || out.back() != '0')
      out += '0';
  }
  return out;
}

bool writable(const SeenRange& range) {
  return std::all_of(range.path.begin(), range.path.end(), [](const std::string& name) {
    return !name.empty() && base::printable(name) == name;
  });
}

bool below(const SeenRange& child, const SeenRange& parent) {
  return child.kind == parent.kind && child.domain == parent.domain &&
         child.path.size() == parent.path.size() + 1 &&
         std::equal(parent.path.begin(), parent.path.end(), child.path.begin());
}

/// Ranges that differ in numbers only have one key.
std::pair<std::string, std::string> family(const SeenRange& range) {
  std::string domain_and_kind = range.domain;
  if (range.kind == model::RangeKind::kPushPop)
    domain_and_kind += '/';
  return {std::move(domain_and_kind), without_digits(range.path.back())};
}

/// Launches, or in a program without any the time.
std::uint64_t work_of(const SeenRange& range, const doctor::ProgramFacts& facts) {
  const bool has_gpu_work = facts.kernels + facts.graph_launches > 0;
  if (has_gpu_work)
    return range.kernels + range.graph_launches;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(range.total_ns, 0));
}

/// Outermost ranges with work; instead of a single one around everything, those inside it.
std::vector<const SeenRange*> choose(const doctor::ProgramFacts& facts) {
  const auto work = [&](const SeenRange& range) { return work_of(range, facts); };
  std::vector<const SeenRange*> chosen;
  for (const SeenRange& range : facts.ranges) {
    const bool has_ended = range.occurrences > range.unclosed;
    if (range.path.size() == 1 && has_ended && work(range) > 0 && writable(range))
      chosen.push_back(&range);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const auto members = std::count_if(chosen.begin(), chosen.end(), [&](const SeenRange* other) {
        return family(*other) == family(*chosen[i]);
      });
      if (chosen[i]->occurrences != 1 || members >= static_cast<std::ptrdiff_t>(kManyAlike))
        continue;
      std::vector<const SeenRange*> inside;
      std::uint64_t sum = 0;
      for (const SeenRange& range : facts.ranges)
        if (below(range, *chosen[i]) && work(range) > 0 && writable(range)) {
          inside.push_back(&range);
          sum += work(range);
        }
      if (inside.empty() || sum * 10 < work(*chosen[i]) * 9)
        continue;
      chosen.erase(chosen.begin() + static_cast<std::ptrdiff_t>(i));
      chosen.insert(chosen.end(), inside.begin(), inside.end());
      changed = true;
      break;
    }
  }
  return chosen;
}

/// One expression for all ranges of the family: "regex:^layer [0-9]+$/".
std::string family_expression(const SeenRange& member) {
  const std::string name = model::escape_regex(without_digits(member.path.back()));
  std::string expression = "regex:";
  if (!member.domain.empty())
    expression += "^" + model::escape_regex(member.domain) + "$@";
  expression += "^" + base::replace_all(name, "0", "[0-9]+") + "$";
  if (member.kind == model::RangeKind::kPushPop)
    expression += '/';
  return expression;
}

}  // namespace

std::vector<StarterRange> ranges_worth_measuring(const doctor::ProgramFacts& facts) {
  std::vector<const SeenRange*> chosen = choose(facts);
  std::map<std::pair<std::string, std::string>, std::size_t> family_sizes;
  for (const SeenRange* range : chosen)
    ++family_sizes[family(*range)];
  std::vector<StarterRange> includes;
  std::map<std::pair<std::string, std::string>, std::size_t> include_of_family;
  for (const SeenRange* range : chosen) {
    const bool is_pattern = family_sizes[family(*range)] >= kManyAlike;
    std::size_t index = includes.size();
    if (is_pattern)
      index = include_of_family.try_emplace(family(*range), index).first->second;
    if (index == includes.size()) {
      StarterRange& include = includes.emplace_back();
      if (is_pattern)
        include.expression = family_expression(*range);
      else
        include.expression = model::expression_of(range->domain, range->path, range->kind);
    }
    includes[index].work += work_of(*range, facts);
    includes[index].occurrences += range->occurrences - range->unclosed;
    includes[index].kernels += range->kernels;
    includes[index].total_ns += range->total_ns;
  }
  std::ranges::stable_sort(includes, std::ranges::greater(), &StarterRange::work);
  if (includes.size() > kMostIncludes)
    includes.resize(kMostIncludes);
  return includes;
}

}  // namespace rangescope::cli
