// --print-summary: minimum, maximum and mean of each section's metrics over the launches of one kernel.
//
// Launches are one kernel when name, grid, block and device are equal (per GPU: listed under the device; per NVTX:
// under the ranges that were open, domain by domain). Means are unweighted, as ncu's. Ranges are left out, as ncu does:
// they have no name to be grouped by.
#include <algorithm>
#include <cmath>
#include <map>

#include "ncu_pages/details.hpp"
#include "ncu_pages/format.hpp"
#include "ncu_pages/head.hpp"
#include "ncu_pages/pages.hpp"

namespace rangescope::ncu_pages {
namespace {

struct MetricSum {
  std::string_view section, name;
  std::string label;
  double least = 0, most = 0, total = 0;
  std::uint64_t count = 0;
  std::string text;  // of metrics that are no numbers
};

struct Group {
  std::uint32_t process = 0;
  std::string domain, ranges;      // per NVTX: as CSV prints them
  std::vector<std::string> lines;  // and as text
  std::string kernel, block, grid;
  DeviceLabel device;
  std::uint64_t invocations = 0;
  std::vector<MetricSum> metrics;
  std::map<std::pair<std::string_view, std::string_view>, std::size_t> index;
};

constexpr std::string_view kNote =
    "The shown averages are calculated as the arithmetic mean of the metric values after the evaluation of the\n"
    "metrics for each individual kernel launch.\n"
    "If aggregating across varying launch configurations (like shared memory, cache config settings), the arithmetic\n"
    "mean can be misleading and looking at the individual results is recommended instead.\n"
    "This output mode is backwards compatible to the per-kernel summary output of nvprof";

class SummaryPage {
 public:
  SummaryPage(const Selection& selection, const PageOptions& options, const Out& out, SectionView view)
      : selection_(selection),
        options_(options),
        out_(out),
        view_(std::move(view)),
        format_(options),
        labels_(selection.file()) {}

  base::Result<void> print() {
    bool kernels = false;
    selection_.for_each({.rules = false}, [&](std::uint32_t, const Result& result) {
      if (result.kind != ResultKind::kKernel) return;
      kernels = true;
      add(result);
    });
    if (groups_.empty() && kernels) {
      return base::fail(base::Code::kNothingCaptured, "no kernel of the report has an NVTX range around it",
                        selection_.file().path,
                        "Use --print-summary per-kernel, or record the report again with --nvtx.");
    }
    if (groups_.empty()) {
      return base::fail(base::Code::kNothingCaptured,
                        "no kernel to summarise: range results have no name to be grouped by", selection_.file().path,
                        "Use --page details, or `rangescope report` for regions.");
    }
    std::string text;
    if (options_.csv)
      csv(text);
    else
      this->text(text);
    out_(text);
    return {};
  }

 private:
  void add(const Result& result) {
    Group group;
    group.process = result.process;
    group.kernel = result_name(result, options_.print_kernel_base);
    group.grid = dimensions_text(result.grid);
    group.block = dimensions_text(result.block);
    group.device = labels_.of(result);
    if (options_.summary != Summary::kPerNvtx) return add_to(group, result);
    if (!result.nvtx) return;
    const NvtxState& state = *result.nvtx;
    for (const NvtxDomain& domain : state.domains) {
      group.domain = domain.name;
      group.ranges.clear();
      group.lines.clear();
      for (const NvtxThread& thread : state.threads) {
        for (const NvtxRange& range : thread.stack) {
          if (range.domain != domain.id) continue;
          group.ranges += " \"" + range_cell(state, range) + "\" ";
          group.lines.push_back("<" + std::string(state.effective_name(range)) + ">");
        }
      }
      for (const NvtxRange& range : state.start_end) {
        if (range.domain != domain.id) continue;
        group.ranges += " \"" + range_cell(state, range) + "\" ";
        group.lines.push_back("<" + std::to_string(range.id) + ", " + std::string(state.effective_name(range)) + ">");
      }
      if (!group.ranges.empty()) add_to(group, result);
    }
  }

  void add_to(const Group& one, const Result& result) {
    const std::string key = one.domain + one.ranges + '\n' + std::to_string(one.process) + '\n' + one.kernel + '\n' +
                            one.grid + one.block + '\n' + one.device.ordinal;
    const auto [place, fresh] = by_key_.try_emplace(key, groups_.size());
    if (fresh) groups_.push_back(one);
    Group& group = groups_[place->second];
    ++group.invocations;
    std::vector<ShownSection> sections = view_.of(result, group.device);
    std::ranges::stable_sort(sections, {}, [](const ShownSection& shown) { return shown.section->identifier; });
    for (const ShownSection& section : sections) {
      for (const SectionRow& row : section.rows) {
        if (row.metric == nullptr) continue;
        const auto [at, added] =
            group.index.try_emplace({section.section->display_name, row.name}, group.metrics.size());
        if (added) group.metrics.push_back({section.section->display_name, row.name, row.label});
        MetricSum& sum = group.metrics[at->second];
        if (!row.metric->value.is_number()) {
          format_.plain(sum.text.empty() ? sum.text : discarded_, row.metric->value);
          continue;
        }
        const double value = row.metric->value.as_double();
        if (!std::isfinite(value)) continue;
        sum.least = sum.count == 0 ? value : std::min(sum.least, value);
        sum.most = sum.count == 0 ? value : std::max(sum.most, value);
        sum.total += value;
        ++sum.count;
      }
    }
  }

