#include "analyze/samples/samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "analyze/samples/division.hpp"
#include "analyze/samples/sample_clock.hpp"
#include "analyze/tree/busy.hpp"
#include "base/units.hpp"

namespace rangescope::analyze {
namespace {

using model::SampledMetric;
using model::SampleKind;
using model::SampleStream;
using model::Session;

constexpr std::size_t kMostKinds = 256;
using Rows = std::map<std::string, SampledRow>;

void add_metrics(const Rows& rows,
                 double per,
                 double busy_ns,
                 std::map<std::string, model::Metric>& metrics) {
  for (const auto& [name, row] : rows)
    if (!metrics.contains(name))
      metrics.emplace(name, sampled_metric(row, per, busy_ns, "GPU work"));
}

/// A stream of samples, the work of its card, and how they were divided among it.
struct DividedStream {
  const SampleStream& stream;
  const SampledWork& work;
  DividedSamples samples;
};

/// What `divided` has of metric `m` by where it belongs.
model::SampledSum sum_of(const DividedStream& divided, std::size_t m, std::size_t sets) {
  const SampledMetric& metric = divided.stream.metrics[m];
  const DividedSamples& samples = divided.samples;
  model::SampledSum sum{
      metric.name, metric.unit, metric.kind == SampleKind::kShare, samples.totals[m], 0, 0, 0};
  for (std::uint32_t s = 0; s < samples.set_total_ns.size(); ++s) {
    const bool outside = s == Sets::kUnattributed || s == Sets::kNoLaunch || s >= sets;
    (outside ? sum.outside : sum.in_ranges) += samples.of_set[m][s].amount;
  }
  sum.idle = samples.of_kind[m].back().amount;
  return sum;
}

/// What the device draws while it has nothing to do, for each nanosecond of work: work that runs at
/// the same time shares it. Nothing where too little of the idle device was sampled.
std::optional<double> idle_rate(const DividedStream& divided, std::size_t m) {
  const DividedSamples& samples = divided.samples;
  const double idle_ns = samples.kind_ns.back();
  if (idle_ns < kLeastSamples * static_cast<double>(divided.stream.interval_ns))
    return std::nullopt;
  double work_ns = 0;
  for (std::size_t k = 0; k < divided.work.kinds.size(); ++k)
    work_ns += samples.kind_ns[k];
  if (work_ns <= 0)
    return std::nullopt;
  return samples.of_kind[m].back().amount / idle_ns * samples.busy_ns / work_ns;
}

class Reporter {
 public:
  Reporter(const Session& session,
           const Contexts& contexts,
           const Sets& sets,
           const KernelGroups& groups,
           model::Report& report)
      : session_(session),
        contexts_(contexts),
        sets_(sets),
        groups_(groups),
        report_(report),
        regions_(sets.regions),
        kernels_(groups.names.size()) {}

  void run() {
    std::size_t cards = 0;
    const std::vector<std::uint32_t> card_of = cards_of_streams(session_, cards);
    for (const SampleStream& stream : session_.samples) {
      if (const auto card = card_of_samples(stream, card_of, cards))
        add(stream, work_of_card(session_, contexts_, sets_, groups_, card_of, *card, kMostKinds));
    }
    add_region_metrics();
    add_kernel_metrics();
  }

 private:
  void add_region_metrics() {
    for (std::size_t r = 0; r < report_.regions.size() && r < regions_.size(); ++r) {
      model::Region& region = report_.regions[r];
      const auto occurrences = static_cast<double>(region.occurrences);
      if (region.gpu)
        add_metrics(regions_[r], occurrences, region.gpu->busy_ns, region.metrics);
    }
  }

  void add_kernel_metrics() {
    std::map<std::string_view, std::uint32_t> number_of;
    for (std::uint32_t n = 0; n < groups_.names.size(); ++n) {
      const model::KernelName& name = session_.kernel_names[groups_.names[n].kernel_name];
      number_of.emplace(session_.strings.view(shown_name(name)), n);
    }
    for (model::KernelRow& row : report_.kernels) {
      const auto number = number_of.find(row.name);
      if (number == number_of.end())
        continue;
      const auto calls = static_cast<double>(row.calls);
      add_metrics(kernels_[number->second], calls, row.total_ns, row.metrics);
    }
  }

