// Perfetto's trace format: a message Trace with one field, packet = 1, repeated. Field numbers are
// those of protos/perfetto/trace/ at https://github.com/google/perfetto, where they never change
// their meaning:
//
//   TracePacket        clock_snapshot 6, timestamp 8, trusted_packet_sequence_id 10,
//                      track_event 11, interned_data 12, sequence_flags 13 (1 incremental state
//                      cleared, 2 needs incremental state), track_descriptor 60, perf_sample 66
//   ClockSnapshot      clocks 1 (Clock: clock_id 1, timestamp 2), primary_trace_clock 2
//   TrackDescriptor    uuid 1, name 2, process 3, thread 4, parent_uuid 5, counter 8
//   CounterDescriptor  unit_name 6
//   ProcessDescriptor  pid 1, process_name 6
//   ThreadDescriptor   pid 1, tid 2, thread_name 5
//   TrackEvent         category_iids 3, debug_annotations 4, type 9 (1 begin, 2 end, 3 instant,
//                      4 counter), name_iid 10, track_uuid 11, double_counter_value 44,
//                      flow_ids 47 (fixed64), terminating_flow_ids 48 (fixed64)
//   DebugAnnotation    name_iid 1, bool_value 2, uint_value 3, int_value 4, double_value 5,
//                      string_value 6
//   InternedData       event_categories 1, event_names 2, debug_annotation_names 3,
//                      function_names 5, mapping_paths 17 (each: iid 1, name 2), frames 6,
//                      callstacks 7, mappings 19
//   Mapping            iid 1, path_string_ids 7
//   Callstack          iid 1, frame_ids 2 (outermost first)
//   Frame              iid 1, function_name_id 2, mapping_id 3, rel_pc 4
//   PerfSample         pid 2, tid 3, callstack_iid 4, cpu_mode 5 (1 kernel, 2 user)
//
// Names are interned: a kernel's name of 2 kB is written once. Times are the session's nanoseconds;
// a clock snapshot ties them to UTC if the capture knows it. A launch and its kernel share a flow:
// the launch's index + 1. A counter's value holds until the next one: equal ones are left out, and
// the format cannot express that a stretch is unknown. A frame needs a mapping and an address; the
// session has functions without addresses, so that a frame's number is its address, and Python's
// frames are in a mapping "python". Waits of a thread are slices of a separate track below it.
#include "report/formats.hpp"

#include <algorithm>
#include <map>
#include <protozero/pbf_writer.hpp>

#include "base/text.hpp"
#include "model/program.hpp"
#include "report/document/findings.hpp"
#include "report/document/flame.hpp"
#include "report/formats/perfetto/annotations.hpp"
#include "report/timeline/timeline.hpp"

namespace rangescope::report {
namespace {

using protozero::pbf_writer;

constexpr std::size_t kTraceBuffer = 256 * 1024;
constexpr std::uint32_t kSequence = 1;
// BuiltinClock; a trace's default clock is boottime.
constexpr std::uint32_t kBoottime = 6, kRealtime = 1;

// Ranges of track ids.
constexpr std::uint64_t kProcessTracks = std::uint64_t{1} << 40;
constexpr std::uint64_t kLaneTracks = std::uint64_t{2} << 40;
constexpr std::uint64_t kVerdictTrack = std::uint64_t{3} << 40;
constexpr std::uint64_t kCounterTracks = std::uint64_t{4} << 40;
constexpr std::uint64_t kWaitTracks = std::uint64_t{5} << 40;
constexpr std::uint64_t kCpuThreadTracks = std::uint64_t{6} << 40;
constexpr std::uint64_t kLifeTracks = std::uint64_t{7} << 40;
enum EventType : std::int32_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };

class PerfettoWriter {
 public:
  PerfettoWriter(const model::Report& report, const model::Session& session, Sink& sink)
      : report_(report),
        session_(session),
        sink_(sink),
        timeline_(session),
        pids_(trace_pids(session)),
        // The format has no negative times.
        shift_ns_(std::max<std::int64_t>(-session.begin_ns, 0)),
        is_interned_(session.strings.size(), false) {}

  void write() {
    clock();
    for (std::uint32_t i = 0; i < session_.processes.size(); ++i)
      process(i);
    for (std::uint32_t i = 0; i < timeline_.lanes().size(); ++i)
      lane(i);
    for (const model::Mark& mark : session_.marks)
      instant(mark);
    verdict();
    std::uint64_t id = kCounterTracks;
    for (const SampleTrack& track : sample_tracks(report_, session_))
      counter(track, id++);
    for (const model::DeviceMemory& memory : report_.memory)
      memory_counters(memory, id);
    if (model::is_program(report_))
      for (std::uint32_t i = 0; i < report_.processes.size(); ++i)
        lifetime(report_.processes[i], kLifeTracks + i);
    cpu_samples();
    cpu_waits();
    flush();
  }

