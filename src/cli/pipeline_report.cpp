// The reports of a pipeline: one consolidated report of the timeline with what ncu measured, the two Markdown pages,
// and a folder for each region that ncu measured.

#include <algorithm>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/counters.hpp"
#include "cli/pipeline.hpp"
#include "cli/present.hpp"
#include "cli/split_regions.hpp"
#include "cli/summary.hpp"

namespace rangescope::cli {

base::Result<void> Pipeline::reports() {
  if (captured_.empty() && !timeline()) return {};  // conclude() says why
  // What `rangescope report` makes of this run, and so the same numbers.
  auto analyzed = analyze_inputs(captures_to_read(run_), run_, args_.analysis);
  if (!analyzed) return base::fail(std::move(analyzed));
  model::Report* report = &analyzed->report;
  for (const std::string& text : notes_) report->notes.push_back(text);
  report->losses.insert(report->losses.end(), cut_.begin(), cut_.end());
  report->findings = findings_;
  for (const runs::Stage& stage : runner_->stages()) {
    if (stage.outcome != "empty" && stage.outcome != "failed") continue;
    // Rungs that failed on the way to one that worked are notes; a stage that has nothing at all is a loss.
    const bool missing = std::find(captured_.begin(), captured_.end(), stage.stage) == captured_.end();
    const std::string told = stage.stage + ": ";  // what most messages begin with
    const std::string text = stage.stage + (stage.step.empty() ? "" : ", " + stage.step) + ": " +
                             stage.message.substr(stage.message.starts_with(told) ? told.size() : 0);
    if (missing && stage.stage != "look")
      report->losses.push_back({"stage_" + stage.outcome, model::Severity::kWarning, 1,
                                text + (stage.cure.empty() ? "" : ". " + stage.cure)});
    else
      report->notes.push_back(text);
  }
  if (auto written = base::write_file(run_ / "kernels.md", kernels_page(*report)); !written) return written;
  if (auto written = base::write_file(run_ / "stakeholder_summary.md", stakeholder_page(*report)); !written)
    return written;
  if (!analyzed->parts.empty())
    if (auto split = split_regions(run_ / "ncu" / "regions", *analyzed, true); !split)
      return base::fail(std::move(split));
  for (const auto& [format, name] : {std::pair{"json", "report.json"}, {"md", "report.md"}}) {
    ReportChoice kept;
    kept.format = format;
    kept.to = (run_ / name).string();
    if (auto written = write_report(*analyzed, kept, -1); !written) return written;
  }
  if (!args_.choice.to.empty() || !is_quiet())
    if (auto written = write_report(*analyzed, args_.choice, beside_a_program()); !written) return written;
  if (args_.strict && has_loss(analyzed->report))
    return base::fail(base::Code::kDataLoss, "data was lost", run_.string(),
                      "Without --strict losses are reported only");
  return {};
}

}  // namespace rangescope::cli
