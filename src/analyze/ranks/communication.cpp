#include "analyze/ranks/communication.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "analyze/gpu/gpu.hpp"
#include "analyze/ranks/activity.hpp"
#include "analyze/statistics/stretches.hpp"
#include "analyze/tree/busy.hpp"
#include "analyze/tree/contexts.hpp"
#include "base/workers.hpp"

namespace rangescope::analyze {
namespace {

using model::Session;

/// Of each context the node of the innermost range of the program: the own thread's before
/// inherited ones, push/pop ranges before others; kNone without one.
std::vector<std::uint32_t> innermost_nodes(const Session& session,
                                           const Tree& tree,
                                           const Contexts& contexts) {
  std::vector<std::uint32_t> nodes(contexts.size(), kNone);
  for (std::uint32_t context = 0; context < contexts.size(); ++context) {
    std::tuple<bool, bool, std::int64_t> best_precedence{};
    for (const std::uint32_t entry : contexts.of(context)) {
      std::uint32_t occurrence = entry & ~kInherited;
      const auto is_of_program = [&](std::uint32_t range) {
        return range != kNone && !is_communication(session, session.ranges[range]);
      };
      while (occurrence != kNone && !is_of_program(tree.range_of[occurrence]))
        occurrence = tree.parent[occurrence];
      if (occurrence == kNone)
        continue;
      const model::Range& range = session.ranges[tree.range_of[occurrence]];
      const bool is_own = (entry & kInherited) == 0;
      const bool is_push_pop = range.kind == model::RangeKind::kPushPop;
      const std::tuple precedence(is_own, is_push_pop, range.start_ns);
      if (nodes[context] == kNone || precedence > best_precedence) {
        nodes[context] = tree.cells[tree.cell[occurrence]].node;
        best_precedence = precedence;
      }
    }
  }
  return nodes;
}

}  // namespace

void CommunicationSum::add(double time_ns,
                           double wait_ns,
                           double hidden_wait_ns,
                           double hidden_rest_ns,
                           std::uint32_t cause,
                           double calls) {
  calls_ += calls;
  sums_.time_ns += calls * time_ns;
  sums_.wait_ns += calls * (wait_ns - hidden_wait_ns);
  sums_.transfer_ns += calls * (time_ns - wait_ns - hidden_rest_ns);
  sums_.overlap_ns += calls * (hidden_wait_ns + hidden_rest_ns);
  if (cause == kNone || wait_ns <= 0)
    return;
  causes_[cause].calls += calls;
  causes_[cause].ns += calls * (wait_ns - hidden_wait_ns);
}

void CommunicationSum::add(const CommunicationSum& other) {
  calls_ += other.calls_;
  for (const auto field : {&model::Communication::time_ns,
                           &model::Communication::transfer_ns,
                           &model::Communication::wait_ns,
                           &model::Communication::overlap_ns})
    sums_.*field += other.sums_.*field;
  for (const auto& [rank, cause] : other.causes_) {
    causes_[rank].calls += cause.calls;
    causes_[rank].ns += cause.ns;
  }
}

std::optional<model::Communication> CommunicationSum::row() const {
  if (calls_ == 0)
    return std::nullopt;
  model::Communication out = sums_;
  out.calls = std::llround(calls_);
  for (const auto& [rank, cause] : causes_)
    out.held_up_by.push_back({rank, std::llround(cause.calls), cause.ns});
  std::stable_sort(out.held_up_by.begin(), out.held_up_by.end(), [](const auto& a, const auto& b) {
    return a.ns > b.ns;
  });
  return out;
}

Surroundings::Surroundings(const Session& session,
                           const Options& options,
                           const Tree& tree,
                           const CollectiveCalls& found) {
  add_kernels(session, options);
  std::vector<model::Launch> calls;
  for (const auto* list : {&found.calls, &found.messaging, &found.standing}) {
    for (const CollectiveCall& call : *list) {
      const model::Range& range = session.ranges[call.stood != kNone ? call.stood : call.range];
      const std::int64_t end_ns = range.end_ns == kOpen ? range.start_ns : range.end_ns;
      calls.push_back({.start_ns = range.start_ns, .end_ns = end_ns, .thread = range.thread});
      const Stretches* kernels = other_kernels(call.process, call.stream);
      double hidden_ns = 0;
      if (kernels != nullptr)
        hidden_ns = static_cast<double>(kernels->within(call.start_ns, call.end_ns));
      around.emplace_back().hidden_ns = hidden_ns;
    }
  }
  const Contexts built = build_contexts(session, tree, options, calls);
  contexts.resize(built.size());
  for (std::uint32_t context = 0; context < contexts.size(); ++context)
    for (const std::uint32_t entry : built.of(context))
      contexts[context].push_back(tree.cell[entry & ~kInherited]);
  const std::vector<std::uint32_t> nodes = innermost_nodes(session, tree, built);
  for (std::size_t call = 0; call < around.size(); ++call) {
    around[call].context = built.of_launch[call];
    around[call].path = nodes[around[call].context];
  }
}

void Surroundings::add_kernels(const Session& session, const Options& options) {
  std::size_t cards = 0;
  card_of_ = cards_of_streams(session, cards);
  const auto place_of = [&](std::uint32_t process, std::uint32_t card) {
    const auto next = static_cast<std::uint32_t>(places_.size());
    return places_.try_emplace({process, card}, next).first->second;
  };
  std::vector<std::uint32_t> place_on_card, place_on_any_card;
  for (std::size_t stream = 0; stream < session.streams.size(); ++stream) {
    const std::uint32_t process = session.streams[stream].process;
    place_on_card.push_back(place_of(process, card_of_[stream]));
    place_on_any_card.push_back(place_of(process, kNone));
  }
  stretches_.resize(places_.size());
  const std::vector<char> nccl = nccl_kernels(session);
  for (const model::Kernel& kernel : session.kernels) {
    const bool is_nccl = kernel.name < nccl.size() && nccl[kernel.name] != 0;
    if (kernel.stream >= session.streams.size() || is_nccl)
      continue;
    stretches_[place_on_card[kernel.stream]].add(kernel.start_ns, kernel.end_ns);
    stretches_[place_on_any_card[kernel.stream]].add(kernel.start_ns, kernel.end_ns);
  }
  base::parallel_for(
      stretches_.size(), options.threads, [&](std::size_t place) { stretches_[place].finish(); });
}

const Stretches* Surroundings::other_kernels(std::uint32_t process, std::uint32_t stream) const {
  const std::uint32_t card = stream < card_of_.size() ? card_of_[stream] : kNone;
  const auto place = places_.find({process, card});
  return place == places_.end() ? nullptr : &stretches_[place->second];
}

std::map<std::uint32_t, CommunicationSum> sum_up(
    const std::vector<Timed>& timed,
    const std::vector<Around>& around,
    const std::vector<std::vector<std::uint32_t>>& contexts,
    const PlaceRules& rules) {
  std::map<std::uint32_t, CommunicationSum> of_context, out;
  for (const Timed& call : timed) {
    const Around& place = around[call.number];
    if (place.context == kNone || std::isnan(place.hidden_ns))
      return {};
    const double time_ns = call_ns_of(*call.call);
    const double wait_ns = std::min(call.wait_ns, time_ns);
    const double hidden_wait_ns = rules.hidden_ns(call, std::llround(wait_ns));
    of_context[place.context].add(time_ns,
                                  wait_ns,
                                  hidden_wait_ns,
                                  place.hidden_ns - hidden_wait_ns,
                                  call.cause,
                                  place.represented_calls);
  }
  std::vector<std::uint32_t> last_context(rules.count, kNone);
  for (const auto& [context, sum] : of_context) {
    for (std::uint32_t place : contexts[context]) {
      while (place != kNone) {
        const bool is_counted = std::exchange(last_context[rules.same(place)], context) == context;
        if (is_counted)
          break;
        out[place].add(sum);
        place = rules.parent(place);
      }
    }
  }
  return out;
}

void add_communication(const Regions& regions,
                       const CollectiveCalls& found,
                       model::Report& report) {
  const Session& session = regions.session;
  const Tree& tree = regions.tree;
  const Surroundings around(session, regions.options, tree, found);
  const auto name = [&](std::uint32_t node, std::vector<std::string>& path) {
    for (const auto part : path_of(tree, session, node))
      path.emplace_back(part);
  };
  const std::vector<Timed> timed =
      report_calls(session, found, around.around, name, has_gpu_work(session), report);
  PlaceRules rules;
  rules.hidden_ns = [&](const Timed& timed_call, std::int64_t first_ns) {
    const CollectiveCall& call = *timed_call.call;
    const Stretches* kernels = around.other_kernels(call.process, call.stream);
    if (kernels == nullptr)
      return 0.0;
    return static_cast<double>(kernels->within(call.start_ns, call.start_ns + first_ns));
  };
  rules.parent = [&](std::uint32_t cell) { return tree.cells[cell].parent; };
  rules.same = [&](std::uint32_t cell) { return tree.cells[cell].node; };
  rules.count = tree.nodes.size();
  const std::map<std::uint32_t, CommunicationSum> of_cell =
      sum_up(timed, around.around, around.contexts, rules);
  const auto sum_of = [&](std::span<const std::uint32_t> members) {
    CommunicationSum sum;
    for (const std::uint32_t r : members)
      for (const std::uint32_t cell : regions.cells(r))
        if (const auto of_this = of_cell.find(cell); of_this != of_cell.end())
          sum.add(of_this->second);
    return sum.row();
  };
  for (std::uint32_t r = 0; r < regions.keys.size() && r < report.regions.size(); ++r)
    report.regions[r].communication = sum_of(std::span(&r, 1));
  for (model::TableRow& row : report.rows)
    if (row.merged)
      row.merged->communication = sum_of(row.members);
  add_activity(regions, around, timed, report);
}

}  // namespace rangescope::analyze
