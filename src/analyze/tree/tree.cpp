#include "analyze/tree/tree.hpp"

#include <algorithm>
#include <map>

#include "analyze/names/fold.hpp"
#include "analyze/statistics/order.hpp"
#include "base/numbering.hpp"
#include "base/workers.hpp"

namespace rangescope::analyze {
namespace {

using model::Range;
using model::RangeKind;
using model::Session;

/// What distinguishes the cells of a thread, and nodes.
struct CellKey {
  std::uint32_t parent, domain;
  model::StringId name;
  std::uint32_t kind;
  explicit CellKey(const Cell& cell)
      : parent(cell.parent),
        domain(cell.domain),
        name(cell.name),
        kind(static_cast<std::uint32_t>(cell.kind)) {}
};

/// A range on the stack of a thread's domain.
struct OpenEntry {
  std::uint32_t occurrence;
  std::uint32_t cell;
  std::int64_t start, end;
  std::int64_t covered_until;
  std::uint64_t covered;  ///< union of closed children so far
  std::uint32_t depth;    ///< of the cell
};

struct Stack {
  std::uint32_t domain;
  std::vector<OpenEntry> open;
};

struct ThreadResult {
  std::vector<Cell> cells;
  std::uint64_t unclosed = 0, crossing = 0, deep = 0;
  std::vector<Runaway> runaways;
};

std::uint64_t duration_ns(const Range& range) {
  return static_cast<std::uint64_t>(length_ns(range.start_ns, range.end_ns));
}

/// One thread of the program: occurrences [begin, end) of the tree.
class Sweep {
 public:
  Sweep(const Session& session,
        const std::vector<std::uint32_t>& inside,
        Tree& tree,
        std::uint32_t thread,
        bool nested)
      : session_(session), inside_(inside), tree_(tree), thread_(thread), nested_(nested) {}

  ThreadResult run(std::size_t begin, std::size_t end) {
    find_runaways(begin, end);
    for (std::size_t o = begin; o < end; ++o) {
      const Range& range = session_.ranges[tree_.range_of[o]];
      if (range.kind == RangeKind::kStartEnd) {
        add_start_end(static_cast<std::uint32_t>(o), range);
      } else {
        add_push_pop(static_cast<std::uint32_t>(o), range);
      }
    }
    for (Stack& stack : stacks_) {
      for (const OpenEntry& entry : stack.open)
        leave(entry);
    }
    return std::move(result_);
  }

 private:
  Stack& stack_of(std::uint32_t domain) {
    const std::uint32_t key = nested_ ? 0 : domain;
    for (Stack& stack : stacks_) {
      if (stack.domain == key)
        return stack;
    }
    stacks_.push_back({key, {}});
    return stacks_.back();
  }

  void find_runaways(std::size_t begin, std::size_t end) {
    std::map<std::pair<std::uint32_t, model::StringId>, std::uint64_t> unclosed;
    for (std::size_t o = begin; o < end; ++o) {
      const Range& range = session_.ranges[tree_.range_of[o]];
      if (range.kind == RangeKind::kPushPop && range.end_ns == kOpen)
        ++unclosed[{range.domain, range.name}];
    }
    std::map<std::pair<std::uint32_t, std::string>, std::vector<model::StringId>> names_of;
    std::map<std::pair<std::uint32_t, std::string>, std::uint64_t> counts;
    for (const auto& [domain_and_name, count] : unclosed) {
      const auto& [domain, name] = domain_and_name;
      const std::pair folded(domain, folded_name(session_.strings.view(name), FoldNames::kNumbers));
      names_of[folded].push_back(name);
      counts[folded] += count;
    }
    for (const auto& [folded, names] : names_of) {
      if (counts[folded] < kRunaway)
        continue;
      for (const model::StringId name : names)
        runaway_of_.emplace(std::pair(folded.first, name), firsts_.size());
      firsts_.push_back({kNone, kNone, 0});
    }
    result_.runaways.resize(firsts_.size());
  }

  Cell& enter(std::uint32_t occurrence, const Range& range, std::uint32_t parent_cell) {
    const Cell key{.process = session_.threads[thread_].process,
                   .thread = thread_,
                   .parent = parent_cell,
                   .domain = range.domain,
                   .name = range.name,
                   .kind = range.kind,
                   .module = range.module,
                   .first_start_ns = range.start_ns};
    const std::uint32_t number = numbers_.number(CellKey(key));
    if (number == result_.cells.size())
      result_.cells.push_back(key);
    return count_in(number, occurrence, range);
  }

