#include "read/ncu/csv/labels.hpp"

#include "base/embedded.hpp"

RANGESCOPE_EMBED(labels, RANGESCOPE_TSV);

namespace rangescope::read::ncu_csv {

std::string metric_of_label(std::string_view section, std::string_view label) {
  if (label.find("__") != std::string_view::npos) {
    // "Duration (gpu__time_duration.sum)": --print-metric-name label-name, or a label that the tool could not fill in
    const std::size_t open = label.rfind(" (");
    if (label.ends_with(')') && open != std::string_view::npos && label.find("__", open) != std::string_view::npos)
      label = label.substr(open + 2, label.size() - open - 3);
    return std::string(label);
  }
  if (label == "Memory Throughput" && section == "GPU Speed Of Light Throughput")
    return "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed";
  if (label == "Memory Throughput" && section == "Memory Workload Analysis") return "dram__bytes.sum.per_second";
  static const auto labels = base::rows<2>(rangescope_labels);
  for (const auto& [known, metric] : labels)
    if (known == label) return std::string(metric);
  if (section.empty() || section == "Command line profiler metrics") return std::string(label);
  return std::string(section) + "/" + std::string(label);
}

}  // namespace rangescope::read::ncu_csv