  /// Unit, minimum, maximum, average as shown: one unit for all three.
  std::vector<std::string> shown(const MetricSum& sum) const {
    const std::string unit = model::metric_unit(sum.name, options_.spelling);
    if (sum.count == 0) return {unit, sum.text, sum.text, sum.text};
    Scale scale{unit, 1};
    if (!options_.base_units)
      scale = auto_scale(unit, std::max(std::abs(sum.least), std::abs(sum.most)), options_.spelling);
    std::vector<std::string> cells{scale.unit};
    for (const double value : {sum.least, sum.most, sum.total / static_cast<double>(sum.count)}) {
      cells.emplace_back();
      format_.plain(cells.back(), value * (1 / scale.factor), false);
    }
    return cells;
  }

  std::vector<const Group*> ordered() const {
    std::vector<const Group*> order;
    for (const Group& group : groups_) order.push_back(&group);
    std::ranges::stable_sort(order, [&](const Group* a, const Group* b) {
      if (options_.summary == Summary::kPerNvtx) return std::tie(a->domain, a->ranges) < std::tie(b->domain, b->ranges);
      if (a->process != b->process) return a->process < b->process;
      return options_.summary == Summary::kPerGpu && a->device.ordinal < b->device.ordinal;
    });
    return order;
  }

  void csv(std::string& out) const {
    const auto cells = [&](std::initializer_list<std::string_view> texts) { csv_cells(out, texts); };
    const bool nvtx = options_.summary == Summary::kPerNvtx, gpu = options_.summary == Summary::kPerGpu;
    if (nvtx)
      cells({"Domain", "Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"});
    else
      cells({"Process ID", "Process Name", "Host Name"});
    if (gpu) cells({"Device", "CC"});
    cells({"Kernel Name", "Block Size", "Grid Size"});
    if (!gpu) cells({"Device", "CC"});
    cells({"Invocations", "Section Name", "Metric Name", "Metric Unit", "Minimum", "Maximum", "Average"});
    out += '\n';
    for (const Group* group : ordered()) {
      const ProcessInfo& process = selection_.file().processes[group->process];
      for (const MetricSum& sum : group->metrics) {
        if (nvtx)
          cells({group->domain, group->ranges});
        else
          cells({std::to_string(process.pid), base_name(process.name), process.host});
        if (gpu) cells({group->device.ordinal, group->device.capability});
        cells({group->kernel, group->block, group->grid});
        if (!gpu) cells({group->device.ordinal, group->device.capability});
        const auto values = shown(sum);
        cells({std::to_string(group->invocations), sum.section, sum.label, values[0], values[1], values[2], values[3]});
        out += '\n';
      }
    }
  }

  void text(std::string& out) const {
    TextHead head(selection_.file(), options_);
    const bool nvtx = options_.summary == Summary::kPerNvtx, gpu = options_.summary == Summary::kPerGpu;
    const std::size_t indent = gpu ? 4 : 2;
    std::string last;
    for (const Group* group : ordered()) {
      if (nvtx) {
        const std::string now = group->domain + group->ranges;
        if (now != last) {
          out += "\n== NVTX State ==\n" + group->domain + "\n";
          for (const std::string& line : group->lines) out += "  " + line + "\n";
        }
        last = now;
      } else {
        head.process(out, group->process);
        const std::string now = std::to_string(group->process) + "/" + group->device.ordinal;
        if (gpu && now != last) out += "  Device " + group->device.ordinal + ", CC " + group->device.capability + "\n";
        last = now;
      }
      out.append(indent, ' ');
      out += group->kernel + " " + group->grid + "x" + group->block;
      if (!gpu) out += ", Device " + group->device.ordinal + ", CC " + group->device.capability;
      out += ", Invocations " + std::to_string(group->invocations) + "\n";
      for (std::size_t i = 0; i < group->metrics.size();) {
        const std::string_view section = group->metrics[i].section;
        out.append(indent + 2, ' ').append("Section: ").append(section).append("\n");
        TextTable table({"Metric Name", "Metric Unit", "Minimum", "Maximum", "Average"}, indent + 2);
        for (; i < group->metrics.size() && group->metrics[i].section == section; ++i) {
          auto values = shown(group->metrics[i]);
          table.add({group->metrics[i].label, values[0], values[1], values[2], values[3]});
        }
        table.print(out);
        out += '\n';
      }
    }
    const std::string note = "Note: " + std::string(kNote);
    for (const std::string& line : wrap(note, 115)) {
      out.append("  ").append(line).append(line.size() < 115 ? 115 - line.size() : 0, ' ').append("\n");
    }
    out += '\n';
  }

  const Selection& selection_;
  const PageOptions& options_;
  const Out& out_;
  SectionView view_;
  Formatter format_;
  DeviceLabels labels_;
  std::vector<Group> groups_;
  std::map<std::string, std::size_t> by_key_;
  std::string discarded_;
};

}  // namespace

base::Result<void> print_summary(const Selection& selection, const PageOptions& options, const Out& out) {
  auto view = TRY(SectionView::make(selection, options));
  return SummaryPage(selection, options, out, std::move(view)).print();
}

}  // namespace rangescope::ncu_pages