  Cell& count_in(std::uint32_t number, std::uint32_t occurrence, const Range& range) {
    tree_.cell[occurrence] = number;
    if (number >= open_.size())
      open_.resize(number + 1);
    Cell& cell = result_.cells[number];
    if (range.end_ns == kOpen) {
      ++cell.unclosed;
      ++result_.unclosed;
    } else {
      ++cell.closed;
      if (open_[number] == 0)  // else a range around it, of the same region, counts this time
        cell.inclusive_ns += duration_ns(range);
    }
    return cell;
  }

  void leave(const OpenEntry& entry) {
    if (entry.end == kOpen)
      return;
    --open_[entry.cell];
    result_.cells[entry.cell].exclusive_ns +=
        static_cast<std::uint64_t>(length_ns(entry.start, entry.end)) - entry.covered;
  }

  void add_start_end(std::uint32_t occurrence, const Range& range) {
    tree_.parent[occurrence] = kNone;
    Cell& cell = enter(occurrence, range, kNone);
    if (range.end_ns != kOpen)
      cell.exclusive_ns += duration_ns(range);
  }

  void add_push_pop(std::uint32_t occurrence, const Range& range) {
    auto& open = stack_of(range.domain).open;
    leave_ended_before(range, open);
    Place place;
    tree_.parent[occurrence] = kNone;
    if (!open.empty()) {
      OpenEntry& parent = open.back();
      tree_.parent[occurrence] = parent.occurrence;
      place = place_below(parent);
      if (range.end_ns != kOpen)
        cover(parent, range);
    }
    const auto runaway =
        range.end_ns == kOpen ? runaway_of_.find({range.domain, range.name}) : runaway_of_.end();
    if (runaway == runaway_of_.end())
      enter(occurrence, range, place.parent_cell);
    else
      place.depth = add_runaway(runaway->second, occurrence, range, place);
    if (range.end_ns != kOpen)
      ++open_[tree_.cell[occurrence]];
    open.push_back({occurrence,
                    tree_.cell[occurrence],
                    range.start_ns,
                    range.end_ns,
                    range.start_ns,
                    unlisted_ns_inside(occurrence),
                    place.depth});
  }

  /// Whatever ends before `range` ends cannot hold it, nor (if it overlaps) anything that starts
  /// from now on and is not in this range too: it leaves the stack for good.
  void leave_ended_before(const Range& range, std::vector<OpenEntry>& open) {
    // An operator of a framework that begins where another one ends is not inside it, even if it
    // has no length.
    const std::uint32_t process = session_.threads[thread_].process;
    const bool are_operators =
        process < session_.processes.size() && session_.processes[process].operators;
    const auto has_ended = [&](const OpenEntry& entry) {
      return entry.end < range.end_ns || (are_operators && entry.end <= range.start_ns);
    };
    bool crosses = false;
    while (!open.empty() && has_ended(open.back())) {
      crosses |= open.back().end > range.start_ns;
      leave(open.back());
      open.pop_back();
    }
    if (crosses && range.end_ns != kOpen)
      ++result_.crossing;
  }

  /// The cell below which a range is counted, and its depth.
  struct Place {
    std::uint32_t parent_cell = kNone, depth = 0;
  };

  /// Of a range whose innermost open range is `parent`.
  Place place_below(const OpenEntry& parent) {
    if (parent.depth + 1 < kDeepest)
      return {parent.cell, parent.depth + 1};
    ++result_.deep;
    return {result_.cells[parent.cell].parent, parent.depth};
  }

  /// Adds `child` to the time of `parent` that its children cover.
  static void cover(OpenEntry& parent, const Range& child) {
    parent.covered += static_cast<std::uint64_t>(
        length_ns(std::max(child.start_ns, parent.covered_until), child.end_ns));
    parent.covered_until = std::max(parent.covered_until, child.end_ns);
  }

  /// Counts the range in the cell of the first range of the runaway; returns its depth.
  std::uint32_t add_runaway(std::size_t runaway,
                            std::uint32_t occurrence,
                            const Range& range,
                            const Place& place) {
    First& first = firsts_[runaway];
    ++result_.runaways[runaway].count;
    if (first.occurrence == kNone) {
      enter(occurrence, range, place.parent_cell);
      first = {occurrence, tree_.cell[occurrence], place.depth};
      result_.runaways[runaway].name = range.name;
    } else {
      count_in(first.cell, occurrence, range);
      tree_.parent[occurrence] = first.occurrence;
    }
    return first.depth;
  }

