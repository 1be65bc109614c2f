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

void write_spread(JsonWriter& json, std::string_view name, const model::Spread& value) {
  json.open_line_object(name);
  json.field("min", value.min);
  json.field("median", value.median);
  json.field("p95", value.p95);
  json.field("max", value.max);
  json.field("mean", value.mean);
  json.field("stddev", value.stddev);
  json.close();
}

// Every measure whose tag starts with `prefix`. A dot in the rest of the tag opens an object: the
// tags of model/measure.hpp are the paths of this file.
void write_measures(JsonWriter& json, const Region& region, std::string_view prefix) {
  std::string_view group;
  for (const model::Measure& measure : model::measures()) {
    if (!measure.tag.starts_with(prefix))
      continue;
    std::string_view name = measure.tag.substr(prefix.size());
    std::string_view group_of_measure;
    if (const auto dot = name.find('.'); dot != std::string_view::npos) {
      group_of_measure = name.substr(0, dot);
      name.remove_prefix(dot + 1);
    }
    if (group_of_measure != group) {
      if (!group.empty())
        json.close();
      group = group_of_measure;
      if (!group.empty())
        json.open_line_object(group);
    }
    json.field(name, measure.get(region));
  }
  if (!group.empty())
    json.close();
}

void write_stalls(JsonWriter& json, const model::Stalls& stalls) {
  json.open_line_object("stalls");
  json.field("samples", stalls.samples);
  json.line_objects("reasons", stalls.reasons, [&](const model::StallShare& reason) {
    json.field("reason", reason.reason);
    json.field("share", reason.share);
  });
  json.line_objects("lines", stalls.lines, [&](const model::StallLine& line) {
    json.field("file", or_null(line.file));
    json.field("line", or_null(line.line));
    json.field("function", line.function);
    json.field("offset", line.offset);
    json.field("share", line.share);
    json.field("reason", line.reason);
    json.field("reason_share", line.reason_share);
  });
  json.field("saves_at_most_ns", stalls.saves_ns);
  json.close();
}

void write_kernel_rows(JsonWriter& json,
                       std::string_view name,
                       const std::vector<model::KernelRow>& rows) {
  json.line_objects(name, rows, [&](const model::KernelRow& row) {
    json.field("name", row.name);
    json.field("short_name", row.short_name);
    json.field("label", row.label);
    json.field("calls", row.calls);
    json.field("total_ns", row.total_ns);
    write_spread(json, "duration_ns", row.duration_ns);
    json.field("share", row.share);
    json.field("grid", row.shape.grid);
    json.field("block", row.shape.block);
    json.field("cluster", row.shape.cluster);
    json.field("registers_per_thread", row.shape.registers_per_thread);
    json.field("static_shared_bytes", row.shape.static_shared_bytes);
    json.field("dynamic_shared_bytes", row.shape.dynamic_shared_bytes);
    json.field("shapes", row.shapes);
    json.field("nccl", row.nccl);
    if (!row.metrics.empty())
      write_metrics(json, row.metrics);
    if (row.stalls)
      write_stalls(json, *row.stalls);
  });
}

void write_gpu(JsonWriter& json,
               std::string_view name,
               const base::Held<GpuWork>& work,
               const Region& region) {
  if (!work)
    return json.null_field(name);
  json.open_object(name);
  json.field("partial", work->partial);
  json.field("recorded_occurrences", work->recorded_occurrences);
  write_measures(json, region, "gpu.");
  write_spread(json, "kernel_ns_per_occurrence", work->kernel_ns_per_occurrence);
  write_spread(json, "busy_ns_per_occurrence", work->busy_ns_per_occurrence);
  write_copies(json, "copies_by_kind", work->copies_by_kind);
  write_kernel_rows(json, "top_kernels", work->top_kernels);
  json.close();
}

// GPU work that belongs to no region: a region around it gives it the same measures.
void write_gpu(JsonWriter& json, std::string_view name, const base::Held<GpuWork>& work) {
  Region region;
  region.gpu = work;
  write_gpu(json, name, work, region);
}

void write_place(JsonWriter& json, std::string_view name, const model::CodePlace& place) {
  if (!place.known())
    return json.null_field(name);
  json.open_line_object(name);
  json.field("function", place.name);
  json.field("file", or_null(place.file));
  json.field("line", or_null(place.line));
  json.close();
}

