#include "analyze/tree/meant.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include "analyze/analyze.hpp"
#include "analyze/tree/tree.hpp"
#include "base/text.hpp"
#include "model/kernel_name.hpp"

namespace rangescope::analyze {
namespace {

Tree linked_tree(const model::Session& session) {
  Tree tree = build_tree(session, Domains::kSeparate, 0);
  link_nodes(tree, session);
  return tree;
}

std::string_view domain_of(const Tree& tree, const model::Session& session, std::uint32_t node) {
  return session.strings.view(session.domains[tree.nodes[node].domain].name);
}

/// What was open around a result, as ncu sees it.
model::RangeState state_in(const model::Session& session, const model::Measurement& result) {
  model::RangeState state;
  for (const model::OpenRange& range : result.ranges) {
    const std::string_view name = session.strings.view(range.name),
                           domain = session.strings.view(session.domains[range.domain].name);
    if (range.kind == model::RangeKind::kStartEnd) {
      state.start_end.push_back({domain, name});
      continue;
    }
    if (state.push_pop.empty() || state.push_pop.back().domain != domain)
      state.push_pop.push_back({domain, {}});
    state.push_pop.back().names.push_back(name);
  }
  return state;
}

}  // namespace

void settle_kinds(model::RangeSelection& ranges,
                  const model::Session& session,
                  std::vector<std::string>& notes) {
  const Tree tree = linked_tree(session);
  const auto names_a_range = [&](const model::RangeExpression& form) {
    for (std::uint32_t node = 0; node < tree.nodes.size(); ++node) {
      if (form.names_region(
              domain_of(tree, session, node), path_of(tree, session, node), tree.nodes[node].kind))
        return true;
    }
    return false;
  };
  for (auto* terms : {&ranges.include, &ranges.exclude}) {
    for (model::RangeTerm& term : *terms) {
      if (term.kind_said())
        continue;
      const bool is_push_pop = names_a_range(term.forms[0]);
      const bool is_start_end = names_a_range(term.forms[1]);
      if (is_push_pop != is_start_end) {
        term.forms.erase(term.forms.begin() + (is_push_pop ? 1 : 0));
        const auto kind = is_push_pop ? model::RangeKind::kPushPop : model::RangeKind::kStartEnd;
        const std::string kind_text(model::range_kind_text(kind));
        notes.push_back("'" + term.written + "' was seen as " + kind_text +
                        " range: --nvtx-include " + base::shell_quote(term.forms.front().text()));
      } else if (!is_push_pop) {
        notes.push_back("no range was seen that '" + term.written + "' names");
      }
    }
  }
}

std::optional<bool> is_registered(const model::Session& session, const model::RangeTerm& term) {
  const Tree tree = linked_tree(session);
  std::vector<char> named(tree.nodes.size());
  for (std::uint32_t node = 0; node < tree.nodes.size(); ++node) {
    named[node] = term.names_itself(
        domain_of(tree, session, node), path_of(tree, session, node), tree.nodes[node].kind);
  }
  std::optional<bool> found;
  for (std::size_t o = 0; o < tree.range_of.size(); ++o) {
    if (named[tree.cells[tree.cell[o]].node])
      found = found.value_or(true) && session.ranges[tree.range_of[o]].registered;
  }
  return found;
}

std::vector<model::RangeTerm> unmeasured(const model::Session& session,
                                         const model::RangeSelection& ranges) {
  std::vector<model::RangeTerm> out;
  for (const model::RangeTerm& term : ranges.include) {
    const auto is_of_term = [&](const model::Measurement& result) {
      const model::RangeState state = state_in(session, result);
      const auto matches = [&](const model::RangeExpression& form) { return form.matches(state); };
      return std::ranges::any_of(term.forms, matches);
    };
    if (std::ranges::none_of(session.measurements, is_of_term))
      out.push_back(term);
  }
  return out;
}

std::vector<std::string> unmatched(const model::Report& report,
                                   const model::RangeSelection& ranges) {
  std::vector<std::string> out;
  for (const model::RangeTerm& term : ranges.include) {
    const auto is_of_term = [&](const model::Region& region) {
      const std::vector<std::string_view> path(region.path.begin(), region.path.end());
      return region.occurrences > 0 && term.names_region(region.domain, path, region.kind);
    };
    if (std::ranges::none_of(report.regions, is_of_term))
      out.push_back(term.written);
  }
  return out;
}

base::Result<std::vector<ChosenKernel>> top_kernels(const model::Session& session,
                                                    Options options,
                                                    std::size_t most) {
  options.aggregate = true;
  options.per_process = options.per_thread = false;
  options.top_kernels = std::numeric_limits<std::size_t>::max();
  options.samples = 0;
  const auto report = analyze(session, options);
  if (!report)
    return tl::make_unexpected(report.error());
  std::map<std::string, ChosenKernel> by_name;
  const auto add = [&](const model::KernelRow& row) {
    const bool has_short_name = !row.short_name.empty();
    ChosenKernel& kernel =
        by_name[has_short_name ? row.short_name : std::string(model::short_kernel_name(row.name))];
    kernel.total_ns += row.total_ns;
    kernel.calls += row.calls;
  };
  if (options.ranges.include.empty()) {
    for (const model::KernelRow& row : report->kernels)
      add(row);
  } else {
    for (const model::Region& region : report->regions)
      if (region.parent == model::kNone && region.gpu)
        for (const model::KernelRow& row : region.gpu->top_kernels)
          add(row);
  }
  std::vector<ChosenKernel> out;
  for (auto& [name, kernel] : by_name) {
    kernel.name = name;
    out.push_back(std::move(kernel));
  }
  std::ranges::stable_sort(out, std::greater<>(), &ChosenKernel::total_ns);
  if (out.size() > most)
    out.resize(most);
  return out;
}

}  // namespace rangescope::analyze
