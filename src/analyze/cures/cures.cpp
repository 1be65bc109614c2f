#include "analyze/cures/cures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "analyze/cures/candidate.hpp"
#include "analyze/cures/catalog.hpp"
#include "analyze/cures/guest_profiler.hpp"
#include "analyze/cures/part.hpp"
#include "analyze/statistics/stretches.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::analyze::cures {
namespace {

using replay::Graph;

constexpr Family* kFamilies[] = {
    find_frozen_gradients,
    find_gathered_rows,
    find_rows_selected_later,
    find_dense_gradients,
    find_allocations,
    find_attention,
    find_cross_entropy,
    find_one_hot,
    find_one_hot_losses,
    find_normalization,
    find_mask_indexing,
    find_graph_captures,
    find_interpreter_work,
    find_kernels_compiled,
    find_batches_on_main_thread,
    find_own_functions,
    find_small_copies,
    find_pageable_copies,
    find_sample_loops,
    find_stacked_samples,
    find_values_read,
    find_synchronizations,
    find_layout_conversions,
    find_casts,
    find_transposed_copies,
    find_grown_caches,
    find_tensor_by_tensor,
    find_products_one_by_one,
    find_pointwise_chains,
    find_fp32_convolutions,
    find_fp32_products,
    find_unaligned_products,
    find_doubles,
    find_launches,
};

/// Less of the loop is no line: it drowns in the noise of runs.
constexpr double kWorthALine = 0.02;
/// A loop takes that much more or less from run to run on one machine.
constexpr double kRunsDiffer = 0.05;
/// Work that was not recorded, and counters that were collected, leave no timeline to replay.
bool has_timeline(const model::Session& session) {
  const bool has_work = !session.kernels.empty() || !session.copies.empty();
  const bool is_complete = !session.unrecorded.kernels && !session.unrecorded.copies &&
                           !session.unrecorded.calls && session.gpu_pauses.empty();
  return has_work && is_complete && !session.launches.empty();
}

const model::Peaks* peaks_of(const model::Session& session,
                             const Reference& reference,
                             const std::string& device) {
  for (const model::Peaks& peaks : reference.peaks) {
    if (!device.empty() && peaks.id == device)
      return &peaks;
  }
  for (const model::Device& used : session.devices) {
    const model::Peaks* peaks = model::find_peaks(reference.peaks, session.strings.view(used.name));
    if (peaks != nullptr)
      return peaks;
  }
  return nullptr;
}

Machine machine_of(const model::Session& session,
                   const Reference& reference,
                   const std::string& device) {
  std::vector<std::string> names;
  for (const model::Device& used : session.devices)
    names.emplace_back(session.strings.view(used.name));
  return {peaks_of(session, reference, device),
          model::host_link_of(reference.peaks, names),
          reference.replay_costs};
}

/// The loop's threads, or the GPU where that has more to do: a program that never waits for the GPU
/// ends its last step early, but its work is done only when the GPU's is.
double replayed_loop_ns(const Recording& recording, const Graph& graph) {
  const replay::Times times = replay::replay(graph);
  const double threads_ns =
      replay::compare(replay::ReplayedClock(graph, times), recording.loop()).replayed_ns;
  return std::max(threads_ns, recording.busiest_stream_ns(graph));
}

/// A candidate, and what its change saves on top of those before it.
struct Choice {
  const Candidate* candidate = nullptr;
  double before_ns = 0, after_ns = 0, after_low_ns = 0, after_high_ns = 0;

  [[nodiscard]] double saves_ns() const { return before_ns - after_ns; }
};

/// Takes candidates one after the other, each time the one that saves most then. What a candidate
/// saved before others were taken is nearly always the most that it can save behind them, so only
/// the foremost is replayed again.
class Selection {
 public:
  explicit Selection(const Recording& recording)
      : recording_(recording),
        graph_(recording.graph()),
        now_ns_(replayed_loop_ns(recording, graph_)),
        first_ns_(now_ns_) {}

  std::vector<Choice> choose(const std::vector<Candidate>& candidates, std::size_t most) {
    for (const Candidate& candidate : candidates)
      waiting_.push_back(replayed(candidate));
    std::vector<Choice> chosen;
    while (!waiting_.empty() && chosen.size() < most) {
      Choice choice = replayed(*take_best().candidate);
      const bool is_best = std::ranges::all_of(
          waiting_, [&](const Choice& other) { return other.saves_ns() <= choice.saves_ns(); });
      if (choice.saves_ns() < kWorthALine * first_ns_)
        continue;
      if (!is_best) {
        waiting_.push_back(choice);
        continue;
      }
      add_interval(choice);
      if (choice.after_high_ns >= choice.before_ns)
        continue;
      graph_ = changed(*choice.candidate, choice.candidate->parameter.expected);
      now_ns_ = choice.after_ns;
      chosen.push_back(choice);
    }
    return chosen;
  }

 private:
  Graph changed(const Candidate& candidate, double parameter) const {
    return apply(candidate.remedy, recording_.graph(), graph_, parameter);
  }