/// Functions of the program's own files, with the time of the libraries that they call.
void write_own_functions(JsonWriter& json, const std::vector<model::CpuFunction>& list) {
  json.line_objects("own_functions", list, [&](const model::CpuFunction& function) {
    json.field("function", function.name);
    json.field("file", or_null(function.file));
    json.field("line", or_null(function.line));
    json.field("module", or_null(function.module));
    json.field("python", function.python);
    json.field("cpu_ns", function.self_ns);
    if (function.event_loop_ns > 0)
      json.field("event_loop_ns", function.event_loop_ns);
  });
}

/// Nothing without waits.
void write_waits(JsonWriter& json, const std::vector<model::CpuWaitRow>& list) {
  if (list.empty())
    return;
  json.objects("waits", list, [&](const model::CpuWaitRow& wait) {
    json.field("kind", name_of(wait.kind));
    write_place(json, "place", wait.place);
    json.field("own", wait.own);
    json.field("idle", wait.idle);
    json.field("event_loop", wait.event_loop);
    json.field("to_the_end", wait.to_the_end);
    json.field("count", wait.count);
    json.field("threads", wait.threads);
    json.field("total_ns", wait.total_ns);
    json.field("blocked_ns", wait.blocked_ns);
    write_place(json, "held_while_running", wait.meanwhile);
    if (wait.holder_waits.known()) {
      write_place(json, "held_while_waiting", wait.holder_waits);
      json.field("held_while_waiting_for", name_of(wait.holder_waits_for));
    }
    if (wait.holds_up.known())
      write_place(json, "holds_up", wait.holds_up);
  });
}

void write_cpu_functions(JsonWriter& json,
                         std::string_view name,
                         const std::vector<model::CpuFunction>& list) {
  json.line_objects(name, list, [&](const model::CpuFunction& function) {
    json.field("name", function.name);
    json.field("file", or_null(function.file));
    json.field("line", or_null(function.line));
    json.field("module", or_null(function.module));
    json.field("python", function.python);
    json.field("self_ns", function.self_ns);
    json.field("total_ns", function.total_ns);
    if (function.hot_line > 0)
      json.field("hot_line", function.hot_line);
    if (function.caller.known())
      write_place(json, "caller", function.caller);
  });
}

void write_cpu(JsonWriter& json, std::string_view name, const base::Held<model::CpuWork>& work) {
  if (!work)
    return;
  const auto split = [&](std::string_view name_of_split, double model::CpuPart::*value) {
    json.open_line_object(name_of_split);
    for (const model::CpuPart* part : {&work->python, &work->native, &work->cuda, &work->waiting})
      json.field(part->kind, part->*value);
    json.close();
  };
  json.open_object(name);
  json.field("samples", work->samples);
  json.field("interval_ns", work->interval_ns);
  split("split", &model::CpuPart::ns);
  split("split_gpu_idle", &model::CpuPart::gpu_idle_ns);
  json.line_objects("parts", work->parts, [&](const model::CpuPart& part) {
    json.field("kind", part.kind);
    json.field("name", part.name);
    json.field("ns", part.ns);
    json.field("gpu_idle_ns", part.gpu_idle_ns);
  });
  write_cpu_functions(json, "functions", work->functions);
  write_cpu_functions(json, "callers", work->callers);
  write_own_functions(json, work->own_functions);
  if (!work->counters.empty())
    json.line_objects("counters", work->counters, [&](const model::CpuCounterSum& sum) {
      json.field("name", sum.name);
      json.field("count", sum.count);
      json.field("deviation", sum.deviation);
      json.field("records", sum.records);
    });
  if (!work->holders.empty())
    json.line_objects("holders", work->holders, [&](const model::CpuHolder& holder) {
      json.field("kind", holder.kind);
      json.field("thread", holder.thread);
      json.field("range", or_null(holder.range));
      json.field("doing", or_null(holder.doing));
      json.field("ns", holder.ns);
    });
  if (work->pool_samples > 0)
    json.line_object("pool", "samples", work->pool_samples, "ns", work->pool_ns);
  json.close();
}

