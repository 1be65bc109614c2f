#include "report/document/flame.hpp"
#include "report/document/json_writer.hpp"
#include "report/formats/html/data.hpp"

namespace rangescope::report {
namespace {

void page_counts(JsonWriter& json, std::string_view name, const std::vector<FlameCount>& counts) {
  json.open_line_array(name);
  for (const FlameCount& count : counts) {
    json.number(count.node == model::kNone ? std::int64_t{-1} : std::int64_t{count.node});
    json.number(count.samples);
  }
  json.close();
}

void page_part(JsonWriter& json, const model::CpuPart& part) {
  json.open_line_array();
  json.text(part.kind);
  json.text(part.name);
  json.number(part.ns);
  json.number(part.gpu_idle_ns);
  json.close();
}

}  // namespace

void write_html_cpu(const model::Report& report, const model::Session& session, JsonWriter& json) {
  const Flame flame = flame_of(report, session);
  if (flame.nodes.empty()) return json.null();
  json.open_line_object();
  json.field("interval_ns", session.cpu.interval_ns);
  json.field("shortened", flame.shortened);
  json.open_line_array("names");
  for (const FlameName& name : flame.names) {
    json.open_line_array();
    json.text(name.text);
    json.number(static_cast<std::int64_t>(name.sort));
    json.text(name.module);
    json.close();
  }
  json.close();
  json.open_line_array("nodes");
  for (std::size_t n = 0; n < flame.nodes.size(); ++n) {
    const Flame::Node& node = flame.nodes[n];
    json.number(node.parent == model::kNone ? std::int64_t{0} : static_cast<std::int64_t>(n - node.parent));
    json.number(std::int64_t{node.name});
  }
  json.close();
  json.open_line_array("regions");
  for (std::size_t r = 0; r < report.regions.size(); ++r) {
    const model::Region& region = report.regions[r];
    if (!region.cpu) continue;
    json.open_line_object();
    json.fields("id", region.id, "samples", region.cpu->samples);
    json.open_line_array("split");
    for (const auto* part : {&region.cpu->python, &region.cpu->native, &region.cpu->cuda, &region.cpu->waiting})
      page_part(json, *part);
    json.close();
    json.open_line_array("parts");
    for (std::size_t i = 0; i < region.cpu->parts.size() && i < 12; ++i) page_part(json, region.cpu->parts[i]);
    json.close();
    page_counts(json, "stacks", flame.regions[r]);
    json.close();
  }
  json.close();
  page_counts(json, "outside", flame.outside);
  json.close();
}

}  // namespace rangescope::report
