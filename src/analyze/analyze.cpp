#include "analyze/analyze.hpp"

#include "analyze/contexts.hpp"
#include "analyze/gpu.hpp"
#include "analyze/measurements.hpp"
#include "analyze/operators.hpp"
#include "analyze/order.hpp"
#include "analyze/regions.hpp"
#include "analyze/select.hpp"
#include "analyze/summaries.hpp"
#include "analyze/tree.hpp"
#include "analyze/useful.hpp"
#include "base/units.hpp"

namespace rangescope::analyze {
namespace {

using model::Report;
using model::Session;
using model::Severity;

void describe_run(const Session& session, Report& report) {
  report.run.duration_ns = static_cast<double>(length_ns(session.begin_ns, session.end_ns));
  for (const model::Source& source : session.sources) {
    std::string text = source.format;
    if (!source.tool.empty()) text += ": " + source.tool;
    if (!source.schema.empty()) text += ", " + source.schema;
    report.run.sources.push_back(std::move(text));
  }
  if (session.clock.anchor_unix_ns != 0) {
    report.run.start_unix_ns = session.clock.anchor_unix_ns - (session.clock.anchor_ns - session.begin_ns);
  }
  for (const model::Process& process : session.processes) {
    model::ReportProcess row;
    row.pid = process.pid;
    row.parent_pid = process.parent_pid;
    row.name = std::string(session.strings.view(process.name));
    row.start_ns = since_ns(session.begin_ns, process.start_ns);
    row.end_ns = since_ns(session.begin_ns, process.end_ns);
    report.processes.push_back(std::move(row));
  }
  for (const model::Range& range : session.ranges) {
    if (range.thread >= session.threads.size()) continue;
    const std::uint32_t process = session.threads[range.thread].process;
    if (process < report.processes.size()) ++report.processes[process].ranges;
  }
  // A recording names every GPU of the machine; one that the program used has a stream.
  std::vector<char> used(session.devices.size());
  for (const model::Stream& stream : session.streams) {
    if (stream.device < used.size()) used[stream.device] = 1;
  }
  const bool any = std::find(used.begin(), used.end(), 1) != used.end();
  for (std::size_t i = 0; i < session.devices.size(); ++i) {
    if (any && used[i] == 0) continue;
    report.devices.push_back(session.devices[i]);
    report.device_names.emplace_back(session.strings.view(session.devices[i].name));
    report.device_uuids.emplace_back(session.strings.view(session.devices[i].uuid));
  }
}

void tree_losses(const Tree& tree, Report& report) {
  const auto add = [&](const char* kind, Severity severity, std::uint64_t count, const char* one, const char* detail) {
    if (count > 0) report.losses.push_back({kind, severity, count, base::counted(count, one) + detail});
  };
  add("unclosed_range", Severity::kInfo, tree.unclosed, "range",
      " had not ended when recording stopped: with what ran inside, but not in the statistics.");
  add("crossing_range", Severity::kWarning, tree.crossing, "push/pop range",
      " overlapping another one of its thread without lying inside it; what both contain counts for the one that began "
      "later.");
  add("backward_range", Severity::kWarning, tree.backward, "range", " left out: the end lies before the start.");
  add("foreign_range", Severity::kWarning, tree.foreign, "range",
      " left out: of a thread or a domain that the recording does not have.");
}

}  // namespace

base::Result<Report> analyze(const Session& session, const Options& options) {
  Report report;
  auto useful = parse_useful(options.flops);
  if (!useful) return base::fail(std::move(useful));
  describe_run(session, report);
  report.losses = session.losses;
  if (!session.summary.empty()) {
    if (session.ranges.empty() && session.kernels.empty() && session.measurements.empty()) {
      if (auto added = add_summaries(session, options, report); !added) return base::fail(std::move(added));
      return report;
    }
    report.notes.emplace_back("Totals by name (nsys stats tables) were left aside: the other inputs say more.");
  }

  Tree tree = build_tree(session, options.domains, options.threads);
  Contexts contexts;
  if (has_gpu_work(session)) {
    contexts = build_contexts(session, tree, options);
    add_replays(session, options.domains, tree, contexts);
  }
  if (session.ranges.empty()) add_measured_cells(session, options.domains, tree);
  link_nodes(tree, session);
  tree_losses(tree, report);
  auto selected = select_nodes(tree, session, options, report.notes);
  if (!selected) return base::fail(std::move(selected));
  auto kernels = select_kernels(session, options, report.notes);
  if (!kernels) return base::fail(std::move(kernels));

  const std::vector<RegionKey> keys = plan_regions(tree, session, options, *selected);
  const Buckets by_cell = bucket_sort(tree.cell.size(), tree.cells.size(), [&](std::size_t o) { return tree.cell[o]; });
  std::vector<std::vector<std::uint32_t>> sampled;
  report.regions = wall_regions(tree, session, options, keys, by_cell, sampled);
  if (has_gpu_work(session)) {
    add_gpu_work(session, options, tree, contexts, keys, by_cell, sampled, *kernels, report);
  }
  if (session.unrecorded.kernels) add_projections(session, tree, keys, by_cell, report);
  add_useful_flop(session, *useful, tree, keys, by_cell, report);
  add_measurements(session, options, tree, keys, *kernels, report);
  add_operators(session, report);
  return report;
}

}  // namespace rangescope::analyze
