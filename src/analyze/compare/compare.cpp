#include "analyze/compare/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "analyze/compare/compare_chains.hpp"
#include "analyze/compare/compare_functions.hpp"
#include "analyze/compare/digest.hpp"
#include "analyze/compare/predictions.hpp"
#include "analyze/compare/series/clock_notes.hpp"
#include "analyze/compare/series/function_by_runs.hpp"
#include "analyze/compare/series/sequence.hpp"
#include "analyze/compare/surroundings.hpp"
#include "analyze/names/kernel_labels.hpp"
#include "analyze/names/matching.hpp"
#include "analyze/statistics/spread.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "model/comparison.hpp"
#include "model/measure.hpp"

namespace rangescope::analyze {
namespace {

using model::Change;
using model::ComparedFunction;
using model::ComparedKernel;
using model::ComparedRegion;
using model::ComparedValue;
using model::Comparison;
using model::DigestRegion;
using model::Side;
using model::Standing;

constexpr std::string_view kWall = "wall_ns.median", kFastest = "wall_ns.min",
                           kBusy = "gpu.busy_ns";

/// What is tested: a value of a region or kernel on one side against the first.
struct Hypothesis {
  Change* change;
  TwoGroups groups;
};

std::optional<double> median(std::vector<double> values) {
  if (values.empty())
    return std::nullopt;
  return median_of(values);
}

bool sums(const std::string& tag) {
  const model::Measure* measure = model::find_measure(tag);
  return measure && model::adds_up(*measure);
}

bool is_counted(const std::string& tag) {
  const model::Measure* measure = model::find_measure(tag);
  return measure != nullptr && model::is_counted(*measure);
}

void judge_exactly(Change& change) {
  change.is_exact = true;
  change.standing = Standing::kNoise;
  if (change.difference > 0)
    change.standing = Standing::kMore;
  if (change.difference < 0)
    change.standing = Standing::kLess;
}

/// The value of one run, per occurrence where it is a sum.
std::optional<double> value_of(const DigestRegion& region, const std::string& tag) {
  const auto found = region.values.find(tag);
  if (found == region.values.end())
    return std::nullopt;
  if (!sums(tag))
    return found->second;
  if (region.occurrences <= 0)
    return std::nullopt;
  return found->second / static_cast<double>(region.occurrences);
}

/// The stretches of one run: the same value of consecutive sampled occurrences.
std::vector<double> stretches(const DigestRegion& region, const std::string& tag) {
  const std::vector<double>& all = tag.starts_with("gpu.") ? region.busy_ns : region.wall_ns;
  std::vector<double> out;
  for (std::size_t i = 0; i < kStretches; ++i) {
    const std::size_t begin = i * all.size() / kStretches, end = (i + 1) * all.size() / kStretches;
    std::vector<double> part(all.begin() + static_cast<std::ptrdiff_t>(begin),
                             all.begin() + static_cast<std::ptrdiff_t>(end));
    if (tag == kWall || tag == kFastest) {
      out.push_back(tag == kWall ? median_of(part) : *std::min_element(part.begin(), part.end()));
      continue;
    }
    double sum = 0;
    for (const double value : part)
      sum += value;
    out.push_back(sum / static_cast<double>(part.size()));
  }
  return out;
}

class Comparer {
 public:
  Comparer(std::span<const Side> sides, const CompareOptions& options)
      : sides_(sides), options_(options), chains_(sides, out_) {}

  base::Result<Comparison> run() {
    for (const Side& side : sides_)
      TRY(check_repetitions(side));
    auto matched = TRY(match_regions(sides_, options_.renames));
    TRY(filter_regions(matched, options_.ranges, options_.regions));
    describe();
    TRY(choose_values(matched));
    note_noise();
    std::erase_if(matched, [&](const MatchedRegion& region) {
      return !model::is_range(region) && !has_chosen_value_on_all_sides(region);
    });
    drop_repetitions(matched);
    add_regions(matched);
    add_kernels();
    if (!common_kernel_ && !have_common_region(matched))
      return nothing_in_common(matched);
    judge_all();
    add_notes(matched);
    out_.largest_gone = largest_gone(matched);
    out_.predictions = compare_predictions(sides_, out_.regions);
    out_.renames = offer_renames(matched, sides_.size());
    sort();
    return std::move(out_);
  }

