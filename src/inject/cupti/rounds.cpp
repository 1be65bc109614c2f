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
  with_stream([&](Encoder& encoder, GpuStream& stream) {
    encoder.loss(wire::gpu::LossKind::kPartial, 1, detail);
    stream.flush();
  });
}

void write_target(std::uint32_t index, const RangePath& path, bool start_end) {
  with_stream([&](Encoder& encoder, GpuStream& stream) {
    std::uint32_t ids[RangePath::kDeepest];
    char text[4096];
    for (std::size_t i = 0; i < path.depth; ++i)
      ids[i] = encoder.text_id(text, shown_name(path, i, text, sizeof text));
    wired::Target record{};
    record.head = wire::gpu::head(wired::Type::kTarget, index, start_end ? 1 : 0);
    record.domain = encoder.text_id(path.domain.text, path.domain.bytes);
    record.names = static_cast<std::uint32_t>(path.depth);
    stream.put_with(record, ids, path.depth * sizeof ids[0]);
  });
}

namespace {

void write_round(Collector& c, const Context& context, std::uint32_t target, std::uint32_t kernel,
                 const RecordedKernel* what, const double* values) {
  wired::Round record{};
  record.head = wire::gpu::head(wired::Type::kRound, target);
  record.device = static_cast<std::uint32_t>(context.device);
  record.kernel = kernel;
  record.passes = static_cast<std::uint32_t>(context.profiler.passes());
  record.first = context.first[target];
  record.count = static_cast<std::uint32_t>(c.plan.metric_count);
  if (what != nullptr) {
    std::memcpy(record.grid, what->grid, sizeof record.grid);
    std::memcpy(record.block, what->block, sizeof record.block);
  }
  with_stream([&](Encoder& encoder, GpuStream& stream) {
    if (what != nullptr && what->name != nullptr)
      record.name = encoder.text_id(what->name, std::strlen(what->name));
    stream.put_with(record, values, c.plan.metric_count * sizeof(double));
  });
}

bool chosen(const counters::Plan& plan, const char* mangled) {
  if (plan.kernel_count + plan.no_kernel_count == 0) return true;
  char room[16 << 10];
  const std::string_view whole = counters::demangle(mangled, room, sizeof room),
                         name = wire::short_kernel_name(whole);
  return chooses_kernel(plan, {whole.data(), whole.size()}, {name.data(), name.size()},
                        {mangled, std::strlen(mangled)});
}

}  // namespace

void evaluate(Collector& c, Context& context, const Image* images, std::uint32_t target,
              bool kernels) {
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
    std::snprintf(detail, sizeof detail,
                  "results of a range left out: CUPTI gave %zu, kernels launched: %u", ranges,
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
      whole = whole && (profiler.given_up(k) ||
                        profiler.evaluate(k, images[k], i * step + step - 1, values, tell_loss));
    if (!whole) continue;
    write_round(c, context, target, kernels ? static_cast<std::uint32_t>(i) : wired::kWholeRange,
                named ? &recorded[i] : nullptr, values);
  }
  with_stream([](Encoder&, GpuStream& stream) { stream.flush(); });
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
      record.head = wire::gpu::head(wired::Type::kTally, i,
                                    context.kernels && c.targets[i].has_graphs ? 1
                                    : tally.gave_up                            ? 2
                                                                               : 0);
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
      with_stream([&](Encoder&, GpuStream& stream) { stream.put(record); });
    }
  }
}

void write_metrics(const Collector& c) {
  with_stream([&plan = c.plan](Encoder& encoder, GpuStream& stream) {
    for (std::size_t i = 0; i < plan.metric_count; ++i) {
      wired::Metric record{};
      record.head = wire::gpu::head(wired::Type::kMetric, static_cast<std::uint32_t>(i));
      record.bytes = static_cast<std::uint32_t>(std::strlen(plan.metrics[i]));
      stream.put_with(record, plan.metrics[i], record.bytes);
    }
    encoder.info("counters", plan.pc                              ? "pc"
                             : plan.per == counters::Per::kRange  ? "range"
                             : plan.per == counters::Per::kKernel ? "kernel"
                                                                  : "both");
    stream.flush();
  });
}

void write_cost(const Collector& c) {
  for (std::size_t i = 0; i < c.context_count; ++i) {
    if (c.contexts[i].mux == nullptr || c.plan.pc) continue;
    char text[256];
    c.contexts[i].profiler.describe_cost(text, sizeof text);
    with_stream([&](Encoder& encoder, GpuStream&) { encoder.info("counters_cost", text); });
  }
}

}  // namespace rangescope::inject::cupti
