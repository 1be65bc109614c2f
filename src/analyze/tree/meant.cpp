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
  const auto seen = [&](const model::RangeExpression& form) {
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
      const bool stack = seen(term.forms[0]), spans = seen(term.forms[1]);
      if (stack != spans) {
        term.forms.erase(stack ? term.forms.begin() + 1 : term.forms.begin());
        notes.push_back("'" + term.written + "' was seen as " + (stack ? "push/pop" : "start/end") +
                        " range: --nvtx-include " + base::shell_quote(term.forms.front().text()));
      } else if (!stack) {
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
    const bool found = std::any_of(session.measurements.begin(),
                                   session.measurements.end(),
                                   [&](const model::Measurement& result) {
                                     const model::RangeState state = state_in(session, result);
                                     return std::any_of(term.forms.begin(),
                                                        term.forms.end(),
                                                        [&](const model::RangeExpression& form) {
                                                          return form.matches(state);
                                                        });
                                   });
    if (!found)
      out.push_back(term);
  }
  return out;
}

std::vector<std::string> unmatched(const model::Report& report,
                                   const model::RangeSelection& ranges) {
  std::vector<std::string> out;
  for (const model::RangeTerm& term : ranges.include) {
    const bool found =
        std::any_of(report.regions.begin(), report.regions.end(), [&](const model::Region& region) {
          const std::vector<std::string_view> path(region.path.begin(), region.path.end());
          return region.occurrences > 0 && term.names_region(region.domain, path, region.kind);
        });
    if (!found)
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
    ChosenKernel& kernel =
        by_name[row.short_name.empty() ? std::string(model::short_kernel_name(row.name))
                                       : row.short_name];
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