 private:
  void add_regions(const std::vector<MatchedRegion>& matched) {
    hypotheses_.resize(sides_.size());
    function_hypotheses_.resize(sides_.size());
    own_function_hypotheses_.resize(sides_.size());
    // Changes are pointed at until they are tested: no vector that holds them may grow.
    out_.regions.reserve(matched.size());
    for (const MatchedRegion& region : matched)
      add_region(region);
  }

  void judge_all() {
    for (std::size_t side = 1; side < sides_.size(); ++side)
      judge(hypotheses_[side]);
    judge_apart(kernel_hypotheses_);
    judge_apart(function_hypotheses_);
    judge_apart(own_function_hypotheses_);
    for (ComparedRegion& region : out_.regions) {
      sort_functions(region.functions);
      sort_functions(region.own_functions);
    }
  }

  /// Needs the standing of every change, and the regions in the order of `matched`.
  void add_notes(const std::vector<MatchedRegion>& matched) {
    std::vector<const MatchedRegion*> compared_regions;
    for (const MatchedRegion& region : matched) {
      if (on_all_sides(region))
        compared_regions.push_back(&region);
    }
    for (std::string& note : clock_notes(compared_regions, out_))
      out_.notes.push_back(std::move(note));
    for (std::size_t side = 1; side < sides_.size(); ++side)
      compare_verdicts(side);
    if (by_runs_ && !options_.in_turns)
      add_sequence_notes(sides_, out_);
  }

  /// Notes the losses that most runs of one side report, and none of the other's.
  void compare_verdicts(std::size_t side) {
    constexpr std::size_t kMostNamed = 3;
    const auto judged = [](const Side& one) {
      return std::all_of(
          one.runs.begin(), one.runs.end(), [](const model::Digest& run) { return run.judged; });
    };
    const auto note = [&](const Side& of, const Side& other, const std::string& heading) {
      const auto runs_with = [](const Side& in, const model::Verdict& wanted) {
        return std::count_if(in.runs.begin(), in.runs.end(), [&](const model::Digest& run) {
          return std::any_of(
              run.verdict.begin(), run.verdict.end(), [&](const model::Verdict& one) {
                return one.kind == wanted.kind && one.path == wanted.path;
              });
        });
      };
      std::set<std::pair<std::string, std::string>> seen;
      std::size_t more = 0;
      for (const model::Digest& run : of.runs) {
        for (const model::Verdict& one : run.verdict) {
          if (!seen.emplace(one.kind, one.path).second || runs_with(other, one) > 0 ||
              2 * runs_with(of, one) < static_cast<std::ptrdiff_t>(of.runs.size()))
            continue;
          if (++more <= kMostNamed)
            out_.notes.push_back(fmt::format("{}: {}{}: {}",
                                             heading,
                                             one.kind,
                                             one.path.empty() ? "" : " of '" + one.path + "'",
                                             one.text));
        }
      }
      if (more > kMostNamed)
        out_.notes.push_back(fmt::format("{}: {} more", heading, more - kMostNamed));
    };
    if (!judged(sides_[0]) || !judged(sides_[side]))
      return;
    note(sides_[side], sides_[0], "new in the verdict of " + sides_[side].label);
    note(sides_[0], sides_[side], "no longer in the verdict of " + sides_[side].label);
  }

