#include "report/formats/terminal/terminal.hpp"
#include "model/measure.hpp"
#include "report/document/findings.hpp"
#include "report/document/operators_table.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "base/table.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "report/document/communication_table.hpp"
#include "report/document/cpu_page.hpp"
#include "report/document/region_table.hpp"
#include "report/document/verdict_text.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {
namespace {

using base::Tone;

constexpr std::size_t kIndent = 2;
constexpr std::size_t kDeepest = 24;  // levels that are indented; deeper ones show their level as a number

std::string tree_label(const TableLine& line) {
  if (line.depth <= kDeepest) return std::string(line.depth * kIndent, ' ') + line.label;
  return fmt::format("{:>{}}: {}", line.depth, kDeepest * kIndent, line.label);
}

Tone tone_of(model::Severity severity) {
  return severity == model::Severity::kError     ? Tone::kBad
         : severity == model::Severity::kWarning ? Tone::kWarn
                                                 : Tone::kDim;
}

void header(const model::Report& report, const Style& style, Sink& sink) {
  const model::RunInfo& run = report.run;
  if (!run.command.empty())
    sink.write(base::toned(base::elide(base::printable(base::shell_quote(run.command)), style.width), Tone::kBold,
                           style.color) +
               "\n");
  std::string facts;
  const auto add = [&](const std::string& text) { facts += (facts.empty() ? "" : ", ") + text; };
  if (run.duration_ns > 0) add(base::format_ns(run.duration_ns));
  if (run.signal)
    add(fmt::format("ended by signal {}", *run.signal));
  else if (run.exit_code && *run.exit_code != 0)
    add(fmt::format("exit code {}", *run.exit_code));
  if (report.processes.size() > 1) add(base::counted(report.processes.size(), "process"));
  for (const std::string& device : device_texts(report)) add(base::printable(device));
  if (!run.id.empty()) add("run " + base::printable(run.id));
  if (!facts.empty()) sink.write(base::toned(facts, Tone::kDim, style.color) + "\n\n");
}

void aside(std::string text, const Style& style, Sink& sink) {
  sink.write(base::toned(std::move(text), Tone::kDim, style.color) + "\n");
}

void turned(const TurnedTable& metrics, const Style& style, Sink& sink) {
  if (metrics.rows.empty()) return;
  std::vector<base::Table::Column> heads = {{"metric", false, true, 0}};
  for (std::size_t i = 0; i < metrics.heads.size(); ++i)
    heads.push_back({metrics.heads[i], true, false, static_cast<int>(metrics.heads.size() - i)});
  base::Table table(std::move(heads));
  for (const auto& row : metrics.rows) {
    std::vector<base::Table::Cell> cells;
    for (const std::string& text : row) cells.push_back({text});
    table.add(std::move(cells));
  }
  std::vector<std::string> dropped;
  constexpr std::size_t kLeast = 36;  // columns that a metric's name keeps
  sink.write("\n" + table.render(style.width, style.color, &dropped, kLeast));
  if (const std::size_t hidden = metrics.hidden + dropped.size(); hidden > 0)
    aside("(" + base::counted(hidden, "more column") + ": -f csv has all)", style, sink);
}

void regions(const RegionTable& shown, bool titled, const Style& style, Sink& sink) {
  if (titled) sink.write(base::toned(shown.title, Tone::kBold, style.color) + "\n");
  std::vector<base::Table::Column> heads = {{"range", false, true, 0}};
  for (const ColumnView& column : shown.columns) heads.push_back({column.title, true, false, column.importance});
  base::Table table(std::move(heads));
  for (const TableLine& line : shown.lines) {
    const Tone whole = line.region == nullptr ? Tone::kDim : Tone::kPlain;
    std::vector<base::Table::Cell> cells = {{tree_label(line), whole}};
    for (const std::string& text : line.cells)
      cells.push_back({text, text == "-" || text == "0" || text == "0 ns" || text == "0 B" ? Tone::kDim : whole});
    table.add(std::move(cells));
  }
  std::vector<std::string> dropped;
  sink.write(table.render(style.width, style.color, &dropped));
  if (shown.hidden > 0)
    aside("(" + base::counted(shown.hidden, "more region") + ": --all shows each, --top 50 the largest)", style, sink);
  if (!dropped.empty()) aside("(no room for: " + base::join(dropped, ", ") + ")", style, sink);
  turned(shown.metrics, style, sink);
}

void details(const RegionTable& shown, const Style& style, Sink& sink) {
  for (const TableLine& line : shown.lines) {
    if (line.region == nullptr) continue;
    const model::Region& region = *line.region;
    const std::string name = base::printable(model::path_text(region));
    if (region.unclosed > 0)
      sink.write(fmt::format("{}: {} began and never ended: not in the statistics\n", name,
                             base::format_count(region.unclosed)));
    if (region.bound && style.explain)
      sink.write(fmt::format("{}: limiter {}: {}\n", name, base::printable(region.bound->kind),
                             base::printable(region.bound->reason)));
    if (!style.explain) continue;
    for (const std::string& note : region.notes) sink.write(name + ": " + base::printable(note) + "\n");
  }
}

void kernels(const model::Report& report, const Style& style, Sink& sink) {
  if (report.kernels.empty() || style.top_kernels == 0) return;
  const KernelTable shown = kernel_table(report, style);
  std::vector<base::Table::Column> heads;
  for (std::size_t i = 0; i < shown.heads.size(); ++i) {
    const bool spare = shown.heads[i] == "median" || shown.heads[i] == "max";
    const bool answer = shown.heads[i] == "bound" || shown.heads[i] == "% of roofline";
    heads.push_back({shown.heads[i], i > 0, i == 0, spare ? 1 : i < 6 ? 0 : answer ? 3 : 2});
  }
  base::Table table(std::move(heads));
  for (const auto& row : shown.rows) {
    std::vector<base::Table::Cell> cells;
    for (const std::string& text : row) cells.push_back({text});
    table.add(std::move(cells));
  }
  std::vector<std::string> dropped;
  constexpr std::size_t kName = 30;  // columns that a kernel's name keeps
  sink.write("\n" + table.render(style.width, style.color, &dropped, kName));
  if (!dropped.empty()) aside("(no room for: " + base::join(dropped, ", ") + ")", style, sink);
  if (shown.hidden > 0) aside("(" + base::counted(shown.hidden, "more kernel") + ": --top-kernels 50)", style, sink);
  turned(shown.metrics, style, sink);
}

void explain(const std::vector<ColumnView>& columns, Sink& sink) {
  sink.write("\n");
  for (const ColumnView& column : columns) {
    if (const model::Measure* measure = model::find_measure(column.tag))
      sink.write(
          fmt::format("{} ({}, from {}): {}\n", measure->title, measure->tag, measure->source, measure->formula));
  }
}

class Terminal final : public Exporter {
 public:
  [[nodiscard]] std::string_view name() const override { return kDefaultFormat; }
  [[nodiscard]] std::string_view extension() const override { return "txt"; }
  [[nodiscard]] Kind kind() const override { return Kind::kText; }

