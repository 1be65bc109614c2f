#include "read/native/thin.hpp"

#include <algorithm>
#include <functional>
#include <string_view>
#include <tuple>

#include "base/find.hpp"

namespace rangescope::read::native {

using model::kNone;

void Thinner::begin_thread(std::uint32_t thread) {
  end_thread();
  thread_ = thread;
  latest_root_ = kNone;
  of_thread_ = base::find_value(moments_.of_thread, session_.threads[thread].tid);
  next_of_process_ = next_of_thread_ = 0;
}

void Thinner::end_thread() {
  session_.open_spans.insert(session_.open_spans.end(), spans_.begin(), spans_.end());
  spans_.clear();
  shortest_gap_ns_ = 0;
  open_ = 0;
}

std::uint32_t Thinner::cell_of(std::uint32_t parent, std::uint32_t domain, model::StringId name) {
  const auto is = [&](std::uint32_t cell) {
    const Cell& existing = cells_[cell];
    return existing.parent == parent && existing.name == name && existing.domain == domain &&
           existing.thread == thread_;
  };
  std::uint32_t& latest = parent == kNone ? latest_root_ : cells_[parent].latest;
  if (latest != kNone && is(latest))
    return latest;
  const std::uint32_t parent_or_thread = parent == kNone ? ~thread_ : parent;
  const std::uint64_t key = (std::uint64_t{parent_or_thread} << 32 | name) * 0x9e3779b97f4a7c15ull;
  std::vector<std::uint32_t>& alike = known_[key ^ domain];
  if (const auto found = std::ranges::find_if(alike, is); found != alike.end())
    return latest = *found;
  const auto cell = static_cast<std::uint32_t>(cells_.size());
  latest = cell;
  alike.push_back(cell);
  cells_.push_back({parent, domain, thread_, name});
  if (plan_ == nullptr)
    counted_.emplace_back();
  return cell;
}

OpenCell Thinner::enter(const OpenCell* above,
                        std::uint32_t domain,
                        model::StringId name,
                        std::int64_t at) {
  OpenCell open;
  std::uint32_t parent = kNone;
  if (above != nullptr) {
    parent = above->cell;
    open.depth = above->depth + 1;
  }
  open.marks = session_.marks.size();
  open.fields = session_.payload_fields.size();
  open.attributes = session_.attributes.size();
  open.push = pushes_++;
  if (open_++ == 0)
    open_since_ns_ = at;
  const bool runs_away = !runaways_.empty() && runaways_.contains(open.push);
  if (const auto first = runs_away ? first_of_.find({thread_, domain, name}) : first_of_.end();
      first != first_of_.end()) {
    std::tie(open.cell, open.depth) = first->second;
    return open;
  }
  if (open.depth < kDeepest)
    open.cell = cell_of(parent, domain, name);
  if (runs_away)
    first_of_[{thread_, domain, name}] = {open.cell, open.depth};
  if (open.cell == kNone)
    return open;
  open.ordinal = cells_[open.cell].occurrences++;
  if (plan_ == nullptr)
    ++counted_[open.cell].count;
  return open;
}

void Thinner::stays_open(const OpenCell& open, std::uint32_t range) {
  const model::Range& left = session_.ranges[range];
  if (plan_ == nullptr)
    left_open_[{thread_, left.domain, left.name}].push_back(open.push);
}

Thinner::Pushes Thinner::runaways() const {
  Pushes out;
  for (const auto& [name, pushes] : left_open_)
    if (pushes.size() >= kRunaway)
      out.insert(pushes.begin(), pushes.end());
  return out;
}

bool Thinner::leave(const OpenCell& open, std::uint32_t index, OpenCell* above, bool whole) {
  const model::Range& range = session_.ranges[index];
  if (open_ > 0 && --open_ == 0)
    span_ends(range.end_ns);
  const bool held = holds_something(open, range);
  const bool is_single =
      whole && !held && open.cell != kNone && index + 1 == session_.ranges.size();
  const std::int64_t length = range.end_ns - range.start_ns;
  if (is_single && plan_ == nullptr)
    count_long(counted_[open.cell].longest, length);
  if (!is_single || is_listed(open, length)) {
    if (whole && open.cell != kNone && cells_[open.cell].listed == kNone)
      cells_[open.cell].listed = index;
    if (open.inside.count > 0) {
      session_.unlisted_inside.push_back(open.inside);
      session_.unlisted_inside.back().range = index;
    }
    return false;
  }
  const std::int64_t inside =
      open.inside.recorded_ns + static_cast<std::int64_t>(open.inside.count * cost_.around);
  const std::int64_t recorded =
      cost_.own + cost_.around == 0 ? 0 : std::min(length, inside + std::int64_t{cost_.own});
  if (plan_ != nullptr)
    tally(open, length, recorded);
  if (above != nullptr) {
    ++above->inside.count;
    above->inside.ns += length;
    above->inside.recorded_ns += recorded;
  }
  session_.ranges.pop_back();
  if (session_.attributes.size() > open.attributes)
    session_.attributes.resize(open.attributes);
  return true;
}

bool Thinner::holds_something(const OpenCell& open, const model::Range& range) {
  const auto happened = [&](const std::vector<std::int64_t>& moments, std::size_t& next) {
    while (next < moments.size() && moments[next] <= range.end_ns)
      ++next;
    while (next > 0 && moments[next - 1] > range.end_ns)
      --next;  // a time that goes back
    return next > 0 && moments[next - 1] >= range.start_ns;
  };
  bool held = happened(moments_.of_process, next_of_process_);
  held |= of_thread_ != nullptr && happened(*of_thread_, next_of_thread_);
  if (range.domain != 0) {  // calls that ranks of a job wait in
    const std::string_view domain = session_.strings.view(session_.domains[range.domain].name);
    held |= domain == "MPI" || domain == "NCCL";
  }
  return held || session_.marks.size() != open.marks ||
         session_.payload_fields.size() != open.fields ||
         (range.attributes < session_.attributes.size() &&
          session_.attributes[range.attributes].payload_type != model::PayloadType::kAbsent);
}

bool Thinner::is_listed(const OpenCell& open, std::int64_t length) {
  if (plan_ == nullptr)
    return false;
  if (open.cell >= plan_->size())
    return true;  // of a process that still runs: recorded since the first walk
  Cell& cell = cells_[open.cell];
  const Counted& counted = (*plan_)[open.cell];
  const std::uint64_t count = counted.count;
  if (count <= listed_ || cell.listed == kNone)
    return true;
  if (open.ordinal < first_ || open.ordinal + first_ / 4 >= count)
    return true;
  if (open.ordinal % ((count + listed_ - 1) / listed_) == 0)
    return true;
  if (counted.longest.empty() || length < counted.longest.front())
    return false;
  return length > counted.longest.front() || cell.as_long++ < longest_;
}

void Thinner::count_long(std::vector<std::int64_t>& longest, std::int64_t length) const {
  if (longest.size() == longest_) {
    if (length <= longest.front())
      return;
    std::pop_heap(longest.begin(), longest.end(), std::greater<>());
    longest.pop_back();
  }
  longest.push_back(length);
  std::push_heap(longest.begin(), longest.end(), std::greater<>());
}

void Thinner::tally(const OpenCell& open, std::int64_t length, std::int64_t recorded) {
  Cell& cell = cells_[open.cell];
  if (cell.tally == kNone) {
    cell.tally = static_cast<std::uint32_t>(session_.unlisted.size());
    session_.unlisted.push_back({cell.listed, static_cast<std::uint32_t>(first_)});
    later_.resize(session_.unlisted.size());
  }
  model::Unlisted& into = session_.unlisted[cell.tally];
  into.wall.add(length);
  into.unrecorded.add(length - recorded);
  into.inside_ns += open.inside.ns;
  into.inside_recorded_ns += open.inside.recorded_ns;
  if (open.ordinal < std::max<std::uint64_t>(1, (*plan_)[open.cell].count / 3))
    return;
  later_[cell.tally].wall.add(length);
  later_[cell.tally].unrecorded.add(length - recorded);
}

void Thinner::span_ends(std::int64_t at) {
  const auto join = [&](model::OpenSpan& before, const model::OpenSpan& span) {
    if (span.start_ns - before.end_ns > shortest_gap_ns_)
      return false;
    before.between_ns += std::max<std::int64_t>(0, span.start_ns - before.end_ns) + span.between_ns;
    before.end_ns = std::max(before.end_ns, span.end_ns);
    return true;
  };
  const model::OpenSpan span{thread_, open_since_ns_, at, 0};
  if (!spans_.empty() && join(spans_.back(), span))
    return;
  spans_.push_back(span);
  while (spans_.size() > kMostSpans) {
    shortest_gap_ns_ = shortest_gap_ns_ * 2 + 1;
    std::size_t last = 0;
    for (std::size_t i = 1; i < spans_.size(); ++i)
      if (!join(spans_[last], spans_[i]))
        spans_[++last] = spans_[i];
    spans_.resize(last + 1);
  }
}

void Thinner::finish() {
  end_thread();
  const auto middle = [](const model::Distribution& values) {
    return static_cast<std::int64_t>(values.value_at(values.moments.n / 2));
  };
  for (const Cell& cell : cells_) {
    if (cell.tally == kNone)
      continue;
    session_.unlisted[cell.tally].usual_ns = middle(later_[cell.tally].wall);
    session_.unlisted[cell.tally].usual_unrecorded_ns = middle(later_[cell.tally].unrecorded);
  }
}

}  // namespace rangescope::read::native
