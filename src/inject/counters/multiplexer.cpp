#include "inject/counters/multiplexer.hpp"

#include <algorithm>

namespace rangescope::inject::counters {
namespace {

// The awaited target loses the profiler after this many occurrences of others, for each other
// target that wants it. Less, and ranges that alternate in a loop would take the profiler from each
// other at every step (seen on an H200).
constexpr std::uint32_t kStrangersMost = 4;

// Runs are expected to last at least this long.
constexpr std::int64_t kExpectedRun_ns = 60'000'000'000;

bool within_a_quarter(std::int64_t a, std::int64_t b) {
  const auto [smaller, larger] = std::minmax(a, b);
  return larger - smaller <= smaller / 4;
}

}  // namespace

bool Multiplexer::begin(std::uint32_t index, bool due) {
  if (index >= kMaxTargets)
    return false;
  Target& target = targets_[index];
  target.is_known = true;
  target.stays_away = false;
  target.last_seen = ++clock_;
  ++target.tally.occurrences;
  if (limits_.skip_first == 0)
    target.settled = true;
  if (!due) {
    ++target.tally.passed_over;
    return false;
  }
  if (!target.settled || limits_.wait_for_trace || !wants_more(target))
    return false;
  if (state_ == State::kDetached && !failed_)
    state_ = State::kIdle;  // a new range
  if (state_ != State::kArmed || current_ != index) {
    ++target.tally.skipped_arming;
    count_stranger();
    return false;
  }
  state_ = State::kMeasuring;
  strangers_ = 0;
  return true;
}

void Multiplexer::count_stranger() {
  if (state_ != State::kArmed)
    return;
  std::uint32_t waiting_targets = 0;
  for (std::uint32_t i = 0; i < kMaxTargets; ++i)
    if (i != current_ && ready(targets_[i]))
      ++waiting_targets;
  if (++strangers_ >= kStrangersMost * waiting_targets)
    state_ = State::kFull;
}

void Multiplexer::end(std::uint32_t index,
                      bool measured,
                      std::int64_t duration_ns,
                      const Signature& signature) {
  if (index >= kMaxTargets)
    return;
  Target& target = targets_[index];
  if (!measured) {
    if (!target.settled)
      settle(target, duration_ns);
    return;
  }
  if (state_ != State::kMeasuring || current_ != index)
    return;  // abandoned meanwhile
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
    // The first occurrence is no reference: it loads modules and fills caches. Long occurrences are
    // rare, so at most a third of the expected ones are left alone.
    const std::int64_t third = kExpectedRun_ns / (3 * std::max<std::int64_t>(duration_ns, 1));
    const auto limit = std::min<std::int64_t>(third, limits_.settle_most);
    const bool is_steady = skipped >= 3 && within_a_quarter(duration_ns, target.last_ns);
    target.settled = is_steady || skipped >= limit;
  }
  target.last_ns = duration_ns;
}

void Multiplexer::judge(Target& target, const Signature& signature) {
  Signature& reference = target.reference[std::min<std::size_t>(in_session_, kMaxRanges - 1)];
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
  if (state_ != State::kArmed)
    return;
  targets_[current_].tally.gave_up = true;
  state_ = State::kFull;
}

void Multiplexer::drop(std::uint32_t index) {
  if (index >= kMaxTargets)
    return;
  targets_[index].is_known = targets_[index].dropped = true;
  if (state_ == State::kArmed && current_ == index)
    state_ = State::kFull;
}

bool Multiplexer::should_wait(std::uint32_t index) {
  if (index >= kMaxTargets || failed_)
    return false;
  Target& target = targets_[index];
  target.is_known = target.settled = true;
  if (!wants_more(target) || limits_.wait_for_trace || state_ == State::kMeasuring)
    return false;
  if (state_ == State::kArmed && current_ == index)
    return false;
  wanted_ = index;
  if (state_ == State::kArmed)
    state_ = State::kFull;
  if (state_ == State::kDetached)
    state_ = State::kIdle;
  return true;
}

