// Counters without replay: decides which occurrence of which range measures which pass. A pure
// state machine: no clock, no CUPTI, no lock of its own; the caller serialises calls and does what
// it is told.
//
// A metric set that needs N passes is collected on N occurrences of a range. Programming the
// hardware for a pass takes some 20 ms on an H200 machine (measured: cuptiRangeProfilerStart 17 ms,
// Stop 4 ms; PushRange and PopRange 0.9 ms together), so it is done by a worker thread between
// occurrences: *arming*. While the profiler is armed, a range costs only push and pop; an
// occurrence that comes while it is being armed is not measured and not delayed.
//
//   idle -> (worker) arming -> armed -> measuring -> armed ... -> full -> (worker) stopping -> idle
//
// One armed session collects one pass of one target on up to `ranges` occurrences. The first round
// of a target takes one occurrence a pass, so that a complete set exists as soon as possible;
// further rounds run side by side, `ranges` of them, so that the hardware is programmed N times for
// all of them together.
//
// Occurrences must be alike: each is described by a Signature of the work it launched. The first
// pass of a round sets the reference. A session with an occurrence whose kernels differ is
// discarded and its pass taken again; equal kernels in other launch configurations (a sequence that
// grows) are accepted and counted as varied. After kPatience discarded sessions in a row the round
// begins anew with what the range does now.
//
// A range may stop coming while it lacks passes. The caller, who has a clock, then says give_up():
// the target is left as it is (never half a set), and the profiler is free for others and for
// detaching.
//
// With `wait` (the program is run again for ranges that come too seldom) occurrences are not
// skipped while the hardware is being programmed: the caller blocks the range until it is armed for
// it, see should_wait().
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
  std::int32_t skip_first =
      -1;  ///< occurrences left alone at the start; -1: until the duration has settled
  std::uint32_t settle_most = 8;  ///< with -1: at most so many, and a third of what a minute holds
  std::uint32_t most_ranges = kMaxRanges;  ///< of one session
  bool wait_for_trace = false;             ///< leave occurrences alone until trace_done()
};

/// What happened to the occurrences of a target; written into the capture, so that a report can say
/// it.
struct Tally {
  std::uint32_t occurrences = 0;
  std::uint32_t skipped_first = 0;  ///< warm-up
  std::uint32_t skipped_arming =
      0;                          ///< the hardware was being programmed, or measured something else
  std::uint32_t passed_over = 0;  ///< not due
  std::uint32_t measured = 0;
  std::uint32_t discarded = 0;  ///< measured, but unlike the others of their round
  std::uint32_t varied = 0;     ///< same kernels, other launch configurations
  std::uint32_t rounds = 0;     ///< complete
  std::uint32_t passes = 0;     ///< of the round under way
  bool gave_up = false;         ///< it did not come any more
};

/// What the worker is to do next.
struct Work {
  enum class Kind : std::uint8_t { kNothing, kStop, kArm, kDetach } kind = Kind::kNothing;
  std::uint32_t target = kNoTarget;
  std::uint32_t pass = 0;    ///< kArm, kStop: of the round
  std::uint32_t ranges = 1;  ///< kArm: most ranges of the session, and of its image
  bool fresh = false;        ///< kArm: begin with an empty image
  bool discard = false;      ///< kStop: put the image back as it was before this session
  bool complete = false;     ///< kStop: all passes are there after this one: evaluate the image
};

class Multiplexer {
 public:
  explicit Multiplexer(const Limits& limits) : limits_(limits) {}

  /// A range of `target` (a small number, the caller's own) begins. True: measure it (push a
  /// profiler range now). Without `due` it is counted and watched while it settles, and never
  /// measured.
  [[nodiscard]] bool begin(std::uint32_t target, bool due = true);
  /// It ended; `measured` is what begin() said. Ask next_work() afterwards.
  void end(std::uint32_t target, bool measured, std::int64_t duration_ns,
           const Signature& signature);
  /// It will never end (thread or process is going away, or the profiler refused): forget that it
  /// was being measured.
  void abandon();

  /// What the worker should do now; calling it takes the work, so do it and report back. Never
  /// blocks.
  [[nodiscard]] Work next_work();
  /// The target that the profiler is armed for and whose next occurrence is awaited, or kNoTarget.
  [[nodiscard]] std::uint32_t awaited() const {
    return state_ == State::kArmed ? current_ : kNoTarget;
  }
  /// The awaited target has not come for too long: no more of it is measured.
  void give_up();
  /// This target cannot be measured here (kernels of a CUDA graph): forget it, whether or not it
  /// was seen.
  void drop(std::uint32_t target);