  void describe() {
    for (const Side& side : sides_) {
      model::ComparedSide one{side.label, side.runs.size(), {}, {}, 0, 0};
      std::vector<double> durations;
      for (const model::Digest& run : side.runs) {
        durations.push_back(run.run.duration_ns);
        if (run.run.signal || run.run.exit_code.value_or(0) != 0)
          ++one.failed;
      }
      one.duration_ns = median(durations).value_or(0);
      if (!side.runs.empty()) {
        one.command = side.runs.front().run.command;
        one.devices = side.runs.front().devices;
      }
      out_.sides.push_back(std::move(one));
      for (std::string& text : cautions(side))
        out_.notes.push_back(std::move(text));
      partial_ = partial_ || std::any_of(side.runs.begin(),
                                         side.runs.end(),
                                         [](const model::Digest& run) { return run.partial_gpu; });
    }
    out_.environment = environment_differences(sides_);
    out_.alpha = options_.alpha;
    out_.in_turns = options_.in_turns;
    by_runs_ = true;
    for (std::size_t s = 1; s < sides_.size(); ++s) {
      const double least_p = smallest_p(sides_[0].runs.size(), sides_[s].runs.size());
      by_runs_ = by_runs_ && least_p <= options_.alpha;
    }
    out_.noise = by_runs_ ? "runs" : "occurrences";
    out_.method = fmt::format(
        "two-sided permutation test of {}, step-down maxT over all values, alpha {}; interval of "
        "the ratio by Hodges "
        "and Lehmann",
        by_runs_ ? "whole runs" : "stretches of instances",
        options_.alpha);
  }

  void note_noise() {
    if (by_runs_ || std::ranges::all_of(values_, is_counted))
      return;
    constexpr std::size_t kEnoughRuns = 5;
    std::size_t fewest = sides_[0].runs.size();
    std::vector<std::string> labels;  // of sides that have too few
    for (const Side& side : sides_) {
      fewest = std::min(fewest, side.runs.size());
      if (side.runs.size() < kEnoughRuns)
        labels.push_back(base::printable(side.label));
    }
    std::string where = "of one side", to_repeat = base::join(labels, ", ");
    if (labels.size() == sides_.size()) {
      where = "per side";
      to_repeat = "both sides";
    }
    out_.notes.push_back(fmt::format(
        "noise was estimated from the instances inside the runs: {} {} cannot show differences "
        "from run to run (clocks, a busy machine). Use rangescope profile --repeat {} on {}",
        base::counted(fewest, "run"),
        where,
        kEnoughRuns,
        to_repeat));
  }

  base::Result<void> choose_values(const std::vector<MatchedRegion>& matched) {
    std::set<std::string> common, known;  // on all sides of some region; anywhere
    for (const MatchedRegion& region : matched) {
      std::map<std::string, std::size_t> seen;
      for (const auto& runs : region.of) {
        std::set<std::string> here;
        for (const DigestRegion* one : runs) {
          if (!one)
            continue;
          for (const auto& [tag, value] : one->values)
            here.insert(tag);
        }
        for (const std::string& tag : here)
          ++seen[tag];
      }
      for (const auto& [tag, count] : seen) {
        known.insert(tag);
        if (count == sides_.size() && !(partial_ && tag.starts_with("gpu.")))
          common.insert(tag);
      }
    }
    if (options_.values.empty()) {
      for (const std::string& tag : options_.usual) {
        if (common.contains(tag))
          values_.push_back(tag);
      }
      if (!values_.empty() || common.empty())
        return {};
      if (common.contains("gpu.kernel_ns")) {  // ncu knows kernels, not when they ran
        values_.emplace_back("gpu.kernel_ns");
        return {};
      }
      // Counters alone: the first that is a time, else the first of all.
      const auto metric = [&](std::string_view part) {
        return std::find_if(common.begin(), common.end(), [&](const std::string& tag) {
          return tag.starts_with("metrics.") && tag.find(part) != std::string::npos;
        });
      };
      for (const std::string_view part : {"time", ""}) {
        if (const auto found = metric(part); found != common.end()) {
          values_.push_back(*found);
          return {};
        }
      }
      return base::fail(
          base::Code::kNotComparable,
          "the sides have no cost of a region in common",
          {},
          "Compare captures of one kind, or name a value: --metric " + *common.begin());
    }
    for (const std::string& name : options_.values) {
      const model::Measure* measure = model::find_measure(name);
      const std::string tag = measure ? std::string(measure->tag) : name;
      if (common.contains(tag)) {
        values_.push_back(tag);
        continue;
      }
      if (known.contains(tag) || measure)
        return base::fail(
            base::Code::kNotComparable,
            "no region has '" + base::printable(tag) + "' on all sides",
            {},
            partial_ && tag.starts_with("gpu.")
                ? "GPU work was recorded for a part of a run only: profile it without --metrics"
                : "Record it on every side, or compare another value: " +
                      base::join(std::vector<std::string>(common.begin(), common.end()), ", "));
      std::vector<std::string> tags = model::measure_tags();
      tags.insert(tags.end(), known.begin(), known.end());
      return base::fail(base::Code::kUsage,
                        "there is no value '" + base::printable(name) + "'",
                        "--metric",
                        base::did_you_mean(name, tags));
    }
    return {};
  }

