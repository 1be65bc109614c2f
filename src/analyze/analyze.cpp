#include "analyze/analyze.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "analyze/chains.hpp"
#include "analyze/counters/derive.hpp"
#include "analyze/counters/measurements.hpp"
#include "analyze/counters/roofline.hpp"
#include "analyze/counters/useful.hpp"
#include "analyze/cpu/cpu.hpp"
#include "analyze/cpu/own/rank_functions.hpp"
#include "analyze/cures/cures.hpp"
#include "analyze/details.hpp"
#include "analyze/gpu/gpu.hpp"
#include "analyze/memory/cuda_memory.hpp"
#include "analyze/memory/memory.hpp"
#include "analyze/names/fold.hpp"
#include "analyze/names/kernel_labels.hpp"
#include "analyze/ranks/clocks.hpp"
#include "analyze/ranks/collectives.hpp"
#include "analyze/ranks/communication.hpp"
#include "analyze/ranks/rank_time.hpp"
#include "analyze/ranks/rank_work.hpp"
#include "analyze/rows.hpp"
#include "analyze/samples/samples.hpp"
#include "analyze/samples/wall_samples.hpp"
#include "analyze/statistics/order.hpp"
#include "analyze/tally/make.hpp"
#include "analyze/time/steady.hpp"
#include "analyze/tree/contexts.hpp"
#include "analyze/tree/recording.hpp"
#include "analyze/tree/regions.hpp"
#include "analyze/tree/select.hpp"
#include "analyze/tree/tree.hpp"
#include "analyze/verdict/verdict.hpp"
#include "analyze/what_if/what_if.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "base/version.hpp"

