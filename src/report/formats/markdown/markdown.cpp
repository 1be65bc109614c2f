#include "report/formats/markdown/markdown.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "base/text.hpp"
#include "base/units.hpp"
#include "model/advice.hpp"
#include "report/document/communication_table.hpp"
#include "report/document/markdown_text.hpp"
#include "report/document/region_table.hpp"
#include "report/document/verdict_text.hpp"
#include "report/document/view.hpp"

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

void turned(const TurnedTable& metrics, Sink& sink) {
  if (metrics.rows.empty()) return;
  std::vector<std::string> heads = {"metric"};
  for (const std::string& head : metrics.heads) heads.push_back(md_escaped(head));
  sink.write("\n");
  md_row(sink, heads);
  md_rule(sink, metrics.heads.size());
  for (const auto& row : metrics.rows) {
    std::vector<std::string> cells;
    for (const std::string& text : row) cells.push_back(md_escaped(text));
    md_row(sink, cells);
  }
}

void write_kernels(const model::Report& report, const Style& style, Sink& sink) {
  if (report.kernels.empty() || style.top_kernels == 0) return;
  const KernelTable table = kernel_table(report, style);
  sink.write("\n## Kernels\n\n");
  std::vector<std::string> heads;
  for (const std::string& head : table.heads) heads.push_back(md_escaped(head));
  md_row(sink, heads);
  md_rule(sink, heads.size() - 1);
  for (const auto& row : table.rows) {
    std::vector<std::string> cells;
    for (const std::string& text : row) cells.push_back(md_escaped(text));
    md_row(sink, cells);
  }
  turned(table.metrics, sink);
}

void answer(const model::Report& report, Sink& sink) {
  if (report.verdict.empty()) return;
  sink.write("\n## Verdict\n\n");
  for (std::size_t i = 0; i < report.verdict.size(); ++i) {
    const model::Verdict& verdict = report.verdict[i];
    sink.write(fmt::format("{}. {}: ", i + 1, model::weight_name(verdict.severity)));
    if (!verdict.path.empty()) sink.write("**" + md_escaped(verdict.path) + "**: ");
    sink.write(md_escaped(verdict.text));
    if (const std::string saving = saving_text(report, verdict); !saving.empty())
      sink.write(" (" + md_escaped(saving) + ")");
    sink.write("\n");
    if (const std::string advice = model::advice_for(verdict); !advice.empty())
      sink.write("   - try: " + md_escaped(advice) + "\n");
    if (!verdict.next.empty()) sink.write("   - next: " + md_code(verdict.next) + "\n");
  }
}

void communication(const model::Report& report, Sink& sink) {
  constexpr std::size_t kMost = 20;
  for (const CommunicationTable& table : communication_tables(report, kMost)) {
    sink.write("\n## " + std::string(table.what == "pair" ? "Messages" : "Collectives") + "\n\n");
    md_row(sink, table.heads);
    md_rule(sink, table.heads.size() - 1);
    for (const auto& row : table.rows) {
      std::vector<std::string> cells;
      for (const std::string& text : row) cells.push_back(md_escaped(text));
      md_row(sink, cells);
    }
    if (table.hidden > 0) sink.write("\n" + base::counted(table.hidden, "more " + table.what) + " in JSON.\n");
  }
}

class Markdown final : public Exporter {
 public:
  [[nodiscard]] std::string_view name() const override { return "md"; }
  [[nodiscard]] std::string_view extension() const override { return "md"; }
  [[nodiscard]] Kind kind() const override { return Kind::kText; }

  [[nodiscard]] base::Result<void> write(const model::Report& report, const model::Session*, const Style& style,
                                         Sink& sink) const override {
    auto tables = region_tables(report, style);
    if (!tables) return base::fail(std::move(tables));
    heading(report, sink);
    answer(report, sink);
    for (const RegionTable& table : *tables) {
      sink.write("\n## " + (tables->size() > 1 ? "Regions: " + md_escaped(table.title) : std::string("Regions")) +
                 "\n\n");
      std::vector<std::string> titles = {"range"};
      for (const ColumnView& column : table.columns) titles.push_back(md_escaped(column.title));
      md_row(sink, titles);
      md_rule(sink, table.columns.size());
      for (const TableLine& line : table.lines) {
        std::string indent;
        for (std::size_t i = 0; i < line.depth; ++i) indent += "&nbsp;&nbsp;";
        std::vector<std::string> cells = {indent + md_escaped(line.label)};
        for (const std::string& text : line.cells) cells.push_back(md_escaped(text));
        md_row(sink, cells);
      }
      if (table.hidden > 0)
        sink.write("\n" + base::counted(table.hidden, "more region is", "more regions are") + " not shown.\n");
      turned(table.metrics, sink);
    }
    if (tables->empty()) sink.write("\nNo ranges.\n");
    communication(report, sink);
    write_kernels(report, style, sink);
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
