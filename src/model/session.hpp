// Everything that was read from one or several captures, as plain data, on one clock. Readers fill
// it, analyze reads it.
//
// Index 0 of `domains` is the default domain. All links are indexes into the vectors of the same
// session; kNone where there is none. Vectors are in recording order unless their element says
// otherwise.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/allocations.hpp"
#include "model/backward.hpp"
#include "model/cpu.hpp"
#include "model/gpu.hpp"
#include "model/loss.hpp"
#include "model/memory.hpp"
#include "model/metric.hpp"
#include "model/range.hpp"
#include "model/sample.hpp"
#include "model/sketch.hpp"
#include "model/stall.hpp"
#include "model/strings.hpp"
#include "model/summary.hpp"

namespace rangescope::model {

struct Process {
  std::uint32_t pid = 0;
  std::uint32_t parent_pid = 0;  ///< 0 where unknown
  StringId name = 0;             ///< executable path or name
  std::int64_t start_ns = 0;     ///< first and last thing known of it, session clock
  std::int64_t end_ns = 0;
  std::uint32_t rank = kNone;        ///< of a parallel job, where its environment says
  std::uint32_t local_rank = kNone;  ///< on its host
  std::uint32_t world = 0;           ///< ranks of the job, 0 where unknown
  StringId host = 0;                 ///< "" where unknown
  StringId run = 0;  ///< name of the run that recorded it, of several runs of one job
  /// The least that recording an empty range takes, inside it and in all, as the process itself
  /// measured; 0: unknown.
  double range_own_ns = 0, range_pair_ns = 0;
  bool operators = false;  ///< its ranges are operators of a framework and annotations around them
                           ///< (PyTorch traces)
};

struct Thread {
  std::uint32_t process = 0;  ///< index into Session::processes
  std::uint32_t tid = 0;
  StringId name = 0;
};

/// How the session's clock relates to others.
struct Clock {
  std::string kind;            ///< "CLOCK_MONOTONIC", "nsys session time"
  std::int64_t anchor_ns = 0;  ///< session time of the anchor
  std::int64_t anchor_unix_ns =
      0;            ///< the same moment as UTC nanoseconds since 1970; 0 where unknown
  std::string gpu;  ///< how GPU time was brought onto it: "cupti timestamp callback", "offset -12
                    ///< ns, drift 3 ppm"
};

/// The recording is a window of a process that ran already when it began.
struct Attached {
  std::uint32_t pid = 0;
  std::int64_t ran_ns = 0;  ///< for so long
};

/// A stretch of the program's life that was recorded, where only some were. Their times lie one
/// behind the other on the session's clock: nothing of what was between them is in it.
struct Window {
  std::uint32_t number = 0;   ///< from 1
  std::int64_t after_ns = 0;  ///< since the program's start
  std::int64_t length_ns = 0;
};

enum class Maker : std::uint8_t { kRangescope, kNsys, kNcu, kOther };

/// Where the data came from; one per input file or capture.
struct Source {
  std::string path;
  std::string format;  ///< reader's name: "native", "nsys-sqlite", "ncu-rep", ...
  std::string tool;    ///< "rangescope 0.1.0", "Nsight Systems 2025.3.1.90"
  std::string schema;  ///< format version, as the file says
  Maker maker = Maker::kOther;
  bool paged = false;  ///< its results are numbered as in the column ID of ncu's pages
};

/// A stretch in which the GPU work of a process was not recorded, because counters were collected
/// instead.
struct GpuPause {
  std::uint32_t process = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = kOpen;
};

/// How long a process stood still at begins of a range until its counters were programmed; the
/// range begins after it.
struct CounterWait {
  std::uint32_t process = 0;
  std::uint32_t domain = 0;
  std::vector<StringId>
      path;  ///< names from the outermost range to the one that waited; empty for start/end ranges
  std::int64_t ns = 0;
};

/// From the first start to the last end of the GPU work that a range launched, where the work
/// itself is not listed.
struct Projection {
  std::uint32_t range = 0;  ///< index into Session::ranges
  std::int64_t span_ns = 0;
};

/// Kinds of GPU work that an input cannot tell of: what hangs on them is absent from a report, and
/// not zero.
struct Unrecorded {
  bool kernels = false;
  bool copies = false;  ///< and sets
  bool calls = false;   ///< that launched nothing listed: waits, graphs recorded as a whole
};

/// A number of a structured payload that a range was given (NVTX's payload extension; NCCL gives
/// communicator, bytes).
struct PayloadField {
  std::uint32_t range = 0;  ///< index into Session::ranges
  StringId name = 0;        ///< "Message size [bytes]"
  PayloadType type = PayloadType::kUint64;
  std::uint64_t bits = 0;  ///< as Attributes::payload_u64
};

/// Occurrences of one range path in one thread that are counted and not listed in Session::ranges,
/// as those of a large capture (read/native/thin.hpp): closed push/pop ranges of their own domain's
/// stack, in which nothing that is listed happened. Session::ranges holds others of the same path,
/// and every range around them.
struct Unlisted {
  std::uint32_t range =
      0;  ///< index into Session::ranges: a listed occurrence of this path and thread
  std::uint32_t first_listed = 0;       ///< how many of the first occurrences are all listed
  Distribution wall;                    ///< lengths
  Distribution unrecorded;              ///< the same without what recording ranges added
  std::int64_t inside_ns = 0;           ///< unlisted ranges directly inside of them
  std::int64_t inside_recorded_ns = 0;  ///< what recording those added
  std::int64_t usual_ns = 0,
               usual_unrecorded_ns =
                   0;  ///< medians of all occurrences behind the first third, sketched
};

/// The unlisted ranges directly inside of a listed one.
struct UnlistedInside {
  std::uint32_t range = 0;  ///< index into Session::ranges
  std::uint64_t count = 0;
  std::int64_t ns = 0, recorded_ns = 0;
};

/// Time from the begin of a push/pop range of a thread that holds unlisted ones to the end of the
/// same or a later one, less the stretches between them, which are short.
struct OpenSpan {
  std::uint32_t thread = 0;
  std::int64_t start_ns = 0, end_ns = 0;
  std::int64_t between_ns = 0;  ///< of it, no range was open
};

struct Session {
  Strings strings;
  std::vector<Source> sources;
  Clock clock;
  std::int64_t begin_ns = 0, end_ns = 0;  ///< span of the recording
  std::optional<Attached> attached;
  std::vector<Window> windows;  ///< none: all of it was recorded
  /// Recordings of different programs that were made long after one another: they begin at once
  /// here, and what one of them does says nothing about the other.
  bool far_apart = false;

