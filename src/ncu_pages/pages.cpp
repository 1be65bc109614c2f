#include "ncu_pages/pages.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "model/range_expression.hpp"

namespace rangescope::ncu_pages {

using base::Code;
using base::fail;

base::Result<NameFilter> NameFilter::make(const std::vector<std::string>& names, std::string_view option) {
  NameFilter filter;
  constexpr std::string_view kRegex = "regex:";
  for (const std::string& name : names) {
    if (!name.starts_with(kRegex)) {
      filter.exact_.push_back(name);
      continue;
    }
    auto pattern = model::NameRegex::parse(std::string_view(name).substr(kRegex.size()));
    if (!pattern)
      return fail(Code::kUsage, "not a regular expression: " + pattern.error().what, std::string(option) + " " + name);
    filter.patterns_.push_back(std::move(*pattern));
  }
  return filter;
}

bool NameFilter::matches(std::string_view name) const {
  if (empty()) return true;
  if (std::ranges::find(exact_, name) != exact_.end()) return true;
  return std::ranges::any_of(patterns_, [&](const auto& pattern) { return pattern.found_in(name); });
}

std::string_view result_name(const Result& result, std::string_view base) {
  switch (result.kind) {
    case ResultKind::kRange: return "range";
    case ResultKind::kGraph: return "graph";
    case ResultKind::kCommandList: return "cmdlist";
    case ResultKind::kKernel: break;
  }
  const std::string_view wanted = base == "function"  ? result.function
                                  : base == "mangled" ? result.mangled
                                                      : result.demangled;
  if (!wanted.empty()) return wanted;
  return result.function.empty() ? result.demangled : result.function;
}

DeviceLabels::DeviceLabels(const File& file) : file_(file), roles_(file.string_count()) {
  for (std::size_t id = 0; id < roles_.size(); ++id) {
    const std::string_view name = file.string(id);
    if (name == "device__attribute_device_index") roles_[id] = 1;
    if (name == "device__attribute_compute_capability_major") roles_[id] = 2;
    if (name == "device__attribute_compute_capability_minor") roles_[id] = 3;
  }
}

DeviceLabel DeviceLabels::of(const Result& result) const {
  std::optional<std::uint64_t> device, major, minor;
  for (const MetricEntry& metric : result.metrics) {
    if (metric.name >= roles_.size() || roles_[metric.name] == 0 || !metric.value.is_integer()) continue;
    (roles_[metric.name] == 1 ? device : roles_[metric.name] == 2 ? major : minor) = metric.value.integer;
  }
  if (!major || !minor) {
    for (const DeviceInfo& info : file_.session.devices) {
      if (info.process != result.process || info.id != device.value_or(0)) continue;
      for (const Attribute& attribute : info.attributes) {
        if (attribute.name == "device__attribute_compute_capability_major") major = attribute.value.integer;
        if (attribute.name == "device__attribute_compute_capability_minor") minor = attribute.value.integer;
      }
    }
  }
  DeviceLabel label;
  label.ordinal = std::to_string(device.value_or(0));
  label.capability = std::to_string(major.value_or(0)) + "." + std::to_string(minor.value_or(0));
  label.number = major.value_or(0) * 10 + minor.value_or(0);
  return label;
}

namespace {

/// Does the state of a result match an expression of ncu's grammar?
bool matches_state(const model::RangeExpression& expression, const Result& result) {
  if (!result.nvtx) return false;
  const NvtxState& state = *result.nvtx;
  model::RangeState open;
  const auto domain_name = [&](const NvtxRange& range) -> std::string_view {
    const NvtxDomain* domain = state.domain(range.domain);
    return domain == nullptr || domain->name == model::kDefaultDomain ? std::string_view{} : domain->name;
  };
  for (const NvtxThread& thread : state.threads) {
    if (thread.tid != result.thread && !state.process_scope) continue;
    for (std::size_t i = 0; i < thread.stack.size(); ++i) {
      if (i == 0 || thread.stack[i].domain != thread.stack[i - 1].domain)
        open.push_pop.push_back({domain_name(thread.stack[i]), {}});
      open.push_pop.back().names.push_back(state.effective_name(thread.stack[i]));
    }
  }
  for (const NvtxRange& range : state.start_end)
    open.start_end.push_back({domain_name(range), state.effective_name(range)});
  return expression.matches(open);
}

base::Result<std::vector<model::RangeExpression>> parse_all(const std::vector<std::string>& texts) {
  std::vector<model::RangeExpression> expressions;
  for (const std::string& text : texts) {
    expressions.push_back(TRY(model::RangeExpression::parse(text)));
  }
  return expressions;
}

}  // namespace

base::Result<Selection> Selection::make(const File& file, const PageOptions& options,
                                        std::vector<model::Loss>& losses) {
  auto include = TRY(parse_all(options.nvtx_include));
  auto exclude = TRY(parse_all(options.nvtx_exclude));
  auto names = TRY(NameFilter::make(options.kernel_names, "--kernel-name"));
  Selection selection;
  selection.file_ = &file;
  std::uint64_t unknown = 0, matching = 0, damaged = 0;
  std::string first;
  for (std::uint32_t id = 0; id < file.results.size(); ++id) {
    if (!options.results.empty() && !std::ranges::binary_search(options.results, id)) continue;
    const auto result = decode(file, file.results[id], unknown, {.sections = false, .rules = false, .metrics = false});
    if (!result) {
      if (damaged++ == 0) first = result.error().where;
      continue;
    }
    if (!names.empty() && !names.matches(result_name(*result, options.kernel_name_base))) continue;
    const auto in = [&](const auto& list) {
      return std::ranges::any_of(list, [&](const auto& expression) { return matches_state(expression, *result); });
    };
    if (!include.empty() && !in(include)) continue;
    if (in(exclude)) continue;
    if (matching++ < options.launch_skip) continue;
    if (selection.ids_.size() >= options.launch_count) break;
    selection.ids_.push_back(id);
  }
  if (damaged > 0) {
    losses.push_back({"damaged_result", damaged, "results cannot be decoded and are left out, the first at " + first});
  }
  if (selection.ids_.empty()) {
    const auto alone = std::ranges::find_if(
        options.nvtx_include, [](const std::string& text) { return text.find_first_of("/@[]*") == std::string::npos; });
    std::string hint = "Leave out --nvtx-include, --nvtx-exclude and --kernel-name to see what there is.";
    if (alone != options.nvtx_include.end())
      hint += " To ncu a name alone is a start/end range: push/pop ranges are --nvtx-include '" + *alone + "/'.";
    return fail(Code::kNothingCaptured,
                file.results.empty() ? "the report holds no results"
                                     : "the filters match none of " + base::counted(file.results.size(), "result"),
                file.path, file.results.empty() ? "" : hint);
  }
  return selection;
}

void Selection::for_each(Wanted wanted, const std::function<void(std::uint32_t, const Result&)>& take) const {
  std::uint64_t unknown = 0;
  for (const std::uint32_t id : ids_) {
    const auto result = decode(*file_, file_->results[id], unknown, wanted);
    if (result) take(id, *result);
  }
}

base::Result<void> print_pages(const File& file, const PageOptions& options, const Out& out,
                               std::vector<model::Loss>& losses) {
  losses.insert(losses.end(), file.losses.begin(), file.losses.end());
  if (options.page == Page::kSession) return print_session(file, options, out);
  auto selection = TRY(Selection::make(file, options, losses));
  if (options.summary != Summary::kNone) return print_summary(selection, options, out);
  switch (options.page) {
    case Page::kRaw: return print_raw(selection, options, out);
    case Page::kSource: return print_source(selection, options, out);
    default: return print_details(selection, options, out);
  }
}

}  // namespace rangescope::ncu_pages
