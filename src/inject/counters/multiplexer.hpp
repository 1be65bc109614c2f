// Counters without replay: decides which occurrence of which range measures which pass. A pure
// state machine without clock, CUPTI or lock: the caller serializes the calls and does the work
// that next_work() returns.
//
// A metric set that needs N passes is collected on N occurrences of a range. Programming the
// hardware for a pass takes some 20 ms on an H200 machine (measured: cuptiRangeProfilerStart 17 ms,
// Stop 4 ms; PushRange and PopRange 0.9 ms together), so a worker thread does it between
// occurrences: *arming*. While the profiler is armed, a range costs only push and pop. An
// occurrence that comes during arming runs unmeasured, without delay.
//
//   idle -> (worker) arming -> armed -> measuring -> armed ... -> full -> (worker) stopping -> idle
//
// One armed session collects one pass of one target on up to `ranges` occurrences. The first round
// of a target takes one occurrence a pass, so that a complete set exists as soon as possible.
// Further rounds run in parallel, `ranges` of them, so that the hardware is programmed N times for
// all of them together.
//
// Occurrences must be alike: a Signature describes the work that each launched. The first pass of a
// round sets the reference. A session with an occurrence whose kernels differ is discarded and its
// pass repeated. Equal kernels in other launch configurations (a sequence that grows) are accepted
// and counted as varied. After kPatience discarded sessions in a row the round starts again with
// what the range does now.
//
// A range may stop coming while it lacks passes. The caller, who has a clock, then calls give_up():
// the target keeps its complete rounds (never half a set), and the profiler is free for other
// targets and for detaching.
//
// With `wait` (the program is run again for infrequent ranges) no occurrence is skipped while the
// hardware is being programmed: the caller blocks the range until it is armed, see should_wait().
#pragma once

#include <cstdint>

namespace rangescope::inject::counters {

inline constexpr std::uint32_t kNoTarget = 0xffffffffu;
inline constexpr std::uint32_t kMaxTargets = 256;
inline constexpr std::uint32_t kMaxRanges = 16;
inline constexpr std::uint32_t kPatience = 3;

/// What an occurrence launched.
struct Signature {
  std::uint64_t kernels = 0;         ///< hash of the sequence of kernel names
  std::uint64_t configurations = 0;  ///< hash of the sequence of kernel names, grids and blocks
  std::uint32_t launches = 0;
  std::uint32_t graphs = 0;
};

struct Limits {
  std::uint32_t passes = 1;  ///< of the metric set
  std::uint32_t rounds = 5;  ///< complete sets wanted for each target
  /// Occurrences left alone at the start; -1: until the duration is steady.
  std::int32_t skip_first = -1;
  /// With -1: the limit of those, together with a third of what a minute holds.
  std::uint32_t settle_most = 8;
  std::uint32_t most_ranges = kMaxRanges;  ///< of one session
  bool wait_for_trace = false;             ///< leave occurrences alone until trace_done()
};

/// What happened to the occurrences of a target. Written into the capture for the report.
struct Tally {
  std::uint32_t occurrences = 0;
  std::uint32_t skipped_first = 0;  ///< warm-up
  /// The hardware was being programmed, or measured another target.
  std::uint32_t skipped_arming = 0;
  std::uint32_t passed_over = 0;  ///< not due
  std::uint32_t measured = 0;
  std::uint32_t discarded = 0;  ///< measured, but unlike the others of their round
  std::uint32_t varied = 0;     ///< same kernels, other launch configurations
  std::uint32_t rounds = 0;     ///< complete ones
  std::uint32_t passes = 0;     ///< of the current round
  bool gave_up = false;         ///< it stopped coming
};

/// The worker's next task.
struct Work {
  enum class Kind : std::uint8_t { kNothing, kStop, kArm, kDetach } kind = Kind::kNothing;
  std::uint32_t target = kNoTarget;
  std::uint32_t pass = 0;    ///< kArm, kStop: of the round
  std::uint32_t ranges = 1;  ///< kArm: limit of the session's ranges, and size of its image
  bool fresh = false;        ///< kArm: start with an empty image
  bool discard = false;      ///< kStop: restore the image from before this session
  bool complete = false;     ///< kStop: this was the last pass: evaluate the image
};

class Multiplexer {
 public:
  explicit Multiplexer(const Limits& limits) : limits_(limits) {}

  /// Call it when a range of `target` (a number chosen by the caller) begins. True: measure it
  /// (push a profiler range now). Without `due` it is counted, and watched until it settles, but
  /// never measured.
  [[nodiscard]] bool begin(std::uint32_t target, bool due = true);
  /// Call it when the range ends, with what begin() returned. Ask next_work() afterwards.
  void end(std::uint32_t target,
           bool measured,
           std::int64_t duration_ns,
           const Signature& signature);
  /// Call it if the range that is being measured will never end: its thread or process ends, or the
  /// profiler refused.
  void abandon();