  Choice replayed(const Candidate& candidate) const {
    const double after_ns =
        replayed_loop_ns(recording_, changed(candidate, candidate.parameter.expected));
    return {&candidate, now_ns_, after_ns, after_ns, after_ns};
  }

  Choice take_best() {
    const auto best = std::ranges::max_element(waiting_, {}, &Choice::saves_ns);
    const Choice choice = *best;
    waiting_.erase(best);
    return choice;
  }

  void add_interval(Choice& choice) const {
    const replay::Parameter& parameter = choice.candidate->parameter;
    for (const double end : {parameter.low, parameter.high}) {
      if (end == parameter.expected)
        continue;
      const double after_ns = replayed_loop_ns(recording_, changed(*choice.candidate, end));
      choice.after_low_ns = std::min(choice.after_low_ns, after_ns);
      choice.after_high_ns = std::max(choice.after_high_ns, after_ns);
    }
    const double replay_error = recording_.predictor().replay_error(recording_.loop());
    const double error_ns = std::max(kRunsDiffer, replay_error) * choice.after_ns;
    choice.after_low_ns = std::max(0.0, choice.after_low_ns - error_ns);
    choice.after_high_ns += error_ns;
  }

  const Recording& recording_;
  Graph graph_;
  double now_ns_, first_ns_;
  std::vector<Choice> waiting_;
};

// ---- Lines

/// How many threads are in the loop at once: what each of them saves, the run saves once.
double side_by_side(const std::vector<Span>& loop) {
  analyze::Spans spans;
  for (const Span& span : loop)
    spans.emplace_back(span.start_ns, span.end_ns);
  const auto sum_of = [](const analyze::Spans& all) {
    double sum_ns = 0;
    for (const auto& [start_ns, end_ns] : all)
      sum_ns += static_cast<double>(end_ns - start_ns);
    return sum_ns;
  };
  const double together_ns = sum_of(spans);
  analyze::unite(spans);
  const double covered_ns = sum_of(spans);
  return covered_ns > 0 ? std::max(1.0, together_ns / covered_ns) : 1;
}

std::optional<std::uint32_t> region_of(const model::Report& report,
                                       const std::vector<std::string>& path) {
  for (std::uint32_t region = 0; region < report.regions.size(); ++region) {
    const model::Region& candidate = report.regions[region];
    const bool is_aggregate = !candidate.process && !candidate.thread && !candidate.module;
    if (is_aggregate && candidate.path == path)
      return region;
  }
  return std::nullopt;
}

/// "all 48 instances of step take": the subject of a time and its verb.
std::string loop_takes(const Recording& recording) {
  if (const std::string steps = recording.steps_text(); !steps.empty())
    return fmt::format("all {} take", steps);
  if (recording.loop_name().empty())
    return "the program takes";
  const std::size_t instances = recording.loop().size();
  if (instances == 1)
    return recording.loop_name() + " takes";
  const char* part = recording.warm_up() > 0 ? "after warm-up, " : "";
  return fmt::format("{}all {} instances of {} take", part, instances, recording.loop_name());
}

/// How much longer the loop is than the part of it that was replayed. A loop that is a range has
/// its time in the report; steps that were found go on as the program's calls do.
double loops_per_part(const Recording& recording,
                      const model::Report& report,
                      double operations_per_part) {
  if (operations_per_part <= 1)
    return 1;
  const auto loop = region_of(report, {recording.loop_name()});
  if (!loop || !recording.steps_text().empty() || recording.loop_ns() <= 0)
    return operations_per_part;
  return std::max(1.0, report.regions[*loop].wall.inclusive_ns / recording.loop_ns());
}

class Lines {
 public:
  /// `operations_per_part`: 1 where the whole session was replayed.
  Lines(const Recording& recording, const model::Report& report, double operations_per_part)
      : recording_(recording),
        report_(report),
        part_(operations_per_part > 1 ? "in the part that was replayed " : ""),
        scale_(loops_per_part(recording, report, operations_per_part)),
        threads_(side_by_side(recording.loop())),
        is_bound_(recording.predictor().replay_error(recording.loop()) > replay::kTrustedError) {}

  [[nodiscard]] model::Verdict line(const Choice& choice, double first_ns) const {
    const Candidate& candidate = *choice.candidate;
    const Cure& cure = cure_of(candidate.cure);
    model::Verdict verdict;
    verdict.kind = "cure";
    verdict.severity = model::Weight::kWarning;
    verdict.cure = candidate.cure;
    verdict.attempt = cure.attempt;
    verdict.evidence = candidate.evidence;
    verdict.evidence["replay_error"] = recording_.predictor().replay_error(recording_.loop());
    const std::vector<std::string> path = recording_.path_of(place_of_change(candidate));
    verdict.path = base::join(path, " > ");
    verdict.region = region_of(report_, path);
    add_saving(choice, verdict);
    verdict.text = text_of(choice, cure, first_ns);
    return verdict;
  }

 private:
  [[nodiscard]] Ids place_of_change(const Candidate& candidate) const {
    if (candidate.remedy.captured.empty())
      return candidate.remedy.operations();
    Ids captured;
    for (const Instance& instance : recording_.instances())
      append(captured, instance.works);
    return captured;
  }