  /// For callers that block: the target wants another pass, nothing is being measured, and the
  /// profiler is not armed for it yet. Also makes it the next one to be armed. Call before begin(),
  /// until false.
  [[nodiscard]] bool should_wait(std::uint32_t target);

  /// The target lacks its first complete round, and the hardware is being programmed, for it or for
  /// whom it does not yet know: a short wait would let this occurrence be measured.
  [[nodiscard]] bool worth_waiting(std::uint32_t target) const;

  /// Would next_work() have something to do?
  [[nodiscard]] bool next_work_is_due() const {
    return state_ == State::kFull || state_ == State::kIdle;
  }
  [[nodiscard]] bool stop_is_due() const { return state_ == State::kFull; }
  /// The worker armed the profiler for what next_work() said.
  void armed();
  /// The worker stopped the session; `next_pass` as the profiler answered.
  void stopped();
  /// The profiler does not work here (any more): nothing will be measured.
  void failed();
  /// The session that was to begin cannot, and there are `passes` without those like it: every
  /// round begins anew.
  void begin_anew(std::uint32_t passes);
  /// Of the target that is armed or measured.
  [[nodiscard]] std::uint32_t pass() const {
    return current_ == kNoTarget ? 0 : targets_[current_].pass;
  }
  /// Nothing is armed, being armed or measured.
  [[nodiscard]] bool resting() const {
    return state_ == State::kIdle || state_ == State::kDetached;
  }
  /// The timeline has seen enough; counters may begin.
  void trace_done() { limits_.wait_for_trace = false; }

  /// More of this target is to be measured.
  [[nodiscard]] bool wants(std::uint32_t target) const { return wants_more(targets_[target]); }

  /// What a later run of the same program needs in order to go on with the round under way.
  struct Progress {
    std::uint32_t pass = 0, ranges = 1, rounds = 0;
    Signature reference[kMaxRanges];
  };
  [[nodiscard]] Progress progress(std::uint32_t target) const;
  /// Goes on with a round that an earlier run began; before the target's first begin().
  void go_on(std::uint32_t target, const Progress& progress);

  [[nodiscard]] const Tally& tally(std::uint32_t target) const { return targets_[target].tally; }
  /// Every target that was seen has all its rounds: the collector detaches, and comes back if a new
  /// one turns up.
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
    bool seen = false;
    bool settled = false;
    bool dropped = false;
    bool stays_away = false;     // was awaited in vain and has not come since
    bool fresh = true;           // its image is empty
    std::uint32_t pass = 0;      // next pass to collect
    std::uint32_t ranges = 1;    // of the round block under way
    std::uint32_t discards = 0;  // sessions in a row
    std::int64_t last_ns = 0;
    std::uint64_t last_seen = 0;  // event count, for choosing who is next
    Signature reference[kMaxRanges];
    Tally tally;
  };

  [[nodiscard]] bool wants_more(const Target& target) const {
    return !target.dropped && !target.tally.gave_up && target.tally.rounds < limits_.rounds;
  }
  [[nodiscard]] bool ready(const Target& target) const {
    return target.seen && target.settled && wants_more(target);
  }
  [[nodiscard]] static bool lacks_all(const Target& target) {
    return target.tally.rounds == 0 && !target.stays_away;
  }
  [[nodiscard]] std::uint32_t choose() const;
  void settle(Target& target, std::int64_t duration_ns);
  void judge(Target& target, const Signature& signature);

  Limits limits_;
  State state_ = State::kIdle;
  std::uint32_t current_ = kNoTarget;  // armed or measuring for it
  std::uint32_t wanted_ = kNoTarget;   // a caller blocks for it
  std::uint32_t last_ = kNoTarget;     // had the profiler before
  bool gone_by_ = false;               // and did not come while others did
  std::uint32_t in_session_ = 0;       // occurrences measured since it was armed
  std::uint32_t strangers_ = 0;        // ready occurrences of other targets since it was armed
  bool unlike_ = false;                // one of them differs from the reference
  bool failed_ = false;
  bool discarding_ = false;  // the stop under way puts the image back
  std::uint64_t clock_ = 0;
  Target targets_[kMaxTargets];
};

}  // namespace rangescope::inject::counters
