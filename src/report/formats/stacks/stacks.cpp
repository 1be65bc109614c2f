
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
        base::Code::kNothingCaptured,
        "the input holds no samples of the CPU",
        {},
        "Record with rangescope profile --cpu; the data losses name what prevents it");
  return out;
}

}  // namespace

std::vector<Chain> chains(const model::Report& report) {
  std::vector<Chain> chains;
  const auto add = [&](const std::vector<std::string>& ranges, const model::CpuWork& cpu) {
    for (const model::CpuStackCount& count : cpu.stacks)
      chains.push_back({ranges, count.stack, count.samples});
  };
  for (const model::Region& region : report.regions)
    if (region.cpu)
      add(region.path, *region.cpu);
  if (report.cpu_outside)
    add({}, *report.cpu_outside);
  return chains;
}

std::vector<std::uint32_t> frames_of(const model::CpuProfile& cpu, std::uint32_t stack) {
  std::vector<std::uint32_t> frames;
  for (; stack < cpu.stacks.size(); stack = cpu.stacks[stack].parent)
    frames.push_back(cpu.stacks[stack].frame);
  std::reverse(frames.begin(), frames.end());
  return frames;
}

base::Result<void> export_collapsed(const model::Report& report,
                                    const model::Session* session,
                                    const Style&,
                                    Sink& sink) {
  const std::vector<Chain> chains = TRY(sampled_chains(report, session));
  std::vector<std::string> frame_words;
  for (const model::CpuFrame& frame : session->cpu.frames)
    frame_words.push_back(folded_word(frame_text(*session, frame)));
  for (const Chain& chain : chains) {
    std::string line;
    const auto add = [&](const std::string& word) {
      if (!line.empty())
        line += ';';
      line += word;
    };
    for (const std::string& range : chain.ranges)
      add(folded_word(range));
    for (const std::uint32_t frame : frames_of(session->cpu, chain.stack))
      add(frame_words[frame]);
    if (line.empty())
      line = "(unknown)";
    sink.write(line + " " + std::to_string(chain.samples) + "\n");
  }
  return {};
}

base::Result<void> export_speedscope(const model::Report& report,
                                     const model::Session* session,
                                     const Style&,
                                     Sink& sink) {
  const std::vector<Chain> chains = TRY(sampled_chains(report, session));
  const CpuProfile& cpu = session->cpu;
  // Ranges are frames after those of the CPU.
  std::unordered_map<std::string, std::size_t> frame_of_range;
  std::vector<std::string> range_names;
  for (const Chain& chain : chains) {
    for (const std::string& range : chain.ranges) {
      const std::size_t next = cpu.frames.size() + range_names.size();
      const bool is_new = frame_of_range.try_emplace(range, next).second;
      if (is_new)
        range_names.push_back(range);
    }
  }
  JsonWriter json(sink);
  json.open_object();
  json.fields("$schema",
              "https://www.speedscope.app/file-format-schema.json",
              "exporter",
              "rangescope",
              "name",
              report.run.id);
  json.open_object("shared");
  json.open_array("frames");
  for (const model::CpuFrame& frame : cpu.frames) {
    json.open_line_object();
    json.field("name", frame_text(*session, frame));
    const auto file = session->strings.view(frame.file != 0 ? frame.file : frame.module);
    if (!file.empty())
      json.field("file", file);
    if (frame.line > 0)
      json.field("line", frame.line);
    json.close();
  }
  for (const std::string& range : range_names) {
    json.open_line_object();
    json.field("name", range);
    json.close();
  }
  json.close();
  json.close();
  std::int64_t end_ns = 0;
  for (const Chain& chain : chains)
    end_ns += chain.samples * cpu.interval_ns;
  json.open_array("profiles");
  json.open_object();
  json.field("type", "sampled");
  json.field("name", "CPU time");
  json.field("unit", "nanoseconds");
  json.field("startValue", 0);
  json.field("endValue", end_ns);
  json.open_array("samples");
  for (const Chain& chain : chains) {
    json.open_line_array();
    for (const std::string& range : chain.ranges)
      json.value(frame_of_range.at(range));
    for (const std::uint32_t frame : frames_of(cpu, chain.stack))
      json.value(frame);
    json.close();
  }
  json.close();
  json.open_line_array("weights");
  for (const Chain& chain : chains)
    json.value(chain.samples * cpu.interval_ns);
  for (int level = 0; level < 4; ++level)
    json.close();
  json.finish();
  return {};
}

}  // namespace rangescope::report
