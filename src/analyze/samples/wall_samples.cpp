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
class Summed {
 public:
  explicit Summed(const SampleStream& stream)
      : stream_(stream), sums_(stream.metrics.size()), known_ns_(sums_) {
    const std::int64_t offset = stream.other_clock ? stream.offset_ns : 0;
    for (std::size_t s = 0; s < stream.start_ns.size(); ++s) {
      start_.push_back(stream.start_ns[s] + offset);
      end_.push_back(stream.end_ns[s] + offset);
    }
    for (std::size_t m = 0; m < sums_.size(); ++m) {
      sums_[m].push_back(0);
      known_ns_[m].push_back(0);
      for (std::size_t s = 0; s < start_.size(); ++s) {
        sums_[m].push_back(sums_[m].back() + amount(m, s));
        known_ns_[m].push_back(known_ns_[m].back() + (known(m, s) ? length(s) : 0));
      }
    }
  }

  /// Adds the values of metric `m` in `span`.
  void add(std::size_t m, Span span, SampledRow& row) const {
    const std::int64_t from = span.first, to = span.second;
    row.total_ns += static_cast<double>(length_ns(from, to));
    const auto first =
        static_cast<std::size_t>(std::upper_bound(end_.begin(), end_.end(), from) - end_.begin());
    const auto last = static_cast<std::size_t>(std::lower_bound(start_.begin(), start_.end(), to) -
                                               start_.begin());
    if (first >= last)
      return;
    SamplePart part;
    double sampled = 0;
    const auto cut = [&](std::size_t s) {
      if (!known(m, s))
        return;
      const double inside =
          static_cast<double>(std::min(to, end_[s]) - std::max(from, start_[s])) / length(s);
      part.amount += inside * amount(m, s);
      part.variance += amount(m, s) * amount(m, s) * inside * (1 - inside);
      sampled += inside * length(s);
    };
    cut(first);
    if (last - first > 1) {
      cut(last - 1);
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
    for (const auto& [from, to] : spans)
      for (; column < sums_.size() && s < start_.size() && start_[s] < to; ++s)
        if (end_[s] > from && value(column, s) > kOtherActive)
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
    if (const std::int64_t end = std::min(range.end_ns, session.end_ns); end > range.start_ns)
      spans.emplace_back(range.start_ns, end);
  }
  unite(spans);
  return spans;
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
  const std::size_t count = regions.keys.size();
  const Spans open = open_time(session, regions.tree);
  std::vector<Summed> streams;
  std::vector<char> used;
  for (const SampleStream& stream : session.samples) {
    streams.emplace_back(stream);
    used.push_back(streams.back().active_in(open) ? 1 : 0);
  }
  const bool any = std::find(used.begin(), used.end(), 1) != used.end();
  std::vector<std::map<std::string, SampledRow>> rows(count);
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const SampleStream& stream = session.samples[i];
    // NVML knows no activity: its device is the one of the counters.
    const bool ours =
        !any || used[i] != 0 ||
        std::any_of(streams.begin(), streams.end(), [&](const Summed& other) {
          const auto at = static_cast<std::size_t>(&other - streams.data());
          return used[at] != 0 && !stream.uuid.empty() && session.samples[at].uuid == stream.uuid;
        });
    if (!ours || stream.start_ns.empty())
      continue;
    model::SampledDevice device = describe_stream(stream, report);
    device.stream = static_cast<std::uint32_t>(i);
    device.offset_ns = stream.other_clock ? stream.offset_ns : 0;
    device.clock = stream.other_clock
                       ? "the machine's clocks: no kernel was recorded to compare activity with"
                       : "the session's own";
    for (std::size_t m = 0; m < stream.metrics.size(); ++m) {
      const model::SampledMetric& metric = stream.metrics[m];
      SampledRow inside;
      for (const Span& span : open)
        streams[i].add(m, span, inside);
      device.busy_ns = m == activity_column(stream) ? streams[i].total(m) : device.busy_ns;
      if (adds(metric.kind))
        device.sums.push_back({metric.name,
                               metric.unit,
                               metric.kind == SampleKind::kShare,
                               streams[i].total(m),
                               inside.part.amount,
                               streams[i].total(m) - inside.part.amount,
                               0});
      for (std::size_t r = 0; r < count; ++r) {
        SampledRow& row = rows[r][metric.name];
        row.kind = metric.kind;
        row.unit = metric.unit;
        row.interval_ns = static_cast<double>(std::max<std::int64_t>(stream.interval_ns, 1));
        regions.for_each_closed(r, [&](std::uint32_t, const model::Range& range) {
          streams[i].add(m, {range.start_ns, range.end_ns}, row);
        });
      }
    }
    report.sampled.push_back(std::move(device));
  }
  for (std::size_t r = 0; r < count; ++r) {
    model::Region& region = report.regions[r];
    for (const auto& [name, row] : rows[r]) {
      if (region.occurrences == 0 || region.metrics.contains(name))
        continue;
      model::Metric metric =
          sampled_metric(row, static_cast<double>(region.occurrences), row.total_ns, "wall time");
      metric.source = "sampled over wall time";
      region.metrics.emplace(name, std::move(metric));
    }
  }
  report.notes.push_back(
      report.sampled.empty()
          ? "--light: kernels, copies and CUDA calls were not recorded, and no GPU was sampled"
          : "--light: kernels, copies and CUDA calls were not recorded; GPU values of a range are "
            "what the whole device "
            "did while it was open, other processes' work included");
}

}  // namespace rangescope::analyze
