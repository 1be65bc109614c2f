#include "report/formats.hpp"

#include <cmath>
#include <span>
#include <string_view>

#include "model/advice.hpp"
#include "model/measure.hpp"
#include "report/document/findings.hpp"
#include "report/document/json_writer.hpp"
#include "report/document/memory/memory_page.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {
namespace {

using model::GpuWork;
using model::Region;

constexpr std::string_view kSchema = "rangescope.report/1";

void spread(JsonWriter& json, std::string_view name, const model::Spread& value) {
  json.line_object(name, "min", value.min, "median", value.median, "p95", value.p95, "max",
                   value.max, "mean", value.mean, "stddev", value.stddev);
}

// Every measure whose tag begins with `prefix`, a dot in the rest opening an object: the tags of
// model/measure.hpp are the paths of this file.
void measures(JsonWriter& json, const Region& region, std::string_view prefix) {
  std::string_view group;
  for (const model::Measure& measure : model::measures()) {
    if (!measure.tag.starts_with(prefix)) continue;
    std::string_view name = measure.tag.substr(prefix.size());
    const auto dot = name.find('.');
    const std::string_view wanted =
        dot == std::string_view::npos ? std::string_view{} : name.substr(0, dot);
    if (wanted != group) {
      if (!group.empty()) json.close();
      group = wanted;
      if (!group.empty()) json.open_line_object(group);
    }
    if (dot != std::string_view::npos) name.remove_prefix(dot + 1);
    json.field(name, measure.get(region));
  }
  if (!group.empty()) json.close();
}

void stalls(JsonWriter& json, const model::Stalls& of) {
  json.open_line_object("stalls");
  json.field("samples", of.samples);
  json.line_objects("reasons", of.reasons, [&](const model::StallShare& each) {
    json.fields("reason", each.reason, "share", each.share);
  });
  json.line_objects("lines", of.lines, [&](const model::StallLine& line) {
    json.fields("file", or_null(line.file), "line", or_null(line.line), "function", line.function,
                "offset", line.offset, "share", line.share, "reason", line.reason, "reason_share",
                line.reason_share);
  });
  json.field("saves_at_most_ns", of.saves_ns);
  json.close();
}

void kernel_rows(JsonWriter& json, std::string_view name,
                 const std::vector<model::KernelRow>& rows) {
  json.line_objects(name, rows, [&](const model::KernelRow& row) {
    json.fields("name", row.name, "short_name", row.short_name, "label", row.label, "calls",
                row.calls, "total_ns", row.total_ns);
    spread(json, "duration_ns", row.duration_ns);
    json.fields("share", row.share, "grid", row.shape.grid, "block", row.shape.block, "cluster",
                row.shape.cluster, "registers_per_thread", row.shape.registers_per_thread,
                "static_shared_bytes", row.shape.static_shared_bytes, "dynamic_shared_bytes",
                row.shape.dynamic_shared_bytes, "shapes", row.shapes, "nccl", row.nccl);
    if (!row.metrics.empty()) write_metrics(json, row.metrics);
    if (row.stalls) stalls(json, *row.stalls);
  });
}

void gpu(JsonWriter& json, std::string_view name, const base::Held<GpuWork>& work,
         const Region& region) {
  if (!work) return json.null_field(name);
  json.open_object(name);
  json.fields("partial", work->partial, "recorded_occurrences", work->recorded_occurrences);
  measures(json, region, "gpu.");
  spread(json, "kernel_ns_per_occurrence", work->kernel_ns_per_occurrence);
  spread(json, "busy_ns_per_occurrence", work->busy_ns_per_occurrence);
  write_copies(json, "copies_by_kind", work->copies_by_kind);
  kernel_rows(json, "top_kernels", work->top_kernels);
  json.close();
}

// Work that is no region's: it goes through the same measures.
void gpu(JsonWriter& json, std::string_view name, const base::Held<GpuWork>& work) {
  Region holder;
  holder.gpu = work;
  gpu(json, name, work, holder);
}

void place(JsonWriter& json, std::string_view name, const model::CodePlace& of) {
  if (!of.known()) return json.null_field(name);
  json.line_object(name, "function", of.name, "file", or_null(of.file), "line", or_null(of.line));
}

/// Functions of the program's own files, with the time of the libraries that they call.
void own_functions(JsonWriter& json, const std::vector<model::CpuFunction>& list) {
  if (list.empty()) return;
  json.line_objects("own_functions", list, [&](const model::CpuFunction& function) {
    json.fields("function", function.name, "file", or_null(function.file));
    json.fields("line", or_null(function.line), "cpu_ns", function.self_ns);
  });
}

/// Nothing where no wait was recorded with its functions.
void waits(JsonWriter& json, const std::vector<model::CpuWaitRow>& list) {
  if (list.empty()) return;
  json.objects("waits", list, [&](const model::CpuWaitRow& wait) {
    json.field("kind", name_of(wait.kind));
    place(json, "place", wait.place);
    json.fields("own", wait.own, "idle", wait.idle, "event_loop", wait.event_loop, "to_the_end",
                wait.to_the_end);
    json.fields("count", wait.count, "threads", wait.threads);
    json.fields("total_ns", wait.total_ns, "blocked_ns", wait.blocked_ns);
    place(json, "held_while_running", wait.meanwhile);
  });
}

void cpu_functions(JsonWriter& json, std::string_view name,
                   const std::vector<model::CpuFunction>& list) {
  json.line_objects(name, list, [&](const model::CpuFunction& function) {
    json.fields("name", function.name, "file", or_null(function.file), "line",
                or_null(function.line), "module", or_null(function.module), "python",
                function.python, "self_ns", function.self_ns, "total_ns", function.total_ns);
    if (function.hot_line > 0) json.field("hot_line", function.hot_line);
    if (function.caller.known()) place(json, "caller", function.caller);
  });
}

void cpu(JsonWriter& json, std::string_view name, const base::Held<model::CpuWork>& work) {
  if (!work) return;
  const auto split = [&](std::string_view which, double model::CpuPart::*value) {
    json.open_line_object(which);
    for (const model::CpuPart* part : {&work->python, &work->native, &work->cuda, &work->waiting})
      json.field(part->kind, part->*value);
    json.close();
  };
  json.open_object(name);
  json.fields("samples", work->samples, "interval_ns", work->interval_ns);
  split("split", &model::CpuPart::ns);
  split("split_gpu_idle", &model::CpuPart::gpu_idle_ns);
  json.line_objects("parts", work->parts, [&](const model::CpuPart& part) {
    json.fields("kind", part.kind, "name", part.name, "ns", part.ns, "gpu_idle_ns",
                part.gpu_idle_ns);
  });
  cpu_functions(json, "functions", work->functions);
  cpu_functions(json, "callers", work->callers);
  own_functions(json, work->own_functions);
  if (!work->counters.empty())
    json.line_objects("counters", work->counters, [&](const model::CpuCounterSum& sum) {
      json.fields("name", sum.name, "count", sum.count, "deviation", sum.deviation, "records",
                  sum.records);
    });
  if (!work->holders.empty())
    json.line_objects("holders", work->holders, [&](const model::CpuHolder& holder) {
      json.fields("kind", holder.kind, "thread", holder.thread, "range", or_null(holder.range),
                  "doing", or_null(holder.doing), "ns", holder.ns);
    });
  if (work->pool_samples > 0)
    json.line_object("pool", "samples", work->pool_samples, "ns", work->pool_ns);
  json.close();
}

// Nothing where nothing was sampled.
void sampled(JsonWriter& json, const std::vector<model::SampledDevice>& list) {
  if (list.empty()) return;
  json.objects("sampled", list, [&](const model::SampledDevice& device) {
    json.fields("source", device.source, "uuid", device.uuid, "name", device.name, "interval_ns",
                device.interval_ns, "samples", device.samples, "sampled_ns", device.sampled_ns,
                "gaps_ns", device.gaps_ns, "busy_ns", device.busy_ns, "other_ns", device.other_ns,
                "clock", device.clock);
    json.line_objects("sums", device.sums, [&](const model::SampledSum& sum) {
      json.fields("metric", sum.metric, "unit",
                  sum.share ? std::string("ns at full load") : sum.unit, "total", sum.total,
                  "in_ranges", sum.in_ranges, "outside", sum.outside, "idle", sum.idle);
    });
  });
}

void counted_kernels(JsonWriter& json, std::string_view name,
                     const std::vector<model::KernelMetrics>& kernels) {
  json.objects(name, kernels, [&](const model::KernelMetrics& kernel) {
    json.fields("name", kernel.name, "ordinal", kernel.ordinal);
    write_metrics(json, kernel.metrics);
    write_bound(json, kernel.bound);
  });
}

void operators(JsonWriter& json, std::string_view name, const std::vector<model::OperatorRow>& rows,
               bool shapes) {
  json.line_objects(name, rows, [&](const model::OperatorRow& row) {
    json.field("name", row.name);
    if (shapes) json.field("shapes", row.shapes);
    json.fields("calls", row.calls, "cpu_ns", row.cpu_ns, "exclusive_cpu_ns", row.exclusive_cpu_ns,
                "gpu_ns", row.gpu_ns, "exclusive_gpu_ns", row.exclusive_gpu_ns);
  });
}

void samples(JsonWriter& json, const std::vector<model::OccurrenceSample>& list) {
  json.open_line_array("samples");
  for (const model::OccurrenceSample& sample : list)
    json.value(std::array{sample.at_ns, sample.wall_ns, sample.busy_ns});
  json.close();
}

void steady(JsonWriter& json, const Region& region) {
  if (!region.steady) return json.null_field("steady");
  json.open_object("steady");
  json.fields("occurrences", region.steady->occurrences, "left_out", region.steady->left_out,
              "left_out_ns", region.steady->left_out_ns);
  spread(json, "wall_ns", region.steady->wall_ns);
  json.field("gpu_busy_share", region.steady->busy_share);
  json.close();
}

void across(JsonWriter& json, const model::Report& report, const Region& region) {
  if (!region.across) return json.null_field("across");
  const model::Across& value = *region.across;
  const bool process = !value.of_threads && value.slowest < report.processes.size();
  json.line_object("across", "of", value.of_threads ? "threads" : "processes", "parts", value.parts,
                   "min_ns", value.min_ns, "mean_ns", value.mean_ns, "max_ns", value.max_ns,
                   "imbalance", value.imbalance, "slowest",
                   process ? report.processes[value.slowest].pid : value.slowest);
}

void over_ranks(JsonWriter& json, const Region& region) {
  if (region.ranks)
    json.line_object("ranks", "count", region.ranks->count, "mean_ns", region.ranks->mean_ns,
                     "min_ns", region.ranks->min_ns, "max_ns", region.ranks->max_ns, "stddev_ns",
                     region.ranks->stddev_ns, "imbalance", region.ranks->imbalance, "slowest",
                     region.ranks->slowest, "slowest_in", region.ranks->slowest_in, "compared",
                     region.ranks->compared);
  if (!region.communication) return;
  const model::Communication& of = *region.communication;
  json.open_line_object("communication");
  json.fields("calls", of.calls, "time_ns", of.time_ns, "transfer_ns", of.transfer_ns, "wait_ns",
              of.wait_ns, "overlap_ns", of.overlap_ns);
  json.line_objects("held_up_by", of.held_up_by, [&](const auto& cause) {
    json.fields("rank", cause.rank, "calls", cause.calls, "ns", cause.ns);
  });
  json.close();
}

void region_object(JsonWriter& json, const model::Report& report, const Region& region) {
  json.open_object();
  (void)json.take_escaped();
  json.fields("id", region.id, "parent", indexed(region.parent), "depth", region.depth, "path",
              region.path, "domain", region.domain);
  json.fields("name_escaped", json.take_escaped(), "kind", kind_name(region.kind));
  if (region.module) json.field("module", true);
  if (region.sampled()) json.field("sampled", true);
  json.fields("process", pid_of(report, region.process), "process_index", region.process, "thread",
              region.thread);
  for (const model::Measure& measure : model::measures())
    if (measure.tag.find('.') == std::string_view::npos)
      json.field(measure.tag, measure.get(region));
  json.open_line_object("wall_ns");
  measures(json, region, "wall_ns.");
  json.close();
  if (region.wall.unlisted > 0)
    json.line_object("unlisted", "occurrences", region.wall.unlisted, "quantile_error",
                     region.wall.quantile_error);
  steady(json, region);
  across(json, report, region);
  over_ranks(json, region);
  gpu(json, "gpu", region.gpu, region);
  cpu(json, "cpu", region.cpu);
  write_metrics(json, region.metrics);
  counted_kernels(json, "kernels", region.kernels);
  write_roofline(json, region.roofline);
  write_bound(json, region.bound);
  write_utilization(json, region.utilization);
  if (region.memory) {
    json.open_line_object("memory");
    measures(json, region, "memory.");
    json.close();
  }
  if (region.cuda_memory) {
    json.open_line_object("cuda_memory");
    measures(json, region, "cuda_memory.");
    json.close();
  }
  samples(json, region.samples);
  json.field("notes", region.notes);
  json.close();
}

// Tag, unit, source and formula of every number, so that the file explains itself.
void dictionary(JsonWriter& json) {
  json.open_object("measures");
  for (const model::Measure& measure : model::measures())
    json.line_object(measure.tag, "unit", model::unit_name(measure.unit), "source", measure.source,
                     "formula", measure.formula);
  json.close();
}

void outcome(JsonWriter& json, const std::optional<model::Outcome>& after) {
  if (!after) return json.null_field("after");
  json.open_line_object("after");
  json.fields("path", after->path, "region", after->region);
  json.fields("before_ns", after->before_ns, "after_ns", after->after_ns);
  json.field("at_most", after->is_bound);
  json.close();
}

void verdicts(JsonWriter& json, const model::Report& report, std::span<const model::Verdict> list) {
  json.line_objects("verdict", list, [&](const model::Verdict& verdict) {
    json.fields("kind", verdict.kind, "severity", model::weight_name(verdict.severity), "path",
                verdict.path, "region", verdict.region);
    json.fields("process", pid_of(report, verdict.process), "text", verdict.text, "advice",
                or_null(model::advice_for(verdict)), "saves_ns", verdict.saves_ns, "saves_share",
                verdict.saves_share);
    json.fields("saves_low_ns", verdict.saves_low_ns, "saves_high_ns", verdict.saves_high_ns);
    json.field("cure", or_null(verdict.cure));
    outcome(json, verdict.after);
    json.open_line_object("evidence");
    for (const auto& [name, value] : verdict.evidence) json.field(name, value);
    json.close();
    json.field("next", or_null(verdict.next));
  });
}

void outside(JsonWriter& json, const std::optional<model::Outside>& value) {
  if (!value) return json.null_field("outside");
  json.open_line_object("outside");
  json.fields("wall_ns", value->wall_ns, "before_ns", value->before_ns, "between_ns",
              value->between_ns, "after_ns", value->after_ns, "profiler_ns", value->profiler_ns);
  if (value->late_ns > 0) json.field("late_ns", value->late_ns);
  json.close();
}

void predicted_time(JsonWriter& json, const model::PredictedTime& time) {
  json.fields("now_ns", time.now_ns, "after_ns", time.after_ns);
  json.fields("after_low_ns", time.after_low_ns, "after_high_ns", time.after_high_ns);
  json.fields("saves_ns", time.saves_ns(), "at_most", time.is_bound);
  json.field("replay_error", time.replay_error);
}

// What --what-if asked; nothing where it was not given.
void what_if(JsonWriter& json, const base::Held<model::WhatIf>& value) {
  if (!value) return;
  json.open_object("what_if");
  json.line_objects("changes", value->changes, [&](const model::SupposedChange& change) {
    json.fields("change", change.written, "of", change.subject);
  });
  json.open_line_object("run");
  predicted_time(json, value->run);
  json.close();
  json.line_objects("regions", value->regions, [&](const model::PredictedRegion& predicted) {
    json.field("region", predicted.region);
    predicted_time(json, predicted.time);
  });
  json.close();
}

// Ranks, collectives and messages of a parallel job; nothing of one that was none.
void job(const model::Report& report, JsonWriter& json) {
  if (report.ranks.empty()) return;
  json.line_objects("ranks", report.ranks, [&](const model::Rank& rank) {
    json.fields("rank", rank.rank, "local_rank", rank.local_rank, "world_size", or_null(rank.world),
                "host", or_null(rank.host), "device", or_null(rank.device), "pid", rank.pid, "run",
                or_null(rank.run));
    if (rank.clock_offset_ns != 0) json.field("clock_offset_ns", rank.clock_offset_ns);
    if (!rank.card.empty()) json.field("card", rank.card);
    if (rank.time) {
      json.open_line_object("time");
      json.fields("outside_ns", rank.time->outside_ns, "mpi_ns", rank.time->mpi_ns, "wait_ns",
                  rank.time->wait_ns);
      json.close();
    }
    const model::RankWork& work = rank.work;
    if (!work.known) return;
    json.open_line_object("work");
    json.fields("kernels", work.kernels, "kernel_ns", work.kernel_ns, "kernel_threads",
                work.kernel_threads, "copied_bytes", work.copied_bytes);
    if (work.tokens > 0) json.field("tokens", work.tokens);
    json.fields("kernel_pace", work.kernel_pace, "cpu_pace", work.cpu_pace, "cpu_ranges",
                work.cpu_ranges, "slower_ranges", work.slower_ranges, "sm_clock_hz",
                work.sm_clock_hz, "clock_limited", work.clock_limited);
    json.close();
  });
  json.objects("collectives", report.collectives, [&](const model::Collective& one) {
    json.fields("communicator", or_null(one.communicator), "library", one.library, "operation",
                one.operation, "path", one.path, "bytes", one.bytes, "ranks", one.ranks, "calls",
                one.calls, "transfer_ns", one.transfer_ns, "wait_ns", one.wait_ns,
                "algbw_bytes_per_s", one.algorithm_bytes_per_s, "busbw_bytes_per_s",
                one.bus_bytes_per_s, "hidden_share", one.hidden_share);
    json.line_objects("by_rank", one.by_rank, [&](const model::CollectiveOfRank& rank) {
      json.fields("rank", rank.rank, "wait_ns", rank.wait_ns, "late_ns", rank.late_ns,
                  "holds_up_ns", rank.holds_up_ns, "costs_ns", rank.costs_ns, "last", rank.last,
                  "time_ns", rank.time_ns);
      if (!std::isnan(rank.hidden_ns)) json.field("hidden_ns", rank.hidden_ns);
    });
  });
  json.line_objects("messages", report.messages, [&](const model::PointToPoint& row) {
    json.fields("communicator", or_null(row.communicator), "library", row.library, "from", row.from,
                "to", row.to, "path", row.path, "calls", row.calls, "bytes", row.bytes,
                "transfer_ns", row.transfer_ns, "late_sender_ns", row.late_sender_ns,
                "late_receiver_ns", row.late_receiver_ns, "late_senders", row.late_senders,
                "late_receivers", row.late_receivers, "bytes_per_s", row.bytes_per_s);
  });
}

}  // namespace

