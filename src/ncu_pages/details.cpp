#include "ncu_pages/details.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>

#include "base/text.hpp"
#include "ncu_pages/format.hpp"
#include "ncu_pages/head.hpp"
#include "read/ncu/report/wire.hpp"

namespace rangescope::ncu_pages {
namespace {

constexpr std::size_t kTextWidth = 110;

/// Workload kinds as section files number them, by ResultKind.
constexpr unsigned kKinds[] = {1, 2, 4, 3};

/// `kinds` are those of the section, for a metric that names none itself.
bool passes(const Filter& filter, ResultKind kind, std::uint64_t capability, std::uint32_t kinds) {
  const auto within = [&](std::uint64_t least, std::uint64_t most) {
    return capability >= least && (most == 0 || capability <= most);
  };
  if (!within(filter.least_capability, filter.most_capability)) return false;
  if (!filter.capabilities.empty() &&
      std::ranges::none_of(filter.capabilities, [&](const auto& range) { return within(range.first, range.second); })) {
    return false;
  }
  if (filter.kinds != 0) kinds = filter.kinds;
  return kinds == 0 || (kinds >> kKinds[static_cast<std::size_t>(kind)] & 1) != 0;
}

/// The metric that a section shows on this device: itself or the option whose filter passes; "" for none.
std::string_view chosen_name(const SectionMetric& metric, ResultKind kind, std::uint64_t capability,
                             std::uint32_t kinds) {
  for (const SectionMetric::Option& option : metric.options) {
    if (passes(option.filter, kind, capability, kinds)) return option.name;
  }
  return passes(metric.filter, kind, capability, kinds) ? metric.name : std::string_view{};
}

/// "@section:LaunchStats:Launch Statistics@" -> "Launch Statistics"; "@url:guide:https://x@" -> "guide (https://x)"
std::string link_text(std::string_view link) {
  const std::size_t first = link.find(':');
  const std::string_view kind = link.substr(0, first);
  const std::string_view rest = link.substr(first + 1);
  const std::size_t second = rest.find(':');
  if (second == std::string_view::npos) return std::string(rest);
  const std::string_view a = rest.substr(0, second), b = rest.substr(second + 1);
  if (kind == "url") return std::string(a) + " (" + std::string(b) + ")";
  return std::string(b);
}

std::string speedup_text(double percent) {
  return fmt::format("{:.4g}", percent);
}

/// Text of a rule's message without the marks that the user interface makes links of.
std::string plain_message(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t open = text.find('@');
    if (open == std::string_view::npos) return out.append(text);
    const std::size_t close = text.find('@', open + 1);
    const std::string_view link =
        close == std::string_view::npos ? std::string_view{} : text.substr(open + 1, close - open - 1);
    const std::string_view kind = link.substr(0, link.find(':'));
    if (kind == "section" || kind == "url" || kind == "source" || kind == "metric") {
      out.append(text.substr(0, open)).append(link_text(link));
      text.remove_prefix(close + 1);
    } else {
      out.append(text.substr(0, open + 1));
      text.remove_prefix(open + 1);
    }
  }
  return out;
}

/// By Severity; "" for messages that are not shown.
std::string_view message_kind(std::uint32_t type) {
  constexpr std::string_view kShown[] = {"", "INF", "WRN", "ERR", "OPT"};
  return type < std::size(kShown) ? kShown[type] : "";
}

}  // namespace

base::Result<SectionView> SectionView::make(const Selection& selection, const PageOptions& options) {
  SectionView view(selection.file(), options);
  view.sections_ = TRY(NameFilter::make(options.sections, "--section"));
  view.metrics_ = TRY(NameFilter::make(options.metrics, "--metrics"));
  if (view.sections_.empty()) return view;
  std::set<std::string> known;
  selection.for_each({.sections = true, .rules = false, .metrics = false}, [&](std::uint32_t, const Result& result) {
    for (const Section& section : result.sections) known.emplace(section.identifier);
  });
  const std::vector<std::string> names(known.begin(), known.end());
  for (const std::string& asked : options.sections) {
    auto one = TRY(NameFilter::make({asked}, "--section"));
    if (std::ranges::any_of(names, [&](const std::string& name) { return one.matches(name); })) continue;
    std::string hint = base::did_you_mean(asked, names);
    if (hint.empty()) hint = "The report holds: " + base::join(names, ", ") + ".";
    return base::fail(base::Code::kUsage, "no section of the report is called that", "--section " + asked,
                      std::move(hint));
  }
  return view;
}

