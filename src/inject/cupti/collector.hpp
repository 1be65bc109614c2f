// The state of counters, shared by the program's threads (occurrences.cpp), the worker that
// programs the hardware (worker.cpp) and the writer (rounds.cpp). One object, made by counters.cpp
// and never freed, because hooks may run at any time.
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

// A range path that is to be measured. Its names are in the stream before its first round.
struct Target {
  std::uint64_t path = 0;           // hash of domain and names
  bool has_graphs = false;          // its kernels cannot be measured one by one
  std::uint32_t begun = 0;          // occurrences, in all contexts
  std::uint32_t launches = 0;       // of the last recorded occurrence
  std::int64_t last_ns = 0;         // begin of the last occurrence
  std::int64_t longest_gap_ns = 0;  // between the begins of two occurrences
};

// Occurrences of a target that did not reach the multiplexer, and waits; written with its tally.
struct Before {
  std::uint32_t early = 0;  // the profiler was not ready, or a graph was being captured
  std::uint32_t waits = 0;  // for the hardware
  std::int64_t waited_ns = 0;
};

// One context in which ranges are measured.
struct Context {
  enum class State : std::uint8_t { kNew, kReady, kLeaving, kFailed, kGone } state = State::kNew;
  CUcontext context = nullptr;
  CUdevice device = 0;
  RangeProfiler profiler;
  PcSampler pc;  // used instead of `profiler`
  Recorder recorder;
  bool kernels = false;  // this phase measures kernels one by one
  counters::Multiplexer* mux = nullptr;
  Image images[counters::kMaxTargets][counters::kMaxConfigurations];
  std::uint32_t in_session = 0;
  std::int64_t armed_at = 0;
  CacheFlush flush;  // ready if the plan asks for it
  Before before[counters::kMaxTargets];
  std::uint32_t first[counters::kMaxTargets] = {};  // occurrence that began the current round
  Image finished[counters::kMaxConfigurations];     // of kernels: complete, and not yet evaluated
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

  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // guards everything below
  pthread_cond_t wake;                               // there is work for the worker
  pthread_cond_t idle;                               // the worker has released or armed a context
  pthread_t worker{};
  bool has_worker = false;
  bool stop = false;
  bool evaluated = false;   // only the worker uses it
  Context* busy = nullptr;  // the context that the worker uses without the lock
  Context contexts[kMostContexts];
  std::atomic<std::size_t> context_count{0};  // callbacks read it without the lock
  GraphCaptures captures;                     // needs no lock
  std::atomic<bool> declined{false};          // sampling has ended because of NCCL
  Target targets[counters::kMaxTargets];
  std::uint32_t target_count = 0;
  bool paused = false;           // the timeline
  std::int64_t rests_since = 0;  // since when there was no work; 0: there is work
  SavedProgress* saved = nullptr;
  std::uint64_t beyond = 0;  // occurrences without room for their target or context
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
/// Evaluates all ranges of a round's complete images, one image a configuration. On the worker,
/// without the lock: it takes 0.3 to 3 ms a range.
void evaluate(
    Collector& c, Context& context, const Image* images, std::uint32_t target, bool kernels);
/// Writes the tallies of all targets.
void write_tallies(Collector& c);
/// Writes the time that CUPTI's calls took, for readers of the capture file.
void write_cost(const Collector& c);

/// Turns the callbacks of launches on or off, unless the timeline needs them itself.
void watch_launches(Collector& c, bool on);

// -- worker.cpp

[[nodiscard]] bool start_worker(Collector& c);
/// Enables sampling of the program counter in this context.
[[nodiscard]] bool enable_samples(Collector& c, Context& context);
/// Ends measuring in this context, after its profiler has failed. With the lock.
void fail(Context& context);
/// The profiler refused to begin a session of this pass of a round: continues with the other
/// configurations. With the lock.
void fail_to_begin(Context& context, std::size_t pass);

// -- progress.cpp: rounds that several runs of a program complete together

/// Opens the file of Plan::resume, which only one process at a time may use, and reads what earlier
/// runs saved.
[[nodiscard]] bool load_progress(Collector& c, char* why, std::size_t why_bytes);
/// Restores the progress that an earlier run saved of a target, once. With the lock.
void adopt(Collector& c, Context& context, std::uint32_t target);
/// Saves unfinished rounds for the next run.
void save_progress(Collector& c);

// -- occurrences.cpp

/// The state of a context, made if it is new; null if there is no room for another. With the lock.
[[nodiscard]] Context* context_of(Collector& c, CUcontext context);
/// The observer of ranges. Call make_observer() once before it is set.
[[nodiscard]] bool make_observer();
[[nodiscard]] const RangeObserver& range_observer();

}  // namespace rangescope::inject::cupti