// Nothing without samples.
void write_sampled_devices(JsonWriter& json, const std::vector<model::SampledDevice>& list) {
  if (list.empty())
    return;
  json.objects("sampled", list, [&](const model::SampledDevice& device) {
    json.field("source", device.source);
    json.field("uuid", device.uuid);
    json.field("name", device.name);
    json.field("interval_ns", device.interval_ns);
    json.field("samples", device.samples);
    json.field("sampled_ns", device.sampled_ns);
    json.field("gaps_ns", device.gaps_ns);
    json.field("busy_ns", device.busy_ns);
    json.field("other_ns", device.other_ns);
    json.field("clock", device.clock);
    json.line_objects("sums", device.sums, [&](const model::SampledSum& sum) {
      json.field("metric", sum.metric);
      if (sum.share)
        json.field("unit", "ns at full load");
      else
        json.field("unit", sum.unit);
      json.field("total", sum.total);
      json.field("in_ranges", sum.in_ranges);
      json.field("outside", sum.outside);
      json.field("idle", sum.idle);
    });
  });
}

void write_kernel_metrics(JsonWriter& json,
                          std::string_view name,
                          const std::vector<model::KernelMetrics>& kernels) {
  json.objects(name, kernels, [&](const model::KernelMetrics& kernel) {
    json.field("name", kernel.name);
    json.field("ordinal", kernel.ordinal);
    write_metrics(json, kernel.metrics);
    write_bound(json, kernel.bound);
  });
}

void write_operators(JsonWriter& json,
                     std::string_view name,
                     const std::vector<model::OperatorRow>& rows,
                     bool shapes) {
  json.line_objects(name, rows, [&](const model::OperatorRow& row) {
    json.field("name", row.name);
    if (shapes)
      json.field("shapes", row.shapes);
    json.field("calls", row.calls);
    json.field("cpu_ns", row.cpu_ns);
    json.field("exclusive_cpu_ns", row.exclusive_cpu_ns);
    json.field("gpu_ns", row.gpu_ns);
    json.field("exclusive_gpu_ns", row.exclusive_gpu_ns);
  });
}

void write_samples(JsonWriter& json, const std::vector<model::OccurrenceSample>& list) {
  json.open_line_array("samples");
  for (const model::OccurrenceSample& sample : list)
    json.value(std::array{sample.at_ns, sample.wall_ns, sample.busy_ns});
  json.close();
}

void write_steady(JsonWriter& json, const Region& region) {
  if (!region.steady)
    return json.null_field("steady");
  json.open_object("steady");
  json.field("occurrences", region.steady->occurrences);
  json.field("left_out", region.steady->left_out);
  json.field("left_out_ns", region.steady->left_out_ns);
  write_spread(json, "wall_ns", region.steady->wall_ns);
  json.field("gpu_busy_share", region.steady->busy_share);
  json.close();
}

void write_across(JsonWriter& json, const model::Report& report, const Region& region) {
  if (!region.across)
    return json.null_field("across");
  const model::Across& across = *region.across;
  std::uint32_t slowest = across.slowest;  // a thread id, or an index
  if (!across.of_threads && slowest < report.processes.size())
    slowest = report.processes[slowest].pid;
  json.open_line_object("across");
  json.field("of", across.of_threads ? "threads" : "processes");
  json.field("parts", across.parts);
  json.field("min_ns", across.min_ns);
  json.field("mean_ns", across.mean_ns);
  json.field("max_ns", across.max_ns);
  json.field("imbalance", across.imbalance);
  json.field("slowest", slowest);
  json.close();
}

void write_over_ranks(JsonWriter& json, const Region& region) {
  if (region.ranks) {
    const auto& ranks = *region.ranks;
    json.open_line_object("ranks");
    json.field("count", ranks.count);
    json.field("mean_ns", ranks.mean_ns);
    json.field("min_ns", ranks.min_ns);
    json.field("max_ns", ranks.max_ns);
    json.field("stddev_ns", ranks.stddev_ns);
    json.field("imbalance", ranks.imbalance);
    json.field("slowest", ranks.slowest);
    json.field("slowest_in", ranks.slowest_in);
    json.field("compared", ranks.compared);
    json.close();
  }
  if (!region.communication)
    return;
  const model::Communication& communication = *region.communication;
  json.open_line_object("communication");
  json.field("calls", communication.calls);
  json.field("time_ns", communication.time_ns);
  json.field("transfer_ns", communication.transfer_ns);
  json.field("wait_ns", communication.wait_ns);
  json.field("overlap_ns", communication.overlap_ns);
  json.line_objects("held_up_by", communication.held_up_by, [&](const auto& cause) {
    json.field("rank", cause.rank);
    json.field("calls", cause.calls);
    json.field("ns", cause.ns);
  });
  json.close();
}

