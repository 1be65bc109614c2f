#include "analyze/samples/wall_samples.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "analyze/samples/sample_row.hpp"
#include "analyze/statistics/stretches.hpp"

namespace rangescope::analyze {
namespace {

using model::SampleKind;
using model::SampleStream;
constexpr double kCounterError = 0.005;

using Span = Spans::value_type;

/// One stream on the session's clock, with sums from its begin.
class SummedStream {
 public:
  explicit SummedStream(const SampleStream& stream)
      : stream_(stream), sums_(stream.metrics.size()), known_ns_(sums_) {
    std::int64_t offset = 0;
    if (stream.other_clock)
      offset = stream.offset_ns;
    for (std::size_t s = 0; s < stream.start_ns.size(); ++s) {
      start_.push_back(stream.start_ns[s] + offset);
      end_.push_back(stream.end_ns[s] + offset);
    }
    for (std::size_t m = 0; m < sums_.size(); ++m) {
      sums_[m].push_back(0);
      known_ns_[m].push_back(0);
      for (std::size_t s = 0; s < start_.size(); ++s) {
        sums_[m].push_back(sums_[m].back() + amount(m, s));
        double known_ns = 0;
        if (known(m, s))
          known_ns = length(s);
        known_ns_[m].push_back(known_ns_[m].back() + known_ns);
      }
    }
  }

  /// Adds the values of metric `m` in `span`.
  void add(std::size_t m, Span span, SampledRow& row) const {
    const std::int64_t start = span.first;
    const std::int64_t end = span.second;
    row.total_ns += static_cast<double>(length_ns(start, end));
    const auto first =
        static_cast<std::size_t>(std::upper_bound(end_.begin(), end_.end(), start) - end_.begin());
    const auto last = static_cast<std::size_t>(std::lower_bound(start_.begin(), start_.end(), end) -
                                               start_.begin());
    if (first >= last)
      return;
    SamplePart part;
    double sampled = 0;
    const auto add_partly = [&](std::size_t s) {
      if (!known(m, s))
        return;
      const std::int64_t inside_ns = std::min(end, end_[s]) - std::max(start, start_[s]);
      const double inside = static_cast<double>(inside_ns) / length(s);
      part.amount += inside * amount(m, s);
      part.variance += amount(m, s) * amount(m, s) * inside * (1 - inside);
      sampled += inside * length(s);
    };
    add_partly(first);
    if (last - first > 1) {
      add_partly(last - 1);
      part.amount += sums_[m][last - 1] - sums_[m][first + 1];
      sampled += known_ns_[m][last - 1] - known_ns_[m][first + 1];
    }
    if (stream_.metrics[m].kind == SampleKind::kMax)
      for (std::size_t s = first; s < last; ++s)
        if (known(m, s))
          part.largest = std::max(part.largest, value(m, s));
    part.weight = sampled;
    part.edges = kCounterError * part.amount;
    if (stream_.other_clock && known(m, first) && known(m, last - 1))
      part.edges += std::abs(amount(m, last - 1) - amount(m, first));
    row.part.add(part);
    row.sampled_ns += sampled;
  }

  [[nodiscard]] double total(std::size_t m) const { return sums_[m].back(); }
  [[nodiscard]] bool active_in(const Spans& spans) const {
    const std::size_t column = activity_column(stream_);
    std::size_t s = 0;
    for (const auto& [start, end] : spans)
      for (; column < sums_.size() && s < start_.size() && start_[s] < end; ++s)
        if (end_[s] > start && value(column, s) > kOtherActive)
          return true;
    return false;
  }

 private:
  [[nodiscard]] double length(std::size_t s) const {
    return static_cast<double>(end_[s] - start_[s]);
  }
  [[nodiscard]] double value(std::size_t m, std::size_t s) const {
    return static_cast<double>(stream_.metrics[m].values[s]);
  }
  [[nodiscard]] bool known(std::size_t m, std::size_t s) const {
    return !std::isnan(stream_.metrics[m].values[s]);
  }
  [[nodiscard]] double amount(std::size_t m, std::size_t s) const {
    if (!known(m, s))
      return 0;
    return stream_.metrics[m].kind == SampleKind::kAmount ? value(m, s) : value(m, s) * length(s);
  }

  const SampleStream& stream_;
  std::vector<std::int64_t> start_, end_;
  std::vector<std::vector<double>> sums_,
      known_ns_;  ///< by metric, before each sample and after the last
};

/// When a range of any thread was open, in order, without overlap.
Spans open_time(const model::Session& session, const Tree& tree) {
  Spans spans;
  for (std::size_t o = 0; o < tree.range_of.size(); ++o) {
    if (tree.range_of[o] == kNone || tree.parent[o] != kNone)
      continue;
    const model::Range& range = session.ranges[tree.range_of[o]];
    const std::int64_t end = std::min(range.end_ns, session.end_ns);
    if (end > range.start_ns)
      spans.emplace_back(range.start_ns, end);
  }
  unite(spans);
  return spans;
}

/// By region and metric.
using RowsOfRegion = std::vector<std::map<std::string, SampledRow>>;

/// Adds the samples of streams to the rows of regions, and to the report's row of each stream.
class WallSampling {
 public:
  WallSampling(const Regions& regions, const Spans& open, RowsOfRegion& rows)
      : regions_(regions), open_(open), rows_(rows) {}