base::Result<void> export_json(const model::Report& report, const model::Session*, const Style&,
                               Sink& sink) {
  JsonWriter json(sink);
  json.open_object();
  json.field("schema", kSchema);
  verdicts(json, report, report.verdict);
  what_if(json, report.what_if);
  write_run(json, report.run);
  write_processes(json, report.processes);
  job(report, json);
  write_devices(json, report);
  json.open_array("regions");
  for (const Region& region : report.regions) region_object(json, report, region);
  json.close();
  outside(json, report.outside);
  gpu(json, "total", report.total);
  gpu(json, "unattributed", report.unattributed);
  cpu(json, "cpu_outside", report.cpu_outside);
  waits(json, report.waits);
  kernel_rows(json, "kernels", report.kernels);
  if (!report.families.empty())
    json.line_objects("families", report.families, [&](const model::KernelFamily& family) {
      json.fields("name", family.name, "kernels", family.kernels, "calls", family.calls, "total_ns",
                  family.total_ns, "share", family.share);
    });
  counted_kernels(json, "unattributed_results", report.unattributed_results);
  json.objects("kernel_counters", report.kernel_counters, [&](const model::KernelCounters& kernel) {
    json.field("name", kernel.name);
    write_metrics(json, kernel.metrics);
    write_bound(json, kernel.bound);
    write_roofline(json, kernel.roofline);
  });
  if (!report.operators.empty()) operators(json, "operators", report.operators, false);
  if (!report.operators_by_shape.empty())
    operators(json, "operators_by_shape", report.operators_by_shape, true);
  write_memory(json, report);
  write_cuda_memory(json, report);
  sampled(json, report.sampled);
  write_losses(json, report.losses);
  write_findings(json, report.findings);
  json.field("notes", report.notes);
  dictionary(json);
  json.close();
  json.finish();
  return {};
}

