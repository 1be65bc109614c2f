#include "analyze/counters/useful.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "analyze/tree/recording.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::analyze {
namespace {

using base::Code;
using base::Result;

constexpr std::string_view kPayload = "payload";
constexpr const char* kExample =
    "Write it as 'decode=2.1e9', 'step=6e9*payload' or "
    "'decode=transformer(params=7e9,layers=32,hidden=4096,tokens=1,context=payload)'.";
constexpr const char* kWorkExample = "Write it as 'decode=1 token' or 'step=8*payload images'.";

bool ends_in_one_of(std::string_view text, std::initializer_list<std::string_view> endings) {
  return std::any_of(
      endings.begin(), endings.end(), [&](std::string_view one) { return text.ends_with(one); });
}

// "images" -> "image", "queries" -> "query"; "GB" and "loss" stay.
std::string singular(std::string unit) {
  if (unit.size() > 3 && unit.ends_with("ies"))
    return unit.substr(0, unit.size() - 3) + "y";
  if (unit.size() > 4 && ends_in_one_of(unit, {"ches", "shes", "sses", "xes"}))
    return unit.substr(0, unit.size() - 2);
  if (unit.size() > 3 && unit.ends_with("s") && !ends_in_one_of(unit, {"ss", "us", "is"}))
    unit.pop_back();
  return unit;
}

std::string plural(const std::string& unit) {
  if (unit.back() < 'a' || unit.back() > 'z')
    return unit;  // GB, km2
  if (ends_in_one_of(unit, {"s", "x", "ch", "sh"}))
    return unit + "es";
  if (unit.back() != 'y' || unit.size() == 1)
    return unit + "s";
  const char before_y = unit[unit.size() - 2];
  const bool is_vowel = std::string_view("aeiou").find(before_y) != std::string_view::npos;
  if (is_vowel)
    return unit + "s";
  return unit.substr(0, unit.size() - 1) + "ies";
}

// "transformer(params=7e9,...)" as one formula.
Result<std::string> transformer(std::string_view arguments, const std::string& written) {
  std::map<std::string, std::string, std::less<>> given = {{"params", ""},
                                                           {"layers", "0"},
                                                           {"hidden", "0"},
                                                           {"tokens", "1"},
                                                           {"context", "0"},
                                                           {"train", "0"}};
  // Commas within parentheses belong to a formula: min(a, b).
  std::size_t item_start = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= arguments.size(); ++i) {
    if (i < arguments.size() && arguments[i] == '(')
      ++depth;
    if (i < arguments.size() && arguments[i] == ')')
      --depth;
    if (i < arguments.size() && (arguments[i] != ',' || depth > 0))
      continue;
    const std::string_view item = base::trim(arguments.substr(item_start, i - item_start));
    item_start = i + 1;
    const std::size_t equals = item.find('=');
    const std::string key(base::trim(item.substr(0, equals)));
    const auto found = given.find(key);
    if (equals == std::string_view::npos || found == given.end()) {
      std::vector<std::string> names;
      for (const auto& [name, value] : given)
        names.push_back(name);
      std::string hint = base::did_you_mean(key, names);
      if (hint.empty())
        hint = "Its arguments are " + base::join(names, ", ") + ".";
      return base::fail(Code::kUsage,
                        "transformer() has no argument '" + base::printable(item) + "'",
                        "--flops " + written,
                        std::move(hint));
    }
    found->second = std::string(base::trim(item.substr(equals + 1)));
  }
  if (given["params"].empty())
    return base::fail(Code::kUsage, "transformer() needs params", "--flops " + written, kExample);
  if (given["train"] != "0" && given["train"] != "1")
    return base::fail(Code::kUsage, "train is 0 or 1", "--flops " + written, kExample);
  int passes = 1;
  if (given["train"] == "1")
    passes = 3;  // backward takes twice as many as forward
  return fmt::format("{} * ({}) * (2 * ({}) + 4 * ({}) * ({}) * ({}))",
                     passes,
                     given["tokens"],
                     given["params"],
                     given["layers"],
                     given["hidden"],
                     given["context"]);
}