  /// The worker's next task. Each is returned once: do it and report back. Never blocks.
  [[nodiscard]] Work next_work();
  /// The target whose next occurrence the armed profiler awaits, or kNoTarget.
  [[nodiscard]] std::uint32_t awaited() const {
    if (state_ != State::kArmed)
      return kNoTarget;
    return current_;
  }
  /// The awaited target has not come for too long: it is not measured any more.
  void give_up();
  /// This target cannot be measured here (kernels of a CUDA graph), whether or not it was seen.
  void drop(std::uint32_t target);

  /// For callers that block: the target wants another pass, nothing is being measured, and the
  /// profiler is not armed for it yet. Also makes it the next one to be armed. Call it before
  /// begin(), until it returns false.
  [[nodiscard]] bool should_wait(std::uint32_t target);

  /// After a short wait this occurrence could be measured: the target lacks its first complete
  /// round, and the hardware is being programmed for it, or the next target is not chosen yet.
  [[nodiscard]] bool worth_waiting(std::uint32_t target) const;

  /// Whether next_work() may have something to do.
  [[nodiscard]] bool next_work_is_due() const {
    return state_ == State::kFull || state_ == State::kIdle;
  }
  [[nodiscard]] bool stop_is_due() const { return state_ == State::kFull; }
  /// Call it when the profiler is armed as next_work() asked.
  void armed();
  /// Call it when the session is stopped as next_work() asked.
  void stopped();
  /// The profiler does not work here, or not any more: nothing will be measured.
  void failed();
  /// A session cannot begin; without its configuration `passes` are left. Every round starts again.
  void restart(std::uint32_t passes);
  /// The pass of the target that is armed or measured.
  [[nodiscard]] std::uint32_t pass() const {
    if (current_ == kNoTarget)
      return 0;
    return targets_[current_].pass;
  }
  /// Nothing is armed, being armed or measured.
  [[nodiscard]] bool resting() const {
    return state_ == State::kIdle || state_ == State::kDetached;
  }
  /// The timeline has seen enough; counters may begin.
  void trace_done() { limits_.wait_for_trace = false; }

  /// More of this target is to be measured.
  [[nodiscard]] bool wants(std::uint32_t target) const { return wants_more(targets_[target]); }

  /// What a later run of the same program needs to continue the current round.
  struct Progress {
    std::uint32_t pass = 0;
    std::uint32_t ranges = 1;
    std::uint32_t rounds = 0;
    Signature reference[kMaxRanges];
  };
  [[nodiscard]] Progress progress(std::uint32_t target) const;
  /// Continues a round that an earlier run began. Call it before the target's first begin().
  void go_on(std::uint32_t target, const Progress& progress);

  [[nodiscard]] const Tally& tally(std::uint32_t target) const { return targets_[target].tally; }
  /// Every target that was seen has all its rounds: the collector detaches until a new one comes.
  [[nodiscard]] bool done() const;

 private:
  enum class State : std::uint8_t {
    kIdle,
    kArming,
    kArmed,
    kMeasuring,
    kFull,
    kStopping,
    kDetached
  };

  struct Target {
    bool is_known = false;
    bool settled = false;
    bool dropped = false;
    bool stays_away = false;      // did not come while it was awaited, nor since
    bool fresh = true;            // its image is empty
    std::uint32_t pass = 0;       // next pass to collect
    std::uint32_t ranges = 1;     // of the current rounds
    std::uint32_t discards = 0;   // sessions in a row
    std::int64_t last_ns = 0;     // duration of the last occurrence
    std::uint64_t last_seen = 0;  // value of clock_
    Signature reference[kMaxRanges];
    Tally tally;
  };

  [[nodiscard]] bool wants_more(const Target& target) const {
    return !target.dropped && !target.tally.gave_up && target.tally.rounds < limits_.rounds;
  }
  [[nodiscard]] bool ready(const Target& target) const {
    return target.is_known && target.settled && wants_more(target);
  }
  [[nodiscard]] static bool lacks_all(const Target& target) {
    return target.tally.rounds == 0 && !target.stays_away;
  }
  /// The next target to be armed, or kNoTarget.
  [[nodiscard]] std::uint32_t choose() const;
  /// `a` is armed before `b`: more frequent, or, if equally frequent, seen later.
  [[nodiscard]] static bool comes_before(const Target& a, const Target& b);
  [[nodiscard]] std::uint32_t ranges_of_next_round(const Target& target) const;
  void count_stranger();
  void settle(Target& target, std::int64_t duration_ns);
  void judge(Target& target, const Signature& signature);

  Limits limits_;
  State state_ = State::kIdle;
  std::uint32_t current_ = kNoTarget;  // armed or measuring for it
  std::uint32_t wanted_ = kNoTarget;   // a caller blocks for it
  std::uint32_t last_ = kNoTarget;     // had the profiler before
  bool gone_by_ = false;               // last_ did not come while others did
  std::uint32_t in_session_ = 0;       // occurrences measured since it was armed
  std::uint32_t strangers_ = 0;        // ready occurrences of other targets since it was armed
  bool unlike_ = false;                // a measured occurrence differs from the reference
  bool failed_ = false;
  bool discarding_ = false;  // the current stop restores the image
  std::uint64_t clock_ = 0;  // occurrences of all targets
  Target targets_[kMaxTargets];
};

}  // namespace rangescope::inject::counters