bool Multiplexer::worth_waiting(std::uint32_t index) const {
  if (index >= kMaxTargets || failed_ || limits_.wait_for_trace)
    return false;
  const Target& target = targets_[index];
  if (!ready(target) || target.tally.rounds > 0)
    return false;
  if (state_ == State::kArming)
    return current_ == index;
  return state_ == State::kIdle || state_ == State::kFull || state_ == State::kStopping;
}

std::uint32_t Multiplexer::choose() const {
  if (wanted_ != kNoTarget && ready(targets_[wanted_]))
    return wanted_;
  // The first rounds of all targets come before any second round, so that a short program has
  // values of each.
  bool any_lacks_all = false;
  for (const Target& target : targets_)
    any_lacks_all = any_lacks_all || (ready(target) && lacks_all(target));
  const auto eligible = [&](const Target& target) {
    return ready(target) && (!any_lacks_all || lacks_all(target));
  };
  // A target that has begun a round and was not just given up finishes it.
  if (last_ != kNoTarget && !gone_by_) {
    const Target& last = targets_[last_];
    if (eligible(last) && last.pass > 0 && !last.fresh)
      return last_;
  }
  // Then the most frequent one, which needs the profiler for the shortest time.
  std::uint32_t best = kNoTarget;
  for (std::uint32_t i = 0; i < kMaxTargets; ++i) {
    if (!eligible(targets_[i]))
      continue;
    if (best == kNoTarget || comes_before(targets_[i], targets_[best]))
      best = i;
  }
  return best;
}

bool Multiplexer::comes_before(const Target& a, const Target& b) {
  if (a.tally.occurrences != b.tally.occurrences)
    return a.tally.occurrences > b.tally.occurrences;
  return a.last_seen > b.last_seen;
}

// Without a complete round, one range a session completes one soonest.
std::uint32_t Multiplexer::ranges_of_next_round(const Target& target) const {
  if (target.tally.rounds == 0)
    return 1;
  const std::uint32_t left = limits_.rounds - target.tally.rounds;
  return std::min<std::uint32_t>(left, limits_.most_ranges);
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
  if (state_ != State::kIdle || limits_.wait_for_trace)
    return work;
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
    target.ranges = ranges_of_next_round(target);
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
  if (state_ != State::kArming)
    return;
  targets_[current_].fresh = false;
  if (wanted_ == current_)
    wanted_ = kNoTarget;
  in_session_ = 0;
  strangers_ = 0;
  unlike_ = false;
  state_ = State::kArmed;
}

void Multiplexer::stopped() {
  if (state_ != State::kStopping)
    return;
  Target& target = targets_[current_];
  if (discarding_) {
    // A session in which no occurrence came costs no patience.
    if (unlike_) {
      target.tally.discarded += in_session_;
      if (++target.discards >= kPatience) {
        target.fresh = true;
        target.discards = 0;
        target.tally.passes = 0;
      }
    }
    // Pass 0 sets the reference. The restored image is empty again.
    if (target.pass == 0)
      target.fresh = true;
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
  for (std::uint32_t i = 0; i < kMaxRanges; ++i)
    out.reference[i] = target.reference[i];
  return out;
}

void Multiplexer::go_on(std::uint32_t index, const Progress& progress) {
  Target& target = targets_[index];
  target.settled = true;
  target.fresh = progress.pass == 0;
  target.pass = target.tally.passes = progress.pass;
  target.ranges = progress.ranges;
  target.tally.rounds = progress.rounds;
  for (std::uint32_t i = 0; i < kMaxRanges; ++i)
    target.reference[i] = progress.reference[i];
}

void Multiplexer::failed() {
  failed_ = true;
  state_ = State::kDetached;
  current_ = kNoTarget;
}

void Multiplexer::restart(std::uint32_t passes) {
  limits_.passes = passes;
  for (Target& target : targets_) {
    target.pass = target.discards = target.tally.passes = 0;
    target.fresh = true;
  }
  current_ = kNoTarget;
  state_ = State::kIdle;
}

bool Multiplexer::done() const {
  bool has_targets = false;
  for (const Target& target : targets_) {
    if (!target.is_known)
      continue;
    has_targets = true;
    if (wants_more(target))
      return false;
  }
  return has_targets;
}

}  // namespace rangescope::inject::counters