std::vector<ShownSection> SectionView::of(const Result& result, const DeviceLabel& device) const {
  std::vector<ShownSection> shown;
  std::vector<const Section*> sorted;
  for (const Section& section : result.sections) {
    if (!sections_.empty() && !sections_.matches(section.identifier)) continue;
    sorted.push_back(&section);
  }
  std::ranges::stable_sort(sorted, {},
                           [](const Section* section) { return std::tie(section->order, section->display_name); });
  std::unordered_map<std::string_view, const MetricEntry*> metrics;
  for (const MetricEntry& metric : result.metrics) metrics.emplace(file_->string(metric.name), &metric);
  for (const Section* section : sorted) {
    ShownSection& one = shown.emplace_back();
    one.section = section;
    std::vector<const SectionMetric*> listed;
    if (options_->part != Part::kBody) {
      for (const SectionMetric& metric : section->header) listed.push_back(&metric);
    }
    if (options_->part != Part::kHeader) {
      for (const SectionMetric& metric : section->metrics) listed.push_back(&metric);
    }
    std::vector<std::pair<std::string_view, const SectionMetric*>> chosen;
    for (const SectionMetric* metric : listed) {
      const std::string_view name = chosen_name(*metric, result.kind, device.number, section->filter.kinds);
      std::vector<std::string_view> names{name};
      if (is_container(name)) {
        const auto entry = metrics.find(name);
        names = entry == metrics.end() ? std::vector<std::string_view>{} : base::split(entry->second->value.text, ',');
      }
      for (const std::string_view one_name : names) {
        if (!one_name.empty() && (metrics_.empty() || metrics_.matches(one_name)))
          chosen.emplace_back(one_name, metric);
      }
    }
    std::ranges::stable_sort(chosen, {}, [](const auto& pair) { return pair.first; });
    for (const auto& [name, metric] : chosen) {
      if (!one.rows.empty() && one.rows.back().name == name) continue;
      const std::string_view label = metric->label.empty() || is_container(metric->name) ? name : metric->label;
      std::string text(options_->metric_name == MetricName::kName ? name : label);
      if (options_->metric_name == MetricName::kLabelName && label != name) text += " (" + std::string(name) + ")";
      const auto found = metrics.find(name);
      one.rows.push_back({name, std::move(text), found == metrics.end() ? nullptr : found->second});
    }
    for (const Rule& rule : result.rules) {
      if (rule.section == section->identifier) one.rules.push_back(&rule);
    }
  }
  return shown;
}

namespace {

class Details {
 public:
  Details(const Selection& selection, const PageOptions& options, const Out& out, SectionView view)
      : selection_(selection), options_(options), out_(out), view_(std::move(view)), format_(options) {}

  void csv() {
    CsvHead head(selection_.file(), options_);
    bool rules = false;
    selection_.for_each({.metrics = false}, [&](std::uint32_t, const Result& result) {
      head.see(result);
      rules |= !result.rules.empty();
    });
    std::string text;
    head.names(text);
    text += R"(,"Section Name","Metric Name","Metric Unit","Metric Value")";
    if (rules) text += R"(,"Rule Name","Rule Type","Rule Description","Estimated Speedup Type","Estimated Speedup")";
    text += '\n';
    selection_.for_each({}, [&](std::uint32_t id, const Result& result) {
      std::string ids;
      head.values(ids, id, result);
      for (const ShownSection& section : view_.of(result, head.labels().of(result))) {
        for (const SectionRow& row : section.rows) {
          const auto shown = value(row);
          text += ids;
          csv_cells(text, {section.section->display_name, row.label, shown.unit, shown.value});
          // metric rows end in one empty field where there are rules: ncu's rows are ragged
          text += rules ? ",\n" : "\n";
        }
        for (const Rule* rule : section.rules) {
          for (const RuleMessage& message : rule->messages) csv_rule(text, ids, *rule, message);
        }
      }
      out_(text);
      text.clear();
    });
    out_(text);
  }