 private:
  template <class Fill>
  void packet(Fill fill) {
    {
      pbf_writer trace(buffer_);
      pbf_writer message(trace, 1);
      fill(message);
      message.add_uint32(10, kSequence);
    }
    if (buffer_.size() >= kTraceBuffer)
      flush();
  }
  template <class Fill>
  void track(std::uint64_t id, Fill fill) {
    packet([&](pbf_writer& message) {
      pbf_writer track(message, 60);
      track.add_uint64(1, id);
      fill(track);
    });
  }
  static void thread(pbf_writer& track,
                     std::int32_t pid,
                     std::uint32_t tid,
                     std::string_view name) {
    pbf_writer descriptor(track, 4);
    descriptor.add_int32(1, pid);
    descriptor.add_int32(2, static_cast<std::int32_t>(tid));
    if (!name.empty())
      descriptor.add_string(5, base::printable(name));
  }
  void flush() {
    sink_.write(buffer_);
    buffer_.clear();
  }

  void clock() {
    packet([&](pbf_writer& message) {
      const bool has_utc =
          session_.clock.anchor_unix_ns != 0 && session_.clock.anchor_ns + shift_ns_ >= 0;
      if (has_utc) {
        pbf_writer snapshot(message, 6);
        const auto add = [&snapshot](std::uint32_t id, std::int64_t ns) {
          pbf_writer clock(snapshot, 1);
          clock.add_uint32(1, id);
          clock.add_uint64(2, static_cast<std::uint64_t>(ns));
        };
        add(kBoottime, session_.clock.anchor_ns + shift_ns_);
        add(kRealtime, session_.clock.anchor_unix_ns);
      }
      message.add_uint32(13, 1);
    });
  }

  void process(std::uint32_t index) {
    const model::Process& process = session_.processes[index];
    track(kProcessTracks + index, [&](pbf_writer& track) {
      pbf_writer descriptor(track, 3);
      descriptor.add_int32(1, pids_[index]);
      descriptor.add_string(6, trace_process_name(session_, process));
    });
  }

  /// For a program without ranges: a slice from the start of a process to its exit.
  void lifetime(const model::ReportProcess& process, std::uint64_t id) {
    const std::string name = base::printable(base::file_name(process.name));
    track(id, [&](pbf_writer& track) {
      track.add_string(2, "process " + std::to_string(process.pid));
    });
    annotations_.assign(1, {"parent_pid", std::uint64_t{process.parent_pid}});
    const std::int64_t start_ns = session_time(process.start_ns);
    described(kBegin, start_ns, id, small_id(2, name), "process", [](pbf_writer&) {});
    event(kEnd, session_time(process.end_ns), id, [](pbf_writer&) {});
  }

  /// Of a time of the report, which starts with the recording.
  [[nodiscard]] std::int64_t session_time(double report_ns) const {
    return session_.begin_ns + static_cast<std::int64_t>(report_ns);
  }

  static std::uint64_t track_id(std::uint32_t lane, std::uint32_t track) {
    return kLaneTracks + (std::uint64_t{lane} << 10) + track;
  }

  void lane_track(std::uint32_t index, std::uint32_t number) {
    const TimelineLane& lane = timeline_.lanes()[index];
    track(track_id(index, number), [&](pbf_writer& track) {
      if (number == 0 && !lane.is_stream()) {
        const model::Thread& of_lane = session_.threads[lane.thread];
        track.add_uint64(5, kProcessTracks + of_lane.process);
        std::int32_t pid = 0;
        if (of_lane.process < pids_.size())
          pid = pids_[of_lane.process];
        return thread(track, pid, of_lane.tid, session_.strings.view(of_lane.name));
      }
      std::string title = timeline_.title(lane);
      std::uint64_t parent = kProcessTracks + lane.process;
      if (number > 0) {
        title += ", overlapping";
        parent = track_id(index, 0);
      }
      track.add_uint64(5, parent);
      track.add_string(2, title);
    });
  }

