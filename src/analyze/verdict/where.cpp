// Where the time goes: outside every range, into one kernel, into one region, into the measurement
// itself.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analyze/cpu/cpu.hpp"
#include "analyze/ranks/collectives.hpp"
#include "analyze/statistics/stretches.hpp"
#include "analyze/verdict/rule.hpp"
#include "analyze/verdict/thresholds.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "model/domain.hpp"
#include "model/measure.hpp"

namespace rangescope::analyze {
namespace {

using base::format_ns;

/// Ranges that the program's author chose: not of a library, no calls of modules.
bool has_own_ranges(const Case& facts) {
  return std::ranges::any_of(facts.report().regions, [](const model::Region& region) {
    return !region.module && !model::is_library_domain(region.domain);
  });
}

/// Of a process, before the first range and after the last one.
Spans spans_outside(const model::Report& report, const model::ReportProcess& process) {
  const auto start_ns = static_cast<std::int64_t>(process.start_ns);
  const auto end_ns = static_cast<std::int64_t>(process.end_ns);
  const auto first_range_ns = static_cast<std::int64_t>(report.outside->before_ns);
  const auto last_range_ns =
      static_cast<std::int64_t>(report.run.duration_ns - report.outside->after_ns);
  Spans spans;
  if (start_ns < first_range_ns)
    spans.emplace_back(start_ns, std::min(end_ns, first_range_ns));
  if (end_ns > last_range_ns)
    spans.emplace_back(std::max(start_ns, last_range_ns), end_ns);
  return spans;
}

/// A command without ranges that ran outside of them.
struct OutsideCommand {
  std::string name;
  std::uint64_t processes = 0;
  double ns = 0;  ///< in which at least one of them ran
};

/// The one that ran longest; a process that only waits for others, such as a shell, is none.
OutsideCommand longest_outside_command(const model::Report& report) {
  std::set<std::uint32_t> parents;
  for (const model::ReportProcess& process : report.processes)
    parents.insert(process.parent_pid);
  for (const model::ReportProcess& process : report.other_processes)
    parents.insert(process.parent_pid);
  std::map<std::string, std::pair<Spans, std::uint64_t>> commands;
  for (const model::ReportProcess& process : report.other_processes) {
    const Spans spans = spans_outside(report, process);
    if (parents.contains(process.pid) || spans.empty())
      continue;
    auto& [all_spans, count] = commands[std::string(base::file_name(process.name))];
    all_spans.insert(all_spans.end(), spans.begin(), spans.end());
    ++count;
  }
  OutsideCommand longest;
  for (auto& [name, command] : commands) {
    auto& [spans, count] = command;
    unite(spans);
    double ns = 0;
    for (const auto& [start_ns, end_ns] : spans)
      ns += static_cast<double>(end_ns - start_ns);
    if (ns > longest.ns)
      longest = {name, count, ns};
  }
  return longest;
}

/// "; gzip runs for 901.2 ms of it (9 processes)"; "" where no other command ran long.
std::string outside_command_text(const model::Report& report) {
  constexpr double kWorthNaming = 0.1;
  const OutsideCommand command = longest_outside_command(report);
  if (command.ns < kWorthNaming * report.outside->wall_ns || command.name.empty())
    return {};
  std::string text = "; " + base::printable(command.name) + " runs for " + format_ns(command.ns);
  text += " of it";
  if (command.processes > 1)
    text += fmt::format(" ({} processes)", command.processes);
  return text;
}

}  // namespace

void find_compilation(const Case& facts, std::vector<model::Verdict>& out) {
  constexpr std::string_view kXla = "XlaCompile: ";  // as names are folded
  double compile_ns = 0;
  std::int64_t compilations = 0;
  const model::Region* longest = nullptr;
  for (const model::Region& region : facts.report().regions) {
    const bool is_outermost = !region.process && !region.thread && region.path.size() == 1;
    if (!is_outermost || !region.path.front().starts_with(kXla))
      continue;
    compile_ns += region.wall.inclusive_ns;
    compilations += region.occurrences;
    if (longest == nullptr || region.wall.inclusive_ns > longest->wall.inclusive_ns)
      longest = &region;
  }
  if (longest == nullptr || !facts.matters(compile_ns))
    return;
  model::Verdict verdict = facts.about_run("compilation", "", compile_ns);
  const std::string_view name = std::string_view(longest->path.front()).substr(kXla.size());
  verdict.text = fmt::format("XLA compiles {} programs in {}, {} of the run; {} takes {}",
                             compilations,
                             format_ns(compile_ns),
                             share_text(compile_ns / facts.report().run.duration_ns),
                             base::printable(name),
                             format_ns(longest->wall.inclusive_ns));
  if (longest->occurrences > 1)
    verdict.text += fmt::format(" ({} times)", longest->occurrences);
  verdict.evidence = {{"compile_ns", compile_ns},
                      {"compilations", static_cast<double>(compilations)},
                      {"most_times", static_cast<double>(longest->occurrences)}};
  out.push_back(std::move(verdict));
}

void find_outside(const Case& facts, std::vector<model::Verdict>& out) {
  const model::Report& report = facts.report();
  if (!report.outside || !facts.has_timeline())
    return;
  const model::Outside& outside = *report.outside;
  const double run = report.run.duration_ns;
  const double share = outside.wall_ns / run;
  const double idle =
      outside.wall_ns - outside.late_ns;  // the rest is the work of ranges, which their lines judge
  if (idle / run < kOutside)
    return;
  std::string text =
      fmt::format("{} of the run: {} before the first range, {} between, {} after the last",
                  share_text(share),
                  format_ns(outside.before_ns),
                  format_ns(outside.between_ns),
                  format_ns(outside.after_ns));
  text += outside_command_text(report);
  model::Verdict verdict = facts.about_run("outside_ranges", "", idle);
  verdict.path = "outside ranges";
  verdict.evidence = {{"wall_ns", outside.wall_ns},
                      {"before_ns", outside.before_ns},
                      {"between_ns", outside.between_ns},
                      {"after_ns", outside.after_ns},
                      {"start_share", (outside.before_ns + outside.after_ns) / run}};
  if (report.unattributed && report.unattributed->busy_ns >= 0) {
    const double busy = report.unattributed->busy_ns;
    verdict.evidence["gpu_busy_ns"] = busy;
    if (busy >= kOutside * outside.wall_ns)
      text += "; the GPU is busy " + format_ns(busy) + " of it";
  }
  if (outside.late_ns > 0)
    verdict.evidence["late_ns"] = outside.late_ns;
  if (outside.late_ns >= kMattersOfRun * run)
    text += "; for " + format_ns(outside.late_ns) + " the GPU finishes what ranges launched";
  if (outside.profiler_ns > 0) {
    text += "; the profiler took " + format_ns(outside.profiler_ns) + " more";
    verdict.evidence["profiler_ns"] = outside.profiler_ns;
  }
  const double loop = run - outside.before_ns - outside.after_ns;
  const double between = std::min(outside.between_ns, idle);
  const bool gaps =
      between >= kBetween * loop && facts.matters(between) && between >= kMattersOfRun * run;
  const bool bare = 1 - share < kCovered;
  if (!has_own_ranges(facts) || (!gaps && !bare))
    verdict.severity = model::Weight::kNote;
  if (gaps && !bare) {  // start and end are what they are; the gaps are in the loop
    verdict.saves_ns = between;
    verdict.saves_share = verdict.evidence["between_share"] = between / run;
  }
  verdict.text = std::move(text);
  verdict.next = facts.show("-f perfetto -o trace.pftrace");
  out.push_back(std::move(verdict));
}

namespace {

/// "all kernel time, 12 % of the run", or of which part.
std::string kernel_share_text(const Case& facts, const model::KernelRow& kernel) {
  std::string text = share_text(kernel.share) + " of ";
  if (!facts.has_timeline())
    return text + "the measured kernel time";
  const double of_run = kernel.total_ns / facts.report().run.duration_ns;
  return text + "all kernel time, " + share_text(of_run) + " of the run";
}

/// ", nearest: L2": the level of memory, or the unit, that is nearest to its peak.
std::string nearest_peak_text(const model::Bound& bound) {
  const std::size_t colon = bound.kind.find(": ");
  if (colon == std::string::npos || bound.kind == "memory: system")
    return {};
  return ", nearest: " + bound.kind.substr(colon + 2);
}

/// Adds what counters of the kernel show to the line: what limits it, small grids, low occupancy.
void add_limits_of_kernel(const model::KernelCounters& counters,
                          const model::KernelRow& kernel,
                          model::Verdict& verdict,
                          std::string& text) {
  const auto value = [&](const char* name) -> std::optional<double> {
    const auto* metric = model::known_metric(counters.metrics, name);
    if (metric == nullptr)
      return std::nullopt;
    return verdict.evidence[name] = metric->value;
  };
  if (counters.bound && counters.bound->memory && counters.bound->compute) {
    const model::Bound& bound = *counters.bound;
    const double share_of_peak = std::max(*bound.memory, *bound.compute);
    text += "; " + bound_text(bound, nearest_peak_text(bound));
    verdict.evidence[bound_kind(bound)] = share_of_peak;
    const double above_peak = std::max(0.0, 1 - share_of_peak);
    verdict.saves_ns = kernel.total_ns * above_peak;
    if (verdict.saves_share)
      *verdict.saves_share *= above_peak;
  }
  const auto waves = value("launch__waves_per_multiprocessor");
  if (waves && *waves < kSmallGrid)
    text += fmt::format("; {:.2g} waves", *waves);
  const auto occupancy = value("occupancy");
  if (occupancy && *occupancy < kOccupied)
    text += fmt::format("; occupancy {}", share_text(*occupancy));
}

}  // namespace

void find_kernel(const Case& facts, std::vector<model::Verdict>& out) {
  const model::Report& report = facts.report();
  if (report.kernels.empty())
    return;
  const model::KernelRow& kernel = report.kernels.front();
  // With ranges, a kernel alone repeats their line. Without a timeline, the first one is the
  // answer.
  const bool is_only = report.kernels.size() == 1 && facts.has_timeline() && facts.rows() > 0;
  double min_share = kHot;
  if (facts.has_timeline())
    min_share = kOneKernel;
  if (!(kernel.share >= min_share) || is_only || !facts.matters(kernel.total_ns))
    return;
  const auto calls = static_cast<double>(kernel.calls);
  std::string text = fmt::format("{}: {} of {}",
                                 kernel_share_text(facts, kernel),
                                 base::counted(static_cast<std::uint64_t>(kernel.calls), "call"),
                                 format_ns(kernel.total_ns / calls));
  model::Verdict verdict = facts.about_run("dominant_kernel", "", kernel.total_ns);
  verdict.evidence["calls"] = calls;
  verdict.evidence["total_ns"] = kernel.total_ns;
  verdict.evidence["share"] = kernel.share;
  const auto counters =
      std::ranges::find(report.kernel_counters, kernel.name, &model::KernelCounters::name);
  if (counters != report.kernel_counters.end())
    add_limits_of_kernel(*counters, kernel, verdict, text);
  verdict.path = kernel.label;
  if (kernel.label.empty())
    verdict.path = kernel.name;
  verdict.text = std::move(text);
  verdict.severity = model::Weight::kWarning;
  if (facts.has_timeline())
    verdict.severity = model::Weight::kNote;
  verdict.next = facts.measure_again("speed_of_light --per kernel");
  if (verdict.next.empty())
    verdict.next = facts.details_of(kernel.short_name);
  out.push_back(std::move(verdict));
}

namespace {

/// Whom calls of MPI or NCCL wait for, where that is most of their time; "" else. A library that
/// waits polls: samples show a CPU that works, or threads that want one.
std::string late_ranks(const model::Region& region) {
  if (!region.communication)
    return {};
  const model::Communication& calls = *region.communication;
  if (!(calls.wait_ns >= kMostlyWaits * calls.time_ns) || calls.held_up_by.empty())
    return {};
  const model::Communication::Cause& latest = calls.held_up_by.front();
  return fmt::format("{} waiting for ranks that arrive later, {} of that for rank {}",
                     share_text(calls.wait_ns / calls.time_ns),
                     share_text(latest.ns / calls.wait_ns),
                     latest.rank);
}

bool has_gpu_work(const model::Report& report) {
  return report.total && (report.total->kernels > 0 || report.total->busy_ns > 0);
}

/// Regions that give the GPU work are judged by how busy it is.
bool gives_gpu_work(const model::Region& region) {
  if (!region.gpu)
    return false;
  return region.gpu->kernels != 0 || region.gpu->copies != 0 || region.gpu->graph_launches != 0;
}

/// The region with the most time of its own, and how that compares with all ranges.
class HotRegion {
 public:
  explicit HotRegion(const Case& facts)
      : facts_(facts),
        is_next_to_gpu_work_(facts.has_timeline() && has_gpu_work(facts.report())),
        all_ns_(facts.inside_ns()) {
    if (is_next_to_gpu_work_)
      add_workers();
    add_rows(model::RangeKind::kPushPop);
    // What a start/end range spends in itself is not known: others lie in it that are no children
    // of it.
    if (own_ns_ < kHot * all_ns_ || !facts.has_timeline())
      add_rows(model::RangeKind::kStartEnd);
  }

