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
bool has_own_ranges(const Case& known) {
  return std::ranges::any_of(known.report().regions, [](const model::Region& region) {
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

void find_compilation(const Case& known, std::vector<model::Verdict>& out) {
  constexpr std::string_view kXla = "XlaCompile: ";  // as names are folded
  double all = 0;
  std::int64_t compilations = 0;
  const model::Region* longest = nullptr;
  for (const model::Region& region : known.report().regions) {
    if (region.process || region.thread || region.path.size() != 1 ||
        !region.path.front().starts_with(kXla))
      continue;
    all += region.wall.inclusive_ns;
    compilations += region.occurrences;
    if (longest == nullptr || region.wall.inclusive_ns > longest->wall.inclusive_ns)
      longest = &region;
  }
  if (longest == nullptr || !known.matters(all))
    return;
  model::Verdict verdict = known.about_run("compilation", "", all);
  const std::string_view name = std::string_view(longest->path.front()).substr(kXla.size());
  verdict.text = fmt::format("XLA compiles {} programs in {}, {} of the run; {} takes {}",
                             compilations,
                             format_ns(all),
                             share_text(all / known.report().run.duration_ns),
                             base::printable(name),
                             format_ns(longest->wall.inclusive_ns));
  if (longest->occurrences > 1)
    verdict.text += fmt::format(" ({} times)", longest->occurrences);
  verdict.evidence = {{"compile_ns", all},
                      {"compilations", static_cast<double>(compilations)},
                      {"most_times", static_cast<double>(longest->occurrences)}};
  out.push_back(std::move(verdict));
}

void find_outside(const Case& known, std::vector<model::Verdict>& out) {
  const model::Report& report = known.report();
  if (!report.outside || !known.has_timeline())
    return;
  const model::Outside& outside = *report.outside;
  const double run = report.run.duration_ns, share = outside.wall_ns / run;
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
  model::Verdict verdict = known.about_run("outside_ranges", "", idle);
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
      between >= kBetween * loop && known.matters(between) && between >= kMattersOfRun * run;
  const bool bare = 1 - share < kCovered;
  if (!has_own_ranges(known) || (!gaps && !bare))
    verdict.severity = model::Weight::kNote;
  if (gaps && !bare) {  // start and end are what they are; the gaps are in the loop
    verdict.saves_ns = between;
    verdict.saves_share = verdict.evidence["between_share"] = between / run;
  }
  verdict.text = std::move(text);
  verdict.next = known.show("-f perfetto -o trace.pftrace");
  out.push_back(std::move(verdict));
}

void find_kernel(const Case& known, std::vector<model::Verdict>& out) {
  const model::Report& report = known.report();
  if (report.kernels.empty())
    return;
  const model::KernelRow& row = report.kernels.front();
  // With ranges, a kernel alone repeats their line. Without a timeline, the first one is the
  // answer.
  const bool only = report.kernels.size() == 1 && known.has_timeline() && known.rows() > 0;
  const double least = known.has_timeline() ? kOneKernel : kHot;
  if (!(row.share >= least) || only || !known.matters(row.total_ns))
    return;
  const double of_run = known.has_timeline() ? row.total_ns / report.run.duration_ns : 0;
  std::string text =
      fmt::format("{} of {} kernel time{}: {} of {}",
                  share_text(row.share),
                  known.has_timeline() ? "all" : "the measured",
                  known.has_timeline() ? fmt::format(", {} of the run", share_text(of_run)) : "",
                  base::counted(static_cast<std::uint64_t>(row.calls), "call"),
                  format_ns(row.total_ns / static_cast<double>(row.calls)));
  const double saves = row.total_ns;
  model::Verdict verdict = known.about_run("dominant_kernel", "", saves);
  verdict.evidence = {
      {"calls", static_cast<double>(row.calls)}, {"total_ns", row.total_ns}, {"share", row.share}};
  const auto counters =
      std::find_if(report.kernel_counters.begin(),
                   report.kernel_counters.end(),
                   [&](const model::KernelCounters& each) { return each.name == row.name; });
  if (counters != report.kernel_counters.end()) {
    const auto value = [&](const char* name) -> std::optional<double> {
      const auto* metric = model::known_metric(counters->metrics, name);
      if (metric == nullptr)
        return std::nullopt;
      return verdict.evidence[name] = metric->value;
    };
    if (counters->bound && counters->bound->memory && counters->bound->compute) {
      const double most = std::max(*counters->bound->memory, *counters->bound->compute);
      const std::string& kind = counters->bound->kind;
      const std::size_t part = kind.find(": ");
      const bool near = part != std::string::npos && kind != "memory: system";
      text +=
          "; " + bound_text(*counters->bound, near ? ", nearest: " + kind.substr(part + 2) : "");
      verdict.evidence[bound_kind(*counters->bound)] = most;
      verdict.saves_ns = saves * std::max(0.0, 1 - most);
      if (verdict.saves_share)
        *verdict.saves_share *= std::max(0.0, 1 - most);
    }
    if (const auto waves = value("launch__waves_per_multiprocessor"); waves && *waves < kSmallGrid)
      text += fmt::format("; {:.2g} waves", *waves);
    if (const auto occupancy = value("occupancy"); occupancy && *occupancy < kOccupied)
      text += fmt::format("; occupancy {}", share_text(*occupancy));
  }
  verdict.path = row.label.empty() ? row.name : row.label;
  verdict.text = std::move(text);
  verdict.severity = known.has_timeline() ? model::Weight::kNote : model::Weight::kWarning;
  verdict.next = known.measure_again("speed_of_light --per kernel");
  if (verdict.next.empty())
    verdict.next = known.details_of(row.short_name);
  out.push_back(std::move(verdict));
}

/// Whom calls of MPI or NCCL wait for, where that is most of their time; "" else. A library that
/// waits polls: samples show a CPU that works, or threads that want one.
static std::string late_ranks(const model::Region& region) {
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

void find_hot_region(const Case& known, std::vector<model::Verdict>& out) {
  const bool is_explained = std::ranges::any_of(out, [](const model::Verdict& other) {
    return other.kind == "own_function" || other.kind == "own_wait" || other.kind == "deadlock";
  });
  if (is_explained)
    return;  // of a program without ranges, which is its only region
  const model::Report& report = known.report();
  const bool gpu = report.total && (report.total->kernels > 0 || report.total->busy_ns > 0);
  if (gpu && known.has_timeline() && (report.total->partial || std::isnan(report.total->busy_ns)))
    return;
  const auto works =
      [](const model::Region& region) {  // what gives the GPU work is judged by how busy that is
        return region.gpu && (region.gpu->kernels != 0 || region.gpu->copies != 0 ||
                              region.gpu->graph_launches != 0);
      };
  const auto own_ns = [&](const model::Region& region) {
    if (known.has_timeline()) {  // a warm-up has a line of its own
      if (gpu && works(region))
        return 0.0;
      const double warm_up = region.steady ? region.steady->left_out_ns : 0;
      return std::max(0.0, region.wall.exclusive_ns - warm_up);
    }
    if (region.gpu && region.gpu->exclusive_kernel_ns > 0)
      return region.gpu->exclusive_kernel_ns;
    if (region.gpu && region.gpu->kernel_ns > 0)
      return region.gpu->kernel_ns;
    return region.wall.inclusive_ns;  // totals by name: what lies in what is not known
  };
  double best = 0, all = known.inside_ns();
  std::size_t hot = 0;
  const auto top_of = [&](std::size_t row) {
    while (report.rows[row].parent != model::kNone)
      row = report.rows[row].parent;
    return row;
  };
  // A thread that gives the GPU nothing runs beside those that do: tqdm's monitor waits all the
  // time. Ranges of one domain and thread are never side by side, so only what those that work
  // leave can be the cost of one that does not.
  std::map<std::string_view, double> working;
  for (std::size_t row = 0; gpu && known.has_timeline() && row < known.rows(); ++row) {
    const model::Region& region = known.region(row);
    if (report.rows[row].parent != model::kNone || region.kind != model::RangeKind::kPushPop ||
        !works(region))
      continue;
    double& most = working[region.domain];
    most = std::max(most, region.wall.inclusive_ns / known.side_by_side(row));
  }
  const auto look = [&](model::RangeKind kind) {
    for (std::size_t row = 0; row < known.rows(); ++row) {
      if (known.region(row).kind != kind)
        continue;
      double own = own_ns(known.region(row)) / known.side_by_side(row);
      const auto others = working.find(known.region(row).domain);
      if (others != working.end() && kind == model::RangeKind::kPushPop &&
          !works(known.region(top_of(row))))
        own = std::min(own, known.inside_ns() - others->second);
      if (own > best)
        best = own, hot = row;
      if (!known.has_timeline() && own > 0)
        all += own;
    }
  };
  look(model::RangeKind::kPushPop);
  // What a start/end range spends in itself is not known: others lie in it that are no children of
  // it.
  if (best < kHot * all || !known.has_timeline())
    look(model::RangeKind::kStartEnd);
  if (!(best > 0) || best < kHot * all)
    return;
  // Work of others may run meanwhile: only what all of it cannot fill.
  if (gpu && known.has_timeline() && report.total->busy_ns >= kHardlyUsed * best)
    return;
  const double measured = known.has_timeline() ? 0 : known.whole_ns();
  if (!known.has_timeline() &&
      (best >= kAlmostAll * all || (measured > 0 && best >= kAlmostAll * measured)))
    return;
  const model::Region& region = known.region(hot);
  const std::string times =
      region.sampled() || region.occurrences < 1
          ? std::string()
          : ", " + base::counted(static_cast<std::uint64_t>(region.occurrences), "call");
  std::string text;
  std::optional<double> saves;
  if (known.has_timeline()) {
    best =
        std::min(best, known.inside_ns());  // start/end ranges of one name may be open side by side
    saves = best;
    text = fmt::format("{} self time ({}{}{})",
                       share_text(best / known.whole_ns()),
                       format_ns(best),
                       times,
                       gpu && !report.kernels_chosen ? ", no GPU work" : "");
  } else {
    text = fmt::format("most {} of all ranges ({}{})",
                       region.gpu ? "GPU time" : "wall time",
                       format_ns(best),
                       times);
  }
  const bool one = region.id < report.regions.size() && &region == &report.regions[region.id];
  std::optional<model::CpuWork> own;
  if (known.has_timeline() && one && region.cpu)
    own = own_cpu_work(report, region);
  std::string causes = is_communication(region.domain) ? late_ranks(region) : "";
  const bool waits_for_ranks = !causes.empty();
  if (!waits_for_ranks)
    causes = own ? cpu_causes(*own, 0, report.run) : cpu_causes(region, report.run);
  if (!causes.empty())
    text += ": " + causes;
  model::Verdict verdict = known.about("hot_region", hot, std::move(text), saves);
  verdict.severity = known.has_timeline() ? model::Weight::kWarning : model::Weight::kNote;
  verdict.evidence = {{"own_ns", best}, {"share_of_ranges", best / all}};
  if (const model::CpuWork* cpu = own ? &*own : region.cpu ? &*region.cpu : nullptr; cpu != nullptr)
    for (const model::CpuPart* part : {&cpu->python, &cpu->waiting})
      if (cpu->whole_ns() > 0)
        verdict.evidence["cpu_" + part->kind + "_share"] = part->ns / cpu->whole_ns();
  if (region.occurrences > 0)
    verdict.evidence["occurrences"] = static_cast<double>(region.occurrences);
  if (waits_for_ranks)
    verdict.evidence["rank_wait_share"] =
        region.communication->wait_ns / region.communication->time_ns;
  if (waits_for_ranks)
    verdict.next = known.show("--per-rank");
  else if (causes.empty())
    known.show_page(verdict);
  else
    verdict.next = known.show("--cpu " + base::shell_quote(model::path_text(region)));
  out.push_back(std::move(verdict));
}

void find_profiler(const Case& known, std::vector<model::Verdict>& out) {
  const auto added = [&](std::size_t row) { return known.region(row).wall.profiler_ns; };
  const model::Report& report = known.report();
  for (const std::size_t row : known.worst(added, 1)) {
    const model::Region& region = known.region(row);
    const double raw = region.wall.inclusive_ns + region.wall.profiler_ns;
    if (region.wall.profiler_ns < kProfiler * raw)
      continue;
    const bool recording =
        report.operators.empty() && region.wall.recording_ns > region.wall.profiler_ns / 2;
    model::Verdict verdict =
        known.about("profiler_effect",
                    row,
                    fmt::format("{} added {} ({}), already subtracted",
                                recording                   ? "recording its short ranges"
                                : !report.operators.empty() ? "the profiler"
                                                            : "collecting counters",
                                format_ns(region.wall.profiler_ns),
                                share_text(region.wall.profiler_ns / raw)),
                    std::nullopt);
    verdict.severity = model::Weight::kNote;
    verdict.evidence = {{"profiler_ns", region.wall.profiler_ns},
                        {"wall_ns", region.wall.inclusive_ns}};
    if (recording)
      verdict.evidence["recording_ns"] = region.wall.recording_ns;
    out.push_back(std::move(verdict));
  }
  // Recording included: that is what the range is as short as.
  const auto recorded_median = [](const model::Region& region) {
    const auto occurrences = static_cast<double>(std::max<std::int64_t>(1, region.occurrences));
    return region.wall.per_occurrence_ns.median + region.wall.recording_ns / occurrences;
  };
  const auto too_short = [&](std::size_t row) {
    const model::Region& region = known.region(row);
    if (model::is_library_domain(region.domain))
      return 0.0;  // of a library, whose ranges nobody chose
    const double median = recorded_median(region);
    const double all = region.wall.inclusive_ns + region.wall.recording_ns;
    return median > 0 && median < kTooShortNs && region.occurrences >= 3 ? all : 0.0;
  };
  double all = 0;
  for (std::size_t row = 0; row < known.rows(); ++row)
    all += too_short(row);
  if (!known.has_timeline() || !known.matters(all))
    return;
  const auto worst = known.worst(too_short, 1);
  if (worst.empty())
    return;
  const std::size_t row = worst.front();
  const model::Region& region = known.region(row);
  model::Verdict verdict = known.about(
      "too_short",
      row,
      fmt::format("too short to measure: median {} of {}, about the profiler's own cost",
                  format_ns(region.wall.per_occurrence_ns.median),
                  base::counted(static_cast<std::uint64_t>(region.occurrences), "instance")),
      std::nullopt);
  verdict.severity = all >= kHot * known.inside_ns() ? model::Weight::kError : model::Weight::kNote;
  verdict.evidence = {{"wall_ns.median", region.wall.per_occurrence_ns.median},
                      {"wall_ns", region.wall.inclusive_ns},
                      {"recording_ns", region.wall.recording_ns}};
  out.push_back(std::move(verdict));
}

}  // namespace rangescope::analyze
