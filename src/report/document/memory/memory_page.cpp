#include "report/document/memory/memory_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/text.hpp"
#include "base/units.hpp"
#include "report/document/view.hpp"

namespace rangescope::report {
namespace {

using base::format_bytes;
using base::format_share;
using model::DeviceMemory;
using model::MemoryPart;

std::string title_of(const model::Report& report, const DeviceMemory& memory) {
  std::string title = fmt::format("Memory of GPU {}", memory.device);
  if (report.processes.size() > 1 && memory.process < report.processes.size())
    title += fmt::format(", process {}", report.processes[memory.process].pid);
  return title;
}

/// How far the sizes of blocks can be trusted.
std::string_view exactness(const DeviceMemory& memory) {
  if (memory.sizes == "replayed")
    return "exact: the allocator's blocks were replayed and match those at the end";
  if (memory.sizes == "rounded")
    return "from requested sizes: up to 2 % too low, blocks that were not split are missing";
  return "exact: as the allocator reported it";
}

std::string peak_text(const DeviceMemory& memory) {
  std::string text = fmt::format(
      "peak {} at {}", format_bytes(memory.peak_bytes), base::format_ns(memory.peak_at_ns));
  if (memory.reserved_at_peak_bytes)
    text += fmt::format(", {} reserved then", format_bytes(*memory.reserved_at_peak_bytes));
  text += fmt::format("; {} before the recording, {} at its end",
                      format_bytes(memory.older_bytes),
                      format_bytes(memory.end_bytes));
  return fmt::format("{} ({})", text, exactness(memory));
}

Grid parts_grid(const DeviceMemory& memory, std::size_t max_parts) {
  Grid grid({{"at the peak", false, true}, {"whose", false}, {"bytes"}, {"share"}, {"blocks"}});
  const auto add = [&](const MemoryPart& part, std::size_t depth) {
    double share = 0;
    if (memory.peak_bytes > 0)
      share = part.bytes / memory.peak_bytes;
    GridCell name{std::string(model::memory_use_name(part.use))};
    name.depth = depth;
    std::string owner = base::printable(part.owner);
    if (depth > 0 && owner.empty())
      owner = "-";
    grid.add({std::move(name),
              {owner},
              {format_bytes(part.bytes)},
              {format_share(share)},
              {base::format_count(part.blocks)}});
  };
  for (const MemoryPart& use : memory.uses)
    add(use, 0);
  const std::size_t shown = std::min(max_parts, memory.parts.size());
  for (std::size_t i = 0; i < shown; ++i)
    add(memory.parts[i], 1);
  if (memory.parts.size() > shown)
    grid.omitted =
        fmt::format("{} smaller parts are in -f json and -f html", memory.parts.size() - shown);
  return grid;
}

void write_part(JsonWriter& json, const MemoryPart& part) {
  json.field("use", model::memory_use_name(part.use));
  json.field("bytes", part.bytes);
  json.field("blocks", part.blocks);
}

void write_failure(JsonWriter& json, const model::MemoryFailure& failure) {
  json.open_line_object("out_of_memory");
  json.field("at_ns", failure.at_ns);
  json.field("owner", or_null(failure.owner));
  json.field("asked_bytes", failure.asked_bytes);
  json.field("in_use_bytes", failure.in_use_bytes);
  json.field("reserved_bytes", failure.reserved_bytes);
  json.field("free_bytes", failure.free_bytes);
  json.field("count", failure.count);
  json.close();
}

void write_device_memory(JsonWriter& json,
                         const model::Report& report,
                         const DeviceMemory& memory) {
  json.field("process", memory.process);
  json.field("pid", pid_of(report, memory.process));
  json.field("device", memory.device);
  json.field("allocator", memory.allocator);
  json.field("sizes", memory.sizes);
  json.field("allocations", memory.allocations);
  json.field("older_bytes", memory.older_bytes);
  json.field("end_bytes", memory.end_bytes);
  json.field("peak_bytes", memory.peak_bytes);
  json.field("peak_at_ns", memory.peak_at_ns);
  json.field("peak_reserved_bytes", memory.peak_reserved_bytes);
  json.field("reserved_at_peak_bytes", memory.reserved_at_peak_bytes);
  json.field("steps", memory.steps);
  json.field("owned_share", memory.owned_share);
  json.line_objects(
      "at_peak", memory.uses, [&](const MemoryPart& part) { write_part(json, part); });
  json.line_objects("parts", memory.parts, [&](const MemoryPart& part) {
    write_part(json, part);
    json.field("owner", or_null(part.owner));
  });
  if (memory.growth) {
    json.open_line_object("growth");
    json.field("bytes_per_step", memory.growth->bytes_per_step);
    json.field("steps", memory.growth->steps);
    json.field("owner", or_null(memory.growth->owner));
    json.close();
  }
  if (memory.failure)
    write_failure(json, *memory.failure);
  json.line_objects("points", memory.points, [&](const model::MemoryPoint& point) {
    json.field("at_ns", point.at_ns);
    json.field("allocated_bytes", point.allocated_bytes);
    json.field("reserved_bytes", point.reserved_bytes);
  });
}

}  // namespace

std::vector<Section> memory_sections(const model::Report& report, std::size_t max_parts) {
  std::vector<Section> sections;
  for (const DeviceMemory& memory : report.memory) {
    Section& section = sections.emplace_back(Section{title_of(report, memory)});
    section.add({.text = peak_text(memory)});
    section.add(parts_grid(memory, max_parts));
  }
  return sections;
}

void write_memory(JsonWriter& json, const model::Report& report) {
  if (report.memory.empty())
    return;
  json.objects("memory", report.memory, [&](const DeviceMemory& memory) {
    write_device_memory(json, report, memory);
  });
}

}  // namespace rangescope::report
