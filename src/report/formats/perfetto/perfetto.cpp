// Perfetto's trace format: a message Trace with one field, packet = 1, repeated. Field numbers are
// those of protos/perfetto/trace/ at https://github.com/google/perfetto (they never change
// meaning):
//
//   TracePacket      clock_snapshot 6, timestamp 8, trusted_packet_sequence_id 10, track_event 11,
//   interned_data 12,
//                    sequence_flags 13 (1 incremental state cleared, 2 needs incremental state),
//                    track_descriptor 60, perf_sample 66
//   ClockSnapshot    clocks 1 (Clock: clock_id 1, timestamp 2), primary_trace_clock 2
//   TrackDescriptor  uuid 1, name 2, process 3, thread 4, parent_uuid 5, counter 8
//   (CounterDescriptor: unit_name 6) ProcessDescriptor pid 1, process_name 6 ThreadDescriptor pid
//   1, tid 2, thread_name 5 TrackEvent       category_iids 3, debug_annotations 4, type 9 (1 begin,
//   2 end, 3 instant, 4 counter), name_iid 10,
//                    track_uuid 11, double_counter_value 44, flow_ids 47 (fixed64),
//                    terminating_flow_ids 48 (fixed64)
//   DebugAnnotation  name_iid 1, bool_value 2, uint_value 3, int_value 4, double_value 5,
//   string_value 6 InternedData     event_categories 1, event_names 2, debug_annotation_names 3,
//   function_names 5, mapping_paths 17
//                    (each: iid 1, name 2), frames 6, callstacks 7, mappings 19
//   Mapping          iid 1, path_string_ids 7         Callstack iid 1, frame_ids 2 (the outermost
//   first) Frame            iid 1, function_name_id 2, mapping_id 3, rel_pc 4 PerfSample       pid
//   2, tid 3, callstack_iid 4, cpu_mode 5 (1 kernel, 2 user)
//
// Names are interned: a kernel's name of 2 kB is written once. Times are the session's nanoseconds;
// a clock snapshot ties them to UTC where the capture knows it. A launch and its kernel share a
// flow: the launch's index + 1. A counter's value holds until the next one: equal ones are left
// out, and the format has no way to say that a stretch is unknown. A frame must lie in a mapping at
// an address; the session has functions and no addresses, so the number of the frame stands in for
// one, and Python's frames lie in a mapping "python". A thread's waits are slices of a track of
// their own below it.
#include "report/formats.hpp"

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
constexpr std::uint32_t kBoottime = 6,
                        kRealtime = 1;  // BuiltinClock; a trace's default clock is boottime
