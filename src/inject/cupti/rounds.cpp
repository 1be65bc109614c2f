// Writes the results of counters as records of the GPU stream (wire/counters.hpp).
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
    record.head = wire::gpu::head(wired::Type::kTarget, index, std::uint8_t{start_end});
    record.domain = encoder.text_id(path.domain.text, path.domain.bytes);
    record.names = static_cast<std::uint32_t>(path.depth);
    stream.put_with(record, ids, path.depth * sizeof ids[0]);
  });
}

namespace {

// `launched`: the kernel that was measured, if it is known.
void write_round(Collector& c,
                 const Context& context,
                 std::uint32_t target,
                 std::uint32_t kernel,
                 const RecordedKernel* launched,
                 const double* values) {
  wired::Round record{};
  record.head = wire::gpu::head(wired::Type::kRound, target);
  record.device = static_cast<std::uint32_t>(context.device);
  record.kernel = kernel;
  record.passes = static_cast<std::uint32_t>(context.profiler.passes());
  record.first = context.first[target];
  record.count = static_cast<std::uint32_t>(c.plan.metric_count);
  if (launched != nullptr) {
    std::memcpy(record.grid, launched->grid, sizeof record.grid);
    std::memcpy(record.block, launched->block, sizeof record.block);
  }
  with_stream([&](Encoder& encoder, GpuStream& stream) {
    if (launched != nullptr && launched->name != nullptr)
      record.name = encoder.text_id(launched->name, std::strlen(launched->name));
    stream.put_with(record, values, c.plan.metric_count * sizeof(double));
  });
}

bool is_chosen(const counters::Plan& plan, const char* mangled) {
  if (plan.kernel_count + plan.no_kernel_count == 0)
    return true;
  char room[16 << 10];
  const std::string_view demangled = counters::demangle(mangled, room, sizeof room);
  const std::string_view short_name = wire::short_kernel_name(demangled);
  return chooses_kernel(plan,
                        {demangled.data(), demangled.size()},
                        {short_name.data(), short_name.size()},
                        {mangled, std::strlen(mangled)});
}

// The images of a round, one a configuration, and the ranges that they have in common.
class CompleteRound {
 public:
  CompleteRound(Context& context, const Image* images, bool kernels)
      : profiler_(context.profiler), images_(images) {
    // With caches flushed, a kernel of ours comes before each kernel.
    if (kernels && context.flush.ready())
      step_ = 2;
    bool is_first = true;
    for (std::size_t i = 0; i < profiler_.configurations(); ++i) {
      if (profiler_.given_up(i))
        continue;
      const std::size_t ranges = profiler_.ranges(images[i]) / step_;
      if (!is_first && ranges != ranges_)
        are_alike_ = false;
      if (is_first || ranges < ranges_)
        ranges_ = ranges;
      is_first = false;
    }
  }

  [[nodiscard]] std::size_t ranges() const { return ranges_; }
  /// All configurations have the same number of ranges.
  [[nodiscard]] bool are_alike() const { return are_alike_; }

  /// Sets the values of a range; metrics of configurations that were given up are NaN.
  bool evaluate(std::size_t range, double* values, std::size_t count) {
    std::fill(values, values + count, std::numeric_limits<double>::quiet_NaN());
    const std::size_t index = range * step_ + step_ - 1;
    for (std::size_t i = 0; i < profiler_.configurations(); ++i) {
      if (profiler_.given_up(i))
        continue;
      if (!profiler_.evaluate(i, images_[i], index, values, tell_loss))
        return false;
    }
    return true;
  }

 private:
  RangeProfiler& profiler_;
  const Image* images_;
  std::size_t step_ = 1;  // CUPTI's ranges for each of ours
  std::size_t ranges_ = 0;
  bool are_alike_ = true;
};

}  // namespace

void evaluate(
    Collector& c, Context& context, const Image* images, std::uint32_t target, bool kernels) {
  double values[counters::kMaxMetrics];
  CompleteRound round(context, images, kernels);
  const RecordedKernel* recorded = context.recorder.kernels();
  // Results are only usable if each can be assigned to the kernel that was launched.
  if (kernels && (!round.are_alike() || round.ranges() != context.recorder.count())) {
    char detail[160];
    std::snprintf(detail,
                  sizeof detail,
                  "results of a range left out: CUPTI gave %zu, kernels launched: %u",
                  round.ranges(),
                  context.recorder.count());
    tell_loss(detail);
    return;
  }
  for (std::size_t i = 0; i < round.ranges(); ++i) {
    const RecordedKernel* launched = nullptr;
    if (kernels && recorded != nullptr && i < context.recorder.count())
      launched = &recorded[i];
    if (launched != nullptr && !is_chosen(c.plan, launched->name))
      continue;
    if (!round.evaluate(i, values, c.plan.metric_count))
      continue;
    const std::uint32_t kernel = kernels ? static_cast<std::uint32_t>(i) : wired::kWholeRange;
    write_round(c, context, target, kernel, launched, values);
  }
  with_stream([](Encoder&, GpuStream& stream) { stream.flush(); });
}

namespace {

// Why a target has no more values: RecordHeader::small of a tally.
std::uint8_t tally_state(const Collector& c, const Context& context, std::uint32_t target) {
  constexpr std::uint8_t kHasGraphs = 1;
  constexpr std::uint8_t kGaveUp = 2;
  if (context.kernels && c.targets[target].has_graphs)
    return kHasGraphs;
  if (context.mux->tally(target).gave_up)
    return kGaveUp;
  return 0;
}

const char* kind_of(const counters::Plan& plan) {
  if (plan.pc)
    return "pc";
  switch (plan.per) {
    case counters::Per::kRange: return "range";
    case counters::Per::kKernel: return "kernel";
    case counters::Per::kBoth: break;
  }
  return "both";
}

}  // namespace

void write_tallies(Collector& c) {
  for (std::size_t k = 0; k < c.context_count; ++k) {
    Context& context = c.contexts[k];
    if (context.mux == nullptr)
      continue;
    for (std::uint32_t i = 0; i < c.target_count; ++i) {
      const counters::Tally& tally = context.mux->tally(i);
      const Before before = std::exchange(context.before[i], {});
      if (tally.occurrences + before.early == 0)
        continue;
      wired::Tally record{};
      record.head = wire::gpu::head(wired::Type::kTally, i, tally_state(c, context, i));
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
    encoder.info("counters", kind_of(plan));
    stream.flush();
  });
}

void write_cost(const Collector& c) {
  for (std::size_t i = 0; i < c.context_count; ++i) {
    if (c.contexts[i].mux == nullptr || c.plan.pc)
      continue;
    char text[256];
    c.contexts[i].profiler.describe_cost(text, sizeof text);
    with_stream([&](Encoder& encoder, GpuStream&) { encoder.info("counters_cost", text); });
  }
}

}  // namespace rangescope::inject::cupti
