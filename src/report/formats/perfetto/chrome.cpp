// Chrome's trace event format (JSON), for older viewers: one object a line, streamed.
//
//   { "displayTimeUnit": "ns", "traceEvents": [
//     {"ph": "M", "name": "process_name" | "thread_name", "pid", "tid", "args": {"name"}},
//     {"ph": "X", "name", "cat", "pid", "tid", "ts", "dur", "args"},       complete events, microseconds
//     {"ph": "C", "name", "pid", "ts", "args": {unit: value}}               sampled counters
//     {"ph": "i", ...}  marks,   {"ph": "s" | "f", "id", ...}  a flow from a launch to its kernel ]}
//
// Times count from the begin of the recording. The format knows threads only: a stream is a thread with an invented id
// from 1 000 000 000 up, and so is what overlaps within a lane.

#include "base/text.hpp"
#include "model/program.hpp"
#include "report/document/findings.hpp"
#include "report/document/json_writer.hpp"
#include "report/formats.hpp"
#include "report/formats/perfetto/annotations.hpp"
#include "report/timeline/timeline.hpp"

namespace rangescope::report {
namespace {

constexpr std::int64_t kInvented = 1'000'000'000;

class ChromeWriter {
 public:
  ChromeWriter(const model::Session& session, Sink& sink)
      : session_(session), json_(sink), timeline_(session), pids_(trace_pids(session)) {}

  void write(const model::Report& report) {
    json_.open_object();
    json_.field("displayTimeUnit", "ns");
    json_.open_object("otherData");
    json_.open_array("verdict");
    for (const model::Verdict& line : report.verdict) json_.text(verdict_text(report, line));
    json_.close();
    json_.close();
    json_.open_array("traceEvents");
    for (std::size_t i = 0; i < pids_.size(); ++i)
      named("process_name", pids_[i], 0, trace_process_name(session_, session_.processes[i]));
    for (std::uint32_t i = 0; i < timeline_.lanes().size(); ++i) {
      const TimelineLane& lane = timeline_.lanes()[i];
      for (std::uint32_t track = 0; track < lane.depths.size(); ++track)
        named("thread_name", pid(lane), tid(i, track), timeline_.title(lane) + (track > 0 ? ", overlapping" : ""));
      timeline_.each(lane, [&](const TimelineItem& item) { event(i, item); });
    }
    for (const model::Mark& mark : session_.marks) {
      const std::uint32_t lane = timeline_.lane_of_thread(mark.thread);
      if (lane == model::kNone) continue;
      begin("i", base::printable(session_.strings.view(mark.name)), "nvtx", lane, 0, mark.at_ns);
      json_.field("s", "t");
      annotate(session_, mark, annotations_);
      arguments();
      json_.close();
    }
    for (const SampleTrack& track : sample_tracks(report, session_)) counter(track);
    for (const model::ReportProcess& process : report.processes) {
      if (!model::is_program(report)) break;  // without ranges its processes are what is known
      json_.open_line_object();
      json_.fields("ph", "X", "name", base::file_name(process.name), "cat", "process", "pid", process.pid, "tid",
                   process.pid, "ts", process.start_ns / 1e3, "dur", (process.end_ns - process.start_ns) / 1e3);
      json_.line_object("args", "parent_pid", process.parent_pid);
      json_.close();
    }
    json_.close();
    json_.close();
    json_.finish();
  }

 private:
  [[nodiscard]] std::int64_t pid(const TimelineLane& lane) const {
    return lane.process < pids_.size() ? pids_[lane.process] : 0;
  }
  [[nodiscard]] std::int64_t tid(std::uint32_t index, std::uint32_t track) const {
    const TimelineLane& lane = timeline_.lanes()[index];
    if (track == 0 && !lane.is_stream()) return session_.threads[lane.thread].tid;
    return kInvented + std::int64_t{index} * 1000 + track;
  }
  [[nodiscard]] double us(std::int64_t at_ns) const { return static_cast<double>(at_ns - session_.begin_ns) / 1e3; }

  void counter(const SampleTrack& track) {
    track.changes([&](std::int64_t at_ns, double value) {
      json_.open_line_object();
      json_.fields("ph", "C", "name", track.title, "pid",
                   session_.processes.empty() ? 0 : std::int64_t{session_.processes[0].pid}, "ts", us(at_ns));
      json_.line_object("args", track.unit.empty() ? "value" : track.unit, value);
      json_.close();
    });
  }

  void named(const char* what, std::int64_t pid, std::int64_t tid, const std::string& name) {
    json_.open_line_object();
    json_.fields("ph", "M", "name", what, "pid", pid, "tid", tid);
    json_.line_object("args", "name", name);
    json_.close();
  }

  void begin(const char* phase, std::string_view name, std::string_view category, std::uint32_t lane,
             std::uint32_t track, std::int64_t at_ns) {
    json_.open_line_object();
    json_.fields("ph", phase, "name", name, "cat", category, "pid", pid(timeline_.lanes()[lane]), "tid",
                 tid(lane, track), "ts", us(at_ns));
  }

  void event(std::uint32_t lane, const TimelineItem& item) {
    begin("X", timeline_.name(item), item_category(item.kind), lane, item.track, item.start_ns);
    json_.field("dur", static_cast<double>(item.end_ns - item.start_ns) / 1e3);
    annotate(session_, item, annotations_);
    arguments();
    json_.close();
    if (item.launch == model::kNone) return;
    const bool call = item.kind == ItemKind::kCall;
    begin(call ? "s" : "f", "launch", "launch", lane, item.track, item.start_ns);
    json_.field("id", std::int64_t{item.launch} + 1);
    if (!call) json_.field("bp", "e");
    json_.close();
  }

  void arguments() {
    if (annotations_.empty()) return;
    json_.open_line_object("args");
    for (const Annotation& one : annotations_)
      std::visit([&](const auto& value) { json_.field(one.key, value); }, one.value);
    json_.close();
  }

  const model::Session& session_;
  JsonWriter json_;
  Timeline timeline_;
  std::vector<std::int32_t> pids_;
  std::vector<Annotation> annotations_;
};

}  // namespace

base::Result<void> export_chrome(const model::Report& report, const model::Session* session, const Style&, Sink& sink) {
  if (session == nullptr ||
      (session->ranges.empty() && session->kernels.empty() && session->copies.empty() && !model::is_program(report)))
    return no_timeline("chrome");
  ChromeWriter(*session, sink).write(report);
  return {};
}

}  // namespace rangescope::report