  std::vector<Process> processes;
  /// Of a program with ranges: processes that CPU sampling saw and that recorded nothing, such as
  /// the shell of a script and the other commands that it runs.
  std::vector<Process> other_processes;
  std::vector<Thread> threads;
  std::vector<Domain> domains{Domain{}};
  std::vector<Category> categories;
  std::vector<NamedResource> resources;
  std::vector<Attributes> attributes;
  std::vector<Range> ranges;
  std::vector<Unlisted> unlisted;
  std::vector<UnlistedInside> unlisted_inside;
  std::vector<OpenSpan>
      open_spans;  ///< of threads with unlisted ranges: all of their closed push/pop ranges
  std::vector<PayloadField> payload_fields;  ///< in the order of their ranges
  std::map<StringId, StringId>
      plain_names;  ///< of names that analyze::name_by_payload made: what expressions mean
  std::vector<Mark> marks;

  std::vector<Device> devices;
  std::vector<Stream> streams;
  std::vector<Launch> launches;
  std::vector<KernelName> kernel_names;
  std::vector<KernelShape> kernel_shapes;
  std::vector<Kernel> kernels;
  std::vector<Copy> copies;
  std::vector<Memset> memsets;
  std::vector<Synchronization> synchronizations;
  std::vector<EventCall> event_calls;      ///< of each thread in the order of its calls
  std::vector<MemoryEvent> memory_events;  ///< by time within a process
  std::vector<GraphLaunch> graph_launches;
  std::vector<GraphNode> graph_nodes;
  std::vector<std::vector<OpenRange>> captured_paths;
  std::vector<GpuPause> gpu_pauses;
  std::vector<CounterWait> counter_waits;
  BackwardShares backward;  ///< of launches, whose modules are ranges
  Unrecorded unrecorded;
  std::vector<Projection> projections;

  std::vector<MetricDef> metrics;
  std::vector<Measurement> measurements;
  std::vector<SampleStream> samples;
  PcSampling pc;
  CpuProfile cpu;
  Allocators allocators;

  Summary summary;  ///< totals by name, from inputs without a timeline

  std::vector<Loss> losses;

  /// Only a part of the program's life was recorded: work that began before it, or ended after it,
  /// is not whole.
  [[nodiscard]] bool is_window() const { return attached || !windows.empty(); }
};

/// What recording an empty range took, in whole nanoseconds: inside it, and outside in the range
/// around.
struct RecordingCost {
  std::uint32_t own = 0, around = 0;
};
[[nodiscard]] inline RecordingCost recording_cost(const Process& process) {
  const auto pair = static_cast<std::uint32_t>(std::lround(process.range_pair_ns));
  const auto inside = std::min(pair, static_cast<std::uint32_t>(std::lround(process.range_own_ns)));
  return {inside, pair - inside};
}

/// each(items), of all kinds of work on GPUs.
template <class S, class Each>
void for_each_gpu_work(S& session, Each&& each) {
  each(session.kernels);
  each(session.copies);
  each(session.memsets);
  each(session.graph_launches);
}

/// Occurrences of ranges, listed or not.
[[nodiscard]] inline std::uint64_t count_ranges(const Session& session) {
  std::uint64_t count = session.ranges.size();
  for (const Unlisted& unlisted : session.unlisted)
    count += unlisted.wall.moments.n;
  return count;
}

/// Something that ran on a GPU.
[[nodiscard]] inline bool ran_on_gpu(const Session& s) {
  return !s.kernels.empty() || !s.copies.empty() || !s.memsets.empty() || !s.graph_launches.empty();
}
[[nodiscard]] inline bool has_gpu_work(const Session& s) {
  return ran_on_gpu(s) || !s.synchronizations.empty();
}

/// Something that a report can be made of: ranges, calls, GPU work, results or totals.
[[nodiscard]] inline bool holds_anything(const Session& s) {
  if (!s.allocators.empty())
    return true;
  return !s.ranges.empty() || !s.launches.empty() || has_gpu_work(s) || !s.measurements.empty() ||
         !s.summary.empty();
}

}  // namespace rangescope::model