  [[nodiscard]] std::size_t row() const { return row_; }
  [[nodiscard]] double own_ns() const { return own_ns_; }
  [[nodiscard]] double all_ns() const { return all_ns_; }  ///< of all ranges

  /// Is it large, and not what the GPU's work or the whole measurement says already?
  [[nodiscard]] bool is_worth_a_line() const {
    if (!(own_ns_ > 0) || own_ns_ < kHot * all_ns_)
      return false;
    // Work of others may run meanwhile: only what all of it cannot fill.
    if (is_next_to_gpu_work_)
      return !(facts_.report().total->busy_ns >= kHardlyUsed * own_ns_);
    if (facts_.has_timeline())
      return true;
    const double measured_ns = facts_.whole_ns();
    const bool is_all_measured = measured_ns > 0 && own_ns_ >= kAlmostAll * measured_ns;
    return !is_all_measured && !(own_ns_ >= kAlmostAll * all_ns_);
  }

 private:
  /// A thread that gives the GPU nothing runs next to those that do: tqdm's monitor waits all the
  /// time. Ranges of one domain and thread are never side by side, so only what those that work
  /// leave can be the cost of one that does not.
  void add_workers() {
    for (std::size_t row = 0; row < facts_.rows(); ++row) {
      const model::Region& region = facts_.region(row);
      const bool is_outermost = facts_.report().rows[row].parent == model::kNone;
      const bool is_push_pop = region.kind == model::RangeKind::kPushPop;
      if (!is_outermost || !is_push_pop || !gives_gpu_work(region))
        continue;
      double& longest_ns = working_ns_[region.domain];
      longest_ns = std::max(longest_ns, region.wall.inclusive_ns / facts_.side_by_side(row));
    }
  }