// One JSON object a line, for streams and log stores: {"type": "run" | "verdict" | "what_if" |
// "process" | "region" | "total" | "kernel" | "result" | "operator" | "loss" | "finding", ...}.
// What is in them is what the JSON report has at that place.
base::Result<void> export_jsonl(const model::Report& report, const model::Session*, const Style&,
                                Sink& sink) {
  JsonWriter json(sink);
  const auto line = [&json](const char* type, const auto& fill) {
    json.open_line_object();
    json.field("type", type);
    fill();
    json.close();
    json.finish();
  };
  line("run", [&] {
    json.field("schema", kSchema);
    write_run(json, report.run);
    write_devices(json, report);
  });
  for (const model::Verdict& verdict : report.verdict)
    line("verdict", [&] { verdicts(json, report, {&verdict, 1}); });
  if (report.what_if) line("what_if", [&] { what_if(json, report.what_if); });
  for (const model::ReportProcess& process : report.processes)
    line("process", [&] { write_processes(json, {process}); });
  for (const Region& region : report.regions) {
    line("region", [&] {
      json.key("region");
      region_object(json, report, region);
    });
  }
  line("total", [&] {
    gpu(json, "total", report.total);
    gpu(json, "unattributed", report.unattributed);
  });
  for (const model::KernelRow& row : report.kernels)
    line("kernel", [&] { kernel_rows(json, "kernels", {row}); });
  for (const model::KernelMetrics& result : report.unattributed_results)
    line("result", [&] { counted_kernels(json, "unattributed_results", {result}); });
  for (const model::OperatorRow& row : report.operators)
    line("operator", [&] { operators(json, "operators", {row}, false); });
  for (const model::Loss& loss : report.losses) line("loss", [&] { write_losses(json, {loss}); });
  for (const model::Finding& finding : report.findings)
    line("finding", [&] { write_findings(json, {&finding, 1}); });
  return {};
}

}  // namespace rangescope::report