/// Where the unit begins in "8 * payload image pairs": at the first word behind a blank that no
/// operator precedes.
std::size_t unit_at(std::string_view text) {
  char before = '+';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool operand =
        std::isalnum(static_cast<unsigned char>(before)) != 0 || before == ')' || before == '.';
    const bool word =
        static_cast<unsigned char>(c) >= 0x80 || std::isalpha(static_cast<unsigned char>(c)) != 0;
    if (i > 0 && text[i - 1] == ' ' && operand && word)
      return i;
    if (c != ' ')
      before = c;
  }
  return text.size();
}

/// The unit that `formula` ends with, and the formula without it.
std::pair<std::string, std::string> split_unit(const std::string& formula) {
  const std::size_t unit = unit_at(formula);
  return {singular(formula.substr(unit)),
          std::string(base::trim(std::string_view(formula).substr(0, unit)))};
}

/// The first name in the formula that is not of the payload, or "".
std::string unknown_name(const base::Formula& formula) {
  for (const std::string& name : formula.names())
    if (name != kPayload && !name.starts_with("payload."))
      return name;
  return "";
}

/// Reads one value of --flops, --bytes, --work or --tokens: RANGES=FORMULA, with a unit for --work.
class RuleParser {
 public:
  RuleParser(const std::string& written, const std::string& option, bool of_work)
      : written_(written), option_(option), of_work_(of_work) {
    if (!of_work)
      return;
    noun_ = "work";
    example_ = kWorkExample;
  }

  Result<UsefulFlop> parse() {
    const std::size_t equals = written_.find('=');
    if (equals == std::string::npos || equals == 0)
      return refuse("no range and " + noun_ + " in '" + base::printable(written_) + "'", option_);
    const std::string_view text(written_);
    TRY(take_ranges(text.substr(0, equals)));
    formula_ = std::string(base::trim(text.substr(equals + 1)));
    if (of_work_)
      TRY(take_unit());
    else
      TRY(expand_transformer());
    TRY(take_formula());
    return std::move(rule_);
  }

 private:
  [[nodiscard]] tl::unexpected<base::Error> refuse(std::string what,
                                                   const std::string& where) const {
    return base::fail(Code::kUsage, std::move(what), where, example_);
  }
  /// The option with its value.
  [[nodiscard]] std::string place() const { return option_ + " " + written_; }

  Result<void> take_ranges(std::string_view ranges) {
    rule_.written = written_;
    rule_.where_found = ranges.starts_with('?');
    if (rule_.where_found) {
      ranges.remove_prefix(1);
      rule_.written.erase(0, 1);
    }
    rule_.terms = TRY(model::parse_terms(base::trim(ranges)));
    return {};
  }

  Result<void> take_unit() {
    if (option_ == "--tokens") {
      rule_.unit = "token";
      return {};
    }
    std::tie(rule_.unit, formula_) = split_unit(formula_);
    if (formula_.empty())
      return refuse("no count in '" + base::printable(written_) + "'", option_);
    if (rule_.unit.empty())
      return refuse("no unit in '" + base::printable(written_) + "'", option_);
    return {};
  }

  /// Writes "transformer(...)" out as a formula.
  Result<void> expand_transformer() {
    constexpr std::string_view kTransformer = "transformer(";
    if (!formula_.starts_with(kTransformer))
      return {};
    if (formula_.back() != ')')
      return refuse("transformer( is not closed", place());
    std::string_view arguments = formula_;
    arguments.remove_prefix(kTransformer.size());
    arguments.remove_suffix(1);
    formula_ = TRY(transformer(arguments, written_));
    return {};
  }

  Result<void> take_formula() {
    auto parsed = base::Formula::parse(formula_);
    if (!parsed)
      return refuse(parsed.error().what, place() + ", " + parsed.error().where);
    const std::string name = unknown_name(*parsed);
    if (!name.empty())
      return refuse("a formula of " + noun_ + " knows 'payload' only, not '" + name + "'", place());
    rule_.flop = std::move(*parsed);
    return {};
  }

  const std::string& written_;
  const std::string& option_;
  bool of_work_;
  std::string noun_ = "FLOPs";
  const char* example_ = kExample;
  std::string formula_;
  UsefulFlop rule_;
};

// A number of the structured payload of a range, by its name in the schema. O(log fields).
std::optional<double> field_of(const model::Session& session,
                               std::uint32_t range,
                               std::string_view name) {
  auto field = std::lower_bound(
      session.payload_fields.begin(),
      session.payload_fields.end(),
      range,
      [](const model::PayloadField& candidate, std::uint32_t r) { return candidate.range < r; });
  for (; field != session.payload_fields.end() && field->range == range; ++field) {
    if (session.strings.view(field->name) != name)
      continue;
    model::Attributes number;
    number.payload_type = field->type;
    number.payload_u64 = field->bits;
    return number.payload();
  }
  return std::nullopt;
}

