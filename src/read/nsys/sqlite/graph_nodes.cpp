#include "read/nsys/sqlite/graph_nodes.hpp"

#include <algorithm>

namespace rangescope::read::nsys_sqlite {
namespace {

struct Question {
  std::uint32_t thread = 0;
  std::int64_t at_ns = 0;
  std::uint32_t node = 0;
};

bool operator==(const model::OpenRange& a, const model::OpenRange& b) {
  return a.domain == b.domain && a.name == b.name && a.kind == b.kind;
}

std::uint32_t path_index(model::Session& session, std::vector<model::OpenRange> path) {
  const auto same = [&](const auto& other) {
    return std::equal(path.begin(), path.end(), other.begin(), other.end(),
                      [](const auto& a, const auto& b) { return a == b; });
  };
  auto& paths = session.captured_paths;
  const auto found = std::find_if(paths.begin(), paths.end(), same);
  const auto index = static_cast<std::uint32_t>(found - paths.begin());
  if (found == paths.end()) paths.push_back(std::move(path));
  return index;
}

}  // namespace

std::vector<NodeEvent> read_node_events(const Source& source, Scanned& scanned) {
  std::vector<NodeEvent> events;
  const Table* table = source.find("CUDA_GRAPH_NODE_EVENTS");
  if (table == nullptr) table = source.find("CUDA_GRAPH_EVENTS");
  if (table == nullptr || !table->has("graphNodeId") || !table->has("start") || !table->has("globalTid")) return events;
  scanned = source.scan(
      *table, {"start", "globalTid", "graphNodeId", "originalGraphNodeId"}, [&](std::size_t) { events.clear(); },
      [&](const Value* row) {
        if (!row[0].integer() || !row[1].integer() || !row[2].integer()) return;
        events.push_back({process_of(row[1].bits), static_cast<std::uint64_t>(row[2].bits),
                          static_cast<std::uint64_t>(row[3].as_int()), row[0].bits,
                          static_cast<std::uint64_t>(row[1].bits)});
      });
  return events;
}

void place_nodes(model::Session& session, const std::vector<NodeKey>& nodes, const std::vector<NodeEvent>& events,
                 const std::map<std::uint64_t, std::uint32_t>& thread_of) {
  if (nodes.empty() || events.empty()) return;
  std::map<std::pair<std::uint64_t, std::uint64_t>, const NodeEvent*> by_id;
  for (const NodeEvent& event : events) {  // a clone has two rows: its making, and whose clone it is
    const auto [at, added] = by_id.emplace(std::pair(event.process, event.id), &event);
    if (!added && at->second->original == 0 && event.original != 0) at->second = &event;
  }
  std::vector<Question> questions;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    auto found = by_id.find({nodes[i].process, nodes[i].id});
    for (int hops = 0; found != by_id.end() && found->second->original != 0 && hops < 8; ++hops) {
      const auto original = by_id.find({nodes[i].process, found->second->original});
      if (original == by_id.end() || original == found) break;
      found = original;
    }
    if (found == by_id.end()) continue;
    const auto thread = thread_of.find(found->second->thread);
    if (thread != thread_of.end())
      questions.push_back({thread->second, found->second->at_ns, static_cast<std::uint32_t>(i)});
  }
  std::sort(questions.begin(), questions.end(), [](const Question& a, const Question& b) {
    return a.thread != b.thread ? a.thread < b.thread : a.at_ns < b.at_ns;
  });
  for (std::size_t first = 0; first < questions.size();) {
    const std::uint32_t thread = questions[first].thread;
    std::vector<const model::Range*> open;
    std::size_t next = 0;
    const auto& ranges = session.ranges;
    for (; first < questions.size() && questions[first].thread == thread; ++first) {
      const std::int64_t at = questions[first].at_ns;
      for (; next < ranges.size() && ranges[next].start_ns <= at; ++next) {
        const model::Range& range = ranges[next];
        if (range.thread != thread || range.kind != model::RangeKind::kPushPop || range.end_ns < at) continue;
        std::erase_if(open, [&](const model::Range* r) { return r->end_ns < range.start_ns; });
        open.push_back(&range);
      }
      std::erase_if(open, [&](const model::Range* r) { return r->end_ns < at; });
      if (open.empty()) continue;
      std::vector<model::OpenRange> path;
      for (const model::Range* range : open) path.push_back({range->domain, range->name, range->kind});
      session.graph_nodes[questions[first].node].captured_path = path_index(session, std::move(path));
    }
  }
}

}  // namespace rangescope::read::nsys_sqlite