  void add_region(const MatchedRegion& region) {
    ComparedRegion one;
    one.path = region.path;
    one.domain = region.domain;
    one.kind = region.kind;
    one.renamed_from = region.renamed_from;
    one.is_whole_run = region.is_whole_run;
    one.is_outside_ranges = region.is_outside_ranges;
    for (const auto& runs : region.of) {
      std::vector<double> counts;
      bool any = false;
      for (const DigestRegion* run : runs) {
        counts.push_back(run ? static_cast<double>(run->occurrences) : 0);
        any = any || run;
      }
      one.occurrences.push_back(any ? median(counts) : std::nullopt);
    }
    const bool everywhere = on_all_sides(region);
    std::vector<ComparedRegion>& list = everywhere ? out_.regions : out_.missing;
    for (const std::string& tag : values_)
      one.values.push_back(compared(region, tag));
    if (everywhere) {
      one.functions = compare_functions(region, options_.alpha);
      one.own_functions = compare_functions(region, options_.alpha, FunctionScope::kOwn);
    }
    chains_.add(region, one);
    list.push_back(std::move(one));
    if (!everywhere)
      return;
    if (by_runs_) {
      test_functions_by_runs(region, FunctionScope::kAll, list.back().functions);
      test_functions_by_runs(region, FunctionScope::kOwn, list.back().own_functions);
    }
    for (std::size_t v = 0; v < values_.size(); ++v) {
      ComparedValue& value = list.back().values[v];
      for (std::size_t side = 1; side < sides_.size(); ++side) {
        if (!value.values[0] || !value.values[side])
          continue;
        Change& change = value.changes[side - 1];
        if (!by_runs_ && is_counted(values_[v])) {
          judge_exactly(change);
          continue;
        }
        auto groups = by_runs_ ? runs_of(region, side, values_[v], change)
                               : occurrences_of(region, side, values_[v], change);
        if (groups)
          hypotheses_[side].push_back({&change, std::move(*groups)});
      }
    }
  }

  /// A program without ranges has one instance, which is the whole run: each of its values is
  /// compared once.
  void drop_repetitions(std::vector<MatchedRegion>& matched) {
    const auto is_range = [](const MatchedRegion& region) { return model::is_range(region); };
    const auto program = std::ranges::find_if(matched, is_range);
    if (program == matched.end() || std::ranges::count_if(matched, is_range) != 1)
      return;
    const auto repeats = [&](const ComparedValue& value, const std::string& tag) {
      return !model::is_known(value) || value.values == compared(*program, tag).values;
    };
    std::erase_if(matched, [&](const MatchedRegion& region) {
      return region.is_whole_run && std::ranges::all_of(values_, [&](const std::string& tag) {
               return repeats(compared(region, tag), tag);
             });
    });
    const bool was_chosen = !options_.values.empty();
    if (was_chosen || std::ranges::find(values_, kWall) == values_.end())
      return;
    if (repeats(compared(*program, std::string(kFastest)), std::string(kWall)))
      std::erase(values_, kFastest);
  }

  [[nodiscard]] bool has_chosen_value_on_all_sides(const MatchedRegion& region) const {
    return std::ranges::any_of(values_, [&](const std::string& tag) {
      const ComparedValue value = compared(region, tag);
      return std::ranges::all_of(value.values,
                                 [](const auto& number) { return number.has_value(); });
    });
  }

  /// The value on each side, and the differences; untested so far.
  ComparedValue compared(const MatchedRegion& region, const std::string& tag) const {
    ComparedValue value = named(tag);
    for (const auto& runs : region.of) {
      std::vector<double> of_runs;
      for (const DigestRegion* run : runs) {
        if (!run)
          continue;
        if (const auto number = value_of(*run, tag))
          of_runs.push_back(*number);
      }
      value.values.push_back(median(of_runs));
    }
    differences(value);
    return value;
  }

