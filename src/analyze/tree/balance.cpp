#include "analyze/tree/balance.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyze/names/fold.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::analyze {
namespace {

using model::kNone;
using model::kOpen;
using model::Range;
using model::RangeKind;
using model::Session;

/// Ranges between a lost one and the next of its name: an exception skips the pops of all of them.
constexpr std::size_t kMostBetween = 4;
/// Closed ranges of a name inside an open one of that name that are no recursion by their number.
constexpr std::uint32_t kManyInside = 8;
/// Open ranges of one name inside one another, without a closed one.
constexpr std::uint32_t kRunawayChain = 64;
/// Empty ranges of its own name in one that others cross.
constexpr std::uint32_t kCrossings = 3;

/// Of the program's own pushes and pops. Operators of PyTorch's traces have a length of their own.
bool is_pushed(const Session& session, const Range& range) {
  if (range.kind != RangeKind::kPushPop || range.module)
    return false;
  if (range.end_ns < range.start_ns)
    return false;
  if (range.thread >= session.threads.size())
    return false;
  const std::uint32_t process = session.threads[range.thread].process;
  return process >= session.processes.size() || !session.processes[process].operators;
}

/// Names that differ in their numbers only are one.
class FoldedNames {
 public:
  explicit FoldedNames(const Session& session) : session_(session) {
    by_id_.resize(session.strings.size(), kNone);
  }

  std::uint32_t of(model::StringId name) {
    std::uint32_t& number = by_id_[name];
    if (number != kNone)
      return number;
    const std::string folded = folded_name(session_.strings.view(name), FoldNames::kNumbers);
    number = by_text_.emplace(folded, static_cast<std::uint32_t>(by_text_.size())).first->second;
    return number;
  }

 private:
  const Session& session_;
  std::vector<std::uint32_t> by_id_;
  std::map<std::string, std::uint32_t> by_text_;
};

using ThreadDomain = std::pair<std::uint32_t, std::uint32_t>;

/// Threads and domains in which a range lies in another one of its name, few others between.
std::set<ThreadDomain> with_own_name_inside(const Session& session, FoldedNames& names) {
  using EndAndName = std::pair<std::int64_t, std::uint32_t>;
  std::map<ThreadDomain, std::vector<EndAndName>> stacks;
  std::set<ThreadDomain> found;
  for (const Range& range : session.ranges) {
    if (!is_pushed(session, range))
      continue;
    const ThreadDomain key(range.thread, range.domain);
    auto& open = stacks[key];
    while (!open.empty() && open.back().first <= range.start_ns)
      open.pop_back();
    const std::uint32_t name = names.of(range.name);
    const std::size_t deepest = open.size() - std::min(open.size(), kMostBetween + 1);
    for (std::size_t i = open.size(); i-- > deepest;)
      if (open[i].second == name)
        found.insert(key);
    open.emplace_back(range.end_ns, name);
  }
  return found;
}

/// The push/pop ranges of a thread in a domain, in the order of their pushes, and how they nest. A
/// place is an index into these vectors.
struct Stack {
  std::vector<std::uint32_t> ranges;    ///< indexes into Session::ranges
  std::vector<std::uint32_t> parent;    ///< places, kNone at the bottom
  std::vector<std::uint32_t> name;      ///< folded
  std::vector<std::uint32_t> children;  ///< how many
  std::uint32_t unclosed = 0;
};

/// What speaks for lost pops of a name, and against.
struct Evidence {
  std::uint32_t instances = 0;
  std::uint32_t apart = 0;          ///< closed ones that are in none of their name
  std::uint32_t longest_chain = 0;  ///< open ones inside one another
  /// Closed ones that hold one: a recursion, or closed by another's pop.
  std::uint32_t closed_holding = 0;
  /// The most closed ones in one that is open, or that is closed below an open range.
  std::uint32_t inside_lost = 0;
};

/// Where ranges cross: one of them, and the name of the other.
struct Crossing {
  std::uint32_t place;
  std::uint32_t other_name;
};

/// What lies directly inside a range that holds others of its name.
struct Inside {
  std::uint32_t same_name = 0;        ///< ranges of its name
  bool all_empty = true;              ///< nothing is in any of these
  std::uint32_t name_before = kNone;  ///< name of a range before them, if it is another
  bool repeated_behind = false;  ///< that name follows one of them too, or the range around them

  [[nodiscard]] bool crosses() const {
    const bool is_mixed = name_before != kNone && repeated_behind;
    return same_name >= kCrossings && all_empty && is_mixed;
  }
};

class Mender {
 public:
  Mender(Session& session, FoldedNames& names) : session_(session), names_(names) {}

  void mend(std::vector<std::uint32_t> ranges) {
    if (!nest(std::move(ranges)))
      return;
    find_crossings();
    for (const auto& [name, crossing] : crossings_)
      add_crossing(name, crossing);
    if (stack_.unclosed == 0)
      return;
    collect_evidence();
    std::set<std::uint32_t> losing;
    for (const auto& [name, evidence] : evidence_)
      if (loses_pops(name, evidence))
        losing.insert(name);
    if (!losing.empty())
      replay(losing);
  }

