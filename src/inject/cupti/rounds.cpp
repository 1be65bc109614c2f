// What was measured, as records in the GPU stream (wire/counters.hpp).
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <utility>

#include "inject/counters/demangle.hpp"
#include "inject/cupti/collector.hpp"
#include "inject/cupti/trace.hpp"
#include "wire/counters.hpp"
#include "wire/kernel_name.hpp"

namespace rangescope::inject::cupti {

namespace wired = wire::counters;

void tell_loss(const char* detail) {
  with_stream(
      [](Encoder& encoder, GpuStream& stream, void* user) {
        encoder.loss(wire::gpu::LossKind::kPartial, 1, static_cast<const char*>(user));
        stream.flush();
      },
      const_cast<char*>(detail));
}

void write_target(std::uint32_t index, const RangePath& path, bool start_end) {
  struct Names {
    const RangePath* path;
    std::uint32_t index;
    bool start_end;
  } names{&path, index, start_end};
  with_stream(
      [](Encoder& encoder, GpuStream& stream, void* user) {
        const Names& n = *static_cast<Names*>(user);
        std::uint32_t ids[RangePath::kDeepest];
        char text[4096];
        for (std::size_t i = 0; i < n.path->depth; ++i)
          ids[i] = encoder.text_id(text, shown_name(*n.path, i, text, sizeof text));
        wired::Target record{};
        record.head.type = static_cast<wire::gpu::Type>(wired::Type::kTarget);
        record.head.small = n.start_end ? 1 : 0;
        record.head.id = n.index;
        record.domain = encoder.text_id(n.path->domain.text, n.path->domain.bytes);
        record.names = static_cast<std::uint32_t>(n.path->depth);
        stream.put_with(record, ids, n.path->depth * sizeof ids[0]);
      },
      &names);
}

namespace {

void write_round(Collector& c, const Context& context, std::uint32_t target, std::uint32_t kernel,
                 const RecordedKernel* what, const double* values) {
  struct Job {
    wired::Round record;
    const char* name;
    const double* values;
    std::size_t bytes;
  } job{};
  job.record.head.type = static_cast<wire::gpu::Type>(wired::Type::kRound);
  job.record.head.id = target;
  job.record.device = static_cast<std::uint32_t>(context.device);
  job.record.kernel = kernel;
  job.record.passes = static_cast<std::uint32_t>(context.profiler.passes());
  job.record.first = context.first[target];
  job.record.count = static_cast<std::uint32_t>(c.plan.metric_count);
  if (what != nullptr) {
    job.name = what->name;
    std::memcpy(job.record.grid, what->grid, sizeof job.record.grid);
    std::memcpy(job.record.block, what->block, sizeof job.record.block);
  }
  job.values = values;
  job.bytes = c.plan.metric_count * sizeof(double);
  with_stream(
      [](Encoder& encoder, GpuStream& stream, void* user) {
        Job& j = *static_cast<Job*>(user);
        if (j.name != nullptr) j.record.name = encoder.text_id(j.name, std::strlen(j.name));
        stream.put_with(j.record, j.values, j.bytes);
      },
      &job);
}

bool chosen(const counters::Plan& plan, const char* mangled) {
  if (plan.kernel_count + plan.no_kernel_count == 0) return true;
  char room[16 << 10];
  const std::string_view whole = counters::demangle(mangled, room, sizeof room), name = wire::short_kernel_name(whole);
  return chooses_kernel(plan, {whole.data(), whole.size()}, {name.data(), name.size()},
                        {mangled, std::strlen(mangled)});
}

}  // namespace

void evaluate(Collector& c, Context& context, const Image* images, std::uint32_t target, bool kernels) {
  double values[counters::kMaxMetrics];
  // With caches flushed each kernel has one of ours before it.
  const std::size_t step = kernels && context.flush.ready() ? 2 : 1;
  RangeProfiler& profiler = context.profiler;
  std::size_t ranges = 0;
  bool alike = true, first = true;
  for (std::size_t i = 0; i < profiler.configurations(); ++i) {
    if (profiler.given_up(i)) continue;
    const std::size_t found = profiler.ranges(images[i]) / step;
    alike = first || (alike && found == ranges);
    if (first || found < ranges) ranges = found;
    first = false;
  }
  const RecordedKernel* recorded = context.recorder.kernels();
  // Results that cannot be laid along what was launched are no results.
  if (kernels && (!alike || ranges != context.recorder.count())) {
    char detail[160];
    std::snprintf(detail, sizeof detail, "results of a range left out: CUPTI gave %zu, kernels launched: %u", ranges,
                  context.recorder.count());
    tell_loss(detail);
    return;
  }
  for (std::size_t i = 0; i < ranges; ++i) {
    const bool named = kernels && recorded != nullptr && i < context.recorder.count();
    if (named && !chosen(c.plan, recorded[i].name)) continue;
    std::fill(values, values + c.plan.metric_count, std::numeric_limits<double>::quiet_NaN());
    bool whole = true;
    for (std::size_t k = 0; k < profiler.configurations(); ++k)
      whole =
          whole && (profiler.given_up(k) || profiler.evaluate(k, images[k], i * step + step - 1, values, tell_loss));
    if (!whole) continue;
    write_round(c, context, target, kernels ? static_cast<std::uint32_t>(i) : wired::kWholeRange,
                named ? &recorded[i] : nullptr, values);
  }
  with_stream([](Encoder&, GpuStream& stream, void*) { stream.flush(); }, nullptr);
}

void write_tallies(Collector& c) {
  for (std::size_t k = 0; k < c.context_count; ++k) {
    Context& context = c.contexts[k];
    if (context.mux == nullptr) continue;
    for (std::uint32_t i = 0; i < c.target_count; ++i) {
      const counters::Tally& tally = context.mux->tally(i);
      const Before before = std::exchange(context.before[i], {});
      if (tally.occurrences + before.early == 0) continue;
      wired::Tally record{};
      record.head.type = static_cast<wire::gpu::Type>(wired::Type::kTally);
      record.head.id = i;
      record.head.small = context.kernels && c.targets[i].has_graphs ? 1 : tally.gave_up ? 2 : 0;
      record.occurrences = tally.occurrences + before.early;
      record.skipped_first = tally.skipped_first;
      record.skipped_arming = tally.skipped_arming + before.early;
      record.measured = tally.measured;
      record.discarded = tally.discarded;
      record.varied = tally.varied;
      record.rounds = tally.rounds;
      record.passes = tally.passes;
      record.needed = c.plan.pc ? 1 : static_cast<std::uint32_t>(context.profiler.passes());
      record.device = static_cast<std::uint32_t>(context.device);
      record.passed_over = tally.passed_over;
      record.waits = before.waits;
      record.waited_ms = static_cast<std::uint32_t>(before.waited_ns / 1000000);
      with_stream([](Encoder&, GpuStream& stream, void* user) { stream.put(*static_cast<wired::Tally*>(user)); },
                  &record);
    }
  }
}

void write_metrics(const Collector& c) {
  with_stream(
      [](Encoder& encoder, GpuStream& stream, void* user) {
        const auto& plan = *static_cast<const counters::Plan*>(user);
        for (std::size_t i = 0; i < plan.metric_count; ++i) {
          wired::Metric record{};
          record.head.type = static_cast<wire::gpu::Type>(wired::Type::kMetric);
          record.head.id = static_cast<std::uint32_t>(i);
          record.bytes = static_cast<std::uint32_t>(std::strlen(plan.metrics[i]));
          stream.put_with(record, plan.metrics[i], record.bytes);
        }
        encoder.info("counters", plan.pc                              ? "pc"
                                 : plan.per == counters::Per::kRange  ? "range"
                                 : plan.per == counters::Per::kKernel ? "kernel"
                                                                      : "both");
        stream.flush();
      },
      const_cast<counters::Plan*>(&c.plan));
}

void write_cost(const Collector& c) {
  for (std::size_t i = 0; i < c.context_count; ++i) {
    if (c.contexts[i].mux == nullptr || c.plan.pc) continue;
    char text[256];
    c.contexts[i].profiler.describe_cost(text, sizeof text);
    with_stream(
        [](Encoder& encoder, GpuStream&, void* user) { encoder.info("counters_cost", static_cast<char*>(user)); },
        text);
  }
}

}  // namespace rangescope::inject::cupti