  [[nodiscard]] std::size_t outermost_of(std::size_t row) const {
    while (facts_.report().rows[row].parent != model::kNone)
      row = facts_.report().rows[row].parent;
    return row;
  }

  /// Without a warm-up, which has a line of its own.
  [[nodiscard]] double self_time_ns(const model::Region& region) const {
    if (facts_.has_timeline()) {
      if (is_next_to_gpu_work_ && gives_gpu_work(region))
        return 0;
      double warm_up_ns = 0;
      if (region.steady)
        warm_up_ns = region.steady->left_out_ns;
      return std::max(0.0, region.wall.exclusive_ns - warm_up_ns);
    }
    if (region.gpu && region.gpu->exclusive_kernel_ns > 0)
      return region.gpu->exclusive_kernel_ns;
    if (region.gpu && region.gpu->kernel_ns > 0)
      return region.gpu->kernel_ns;
    return region.wall.inclusive_ns;  // totals by name: what lies in what is not known
  }

  void add_rows(model::RangeKind kind) {
    for (std::size_t row = 0; row < facts_.rows(); ++row) {
      const model::Region& region = facts_.region(row);
      if (region.kind != kind)
        continue;
      double row_ns = self_time_ns(region) / facts_.side_by_side(row);
      const auto working = working_ns_.find(region.domain);
      const bool has_workers = working != working_ns_.end() && kind == model::RangeKind::kPushPop;
      if (has_workers && !gives_gpu_work(facts_.region(outermost_of(row))))
        row_ns = std::min(row_ns, facts_.inside_ns() - working->second);
      if (row_ns > own_ns_) {
        own_ns_ = row_ns;
        row_ = row;
      }
      if (!facts_.has_timeline() && row_ns > 0)
        all_ns_ += row_ns;
    }
  }