  void lane(std::uint32_t index) {
    const TimelineLane& lane = timeline_.lanes()[index];
    for (std::uint32_t i = 0; i < lane.depths.size(); ++i)
      lane_track(index, i);
    std::vector<std::vector<std::int64_t>> open_ends(lane.depths.size());  // of each track
    const auto close_until = [&](std::uint32_t track, std::int64_t until_ns) {
      std::vector<std::int64_t>& ends = open_ends[track];
      while (!ends.empty() && ends.back() <= until_ns) {
        event(kEnd, ends.back(), track_id(index, track), [](pbf_writer&) {});
        ends.pop_back();
      }
    };
    timeline_.each(lane, [&](const TimelineItem& item) {
      close_until(item.track, item.start_ns);
      const bool is_instant = item.kind == ItemKind::kCall && item.open;
      slice(item, is_instant ? kInstant : kBegin, track_id(index, item.track));
      if (!is_instant)
        open_ends[item.track].push_back(item.end_ns);
    });
    for (std::uint32_t track = 0; track < open_ends.size(); ++track)
      close_until(track, std::numeric_limits<std::int64_t>::max());
  }

  /// A track with an instant for each verdict at the start of the recording.
  void verdict() {
    if (report_.verdict.empty())
      return;
    track(kVerdictTrack, [](pbf_writer& track) { track.add_string(2, "verdict"); });
    for (const model::Verdict& line : report_.verdict) {
      annotations_ = {{"kind", line.kind},
                      {"severity", std::string(model::weight_name(line.severity))}};
      if (line.saves_ns)
        annotations_.push_back({"saves_ns", *line.saves_ns});
      described(kInstant,
                session_.begin_ns,
                kVerdictTrack,
                small_id(2, verdict_text(report_, line)),
                "verdict",
                [](pbf_writer&) {});
    }
  }

  void counter(const SampleTrack& samples, std::uint64_t id) {
    counter_track(id, samples.title, samples.unit);
    samples.changes([&](std::int64_t at_ns, double value) {
      event(kCounter, at_ns, id, [&](pbf_writer& event) { event.add_double(44, value); });
    });
  }

  void counter_track(std::uint64_t id, const std::string& title, std::string_view unit) {
    track(id, [&](pbf_writer& track) {
      track.add_string(2, title);
      pbf_writer counter(track, 8);
      counter.add_string(6, unit.data(), unit.size());
    });
  }

  void count_at(std::uint64_t id, double at_ns, double value) {
    event(
        kCounter, session_time(at_ns), id, [&](pbf_writer& event) { event.add_double(44, value); });
  }

  /// Allocated bytes, and reserved bytes if they were recorded; `id` is the next free track.
  void memory_counters(const model::DeviceMemory& memory, std::uint64_t& id) {
    const std::string allocator = base::printable(memory.allocator);
    const std::string gpu = "GPU " + std::to_string(memory.device) + " " + allocator;
    const std::uint64_t allocated = id++;
    counter_track(allocated, gpu + " allocated", "byte");
    for (const auto& point : memory.points)
      count_at(allocated, point.at_ns, point.allocated_bytes);
    if (!memory.peak_reserved_bytes)
      return;
    const std::uint64_t reserved = id++;
    counter_track(reserved, gpu + " reserved", "byte");
    for (const model::MemoryPoint& point : memory.points)
      if (point.reserved_bytes)
        count_at(reserved, point.at_ns, *point.reserved_bytes);
  }

  /// An entry of interned data: `fill` adds its fields.
  template <class Fill>
  void entry(std::uint32_t field, std::uint64_t id, Fill fill) {
    packet([&](pbf_writer& message) {
      message.add_uint32(13, 2);
      pbf_writer data(message, 12);
      pbf_writer entry(data, field);
      entry.add_uint64(1, id);
      fill(entry);
    });
  }

  std::uint64_t mapping_id(const std::string& path) {
    const auto [mapping, is_new] = mappings_.try_emplace(path, mappings_.size() + 1);
    const std::uint64_t id = mapping->second;
    if (is_new) {
      intern(17, id, path);
      entry(19, id, [&](pbf_writer& message) { message.add_uint64(7, id); });
    }
    return id;
  }

  void frame(std::uint32_t index) {
    const model::CpuFrame& frame = session_.cpu.frames[index];
    const std::uint64_t id = std::uint64_t{index} + 1;
    intern(5, id, base::printable(frame_text(session_, frame)));
    std::string path = "python";
    if (frame.kind != model::FrameKind::kPython)
      path = base::printable(session_.strings.view(frame.module));
    const std::uint64_t mapping = mapping_id(path);
    entry(6, id, [&](pbf_writer& message) {
      message.add_uint64(2, id);
      message.add_uint64(3, mapping);
      message.add_uint64(4, id);
    });
  }

