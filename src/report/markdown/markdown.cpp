#include "report/markdown/markdown.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "base/text.hpp"
#include "base/units.hpp"
#include "report/view.hpp"

namespace rangescope::report {
namespace {

// Text inside a table cell or paragraph: what Markdown or HTML would take for its own is escaped.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : base::printable(text)) {
    if (std::string_view("\\|`*_[]<>#").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// `text` as inline code; the fence is longer than any run of backticks in it.
std::string code(std::string_view text) {
  const std::string shown = base::printable(text);
  std::size_t longest = 0, run = 0;
  for (const char c : shown) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  const std::string pad = longest > 0 ? " " : "";
  return fence + pad + shown + pad + fence;
}

void line(Sink& sink, const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += " " + cell + " |";
  sink.write(text + "\n");
}

void rule(Sink& sink, std::size_t numbers) {
  std::string text = "|:--|";
  for (std::size_t i = 0; i < numbers; ++i) text += "--:|";
  sink.write(text + "\n");
}

void heading(const model::Report& report, Sink& sink) {
  const model::RunInfo& run = report.run;
  sink.write("# " + (run.id.empty() ? std::string("Region report") : "Region report of " + escaped(run.id)) + "\n\n");
  if (!run.command.empty()) sink.write("- command: " + code(base::shell_quote(run.command)) + "\n");
  if (run.duration_ns > 0) sink.write("- duration: " + base::format_ns(run.duration_ns) + "\n");
  if (run.signal)
    sink.write(fmt::format("- ended by signal {}\n", *run.signal));
  else if (run.exit_code)
    sink.write(fmt::format("- exit code: {}\n", *run.exit_code));
  if (!run.host.empty()) sink.write("- host: " + escaped(run.host) + "\n");
  for (const std::string& device : report.device_names) sink.write("- GPU: " + escaped(device) + "\n");
  if (!run.tool.empty()) sink.write("- tool: " + escaped(run.tool) + "\n");
}

void kernels(const model::Report& report, const Style& style, Sink& sink) {
  if (report.kernels.empty() || style.top_kernels == 0) return;
  sink.write("\n## Kernels\n\n");
  line(sink, {"kernel", "calls", "total", "median", "max", "share"});
  rule(sink, 5);
  for (std::size_t i = 0; i < report.kernels.size() && i < style.top_kernels; ++i) {
    const model::KernelRow& row = report.kernels[i];
    line(sink, {escaped(row.short_name.empty() ? row.name : row.short_name), base::format_count(row.calls),
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
      sink.write("\n## " + (views->size() > 1 ? "Regions: " + escaped(scope.title) : std::string("Regions")) + "\n\n");
      std::vector<std::string> titles = {"range"};
      for (const ColumnView& column : *chosen) titles.push_back(escaped(column.title));
      line(sink, titles);
      rule(sink, chosen->size());
      for (const RowView& row : scope.rows) {
        std::string indent;
        for (std::size_t i = 0; i < row.depth; ++i) indent += "&nbsp;&nbsp;";
        std::vector<std::string> cells = {indent + escaped(row.label)};
        for (const ColumnView& column : *chosen) cells.push_back(escaped(cell(*row.region, column)));
        line(sink, cells);
      }
      if (scope.hidden > 0) sink.write(fmt::format("\n{} more regions are not shown.\n", scope.hidden));
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
      sink.write(fmt::format("- **{}** ({}, {}): {}\n", escaped(loss.kind), severity_name(loss.severity), loss.count,
                             escaped(loss.detail)));
    if (!report.findings.empty()) sink.write("\n## Findings\n\n");
    for (const model::Finding& finding : report.findings) {
      sink.write(
          fmt::format("- **{}** {}: {}\n", verdict_name(finding.verdict), escaped(finding.id), escaped(finding.found)));
      if (!finding.hint.empty()) sink.write("  - " + escaped(finding.hint) + "\n");
      for (const std::string& command : finding.commands) sink.write("  - " + code(command) + "\n");
    }
    if (!report.notes.empty()) sink.write("\n## Notes\n\n");
    for (const std::string& note : report.notes) sink.write("- " + escaped(note) + "\n");
  }
};

}  // namespace

std::unique_ptr<Exporter> make_markdown() {
  return std::make_unique<Markdown>();
}

}  // namespace rangescope::report
