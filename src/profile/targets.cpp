#include "profile/targets.hpp"

#include <algorithm>
#include <map>

#include "base/text.hpp"
#include "model/kernel_name.hpp"

namespace rangescope::profile {
namespace {

/// Regions of a whole session, nothing left out, without kernels' tables.
base::Result<model::Report> regions_of(const model::Session& session, const analyze::Options& base_options,
                                       const std::vector<std::string>& include, std::size_t kernels) {
  analyze::Options options = base_options;
  options.aggregate = true;
  options.per_process = options.per_thread = false;
  options.include = include;
  options.exclude.clear();
  options.top_kernels = kernels;
  options.samples = 0;
  return analyze::analyze(session, options);
}

bool aggregate(const model::Region& region) {
  return !region.process && !region.thread;
}

/// As ncu's name base `function` has it.
std::string function_name(const model::KernelRow& row) {
  return row.short_name.empty() ? std::string(model::short_kernel_name(row.name)) : row.short_name;
}

}  // namespace

bool names_region(const model::RangeExpression& expression, const model::Region& region) {
  if (region.path.empty()) return false;
  if (region.kind == model::RangeKind::kStartEnd) return expression.names_start_end(region.domain, region.path.back());
  const std::vector<std::string_view> path(region.path.begin(), region.path.end());
  return expression.matches_stack(region.domain, path);
}

base::Result<std::vector<std::string>> resolve_expressions(std::span<const std::string> written,
                                                           const model::Session* session,
                                                           std::vector<std::string>& notes) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& expression) {
    if (std::find(out.begin(), out.end(), expression) == out.end()) out.push_back(expression);
  };
  std::optional<model::Report> seen;
  if (session)
    if (auto report = regions_of(*session, {}, {}, 0)) seen = std::move(*report);
  const auto matches = [&](const std::string& text) {
    const auto expression = model::RangeExpression::parse(text);
    return expression && seen &&
           std::any_of(seen->regions.begin(), seen->regions.end(), [&](const model::Region& region) {
             return aggregate(region) && names_region(*expression, region);
           });
  };
  for (const std::string& one : written) {
    auto normal = model::normalize(one);
    if (!normal) return base::fail(std::move(normal));
    bool changed = false;
    for (const model::NormalizedTerm& term : normal->terms) {
      if (!term.push_pop || !term.start_end) {
        add(term.push_pop ? *term.push_pop : *term.start_end);
        changed = changed || (term.push_pop ? *term.push_pop : *term.start_end) != term.written;
        continue;
      }
      const bool stack = matches(*term.push_pop), spans = matches(*term.start_end);
      if (stack != spans) {
        add(stack ? *term.push_pop : *term.start_end);
        notes.push_back("'" + term.written + "' was seen as " + (stack ? "push/pop" : "start/end") +
                        " range: --nvtx-include " + base::shell_quote(stack ? *term.push_pop : *term.start_end));
        continue;
      }
      if (seen && !stack) notes.push_back("no range was seen that '" + term.written + "' names");
      add(*term.push_pop);
      add(*term.start_end);
      changed = true;
    }
    if (changed) notes.insert(notes.end(), normal->notes.begin(), normal->notes.end());
  }
  return out;
}

std::optional<bool> is_registered(const model::Session& session, std::string_view text) {
  auto normal = model::normalize(text);
  if (!normal) return std::nullopt;
  std::optional<bool> found;
  for (const model::NormalizedTerm& term : normal->terms)
    for (const auto& form : {term.push_pop, term.start_end}) {
      if (!form) continue;
      const auto expression = model::RangeExpression::parse(*form);
      if (!expression) continue;
      std::map<std::pair<std::uint32_t, std::uint32_t>, bool> tried;  // name and domain repeat a million times
      for (const model::Range& range : session.ranges) {
        const auto key = std::pair(range.domain, range.name);
        auto known = tried.find(key);
        if (known == tried.end()) {
          const std::string_view name = session.strings.view(range.name),
                                 domain = session.strings.view(session.domains[range.domain].name);
          const std::vector<std::string_view> stack{name};
          known =
              tried
                  .emplace(key, range.kind == model::RangeKind::kStartEnd ? expression->names_start_end(domain, name)
                                                                          : expression->matches_stack(domain, stack))
                  .first;
        }
        if (known->second) found = found.value_or(true) && range.registered;
      }
    }
  return found;
}

std::vector<std::string> unmeasured(const model::Session& session, const std::vector<std::string>& expressions) {
  std::vector<std::string> out;
  for (const std::string& text : expressions) {
    const auto expression = model::RangeExpression::parse(text);
    const bool found =
        expression &&
        std::any_of(session.measurements.begin(), session.measurements.end(), [&](const model::Measurement& one) {
          model::RangeState state;
          for (const model::OpenRange& range : one.ranges) {
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
          return expression->matches(state);
        });
    if (!found) out.push_back(text);
  }
  return out;
}

base::Result<std::vector<ChosenKernel>> choose_kernels(const model::Session& session,
                                                       const std::vector<std::string>& expressions,
                                                       const analyze::Options& options, std::size_t most) {
  auto report = regions_of(session, options, expressions, 1000000);
  if (!report) return base::fail(std::move(report));
  std::map<std::string, ChosenKernel> by_name;
  const auto add = [&](const model::KernelRow& row) {
    ChosenKernel& kernel = by_name[function_name(row)];
    kernel.total_ns += row.total_ns;
    kernel.calls += row.calls;
  };
  if (expressions.empty()) {
    for (const model::KernelRow& row : report->kernels) add(row);
  } else {
    for (const model::Region& region : report->regions)
      if (aggregate(region) && region.parent == model::kNone && region.gpu)
        for (const model::KernelRow& row : region.gpu->top_kernels) add(row);
  }
  std::vector<ChosenKernel> out;
  for (auto& [name, kernel] : by_name) {
    kernel.name = name;
    out.push_back(std::move(kernel));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const ChosenKernel& a, const ChosenKernel& b) { return a.total_ns > b.total_ns; });
  if (out.size() > most) out.resize(most);
  return out;
}

}  // namespace rangescope::profile
