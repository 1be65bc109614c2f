#include "analyze/time/windows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analyze/time/steady.hpp"
#include "base/units.hpp"

namespace rangescope::analyze {
namespace {

/// The 97.5 % point of Student's t: Cornish and Fisher's expansion (Abramowitz and Stegun 26.7.5), to 0.5 % from 4 on.
double student(double freedom) {
  constexpr double z = 1.959964;
  const double z3 = z * z * z, z5 = z3 * z * z;
  return z + (z3 + z) / (4 * freedom) + (5 * z5 + 16 * z3 + 3 * z) / (96 * freedom * freedom) +
         (3 * z5 * z * z + 19 * z5 + 17 * z3 - 15 * z) / (384 * freedom * freedom * freedom);
}

constexpr std::size_t kFewestWindows = 5;

struct Cluster {
  double busy_ns = 0, occurrences = 0;
};

}  // namespace

bool in_windows(const model::Session& session) {
  return std::any_of(session.sources.begin(), session.sources.end(),
                     [](const auto& source) { return source.schema.ends_with(", in windows"); });
}

void add_estimates(const Regions& regions, const std::vector<std::uint64_t>& busy, model::Report& report) {
  const model::Session& session = regions.session;
  const std::vector<char> untraced = touched_by_pause(session, regions.tree);
  if (untraced.empty() || busy.empty()) return;
  // A window goes by the pause before it.
  std::map<std::uint32_t, std::vector<std::int64_t>> pauses;
  for (const model::GpuPause& pause : session.gpu_pauses) pauses[pause.process].push_back(pause.start_ns);
  for (auto& [process, starts] : pauses) std::sort(starts.begin(), starts.end());
  for (std::size_t r = 0; r < regions.keys.size(); ++r) {
    model::Region& region = report.regions[r];
    if (!region.gpu || region.occurrences == 0) continue;
    std::map<std::pair<std::uint32_t, std::size_t>, Cluster> clusters;
    double traced = 0, busy_ns = 0;
    regions.for_each_closed(r, [&](std::uint32_t o, const model::Range& range) {
      if (untraced[o] != 0) return;
      const std::uint32_t process = session.threads[range.thread].process;
      const std::vector<std::int64_t>& starts = pauses[process];
      const auto window = std::upper_bound(starts.begin(), starts.end(), range.start_ns) - starts.begin();
      Cluster& cluster = clusters[{process, static_cast<std::size_t>(window)}];
      cluster.busy_ns += static_cast<double>(busy[o]);
      cluster.occurrences += 1;
      busy_ns += static_cast<double>(busy[o]);
      traced += 1;
    });
    const auto all = static_cast<double>(region.occurrences), windows = static_cast<double>(clusters.size());
    model::Metric metric{.unit = "ns", .rounds = static_cast<std::int64_t>(traced), .of_all = true};
    metric.source = fmt::format("{} from {} of {} in {}", kEstimated, base::format_count(std::llround(traced)),
                                base::counted(static_cast<std::uint64_t>(region.occurrences), "instance"),
                                base::counted(clusters.size(), "window"));
    if (clusters.size() < kFewestWindows) {
      metric.absent = traced == 0 ? "none of its instances was traced completely"
                                  : fmt::format("too few of its instances were traced: {}, in {}", traced,
                                                base::counted(clusters.size(), "window"));
    } else {
      const double each = busy_ns / traced;
      double squares = 0;
      for (const auto& [at, cluster] : clusters) squares += std::pow(cluster.busy_ns - each * cluster.occurrences, 2);
      const double variance = std::max(1 - traced / all, 0.0) * windows / (windows - 1) * squares / (traced * traced);
      const double wide = student(windows - 1) * std::sqrt(variance) * all;
      metric.value = each * all;
      metric.min = std::max(metric.value - wide, 0.0);
      metric.max = metric.value + wide;
    }
    region.metrics["gpu_busy_estimate"] = std::move(metric);
  }
  report.metric_columns.push_back({"gpu_busy_estimate", "GPU busy, est."});
  report.notes.emplace_back(
      "--overhead: GPU work was traced in windows. GPU values are per traced instance, and 'GPU busy, est.' is the "
      "estimated total; counts and wall times cover all instances");
  for (const model::Source& source : session.sources)
    if (source.schema.find(" windows: tracing took ") != std::string::npos)
      report.notes.push_back("--overhead: " + source.schema);
}

}  // namespace rangescope::analyze
