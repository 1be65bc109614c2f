#include "analyze/what_if/what_if.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "analyze/ranks/collectives.hpp"
#include "analyze/replay/build.hpp"
#include "analyze/replay/predict.hpp"
#include "analyze/what_if/change.hpp"
#include "analyze/what_if/rule.hpp"
#include "base/text.hpp"

namespace rangescope::analyze {
namespace {

using model::PredictedTime;
using model::Report;
using replay::Graph;
using replay::Prediction;

/// The kernels of each joined call of NCCL.
std::vector<replay::CollectiveKernels> collective_kernels(const model::Session& session) {
  const CollectiveCalls calls = find_collectives(session);
  std::map<std::pair<std::uint32_t, std::int64_t>, replay::Id> kernel_at;  // by stream and start
  for (replay::Id id = 0; id < session.kernels.size(); ++id)
    kernel_at[{session.kernels[id].stream, session.kernels[id].start_ns}] = id;
  std::vector<replay::CollectiveKernels> collectives;
  for (const JoinedCall& joined : calls.joined) {
    replay::CollectiveKernels kernels;
    for (const std::uint32_t index : joined.calls) {
      const CollectiveCall& call = calls.calls[index];
      const auto kernel = kernel_at.find({call.stream, call.start_ns});
      if (kernel != kernel_at.end())
        kernels.push_back(kernel->second);
    }
    if (kernels.size() > 1)
      collectives.push_back(std::move(kernels));
  }
  return collectives;
}

/// Where a replay::Parameter is the end of every interval.
constexpr replay::Parameter kEnds{0, -1, 1};

End end_of(double parameter) {
  if (parameter < 0)
    return End::kLow;
  if (parameter > 0)
    return End::kHigh;
  return End::kExpected;
}

replay::Change all_of(const std::vector<SupposedEffect>& effects) {
  return [&effects](const Graph& graph, double parameter) {
    Graph changed = graph;
    for (const SupposedEffect& effect : effects)
      changed = effect.apply(changed, end_of(parameter));
    return changed;
  };
}

/// `fixed_ns` of `now_ns` is not in the prediction, and stays.
PredictedTime predicted_time(double now_ns, double fixed_ns, const Prediction& prediction) {
  PredictedTime time;
  time.now_ns = now_ns;
  time.replay_error = prediction.replay_error;
  time.is_bound = prediction.is_bound;
  double ns_per_replayed_ns = 0;
  if (prediction.before_ns > 0)
    ns_per_replayed_ns = (now_ns - fixed_ns) / prediction.before_ns;
  time.after_ns = fixed_ns + prediction.after_ns * ns_per_replayed_ns;
  time.after_low_ns = fixed_ns + prediction.after_low_ns * ns_per_replayed_ns;
  time.after_high_ns = fixed_ns + prediction.after_high_ns * ns_per_replayed_ns;
  return time;
}

/// Of instances that are counted and not listed: nothing on a GPU happened in them.
double unlisted_ns(const Tree& tree, std::span<const std::uint32_t> cells) {
  double sum_ns = 0;
  for (const std::uint32_t cell : cells) {
    const UnlistedOfCell* unlisted = tree.unlisted(cell);
    if (unlisted != nullptr)
      sum_ns += static_cast<double>(unlisted->wall.moments.sum);
  }
  return sum_ns;
}

double saved_share(const PredictedTime& time) {
  return time.now_ns > 0 ? time.saves_ns() / time.now_ns : 0;
}

void add_metrics(const PredictedTime& time, const std::string& source, model::Region& region) {
  model::Metric wall;
  wall.value = time.after_ns;
  wall.unit = "ns";
  wall.min = time.after_low_ns;
  wall.max = time.after_high_ns;
  wall.source = source;
  wall.of_all = true;
  region.metrics[std::string(model::kPredictedWall)] = std::move(wall);

  model::Metric saving;
  saving.value = saving.min = saving.max = saved_share(time);
  if (time.now_ns > 0) {
    saving.min = 1 - time.after_high_ns / time.now_ns;
    saving.max = 1 - time.after_low_ns / time.now_ns;
  }
  saving.unit = "ratio";
  saving.source = source;
  region.metrics[std::string(model::kPredictedSaving)] = std::move(saving);
}

/// What rows of several regions have is theirs together.
void add_to_rows(const std::string& source, Report& report) {
  std::vector<const PredictedTime*> time_of(report.regions.size(), nullptr);
  for (const model::PredictedRegion& predicted : report.what_if->regions)
    time_of[predicted.region] = &predicted.time;
  for (model::TableRow& row : report.rows) {
    if (!row.merged)
      continue;
    PredictedTime sum;
    bool is_complete = true;
    for (const std::uint32_t member : row.members) {
      const PredictedTime* time = time_of[member];
      if (time == nullptr) {
        is_complete = false;
        break;
      }
      sum.now_ns += time->now_ns;
      sum.after_ns += time->after_ns;
      sum.after_low_ns += time->after_low_ns;
      sum.after_high_ns += time->after_high_ns;
    }
    if (is_complete)
      add_metrics(sum, source, *row.merged);
  }
}

}  // namespace

base::Result<void> add_what_if(const Regions& regions, const Reference& reference, Report& report) {
  const auto rules = TRY(parse_what_if(regions.options.what_if));
  if (rules.empty())
    return {};
  const model::Session& session = regions.session;
  if (session.launches.empty() || !model::ran_on_gpu(session))
    return base::fail(base::Code::kNothingCaptured,
                      "nothing can be predicted: the recording has no CUDA calls with GPU work",
                      "--what-if",
                      "Name a recording of rangescope profile, nsys or PyTorch.");

  std::vector<replay::CollectiveKernels> collectives;
  if (report.ranks.size() > 1)
    collectives = collective_kernels(session);
  const auto tracing_ns = static_cast<std::int64_t>(reference.replay_costs.tracing_ns.expected);
  const replay::Predictor predictor(replay::graph_of(session, collectives), tracing_ns);
  const ChangeCosts costs{reference.replay_costs,
                          model::host_link_of(reference.peaks, report.device_names)};
  model::WhatIf& what_if = report.what_if.emplace();
  std::vector<SupposedEffect> effects;
  for (const WhatIfRule& rule : rules) {
    auto effect = TRY(effect_of(rule, regions, predictor.graph(), costs));
    what_if.changes.push_back({rule.written, effect.subject});
    effects.push_back(std::move(effect));
  }

  std::vector<std::vector<replay::Span>> instances;
  for (std::size_t region = 0; region < regions.keys.size(); ++region)
    instances.push_back(spans_of(regions, regions.cells(region)));
  const replay::Predictions predictions = predictor.predict_all(instances, all_of(effects), kEnds);

  const double outside_ns = std::max(0.0, report.run.duration_ns - predictions.run_recorded_ns);
  what_if.run = predicted_time(report.run.duration_ns, outside_ns, predictions.run);
  const std::string source =
      "predicted: --what-if " + base::join(regions.options.what_if, " --what-if ");
  for (std::uint32_t id = 0; id < regions.keys.size(); ++id) {
    if (instances[id].empty())
      continue;
    model::Region& region = report.regions[id];
    const double fixed_ns = unlisted_ns(regions.tree, regions.cells(id));
    const PredictedTime time =
        predicted_time(region.wall.inclusive_ns, fixed_ns, predictions.groups[id]);
    what_if.regions.push_back({id, time});
    add_metrics(time, source, region);
  }
  add_to_rows(source, report);
  report.metric_columns.insert(report.metric_columns.begin(),
                               {{std::string(model::kPredictedWall), "predicted"},
                                {std::string(model::kPredictedSaving), "saves"}});
  return {};
}

}  // namespace rangescope::analyze
