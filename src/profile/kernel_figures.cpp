#include "profile/kernel_figures.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/fs.hpp"
#include "base/text.hpp"
#include "report/document/csv_text.hpp"
#include "report/document/figures.hpp"
#include "report/sink.hpp"

namespace rangescope::profile {
namespace {

namespace fs = std::filesystem;

/// Names of the metrics that some kernel has a value of.
std::vector<std::string> metric_names(const model::Report& report) {
  std::set<std::string> names;
  for (const model::KernelCounters& kernel : report.kernel_counters)
    for (const auto& [name, metric] : kernel.metrics)
      if (metric.absent.empty())
        names.insert(name);
  return {names.begin(), names.end()};
}

/// The point under the roof of DRAM with the most FLOPs; null where there is none.
const model::RooflinePoint* main_point(const model::KernelCounters& kernel) {
  const model::RooflinePoint* main = nullptr;
  for (const model::RooflinePoint& point : kernel.roofline)
    if (point.level == "dram" && (main == nullptr || point.flops > main->flops))
      main = &point;
  return main;
}

base::Result<void> write_table(const fs::path& file,
                               const model::Report& report,
                               const std::vector<std::string>& metrics) {
  report::FileSink sink(file);
  std::vector<std::string> heads = {"kernel",
                                    "calls",
                                    "total_ns",
                                    "share",
                                    "bound",
                                    "precision",
                                    "flop_per_byte",
                                    "flop_per_s",
                                    "attainable_flop_per_s"};
  for (const std::string& name : metrics)
    heads.push_back(report::csv_field(name));
  report::csv_row(sink, heads);
  for (const model::KernelCounters& kernel : report.kernel_counters) {
    const auto row = std::ranges::find(report.kernels, kernel.name, &model::KernelRow::name);
    if (row == report.kernels.end())
      continue;
    std::string limit;
    if (kernel.bound)
      limit = report::csv_field(kernel.bound->kind);
    std::vector<std::string> fields = {report::csv_field(kernel.name),
                                       std::to_string(row->calls),
                                       report::csv_number(row->total_ns),
                                       report::csv_number(row->share),
                                       limit};
    if (const model::RooflinePoint* point = main_point(kernel)) {
      fields.push_back(report::csv_field(point->precision));
      fields.push_back(report::csv_number(point->intensity));
      fields.push_back(report::csv_number(point->flop_per_s));
      const bool has_roof = point->roof_flop_per_s > 0;
      fields.push_back(has_roof ? report::csv_number(point->roof_flop_per_s) : std::string());
    } else {
      fields.resize(heads.size() - metrics.size());
    }
    for (const std::string& name : metrics) {
      const model::Metric* metric = model::known_metric(kernel.metrics, name);
      fields.push_back(metric == nullptr ? std::string() : report::csv_number(metric->value));
    }
    report::csv_row(sink, fields);
  }
  return sink.finish();
}

base::Result<void> write_distribution(const fs::path& folder,
                                      const model::Report& report,
                                      const std::string& name) {
  std::vector<double> values;
  std::string unit;
  for (const model::KernelCounters& kernel : report.kernel_counters)
    if (const model::Metric* metric = model::known_metric(kernel.metrics, name)) {
      values.push_back(metric->value);
      unit = metric->unit;
    }
  const std::string figure = report::distribution_figure(name, unit, values);
  if (figure.empty())
    return {};
  return base::write_file(folder / (base::sanitize_component(name) + ".svg"), figure);
}

}  // namespace

base::Result<void> write_kernel_figures(const fs::path& folder, const model::Report& report) {
  if (report.kernel_counters.empty())
    return {};
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return base::fail(
        base::Code::kIo, "cannot make the folder: " + error.message(), folder.string());
  const std::vector<std::string> metrics = metric_names(report);
  TRY(write_table(folder / "kernels.csv", report, metrics));
  for (const std::string& name : metrics)
    TRY(write_distribution(folder, report, name));
  const std::string roofline = report::kernel_roofline_figure(report);
  if (!roofline.empty())
    TRY(base::write_file(folder / "kernel_roofline.svg", roofline));
  return {};
}

}  // namespace rangescope::profile