 private:
  [[nodiscard]] Range& range(std::uint32_t place) const {
    return session_.ranges[stack_.ranges[place]];
  }
  [[nodiscard]] bool is_open(std::uint32_t place) const { return range(place).end_ns == kOpen; }

  /// False where ranges do not nest: no stack of pushes and pops made them.
  bool nest(std::vector<std::uint32_t> ranges) {
    stack_.ranges = std::move(ranges);
    std::ranges::stable_sort(stack_.ranges, [this](std::uint32_t a, std::uint32_t b) {
      const Range& x = session_.ranges[a];
      const Range& y = session_.ranges[b];
      return x.start_ns != y.start_ns ? x.start_ns < y.start_ns : x.end_ns > y.end_ns;
    });
    std::vector<std::uint32_t> open;
    for (std::uint32_t place = 0; place < stack_.ranges.size(); ++place) {
      const Range& pushed = range(place);
      while (!open.empty() && range(open.back()).end_ns < pushed.end_ns) {
        if (range(open.back()).end_ns > pushed.start_ns)
          return false;
        open.pop_back();
      }
      stack_.parent.push_back(open.empty() ? kNone : open.back());
      stack_.name.push_back(names_.of(pushed.name));
      stack_.children.push_back(0);
      if (!open.empty())
        ++stack_.children[open.back()];
      if (pushed.end_ns == kOpen)
        ++stack_.unclosed;
      open.push_back(place);
    }
    return true;
  }

  /// The range of the same name that holds this one, with few ranges of others between; else kNone.
  [[nodiscard]] std::uint32_t same_name_around(std::uint32_t place) const {
    std::uint32_t around = stack_.parent[place];
    for (std::size_t between = 0; around != kNone && between <= kMostBetween; ++between) {
      if (stack_.name[around] == stack_.name[place])
        return around;
      around = stack_.parent[around];
    }
    return kNone;
  }

  void find_crossings() {
    std::map<std::uint32_t, Inside> inside_of;
    // The latest range below a parent that holds one of its name.
    std::map<std::uint32_t, std::uint32_t> last_holding;
    for (std::uint32_t place = 0; place < stack_.ranges.size(); ++place) {
      const std::uint32_t parent = stack_.parent[place];
      const std::uint32_t name = stack_.name[place];
      const auto earlier = last_holding.find(parent);
      if (earlier != last_holding.end())
        note_behind(inside_of[earlier->second], name);
      if (parent == kNone)
        continue;
      Inside& inside = inside_of[parent];
      if (name != stack_.name[parent]) {
        if (inside.same_name == 0 && inside.name_before == kNone)
          inside.name_before = name;
        note_behind(inside, name);
        continue;
      }
      ++inside.same_name;
      if (stack_.children[place] > 0)
        inside.all_empty = false;
      last_holding[stack_.parent[parent]] = parent;
    }
    for (const auto& [place, inside] : inside_of)
      if (inside.crosses())
        crossings_.emplace(stack_.name[place], Crossing{place, inside.name_before});
  }

  static void note_behind(Inside& inside, std::uint32_t name) {
    if (inside.same_name > 0 && inside.name_before == name)
      inside.repeated_behind = true;
  }

  void collect_evidence() {
    std::vector<std::uint32_t> closed_inside(stack_.ranges.size()), chain(stack_.ranges.size(), 1);
    std::vector<char> holds(stack_.ranges.size());
    for (std::uint32_t place = 0; place < stack_.ranges.size(); ++place) {
      Evidence& evidence = evidence_[stack_.name[place]];
      ++evidence.instances;
      const std::uint32_t around = same_name_around(place);
      if (around == kNone) {
        if (!is_open(place))
          ++evidence.apart;
        continue;
      }
      if (holds[around] == 0 && !is_open(around))
        ++evidence.closed_holding;
      holds[around] = 1;
      if (is_open(place)) {  // so is what is around it
        chain[place] = chain[around] + 1;
        evidence.longest_chain = std::max(evidence.longest_chain, chain[place]);
        continue;
      }
      const std::uint32_t level = stack_.parent[around];
      const bool is_lost = is_open(around) || (level != kNone && is_open(level));
      if (is_lost)
        evidence.inside_lost = std::max(evidence.inside_lost, ++closed_inside[around]);
    }
  }

  [[nodiscard]] bool loses_pops(std::uint32_t name, const Evidence& evidence) const {
    if (crossings_.contains(name))
      return false;
    if (evidence.longest_chain >= kRunawayChain)
      return true;
    if (evidence.closed_holding > stack_.unclosed)
      return false;
    return evidence.inside_lost >= kManyInside || (evidence.inside_lost > 1 && evidence.apart > 0);
  }

