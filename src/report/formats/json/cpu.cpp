#include "report/formats/json/cpu.hpp"

namespace rangescope::report {
namespace {

void cpu_functions(JsonWriter& json, std::string_view name, const std::vector<model::CpuFunction>& list) {
  json.line_objects(name, list, [&](const model::CpuFunction& function) {
    json.field("name", function.name);
    function.file.empty() ? json.null_field("file") : json.field("file", function.file);
    function.line > 0 ? json.field("line", function.line) : json.null_field("line");
    function.module.empty() ? json.null_field("module") : json.field("module", function.module);
    if (function.hot_line > 0) json.field("hot_line", function.hot_line);
    json.field("python", function.python);
    json.field("self_ns", function.self_ns);
    json.field("total_ns", function.total_ns);
  });
}

}  // namespace

void write_json_cpu(JsonWriter& json, std::string_view name, const base::Held<model::CpuWork>& work) {
  if (!work) return;
  const auto split = [&](std::string_view which, double model::CpuPart::*value) {
    json.open_line_object(which);
    for (const model::CpuPart* part : {&work->python, &work->native, &work->cuda, &work->waiting})
      json.field(part->kind, part->*value);
    json.close();
  };
  json.open_object(name);
  json.field("samples", work->samples);
  json.field("interval_ns", work->interval_ns);
  split("split", &model::CpuPart::ns);
  split("split_gpu_idle", &model::CpuPart::gpu_idle_ns);
  json.line_objects("parts", work->parts, [&](const model::CpuPart& part) {
    json.field("kind", part.kind);
    json.field("name", part.name);
    json.field("ns", part.ns);
    json.field("gpu_idle_ns", part.gpu_idle_ns);
  });
  cpu_functions(json, "functions", work->functions);
  cpu_functions(json, "callers", work->callers);
  if (!work->counters.empty()) {
    json.line_objects("counters", work->counters, [&](const model::CpuCounterSum& sum) {
      json.field("name", sum.name);
      json.field("count", sum.count);
      json.field("deviation", sum.deviation);
      json.field("records", sum.records);
    });
  }
  if (!work->holders.empty()) {
    json.line_objects("holders", work->holders, [&](const model::CpuHolder& holder) {
      json.field("kind", holder.kind);
      json.field("thread", holder.thread);
      holder.range.empty() ? json.null_field("range") : json.field("range", holder.range);
      holder.doing.empty() ? json.null_field("doing") : json.field("doing", holder.doing);
      json.field("ns", holder.ns);
    });
  }
  if (work->pool_samples > 0) {
    json.open_line_object("pool");
    json.field("samples", work->pool_samples);
    json.field("ns", work->pool_ns);
    json.close();
  }
  json.close();
}

}  // namespace rangescope::report
