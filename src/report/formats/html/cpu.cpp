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
  if (flame.nodes.empty()) return json.null();
  const auto part = [&](const model::CpuPart& one) {
    json.line_array(one.kind, one.name, one.ns, one.gpu_idle_ns);
  };
  json.open_line_object();
  json.fields("interval_ns", session.cpu.interval_ns, "shortened", flame.shortened);
  json.open_line_array("names");
  for (const FlameName& name : flame.names)
    json.line_array(name.text, static_cast<int>(name.sort), name.module);
  json.close();
  json.open_line_array("nodes");
  for (std::size_t n = 0; n < flame.nodes.size(); ++n) {
    const Flame::Node& node = flame.nodes[n];
    json.value(node.parent == model::kNone ? 0 : n - node.parent);
    json.value(node.name);
  }
  json.close();
  json.open_line_array("regions");
  for (std::size_t r = 0; r < report.regions.size(); ++r) {
    const model::Region& region = report.regions[r];
    if (!region.cpu) continue;
    json.open_line_object();
    json.fields("id", region.id, "samples", region.cpu->samples);
    json.open_line_array("split");
    for (const auto* one :
         {&region.cpu->python, &region.cpu->native, &region.cpu->cuda, &region.cpu->waiting})
      part(*one);
    json.close();
    json.open_line_array("parts");
    for (std::size_t i = 0; i < region.cpu->parts.size() && i < 12; ++i) part(region.cpu->parts[i]);
    json.close();
    page_counts(json, "stacks", flame.regions[r]);
    json.close();
  }
  json.close();
  page_counts(json, "outside", flame.outside);
  json.close();
}

}  // namespace rangescope::report