void write_region(JsonWriter& json, const model::Report& report, const Region& region) {
  json.open_object();
  (void)json.take_escaped();
  json.field("id", region.id);
  json.field("parent", indexed(region.parent));
  json.field("depth", region.depth);
  json.field("path", region.path);
  json.field("domain", region.domain);
  json.field("name_escaped", json.take_escaped());
  json.field("kind", model::range_kind_key(region.kind));
  if (region.module)
    json.field("module", true);
  if (region.sampled())
    json.field("sampled", true);
  json.field("process", pid_of(report, region.process));
  json.field("process_index", region.process);
  json.field("thread", region.thread);
  for (const model::Measure& measure : model::measures())
    if (measure.tag.find('.') == std::string_view::npos)
      json.field(measure.tag, measure.get(region));
  json.open_line_object("wall_ns");
  write_measures(json, region, "wall_ns.");
  json.close();
  if (region.wall.unlisted > 0) {
    json.open_line_object("unlisted");
    json.field("occurrences", region.wall.unlisted);
    json.field("quantile_error", region.wall.quantile_error);
    json.close();
  }
  write_steady(json, region);
  write_across(json, report, region);
  write_over_ranks(json, region);
  write_gpu(json, "gpu", region.gpu, region);
  write_cpu(json, "cpu", region.cpu);
  write_metrics(json, region.metrics);
  write_kernel_metrics(json, "kernels", region.kernels);
  write_roofline(json, region.roofline);
  write_bound(json, region.bound);
  write_utilization(json, region.utilization);
  if (region.memory) {
    json.open_line_object("memory");
    write_measures(json, region, "memory.");
    json.close();
  }
  if (region.cuda_memory) {
    json.open_line_object("cuda_memory");
    write_measures(json, region, "cuda_memory.");
    json.close();
  }
  write_samples(json, region.samples);
  json.field("notes", region.notes);
  json.close();
}

// Tag, unit, source and formula of every measure, so that the file explains itself.
void write_measure_dictionary(JsonWriter& json) {
  json.open_object("measures");
  for (const model::Measure& measure : model::measures()) {
    json.open_line_object(measure.tag);
    json.field("unit", model::unit_name(measure.unit));
    json.field("source", measure.source);
    json.field("formula", measure.formula);
    json.close();
  }
  json.close();
}

void write_outcome(JsonWriter& json, const std::optional<model::Outcome>& after) {
  if (!after)
    return json.null_field("after");
  json.open_line_object("after");
  json.field("path", after->path);
  json.field("region", after->region);
  json.field("before_ns", after->before_ns);
  json.field("after_ns", after->after_ns);
  json.field("at_most", after->is_bound);
  json.close();
}

void write_verdicts(JsonWriter& json,
                    const model::Report& report,
                    std::span<const model::Verdict> list) {
  json.line_objects("verdict", list, [&](const model::Verdict& verdict) {
    json.field("kind", verdict.kind);
    json.field("severity", model::weight_name(verdict.severity));
    json.field("path", verdict.path);
    json.field("region", verdict.region);
    json.field("process", pid_of(report, verdict.process));
    json.field("text", verdict.text);
    json.field("advice", or_null(model::advice_for(verdict)));
    json.field("saves_ns", verdict.saves_ns);
    json.field("saves_share", verdict.saves_share);
    json.field("saves_low_ns", verdict.saves_low_ns);
    json.field("saves_high_ns", verdict.saves_high_ns);
    json.field("cure", or_null(verdict.cure));
    write_outcome(json, verdict.after);
    json.open_line_object("evidence");
    for (const auto& [name, value] : verdict.evidence)
      json.field(name, value);
    json.close();
    json.field("next", or_null(verdict.next));
  });
}

void write_outside(JsonWriter& json, const std::optional<model::Outside>& value) {
  if (!value)
    return json.null_field("outside");
  json.open_line_object("outside");
  json.field("wall_ns", value->wall_ns);
  json.field("before_ns", value->before_ns);
  json.field("between_ns", value->between_ns);
  json.field("after_ns", value->after_ns);
  json.field("profiler_ns", value->profiler_ns);
  if (value->late_ns > 0)
    json.field("late_ns", value->late_ns);
  json.close();
}

void write_predicted_time(JsonWriter& json, const model::PredictedTime& time) {
  json.field("now_ns", time.now_ns);
  json.field("after_ns", time.after_ns);
  json.field("after_low_ns", time.after_low_ns);
  json.field("after_high_ns", time.after_high_ns);
  json.field("saves_ns", time.saves_ns());
  json.field("at_most", time.is_bound);
  json.field("replay_error", time.replay_error);
}

