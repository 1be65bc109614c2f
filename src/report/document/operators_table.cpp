#include "report/document/operators_table.hpp"

#include <cmath>

#include "base/table.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::report {

void write_operators(const model::Report& report, const Style& style, Sink& sink) {
  if (report.operators.empty() || style.top_kernels == 0) return;
  const bool gpu = !std::isnan(report.operators.front().gpu_ns);
  std::vector<base::Table::Column> columns{
      {"operator", false, true, 0}, {"calls", true, false, 0}, {"CPU", true, false, 1}, {"CPU self", true, false, 0}};
  if (gpu) {
    columns.push_back({"GPU", true, false, 1});
    columns.push_back({"GPU self", true, false, 0});
  }
  base::Table table(columns);
  const std::size_t shown = std::min(report.operators.size(), style.top_kernels);
  for (std::size_t i = 0; i < shown; ++i) {
    const model::OperatorRow& row = report.operators[i];
    std::vector<base::Table::Cell> cells{{base::printable(row.name)},
                                         {base::format_count(row.calls)},
                                         {base::format_ns(row.cpu_ns)},
                                         {base::format_ns(row.exclusive_cpu_ns)}};
    if (gpu) {
      cells.push_back({base::format_ns(row.gpu_ns)});
      cells.push_back({base::format_ns(row.exclusive_gpu_ns)});
    }
    table.add(std::move(cells));
  }
  sink.write("\n" + table.render(style.width, style.color));
  if (report.operators.size() > shown)
    sink.write(base::toned("(" + base::counted(report.operators.size() - shown, "more operator") + ")\n",
                           base::Tone::kDim, style.color));
}

}  // namespace rangescope::report