  void add_saving(const Choice& choice, model::Verdict& verdict) const {
    const double run_ns = report_.run.duration_ns;
    const auto of_run_ns = [&](double saves_ns) {
      return std::clamp(scale_ * saves_ns / threads_, 0.0, run_ns);
    };
    verdict.saves_ns = of_run_ns(choice.saves_ns());
    verdict.saves_high_ns = of_run_ns(choice.before_ns - choice.after_low_ns);
    verdict.saves_low_ns = is_bound_ ? 0 : of_run_ns(choice.before_ns - choice.after_high_ns);
    if (run_ns > 0)
      verdict.saves_share = *verdict.saves_ns / run_ns;
    verdict.after = model::Outcome{
        "", std::nullopt, scale_ * choice.before_ns, scale_ * choice.after_ns, is_bound_};
    // Steps that are more than their ranges have no region.
    if (!recording_.steps_text().empty())
      return;
    verdict.after->path = recording_.loop_name();
    verdict.after->region = region_of(report_, {recording_.loop_name()});
  }

  [[nodiscard]] std::string text_of(const Choice& choice, const Cure& cure, double first_ns) const {
    const double saves_ns = choice.saves_ns() / threads_;
    const double error_ns =
        std::max(choice.after_ns - choice.after_low_ns, choice.after_high_ns - choice.after_ns) /
        threads_;
    const double of_loop = choice.saves_ns() / first_ns;
    const double of_run = scale_ * saves_ns / report_.run.duration_ns;
    std::string shares = base::format_share(of_loop);
    constexpr double kSameShare = 0.95;
    if (of_run < kSameShare * of_loop)
      shares += "; " + base::format_share(of_run) + " of the run";
    const std::string saving = is_bound_ ? "at most " + base::format_ns(saves_ns)
                                         : base::format_ns_interval(saves_ns, error_ns);
    const bool is_first = choice.before_ns >= first_ns;
    return fmt::format("{}; {}, {}{} {} instead of {}: saves {}{} ({})",
                       choice.candidate->observation,
                       cure.done,
                       part_,
                       loop_takes(recording_),
                       base::format_ns(choice.after_ns),
                       base::format_ns(choice.before_ns),
                       saving,
                       is_first ? "" : " more",
                       shares);
  }

  const Recording& recording_;
  const model::Report& report_;
  std::string_view part_;
  double scale_;  ///< from the replayed part to the run
  double threads_;
  bool is_bound_;
};

}  // namespace

std::string count_text(const Recording& recording, std::size_t count, std::string_view what) {
  const double count_per_instance = per_instance(recording, count);
  if (count_per_instance < 1)
    return fmt::format("{} {}", count, what);
  return fmt::format("{:.3g} {} per instance", count_per_instance, what);
}

std::vector<Candidate> candidates_of(const Recording& recording) {
  Findings findings(recording);
  for (Family* const find : kFamilies)
    find(recording, findings);
  std::vector<Candidate> candidates = findings.candidates();
  std::erase_if(candidates, [&](const Candidate& candidate) {
    return candidate.remedy.captured.empty() && !recording.goes_on(candidate.remedy.operations());
  });
  return candidates;
}

namespace {

void add_lines(const model::Session& session,
               const Machine& machine,
               double operations_per_part,
               model::Report& report) {
  constexpr std::size_t kMostLines = 5;
  const Recording recording(session, machine);
  if (recording.loop().empty() || recording.instances().empty())
    return;
  const std::vector<Candidate> candidates = candidates_of(recording);
  if (candidates.empty())
    return;
  const std::vector<Choice> choices = Selection(recording).choose(candidates, kMostLines);
  const Lines lines(recording, report, operations_per_part);
  for (const Choice& choice : choices)
    report.verdict.push_back(lines.line(choice, choices.front().before_ns));
}

void add_replayed(const model::Session& session,
                  const Reference& reference,
                  const std::string& device,
                  const Limits& limits,
                  model::Report& report) {
  const Machine machine = machine_of(session, reference, device);
  const std::size_t operations = count_operations(session);
  if (operations <= limits.most_operations)
    return add_lines(session, machine, 1, report);

  const TimeWindow window = middle_of(session, limits.operations_of_part);
  const model::Session part = part_of(session, window);
  const std::size_t replayed = count_operations(part);
  if (replayed == 0)
    return;
  report.notes.push_back(fmt::format(
      "cures were looked for in {} of {} calls, kernels and copies, {} in the middle of the "
      "recording; savings are scaled to all of it",
      base::format_count(static_cast<std::int64_t>(replayed)),
      base::format_count(static_cast<std::int64_t>(operations)),
      base::format_ns(static_cast<double>(window.end_ns - window.start_ns))));
  add_lines(part, machine, static_cast<double>(operations) / static_cast<double>(replayed), report);
}

}  // namespace

void add_cures(const model::Session& session,
               const Reference& reference,
               const std::string& device,
               model::Report& report,
               const Limits& limits) {
  if (has_timeline(session))
    add_replayed(session, reference, device, limits, report);
  add_guest_profiler(report);
}

}  // namespace rangescope::analyze::cures
