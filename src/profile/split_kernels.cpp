#include "profile/split_kernels.hpp"

#include <map>

#include "base/fs.hpp"
#include "base/text.hpp"
#include "ncu_pages/pages.hpp"
#include "read/csv.hpp"
#include "report/document/csv_text.hpp"
#include "report/document/figures.hpp"

namespace rangescope::profile {
namespace {

namespace fs = std::filesystem;

/// kernel -> section -> rows
using Tables = std::map<std::string, std::map<std::string, std::string>>;

/// Takes the details page apart. Rows of rules have no metric, and stay out.
void take(std::string_view page, Tables& tables) {
  std::map<std::string, std::size_t, std::less<>> columns;
  std::size_t offset = 0;
  std::uint64_t line = 1;
  for (read::Row row; read::next_row(page, offset, line, row);) {
    if (columns.empty()) {
      for (std::size_t i = 0; i < row.cells.size(); ++i) columns.emplace(row.cells[i], i);
      if (!columns.contains("Metric Value")) return;
      continue;
    }
    const auto cell = [&](std::string_view name) {
      const auto at = columns.find(name);
      return at == columns.end() || at->second >= row.cells.size() ? std::string_view{} : row.cells[at->second];
    };
    if (cell("Metric Name").empty()) continue;
    std::string& rows = tables[std::string(cell("Kernel Name"))][std::string(cell("Section Name"))];
    if (rows.empty()) rows = "ID,Metric Name,Metric Unit,Metric Value\n";
    rows += std::string(cell("ID")) + "," + report::csv_field(cell("Metric Name")) + "," +
            report::csv_field(cell("Metric Unit")) + "," + report::csv_field(cell("Metric Value")) + "\n";
  }
}

base::Result<void> put(const fs::path& file, const std::string& text) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  if (error)
    return base::fail(base::Code::kIo, "cannot make the folder: " + error.message(), file.parent_path().string());
  return base::write_file(file, text);
}

}  // namespace

base::Result<std::size_t> split_kernels(const fs::path& out, const Analyzed& analyzed) {
  Tables tables;
  for (const NcuPart& part : analyzed.parts) {
    auto file = ncu_pages::File::open(part.file);
    if (!file) return base::fail(std::move(file));
    ncu_pages::PageOptions page;
    page.csv = page.base_units = true;
    std::string text;
    std::vector<model::Loss> losses;
    auto printed = ncu_pages::print_pages(
        *file, page, [&](std::string_view more) { text += more; }, losses);
    if (printed) take(text, tables);  // a report of ranges alone, or damaged, has no such page
  }
  std::map<std::string, std::vector<double>> durations;
  const model::Session& session = analyzed.session;
  for (const model::Kernel& kernel : session.kernels) {
    const model::KernelName& name = session.kernel_names[kernel.name];
    durations[std::string(session.strings.view(name.demangled ? name.demangled : name.short_name))].push_back(
        static_cast<double>(kernel.end_ns - kernel.start_ns));
  }
  for (const auto& [kernel, sections] : tables) {
    const fs::path folder = out / base::sanitize_component(kernel);
    for (const auto& [section, rows] : sections)
      if (auto written = put(folder / (base::sanitize_component(base::replace_all(section, " ", "_")) + ".csv"), rows);
          !written)
        return base::fail(std::move(written));
    const auto seen = durations.find(kernel);
    const std::string figure = seen == durations.end() ? "" : report::histogram_figure(kernel, seen->second);
    if (!figure.empty())
      if (auto written = put(folder / "durations.svg", figure); !written) return base::fail(std::move(written));
  }
  if (const std::string figure = report::roofline_figure(analyzed.report); !figure.empty())
    if (auto written = put(out / "roofline.svg", figure); !written) return base::fail(std::move(written));
  return tables.size();
}

}  // namespace rangescope::profile
