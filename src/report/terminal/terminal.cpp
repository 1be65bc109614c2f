#include "report/terminal/terminal.hpp"
#include "report/findings.hpp"
#include "report/operators_table.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "base/table.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "report/view.hpp"

namespace rangescope::report {
namespace {

constexpr std::size_t kMany = 200;  // rows of a table from which on it is said how to get fewer

using base::Tone;

constexpr std::size_t kIndent = 2;
constexpr std::size_t kDeepest = 24;  // levels that are indented; deeper ones show their level as a number

std::string tree_label(const RowView& row) {
  if (row.depth <= kDeepest) return std::string(row.depth * kIndent, ' ') + row.label;
  return fmt::format("{:>{}}: {}", row.depth, kDeepest * kIndent, row.label);
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

void regions(const ScopeView& scope, const std::vector<ColumnView>& columns, bool titled, const Style& style,
             Sink& sink) {
  if (titled) sink.write(base::toned(scope.title, Tone::kBold, style.color) + "\n");
  std::vector<base::Table::Column> heads = {{"range", false, true, 0}};
  for (const ColumnView& column : columns) heads.push_back({column.title, true, false, column.importance});
  base::Table table(std::move(heads));
  for (const RowView& row : scope.rows) {
    std::vector<base::Table::Cell> cells = {{tree_label(row), Tone::kPlain}};
    for (const ColumnView& column : columns) {
      std::string text = cell(*row.region, column);
      const Tone tone = text == "-" || text == "0" || text == "0 ns" || text == "0 B" ? Tone::kDim : Tone::kPlain;
      cells.push_back({std::move(text), tone});
    }
    table.add(std::move(cells));
  }
  std::vector<std::string> dropped;
  sink.write(table.render(style.width, style.color, &dropped));
  const auto aside = [&](std::string text) {
    sink.write(base::toned(std::move(text), Tone::kDim, style.color) + "\n");
  };
  if (scope.hidden == 0 && scope.rows.size() > kMany)
    aside("(" + base::counted(scope.rows.size(), "region") + ": --top 20 shows the largest, --depth 1 the outermost)");
  if (scope.hidden > 0) aside("(" + base::counted(scope.hidden, "more region") + ": --depth, --top)");
  if (!dropped.empty()) aside("(no room for: " + base::join(dropped, ", ") + ")");
}

void details(const ScopeView& scope, const Style& style, Sink& sink) {
  for (const RowView& row : scope.rows) {
    const model::Region& region = *row.region;
    const std::string name = base::printable(model::path_text(region));
    if (region.unclosed > 0)
      sink.write(fmt::format("{}: {} began and never ended: not in the statistics\n", name,
                             base::format_count(region.unclosed)));
    if (region.bound && style.explain)
      sink.write(fmt::format("{}: bound by {}: {}\n", name, base::printable(region.bound->kind),
                             base::printable(region.bound->reason)));
    if (!style.explain) continue;
    for (const std::string& note : region.notes) sink.write(name + ": " + base::printable(note) + "\n");
  }
}

void kernels(const model::Report& report, const Style& style, Sink& sink) {
  if (report.kernels.empty() || style.top_kernels == 0) return;
  base::Table table({{"kernel", false, true, 0},
                     {"calls", true, false, 0},
                     {"total", true, false, 0},
                     {"median", true, false, 2},
                     {"max", true, false, 1},
                     {"share", true, false, 0}});
  for (std::size_t i = 0; i < report.kernels.size() && i < style.top_kernels; ++i) {
    const model::KernelRow& row = report.kernels[i];
    table.add({{base::printable(row.short_name.empty() ? row.name : row.short_name)},
               {base::format_count(row.calls)},
               {base::format_ns(row.total_ns)},
               {base::format_ns(row.duration_ns.median)},
               {base::format_ns(row.duration_ns.max)},
               {base::format_share(row.share)}});
  }
  sink.write("\n" + table.render(style.width, style.color));
  if (report.kernels.size() > style.top_kernels)
    sink.write(base::toned("(" + base::counted(report.kernels.size() - style.top_kernels, "more kernel") + ")\n",
                           Tone::kDim, style.color));
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
  [[nodiscard]] std::string_view name() const override { return "table"; }
  [[nodiscard]] std::string_view extension() const override { return "txt"; }

  [[nodiscard]] base::Result<void> write(const model::Report& report, const model::Session*, const Style& style,
                                         Sink& sink) const override {
    auto chosen = columns(report, style);
    if (!chosen) return base::fail(std::move(chosen));
    auto views = scopes(report, style);
    if (!views) return base::fail(std::move(views));
    header(report, style, sink);
    for (std::size_t i = 0; i < views->size(); ++i) {
      if (i > 0) sink.write("\n");
      regions((*views)[i], *chosen, views->size() > 1, style, sink);
    }
    if (views->empty()) sink.write("no ranges\n");
    if (!views->empty()) details(views->front(), style, sink);
    if (report.unattributed) {
      const std::string work = work_sentence(*report.unattributed);
      sink.write("outside every range: " + (work.empty() ? std::string("no GPU work") : work) + "\n");
    }
    kernels(report, style, sink);
    write_operators(report, style, sink);
    if (style.explain) explain(*chosen, sink);
    footer(report, style, sink);
    return {};
  }

 private:
  static void footer(const model::Report& report, const Style& style, Sink& sink) {
    for (const model::Loss& loss : report.losses) {
      std::string text = "loss: " + base::printable(loss.kind);
      if (loss.count > 0) text += fmt::format(" ({})", base::format_count(static_cast<std::int64_t>(loss.count)));
      if (!loss.detail.empty()) text += ": " + base::printable(loss.detail);
      sink.write(base::toned(std::move(text), tone_of(loss.severity), style.color) + "\n");
    }
    for (const model::Finding& finding : report.findings) {
      if (finding.verdict == model::Verdict::kOk || finding.verdict == model::Verdict::kSkip) continue;
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