  void add(const SampleStream& stream, const SummedStream& summed, model::SampledDevice& device) {
    device.offset_ns = stream.other_clock ? stream.offset_ns : 0;
    device.clock = "the session's own";
    if (stream.other_clock)
      device.clock = "the machine's clocks: no kernel was recorded to compare activity with";
    for (std::size_t m = 0; m < stream.metrics.size(); ++m) {
      if (m == activity_column(stream))
        device.busy_ns = summed.total(m);
      if (adds(stream.metrics[m].kind))
        device.sums.push_back(sum_of(stream.metrics[m], summed, m));
      for (std::size_t r = 0; r < rows_.size(); ++r)
        add_to_region(stream, summed, m, r);
    }
  }

 private:
  [[nodiscard]] model::SampledSum sum_of(const model::SampledMetric& metric,
                                         const SummedStream& summed,
                                         std::size_t m) const {
    SampledRow inside;
    for (const Span& span : open_)
      summed.add(m, span, inside);
    return {metric.name,
            metric.unit,
            metric.kind == SampleKind::kShare,
            summed.total(m),
            inside.part.amount,
            summed.total(m) - inside.part.amount,
            0};
  }

  void add_to_region(const SampleStream& stream,
                     const SummedStream& summed,
                     std::size_t m,
                     std::size_t r) {
    const model::SampledMetric& metric = stream.metrics[m];
    SampledRow& row = rows_[r][metric.name];
    row.kind = metric.kind;
    row.unit = metric.unit;
    row.interval_ns = static_cast<double>(std::max<std::int64_t>(stream.interval_ns, 1));
    regions_.for_each_closed(r, [&](std::uint32_t, const model::Range& range) {
      summed.add(m, {range.start_ns, range.end_ns}, row);
    });
  }

  const Regions& regions_;
  const Spans& open_;  ///< when a range of any thread was open
  RowsOfRegion& rows_;
};

/// By stream: does it sample a device that was active in these spans? All do where none was active.
/// NVML knows no activity: its device is the one of the counters.
std::vector<char> streams_of_use(const std::vector<SampleStream>& samples,
                                 const std::vector<SummedStream>& streams,
                                 const Spans& open) {
  std::vector<char> is_active;
  for (const SummedStream& stream : streams)
    is_active.push_back(stream.active_in(open) ? 1 : 0);
  if (std::ranges::find(is_active, 1) == is_active.end())
    return std::vector<char>(streams.size(), 1);
  std::vector<char> is_of_use = is_active;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    for (std::size_t other = 0; other < samples.size(); ++other) {
      const bool is_same = !samples[i].uuid.empty() && samples[other].uuid == samples[i].uuid;
      if (is_same && is_active[other] != 0)
        is_of_use[i] = 1;
    }
  }
  return is_of_use;
}

/// The metrics of a region that were not measured otherwise.
void add_wall_metrics(const std::map<std::string, SampledRow>& rows, model::Region& region) {
  if (region.occurrences == 0)
    return;
  for (const auto& [name, row] : rows) {
    if (region.metrics.contains(name))
      continue;
    model::Metric metric =
        sampled_metric(row, static_cast<double>(region.occurrences), row.total_ns, "wall time");
    metric.source = "sampled over wall time";
    region.metrics.emplace(name, std::move(metric));
  }
}

}  // namespace

bool is_light(const model::Session& session) {
  return !has_gpu_work(session) &&
         std::any_of(session.sources.begin(), session.sources.end(), [](const auto& source) {
           return source.schema.ends_with(", light");
         });
}

void add_wall_samples(const Regions& regions, model::Report& report) {
  const model::Session& session = regions.session;
  const Spans open = open_time(session, regions.tree);
  const std::vector<SummedStream> streams(session.samples.begin(), session.samples.end());
  const std::vector<char> is_of_use = streams_of_use(session.samples, streams, open);
  RowsOfRegion rows(regions.keys.size());
  WallSampling sampling(regions, open, rows);
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const SampleStream& stream = session.samples[i];
    if (is_of_use[i] == 0 || stream.start_ns.empty())
      continue;
    model::SampledDevice device = describe_stream(stream, report);
    device.stream = static_cast<std::uint32_t>(i);
    sampling.add(stream, streams[i], device);
    report.sampled.push_back(std::move(device));
  }
  for (std::size_t r = 0; r < rows.size(); ++r)
    add_wall_metrics(rows[r], report.regions[r]);
  std::string note = "--light: kernels, copies and CUDA calls were not recorded";
  if (report.sampled.empty())
    note += ", and no GPU was sampled";
  else
    note +=
        "; GPU values of a range are what the whole device did while it was open, other "
        "processes' work included";
  report.notes.push_back(std::move(note));
}

}  // namespace rangescope::analyze