  const Case& facts_;
  bool is_next_to_gpu_work_ = false;
  double own_ns_ = 0, all_ns_ = 0;
  std::size_t row_ = 0;
  std::map<std::string_view, double> working_ns_;  ///< by domain
};

/// "12 % self time (1.2 s, 30 calls, no GPU work)", without a timeline "most GPU time of all ranges
/// (1.2 s, 30 calls)".
std::string hot_region_text(const Case& facts, const model::Region& region, double own_ns) {
  const model::Report& report = facts.report();
  std::string amounts = format_ns(own_ns);
  if (!region.sampled() && region.occurrences >= 1)
    amounts += ", " + base::counted(static_cast<std::uint64_t>(region.occurrences), "call");
  if (facts.has_timeline() && has_gpu_work(report) && !report.kernels_chosen)
    amounts += ", no GPU work";
  if (facts.has_timeline())
    return share_text(own_ns / facts.whole_ns()) + " self time (" + amounts + ")";
  std::string_view time = "wall time";
  if (region.gpu)
    time = "GPU time";
  return fmt::format("most {} of all ranges ({})", time, amounts);
}

/// What the CPU does in a region, without the regions inside it where that is known.
class CpuOfRegion {
 public:
  CpuOfRegion(const Case& facts, const model::Region& region) : region_(region) {
    const auto& regions = facts.report().regions;
    const bool is_one_region = region.id < regions.size() && &region == &regions[region.id];
    if (facts.has_timeline() && is_one_region && region.cpu)
      own_ = own_cpu_work(facts.report(), region);
  }