  void text() {
    TextHead head(selection_.file(), options_);
    selection_.for_each({}, [&](std::uint32_t, const Result& result) {
      std::string text;
      const DeviceLabel device = head.labels().of(result);
      head.print(text, result, device);
      if (result.clock_executed && *result.clock_executed == 0) {
        text +=
            "    Warning: Data collection happened without fixed GPU frequencies. Profiling results may be "
            "inconsistent.\n";
      }
      for (const ShownSection& section : view_.of(result, device)) text_section(text, section);
      out_(text);
    });
  }

 private:
  Formatter::Shown value(const SectionRow& row) const {
    const std::string unit = model::metric_unit(row.name, options_.spelling);
    if (row.metric == nullptr) return {options_.csv ? "n/a" : "(!) n/a", ""};
    auto shown = format_.details(row.metric->value, unit);
    append_instances(shown.value, *row.metric, format_, options_.instances);
    return shown;
  }

  void csv_rule(std::string& text, const std::string& ids, const Rule& rule, const RuleMessage& message) const {
    const std::string_view kind = message_kind(message.type);
    if (kind.empty()) return;
    text += ids;
    csv_cells(text, {rule.section, "", "", "", rule.identifier, kind, plain_message(message.text),
                     message.speedup ? message.speedup_is_global ? "global" : "local" : "",
                     message.speedup ? speedup_text(*message.speedup) : ""});
    text += '\n';
  }

  void text_section(std::string& text, const ShownSection& section) const {
    const bool speaks = std::ranges::any_of(section.rules, [](const Rule* rule) {
      return std::ranges::any_of(rule->messages,
                                 [](const RuleMessage& message) { return !message_kind(message.type).empty(); });
    });
    if (section.rows.empty() && !speaks) return;
    text.append("    Section: ").append(section.section->display_name).append("\n");
    if (!section.rows.empty()) {
      TextTable table({"Metric Name", "Metric Unit", "Metric Value"}, 4);
      for (const SectionRow& row : section.rows) {
        const auto shown = value(row);
        table.add({row.label, shown.unit, shown.value});
      }
      table.print(text);
      text += '\n';
    }
    bool first = true;
    for (const Rule* rule : section.rules) {
      for (const RuleMessage& message : rule->messages) {
        const std::string_view kind = message_kind(message.type);
        if (kind.empty()) continue;
        if (!first) text.append("    ----- ").append(kTextWidth, '-').append("\n");
        first = false;
        std::vector<std::string> lines;
        if (message.speedup) {
          lines.push_back(std::string(message.speedup_is_global ? "Est. Speedup: " : "Est. Local Speedup: ") +
                          speedup_text(*message.speedup) + "%");
        }
        for (std::string& line : wrap(plain_message(message.text), kTextWidth - 1)) lines.push_back(std::move(line));
        for (std::size_t i = 0; i < lines.size(); ++i) {
          text.append("    ").append(i == 0 ? std::string(kind) + "   " : std::string(6, ' ')).append(lines[i]);
          text.append(lines[i].size() < kTextWidth ? kTextWidth - lines[i].size() : 0, ' ').append("\n");
        }
      }
    }
    if (!first) text += '\n';
  }

  const Selection& selection_;
  const PageOptions& options_;
  const Out& out_;
  SectionView view_;
  Formatter format_;
};

}  // namespace

base::Result<void> print_details(const Selection& selection, const PageOptions& options, const Out& out) {
  auto view = TRY(SectionView::make(selection, options));
  Details details(selection, options, out, std::move(view));
  if (options.csv) {
    details.csv();
  } else {
    details.text();
  }
  return {};
}

}  // namespace rangescope::ncu_pages