namespace rangescope::analyze {
namespace {

using model::Report;
using model::Session;

void describe_run(const Session& session, Report& report) {
  report.run.duration_ns = static_cast<double>(length_ns(session.begin_ns, session.end_ns));
  if (session.attached) {
    report.run.attached_pid = session.attached->pid;
    report.run.attached_after_ns = static_cast<double>(session.attached->ran_ns);
  }
  for (const model::Window& window : session.windows)
    report.run.windows.push_back({window.number,
                                  static_cast<double>(window.after_ns),
                                  static_cast<double>(window.length_ns)});
  for (const model::Source& source : session.sources) {
    std::string text = describe(source);
    std::vector<std::string>& sources = report.run.sources;
    if (std::ranges::find(sources, text) == sources.end())
      sources.push_back(std::move(text));
  }
  const model::Clock& clock = session.clock;
  if (clock.anchor_unix_ns != 0)
    report.run.start_unix_ns = clock.anchor_unix_ns - (clock.anchor_ns - session.begin_ns);
  list_machines(session, report);
  for (const model::Range& range : session.ranges) {
    if (range.thread >= session.threads.size())
      continue;
    const std::uint32_t process = session.threads[range.thread].process;
    if (process < report.processes.size())
      ++report.processes[process].ranges;
  }
  for (const model::Unlisted& unlisted : session.unlisted) {
    const model::Thread& thread = session.threads[session.ranges[unlisted.range].thread];
    report.processes[thread.process].ranges += static_cast<std::int64_t>(unlisted.wall.moments.n);
  }
  const std::uint64_t range_count = model::count_ranges(session);
  if (range_count > session.ranges.size())
    report.notes.push_back(fmt::format(
        "timelines show {} of {} ranges ({:.2g} %): the first, last and longest of "
        "each path and some in between. All "
        "numbers cover all ranges; medians and 95th percentiles are within {:.1f} %",
        base::format_count(std::ssize(session.ranges)),
        base::format_count(static_cast<std::int64_t>(range_count)),
        100 * static_cast<double>(session.ranges.size()) / static_cast<double>(range_count),
        100 * model::kRelativeError));
  list_ranks(session, report);
}

void tree_losses(const Tree& tree, const Session& session, Report& report) {
  const auto add =
      [&](model::LossKind kind, std::uint64_t count, const char* one, const char* detail) {
        if (count > 0)
          report.losses.push_back({kind, count, base::counted(count, one) + detail});
      };
  add("unclosed_range",
      tree.unclosed,
      "range",
      " still open when recording stopped: listed with the work inside, but not in the "
      "statistics.");
  for (const Runaway& runaway : tree.runaways) {
    report.losses.push_back(
        {"unbalanced_ranges",
         runaway.count,
         base::counted(runaway.count, "range") + " '" +
             base::printable(session.strings.view(runaway.name)) +
             "' of one thread pushed inside one another and never popped: they are one region. Pop "
             "each where its work ends"});
  }
  if (tree.deep > 0)
    report.notes.push_back(base::counted(tree.deep, "range") + " nested deeper than " +
                           std::to_string(kDeepest) + " are counted at that depth");
  add("crossing_range",
      tree.crossing,
      "push/pop range",
      " overlapping another one of its thread without nesting in it; what both contain counts for "
      "the one that started "
      "later.");
  add("backward_range", tree.backward, "range", " left out: the end is before the start.");
  add("foreign_range",
      tree.foreign,
      "range",
      " left out: of a thread or a domain that the recording does not have.");
}

void note_undecided(std::uint64_t launches, Report& report) {
  if (launches == 0)
    return;
  constexpr const char* kOne = "launch of a thread without ranges is";
  constexpr const char* kMany = "launches of threads without ranges are";
  std::string note = base::counted(launches, kOne, kMany);
  note += " outside ranges: several other threads had one open. ";
  note += "--push-pop-scope process counts such work in each";
  report.notes.push_back(std::move(note));
}

/// Columns of a file that another tool recorded: what the groups make of it, first those that place
/// work under its roof; of a few metrics all.
std::vector<model::MetricColumn> columns_for_recorded(const Session& session,
                                                      const Reference& reference) {
  constexpr std::size_t kFew = 12, kMost = 6;
  std::vector<model::MetricColumn> columns;
  const auto measured = [&](const std::string& name) {
    return std::any_of(session.metrics.begin(),
                       session.metrics.end(),
                       [&](const model::MetricDef& metric) { return metric.name == name; });
  };
  // A range that was measured as a whole has no wall time: that of the GPU comes first.
  const auto is_of_range = [](const model::Measurement& result) {
    return result.scope == model::MeasuredScope::kRange;
  };
  if (std::ranges::any_of(session.measurements, is_of_range) && measured("gpu_time_ns"))
    columns.push_back({"gpu_time_ns", "GPU time"});
  for (const char* wanted :
       {"speed_of_light", "flop_rates", "occupancy", "roofline", "instructions"}) {
    for (const model::MetricGroup& group : reference.groups) {
      for (const model::GroupMetric& metric : group.metrics) {
        const bool is_wanted = group.name == wanted && metric.column && columns.size() < kMost;
        const bool has_column =
            std::ranges::find(columns, metric.name, &model::MetricColumn::name) != columns.end();
        if (is_wanted && !has_column && measured(metric.name))
          columns.push_back({metric.name, metric.title});
      }
    }
  }
  const auto raw = [](const model::MetricDef& metric) {
    return !metric.source.starts_with("derived:");
  };
  const auto count =
      static_cast<std::size_t>(std::count_if(session.metrics.begin(), session.metrics.end(), raw));
  if (count > kFew)
    return columns;
  for (const model::MetricDef& metric : session.metrics)
    if (raw(metric))
      columns.push_back({metric.name, metric.name});
  return columns;
}

/// The best metric of each group, then the second best ..., then those that were asked for by name.
std::vector<model::MetricColumn> columns_asked_for(const Reference& reference) {
  std::vector<model::MetricColumn> columns;
  std::set<std::string> there;
  for (std::size_t rank = 0, left = 1; left > 0;
       ++rank) {  // the best of each group, then the second best ...
    left = 0;
    for (const model::MetricGroup& group : reference.groups) {
      std::vector<const model::GroupMetric*> shown;
      for (const model::GroupMetric& metric : group.metrics) {
        if (metric.column)
          shown.push_back(&metric);
      }
      if (rank >= shown.size())
        continue;
      ++left;
      if (there.insert(shown[rank]->name).second)
        columns.push_back({shown[rank]->name, shown[rank]->title});
    }
  }
  for (const std::string& metric : reference.metrics)
    columns.push_back({metric, metric});
  return columns;
}

std::string reason_without_peaks(const Report& report) {
  if (report.device_names.empty())
    return "no GPU was recorded; --device names one";
  return "no peaks are known for " + base::printable(report.device_names.front()) +
         "; measure them with rangescope metrics calibrate, or name another GPU with --device";
}

const model::Peaks* peaks_by_id(const Reference& reference, const std::string& id) {
  for (const model::Peaks& peaks : reference.peaks)
    if (peaks.id == id)
      return &peaks;
  return nullptr;
}

/// Of the first GPU that is known.
const model::Peaks* peaks_by_name(const Reference& reference,
                                  const std::vector<std::string>& device_names) {
  for (const std::string& name : device_names) {
    const model::Peaks* peaks = model::find_peaks(reference.peaks, name);
    if (peaks != nullptr)
      return peaks;
  }
  return nullptr;
}

const char* note_without_utilization(const model::Peaks* peaks) {
  if (peaks == nullptr)
    return "no utilization: no peaks are known for this GPU (conf/device, calibrate)";
  return "no utilization: executed FLOPs were not measured (profile --metrics roofline does)";
}

/// Roofline, bound and utilization of each region, by the peaks of `device`, else of the first GPU
/// that is known, else those that the results say.
void judge_by_peaks(const Session& session,
                    const Reference& reference,
                    const std::string& device,
                    Report& report) {
  const bool chosen = !device.empty() && device != "auto";
  const model::Peaks* peaks = nullptr;
  if (chosen)
    peaks = peaks_by_id(reference, device);
  else
    peaks = peaks_by_name(reference, report.device_names);
  std::optional<model::Peaks> counted;
  if (peaks == nullptr && !chosen)
    counted = counted_peaks(session);
  if (counted)
    peaks = &*counted;
  add_bounds(report, peaks);
  const auto any = [&](auto has) { return std::ranges::any_of(report.regions, has); };
  const bool has_utilization =
      any([](const model::Region& region) { return region.utilization.has_value(); });
  const auto has_roofline = [](const model::KernelCounters& kernel) {
    return !kernel.roofline.empty();
  };
  const bool is_judged =
      has_utilization || std::ranges::any_of(report.kernel_counters, has_roofline);
  if (any(has_counters) && !is_judged)
    report.notes.push_back(note_without_utilization(peaks));
  const bool has_useful_work = any([](const model::Region& region) {
    const auto& utilization = region.utilization;
    return utilization && (utilization->useful_flop || utilization->useful_bytes);
  });
  if (peaks == nullptr && has_useful_work)
    report.notes.push_back("no MFU: " + reason_without_peaks(report));
  const auto placed = [](const auto& row) { return row.bound && row.bound->memory; };
  const bool compared =
      has_utilization || any(placed) || std::ranges::any_of(report.kernel_counters, placed);
  if (peaks == nullptr || !compared)
    return;
  std::string note = "peaks: " + peaks->name + " (" + peaks->source + ")";
  if (chosen)
    note += ", chosen by --device";
  report.notes.push_back(std::move(note));
}

/// The first kind whose expressions match the kernel's name.
std::string family_name(const std::vector<KernelKind>& kinds, const model::KernelRow& row) {
  std::string_view name = row.name;
  if (name.empty())
    name = row.short_name;
  const auto is_in_name = [&](const auto& regex) { return regex.found_in(name); };
  for (const KernelKind& kind : kinds)
    if (std::ranges::any_of(kind.match, is_in_name))
      return kind.name;
  return "other";
}

void add_families(const std::vector<KernelKind>& kinds, Report& report) {
  std::map<std::string, model::KernelFamily> families;
  double total_ns = 0;
  for (const model::KernelRow& row : report.kernels) {
    if (kinds.empty() || !std::isfinite(row.total_ns))
      return;
    model::KernelFamily& family = families[family_name(kinds, row)];
    ++family.kernels;
    family.calls += row.calls;
    family.total_ns += row.total_ns;
    total_ns += row.total_ns;
  }
  for (auto& [name, family] : families) {
    family.name = name;
    family.share = 0;
    if (total_ns > 0)
      family.share = family.total_ns / total_ns;
    report.families.push_back(std::move(family));
  }
  std::ranges::stable_sort(report.families, std::greater<>(), &model::KernelFamily::total_ns);
}

/// `wall_ns`: of each repetition, two at least.
void add_repeated_wall(const std::vector<double>& wall_ns, model::Region& region) {
  const auto count = static_cast<double>(wall_ns.size());
  double mean_ns = 0;
  for (const double ns : wall_ns)
    mean_ns += ns / count;
  double squares = 0;
  for (const double ns : wall_ns)
    squares += (ns - mean_ns) * (ns - mean_ns);
  const std::string repetitions = base::counted(wall_ns.size(), "repetition");
  model::Metric mean;
  mean.value = mean_ns;
  mean.unit = "ns";
  mean.min = std::ranges::min(wall_ns);
  mean.max = std::ranges::max(wall_ns);
  mean.rounds = std::ssize(wall_ns);
  mean.source = "mean wall time of " + repetitions;
  region.metrics["repeat_wall_ns"] = std::move(mean);
  model::Metric deviation;
  deviation.value = std::sqrt(squares / (count - 1));
  deviation.unit = "ns";
  deviation.min = 0;
  deviation.max = 0;
  deviation.rounds = std::ssize(wall_ns);
  deviation.source = "sample standard deviation over " + repetitions;
  region.metrics["repeat_stddev_ns"] = std::move(deviation);
}

/// Of a repetition: how each region's wall time differs over all of them, as two metrics.
void add_repetitions(const std::vector<model::Digest>& runs, Report& report) {
  if (runs.size() < 2)
    return;
  using Key = std::tuple<std::vector<std::string>, std::string, model::RangeKind>;
  std::map<Key, std::vector<double>> wall_by_region;
  for (const model::Digest& run : runs) {
    for (const model::DigestRegion& region : run.regions) {
      const auto wall = region.values.find("wall_ns.inclusive");
      if (wall != region.values.end())
        wall_by_region[{region.path, region.domain, region.kind}].push_back(wall->second);
    }
  }
  for (model::Region& region : report.regions) {
    if (region.process || region.thread)
      continue;
    const auto found = wall_by_region.find({region.path, region.domain, region.kind});
    if (found != wall_by_region.end() && found->second.size() >= 2)
      add_repeated_wall(found->second, region);
  }
  report.metric_columns.insert(report.metric_columns.begin(),
                               {{"repeat_wall_ns", "mean run"}, {"repeat_stddev_ns", "+- runs"}});
}

/// Behind those of work: of what was measured, then of what was sampled.
void add_metric_columns(const Session& session, const Reference& reference, Report& report) {
  std::vector<model::MetricColumn>& columns = report.metric_columns;
  std::vector<model::MetricColumn> measured;
  if (!session.measurements.empty() && reference.metrics_asked)
    measured = columns_asked_for(reference);
  else if (!session.measurements.empty())
    measured = columns_for_recorded(session, reference);
  columns.insert(columns.end(), measured.begin(), measured.end());
  if (is_light(session) && !session.samples.empty())
    columns.push_back({"gpu_active", "GPU active"});
  for (const model::SampleStream& stream : session.samples) {
    for (const model::SampledMetric& metric : stream.metrics) {
      const bool has_column =
          std::ranges::find(columns, metric.name, &model::MetricColumn::name) != columns.end();
      if (!metric.title.empty() && !has_column)
        columns.push_back({metric.name, metric.title});
    }
  }
}

base::Result<Report> summed_up(const Session& session,
                               const Options& options,
                               Details& details,
                               bool kept);

}  // namespace

std::string describe(const model::Source& source) {
  std::string text = source.format;
  if (!source.tool.empty())
    text += ": " + source.tool;
  if (!source.schema.empty())
    text += ", " + source.schema;
  return text;
}

base::Result<Report> answer(Session& session,
                            const Options& options,
                            const Reference& reference,
                            RunFacts facts,
                            base::Result<tally::Digest>* tally) {
  const FoldNames how = options.fold_names.value_or(FoldNames::kAuto);
  if (options.by_payload)
    name_by_payload(session);
  NameFolder(how, options.ranges).bound(session);
  Details details;
  std::vector<HostClock> clocks;
  std::set<std::uint32_t> ranks;
  for (const model::Process& process : session.processes)
    if (process.rank != kNone)
      ranks.insert(process.rank);
  if (ranks.size() > 1)
    clocks = align_hosts(session, details.calls.emplace(find_collectives(session)));
  if (!session.measurements.empty())
    derive(session, reference.groups);
  if (!session.samples.empty())
    derive_samples(session, reference.sampled);
  // A tally is of all regions, whatever the report is of.
  const bool is_of_all = options.aggregate && options.ranges.empty() && options.kernels.empty() &&
                         !options.backward_with_forward;
  auto report = summed_up(session, options, details, tally != nullptr && is_of_all);
  if (!report)
    return report;
  report->kernels_chosen = !options.kernels.empty();
  if (tally != nullptr && is_of_all)
    *tally = tally::tally_of(session, options, details, *report);
  else if (tally != nullptr)
    *tally = tally::digest_of(session, options);
  describe_clocks(clocks, session, *report);
  add_metric_columns(session, reference, *report);
  add_cpu_metrics(reference.cpu, *report);
  judge_by_peaks(session, reference, options.device, *report);
  add_families(reference.kinds, *report);
  const Regions regions{session, options, details.tree, details.keys, details.by_cell};
  TRY(add_what_if(regions, reference, *report));
  if (is_of_all)
    cures::add_cures(session, reference, options.device, *report);
  finish(std::move(facts), *report);
  return report;
}

model::ReportProcess process_row(const Session& session, const model::Process& process) {
  model::ReportProcess row;
  row.pid = process.pid;
  row.parent_pid = process.parent_pid;
  row.name = std::string(session.strings.view(process.name));
  if (process.rank != kNone)
    row.rank = process.rank;
  row.range_own_ns = process.range_own_ns;
  row.range_pair_ns = process.range_pair_ns;
  row.start_ns = since_ns(session.begin_ns, process.start_ns);
  row.end_ns = since_ns(session.begin_ns, process.end_ns);
  return row;
}

void list_machines(const Session& session, Report& report) {
  for (const model::Process& process : session.processes)
    report.processes.push_back(process_row(session, process));
  for (const model::Process& process : session.other_processes)
    report.other_processes.push_back(process_row(session, process));
  // A recording names every GPU of the machine; one that the program used has a stream.
  std::vector<char> used(session.devices.size());
  for (const model::Stream& stream : session.streams) {
    if (stream.device < used.size())
      used[stream.device] = 1;
  }
  const bool is_any_used = std::ranges::find(used, 1) != used.end();
  for (std::size_t i = 0; i < session.devices.size(); ++i) {
    if (is_any_used && used[i] == 0)
      continue;
    const model::Device& device = session.devices[i];
    report.devices.push_back(device);
    report.device_names.emplace_back(session.strings.view(device.name));
    report.device_uuids.emplace_back(session.strings.view(device.uuid));
  }
}

void finish(RunFacts facts, Report& report) {
  model::RunInfo& info = facts.info;
  if (info.tool.empty())
    info.tool = report.run.tool;
  if (info.tool.empty())
    info.tool = base::tool_version();
  info.duration_ns = report.run.duration_ns;
  if (info.start_unix_ns == 0)
    info.start_unix_ns = report.run.start_unix_ns;
  info.attached_pid = report.run.attached_pid;
  info.attached_after_ns = report.run.attached_after_ns;
  info.windows = std::move(report.run.windows);
  info.sources = std::move(report.run.sources);
  report.run = std::move(info);
  report.notes.insert(report.notes.end(), facts.notes.begin(), facts.notes.end());
  add_repetitions(facts.repetitions, report);
  finish_rows(report);
  add_rank_times(report);
  judge(report, facts.named);
  find_chains(report);
}

void judge_regions(const Reference& reference, const std::string& device, Report& report) {
  judge_by_peaks(Session{}, reference, device, report);
  add_families(reference.kinds, report);
}

namespace {

/// The tree with its nodes, and the contexts of launches where there is GPU work.
Contexts build_linked_tree(const Session& session, const Options& options, Tree& tree) {
  tree = build_tree(session, options.domains, options.threads);
  Contexts contexts;
  if (has_gpu_work(session)) {
    contexts = build_contexts(session, tree, options);
    add_replays(session, options.domains, tree, contexts);
  }
  if (session.ranges.empty())
    add_measured_cells(session, options.domains, tree);
  link_nodes(tree, session);
  take_out_recording(session, tree);
  return contexts;
}

/// What the ranks of a job have to do with each other.
void add_ranks(const Regions& regions, Details& details, Report& report) {
  if (report.ranks.size() < 2)
    return;
  if (!details.calls)
    details.calls = find_collectives(regions.session);
  add_communication(regions, *details.calls, report);
  hold_ranks_together(regions, report);
  add_rank_functions(regions.session, report);
}

/// What the user says that regions do: --flops, --bytes, --work and --tokens.
struct UsefulWork {
  std::vector<UsefulFlop> flops;
  std::vector<UsefulFlop> bytes;
  std::vector<UsefulFlop> units;
};

base::Result<UsefulWork> parse_useful_work(const Options& options) {
  UsefulWork work;
  work.flops = TRY(parse_useful(options.flops));
  work.bytes = TRY(parse_useful(options.bytes));
  work.units = TRY(parse_work(options.work, options.tokens));
  return work;
}

/// Phases and steady state of regions, by how long each occurrence kept the GPU busy.
void add_phases(const Regions& regions,
                std::vector<std::uint64_t> busy,
                Details& details,
                Report& report) {
  const Session& session = regions.session;
  const bool is_busy_unknown = session.unrecorded.kernels || session.unrecorded.copies;
  if (is_busy_unknown)
    busy.clear();
  details.phases = find_phases(session, regions.tree, details.by_cell, busy);
  if (!session.ranges.empty())
    add_steady(regions, busy, details.phases, report);
}

bool has_only_summaries(const Session& session) {
  return session.ranges.empty() && session.kernels.empty() && session.measurements.empty();
}

base::Result<Report> summed_up(const Session& session,
                               const Options& options,
                               Details& details,
                               bool kept) {
  Report report;
  const UsefulWork work = TRY(parse_useful_work(options));
  describe_run(session, report);
  report.losses = session.losses;
  if (!session.summary.empty()) {
    if (has_only_summaries(session)) {
      TRY(add_summaries(session, options, report));
      add_rows(nullptr, {}, report);
      tell_kernels_apart(report);
      return report;
    }
    report.notes.emplace_back(
        "Totals by name (nsys stats tables) were left out: the other inputs have more detail.");
  }

  Tree& tree = details.tree;
  const Contexts contexts = build_linked_tree(session, options, tree);
  tree_losses(tree, session, report);
  const auto selected = TRY(select_nodes(tree, session, options, report.notes));
  const auto kernels = TRY(select_kernels(session, options, report.notes));

  details.keys = plan_regions(tree, session, options, selected);
  details.by_cell =
      bucket_sort(tree.cell.size(), tree.cells.size(), [&](std::size_t o) { return tree.cell[o]; });
  const Regions regions{session, options, tree, details.keys, details.by_cell};
  std::vector<std::vector<std::uint32_t>> sampled;
  report.regions = wall_regions(regions, sampled);
  std::vector<std::uint64_t> busy;
  if (has_gpu_work(session))
    busy = add_gpu_work(regions, contexts, sampled, kernels, report, kept ? &details.gpu : nullptr);
  note_undecided(contexts.undecided_launches, report);
  base::Held<model::CpuWork> cpu_of_program;  // of all threads, where there is no range
  add_cpu(session, options, tree, contexts, details.keys, report, cpu_of_program);
  add_memory(regions, report);
  add_cuda_memory(regions, contexts, report);
  if (session.unrecorded.kernels)
    add_projections(regions, report);
  add_phases(regions, std::move(busy), details, report);
  add_useful(work.flops, &model::Utilization::useful_flop, regions, report);
  add_useful(work.bytes, &model::Utilization::useful_bytes, regions, report);
  add_measurements(regions, kernels, report);
  if (is_light(session))
    add_wall_samples(regions, report);
  add_given_work(work.units, regions, report);
  add_kernel_counters(session, kernels, report);
  make_program_region(session, std::move(cpu_of_program), report);
  add_rows(&regions, details.phases, report);
  add_ranks(regions, details, report);
  tell_kernels_apart(report);
  add_operators(session, report);
  return report;
}

}  // namespace

base::Result<Report> analyze(const Session& session, const Options& options) {
  Details details;
  return summed_up(session, options, details, false);
}

base::Result<Report> analyze(const Session& session, const Options& options, Details& details) {
  return summed_up(session, options, details, true);
}

}  // namespace rangescope::analyze
