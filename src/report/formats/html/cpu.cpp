#include "report/document/flame.hpp"
#include "report/document/json_writer.hpp"
#include "report/formats/html/data.hpp"

namespace rangescope::report {
namespace {

void page_counts(JsonWriter& json, std::string_view name, const std::vector<FlameCount>& counts) {
  json.open_line_array(name);
  for (const FlameCount& count : counts) {
    json.value(count.node == model::kNone ? std::int64_t{-1} : std::int64_t{count.node});
    json.value(count.samples);
  }
  json.close();
}

}  // namespace

void write_html_cpu(const model::Report& report, const model::Session& session, JsonWriter& json) {
  const Flame flame = flame_of(report, session);
  if (flame.nodes.empty())
    return json.null();
  const auto write_part = [&](const model::CpuPart& part) {
    json.line_array(part.kind, part.name, part.ns, part.gpu_idle_ns);
  };
  json.open_line_object();
  json.field("interval_ns", session.cpu.interval_ns);
  json.field("shortened", flame.shortened);
  json.open_line_array("names");
  for (const FlameName& name : flame.names)
    json.line_array(name.text, static_cast<int>(name.sort), name.module);
  json.close();
  json.open_line_array("nodes");
  for (std::size_t i = 0; i < flame.nodes.size(); ++i) {
    const Flame::Node& node = flame.nodes[i];
    json.value(node.parent == model::kNone ? 0 : i - node.parent);
    json.value(node.name);
  }
  json.close();
  json.open_line_array("regions");
  for (std::size_t i = 0; i < report.regions.size(); ++i) {
    constexpr std::size_t kMaxParts = 12;
    const model::Region& region = report.regions[i];
    if (!region.cpu)
      continue;
    const model::CpuWork& cpu = *region.cpu;
    json.open_line_object();
    json.field("id", region.id);
    json.field("samples", cpu.samples);
    json.open_line_array("split");
    for (const model::CpuPart* part : {&cpu.python, &cpu.native, &cpu.cuda, &cpu.waiting})
      write_part(*part);
    json.close();
    json.open_line_array("parts");
    for (std::size_t k = 0; k < cpu.parts.size() && k < kMaxParts; ++k)
      write_part(cpu.parts[k]);
    json.close();
    page_counts(json, "stacks", flame.regions[i]);
    json.close();
  }
  json.close();
  page_counts(json, "outside", flame.outside);
  json.close();
}

}  // namespace rangescope::report
