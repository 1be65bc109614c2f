#include "analyze/useful.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyze/select.hpp"
#include "analyze/spread.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::analyze {
namespace {

using base::Code;
using base::Result;

constexpr const char* kExample =
    "Write it as 'decode=2.1e9', 'step=6e9*payload' or "
    "'decode=transformer(params=7e9,layers=32,hidden=4096,tokens=1,context=payload)'.";

// "transformer(params=7e9,...)" as one formula.
Result<std::string> transformer(std::string_view arguments, const std::string& written) {
  std::map<std::string, std::string, std::less<>> given = {{"params", ""},  {"layers", "0"},  {"hidden", "0"},
                                                           {"tokens", "1"}, {"context", "0"}, {"train", "0"}};
  // Commas within parentheses belong to a formula: min(a, b).
  std::size_t from = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= arguments.size(); ++i) {
    if (i < arguments.size() && arguments[i] == '(') ++depth;
    if (i < arguments.size() && arguments[i] == ')') --depth;
    if (i < arguments.size() && (arguments[i] != ',' || depth > 0)) continue;
    const std::string_view item = base::trim(arguments.substr(from, i - from));
    from = i + 1;
    const std::size_t equals = item.find('=');
    const std::string key(base::trim(item.substr(0, equals)));
    const auto found = given.find(key);
    if (equals == std::string_view::npos || found == given.end()) {
      std::vector<std::string> names;
      for (const auto& [name, value] : given) names.push_back(name);
      std::string hint = base::did_you_mean(key, names);
      if (hint.empty()) hint = "Its arguments are " + base::join(names, ", ") + ".";
      return base::fail(Code::kUsage, "transformer() has no argument '" + base::printable(item) + "'",
                        "--flops " + written, std::move(hint));
    }
    found->second = std::string(base::trim(item.substr(equals + 1)));
  }
  if (given["params"].empty())
    return base::fail(Code::kUsage, "transformer() needs params", "--flops " + written, kExample);
  if (given["train"] != "0" && given["train"] != "1")
    return base::fail(Code::kUsage, "train is 0 or 1", "--flops " + written, kExample);
  return fmt::format("{} * ({}) * (2 * ({}) + 4 * ({}) * ({}) * ({}))", given["train"] == "1" ? 3 : 1, given["tokens"],
                     given["params"], given["layers"], given["hidden"], given["context"]);
}

Result<UsefulFlop> parse_one(const std::string& written) {
  const std::size_t equals = written.find('=');
  if (equals == std::string::npos || equals == 0)
    return base::fail(Code::kUsage, "no range and FLOPs in '" + base::printable(written) + "'", "--flops", kExample);
  UsefulFlop rule;
  rule.written = written;
  auto terms = model::parse_terms(base::trim(std::string_view(written).substr(0, equals)));
  if (!terms) return base::fail(std::move(terms));
  rule.terms = std::move(*terms);
  std::string formula(base::trim(std::string_view(written).substr(equals + 1)));
  constexpr std::string_view kTransformer = "transformer(";
  if (formula.starts_with(kTransformer)) {
    if (formula.back() != ')')
      return base::fail(Code::kUsage, "transformer( is not closed", "--flops " + written, kExample);
    auto text = transformer(
        std::string_view(formula).substr(kTransformer.size(), formula.size() - kTransformer.size() - 1), written);
    if (!text) return base::fail(std::move(text));
    formula = std::move(*text);
  }
  auto parsed = base::Formula::parse(formula);
  if (!parsed)
    return base::fail(Code::kUsage, parsed.error().what, "--flops " + written + ", " + parsed.error().where, kExample);
  for (const std::string& name : parsed->names()) {
    if (name != "payload")
      return base::fail(Code::kUsage, "a formula of FLOPs knows 'payload' only, not '" + name + "'",
                        "--flops " + written, kExample);
  }
  rule.flop = std::move(*parsed);
  return rule;
}

// FLOPs of the closed occurrences of a region.
struct WorkSum {
  double flop = 0, least = 0, most = 0;
  std::uint64_t occurrences = 0, without = 0;
};

WorkSum sum_of(const model::Session& session, const UsefulFlop& rule, const Tree& tree, const RegionKey& key,
               const Buckets& by_cell) {
  WorkSum sum;
  for (std::size_t i = key.first; i < key.last; ++i) {
    for (const std::uint32_t o : by_cell.of(tree.node_cells[i])) {
      if (tree.range_of[o] == model::kNone) continue;
      const model::Range& range = session.ranges[tree.range_of[o]];
      if (range.end_ns == model::kOpen) continue;
      const auto flop = rule.flop.evaluate([&](std::string_view) -> std::optional<double> {
        if (range.attributes >= session.attributes.size()) return std::nullopt;
        const model::Attributes& attributes = session.attributes[range.attributes];
        if (attributes.payload_type == model::PayloadType::kAbsent) return std::nullopt;
        return attributes.payload();
      });
      if (!flop) {
        ++sum.without;
        continue;
      }
      sum.flop += *flop;
      sum.least = sum.occurrences == 0 ? *flop : std::min(sum.least, *flop);
      sum.most = sum.occurrences == 0 ? *flop : std::max(sum.most, *flop);
      ++sum.occurrences;
    }
  }
  return sum;
}

}  // namespace

Result<std::vector<UsefulFlop>> parse_useful(const std::vector<std::string>& written) {
  std::vector<UsefulFlop> rules;
  for (const std::string& text : written) {
    auto rule = parse_one(text);
    if (!rule) return base::fail(std::move(rule));
    rules.push_back(std::move(*rule));
  }
  return rules;
}

void add_useful(const model::Session& session, const std::vector<UsefulFlop>& rules,
                std::optional<double> model::Utilization::*into, const Tree& tree, const std::vector<RegionKey>& keys,
                const Buckets& by_cell, model::Report& report) {
  for (const UsefulFlop& rule : rules) {
    std::vector<char> matched(tree.nodes.size());
    for (std::uint32_t node = 0; node < tree.nodes.size(); ++node)
      matched[node] = std::any_of(rule.terms.begin(), rule.terms.end(), [&](const model::RangeTerm& term) {
        return term.chooses(state_of(tree, session, node));
      });
    bool any = false;
    for (std::size_t r = 0; r < keys.size(); ++r) {
      const std::uint32_t node = keys[r].node, parent = tree.nodes[node].parent;
      if (!matched[node] || (parent != model::kNone && matched[parent])) continue;  // below `decode`: not decode itself
      any = true;
      model::Region& region = report.regions[r];
      const WorkSum sum = sum_of(session, rule, tree, keys[r], by_cell);
      if (sum.without > 0) {
        region.notes.push_back(
            fmt::format("no useful FLOPs by '{}': {} of {} without a payload, or no value comes of it", rule.written,
                        sum.without, base::counted(sum.without + sum.occurrences, "occurrence")));
        continue;
      }
      if (sum.occurrences == 0) continue;
      if (!region.utilization) region.utilization.emplace();
      (*region.utilization).*into = sum.flop / static_cast<double>(sum.occurrences);
      // One slow occurrence does not count where all have the same to do; where they differ, only means belong
      // together.
      const auto& wall = region.wall.per_occurrence_ns;
      region.utilization->useful_wall_ns = sum.least == sum.most ? wall.median : wall.mean;
    }
    if (!any) report.notes.push_back("--flops '" + rule.written + "' matched no region.");
  }
}

}  // namespace rangescope::analyze