  static ComparedValue named(const std::string& tag) {
    ComparedValue value;
    value.tag = tag;
    value.title = tag;
    value.per_occurrence = sums(tag);
    if (const model::Measure* measure = model::find_measure(tag)) {
      value.title = std::string(measure->title);
      value.unit = std::string(model::unit_name(measure->unit));
    }
    return value;
  }

  static void differences(ComparedValue& value) {
    value.changes.resize(value.values.size() - 1);
    for (std::size_t side = 1; side < value.values.size(); ++side) {
      Change& change = value.changes[side - 1];
      if (!value.values[0] || !value.values[side]) {
        const bool is_on_one = value.values[0] || value.values[side];
        change.why = is_on_one ? "not on both sides" : "";
        continue;
      }
      change.difference = *value.values[side] - *value.values[0];
      if (*value.values[0] != 0)
        change.ratio = *value.values[side] / *value.values[0];
    }
  }

  std::optional<TwoGroups> runs_of(const MatchedRegion& region,
                                   std::size_t side,
                                   const std::string& tag,
                                   Change& change) const {
    TwoGroups groups;
    for (const std::size_t s : {std::size_t{0}, side}) {
      std::vector<double>& into = s == 0 ? groups.a : groups.b;
      for (const DigestRegion* run : region.of[s]) {
        const auto number = run ? value_of(*run, tag) : std::nullopt;
        if (number)
          into.push_back(*number);
      }
      if (into.size() == region.of[s].size())
        continue;
      change.why = fmt::format("in {} of {} of {}",
                               into.size(),
                               base::counted(region.of[s].size(), "run"),
                               sides_[s].label);
      return std::nullopt;
    }
    return groups;
  }

  std::optional<TwoGroups> occurrences_of(const MatchedRegion& region,
                                          std::size_t side,
                                          const std::string& tag,
                                          Change& change) const {
    const std::array known = {kWall,
                              kFastest,
                              kBusy,
                              std::string_view("wall_ns.inclusive"),
                              std::string_view("wall_ns.mean")};
    const bool has_instances =
        model::is_range(region) && std::ranges::find(known, tag) != known.end();
    if (!has_instances) {
      change.why = "one run cannot show how much this value varies";
      return std::nullopt;
    }
    TwoGroups groups;
    for (const std::size_t s : {std::size_t{0}, side}) {
      std::vector<double>& into = s == 0 ? groups.a : groups.b;
      for (const DigestRegion* run : region.of[s]) {
        const std::size_t have = !run           ? 0
                                 : tag == kBusy ? run->busy_ns.size()
                                                : run->wall_ns.size();
        if (have < 2 * kStretches) {
          change.why = fmt::format("{} in a run of {}; a test takes {}",
                                   base::counted(have, "instance"),
                                   sides_[s].label,
                                   2 * kStretches);
          return std::nullopt;
        }
        const auto parts = stretches(*run, tag);
        into.insert(into.end(), parts.begin(), parts.end());
      }
    }
    return groups;
  }