constexpr std::uint64_t kProcessTracks = std::uint64_t{1} << 40,
                        kLaneTracks = std::uint64_t{2} << 40,
                        kVerdictTrack = std::uint64_t{3} << 40,
                        kCounterTracks = std::uint64_t{4} << 40,
                        kWaitTracks = std::uint64_t{5} << 40,
                        kCpuThreadTracks = std::uint64_t{6} << 40,
                        kLifeTracks = std::uint64_t{7} << 40;
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
        shift_ns_(session.begin_ns < 0 ? -session.begin_ns : 0),
        seen_(session.strings.size(), false) {}

  void write() {
    clock();
    for (std::uint32_t i = 0; i < session_.processes.size(); ++i) process(i);
    for (std::uint32_t i = 0; i < timeline_.lanes().size(); ++i) lane(i);
    for (const model::Mark& mark : session_.marks) instant(mark);
    verdict();
    std::uint64_t id = kCounterTracks;
    for (const SampleTrack& track : sample_tracks(report_, session_)) counter(track, id++);
    for (const model::DeviceMemory& memory : report_.memory) memory_counters(memory, id);
    if (model::is_program(report_))
      for (std::uint32_t i = 0; i < report_.processes.size(); ++i)
        life(report_.processes[i], kLifeTracks + i);
    cpu_samples();
    cpu_waits();
    flush();
  }

 private:
  template <class Fill>
  void packet(Fill fill) {
    {
      pbf_writer trace(buffer_);
      pbf_writer one(trace, 1);
      fill(one);
      one.add_uint32(10, kSequence);
    }
    if (buffer_.size() >= kTraceBuffer) flush();
  }
  template <class Fill>
  void track(std::uint64_t id, Fill fill) {
    packet([&](pbf_writer& one) {
      pbf_writer track(one, 60);
      track.add_uint64(1, id);
      fill(track);
    });
  }
  static void thread(pbf_writer& track, std::int32_t pid, std::uint32_t tid,
                     std::string_view name) {
    pbf_writer descriptor(track, 4);
    descriptor.add_int32(1, pid);
    descriptor.add_int32(2, static_cast<std::int32_t>(tid));
    if (!name.empty()) descriptor.add_string(5, base::printable(name));
  }
  void flush() {
    sink_.write(buffer_);
    buffer_.clear();
  }

  void clock() {
    packet([&](pbf_writer& one) {
      if (session_.clock.anchor_unix_ns != 0 && session_.clock.anchor_ns + shift_ns_ >= 0) {
        pbf_writer snapshot(one, 6);
        const auto add = [&snapshot](std::uint32_t id, std::int64_t ns) {
          pbf_writer clock(snapshot, 1);
          clock.add_uint32(1, id);
          clock.add_uint64(2, static_cast<std::uint64_t>(ns));
        };
        add(kBoottime, session_.clock.anchor_ns + shift_ns_);
        add(kRealtime, session_.clock.anchor_unix_ns);
      }
      one.add_uint32(13, 1);
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

  /// Without ranges: a process from its start to its exit.
  void life(const model::ReportProcess& process, std::uint64_t id) {
    const std::string name = base::printable(base::file_name(process.name));
    track(id, [&](pbf_writer& track) {
      track.add_string(2, "process " + std::to_string(process.pid));
    });
    annotations_.assign(1, {"parent_pid", std::uint64_t{process.parent_pid}});
    const auto at = [&](double ns) { return session_.begin_ns + static_cast<std::int64_t>(ns); };
    described(kBegin, at(process.start_ns), id, small_id(2, name), "process", [](pbf_writer&) {});
    event(kEnd, at(process.end_ns), id, [](pbf_writer&) {});
  }

  static std::uint64_t track_id(std::uint32_t lane, std::uint32_t track) {
    return kLaneTracks + (std::uint64_t{lane} << 10) + track;
  }

  void lane_track(std::uint32_t index, std::uint32_t number) {
    const TimelineLane& lane = timeline_.lanes()[index];
    track(track_id(index, number), [&](pbf_writer& track) {
      if (number == 0 && !lane.is_stream()) {
        const model::Thread& of = session_.threads[lane.thread];
        track.add_uint64(5, kProcessTracks + of.process);
        return thread(track, of.process < pids_.size() ? pids_[of.process] : 0, of.tid,
                      session_.strings.view(of.name));
      }
      const bool more = number > 0;
      track.add_uint64(5, more ? track_id(index, 0) : kProcessTracks + lane.process);
      track.add_string(2, timeline_.title(lane) + (more ? ", overlapping" : ""));
    });
  }

  void lane(std::uint32_t index) {
    const TimelineLane& lane = timeline_.lanes()[index];
    for (std::uint32_t i = 0; i < lane.depths.size(); ++i) lane_track(index, i);
    std::vector<std::vector<std::int64_t>> open(lane.depths.size());
    const auto close = [&](std::uint32_t track, std::int64_t until) {
      auto& ends = open[track];
      while (!ends.empty() && ends.back() <= until) {
        event(kEnd, ends.back(), track_id(index, track), [](pbf_writer&) {});
        ends.pop_back();
      }
    };
    timeline_.each(lane, [&](const TimelineItem& item) {
      close(item.track, item.start_ns);
      const bool moment = item.kind == ItemKind::kCall && item.open;
      slice(item, moment ? kInstant : kBegin, track_id(index, item.track));
      if (!moment) open[item.track].push_back(item.end_ns);
    });
    for (std::uint32_t i = 0; i < open.size(); ++i)
      close(i, std::numeric_limits<std::int64_t>::max());
  }

  /// A track of its own, a line each, at the begin of the recording.
  void verdict() {
    if (report_.verdict.empty()) return;
    track(kVerdictTrack, [](pbf_writer& track) { track.add_string(2, "verdict"); });
    for (const model::Verdict& line : report_.verdict) {
      annotations_ = {{"kind", line.kind},
                      {"severity", std::string(model::weight_name(line.severity))}};
      if (line.saves_ns) annotations_.push_back({"saves_ns", *line.saves_ns});
      described(kInstant, session_.begin_ns, kVerdictTrack,
                small_id(2, verdict_text(report_, line)), "verdict", [](pbf_writer&) {});
    }
  }

  void counter(const SampleTrack& samples, std::uint64_t id) {
    track(id, [&](pbf_writer& track) {
      track.add_string(2, samples.title);
      pbf_writer counter(track, 8);
      counter.add_string(6, samples.unit);
    });
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
    const std::int64_t session_ns = session_.begin_ns + static_cast<std::int64_t>(at_ns);
    event(kCounter, session_ns, id, [&](pbf_writer& event) { event.add_double(44, value); });
  }

  /// Allocated, and reserved where that was recorded; `id` is the next free track.
  void memory_counters(const model::DeviceMemory& memory, std::uint64_t& id) {
    const std::string allocator = base::printable(memory.allocator);
    const std::string gpu = "GPU " + std::to_string(memory.device) + " " + allocator;
    const std::uint64_t allocated = id++;
    counter_track(allocated, gpu + " allocated", "byte");
    for (const auto& point : memory.points) count_at(allocated, point.at_ns, point.allocated_bytes);
    if (!memory.peak_reserved_bytes) return;
    const std::uint64_t reserved = id++;
    counter_track(reserved, gpu + " reserved", "byte");
    for (const model::MemoryPoint& point : memory.points)
      if (point.reserved_bytes) count_at(reserved, point.at_ns, *point.reserved_bytes);
  }

  /// An entry of interned data: its id, and what `fill` adds.
  template <class Fill>
  void entry(std::uint32_t field, std::uint64_t id, Fill fill) {
    packet([&](pbf_writer& one) {
      one.add_uint32(13, 2);
      pbf_writer data(one, 12);
      pbf_writer entry(data, field);
      entry.add_uint64(1, id);
      fill(entry);
    });
  }

  std::uint64_t mapping_id(const std::string& path) {
    const auto [at, is_new] = mappings_.try_emplace(path, mappings_.size() + 1);
    const std::uint64_t id = at->second;
    if (is_new) {
      intern(17, id, path);
      entry(19, id, [&](pbf_writer& mapping) { mapping.add_uint64(7, id); });
    }
    return id;
  }

  void frame(std::uint32_t index) {
    const model::CpuFrame& frame = session_.cpu.frames[index];
    const std::uint64_t id = std::uint64_t{index} + 1;
    intern(5, id, base::printable(frame_text(session_, frame)));
    const std::uint64_t mapping =
        mapping_id(frame.kind == model::FrameKind::kPython
                       ? "python"
                       : base::printable(session_.strings.view(frame.module)));
    entry(6, id, [&](pbf_writer& one) {
      one.add_uint64(2, id);
      one.add_uint64(3, mapping);
      one.add_uint64(4, id);
    });
  }

  // Call chains that samples have, each before its first use.
  void cpu_samples() {
    const model::CpuProfile& cpu = session_.cpu;
    std::vector<bool> framed(cpu.frames.size()), stacked(cpu.stacks.size());
    std::vector<std::uint64_t> chain;
    for (const model::CpuSample& sample : cpu.samples) {
      if (sample.stack < cpu.stacks.size() && !stacked[sample.stack]) {
        stacked[sample.stack] = true;
        chain.clear();
        for (std::uint32_t s = sample.stack; s < cpu.stacks.size(); s = cpu.stacks[s].parent) {
          const std::uint32_t index = cpu.stacks[s].frame;
          if (!framed[index]) frame(index);
          framed[index] = true;
          chain.push_back(std::uint64_t{index} + 1);
        }
        entry(7, std::uint64_t{sample.stack} + 1, [&](pbf_writer& one) {
          for (std::size_t i = chain.size(); i-- > 0;) one.add_uint64(2, chain[i]);
        });
      }
      packet([&](pbf_writer& one) {
        one.add_uint64(
            8, static_cast<std::uint64_t>(std::max<std::int64_t>(sample.at_ns + shift_ns_, 0)));
        one.add_uint32(13, 2);
        pbf_writer taken(one, 66);
        taken.add_uint32(2, cpu.threads[sample.thread].pid);
        taken.add_uint32(3, cpu.threads[sample.thread].tid);
        if (sample.stack >= cpu.stacks.size()) return;
        taken.add_uint64(4, std::uint64_t{sample.stack} + 1);
        const model::CpuFrame& inner = cpu.frames[cpu.stacks[sample.stack].frame];
        taken.add_int32(5, session_.strings.view(inner.module) == "[kernel]" ? 1 : 2);
      });
    }
  }

  void wait_track(std::uint32_t index) {
    const model::CpuThread& of = session_.cpu.threads[index];
    const std::uint32_t lane = timeline_.lane_of_thread(of.thread);
    if (lane == model::kNone)
      track(kCpuThreadTracks + index, [&](pbf_writer& track) {
        thread(track, static_cast<std::int32_t>(of.pid), of.tid, session_.strings.view(of.name));
      });
    track(kWaitTracks + index, [&](pbf_writer& track) {
      track.add_string(2, "off the CPU");
      track.add_uint64(5, lane == model::kNone ? kCpuThreadTracks + index : track_id(lane, 0));
    });
  }

  void cpu_waits() {
    const model::CpuProfile& cpu = session_.cpu;
    std::uint32_t last = model::kNone;
    for (const model::CpuWait& wait : cpu.waits) {  // by thread
      if (wait.thread != last) wait_track(last = wait.thread);
      annotations_.clear();
      if (wait.stack < cpu.stacks.size()) {
        Annotation& in =
            annotations_
                .emplace_back();  // made as a whole, GCC 12 takes its value for uninitialized
        in.key = "in";
        in.value = base::printable(frame_text(session_, cpu.frames[cpu.stacks[wait.stack].frame]));
      }
      std::string name(name_of(wait.kind));
      if (wait.kind == model::WaitKind::kOther)
        name = "waiting";
      else if (wait.kind != model::WaitKind::kPreempted)
        name = "waiting: " + name;
      described(kBegin, wait.start_ns, kWaitTracks + last, small_id(2, name), "cpu_wait",
                [](pbf_writer&) {});
      event(kEnd, wait.end_ns, kWaitTracks + last, [](pbf_writer&) {});
    }
  }

  template <class Fill>
  void event(EventType type, std::int64_t at_ns, std::uint64_t track, Fill fill) {
    packet([&](pbf_writer& one) {
      one.add_uint64(8, static_cast<std::uint64_t>(std::max<std::int64_t>(at_ns + shift_ns_, 0)));
      one.add_uint32(13, 2);
      pbf_writer event(one, 11);
      event.add_int32(9, type);
      event.add_uint64(11, track);
      fill(event);
    });
  }

  // Defines an id, before its first use.
  void intern(std::uint32_t field, std::uint64_t id, std::string_view text) {
    entry(field, id, [&](pbf_writer& named) { named.add_string(2, text.data(), text.size()); });
  }
  std::uint64_t small_id(std::uint32_t field, std::string_view text) {
    const auto [at, is_new] =
        ids_.try_emplace({field, std::string(text)}, session_.strings.size() + ids_.size() + 1);
    if (is_new) intern(field, at->second, text);
    return at->second;
  }
  std::uint64_t name_id(model::StringId id) {
    if (!seen_[id]) {
      seen_[id] = true;
      intern(2, id, base::printable(session_.strings.view(id)));
    }
    return id;
  }

  void slice(const TimelineItem& item, EventType type, std::uint64_t track) {
    annotate(session_, item, annotations_);
    const model::StringId id = timeline_.name_id(item);
    described(type, item.start_ns, track, id != 0 ? name_id(id) : small_id(2, timeline_.name(item)),
              item_category(item.kind), [&](pbf_writer& event) {
                if (item.launch == model::kNone) return;
                event.add_fixed64(item.kind == ItemKind::kCall ? 47 : 48,
                                  std::uint64_t{item.launch} + 1);
              });
  }

  void instant(const model::Mark& mark) {
    const std::uint32_t lane = timeline_.lane_of_thread(mark.thread);
    if (lane == model::kNone) return;
    annotate(session_, mark, annotations_);
    described(kInstant, mark.at_ns, track_id(lane, 0),
              mark.name != 0 ? name_id(mark.name) : small_id(2, "(no name)"), "nvtx",
              [](pbf_writer&) {});
  }

  // With name, category and annotations_.
  template <class More>
  void described(EventType type, std::int64_t at_ns, std::uint64_t track, std::uint64_t name,
                 std::string_view category, More more) {
    const std::uint64_t category_id = small_id(1, category);
    for (const Annotation& annotation : annotations_) (void)small_id(3, annotation.key);
    event(type, at_ns, track, [&](pbf_writer& event) {
      event.add_uint64(10, name);
      event.add_uint64(3, category_id);
      more(event);
      for (const Annotation& annotation : annotations_) {
        pbf_writer one(event, 4);
        one.add_uint64(1, small_id(3, annotation.key));
        put(one, annotation.value);
      }
    });
  }

  static void put(pbf_writer& one, const AnnotationValue& value) {
    if (const auto* flag = std::get_if<bool>(&value)) return one.add_bool(2, *flag);
    if (const auto* natural = std::get_if<std::uint64_t>(&value))
      return one.add_uint64(3, *natural);
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return one.add_int64(4, *whole);
    if (const auto* real = std::get_if<double>(&value)) return one.add_double(5, *real);
    one.add_string(6, std::get<std::string>(value));
  }

  const model::Report& report_;
  const model::Session& session_;
  Sink& sink_;
  Timeline timeline_;
  std::vector<std::int32_t> pids_;
  std::int64_t shift_ns_;
  std::vector<bool> seen_;  // names that were interned
  std::map<std::pair<std::uint32_t, std::string>, std::uint64_t> ids_;
  std::map<std::string, std::uint64_t> mappings_;
  std::vector<Annotation> annotations_;
  std::string buffer_;
};

}  // namespace

base::Result<void> export_perfetto(const model::Report& report, const model::Session* session,
                                   const Style&, Sink& sink) {
  if (session == nullptr || (Timeline(*session).lanes().empty() && !model::is_program(report)))
    return base::fail(
        base::Code::kNothingCaptured, "the input holds no timeline", "--format perfetto",
        "Report on a run of rangescope or nsys; ncu results and tables have no timestamps");
  PerfettoWriter(report, *session, sink).write();
  return {};
}

}  // namespace rangescope::report