  /// The call chain and those of its frames that were not written yet.
  void call_stack(std::uint32_t index, std::vector<bool>& written_frames) {
    const model::CpuProfile& cpu = session_.cpu;
    std::vector<std::uint64_t> frame_ids;  // innermost first
    for (std::uint32_t i = index; i < cpu.stacks.size(); i = cpu.stacks[i].parent) {
      const std::uint32_t frame_index = cpu.stacks[i].frame;
      if (!written_frames[frame_index])
        frame(frame_index);
      written_frames[frame_index] = true;
      frame_ids.push_back(std::uint64_t{frame_index} + 1);
    }
    entry(7, std::uint64_t{index} + 1, [&](pbf_writer& message) {
      for (std::size_t i = frame_ids.size(); i-- > 0;)
        message.add_uint64(2, frame_ids[i]);
    });
  }

  void cpu_samples() {
    const model::CpuProfile& cpu = session_.cpu;
    std::vector<bool> written_frames(cpu.frames.size()), written_stacks(cpu.stacks.size());
    for (const model::CpuSample& sample : cpu.samples) {
      const bool has_stack = sample.stack < cpu.stacks.size();
      if (has_stack && !written_stacks[sample.stack]) {
        written_stacks[sample.stack] = true;
        call_stack(sample.stack, written_frames);
      }
      cpu_sample(sample);
    }
  }

  void cpu_sample(const model::CpuSample& sample) {
    constexpr std::int32_t kKernelMode = 1, kUserMode = 2;
    const model::CpuProfile& cpu = session_.cpu;
    packet([&](pbf_writer& message) {
      message.add_uint64(8, trace_time(sample.at_ns));
      message.add_uint32(13, 2);
      pbf_writer perf_sample(message, 66);
      perf_sample.add_uint32(2, cpu.threads[sample.thread].pid);
      perf_sample.add_uint32(3, cpu.threads[sample.thread].tid);
      if (sample.stack >= cpu.stacks.size())
        return;
      perf_sample.add_uint64(4, std::uint64_t{sample.stack} + 1);
      const model::CpuFrame& innermost = cpu.frames[cpu.stacks[sample.stack].frame];
      const bool is_kernel = session_.strings.view(innermost.module) == "[kernel]";
      perf_sample.add_int32(5, is_kernel ? kKernelMode : kUserMode);
    });
  }

  /// Below the lane of the thread; a thread without one gets a track.
  void wait_track(std::uint32_t index) {
    const model::CpuThread& cpu_thread = session_.cpu.threads[index];
    const std::uint32_t lane = timeline_.lane_of_thread(cpu_thread.thread);
    std::uint64_t parent = kCpuThreadTracks + index;
    if (lane != model::kNone) {
      parent = track_id(lane, 0);
    } else {
      track(parent, [&](pbf_writer& track) {
        thread(track,
               static_cast<std::int32_t>(cpu_thread.pid),
               cpu_thread.tid,
               session_.strings.view(cpu_thread.name));
      });
    }
    track(kWaitTracks + index, [&](pbf_writer& track) {
      track.add_string(2, "off the CPU");
      track.add_uint64(5, parent);
    });
  }

  static std::string wait_name(model::WaitKind kind) {
    if (kind == model::WaitKind::kOther)
      return "waiting";
    const std::string name(name_of(kind));
    if (kind == model::WaitKind::kPreempted)
      return name;
    return "waiting: " + name;
  }

  void cpu_waits() {
    const model::CpuProfile& cpu = session_.cpu;
    std::uint32_t thread = model::kNone;
    for (const model::CpuWait& wait : cpu.waits) {  // thread by thread
      if (wait.thread != thread)
        wait_track(wait.thread);
      thread = wait.thread;
      annotations_.clear();
      if (wait.stack < cpu.stacks.size()) {
        // Member by member: GCC 12 takes the value of a braced one for uninitialized.
        Annotation& place = annotations_.emplace_back();
        place.key = "in";
        place.value =
            base::printable(frame_text(session_, cpu.frames[cpu.stacks[wait.stack].frame]));
      }
      described(kBegin,
                wait.start_ns,
                kWaitTracks + thread,
                small_id(2, wait_name(wait.kind)),
                "cpu_wait",
                [](pbf_writer&) {});
      event(kEnd, wait.end_ns, kWaitTracks + thread, [](pbf_writer&) {});
    }
  }

  [[nodiscard]] std::uint64_t trace_time(std::int64_t session_ns) const {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(session_ns + shift_ns_, 0));
  }

  template <class Fill>
  void event(EventType type, std::int64_t at_ns, std::uint64_t track, Fill fill) {
    packet([&](pbf_writer& message) {
      message.add_uint64(8, trace_time(at_ns));
      message.add_uint32(13, 2);
      pbf_writer event(message, 11);
      event.add_int32(9, type);
      event.add_uint64(11, track);
      fill(event);
    });
  }

