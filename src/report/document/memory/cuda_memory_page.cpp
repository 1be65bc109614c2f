#include <string>

#include "base/text.hpp"
#include "base/units.hpp"
#include "report/document/memory/memory_page.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {
namespace {

using base::format_bytes;
using base::format_count;
using model::CudaMemory;

std::string kind_text(const CudaMemory& memory) {
  return std::string(model::memory_kind_name(memory.kind).value_or("unknown kind"));
}

std::string place_text(const CudaMemory& memory) {
  if (memory.device)
    return "GPU " + std::to_string(*memory.device);
  if (model::is_on_device(memory.kind))
    return "a GPU";
  return "host";
}

std::string kept_text(const CudaMemory& memory) {
  if (memory.kept == 0)
    return "-";
  return format_bytes(memory.kept_bytes) + " in " + format_count(memory.kept);
}

}  // namespace

std::optional<Section> cuda_memory_section(const model::Report& report) {
  if (report.cuda_memory.empty())
    return std::nullopt;
  Grid grid({{"memory", false}, {"of", false}, {"allocated"}, {"calls"}, {"frees"}, {"failed"}});
  grid.columns.insert(grid.columns.end(), {{"peak"}, {"never freed"}, {"time in calls"}});
  const bool has_several = report.processes.size() > 1;
  if (has_several)
    grid.columns.push_back({"process"});
  for (const CudaMemory& memory : report.cuda_memory) {
    std::vector<GridCell> cells = {{kind_text(memory)},
                                   {place_text(memory)},
                                   {format_bytes(memory.allocated_bytes)},
                                   {format_count(memory.allocations)},
                                   {format_count(memory.frees)},
                                   {format_count(memory.failures)},
                                   {format_bytes(memory.peak_bytes)},
                                   {kept_text(memory)},
                                   {base::format_ns(memory.call_ns)}};
    if (has_several) {
      const auto text = [](std::uint32_t pid) { return std::to_string(pid); };
      cells.push_back({or_dash(pid_of(report, memory.process), text)});
    }
    grid.add(std::move(cells));
  }
  Section section{"Memory taken from CUDA"};
  section.add(std::move(grid));
  return section;
}

void write_cuda_memory(JsonWriter& json, const model::Report& report) {
  if (report.cuda_memory.empty())
    return;
  json.line_objects("cuda_memory", report.cuda_memory, [&](const CudaMemory& memory) {
    json.field("process", memory.process);
    json.field("pid", pid_of(report, memory.process));
    json.field("device", memory.device);
    json.field("kind", model::memory_kind_name(memory.kind));
    json.field("allocations", memory.allocations);
    json.field("frees", memory.frees);
    json.field("failures", memory.failures);
    json.field("allocated_bytes", memory.allocated_bytes);
    json.field("call_ns", memory.call_ns);
    json.field("peak_bytes", memory.peak_bytes);
    json.field("peak_at_ns", memory.peak_at_ns);
    json.field("kept", memory.kept);
    json.field("kept_bytes", memory.kept_bytes);
  });
}

}  // namespace rangescope::report
