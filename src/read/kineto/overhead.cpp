#include "read/kineto/overhead.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace rangescope::read::kineto {
namespace {

using Span = std::pair<std::int64_t, std::int64_t>;

constexpr std::int64_t kSoon_ns =
    100000;  ///< from a buffer of CUPTI to the call that needed it; seen: 4 to 15 us

struct Spent {
  Span span;
  bool is_own;  ///< else of the thread that this one waits for
};

/// What costs as much without a profiler.
bool is_of_driver(std::string_view name) {
  return name.ends_with(" Loading") || name == "Driver Compiler" || name == "Command Buffer Full";
}

/// By thread, in the order of their starts.
std::vector<std::vector<Spent>> spent_by_thread(std::uint32_t domain,
                                                const model::Session& session) {
  std::vector<std::vector<Span>> calls(session.threads.size());
  for (const model::Launch& call : session.launches)
    if (call.end_ns != model::kOpen)
      calls[call.thread].emplace_back(call.start_ns, call.end_ns);
  for (auto& of_thread : calls)
    std::ranges::sort(of_thread);
  std::vector<char> autograd(session.threads.size());
  for (const model::Range& range : session.ranges)
    if (session.strings.view(range.name).starts_with("autograd::engine::"))
      autograd[range.thread] = 1;
  std::vector<std::vector<Spent>> spent(session.threads.size());
  for (const model::Range& range : session.ranges) {
    if (range.domain != domain || range.end_ns == model::kOpen ||
        is_of_driver(session.strings.view(range.name)))
      continue;
    const Span span{range.start_ns, range.end_ns};
    const std::int64_t middle = span.first + (span.second - span.first) / 2;
    std::vector<std::uint32_t> callless;  // meanwhile
    std::uint32_t spender = model::kNone;
    std::int64_t nearest = kSoon_ns + 1;
    for (std::uint32_t thread = 0; thread < calls.size(); ++thread) {
      const auto next = std::ranges::upper_bound(calls[thread], middle, {}, &Span::first);
      const std::int64_t ended =
          next == calls[thread].begin() ? INT64_MIN : std::prev(next)->second;
      const std::int64_t begins = next == calls[thread].end() ? INT64_MAX : next->first;
      if (ended <= span.first && begins >= span.second)
        callless.push_back(thread);
      if (ended > span.first && ended < middle)
        continue;
      const std::int64_t away =
          ended >= middle ? kSoon_ns : std::max(begins, span.second) - span.second;
      if (away < nearest) {
        spender = thread;
        nearest = away;
      }
    }
    if (spender == model::kNone)
      continue;
    spent[spender].push_back({span, true});
    if (autograd[spender] == 0)
      continue;
    for (const std::uint32_t thread : callless)
      if (autograd[thread] == 0)
        spent[thread].push_back({span, false});
  }
  return spent;
}

}  // namespace

void take_out_overhead(std::uint32_t domain, model::Session& session) {
  const std::vector<std::vector<Spent>> spent = spent_by_thread(domain, session);
  const std::vector<model::Range>& ranges = session.ranges;
  std::map<std::uint32_t, std::int64_t> inside;  // by range
  std::vector<std::uint32_t> open;
  std::size_t next = 0;
  const auto take = [&](std::uint32_t thread, std::int64_t until) {  // what began before
    for (; next < spent[thread].size() && spent[thread][next].span.first < until; ++next) {
      const auto& [span, is_own] = spent[thread][next];
      const auto around =
          std::find_if(open.rbegin(), open.rend(), [&, start = span.first](std::uint32_t i) {
            return ranges[i].end_ns > start;
          });
      if (around == open.rend())
        continue;
      const std::int64_t end = std::min(span.second, ranges[*around].end_ns);
      if (is_own || (end == span.second && end <= until))
        inside[*around] += end - span.first;
    }
  };
  std::uint32_t on = model::kNone;
  for (std::uint32_t i = 0; i <= ranges.size(); ++i) {
    const std::uint32_t thread = i < ranges.size() ? ranges[i].thread : model::kNone;
    if (thread != on) {
      if (on != model::kNone)
        take(on, INT64_MAX);
      open.clear();
      next = 0;
      on = thread;
    }
    if (on == model::kNone || ranges[i].domain != 0)
      continue;
    take(on, ranges[i].start_ns);
    while (!open.empty() && ranges[open.back()].end_ns <= ranges[i].start_ns)
      open.pop_back();
    open.push_back(i);
  }
  for (const auto& [range, ns] : inside)
    session.unlisted_inside.push_back({range, 0, ns, ns});
}

}  // namespace rangescope::read::kineto