  /// Defines an id; has to precede its first use.
  void intern(std::uint32_t field, std::uint64_t id, std::string_view text) {
    entry(field, id, [&](pbf_writer& named) { named.add_string(2, text.data(), text.size()); });
  }
  /// The id of a text that is not one of the session's strings.
  std::uint64_t small_id(std::uint32_t field, std::string_view text) {
    const auto [entry, is_new] =
        ids_.try_emplace({field, std::string(text)}, session_.strings.size() + ids_.size() + 1);
    if (is_new)
      intern(field, entry->second, text);
    return entry->second;
  }
  std::uint64_t name_id(model::StringId id) {
    if (!is_interned_[id]) {
      is_interned_[id] = true;
      intern(2, id, base::printable(session_.strings.view(id)));
    }
    return id;
  }

  void slice(const TimelineItem& item, EventType type, std::uint64_t track) {
    annotate(session_, item, annotations_);
    const model::StringId string = timeline_.name_id(item);
    std::uint64_t name = 0;
    if (string != 0)
      name = name_id(string);
    else
      name = small_id(2, timeline_.name(item));
    described(type, item.start_ns, track, name, item_category(item.kind), [&](pbf_writer& event) {
      if (item.launch == model::kNone)
        return;
      constexpr std::uint32_t kFlow = 47, kTerminatingFlow = 48;
      const std::uint32_t field = item.kind == ItemKind::kCall ? kFlow : kTerminatingFlow;
      event.add_fixed64(field, std::uint64_t{item.launch} + 1);
    });
  }

  void instant(const model::Mark& mark) {
    const std::uint32_t lane = timeline_.lane_of_thread(mark.thread);
    if (lane == model::kNone)
      return;
    annotate(session_, mark, annotations_);
    const std::uint64_t name = mark.name != 0 ? name_id(mark.name) : small_id(2, "(no name)");
    described(kInstant, mark.at_ns, track_id(lane, 0), name, "nvtx", [](pbf_writer&) {});
  }

  /// An event with a name, a category, annotations_, and the fields that `add_fields` adds.
  template <class AddFields>
  void described(EventType type,
                 std::int64_t at_ns,
                 std::uint64_t track,
                 std::uint64_t name,
                 std::string_view category,
                 AddFields add_fields) {
    const std::uint64_t category_id = small_id(1, category);
    for (const Annotation& annotation : annotations_)
      (void)small_id(3, annotation.key);
    event(type, at_ns, track, [&](pbf_writer& event) {
      event.add_uint64(10, name);
      event.add_uint64(3, category_id);
      add_fields(event);
      for (const Annotation& annotation : annotations_) {
        pbf_writer message(event, 4);
        message.add_uint64(1, small_id(3, annotation.key));
        add_value(message, annotation.value);
      }
    });
  }

  static void add_value(pbf_writer& annotation, const AnnotationValue& value) {
    if (const auto* flag = std::get_if<bool>(&value))
      return annotation.add_bool(2, *flag);
    if (const auto* natural = std::get_if<std::uint64_t>(&value))
      return annotation.add_uint64(3, *natural);
    if (const auto* integer = std::get_if<std::int64_t>(&value))
      return annotation.add_int64(4, *integer);
    if (const auto* real = std::get_if<double>(&value))
      return annotation.add_double(5, *real);
    annotation.add_string(6, std::get<std::string>(value));
  }

  const model::Report& report_;
  const model::Session& session_;
  Sink& sink_;
  Timeline timeline_;
  std::vector<std::int32_t> pids_;
  std::int64_t shift_ns_;
  std::vector<bool> is_interned_;  // by id of the session's strings
  std::map<std::pair<std::uint32_t, std::string>, std::uint64_t> ids_;
  std::map<std::string, std::uint64_t> mappings_;
  std::vector<Annotation> annotations_;
  std::string buffer_;
};

}  // namespace

base::Result<void> export_perfetto(const model::Report& report,
                                   const model::Session* session,
                                   const Style&,
                                   Sink& sink) {
  if (session == nullptr || (Timeline(*session).lanes().empty() && !model::is_program(report)))
    return base::fail(
        base::Code::kNothingCaptured,
        "the input holds no timeline",
        "--format perfetto",
        "Report on a run of rangescope or nsys; ncu results and tables have no timestamps");
  PerfettoWriter(report, *session, sink).write();
  return {};
}

}  // namespace rangescope::report