  [[nodiscard]] base::Result<void> write(const model::Report& report, const model::Session*, const Style& style,
                                         Sink& sink) const override {
    if (!style.cpu.empty()) {
      const auto page = cpu_page(report, style);
      if (!page) return tl::make_unexpected(page.error());
      sink.write(*page);
      return {};
    }
    auto tables = region_tables(report, style);
    if (!tables) return base::fail(std::move(tables));
    header(report, style, sink);
    if (const std::string answer = verdict_lines(report, style); !answer.empty()) sink.write(answer + "\n");
    for (std::size_t i = 0; i < tables->size(); ++i) {
      if (i > 0) sink.write("\n");
      regions((*tables)[i], tables->size() > 1, style, sink);
    }
    if (tables->empty()) sink.write("no ranges\n");
    const auto beyond = [](const model::Region& region) { return region.wall.share > 1.0005; };
    if (std::any_of(report.regions.begin(), report.regions.end(), beyond) && report.processes.size() > 1)
      aside("(share: of the run's " + base::format_ns(report.run.duration_ns) +
                "; threads and processes side by side come to more)",
            style, sink);
    if (!tables->empty()) details(tables->front(), style, sink);
    for (const std::string& text : {program_functions(report, style), process_table(report, style)})
      if (!text.empty()) sink.write("\n" + text);
    write_communication(report, style, sink);
    kernels(report, style, sink);
    write_operators(report, style, sink);
    if (style.explain && !tables->empty()) explain(tables->front().columns, sink);
    footer(report, style, sink);
    return {};
  }

 private:
  static void footer(const model::Report& report, const Style& style, Sink& sink) {
    for (const model::Loss& loss : report.losses) {
      std::string text = "loss: " + std::string(loss.kind.id());
      if (loss.count > 0) text += fmt::format(" ({})", base::format_count(static_cast<std::int64_t>(loss.count)));
      if (!loss.detail.empty()) text += ": " + base::printable(loss.detail);
      sink.write(base::toned(std::move(text), tone_of(loss.severity), style.color) + "\n");
    }
    for (const model::Finding& finding : report.findings) {
      if (finding.verdict == model::Grade::kOk || finding.verdict == model::Grade::kSkip) continue;
      sink.write(finding_text(finding, style.color));
    }
    for (const std::string& note : report.notes) sink.write("note: " + base::printable(note) + "\n");
  }
};

}  // namespace

std::unique_ptr<Exporter> make_terminal() {
  return std::make_unique<Terminal>();
}

}  // namespace rangescope::report