  [[nodiscard]] std::string causes(const model::RunInfo& run) const {
    if (own_)
      return cpu_causes(*own_, 0, run);
    return cpu_causes(region_, run);
  }

  void add_evidence(model::Verdict& verdict) const {
    if (!region_.cpu)
      return;
    const model::CpuWork& cpu = own_ ? *own_ : *region_.cpu;
    if (!(cpu.whole_ns() > 0))
      return;
    for (const model::CpuPart* part : {&cpu.python, &cpu.waiting})
      verdict.evidence["cpu_" + part->kind + "_share"] = part->ns / cpu.whole_ns();
  }

 private:
  const model::Region& region_;
  std::optional<model::CpuWork> own_;
};

}  // namespace

void find_hot_region(const Case& facts, std::vector<model::Verdict>& out) {
  const bool is_explained = std::ranges::any_of(out, [](const model::Verdict& other) {
    return other.kind == "own_function" || other.kind == "own_wait" || other.kind == "deadlock";
  });
  if (is_explained)
    return;  // of a program without ranges, which is its only region
  const model::Report& report = facts.report();
  if (has_gpu_work(report) && facts.has_timeline()) {
    const bool is_busy_time_known = !report.total->partial && !std::isnan(report.total->busy_ns);
    if (!is_busy_time_known)
      return;
  }
  const HotRegion hot(facts);
  if (!hot.is_worth_a_line())
    return;
  const model::Region& region = facts.region(hot.row());
  double own_ns = hot.own_ns();
  std::optional<double> saves;
  if (facts.has_timeline()) {  // start/end ranges of one name may be open side by side
    own_ns = std::min(own_ns, facts.inside_ns());
    saves = own_ns;
  }
  const CpuOfRegion cpu(facts, region);
  std::string causes;
  if (is_communication(region.domain))
    causes = late_ranks(region);
  const bool waits_for_ranks = !causes.empty();
  if (!waits_for_ranks)
    causes = cpu.causes(report.run);
  std::string text = hot_region_text(facts, region, own_ns);
  if (!causes.empty())
    text += ": " + causes;
  model::Verdict verdict = facts.about("hot_region", hot.row(), std::move(text), saves);
  verdict.severity = model::Weight::kNote;
  if (facts.has_timeline())
    verdict.severity = model::Weight::kWarning;
  verdict.evidence = {{"own_ns", own_ns}, {"share_of_ranges", own_ns / hot.all_ns()}};
  cpu.add_evidence(verdict);
  if (region.occurrences > 0)
    verdict.evidence["occurrences"] = static_cast<double>(region.occurrences);
  if (waits_for_ranks) {
    const model::Communication& calls = *region.communication;
    verdict.evidence["rank_wait_share"] = calls.wait_ns / calls.time_ns;
    verdict.next = facts.show("--per-rank");
  } else if (causes.empty()) {
    facts.show_page(verdict);
  } else {
    verdict.next = facts.show("--cpu " + base::shell_quote(model::path_text(region)));
  }
  out.push_back(std::move(verdict));
}

namespace {

/// What was recorded in addition to the region's own time: "recording its short ranges" and others.
std::string_view profiler_cost_name(const model::Report& report, bool is_recording) {
  if (is_recording)
    return "recording its short ranges";
  if (report.operators.empty())
    return "collecting counters";
  return "the profiler";
}

void report_profiler_time(const Case& facts, std::vector<model::Verdict>& out) {
  const auto profiler_ns = [&](std::size_t row) { return facts.region(row).wall.profiler_ns; };
  const model::Report& report = facts.report();
  for (const std::size_t row : facts.worst(profiler_ns, 1)) {
    const model::WallTime& wall = facts.region(row).wall;
    const double measured_ns = wall.inclusive_ns + wall.profiler_ns;
    if (wall.profiler_ns < kProfiler * measured_ns)
      continue;
    const bool is_recording = report.operators.empty() && wall.recording_ns > wall.profiler_ns / 2;
    std::string text = fmt::format("{} added {} ({}), already subtracted",
                                   profiler_cost_name(report, is_recording),
                                   format_ns(wall.profiler_ns),
                                   share_text(wall.profiler_ns / measured_ns));
    model::Verdict verdict = facts.about("profiler_effect", row, std::move(text), std::nullopt);
    verdict.severity = model::Weight::kNote;
    verdict.evidence["profiler_ns"] = wall.profiler_ns;
    verdict.evidence["wall_ns"] = wall.inclusive_ns;
    if (is_recording)
      verdict.evidence["recording_ns"] = wall.recording_ns;
    out.push_back(std::move(verdict));
  }
}

/// Recording included: that is what the range is as short as.
double recorded_median_ns(const model::Region& region) {
  const auto occurrences = static_cast<double>(std::max<std::int64_t>(1, region.occurrences));
  return region.wall.per_occurrence_ns.median + region.wall.recording_ns / occurrences;
}

/// All time of a region whose instances are as short as what recording one costs; else 0.
double too_short_ns(const model::Region& region) {
  if (model::is_library_domain(region.domain))
    return 0;  // its ranges were not chosen for this program
  const double median_ns = recorded_median_ns(region);
  const bool is_too_short = median_ns > 0 && median_ns < kTooShortNs && region.occurrences >= 3;
  if (!is_too_short)
    return 0;
  return region.wall.inclusive_ns + region.wall.recording_ns;
}

void report_short_ranges(const Case& facts, std::vector<model::Verdict>& out) {
  const auto row_ns = [&](std::size_t row) { return too_short_ns(facts.region(row)); };
  double short_ranges_ns = 0;
  for (std::size_t row = 0; row < facts.rows(); ++row)
    short_ranges_ns += row_ns(row);
  if (!facts.has_timeline() || !facts.matters(short_ranges_ns))
    return;
  const auto worst = facts.worst(row_ns, 1);
  if (worst.empty())
    return;
  const std::size_t row = worst.front();
  const model::Region& region = facts.region(row);
  std::string text =
      fmt::format("too short to measure: median {} of {}, about the profiler's own cost",
                  format_ns(region.wall.per_occurrence_ns.median),
                  base::counted(static_cast<std::uint64_t>(region.occurrences), "instance"));
  model::Verdict verdict = facts.about("too_short", row, std::move(text), std::nullopt);
  const bool is_large = short_ranges_ns >= kHot * facts.inside_ns();
  verdict.severity = model::Weight::kNote;
  if (is_large)
    verdict.severity = model::Weight::kError;
  verdict.evidence["wall_ns.median"] = region.wall.per_occurrence_ns.median;
  verdict.evidence["wall_ns"] = region.wall.inclusive_ns;
  verdict.evidence["recording_ns"] = region.wall.recording_ns;
  out.push_back(std::move(verdict));
}

}  // namespace

void find_profiler(const Case& facts, std::vector<model::Verdict>& out) {
  report_profiler_time(facts, out);
  report_short_ranges(facts, out);
}

}  // namespace rangescope::analyze