  void add_kernels() {
    // Names that every side has stay as they are; the others are merged by their folded name.
    std::map<std::string, std::size_t> sides_with;
    for (const Side& side : sides_) {
      std::set<std::string> here;
      for (const model::Digest& run : side.runs) {
        for (const model::DigestKernel& kernel : run.kernels)
          here.insert(kernel.name);
      }
      for (const std::string& name : here)
        ++sides_with[name];
    }
    struct Row {
      std::set<std::string> names;
      std::vector<std::vector<double>> calls, total;  // [side][run]
    };
    std::map<std::string, Row> rows;
    for (std::size_t s = 0; s < sides_.size(); ++s) {
      for (std::size_t r = 0; r < sides_[s].runs.size(); ++r) {
        for (const model::DigestKernel& kernel : sides_[s].runs[r].kernels) {
          const bool exact = sides_with[kernel.name] == sides_.size();
          Row& row = rows[exact ? kernel.name : folded_kernel(kernel.name)];
          row.names.insert(kernel.name);
          if (row.calls.empty()) {
            for (const Side& side : sides_) {
              row.calls.emplace_back(side.runs.size(), 0.0);
              row.total.emplace_back(side.runs.size(), 0.0);
            }
          }
          row.calls[s][r] += static_cast<double>(kernel.calls);
          row.total[s][r] += kernel.total_ns;
        }
      }
    }
    if (partial_)
      return;
    out_.kernels.reserve(rows.size());
    kernel_hypotheses_.resize(sides_.size());
    for (auto& [name, row] : rows) {
      ComparedKernel& kernel = out_.kernels.emplace_back();
      kernel.folded = row.names.size() > 1;
      kernel.name = kernel.folded ? name : *row.names.begin();
      kernel.total.tag = "total_ns";
      kernel.per_call.tag = "ns_per_call";
      kernel.total.title = "total";
      kernel.per_call.title = "a call";
      kernel.total.unit = kernel.per_call.unit = "ns";
      bool everywhere = true;
      for (std::size_t s = 0; s < sides_.size(); ++s) {
        const double calls = median(row.calls[s]).value_or(0),
                     total = median(row.total[s]).value_or(0);
        const bool here = calls > 0;
        everywhere = everywhere && here;
        kernel.calls.push_back(here ? std::optional(calls) : std::nullopt);
        kernel.total.values.push_back(here ? std::optional(total) : std::nullopt);
        kernel.per_call.values.push_back(here ? std::optional(total / calls) : std::nullopt);
      }
      common_kernel_ = common_kernel_ || everywhere;
      differences(kernel.total);
      differences(kernel.per_call);
      for (std::size_t side = 1; side < sides_.size(); ++side) {
        if (!kernel.total.values[0] || !kernel.total.values[side])
          continue;
        if (!by_runs_) {
          kernel.total.changes[side - 1].why = kernel.per_call.changes[side - 1].why =
              "one run cannot show how much this value varies";
          continue;
        }
        TwoGroups per_call{row.total[0], row.total[side]};
        bool all = true;
        for (std::size_t r = 0; r < per_call.a.size(); ++r)
          all = all && row.calls[0][r] > 0;
        for (std::size_t r = 0; r < per_call.b.size(); ++r)
          all = all && row.calls[side][r] > 0;
        kernel_hypotheses_[side].push_back(
            {&kernel.total.changes[side - 1], {row.total[0], row.total[side]}});
        if (!all) {
          kernel.per_call.changes[side - 1].why = "not in every run";
          continue;
        }
        for (std::size_t r = 0; r < per_call.a.size(); ++r)
          per_call.a[r] /= row.calls[0][r];
        for (std::size_t r = 0; r < per_call.b.size(); ++r)
          per_call.b[r] /= row.calls[side][r];
        kernel_hypotheses_[side].push_back(
            {&kernel.per_call.changes[side - 1], std::move(per_call)});
      }
    }
  }

  void judge(std::vector<Hypothesis>& hypotheses) {
    std::vector<TwoGroups> groups;
    groups.reserve(hypotheses.size());
    for (Hypothesis& one : hypotheses)
      groups.push_back(std::move(one.groups));
    const std::vector<double> p = permutation_test(groups, options_.deals);
    out_.tests = std::max(out_.tests, groups.size());
    for (std::size_t i = 0; i < hypotheses.size(); ++i) {
      Change& change = *hypotheses[i].change;
      change.p = p[i];
      if (const auto interval = ratio_interval(groups[i])) {
        // The ratio is of medians of all runs (of single runs: of all instances), and the interval
        // of the shift between runs (stretches), so the ratio may lie just outside. The interval is
        // widened to it.
        change.low = std::min(interval->low, change.ratio.value_or(interval->low));
        change.high = std::max(interval->high, change.ratio.value_or(interval->high));
        change.confidence = interval->confidence;
      }
      change.standing = standing_of(change, options_.alpha);
    }
  }

  /// A family of its own, whose size costs regions no power.
  void judge_apart(std::vector<std::vector<Hypothesis>>& family) {
    const std::size_t tests = out_.tests;
    for (std::size_t side = 1; side < family.size(); ++side)
      judge(family[side]);
    out_.tests = tests;
  }

