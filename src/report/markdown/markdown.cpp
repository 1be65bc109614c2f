#include "report/markdown/markdown.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "base/text.hpp"
#include "base/units.hpp"
#include "report/markdown_text.hpp"
#include "report/view.hpp"

namespace rangescope::report {
namespace {

void heading(const model::Report& report, Sink& sink) {
  const model::RunInfo& run = report.run;
  sink.write("# " + (run.id.empty() ? std::string("Region report") : "Region report of " + md_escaped(run.id)) +
             "\n\n");
  if (!run.command.empty()) sink.write("- command: " + md_code(base::shell_quote(run.command)) + "\n");
  if (run.duration_ns > 0) sink.write("- duration: " + base::format_ns(run.duration_ns) + "\n");
  if (run.signal)
    sink.write(fmt::format("- ended by signal {}\n", *run.signal));
  else if (run.exit_code)
    sink.write(fmt::format("- exit code: {}\n", *run.exit_code));
  if (!run.host.empty()) sink.write("- host: " + md_escaped(run.host) + "\n");
  for (const std::string& device : device_texts(report)) sink.write("- GPU: " + md_escaped(device) + "\n");
  if (!run.tool.empty()) sink.write("- tool: " + md_escaped(run.tool) + "\n");
}

void kernels(const model::Report& report, const Style& style, Sink& sink) {
  if (report.kernels.empty() || style.top_kernels == 0) return;
  sink.write("\n## Kernels\n\n");
  md_row(sink, {"kernel", "calls", "total", "median", "max", "share"});
  md_rule(sink, 5);
  for (std::size_t i = 0; i < report.kernels.size() && i < style.top_kernels; ++i) {
    const model::KernelRow& row = report.kernels[i];
    md_row(sink, {md_escaped(row.short_name.empty() ? row.name : row.short_name), base::format_count(row.calls),
                  base::format_ns(row.total_ns), base::format_ns(row.duration_ns.median),
                  base::format_ns(row.duration_ns.max), base::format_share(row.share)});
  }
}

class Markdown final : public Exporter {
 public:
  [[nodiscard]] std::string_view name() const override { return "md"; }
  [[nodiscard]] std::string_view extension() const override { return "md"; }

  [[nodiscard]] base::Result<void> write(const model::Report& report, const model::Session*, const Style& style,
                                         Sink& sink) const override {
    auto chosen = columns(report, style);
    if (!chosen) return base::fail(std::move(chosen));
    auto views = scopes(report, style);
    if (!views) return base::fail(std::move(views));
    heading(report, sink);
    for (const ScopeView& scope : *views) {
      sink.write("\n## " + (views->size() > 1 ? "Regions: " + md_escaped(scope.title) : std::string("Regions")) +
                 "\n\n");
      std::vector<std::string> titles = {"range"};
      for (const ColumnView& column : *chosen) titles.push_back(md_escaped(column.title));
      md_row(sink, titles);
      md_rule(sink, chosen->size());
      for (const RowView& row : scope.rows) {
        std::string indent;
        for (std::size_t i = 0; i < row.depth; ++i) indent += "&nbsp;&nbsp;";
        std::vector<std::string> cells = {indent + md_escaped(row.label)};
        for (const ColumnView& column : *chosen) cells.push_back(md_escaped(cell(*row.region, column)));
        md_row(sink, cells);
      }
      if (scope.hidden > 0)
        sink.write("\n" + base::counted(scope.hidden, "more region is", "more regions are") + " not shown.\n");
    }
    if (views->empty()) sink.write("\nNo ranges.\n");
    if (report.unattributed) {
      const std::string work = work_sentence(*report.unattributed);
      sink.write("\nOutside every range: " + (work.empty() ? std::string("no GPU work") : work) + ".\n");
    }
    kernels(report, style, sink);
    footer(report, sink);
    return {};
  }

 private:
  static void footer(const model::Report& report, Sink& sink) {
    if (!report.losses.empty()) sink.write("\n## Losses\n\n");
    for (const model::Loss& loss : report.losses)
      sink.write(fmt::format("- **{}** ({}, {}): {}\n", md_escaped(loss.kind.id()), model::severity_name(loss.severity),
                             loss.count, md_escaped(loss.detail)));
    if (!report.findings.empty()) sink.write("\n## Findings\n\n");
    for (const model::Finding& finding : report.findings) {
      sink.write(fmt::format("- **{}** {}: {}\n", model::verdict_name(finding.verdict), md_escaped(finding.id),
                             md_escaped(finding.found)));
      if (!finding.hint.empty()) sink.write("  - " + md_escaped(finding.hint) + "\n");
      for (const std::string& command : finding.commands) sink.write("  - " + md_code(command) + "\n");
    }
    if (!report.notes.empty()) sink.write("\n## Notes\n\n");
    for (const std::string& note : report.notes) sink.write("- " + md_escaped(note) + "\n");
  }
};

}  // namespace

std::unique_ptr<Exporter> make_markdown() {
  return std::make_unique<Markdown>();
}

}  // namespace rangescope::report