  /// Time of the occurrences directly inside this one that the session does not list.
  [[nodiscard]] std::uint64_t unlisted_ns_inside(std::uint32_t occurrence) const {
    if (inside_.empty())
      return 0;
    const std::uint32_t inside = inside_[tree_.range_of[occurrence]];
    if (inside == kNone)
      return 0;
    return static_cast<std::uint64_t>(session_.unlisted_inside[inside].ns);
  }

  const Session& session_;
  const std::vector<std::uint32_t>& inside_;
  Tree& tree_;
  std::uint32_t thread_;
  bool nested_;
  base::Numbering<CellKey> numbers_;
  std::vector<Stack> stacks_;
  std::vector<std::uint32_t> open_;  ///< closed occurrences on a stack, by cell
  struct First {
    std::uint32_t occurrence, cell, depth;
  };
  std::map<std::pair<std::uint32_t, model::StringId>, std::size_t>
      runaway_of_;             ///< by domain and name
  std::vector<First> firsts_;  ///< by runaway
  ThreadResult result_;
};

/// Adds what the session counts of each cell in addition to its listed occurrences.
/// O(occurrences).
void add_unlisted(const Session& session, Tree& tree) {
  if (session.unlisted.empty())
    return;
  std::vector<std::uint32_t> of_range(session.ranges.size(), kNone);
  for (std::uint32_t u = 0; u < session.unlisted.size(); ++u)
    of_range[session.unlisted[u].range] = u;
  for (std::size_t o = 0; o < tree.range_of.size(); ++o) {
    const std::uint32_t u = of_range[tree.range_of[o]];
    if (u == kNone)
      continue;
    const model::Unlisted& unlisted = session.unlisted[u];
    Cell& cell = tree.cells[tree.cell[o]];
    const auto ns = static_cast<std::uint64_t>(unlisted.wall.moments.sum);
    cell.closed += static_cast<std::uint32_t>(unlisted.wall.moments.n);
    cell.inclusive_ns += ns;
    cell.exclusive_ns += ns - static_cast<std::uint64_t>(unlisted.inside_ns);
    UnlistedOfCell& sums = tree.unlisted_of[tree.cell[o]];
    // Folded names share a cell: what cannot be added up is that of the name with most instances.
    if (unlisted.wall.moments.n > sums.wall.moments.n) {
      sums.usual_ns = unlisted.usual_ns;
      sums.usual_unrecorded_ns = unlisted.usual_unrecorded_ns;
      sums.first_listed = unlisted.first_listed;
    }
    sums.wall.add(unlisted.wall);
    sums.unrecorded.add(unlisted.unrecorded);
    sums.inside_recorded_ns += unlisted.inside_recorded_ns;
    sums.sum_ns += static_cast<std::int64_t>(ns);
    sums.inside_ns += unlisted.inside_ns;
  }
}

/// Fills Tree::range_of and Tree::thread_begin; ranges that cannot be used are counted only.
void sort_by_thread(const Session& session, Tree& tree) {
  const std::size_t thread_count = session.threads.size();
  const auto thread_of = [&](std::size_t i) -> std::size_t {
    const Range& range = session.ranges[i];
    if (range.thread >= thread_count || range.domain >= session.domains.size()) {
      ++tree.foreign;
      return thread_count;
    }
    if (range.end_ns < range.start_ns) {
      ++tree.backward;
      return thread_count;
    }
    return range.thread;
  };
  Buckets by_thread = bucket_sort(session.ranges.size(), thread_count, thread_of);
  tree.foreign /= 2;  // bucket_sort asks twice
  tree.backward /= 2;
  tree.range_of = std::move(by_thread.items);
  tree.thread_begin = std::move(by_thread.begin);
}

/// Puts the occurrences of one thread in sweep order.
void sort_for_sweep(const Session& session, std::span<std::uint32_t> ranges) {
  sort_nearly(ranges, [&](std::uint32_t a, std::uint32_t b) {
    const Range& x = session.ranges[a];
    const Range& y = session.ranges[b];
    if (x.start_ns != y.start_ns)
      return x.start_ns < y.start_ns;
    if (x.end_ns != y.end_ns)
      return x.end_ns > y.end_ns;
    return a < b;
  });
}

/// Appends the cells of `thread`, and adds its counts to those of the tree.
void append_thread(std::size_t thread, const ThreadResult& result, Tree& tree) {
  const auto first_cell = static_cast<std::uint32_t>(tree.cells.size());
  for (std::size_t o = tree.thread_begin[thread]; o < tree.thread_begin[thread + 1]; ++o)
    tree.cell[o] += first_cell;
  for (Cell cell : result.cells) {
    if (cell.parent != kNone)
      cell.parent += first_cell;
    tree.cells.push_back(cell);
  }
  tree.unclosed += result.unclosed;
  tree.crossing += result.crossing;
  tree.deep += result.deep;
  tree.runaways.insert(tree.runaways.end(), result.runaways.begin(), result.runaways.end());
}

/// Makes one node of all cells with the same path.
void number_nodes(Tree& tree) {
  // Cells of a thread are in the order parents first, so a node's parent always exists already.
  base::Numbering<CellKey> numbers;
  tree.nodes.clear();
  for (Cell& cell : tree.cells) {
    Cell key = cell;
    key.parent = cell.parent == kNone ? kNone : tree.cells[cell.parent].node;
    cell.node = numbers.number(CellKey(key));
    if (cell.node == tree.nodes.size()) {
      const std::uint32_t depth = key.parent == kNone ? 0 : tree.nodes[key.parent].depth + 1;
      tree.nodes.push_back(
          {key.parent, cell.domain, cell.name, cell.kind, depth, cell.first_start_ns, cell.module});
    } else {
      Node& node = tree.nodes[cell.node];
      node.first_start_ns = std::min(node.first_start_ns, cell.first_start_ns);
    }
  }
}

/// Orders siblings by first start, then by name; at the top the default domain comes first, and
/// push/pop before start/end.
class SiblingOrder {
 public:
  SiblingOrder(const Tree& tree, const Session& session) : tree_(tree), session_(session) {}

