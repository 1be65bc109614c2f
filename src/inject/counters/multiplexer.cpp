#include "inject/counters/multiplexer.hpp"

namespace rangescope::inject::counters {
namespace {

// Occurrences of other targets that want the profiler before one that does not come loses it, for
// each of them: ranges that take turns in a loop must not take the profiler from each other at
// every step (seen on an H200).
constexpr std::uint32_t kStrangersMost = 4;

// The least that a run is expected to last.
constexpr std::int64_t kExpectedRun_ns = 60'000'000'000;

bool near(std::int64_t a, std::int64_t b) {  // within 25 % of each other
  const std::int64_t less = a < b ? a : b;
  const std::int64_t more = a < b ? b : a;
  return more - less <= less / 4;
}

}  // namespace

bool Multiplexer::begin(std::uint32_t index, bool due) {
  if (index >= kMaxTargets) return false;
  Target& target = targets_[index];
  target.seen = true;
  target.stays_away = false;
  target.last_seen = ++clock_;
  ++target.tally.occurrences;
  if (limits_.skip_first == 0) target.settled = true;
  if (!due) {
    ++target.tally.passed_over;
    return false;
  }
  if (!target.settled || limits_.wait_for_trace || !wants_more(target)) return false;
  if (state_ == State::kDetached && !failed_)
    state_ = State::kIdle;  // a range that was not there before
  if (state_ != State::kArmed || current_ != index) {
    ++target.tally.skipped_arming;
    std::uint32_t others = 0;
    for (std::uint32_t i = 0; i < kMaxTargets; ++i)
      others += i != current_ && ready(targets_[i]) ? 1 : 0;
    if (state_ == State::kArmed && ++strangers_ >= kStrangersMost * others) state_ = State::kFull;
    return false;
  }
  state_ = State::kMeasuring;
  strangers_ = 0;
  return true;
}

void Multiplexer::end(std::uint32_t index, bool measured, std::int64_t duration_ns,
                      const Signature& signature) {
  if (index >= kMaxTargets) return;
  Target& target = targets_[index];
  if (!measured) {
    if (!target.settled) settle(target, duration_ns);
    return;
  }
  if (state_ != State::kMeasuring || current_ != index) return;  // abandoned meanwhile
  judge(target, signature);
  ++target.tally.measured;
  ++in_session_;
  state_ = unlike_ || in_session_ >= target.ranges ? State::kFull : State::kArmed;
}

void Multiplexer::settle(Target& target, std::int64_t duration_ns) {
  ++target.tally.skipped_first;
  const auto skipped = target.tally.skipped_first;
  if (limits_.skip_first >= 0) {
    target.settled = skipped >= static_cast<std::uint32_t>(limits_.skip_first);
  } else {
    // The first occurrence is never compared with: it loads modules and fills caches. A range of
    // long occurrences occurs rarely: no more than a third of those that may come are left alone.
    const std::int64_t third = kExpectedRun_ns / (3 * (duration_ns > 0 ? duration_ns : 1));
    const auto most =
        third >= limits_.settle_most ? limits_.settle_most : static_cast<std::uint32_t>(third);
    target.settled = (skipped >= 3 && near(duration_ns, target.last_ns)) || skipped >= most;
  }
  target.last_ns = duration_ns;
}

void Multiplexer::judge(Target& target, const Signature& signature) {
  Signature& reference = target.reference[in_session_ < kMaxRanges ? in_session_ : kMaxRanges - 1];
  if (target.pass == 0) {
    reference = signature;
    return;
  }
  if (signature.kernels != reference.kernels || signature.launches != reference.launches)
    unlike_ = true;
  else if (signature.configurations != reference.configurations)
    ++target.tally.varied;
}

void Multiplexer::abandon() {
  if (state_ == State::kMeasuring) {
    unlike_ = true;
    ++in_session_;
    state_ = State::kFull;
  }
}

void Multiplexer::give_up() {
  if (state_ != State::kArmed) return;
  targets_[current_].tally.gave_up = true;
  state_ = State::kFull;
}

void Multiplexer::drop(std::uint32_t index) {
  if (index >= kMaxTargets) return;
  targets_[index].seen = targets_[index].dropped = true;
  if (state_ == State::kArmed && current_ == index) state_ = State::kFull;
}

bool Multiplexer::should_wait(std::uint32_t index) {
  if (index >= kMaxTargets || failed_) return false;
  Target& target = targets_[index];
  target.seen = target.settled = true;
  if (!wants_more(target) || limits_.wait_for_trace || state_ == State::kMeasuring) return false;
  if (state_ == State::kArmed && current_ == index) return false;
  wanted_ = index;
  if (state_ == State::kArmed) state_ = State::kFull;
  if (state_ == State::kDetached) state_ = State::kIdle;
  return true;
}

bool Multiplexer::worth_waiting(std::uint32_t index) const {
  if (index >= kMaxTargets || failed_ || limits_.wait_for_trace) return false;
  const Target& target = targets_[index];
  if (!ready(target) || target.tally.rounds > 0) return false;
  if (state_ == State::kArming) return current_ == index;
  return state_ == State::kIdle || state_ == State::kFull || state_ == State::kStopping;
}

std::uint32_t Multiplexer::choose() const {
  if (wanted_ != kNoTarget && ready(targets_[wanted_])) return wanted_;
  // Everybody's first round comes before anybody's second: a short program has something of each.
  bool first = false;
  for (const Target& target : targets_) first = first || (ready(target) && lacks_all(target));
  const auto eligible = [&](const Target& target) {
    return ready(target) && (!first || lacks_all(target));
  };
  // Whoever has begun a round and was not given up just now finishes it. Then whoever comes most
  // often is finished soonest and leaves the profiler to the rest; among equals the latest seen.
  if (last_ != kNoTarget && !gone_by_ && eligible(targets_[last_]) && targets_[last_].pass > 0 &&
      !targets_[last_].fresh)
    return last_;
  std::uint32_t best = kNoTarget;
  for (std::uint32_t i = 0; i < kMaxTargets; ++i) {
    if (!eligible(targets_[i])) continue;
    if (best == kNoTarget || targets_[i].tally.occurrences > targets_[best].tally.occurrences ||
        (targets_[i].tally.occurrences == targets_[best].tally.occurrences &&
         targets_[i].last_seen > targets_[best].last_seen)) {
      best = i;
    }
  }
  return best;
}

Work Multiplexer::next_work() {
  Work work;
  if (state_ == State::kFull) {
    Target& target = targets_[current_];
    work.kind = Work::Kind::kStop;
    work.target = current_;
    work.pass = target.pass;
    discarding_ = unlike_ || in_session_ < target.ranges;
    work.discard = discarding_;
    work.complete = !discarding_ && target.pass + 1 >= limits_.passes;
    state_ = State::kStopping;
    return work;
  }
  if (state_ != State::kIdle || limits_.wait_for_trace) return work;
  const std::uint32_t next = choose();
  if (next == kNoTarget) {
    if (done()) {
      work.kind = Work::Kind::kDetach;
      state_ = State::kDetached;
    }
    return work;
  }
  Target& target = targets_[next];
  if (target.fresh) {
    const std::uint32_t left = limits_.rounds - target.tally.rounds;
    target.ranges =
        target.tally.rounds == 0 ? 1 : (left < limits_.most_ranges ? left : limits_.most_ranges);
    target.pass = 0;
  }
  work.kind = Work::Kind::kArm;
  work.target = current_ = next;
  work.pass = target.pass;
  work.ranges = target.ranges;
  work.fresh = target.fresh;
  state_ = State::kArming;
  return work;
}

void Multiplexer::armed() {
  if (state_ != State::kArming) return;
  targets_[current_].fresh = false;
  if (wanted_ == current_) wanted_ = kNoTarget;
  in_session_ = 0;
  strangers_ = 0;
  unlike_ = false;
  state_ = State::kArmed;
}

void Multiplexer::stopped() {
  if (state_ != State::kStopping) return;
  Target& target = targets_[current_];
  if (discarding_) {
    // A session that was only given up (nobody came) costs no patience.
    if (unlike_) {
      target.tally.discarded += in_session_;
      if (++target.discards >= kPatience) {
        target.fresh = true;
        target.discards = 0;
        target.tally.passes = 0;
      }
    }
    // Pass 0 sets the reference: with the image put back it is empty again.
    if (target.pass == 0) target.fresh = true;
  } else {
    target.discards = 0;
    ++target.pass;
    target.tally.passes = target.pass;
    if (target.pass >= limits_.passes) {
      target.tally.rounds += target.ranges;
      target.tally.passes = 0;
      target.fresh = true;
    }
  }
  last_ = current_;
  gone_by_ = discarding_ && !unlike_;
  target.stays_away = gone_by_;
  current_ = kNoTarget;
  state_ = State::kIdle;
}

Multiplexer::Progress Multiplexer::progress(std::uint32_t index) const {
  const Target& target = targets_[index];
  Progress out;
  out.pass = target.fresh ? 0 : target.pass;
  out.ranges = target.ranges;
  out.rounds = target.tally.rounds;
  for (std::uint32_t i = 0; i < kMaxRanges; ++i) out.reference[i] = target.reference[i];
  return out;
}

void Multiplexer::go_on(std::uint32_t index, const Progress& progress) {
  Target& target = targets_[index];
  target.settled = true;
  target.fresh = progress.pass == 0;
  target.pass = target.tally.passes = progress.pass;
  target.ranges = progress.ranges;
  target.tally.rounds = progress.rounds;
  for (std::uint32_t i = 0; i < kMaxRanges; ++i) target.reference[i] = progress.reference[i];
}

void Multiplexer::failed() {
  failed_ = true;
  state_ = State::kDetached;
  current_ = kNoTarget;
}

void Multiplexer::begin_anew(std::uint32_t passes) {
  limits_.passes = passes;
  for (Target& target : targets_) {
    target.pass = target.discards = target.tally.passes = 0;
    target.fresh = true;
  }
  current_ = kNoTarget;
  state_ = State::kIdle;
}

bool Multiplexer::done() const {
  bool any = false;
  for (const Target& target : targets_) {
    if (!target.seen) continue;
    any = true;
    if (wants_more(target)) return false;
  }
  return any;
}

}  // namespace rangescope::inject::counters