// FLOPs, or units of work, of the closed occurrences of a region.
struct WorkSum {
  double flop = 0, least = 0, most = 0;
  double slowest = 0, fastest = 0;  // a nanosecond
  std::uint64_t occurrences = 0, without = 0;

  void add(double of_occurrence, double wall_ns) {
    const double rate = of_occurrence / std::max(wall_ns, 1.0);
    if (occurrences == 0) {
      least = most = of_occurrence;
      slowest = fastest = rate;
    }
    flop += of_occurrence;
    least = std::min(least, of_occurrence);
    most = std::max(most, of_occurrence);
    slowest = std::min(slowest, rate);
    fastest = std::max(fastest, rate);
    ++occurrences;
  }
};

WorkSum sum_of(const UsefulFlop& rule, const Regions& regions, std::size_t r) {
  WorkSum sum;
  const model::Session& session = regions.session;
  regions.for_each_closed(r, [&](std::uint32_t o, const model::Range& range) {
    const auto flop = rule.flop.evaluate([&](std::string_view name) -> std::optional<double> {
      if (name != kPayload)
        return field_of(session, regions.tree.range_of[o], name.substr(kPayload.size() + 1));
      if (range.attributes >= session.attributes.size())
        return std::nullopt;
      const model::Attributes& attributes = session.attributes[range.attributes];
      if (attributes.payload_type == model::PayloadType::kAbsent)
        return std::nullopt;
      return attributes.payload();
    });
    if (!flop) {
      ++sum.without;
      return;
    }
    sum.add(*flop, static_cast<double>(wall_of(session, regions.tree, o)));
  });
  return sum;
}

Result<std::vector<UsefulFlop>> parse_all(const std::vector<std::string>& written,
                                          const std::string& option,
                                          bool of_work) {
  std::vector<UsefulFlop> rules;
  for (const std::string& text : written) {
    auto rule = TRY(RuleParser(text, option, of_work).parse());
    rules.push_back(std::move(rule));
  }
  return rules;
}

std::vector<char> matched_nodes(const UsefulFlop& rule, const Regions& regions) {
  const Tree& tree = regions.tree;
  std::vector<char> matched(tree.nodes.size());
  for (std::uint32_t node = 0; node < tree.nodes.size(); ++node) {
    const auto chooses_node = [&](const model::RangeTerm& term) {
      return term.chooses(state_of(tree, regions.session, node));
    };
    matched[node] = std::any_of(rule.terms.begin(), rule.terms.end(), chooses_node);
  }
  return matched;
}

std::string note_without_work(const UsefulFlop& rule, const WorkSum& sum) {
  std::string_view noun = "useful FLOPs";
  if (!rule.unit.empty())
    noun = "work";
  return fmt::format("no {} by '{}': {} of {} without a payload, or without a value",
                     noun,
                     rule.written,
                     sum.without,
                     base::counted(sum.without + sum.occurrences, "instance"));
}

std::string note_unmatched(const UsefulFlop& rule) {
  std::string_view option = "--flops";
  if (!rule.unit.empty())
    option = "--work";
  return fmt::format("{} '{}' matched no region.", option, rule.written);
}

// Calls `each(rule, region, sum)` for every region that a rule means and that has occurrences.
template <class Each>
void for_each_meant(const std::vector<UsefulFlop>& rules,
                    const Regions& regions,
                    model::Report& report,
                    Each each) {
  for (const UsefulFlop& rule : rules) {
    const std::vector<char> matched = matched_nodes(rule, regions);
    bool any = false;
    for (std::size_t r = 0; r < regions.keys.size(); ++r) {
      const std::uint32_t node = regions.keys[r].node;
      const std::uint32_t parent = regions.tree.nodes[node].parent;
      const bool is_below_matched = parent != model::kNone && matched[parent];
      if (!matched[node] || is_below_matched)
        continue;  // below `decode`: not decode itself
      any = true;
      model::Region& region = report.regions[r];
      const WorkSum sum = sum_of(rule, regions, r);
      if (sum.without > 0 && !rule.where_found)
        region.notes.push_back(note_without_work(rule, sum));
      else if (sum.without == 0 && sum.occurrences > 0)
        each(rule, region, sum);
    }
    if (!any && !rule.where_found)
      report.notes.push_back(note_unmatched(rule));
  }
}

