
#include <algorithm>
#include <unordered_map>

#include "report/document/flame.hpp"
#include "report/document/json_writer.hpp"
#include "report/formats.hpp"
#include "report/formats/stacks/profile.hpp"

namespace rangescope::report {
namespace {

using model::CpuProfile;

base::Result<std::vector<Chain>> sampled_chains(const model::Report& report,
                                                const model::Session* session) {
  auto out = chains(report);
  if (session == nullptr || out.empty())
    return base::fail(
        base::Code::kNothingCaptured, "the input holds no samples of the CPU", {},
        "Record with rangescope profile --cpu; the data losses name what prevents it");
  return out;
}

}  // namespace

std::vector<Chain> chains(const model::Report& report) {
  std::vector<Chain> out;
  for (const model::Region& region : report.regions)
    if (region.cpu)
      for (const model::CpuStackCount& count : region.cpu->stacks)
        out.push_back({region.path, count.stack, count.samples});
  if (report.cpu_outside)
    for (const model::CpuStackCount& count : report.cpu_outside->stacks)
      out.push_back({{}, count.stack, count.samples});
  return out;
}

std::vector<std::uint32_t> frames_of(const model::CpuProfile& cpu, std::uint32_t stack) {
  std::vector<std::uint32_t> frames;
  for (; stack < cpu.stacks.size(); stack = cpu.stacks[stack].parent)
    frames.push_back(cpu.stacks[stack].frame);
  std::reverse(frames.begin(), frames.end());
  return frames;
}

base::Result<void> export_collapsed(const model::Report& report, const model::Session* session,
                                    const Style&, Sink& sink) {
  auto list = TRY(sampled_chains(report, session));
  std::vector<std::string> texts;
  for (const model::CpuFrame& frame : session->cpu.frames)
    texts.push_back(folded_word(frame_text(*session, frame)));
  for (const Chain& chain : list) {
    std::string line;
    const auto add = [&](const std::string& text) { line += (line.empty() ? "" : ";") + text; };
    for (const std::string& range : chain.ranges) add(folded_word(range));
    for (const std::uint32_t frame : frames_of(session->cpu, chain.stack)) add(texts[frame]);
    if (line.empty()) line = "(unknown)";
    sink.write(line + " " + std::to_string(chain.samples) + "\n");
  }
  return {};
}

base::Result<void> export_speedscope(const model::Report& report, const model::Session* session,
                                     const Style&, Sink& sink) {
  auto list = TRY(sampled_chains(report, session));
  const CpuProfile& cpu = session->cpu;
  std::unordered_map<std::string, std::size_t> ranges;
  std::vector<std::string> names;
  for (const Chain& chain : list)
    for (const std::string& range : chain.ranges)
      if (ranges.try_emplace(range, cpu.frames.size() + names.size()).second)
        names.push_back(range);
  JsonWriter json(sink);
  json.open_object();
  json.fields("$schema", "https://www.speedscope.app/file-format-schema.json", "exporter",
              "rangescope", "name", report.run.id);
  json.open_object("shared");
  json.open_array("frames");
  for (const model::CpuFrame& frame : cpu.frames) {
    json.open_line_object();
    json.field("name", frame_text(*session, frame));
    const auto file = session->strings.view(frame.file != 0 ? frame.file : frame.module);
    if (!file.empty()) json.field("file", file);
    if (frame.line > 0) json.field("line", frame.line);
    json.close();
  }
  for (const std::string& name : names) {
    json.open_line_object();
    json.field("name", name);
    json.close();
  }
  json.close();
  json.close();
  std::int64_t end = 0;
  for (const Chain& chain : list) end += chain.samples * cpu.interval_ns;
  json.open_array("profiles");
  json.open_object();
  json.fields("type", "sampled", "name", "CPU time", "unit", "nanoseconds", "startValue", 0,
              "endValue", end);
  json.open_array("samples");
  for (const Chain& chain : list) {
    json.open_line_array();
    for (const std::string& range : chain.ranges) json.value(ranges.at(range));
    for (const std::uint32_t frame : frames_of(cpu, chain.stack)) json.value(frame);
    json.close();
  }
  json.close();
  json.open_line_array("weights");
  for (const Chain& chain : list) json.value(chain.samples * cpu.interval_ns);
  for (int level = 0; level < 4; ++level) json.close();
  json.finish();
  return {};
}

}  // namespace rangescope::report