  /// What single runs leave to sampling alone is tested from run to run.
  void test_functions_by_runs(const MatchedRegion& region,
                              FunctionScope scope,
                              std::vector<ComparedFunction>& functions) {
    auto& hypotheses =
        scope == FunctionScope::kOwn ? own_function_hypotheses_ : function_hypotheses_;
    for (ComparedFunction& function : functions) {
      for (std::size_t side = 1; side < sides_.size(); ++side) {
        Change& change = function.self.changes[side - 1];
        if (!function.self.values[0] || !function.self.values[side])
          continue;
        change.standing = Standing::kUntested;
        change.low = change.high = change.p = std::nullopt;
        change.confidence = 0;
        auto groups = function_by_runs(region, function.name, scope, side, change.why);
        if (groups)
          hypotheses[side].push_back({&change, std::move(*groups)});
      }
    }
  }

  /// Significant changes first, then by the time that changed in all (the largest change of a count
  /// or share otherwise).
  void sort() {
    const auto weight = [](const ComparedValue& value, double times) {
      std::pair<bool, double> most{false, 0};
      for (const Change& change : value.changes)
        most = std::max(
            most, std::pair(model::is_significant(change), std::abs(change.difference) * times));
      return most;
    };
    const auto of_region = [&](const ComparedRegion& region) {
      if (region.values.empty())
        return std::pair(false, 0.0);
      const ComparedValue& first = region.values.front();
      const bool adds_up = first.per_occurrence || first.unit != "byte";
      return weight(first, adds_up ? region.occurrences[0].value_or(1) : 1);
    };
    std::stable_sort(out_.regions.begin(),
                     out_.regions.end(),
                     [&](const ComparedRegion& x, const ComparedRegion& y) {
                       return of_region(x) > of_region(y);
                     });
    std::stable_sort(out_.kernels.begin(),
                     out_.kernels.end(),
                     [&](const ComparedKernel& x, const ComparedKernel& y) {
                       const auto of = [&](const ComparedKernel& k) {
                         const auto tested = weight(k.total, 1);
                         if (tested.second > 0)
                           return tested;
                         double most = 0;  // only on some sides: its time there
                         for (const auto& total : k.total.values)
                           most = std::max(most, total.value_or(0));
                         return std::pair(false,
                                          k.total.values[0] && k.total.values.back() ? 0.0 : most);
                       };
                       return of(x) > of(y);
                     });
  }

  base::Result<Comparison> nothing_in_common(const std::vector<MatchedRegion>& matched) const {
    std::vector<std::string> has(sides_.size());
    for (const MatchedRegion& region : matched) {
      if (!model::is_range(region))
        continue;
      for (std::size_t s = 0; s < sides_.size(); ++s) {
        const bool here =
            std::any_of(region.of[s].begin(), region.of[s].end(), [](const auto* r) { return r; });
        if (here && has[s].size() < 60)
          has[s] += (has[s].empty() ? "" : ", ") + region.path.back();
      }
    }
    std::string what = "no region is on all sides";
    for (std::size_t s = 0; s < sides_.size(); ++s)
      what += (s == 0 ? ": " : "; ") + sides_[s].label + " has " +
              (has[s].empty() ? "none" : base::printable(has[s]));
    return base::fail(
        base::Code::kNotComparable,
        what,
        {},
        "Compare runs of the same program; --rename OLD=NEW joins ranges whose names changed");
  }

  std::span<const Side> sides_;
  const CompareOptions& options_;
  Comparison out_;
  ChainSides chains_;
  std::vector<std::string> values_;
  std::vector<std::vector<Hypothesis>> hypotheses_, kernel_hypotheses_, function_hypotheses_,
      own_function_hypotheses_;
  bool by_runs_ = false, partial_ = false, common_kernel_ = false;
};

}  // namespace

base::Result<Comparison> compare(std::span<const Side> sides, const CompareOptions& options) {
  if (sides.size() < 2)
    return base::fail(base::Code::kUsage,
                      "a comparison takes two sides",
                      {},
                      "Name two runs: rangescope compare A B");
  for (const Side& side : sides) {
    if (side.runs.empty())
      return base::fail(base::Code::kNoInput, "there is no run in it", side.label);
  }
  return Comparer(sides, options).run();
}

}  // namespace rangescope::analyze
