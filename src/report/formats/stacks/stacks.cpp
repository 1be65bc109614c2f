
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "report/document/flame.hpp"
#include "report/document/json_writer.hpp"
#include "report/formats.hpp"
#include "report/formats/stacks/profile.hpp"

namespace rangescope::report {
namespace {

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

/// Frames of a speedscope file: those of the CPU, then one for each name of a range. Samples refer
/// to them by position.
class SpeedscopeFrames {
 public:
  SpeedscopeFrames(const model::Session& session, const std::vector<Chain>& chains)
      : session_(session) {
    for (const Chain& chain : chains)
      for (const std::string& range : chain.ranges)
        add_range(range);
  }

  /// "shared": {"frames": [{"name": NAME, "file": FILE, "line": N}]}
  void write(JsonWriter& json) const {
    json.open_object("shared");
    json.open_array("frames");
    for (const model::CpuFrame& frame : session_.cpu.frames)
      write_cpu_frame(json, frame);
    for (const std::string& range : range_names_) {
      json.open_line_object();
      json.field("name", range);
      json.close();
    }
    json.close();
    json.close();
  }

  /// Positions of the frames of one sample, outermost first.
  void write_sample(JsonWriter& json, const Chain& chain) const {
    json.open_line_array();
    for (const std::string& range : chain.ranges)
      json.value(position_of_range_.at(range));
    for (const std::uint32_t frame : frames_of(session_.cpu, chain.stack))
      json.value(frame);
    json.close();
  }

  [[nodiscard]] std::int64_t duration_ns(const Chain& chain) const {
    return chain.samples * session_.cpu.interval_ns;
  }

 private:
  void add_range(const std::string& range) {
    const std::size_t position = session_.cpu.frames.size() + range_names_.size();
    const bool is_new = position_of_range_.try_emplace(range, position).second;
    if (is_new)
      range_names_.push_back(range);
  }

  void write_cpu_frame(JsonWriter& json, const model::CpuFrame& frame) const {
    json.open_line_object();
    json.field("name", frame_text(session_, frame));
    const std::string_view file = file_of(session_, frame);
    if (!file.empty())
      json.field("file", file);
    if (frame.line > 0)
      json.field("line", frame.line);
    json.close();
  }

  const model::Session& session_;
  std::unordered_map<std::string, std::size_t> position_of_range_;
  std::vector<std::string> range_names_;
};

/// Fills the open object of a profile of type "sampled": a sample and a weight for each chain.
void write_sampled_profile(JsonWriter& json,
                           const std::vector<Chain>& chains,
                           const SpeedscopeFrames& frames) {
  std::int64_t end_ns = 0;
  for (const Chain& chain : chains)
    end_ns += frames.duration_ns(chain);
  json.field("type", "sampled");
  json.field("name", "CPU time");
  json.field("unit", "nanoseconds");
  json.field("startValue", 0);
  json.field("endValue", end_ns);
  json.open_array("samples");
  for (const Chain& chain : chains)
    frames.write_sample(json, chain);
  json.close();
  json.open_line_array("weights");
  for (const Chain& chain : chains)
    json.value(frames.duration_ns(chain));
  json.close();
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

std::string_view file_of(const model::Session& session, const model::CpuFrame& frame) {
  if (frame.file != 0)
    return session.strings.view(frame.file);
  return session.strings.view(frame.module);
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
  const SpeedscopeFrames frames(*session, chains);
  JsonWriter json(sink);
  json.open_object();
  json.field("$schema", "https://www.speedscope.app/file-format-schema.json");
  json.field("exporter", "rangescope");
  json.field("name", report.run.id);
  frames.write(json);
  json.open_array("profiles");
  json.open_object();
  write_sampled_profile(json, chains, frames);
  json.close();
  json.close();
  json.close();
  json.finish();
  return {};
}

}  // namespace rangescope::report
