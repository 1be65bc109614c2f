// The state that counters share between the program's threads (occurrences.cpp), the worker that
// programs the hardware (worker.cpp) and what is written of it (rounds.cpp). One object, made once
// by counters.cpp, never freed: hooks may come at any time.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "inject/counters/multiplexer.hpp"
#include "inject/counters/plan.hpp"
#include "inject/cupti/api.hpp"
#include "inject/cupti/cache_flush.hpp"
#include "inject/cupti/graph_captures.hpp"
#include "inject/cupti/pc_sampler.hpp"
#include "inject/cupti/range_path.hpp"
#include "inject/cupti/range_profiler.hpp"
#include "inject/cupti/recorder.hpp"
#include "inject/cupti/threads.hpp"
#include "inject/nvtx/writer.hpp"

namespace rangescope::inject::cupti {

// What the counters collector keeps of a range path and of a CUDA context.

// A range path that is to be measured. Its names are in the stream before its first round.
struct Target {
  std::uint64_t path = 0;           // hash of domain and names
  bool has_graphs = false;          // kernels cannot be told apart in it
  std::uint32_t begun = 0;          // occurrences, in all contexts
  std::uint32_t launches = 0;       // of the last recorded occurrence
  std::int64_t last_ns = 0;         // begin of the last occurrence
  std::int64_t longest_gap_ns = 0;  // between two of them
};

// What befell occurrences of a target before the multiplexer heard of them; written with its tally.
struct Before {
  std::uint32_t early = 0;  // the profiler was not ready, or a graph was being captured
  std::uint32_t waits = 0;  // for the hardware
  std::int64_t waited_ns = 0;
};

// One context that ranges are measured in.
struct Context {
  enum class State : std::uint8_t { kNew, kReady, kLeaving, kFailed, kGone } state = State::kNew;
  CUcontext context = nullptr;
  CUdevice device = 0;
  RangeProfiler profiler;
  PcSampler pc;  // in place of it
  Recorder recorder;
  bool kernels = false;  // this phase measures kernels one by one
  counters::Multiplexer* mux = nullptr;
  Image images[counters::kMaxTargets][counters::kMaxConfigurations];
  std::uint32_t in_session = 0;
  std::int64_t armed_at = 0;
  CacheFlush flush;  // ready where it is asked for
  Before before[counters::kMaxTargets];
  std::uint32_t first[counters::kMaxTargets] =
      {};  // occurrence that the round under way began with
  Image
      finished[counters::kMaxConfigurations];  // kernels: complete images that wait for the worker
  std::uint32_t finished_target = counters::kNoTarget;
};

inline constexpr std::size_t kMostContexts = 16;

struct SavedProgress;  // progress.cpp

struct Collector {
  const Api* api = nullptr;
  Subscription subscription;
  Driver driver;
  RangeApi range;
  PcApi pc;
  PcDefined pc_defined;
  counters::Plan plan;
  std::uint32_t generation = 0;  // of the process that it belongs to

  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // everything below
  pthread_cond_t wake;                               // work for the worker
  pthread_cond_t idle;  // the worker let go of a context, or has armed one
  pthread_t worker{};
  bool has_worker = false;
  bool stop = false;
  bool evaluated = false;   // the worker's own
  Context* busy = nullptr;  // what the worker works on without the lock
  Context contexts[kMostContexts];
  std::atomic<std::size_t> context_count{0};  // callbacks read it without the lock
  GraphCaptures captures;                     // needs no lock
  std::atomic<bool> declined{false};          // no more is sampled: NCCL
  Target targets[counters::kMaxTargets];
  std::uint32_t target_count = 0;
  bool paused = false;           // the timeline is
  std::int64_t rests_since = 0;  // nothing was to be done since then; 0: something is
  SavedProgress* saved = nullptr;
  std::uint64_t beyond =
      0;  // occurrences of targets or contexts beyond those that there is room for
};

class Locked {
 public:
  explicit Locked(Collector& c) : c_(c) { pthread_mutex_lock(&c_.lock); }
  ~Locked() { pthread_mutex_unlock(&c_.lock); }
  Locked& operator=(Locked&&) = delete;

 private:
  Collector& c_;
};

/// The collector while counters run, else null; null in the child of a fork.
[[nodiscard]] Collector* running_collector();
void tell_loss(const char* detail);

// -- rounds.cpp: into the stream

void write_metrics(const Collector& c);
void write_target(std::uint32_t index, const RangePath& path, bool start_end);
/// All ranges of a round's complete images, one a configuration. On the worker, without the lock:
/// evaluation takes 0.3 to 3 ms a range.
void evaluate(Collector& c, Context& context, const Image* images, std::uint32_t target,
              bool kernels);
/// What became of the occurrences of every target.
void write_tallies(Collector& c);
/// What CUPTI's calls took, for who looks into a capture.
void write_cost(const Collector& c);

/// Turns the callbacks of launches on or off, where the timeline does not need them itself.
void watch_launches(Collector& c, bool on);

// -- worker.cpp

[[nodiscard]] bool start_worker(Collector& c);
/// Makes the program counter of this context ready to be sampled.
[[nodiscard]] bool enable_samples(Collector& c, Context& context);
/// The profiler of this context refused: nothing more is measured there. With the lock.
void fail(Context& context);
/// It refused to begin a session of this pass of a round: other configurations go on. With the
/// lock.
void fail_to_begin(Context& context, std::size_t pass);

// -- progress.cpp: rounds that several runs of a program complete together

/// Opens the file of Plan::resume, which only one process at a time may have, and reads what
/// earlier runs left.
[[nodiscard]] bool load_progress(Collector& c, char* why, std::size_t why_bytes);
/// Gives a target what an earlier run left of it, once. With the lock.
void adopt(Collector& c, Context& context, std::uint32_t target);
/// Writes what is unfinished for the next run.
void save_progress(Collector& c);

// -- occurrences.cpp

/// What is kept of a context, new where it was not met; null beyond those that there is room for.
/// With the lock.
[[nodiscard]] Context* context_of(Collector& c, CUcontext context);
/// What hears of ranges; make_observer() once before it is set.
[[nodiscard]] bool make_observer();
[[nodiscard]] const RangeObserver& range_observer();

}  // namespace rangescope::inject::cupti