  bool operator()(std::uint32_t a, std::uint32_t b) const {
    const Node& x = tree_.nodes[a];
    const Node& y = tree_.nodes[b];
    if (x.parent == kNone) {
      if (x.domain != y.domain)
        return is_domain_before(x.domain, y.domain);
      if (x.kind != y.kind)
        return x.kind == RangeKind::kPushPop;
    }
    if (x.first_start_ns != y.first_start_ns)
      return x.first_start_ns < y.first_start_ns;
    if (x.name != y.name)
      return session_.strings.view(x.name) < session_.strings.view(y.name);
    return a < b;
  }

 private:
  [[nodiscard]] bool is_domain_before(std::uint32_t a, std::uint32_t b) const {
    if (a == 0 || b == 0)
      return a == 0;
    const std::string_view name_a = session_.strings.view(session_.domains[a].name);
    const std::string_view name_b = session_.strings.view(session_.domains[b].name);
    return std::pair(name_a, a) < std::pair(name_b, b);
  }

  const Tree& tree_;
  const Session& session_;
};

/// Fills Tree::depth_first.
void order_nodes(Tree& tree, const Session& session) {
  const std::size_t count = tree.nodes.size();
  Buckets children = bucket_sort(count, count + 1, [&](std::size_t n) -> std::size_t {
    const std::uint32_t parent = tree.nodes[n].parent;
    if (parent == kNone)
      return count;
    return parent;
  });
  for (std::size_t n = 0; n <= count; ++n) {
    const auto siblings = children.of(n);
    std::sort(siblings.begin(), siblings.end(), SiblingOrder(tree, session));
  }
  tree.depth_first.clear();
  tree.depth_first.reserve(count);
  const auto roots = children.of(count);
  std::vector<std::uint32_t> waiting(roots.rbegin(), roots.rend());
  while (!waiting.empty()) {
    const std::uint32_t node = waiting.back();
    waiting.pop_back();
    tree.depth_first.push_back(node);
    const auto below = children.of(node);
    waiting.insert(waiting.end(), below.rbegin(), below.rend());
  }
}

/// Fills Tree::node_cells and Tree::node_begin.
void order_cells(Tree& tree) {
  Buckets by_node = bucket_sort(
      tree.cells.size(), tree.nodes.size(), [&](std::size_t c) { return tree.cells[c].node; });
  for (std::size_t n = 0; n < tree.nodes.size(); ++n) {
    const auto cells = by_node.of(n);
    std::sort(cells.begin(), cells.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(tree.cells[a].process, a) < std::pair(tree.cells[b].process, b);
    });
  }
  tree.node_cells = std::move(by_node.items);
  tree.node_begin = std::move(by_node.begin);
}

}  // namespace

std::vector<std::uint32_t> unlisted_inside(const Session& session) {
  if (session.unlisted_inside.empty())
    return {};
  std::vector<std::uint32_t> out(session.ranges.size(), kNone);
  for (std::uint32_t i = 0; i < session.unlisted_inside.size(); ++i)
    out[session.unlisted_inside[i].range] = i;
  return out;
}