  /// Pushes and pops once more, with a pop where one was lost.
  void replay(const std::set<std::uint32_t>& losing) {
    std::vector<std::uint32_t> recorded;  // open ranges by the recorded pops
    std::vector<std::uint32_t> meant;     // by the meant ones
    std::vector<std::int64_t> ends(stack_.ranges.size(), kOpen);
    const auto pop = [&](std::int64_t at_ns) {
      if (meant.empty())
        return;
      ends[meant.back()] = at_ns;
      meant.pop_back();
    };
    std::size_t missing = stack_.unclosed;
    for (std::uint32_t place = 0; place < stack_.ranges.size(); ++place) {
      for (; !recorded.empty() && recorded.back() != stack_.parent[place]; recorded.pop_back())
        pop(range(recorded.back()).end_ns);
      const std::uint32_t name = stack_.name[place];
      std::size_t lost = losing.contains(name) ? opened_since(meant, name) : 0;
      if (lost > missing)
        lost = 0;
      missing -= lost;
      for (; lost > 0; --lost) {
        lost_[stack_.name[meant.back()]].push_back(meant.back());
        pop(range(place).start_ns);
      }
      recorded.push_back(place);
      meant.push_back(place);
    }
    while (!recorded.empty() && !is_open(recorded.back())) {
      pop(range(recorded.back()).end_ns);
      recorded.pop_back();
    }
    for (std::uint32_t place = 0; place < ends.size(); ++place)
      range(place).end_ns = ends[place];
    for (const auto& [name, lost] : lost_)
      add_lost(name, lost);
  }

  /// How many ranges on top of the stack are that of this name and what was pushed after it; 0 if
  /// there is none.
  [[nodiscard]] std::size_t opened_since(const std::vector<std::uint32_t>& open,
                                         std::uint32_t name) const {
    const std::size_t looked_at = std::min(open.size(), kMostBetween + 1);
    for (std::size_t count = 1; count <= looked_at; ++count)
      if (stack_.name[open[open.size() - count]] == name)
        return count;
    return 0;
  }

  [[nodiscard]] std::string quoted(std::uint32_t place) const {
    return "'" + base::printable(session_.strings.view(range(place).name)) + "'";
  }

  /// How many there are up to this one.
  [[nodiscard]] std::int64_t number_of(std::uint32_t place) const {
    return std::count(stack_.name.begin(), stack_.name.begin() + place + 1, stack_.name[place]);
  }

  void add_crossing(std::uint32_t name, const Crossing& crossing) {
    const auto other = std::ranges::find(stack_.name, crossing.other_name) - stack_.name.begin();
    std::string detail = quoted(crossing.place) + " and ";
    detail += quoted(static_cast<std::uint32_t>(other)) + " of one thread cross: ";
    detail += "a pop closes the latest push, so each ended the other and both have wrong times";
    const auto count = static_cast<std::uint64_t>(std::ranges::count(stack_.name, name));
    session_.losses.push_back({"crossing_ranges", count, std::move(detail)});
  }

  void add_lost(std::uint32_t name, const std::vector<std::uint32_t>& lost) {
    const std::uint32_t first = lost.front();
    const std::uint32_t parent = stack_.parent[first];
    const auto after_ns = static_cast<double>(range(first).start_ns - session_.begin_ns);
    std::string detail = quoted(first) + " was popped " + base::counted(lost.size(), "time");
    detail += " less often than pushed (" + base::counted(evidence_[name].instances, "time");
    detail += "). The first pop that is missing is that of instance ";
    detail += base::format_count(number_of(first));
    if (parent != kNone)
      detail += " in " + quoted(parent);
    detail += ", which began " + base::format_ns(after_ns) + " after the start";
    detail += ". Such instances end here where the next one begins";
    session_.losses.push_back({"unbalanced_ranges", lost.size(), std::move(detail)});
  }

  Session& session_;
  FoldedNames& names_;
  Stack stack_;
  // By folded name.
  std::map<std::uint32_t, Evidence> evidence_;
  std::map<std::uint32_t, Crossing> crossings_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> lost_;  ///< places
};

}  // namespace

void mend_push_pop(Session& session) {
  if (!session.unlisted.empty())
    return;
  FoldedNames names(session);
  std::map<ThreadDomain, std::vector<std::uint32_t>> ranges_of;
  for (const ThreadDomain& key : with_own_name_inside(session, names))
    ranges_of[key];
  if (ranges_of.empty())
    return;
  for (std::uint32_t i = 0; i < session.ranges.size(); ++i) {
    const Range& range = session.ranges[i];
    const auto found = ranges_of.find({range.thread, range.domain});
    if (found != ranges_of.end() && is_pushed(session, range))
      found->second.push_back(i);
  }
  for (auto& [key, ranges] : ranges_of)
    Mender(session, names).mend(std::move(ranges));
}

}  // namespace rangescope::analyze