// One slow occurrence does not count where all have the same to do; where they differ, only means
// belong together.
double wall_of_sum(const model::Region& region, const WorkSum& sum) {
  if (gpu_time_counts(region))
    return region.gpu->busy_ns_per_occurrence.mean;
  const auto& wall = region.wall.per_occurrence_ns;
  if (sum.least == sum.most)
    return wall.median;
  return wall.mean;
}

}  // namespace

bool has_counters(const model::Region& region) {
  return std::any_of(region.metrics.begin(), region.metrics.end(), [](const auto& one) {
    const std::string& source = one.second.source;
    return !source.starts_with(kWorkSource) && !source.starts_with(model::kCpuEvents);
  });
}

bool is_inner_module(const model::Region& region) {
  return region.module && !region.path.empty() && region.path.back().ends_with(')');
}

bool gpu_time_counts(const model::Region& region) {
  return is_inner_module(region) && region.gpu && region.gpu->busy_ns_per_occurrence.mean > 0;
}

Result<std::vector<UsefulFlop>> parse_useful(const std::vector<std::string>& written) {
  return parse_all(written, "--flops", false);
}

Result<std::vector<UsefulFlop>> parse_work(const std::vector<std::string>& work,
                                           const std::vector<std::string>& tokens) {
  auto rules = parse_all(work, "--work", true);
  if (!rules)
    return rules;
  auto token_rules = parse_all(tokens, "--tokens", true);
  if (!token_rules)
    return token_rules;
  std::move(token_rules->begin(), token_rules->end(), std::back_inserter(*rules));
  return rules;
}

void add_useful(const std::vector<UsefulFlop>& rules,
                std::optional<double> model::Utilization::*into,
                const Regions& regions,
                model::Report& report) {
  for_each_meant(
      rules, regions, report, [&](const UsefulFlop&, model::Region& region, const WorkSum& sum) {
        if (!region.utilization)
          region.utilization.emplace();
        (*region.utilization).*into = sum.flop / static_cast<double>(sum.occurrences);
        region.utilization->useful_wall_ns = wall_of_sum(region, sum);
      });
}

void add_given_work(const std::vector<UsefulFlop>& rules,
                    const Regions& regions,
                    model::Report& report) {
  const auto add_metric =
      [&](model::Region& region, const std::string& name, model::Metric metric) {
        metric.unit = name;
        region.metrics[name] = std::move(metric);
        const auto same = [&](const model::MetricColumn& column) { return column.name == name; };
        if (std::none_of(report.metric_columns.begin(), report.metric_columns.end(), same))
          report.metric_columns.push_back({name, name});
      };
  for_each_meant(rules,
                 regions,
                 report,
                 [&](const UsefulFlop& rule, model::Region& region, const WorkSum& sum) {
                   const double per_instance = sum.flop / static_cast<double>(sum.occurrences);
                   const double wall = wall_of_sum(region, sum);
                   if (rule.unit == "token") {
                     if (!region.utilization)
                       region.utilization.emplace();
                     region.utilization->useful_tokens = per_instance;
                     region.utilization->useful_wall_ns = wall;
                   }
                   if (per_instance <= 0 || wall <= 0)
                     return;
                   add_metric(region,
                              plural(rule.unit) + "/s",
                              {.value = per_instance / wall * 1e9,
                               .min = sum.slowest * 1e9,
                               .max = sum.fastest * 1e9,
                               .rounds = static_cast<std::int64_t>(sum.occurrences),
                               .source = std::string(kWorkSource) + "'" + rule.written +
                                         "' / wall time, of the slowest and fastest instance"});
                   const auto energy = region.metrics.find("energy");
                   if (energy == region.metrics.end())
                     return;
                   model::Metric a_unit = energy->second;
                   for (double* value : {&a_unit.value, &a_unit.min, &a_unit.max})
                     *value /= per_instance;
                   a_unit.source +=
                       " energy / " + std::string(kWorkSource) + "'" + rule.written + "'";
                   add_metric(region, "J/" + rule.unit, std::move(a_unit));
                 });
}

}  // namespace rangescope::analyze