Tree build_tree(const Session& session, Domains domains, int threads) {
  Tree tree;
  sort_by_thread(session, tree);
  tree.parent.resize(tree.range_of.size());
  tree.cell.resize(tree.range_of.size());

  const std::size_t thread_count = session.threads.size();
  const auto order = largest_first(
      thread_count, [&](std::size_t t) { return tree.thread_begin[t + 1] - tree.thread_begin[t]; });
  std::vector<ThreadResult> results(thread_count);
  const std::vector<std::uint32_t> inside = unlisted_inside(session);
  const int helpers = threads_for(session.ranges.size(), threads);
  base::parallel_for(thread_count, helpers, [&](std::size_t i) {
    const std::size_t t = order[i];
    const std::size_t begin = tree.thread_begin[t];
    const std::size_t end = tree.thread_begin[t + 1];
    sort_for_sweep(session, std::span(tree.range_of).subspan(begin, end - begin));
    Sweep sweep(session, inside, tree, static_cast<std::uint32_t>(t), domains == Domains::kNested);
    results[t] = sweep.run(begin, end);
  });

  for (std::size_t t = 0; t < thread_count; ++t)
    append_thread(t, results[t], tree);
  add_unlisted(session, tree);
  return tree;
}

void link_nodes(Tree& tree, const Session& session) {
  number_nodes(tree);
  order_nodes(tree, session);
  order_cells(tree);
}

std::vector<std::string_view> path_of(const Tree& tree,
                                      const Session& session,
                                      std::uint32_t node) {
  std::vector<std::string_view> path(tree.nodes[node].depth + 1);
  for (std::size_t i = path.size(); i-- > 0; node = tree.nodes[node].parent)
    path[i] = session.strings.view(tree.nodes[node].name);
  return path;
}

model::RangeState state_of(const Tree& tree, const Session& session, std::uint32_t node) {
  model::RangeState state;
  const auto plain = [&](const Node& n) {
    const auto found = session.plain_names.find(n.name);
    return session.strings.view(found == session.plain_names.end() ? n.name : found->second);
  };
  const auto domain_of = [&](const Node& n) {
    return session.strings.view(session.domains[n.domain].name);
  };
  if (tree.nodes[node].kind == RangeKind::kStartEnd) {
    state.start_end.push_back({domain_of(tree.nodes[node]), plain(tree.nodes[node])});
    return state;
  }
  std::vector<std::uint32_t> chain;
  for (std::uint32_t n = node; n != kNone; n = tree.nodes[n].parent)
    chain.push_back(n);
  for (std::size_t i = chain.size(); i-- > 0;) {
    const Node& outer = tree.nodes[chain[i]];
    const std::string_view domain = domain_of(outer);
    auto stack = std::find_if(state.push_pop.begin(), state.push_pop.end(), [&](const auto& s) {
      return s.domain == domain;
    });
    if (stack == state.push_pop.end())
      stack = state.push_pop.insert(state.push_pop.end(), {domain, {}});
    stack->names.push_back(plain(outer));
  }
  return state;
}

bool is_beside_program(const Session& session, const model::Range& range) {
  if (range.thread >= session.threads.size() || range.domain >= session.domains.size())
    return false;
  const std::uint32_t process = session.threads[range.thread].process;
  if (process >= session.processes.size() || !session.processes[process].operators)
    return false;
  const std::string_view domain = session.strings.view(session.domains[range.domain].name);
  return domain == "overhead" || domain == "gpu_annotation";
}

void name_by_payload(Session& session) {
  std::map<std::pair<model::StringId, std::string>, model::StringId> name_with_payload;
  for (model::Range& range : session.ranges) {
    if (range.attributes >= session.attributes.size())
      continue;
    const model::Attributes& attributes = session.attributes[range.attributes];
    std::string payload;
    switch (attributes.payload_type) {
      case model::PayloadType::kUint64:
      case model::PayloadType::kUint32: payload = std::to_string(attributes.payload_u64); break;
      case model::PayloadType::kInt64:
      case model::PayloadType::kInt32: payload = std::to_string(attributes.payload_i64); break;
      default: continue;
    }
    const auto [entry, added] =
        name_with_payload.try_emplace({range.name, payload}, model::StringId{});
    if (added) {
      entry->second = session.strings.intern(std::string(session.strings.view(range.name)) + " [" +
                                             payload + "]");
      session.plain_names.emplace(entry->second, range.name);
    }
    range.name = entry->second;
  }
}

}  // namespace rangescope::analyze
