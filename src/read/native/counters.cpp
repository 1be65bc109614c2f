#include "read/native/counters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/find.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "model/metric_unit.hpp"

namespace rangescope::read::native {
namespace wired = wire::counters;

namespace {

/// Why `tally`'s range has no counters, and what would complete them. `on`: its GPU, or "".
std::string incomplete_text(const wired::Tally& tally,
                            const std::string& path,
                            const std::string& on) {
  const std::uint32_t lacking = tally.needed > tally.passes ? tally.needed - tally.passes : 0;
  const std::uint32_t counted_in_a_run =
      std::max(tally.occurrences - std::min(tally.passed_over, tally.occurrences), 1u);
  std::string left_out, stopped, warm_up;
  if (tally.passed_over > 0)
    left_out = fmt::format(", {} left out by --every", tally.passed_over);
  if (tally.head.small == 2)
    stopped = ", and it stopped occurring";
  if (lacking <= tally.skipped_first)
    warm_up = "--skip-first 0 also measures warm-up; ";
  return fmt::format(
      "'{}'{} has no counters: {} needed, {} done, and {} of {} could be measured ({} in warm-up, "
      "{} while the hardware was being programmed or a graph captured, {} unlike the others{}){}; "
      "{}--passes relaunch would add the rest in {}",
      path,
      on,
      base::counted(tally.needed, "pass is", "passes are"),
      tally.passes,
      tally.measured,
      base::counted(tally.occurrences, "instance"),
      tally.skipped_first,
      tally.skipped_arming,
      tally.discarded,
      left_out,
      stopped,
      warm_up,
      base::counted((lacking + counted_in_a_run - 1) / counted_in_a_run, "more run"));
}

}  // namespace

std::string_view CounterReader::name(std::uint32_t id) const {
  const std::string* name = base::find_value(names_, id);
  if (name == nullptr)
    return {};
  return *name;
}

bool CounterReader::take(const GpuRecord& record) {
  if (record.head().type == wire::gpu::Type::kName) {
    const auto head = record.as<wire::gpu::Name>();
    names_[record.head().id] = record.text(sizeof head, head.bytes);
    return false;
  }
  switch (static_cast<wired::Type>(record.head().type)) {
    case wired::Type::kMetric: {
      const auto head = record.as<wired::Metric>();
      metrics_[record.head().id] = record.text(sizeof head, head.bytes);
      return true;
    }
    case wired::Type::kTarget: take_target(record); return true;
    case wired::Type::kRound: take_round(record); return true;
    case wired::Type::kTally: tallies_.push_back(record.as<wired::Tally>()); return true;
    case wired::Type::kActivity:
      activity_.emplace_back(record.head().small == 1, record.as<wired::Activity>().at_ns);
      return true;
  }
  return false;
}

void CounterReader::take_target(const GpuRecord& record) {
  const auto head = record.as<wired::Target>();
  Target target;
  target.kind = record.head().small == 1 ? model::RangeKind::kStartEnd : model::RangeKind::kPushPop;
  target.domain = head.domain;
  const std::string_view ids =
      record.text(sizeof head, std::size_t{head.names} * sizeof(std::uint32_t));
  for (std::size_t i = 0; i + sizeof(std::uint32_t) <= ids.size(); i += sizeof(std::uint32_t)) {
    std::uint32_t id = 0;
    std::memcpy(&id, ids.data() + i, sizeof id);
    target.names.push_back(id);
  }
  targets_[record.head().id] = std::move(target);
}

void CounterReader::take_round(const GpuRecord& record) {
  Round round;
  round.head = record.as<wired::Round>();
  const std::string_view bytes =
      record.text(sizeof round.head, std::size_t{round.head.count} * sizeof(double));
  if (bytes.size() != std::size_t{round.head.count} * sizeof(double)) {
    ++damaged_;  // part of a set is no set
    return;
  }
  round.values.resize(round.head.count);
  if (!round.values.empty())
    std::memcpy(round.values.data(), bytes.data(), round.values.size() * sizeof(double));
  rounds_.push_back(std::move(round));
}

std::string CounterReader::path_of(std::uint32_t target) const {
  const auto found = targets_.find(target);
  if (found == targets_.end())
    return "?";
  std::string text;
  for (const std::uint32_t id : found->second.names) {
    if (!text.empty())
      text += " > ";
    text += name(id);
  }
  return text;
}

std::uint32_t CounterReader::device_index(std::uint32_t ordinal) const {
  std::uint32_t index = model::kNone;
  for (std::uint32_t i = 0; i < session_.devices.size(); ++i) {
    const model::Device& device = session_.devices[i];
    if (device.process == process_ && device.ordinal == ordinal)
      index = i;
  }
  return index;
}

/// Sets which kernel of the range's instance was counted.
void CounterReader::set_kernel(const wired::Round& head, model::Measurement& out) {
  out.ordinal = head.kernel;
  out.kernel_name = index_.mangled_kernel_name(name(head.name));
  model::KernelShape shape;
  std::copy(std::begin(head.grid), std::end(head.grid), shape.grid.begin());
  std::copy(std::begin(head.block), std::end(head.block), shape.block.begin());
  out.shape = index_.shapes.of(shape);
}

/// Adds the values of the metrics that have one, and a note that names the others. Percentages
/// become shares.
void CounterReader::set_values(const Round& round,
                               const std::vector<std::uint32_t>& metrics,
                               model::Measurement& out) const {
  std::vector<std::string> without_value;
  for (std::size_t i = 0; i < round.values.size() && i < metrics.size(); ++i) {
    if (metrics[i] == model::kNone)
      continue;
    const model::MetricDef& metric = session_.metrics[metrics[i]];
    if (!std::isfinite(round.values[i])) {
      without_value.push_back(metric.name);
      continue;
    }
    const bool is_percent =
        metric.unit == "ratio" &&
        model::is_percent(model::metric_unit(metric.name, model::UnitSpelling::kNcu2025));
    out.values.push_back({metrics[i], is_percent ? round.values[i] / 100 : round.values[i]});
  }
  if (without_value.empty())
    return;
  if (!out.note.empty())
    out.note += "; ";
  out.note += "counters: CUPTI gave no value of " + base::join(without_value, ", ");
}

void CounterReader::add_round(const Round& round, const std::vector<std::uint32_t>& metrics) {
  const wired::Round& head = round.head;
  const auto target = targets_.find(head.head.id);
  const auto has_name = [&](std::uint32_t id) { return names_.contains(id); };
  const bool has_path = target != targets_.end() && !target->second.names.empty() &&
                        std::ranges::all_of(target->second.names, has_name);
  if (!has_path || round.values.size() > metrics.size()) {
    ++damaged_;
    return;
  }
  const bool is_whole_range = head.kernel == wired::kWholeRange;
  model::Measurement out;
  out.scope = is_whole_range ? model::MeasuredScope::kRange : model::MeasuredScope::kKernel;
  out.process = process_;
  out.device = device_index(head.device);
  const std::uint32_t domain = index_.domain(name(target->second.domain));
  for (const std::uint32_t id : target->second.names)
    out.ranges.push_back({domain, session_.strings.intern(name(id)), target->second.kind});
  out.occurrence = head.first;
  if (head.passes > 1)
    out.note = note_of(head.head.id, head.device);
  out.passes = head.passes;
  if (!is_whole_range)
    set_kernel(head, out);
  set_values(round, metrics, out);
  session_.measurements.push_back(std::move(out));
}

void CounterReader::keep_wait(const wired::Tally& tally) {
  model::CounterWait wait;
  wait.process = process_;
  wait.ns = std::int64_t{tally.waited_ms} * 1000000;
  const auto target = targets_.find(tally.head.id);
  if (target == targets_.end() || target->second.kind == model::RangeKind::kStartEnd)
    return;
  wait.domain = index_.domain(name(target->second.domain));
  for (const std::uint32_t id : target->second.names)
    wait.path.push_back(session_.strings.intern(name(id)));
  session_.counter_waits.push_back(std::move(wait));
}

/// Why the metrics of a range may differ more than their counters do; "" if its occurrences were
/// alike.
std::string CounterReader::note_of(std::uint32_t target, std::uint32_t device) const {
  std::uint32_t varied = 0, measured = 0;
  for (const wired::Tally& tally : tallies_) {
    if (tally.head.id != target || tally.device != device)
      continue;
    varied += tally.varied;
    measured += tally.measured;
  }
  if (varied == 0)
    return {};
  return fmt::format(
      "counters: {} of {} measured instances launched the same kernels in different sizes from the "
      "first of their "
      "round, so metrics of several passes mix sizes; --bucket-by payload separates them",
      varied,
      measured);
}

void CounterReader::add_losses(const wired::Tally& tally, const std::string& where) {
  const bool has_other_devices = std::ranges::any_of(
      tallies_, [&](const wired::Tally& other) { return other.device != tally.device; });
  const std::string path = path_of(tally.head.id);
  const std::string on = has_other_devices ? fmt::format(" (GPU {})", tally.device) : "";
  const auto add = [&](model::LossKind kind, std::uint64_t count, std::string detail) {
    session_.losses.push_back({kind, count, where + ": " + std::move(detail)});
  };
  if (tally.head.small == 1) {
    add("counters_graph",
        1,
        "'" + path +
            "' launches CUDA graphs, whose kernels CUPTI cannot measure one by one; measure the "
            "range instead");
  } else if (tally.rounds == 0) {
    if (metrics_.empty())
      return add("pc_not_sampled",
                 tally.occurrences,
                 fmt::format("'{}'{} has no program-counter samples: none of {} could be sampled "
                             "({} in warm-up, {} while the "
                             "hardware was being programmed or a graph captured); --skip-first 1 "
                             "also samples warm-up",
                             path,
                             on,
                             base::counted(tally.occurrences, "instance"),
                             tally.skipped_first,
                             tally.skipped_arming));
    add("counters_incomplete", tally.occurrences, incomplete_text(tally, path, on));
  } else if (tally.head.small == 2) {
    add("counters_gave_up",
        tally.rounds,
        fmt::format("'{}'{} stopped occurring after {}: the other passes were given up, and the "
                    "timeline resumed",
                    path,
                    on,
                    base::counted(tally.rounds, "complete round")));
  }
  if (metrics_.empty() && tally.measured > 0)
    add("pc_serialized",
        tally.measured,
        "instances of '" + path + "'" + on +
            " the program counter was sampled: their kernels ran one after the other");
  if (tally.waits > 0) {
    keep_wait(tally);
    add("counters_waited",
        tally.waits,
        fmt::format(
            "the program waited {} ms at {} of '{}'{} for counters to be programmed (--arm-wait)",
            tally.waited_ms,
            base::counted(tally.waits, "start"),
            path,
            on));
  }
  if (tally.discarded > 0) {
    add("counters_discarded",
        tally.discarded,
        "instances of '" + path +
            "' were measured and discarded: they launched different kernels from the rest of their "
            "round");
  }
}

void CounterReader::finish(const std::string& where) {
  std::vector<std::uint32_t> metrics;
  for (const auto& [id, metric] : metrics_) {
    if (id > 4096)
      continue;  // a damaged record; plans hold 512
    metrics.resize(std::max<std::size_t>(metrics.size(), id + 1), model::kNone);
    const auto defined = std::ranges::find(session_.metrics, metric, &model::MetricDef::name);
    metrics[id] = static_cast<std::uint32_t>(defined - session_.metrics.begin());
    if (defined == session_.metrics.end())
      session_.metrics.push_back({metric, model::metric_unit(metric), "CUPTI range profiler"});
  }
  for (const Round& round : rounds_)
    add_round(round, metrics);
  for (const auto& tally : tallies_)
    add_losses(tally, where);
  if (damaged_ > 0) {
    session_.losses.push_back({"counters_damaged",
                               damaged_,
                               where + ": counter values that are truncated, or belong to unknown "
                                       "ranges or metrics; they were left out"});
  }
  std::optional<std::int64_t> paused_ns;
  for (const auto& [is_resumed, at_ns] : activity_) {
    if (!is_resumed) {
      paused_ns = at_ns;
    } else if (paused_ns) {
      session_.gpu_pauses.push_back({process_, *paused_ns, at_ns});
      paused_ns.reset();
    }
  }
  if (paused_ns)
    session_.gpu_pauses.push_back({process_, *paused_ns, model::kOpen});
  if (!activity_.empty() && !metrics_.empty()) {
    session_.losses.push_back(
        {"gpu_timeline_paused",
         activity_.size(),
         where + ": kernels and copies were not recorded while counters were collected; GPU "
                 "counts and times of regions cover the rest of the run"});
  }
}

}  // namespace rangescope::read::native