// The predictions of --what-if; nothing without it.
void write_what_if(JsonWriter& json, const base::Held<model::WhatIf>& value) {
  if (!value)
    return;
  json.open_object("what_if");
  json.line_objects("changes", value->changes, [&](const model::SupposedChange& change) {
    json.field("change", change.written);
    json.field("of", change.subject);
  });
  json.open_line_object("run");
  write_predicted_time(json, value->run);
  json.close();
  json.line_objects("regions", value->regions, [&](const model::PredictedRegion& predicted) {
    json.field("region", predicted.region);
    write_predicted_time(json, predicted.time);
  });
  json.close();
}

void write_rank(JsonWriter& json, const model::Rank& rank) {
  json.field("rank", rank.rank);
  json.field("local_rank", rank.local_rank);
  json.field("world_size", or_null(rank.world));
  json.field("host", or_null(rank.host));
  json.field("device", or_null(rank.device));
  json.field("pid", rank.pid);
  json.field("run", or_null(rank.run));
  if (rank.clock_offset_ns != 0)
    json.field("clock_offset_ns", rank.clock_offset_ns);
  if (!rank.card.empty())
    json.field("card", rank.card);
  if (rank.time) {
    json.open_line_object("time");
    json.field("outside_ns", rank.time->outside_ns);
    json.field("mpi_ns", rank.time->mpi_ns);
    json.field("wait_ns", rank.time->wait_ns);
    json.close();
  }
  const model::RankWork& work = rank.work;
  if (!work.is_known)
    return;
  json.open_line_object("work");
  json.field("kernels", work.kernels);
  json.field("kernel_ns", work.kernel_ns);
  json.field("kernel_threads", work.kernel_threads);
  json.field("copied_bytes", work.copied_bytes);
  if (work.tokens > 0)
    json.field("tokens", work.tokens);
  json.field("kernel_pace", work.kernel_pace);
  json.field("cpu_pace", work.cpu_pace);
  json.field("cpu_ranges", work.cpu_ranges);
  json.field("slower_ranges", work.slower_ranges);
  json.field("sm_clock_hz", work.sm_clock_hz);
  json.field("clock_limited", work.clock_limited);
  json.close();
}

void write_collective(JsonWriter& json, const model::Collective& collective) {
  json.field("communicator", or_null(collective.communicator));
  json.field("library", collective.library);
  json.field("operation", collective.operation);
  json.field("path", collective.path);
  json.field("bytes", collective.bytes);
  json.field("ranks", collective.ranks);
  json.field("calls", collective.calls);
  json.field("transfer_ns", collective.transfer_ns);
  json.field("wait_ns", collective.wait_ns);
  json.field("algbw_bytes_per_s", collective.algorithm_bytes_per_s);
  json.field("busbw_bytes_per_s", collective.bus_bytes_per_s);
  json.field("hidden_share", collective.hidden_share);
  json.line_objects("by_rank", collective.by_rank, [&](const model::CollectiveOfRank& rank) {
    json.field("rank", rank.rank);
    json.field("wait_ns", rank.wait_ns);
    json.field("late_ns", rank.late_ns);
    json.field("holds_up_ns", rank.holds_up_ns);
    json.field("costs_ns", rank.costs_ns);
    json.field("last", rank.last);
    json.field("time_ns", rank.time_ns);
    if (!std::isnan(rank.hidden_ns))
      json.field("hidden_ns", rank.hidden_ns);
  });
}

void write_messages(JsonWriter& json, const model::PointToPoint& pair) {
  json.field("communicator", or_null(pair.communicator));
  json.field("library", pair.library);
  json.field("from", pair.from);
  json.field("to", pair.to);
  json.field("path", pair.path);
  json.field("calls", pair.calls);
  json.field("bytes", pair.bytes);
  json.field("transfer_ns", pair.transfer_ns);
  json.field("late_sender_ns", pair.late_sender_ns);
  json.field("late_receiver_ns", pair.late_receiver_ns);
  json.field("late_senders", pair.late_senders);
  json.field("late_receivers", pair.late_receivers);
  json.field("bytes_per_s", pair.bytes_per_s);
}