  /// The card that a stream samples; nothing where the program did not use it.
  [[nodiscard]] std::optional<std::uint32_t> card_of_samples(
      const SampleStream& stream,
      const std::vector<std::uint32_t>& card_of,
      std::size_t cards) const {
    bool has_uuids = false;
    for (std::size_t s = 0; s < session_.streams.size(); ++s) {
      const std::uint32_t device = session_.streams[s].device;
      if (device >= session_.devices.size())
        continue;
      const std::string_view uuid = session_.strings.view(session_.devices[device].uuid);
      has_uuids |= !uuid.empty();
      if (device == stream.device || (!uuid.empty() && uuid == stream.uuid))
        return card_of[s];
    }
    const bool cannot_compare = !has_uuids || stream.uuid.empty();
    if (cannot_compare && cards == 1)
      return 0;
    return std::nullopt;
  }

  void add(const SampleStream& stream, const SampledWork& work) {
    if (stream.start_ns.empty() || stream.metrics.empty())
      return;
    model::SampledDevice device = describe_stream(stream, report_);
    const Alignment clock = aligned(stream, work);
    device.clock = clock_text(stream, clock);
    device.stream = static_cast<std::uint32_t>(&stream - session_.samples.data());
    device.offset_ns = clock.offset_ns;
    const DividedStream divided{
        stream, work, divide_samples(stream, work, sets_.size(), clock.offset_ns)};
    device.busy_ns = divided.samples.busy_ns;
    device.other_ns = divided.samples.other_ns;
    report_other_activity(device);
    for (std::size_t m = 0; m < stream.metrics.size(); ++m) {
      if (adds(stream.metrics[m].kind))
        device.sums.push_back(sum_of(divided, m, sets_.size()));
      add_rows(divided, m);
    }
    report_.sampled.push_back(std::move(device));
  }

  Alignment aligned(const SampleStream& stream, const SampledWork& work) {
    const std::size_t activity = activity_column(stream);
    Alignment clock{stream.offset_ns, 0, 0, false};
    if (stream.other_clock && activity < stream.metrics.size())
      clock = align_samples({stream.start_ns, stream.end_ns, stream.metrics[activity].values},
                            work.kernels,
                            stream.offset_ns);
    if (clock.residual_ns > static_cast<double>(stream.interval_ns))
      report_.losses.push_back(
          {"sample_clock",
           0,
           fmt::format("The clock of the samples of {} drifted by {} against the timeline: "
                       "neighbouring ranges may share samples.",
                       stream.name,
                       base::format_ns(clock.residual_ns))});
    return clock;
  }

  static std::string clock_text(const SampleStream& stream, const Alignment& clock) {
    if (clock.by_activity)
      return fmt::format(
          "by activity, correlation {:.2f}, {:.1f} us from the machine's clocks, halves agree "
          "within {:.1f} us",
          clock.correlation,
          static_cast<double>(clock.offset_ns - stream.offset_ns) * 1e-3,
          clock.residual_ns * 1e-3);
    if (stream.other_clock)
      return "the machine's clocks: too little ran to compare activity";
    return "the session's own";
  }

  void report_other_activity(const model::SampledDevice& device) {
    const bool is_much = device.other_ns > 0.01 * device.sampled_ns;
    if (!is_much || device.other_ns <= 10 * device.interval_ns)
      return;
    report_.losses.push_back(
        {"other_gpu_activity",
         0,
         fmt::format("{} was active for {} while none of this program's work ran: another "
                     "process used it. That time belongs to no range; the other process's share "
                     "during this program's work is unknown.",
                     device.name,
                     base::format_ns(device.other_ns))});
  }

  /// Adds metric `m` to the rows of regions and kernels; energy also without what the idle device
  /// would have drawn.
  void add_rows(const DividedStream& divided, std::size_t m) {
    const SampledMetric& metric = divided.stream.metrics[m];
    add_rows(divided, m, metric.name, 0);
    if (metric.unit != "J")
      return;
    if (const auto rate = idle_rate(divided, m))
      add_rows(divided, m, metric.name + "_above_idle", *rate);
  }

