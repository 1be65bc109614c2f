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

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values)
    sum += value;
  return sum / static_cast<double>(values.size());
}

/// The stretches of one run: the same value of consecutive sampled occurrences.
std::vector<double> stretches(const DigestRegion& region, const std::string& tag) {
  const std::vector<double>& times = tag.starts_with("gpu.") ? region.busy_ns : region.wall_ns;
  std::vector<double> out;
  for (std::size_t i = 0; i < kStretches; ++i) {
    const std::size_t begin = i * times.size() / kStretches;
    const std::size_t end = (i + 1) * times.size() / kStretches;
    std::vector<double> stretch(times.begin() + static_cast<std::ptrdiff_t>(begin),
                                times.begin() + static_cast<std::ptrdiff_t>(end));
    if (tag == kWall)
      out.push_back(median_of(stretch));
    else if (tag == kFastest)
      out.push_back(*std::min_element(stretch.begin(), stretch.end()));
    else
      out.push_back(mean_of(stretch));
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
    const auto is_judged = [](const Side& judged) {
      return std::ranges::all_of(judged.runs, &model::Digest::judged);
    };
    if (!is_judged(sides_[0]) || !is_judged(sides_[side]))
      return;
    const std::string& label = sides_[side].label;
    note_verdicts_of_one(sides_[side], sides_[0], "new in the verdict of " + label);
    note_verdicts_of_one(sides_[0], sides_[side], "no longer in the verdict of " + label);
  }

  /// Those that most runs of a side have, and none of the other's.
  void note_verdicts_of_one(const Side& side, const Side& other, const std::string& heading) {
    constexpr std::size_t kMostNamed = 3;
    const auto runs_with = [](const Side& searched, const model::Verdict& wanted) {
      return std::ranges::count_if(searched.runs, [&](const model::Digest& run) {
        return std::ranges::any_of(run.verdict, [&](const model::Verdict& verdict) {
          return verdict.kind == wanted.kind && verdict.path == wanted.path;
        });
      });
    };
    const std::ptrdiff_t runs = std::ssize(side.runs);
    std::set<std::pair<std::string, std::string>> seen;
    std::size_t count = 0;
    for (const model::Digest& run : side.runs) {
      for (const model::Verdict& verdict : run.verdict) {
        const bool is_new = seen.emplace(verdict.kind, verdict.path).second;
        if (!is_new || runs_with(other, verdict) > 0 || 2 * runs_with(side, verdict) < runs)
          continue;
        if (++count > kMostNamed)
          continue;
        std::string text = heading + ": " + verdict.kind;
        if (!verdict.path.empty())
          text += " of '" + verdict.path + "'";
        out_.notes.push_back(text + ": " + verdict.text);
      }
    }
    if (count > kMostNamed)
      out_.notes.push_back(fmt::format("{}: {} more", heading, count - kMostNamed));
  }

  void describe() {
    for (const Side& side : sides_) {
      model::ComparedSide compared_side{side.label, side.runs.size(), {}, {}, 0, 0};
      std::vector<double> durations;
      for (const model::Digest& run : side.runs) {
        durations.push_back(run.run.duration_ns);
        if (run.run.signal || run.run.exit_code.value_or(0) != 0)
          ++compared_side.failed;
      }
      compared_side.duration_ns = median(durations).value_or(0);
      if (!side.runs.empty()) {
        compared_side.command = side.runs.front().run.command;
        compared_side.devices = side.runs.front().devices;
      }
      out_.sides.push_back(std::move(compared_side));
      for (std::string& text : cautions(side))
        out_.notes.push_back(std::move(text));
      partial_ = partial_ || std::ranges::any_of(side.runs, &model::Digest::partial_gpu);
    }
    out_.environment = environment_differences(sides_);
    out_.alpha = options_.alpha;
    out_.in_turns = options_.in_turns;
    by_runs_ = true;
    for (std::size_t s = 1; s < sides_.size(); ++s) {
      const double least_p = smallest_p(sides_[0].runs.size(), sides_[s].runs.size());
      by_runs_ = by_runs_ && least_p <= options_.alpha;
    }
    const std::string_view tested = by_runs_ ? "whole runs" : "stretches of instances";
    out_.noise = by_runs_ ? "runs" : "occurrences";
    out_.method = fmt::format(
        "two-sided permutation test of {}, step-down maxT over all values, alpha {}; interval of "
        "the ratio by Hodges and Lehmann",
        tested,
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
    std::string counted_sides = "of one side", to_repeat = base::join(labels, ", ");
    if (labels.size() == sides_.size()) {
      counted_sides = "per side";
      to_repeat = "both sides";
    }
    out_.notes.push_back(fmt::format(
        "noise was estimated from the instances inside the runs: {} {} cannot show differences "
        "from run to run (clocks, a busy machine). Use rangescope profile --repeat {} on {}",
        base::counted(fewest, "run"),
        counted_sides,
        kEnoughRuns,
        to_repeat));
  }

  /// Tags of values.
  struct Tags {
    std::set<std::string> common;  ///< on all sides of some region
    std::set<std::string> known;   ///< anywhere
  };

  [[nodiscard]] Tags tags_of(const std::vector<MatchedRegion>& matched) const {
    Tags tags;
    for (const MatchedRegion& region : matched) {
      std::map<std::string, std::size_t> sides_with;
      for (const auto& runs : region.of) {
        std::set<std::string> of_side;
        for (const DigestRegion* run : runs) {
          if (!run)
            continue;
          for (const auto& [tag, value] : run->values)
            of_side.insert(tag);
        }
        for (const std::string& tag : of_side)
          ++sides_with[tag];
      }
      for (const auto& [tag, count] : sides_with) {
        tags.known.insert(tag);
        const bool is_of_a_part = partial_ && tag.starts_with("gpu.");
        if (count == sides_.size() && !is_of_a_part)
          tags.common.insert(tag);
      }
    }
    return tags;
  }

  base::Result<void> choose_values(const std::vector<MatchedRegion>& matched) {
    const Tags tags = tags_of(matched);
    if (options_.values.empty())
      return choose_usual_values(tags.common);
    for (const std::string& name : options_.values)
      TRY(choose_value(name, tags));
    return {};
  }

  base::Result<void> choose_usual_values(const std::set<std::string>& common) {
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
    for (const std::string_view part : {"time", ""}) {
      const auto metric = std::ranges::find_if(common, [&](const std::string& tag) {
        return tag.starts_with("metrics.") && tag.find(part) != std::string::npos;
      });
      if (metric != common.end()) {
        values_.push_back(*metric);
        return {};
      }
    }
    return base::fail(base::Code::kNotComparable,
                      "the sides have no cost of a region in common",
                      {},
                      "Compare captures of one kind, or name a value: --metric " + *common.begin());
  }

  base::Result<void> choose_value(const std::string& name, const Tags& tags) {
    const model::Measure* measure = model::find_measure(name);
    const std::string tag = measure ? std::string(measure->tag) : name;
    if (tags.common.contains(tag)) {
      values_.push_back(tag);
      return {};
    }
    if (tags.known.contains(tag) || measure) {
      const std::vector<std::string> comparable(tags.common.begin(), tags.common.end());
      std::string hint =
          "Record it on every side, or compare another value: " + base::join(comparable, ", ");
      if (partial_ && tag.starts_with("gpu."))
        hint = "GPU work was recorded for a part of a run only: profile it without --metrics";
      return base::fail(base::Code::kNotComparable,
                        "no region has '" + base::printable(tag) + "' on all sides",
                        {},
                        hint);
    }
    std::vector<std::string> known = model::measure_tags();
    known.insert(known.end(), tags.known.begin(), tags.known.end());
    return base::fail(base::Code::kUsage,
                      "there is no value '" + base::printable(name) + "'",
                      "--metric",
                      base::did_you_mean(name, known));
  }

  void add_region(const MatchedRegion& region) {
    ComparedRegion out;
    out.path = region.path;
    out.domain = region.domain;
    out.kind = region.kind;
    out.renamed_from = region.renamed_from;
    out.is_whole_run = region.is_whole_run;
    out.is_outside_ranges = region.is_outside_ranges;
    for (const auto& runs : region.of)
      out.occurrences.push_back(median_occurrences(runs));
    for (const std::string& tag : values_)
      out.values.push_back(compared(region, tag));
    const bool is_on_all_sides = on_all_sides(region);
    if (is_on_all_sides) {
      out.functions = compare_functions(region, options_.alpha);
      out.own_functions = compare_functions(region, options_.alpha, FunctionScope::kOwn);
    }
    chains_.add(region, out);
    if (!is_on_all_sides) {
      out_.missing.push_back(std::move(out));
      return;
    }
    out_.regions.push_back(std::move(out));
    add_hypotheses(region, out_.regions.back());
  }

  /// Of runs that do not have it, 0; nothing where none has it.
  static std::optional<double> median_occurrences(const std::vector<const DigestRegion*>& runs) {
    std::vector<double> counts;
    bool has_any = false;
    for (const DigestRegion* run : runs) {
      counts.push_back(run ? static_cast<double>(run->occurrences) : 0);
      has_any = has_any || run;
    }
    return has_any ? median(counts) : std::nullopt;
  }

  void add_hypotheses(const MatchedRegion& region, ComparedRegion& out) {
    if (by_runs_) {
      test_functions_by_runs(region, FunctionScope::kAll, out.functions);
      test_functions_by_runs(region, FunctionScope::kOwn, out.own_functions);
    }
    for (std::size_t v = 0; v < values_.size(); ++v) {
      ComparedValue& value = out.values[v];
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
    const std::array tags_of_instances = {kWall,
                                          kFastest,
                                          kBusy,
                                          std::string_view("wall_ns.inclusive"),
                                          std::string_view("wall_ns.mean")};
    const bool has_instances = model::is_range(region) &&
                               std::ranges::find(tags_of_instances, tag) != tags_of_instances.end();
    if (!has_instances) {
      change.why = "one run cannot show how much this value varies";
      return std::nullopt;
    }
    TwoGroups groups;
    for (const std::size_t s : {std::size_t{0}, side}) {
      std::vector<double>& into = s == 0 ? groups.a : groups.b;
      for (const DigestRegion* run : region.of[s]) {
        std::size_t instances = 0;
        if (run)
          instances = tag == kBusy ? run->busy_ns.size() : run->wall_ns.size();
        if (instances < 2 * kStretches) {
          change.why = fmt::format("{} in a run of {}; a test takes {}",
                                   base::counted(instances, "instance"),
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

  /// What a kernel adds up to, by side and run.
  struct KernelSums {
    std::set<std::string> names;
    std::vector<std::vector<double>> calls, total_ns;  // [side][run]

    [[nodiscard]] bool is_in_every_run(std::size_t side) const {
      return std::ranges::all_of(calls[side], [](double count) { return count > 0; });
    }

    /// Time of a call in each run.
    [[nodiscard]] std::vector<double> per_call_ns(std::size_t side) const {
      std::vector<double> values;
      for (std::size_t run = 0; run < calls[side].size(); ++run)
        values.push_back(total_ns[side][run] / calls[side][run]);
      return values;
    }
  };

  /// On how many sides each kernel name is.
  [[nodiscard]] std::map<std::string, std::size_t> sides_with_kernel() const {
    std::map<std::string, std::size_t> sides_with;
    for (const Side& side : sides_) {
      std::set<std::string> names;
      for (const model::Digest& run : side.runs)
        for (const model::DigestKernel& kernel : run.kernels)
          names.insert(kernel.name);
      for (const std::string& name : names)
        ++sides_with[name];
    }
    return sides_with;
  }

  /// Names that every side has stay as they are; the others are merged by their folded name.
  [[nodiscard]] std::map<std::string, KernelSums> sum_up_kernels() const {
    const std::map<std::string, std::size_t> sides_with = sides_with_kernel();
    KernelSums zeros;
    for (const Side& side : sides_) {
      zeros.calls.emplace_back(side.runs.size(), 0.0);
      zeros.total_ns.emplace_back(side.runs.size(), 0.0);
    }
    std::map<std::string, KernelSums> kernels;
    for (std::size_t side = 0; side < sides_.size(); ++side) {
      for (std::size_t run = 0; run < sides_[side].runs.size(); ++run) {
        for (const model::DigestKernel& kernel : sides_[side].runs[run].kernels) {
          const bool is_on_all_sides = sides_with.at(kernel.name) == sides_.size();
          const std::string name = is_on_all_sides ? kernel.name : folded_kernel(kernel.name);
          KernelSums& sums = kernels.try_emplace(name, zeros).first->second;
          sums.names.insert(kernel.name);
          sums.calls[side][run] += static_cast<double>(kernel.calls);
          sums.total_ns[side][run] += kernel.total_ns;
        }
      }
    }
    return kernels;
  }

  void add_kernels() {
    if (partial_)
      return;
    const std::map<std::string, KernelSums> kernels = sum_up_kernels();
    out_.kernels.reserve(kernels.size());
    kernel_hypotheses_.resize(sides_.size());
    for (const auto& [name, sums] : kernels) {
      ComparedKernel& kernel = out_.kernels.emplace_back();
      kernel.folded = sums.names.size() > 1;
      kernel.name = kernel.folded ? name : *sums.names.begin();
      add_kernel_values(sums, kernel);
      for (std::size_t side = 1; side < sides_.size(); ++side)
        if (kernel.total.values[0] && kernel.total.values[side])
          add_kernel_hypotheses(sums, side, kernel);
    }
  }

  void add_kernel_values(const KernelSums& sums, ComparedKernel& kernel) {
    kernel.total.tag = "total_ns";
    kernel.per_call.tag = "ns_per_call";
    kernel.total.title = "total";
    kernel.per_call.title = "a call";
    kernel.total.unit = kernel.per_call.unit = "ns";
    bool is_on_all_sides = true;
    for (std::size_t side = 0; side < sides_.size(); ++side) {
      const double calls = median(sums.calls[side]).value_or(0);
      const double total_ns = median(sums.total_ns[side]).value_or(0);
      if (calls > 0) {
        kernel.calls.emplace_back(calls);
        kernel.total.values.emplace_back(total_ns);
        kernel.per_call.values.emplace_back(total_ns / calls);
        continue;
      }
      is_on_all_sides = false;
      kernel.calls.emplace_back();
      kernel.total.values.emplace_back();
      kernel.per_call.values.emplace_back();
    }
    common_kernel_ = common_kernel_ || is_on_all_sides;
    differences(kernel.total);
    differences(kernel.per_call);
  }

  void add_kernel_hypotheses(const KernelSums& sums, std::size_t side, ComparedKernel& kernel) {
    Change& total = kernel.total.changes[side - 1];
    Change& per_call = kernel.per_call.changes[side - 1];
    if (!by_runs_) {
      total.why = per_call.why = "one run cannot show how much this value varies";
      return;
    }
    kernel_hypotheses_[side].push_back({&total, {sums.total_ns[0], sums.total_ns[side]}});
    if (!sums.is_in_every_run(0) || !sums.is_in_every_run(side)) {
      per_call.why = "not in every run";
      return;
    }
    kernel_hypotheses_[side].push_back({&per_call, {sums.per_call_ns(0), sums.per_call_ns(side)}});
  }

  void judge(std::vector<Hypothesis>& hypotheses) {
    std::vector<TwoGroups> groups;
    groups.reserve(hypotheses.size());
    for (Hypothesis& hypothesis : hypotheses)
      groups.push_back(std::move(hypothesis.groups));
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
    std::ranges::stable_sort(out_.regions, std::ranges::greater{}, weight_of_region);
    std::ranges::stable_sort(out_.kernels, std::ranges::greater{}, weight_of_kernel);
  }

  using Weight = std::pair<bool, double>;  ///< is it significant, how much changed

  static Weight largest_change(const ComparedValue& value, double instances) {
    Weight largest{false, 0};
    for (const Change& change : value.changes) {
      const double in_all = std::abs(change.difference) * instances;
      largest = std::max(largest, Weight(model::is_significant(change), in_all));
    }
    return largest;
  }

  static Weight weight_of_region(const ComparedRegion& region) {
    if (region.values.empty())
      return {false, 0};
    const ComparedValue& first = region.values.front();
    const bool adds_up = first.per_occurrence || first.unit != "byte";
    return largest_change(first, adds_up ? region.occurrences[0].value_or(1) : 1);
  }

  /// Of one that is not on the first and the last side, its time where it is.
  static Weight weight_of_kernel(const ComparedKernel& kernel) {
    const Weight largest = largest_change(kernel.total, 1);
    if (largest.second > 0)
      return largest;
    if (kernel.total.values[0] && kernel.total.values.back())
      return {false, 0};
    double longest_ns = 0;
    for (const auto& total_ns : kernel.total.values)
      longest_ns = std::max(longest_ns, total_ns.value_or(0));
    return {false, longest_ns};
  }

  base::Result<Comparison> nothing_in_common(const std::vector<MatchedRegion>& matched) const {
    std::string text = "no region is on all sides";
    for (std::size_t side = 0; side < sides_.size(); ++side) {
      std::string regions = base::printable(regions_text(matched, side));
      if (regions.empty())
        regions = "none";
      text += side == 0 ? ": " : "; ";
      text += sides_[side].label + " has " + regions;
    }
    return base::fail(
        base::Code::kNotComparable,
        text,
        {},
        "Compare runs of the same program; --rename OLD=NEW joins ranges whose names changed");
  }

  /// "step, forward, backward": the first regions that a side has.
  [[nodiscard]] static std::string regions_text(const std::vector<MatchedRegion>& matched,
                                                std::size_t side) {
    constexpr std::size_t kLong = 60;
    std::string text;
    for (const MatchedRegion& region : matched) {
      if (!model::is_range(region) || text.size() >= kLong)
        continue;
      const bool is_on_side =
          std::ranges::any_of(region.of[side], [](const DigestRegion* run) { return run; });
      if (!is_on_side)
        continue;
      if (!text.empty())
        text += ", ";
      text += region.path.back();
    }
    return text;
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