// Ranks, collectives and messages of a parallel job; nothing for another run.
void write_job(JsonWriter& json, const model::Report& report) {
  if (report.ranks.empty())
    return;
  json.line_objects(
      "ranks", report.ranks, [&](const model::Rank& rank) { write_rank(json, rank); });
  json.objects("collectives", report.collectives, [&](const model::Collective& collective) {
    write_collective(json, collective);
  });
  json.line_objects("messages", report.messages, [&](const model::PointToPoint& pair) {
    write_messages(json, pair);
  });
}

}  // namespace

base::Result<void> export_json(const model::Report& report,
                               const model::Session*,
                               const Style&,
                               Sink& sink) {
  JsonWriter json(sink);
  json.open_object();
  json.field("schema", kSchema);
  write_verdicts(json, report, report.verdict);
  write_what_if(json, report.what_if);
  write_run(json, report.run);
  write_processes(json, "processes", report.processes);
  if (!report.other_processes.empty())
    write_processes(json, "other_processes", report.other_processes);
  write_job(json, report);
  write_devices(json, report);
  json.open_array("regions");
  for (const Region& region : report.regions)
    write_region(json, report, region);
  json.close();
  write_outside(json, report.outside);
  write_gpu(json, "total", report.total);
  write_gpu(json, "unattributed", report.unattributed);
  write_cpu(json, "cpu_outside", report.cpu_outside);
  write_waits(json, report.waits);
  write_kernel_rows(json, "kernels", report.kernels);
  if (!report.families.empty())
    json.line_objects("families", report.families, [&](const model::KernelFamily& family) {
      json.field("name", family.name);
      json.field("kernels", family.kernels);
      json.field("calls", family.calls);
      json.field("total_ns", family.total_ns);
      json.field("share", family.share);
    });
  write_kernel_metrics(json, "unattributed_results", report.unattributed_results);
  json.objects("kernel_counters", report.kernel_counters, [&](const model::KernelCounters& kernel) {
    json.field("name", kernel.name);
    write_metrics(json, kernel.metrics);
    write_bound(json, kernel.bound);
    write_roofline(json, kernel.roofline);
  });
  if (!report.operators.empty())
    write_operators(json, "operators", report.operators, false);
  if (!report.operators_by_shape.empty())
    write_operators(json, "operators_by_shape", report.operators_by_shape, true);
  write_memory(json, report);
  write_cuda_memory(json, report);
  write_sampled_devices(json, report.sampled);
  write_losses(json, report.losses);
  write_findings(json, report.findings);
  json.field("notes", report.notes);
  write_measure_dictionary(json);
  json.close();
  json.finish();
  return {};
}

// One JSON object a line, for streams and log stores: {"type": "run" | "verdict" | "what_if" |
// "process" | "region" | "total" | "kernel" | "result" | "operator" | "loss" | "finding", ...}.
// Their other fields are those of the JSON report.
base::Result<void> export_jsonl(const model::Report& report,
                                const model::Session*,
                                const Style&,
                                Sink& sink) {
  JsonWriter json(sink);
  const auto line = [&json](const char* type, const auto& write_fields) {
    json.open_line_object();
    json.field("type", type);
    write_fields();
    json.close();
    json.finish();
  };
  line("run", [&] {
    json.field("schema", kSchema);
    write_run(json, report.run);
    write_devices(json, report);
  });
  for (const model::Verdict& verdict : report.verdict)
    line("verdict", [&] { write_verdicts(json, report, {&verdict, 1}); });
  if (report.what_if)
    line("what_if", [&] { write_what_if(json, report.what_if); });
  for (const model::ReportProcess& process : report.processes)
    line("process", [&] { write_processes(json, "processes", {process}); });
  for (const Region& region : report.regions) {
    line("region", [&] {
      json.key("region");
      write_region(json, report, region);
    });
  }
  line("total", [&] {
    write_gpu(json, "total", report.total);
    write_gpu(json, "unattributed", report.unattributed);
  });
  for (const model::KernelRow& row : report.kernels)
    line("kernel", [&] { write_kernel_rows(json, "kernels", {row}); });
  for (const model::KernelMetrics& result : report.unattributed_results)
    line("result", [&] { write_kernel_metrics(json, "unattributed_results", {result}); });
  for (const model::OperatorRow& row : report.operators)
    line("operator", [&] { write_operators(json, "operators", {row}, false); });
  for (const model::Loss& loss : report.losses)
    line("loss", [&] { write_losses(json, {loss}); });
  for (const model::Finding& finding : report.findings)
    line("finding", [&] { write_findings(json, {&finding, 1}); });
  return {};
}

}  // namespace rangescope::report