  /// Less `rate` for each nanosecond of work.
  void add_rows(const DividedStream& divided, std::size_t m, const std::string& name, double rate) {
    const DividedSamples& samples = divided.samples;
    const auto add = [&](SampledRow& row, SamplePart part, double sampled_ns, double total_ns) {
      part.amount -= rate * sampled_ns;
      row.part.add(part);
      row.sampled_ns += sampled_ns;
      row.total_ns += total_ns;
    };
    for (std::uint32_t s = 0; s < samples.set_total_ns.size() && s < sets_.size(); ++s) {
      if (samples.set_total_ns[s] <= 0)
        continue;
      for (const SetEntry& entry : sets_.of(s))
        add(row_in(regions_[entry.region], name, divided.stream, m),
            samples.of_set[m][s],
            samples.set_ns[s],
            samples.set_total_ns[s]);
    }
    for (std::uint32_t k = 0; k < divided.work.kinds.size(); ++k) {
      const WorkKind& kind = divided.work.kinds[k];
      if (kind.name != kNone)
        add(row_in(kernels_[kind.name], name, divided.stream, m),
            samples.of_kind[m][k],
            samples.kind_ns[k],
            kind.total_ns);
    }
  }

  static SampledRow& row_in(Rows& rows,
                            const std::string& name,
                            const SampleStream& stream,
                            std::size_t m) {
    SampledRow& row = rows[name];
    row.kind = stream.metrics[m].kind;
    row.unit = stream.metrics[m].unit;
    row.interval_ns = static_cast<double>(std::max<std::int64_t>(stream.interval_ns, 1));
    return row;
  }

  const Session& session_;
  const Contexts& contexts_;
  const Sets& sets_;
  const KernelGroups& groups_;
  model::Report& report_;
  std::vector<Rows> regions_, kernels_;
};

/// The column of `stream` with each name of the formula, as far as there is one.
std::map<std::string_view, std::size_t> columns_of(const model::GroupMetric& metric,
                                                   const model::MetricGroup& group,
                                                   const SampleStream& stream) {
  std::map<std::string_view, std::size_t> column_of;
  for (const std::string& name : metric.formula.names()) {
    const auto counter = std::ranges::find(group.counters, name, &model::GroupCounter::alias);
    if (counter == group.counters.end())
      continue;
    for (std::size_t m = 0; m < stream.metrics.size(); ++m)
      if (std::ranges::find(counter->any, stream.metrics[m].name) != counter->any.end())
        column_of.emplace(name, m);
  }
  return column_of;
}

SampledMetric derived_metric(const model::GroupMetric& metric,
                             const std::map<std::string_view, std::size_t>& column_of,
                             const SampleStream& stream) {
  SampledMetric out;
  out.name = metric.name;
  out.unit = metric.unit;
  out.title = metric.column ? metric.title : std::string();
  out.kind = stream.metrics[column_of.begin()->second].kind;
  out.values.resize(stream.start_ns.size());
  for (std::size_t s = 0; s < out.values.size(); ++s) {
    const auto value = metric.formula.evaluate([&](std::string_view name) -> std::optional<double> {
      return static_cast<double>(stream.metrics[column_of.at(name)].values[s]);
    });
    out.values[s] = value ? static_cast<float>(*value) : std::numeric_limits<float>::quiet_NaN();
  }
  return out;
}

}  // namespace

void derive_samples(model::Session& session, std::span<const model::MetricGroup> groups) {
  for (SampleStream& stream : session.samples) {
    std::vector<SampledMetric> derived;
    std::vector<char> is_used(stream.metrics.size(), 0);
    for (const model::MetricGroup& group : groups) {
      for (const model::GroupMetric& metric : group.metrics) {
        const auto column_of = columns_of(metric, group, stream);
        if (column_of.empty() || column_of.size() != metric.formula.names().size())
          continue;
        derived.push_back(derived_metric(metric, column_of, stream));
        for (const auto& [name, column] : column_of)
          is_used[column] = 1;
      }
    }
    for (std::size_t m = 0; m < stream.metrics.size(); ++m)
      if (is_used[m] == 0)
        derived.push_back(std::move(stream.metrics[m]));
    stream.metrics = std::move(derived);
  }
}

void add_samples(const Session& session,
                 const Contexts& contexts,
                 const Sets& sets,
                 const KernelGroups& groups,
                 model::Report& report) {
  if (!session.samples.empty())
    Reporter(session, contexts, sets, groups, report).run();
}

}  // namespace rangescope::analyze
