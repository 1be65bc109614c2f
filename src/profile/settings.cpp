#include "profile/settings.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::profile {
namespace {

/// A configuration value as the texts that a collector takes.
std::vector<std::string> texts(const config::Config& config, const std::string& path) {
  const config::Value* value = config.get(path);
  if (!value)
    return {};
  if (const auto ns = config.duration(path);
      ns && config::find_key(path)->type == config::KeyType::kDuration)
    return {std::to_string(std::chrono::ceil<std::chrono::seconds>(*ns).count())};
  return config.list(path);
}

template <class Table, class Options>
void fill(const config::Config& config,
          const std::string& section,
          const Table& table,
          Options& options) {
  for (const auto& row : table) {
    const std::string key(row.key), path = section + key;
    if (auto values = texts(config, path); !values.empty())
      options.values[key] = std::move(values);
    if (config.set_by_user(path))
      options.asked.insert(key);
  }
  options.extra_args = config.list(section + "extra_args");
}

/// What was written for a key or its alias, and the name of the one that counts.
base::Result<std::pair<std::vector<std::string>, std::string>> latest(const config::Config& config,
                                                                      std::string_view key,
                                                                      std::string_view alias) {
  std::string_view chosen = key;
  bool given[2] = {};
  for (const config::Assignment& done : config.history) {
    if (done.key != key && done.key != alias)
      continue;
    const bool argument = done.origin.on_command_line();
    if (argument)
      given[done.key == alias] = true;
    if (argument || !config.list(done.key).empty())
      chosen = done.key == key ? key : alias;
  }
  if (given[0] && given[1])
    return base::fail(base::Code::kUsage,
                      "two names of one option: " + std::string(config::find_key(alias)->flag) +
                          " is another name of " + std::string(config::find_key(key)->flag),
                      {},
                      "Use " + std::string(config::find_key(key)->flag) + ".");
  return std::pair{config.list(chosen), std::string(chosen)};
}

/// Parses the texts of a key; an error names the option that gave them, or the key.
template <class Take>
base::Result<void> take_key(const config::Config& config,
                            std::string_view key,
                            std::string_view alias,
                            Take take) {
  const auto texts = TRY(latest(config, key, alias));
  for (const std::string& text : texts.first) {
    if (auto parsed = take(text); !parsed) {
      base::Error error = std::move(parsed).error();
      std::string place = texts.second;
      const config::Origin origin = config.origin(place);
      if (origin.source == config::Source::kFlag)
        place = origin.name;
      if (!error.where.empty())
        place += ": " + error.where;
      error.where = place;
      return tl::make_unexpected(std::move(error));
    }
  }
  return {};
}

}  // namespace

base::Result<model::RangeSelection> ranges_of(const config::Config& config) {
  model::RangeSelection ranges;
  for (const auto& [name, into] :
       {std::pair{"include", &ranges.include}, {"exclude", &ranges.exclude}}) {
    const auto take = [&, to = into](const std::string& text) -> base::Result<void> {
      auto terms = TRY(model::parse_terms(text, &ranges.notes));
      std::move(terms.begin(), terms.end(), std::back_inserter(*to));
      return {};
    };
    TRY(take_key(config,
                 std::string("ranges.") + name,
                 std::string("pipeline.ncu.ncu_cli.nvtx.") + name,
                 take));
  }
  return ranges;
}

base::Result<model::KernelSelection> kernels_of(const config::Config& config) {
  model::KernelSelection kernels;
  for (const auto& [key, alias, into] :
       {std::tuple{"kernels.include", "pipeline.ncu.ncu_cli.kernel_name", &kernels.include},
        {"kernels.exclude", "kernels.exclude", &kernels.exclude}}) {
    const auto take = [&, to = into](const std::string& text) -> base::Result<void> {
      auto pattern = TRY(model::KernelPattern::parse(text));
      to->push_back(std::move(pattern));
      return {};
    };
    TRY(take_key(config, key, alias, take));
  }
  return kernels;
}

constexpr std::string_view kCaptureRange = "pipeline.nsys.capture_range";

std::string_view gating_key(const config::Config& config) {
  if (config.flag("pipeline.nsys.enable") || config.set_by_user("pipeline.nsys.enable"))
    return {};
  for (const config::Choice& choice : config.choices)
    if (choice.group == "collector" && choice.origin.on_command_line())
      return {};
  if (config.flag("pipeline.nsys.gating_nvtx"))
    return "pipeline.nsys.gating_nvtx";
  if (config.origin("pipeline.nsys.nvtx_capture").on_command_line() &&
      !config.list("pipeline.nsys.nvtx_capture").empty())
    return "pipeline.nsys.nvtx_capture";
  const bool gated =
      config.text(kCaptureRange).value_or("none") != "none" && !opens_window_by_calls(config);
  if (!gated)
    return {};
  return kCaptureRange;
}

bool opens_window_by_calls(const config::Config& config) {
  return config.text(kCaptureRange) == "cudaProfilerApi" && config.flag("pipeline.native.enable") &&
         !config.flag("pipeline.nsys.enable") && !config.flag("pipeline.ncu.enable");
}

void warn_of_idle_keys(const config::Config& config) {
  std::map<std::string, std::string> idle;  // stage -> its keys
  for (const config::Assignment& done : config.history) {
    if (!done.origin.on_command_line())
      continue;
    for (const std::string stage : {"nsys", "ncu"}) {
      const std::string section = "pipeline." + stage + ".";
      // Aliases mean every stage.
      const bool common = done.key.find(".nvtx.") != std::string::npos ||
                          done.key == "pipeline.ncu.ncu_cli.kernel_name";
      if (done.key == kCaptureRange && opens_window_by_calls(config))
        continue;
      if (common || !done.key.starts_with(section) || done.key == section + "enable" ||
          config.flag(section + "enable"))
        continue;
      std::string& keys = idle[stage];
      if (!keys.empty())
        keys += ", ";
      keys += done.key;
    }
  }
  const bool counts = !config.list("pipeline.native.metrics").empty() ||
                      config.text("pipeline.native.pc").value_or("off") != "off";
  if (!counts)
    for (const config::Assignment& done : config.history)
      for (const std::string_view key :
           {"per", "rounds", "passes", "flush_caches", "arm_wait", "skip_first", "trace_first"})
        if (done.origin.on_command_line() && done.key == "pipeline.native." + std::string(key))
          base::warn("no metrics are requested, so there is no use for " + done.key +
                     "; add --metrics");
  if (config.integer("ranges.every").value_or(1) > 1 && !counts &&
      !config.flag("pipeline.ncu.enable"))
    base::warn(
        "no counters are requested, so ranges.every has no effect: traces hold every instance; add "
        "--metrics");
  for (const auto& [stage, keys] : idle)
    base::warn(stage + " is off, so there is no use for " + keys + "; add --" + stage);
}

namespace {

/// Lists that ncu's grammar reads as something else, which most programs do not have.
void warn_of_a_list(const model::RangeTerm& term) {
  const std::string written = base::printable(term.written);
  if (term.written.starts_with(model::kRegexPrefix))
    return;
  const auto list_of = [&](std::string_view separator) {
    return " For several ranges write '" + base::replace_all(written, separator, ";") + "'";
  };
  if (term.written.find('|') != std::string::npos) {
    const std::string regex = "regex:^(" + written + ")$/";
    base::warn("'" + written + "' is one name, with a bar in it." + list_of("|") + ", or '" +
               regex + "'");
  }
  const model::RangeExpression::Parts& parts = term.forms.front().parts();
  const bool start_end = parts.kind == model::RangeKind::kStartEnd;
  if (start_end && parts.elements.size() > 1) {
    const std::string reading = "' is chosen while all of these start/end ranges are open.";
    base::warn("'" + written + reading + list_of(","));
  }
}

}  // namespace

namespace {

/// The names of an expression without wildcards, bottom to top; none where it is another.
std::vector<std::string_view> literal_path(const model::RangeExpression& form) {
  std::vector<std::string_view> path;
  if (form.parts().regex)
    return path;
  for (const model::RangeExpression::Element& element : form.parts().elements) {
    if (element.kind != model::RangeExpression::Element::Kind::kName)
      return {};
    path.push_back(element.text);
  }
  return path;
}

/// Does `excluded` name everything that this form of an included range can be?
bool leaves_nothing(const model::RangeExpression& form, const model::RangeTerm& excluded) {
  const std::vector<std::string_view> path = literal_path(form);
  const auto excludes = [&](const model::RangeExpression& other) {
    const bool anywhere = !other.parts().bottom && !other.parts().top;
    return anywhere &&
           other.names_region(form.parts().domain.value_or(""), path, form.parts().kind);
  };
  return !path.empty() && std::ranges::any_of(excluded.forms, excludes);
}

}  // namespace

base::Result<void> check_ranges(const model::RangeSelection& ranges) {
  for (const model::RangeTerm& term : ranges.include) {
    if (std::ranges::find(ranges.exclude, term) == ranges.exclude.end())
      continue;
    const std::string problem = "'" + base::printable(term.written) + "' is included and excluded";
    return base::fail(base::Code::kUsage,
                      problem,
                      "--include, --exclude",
                      "Name it once: what is excluded is never shown");
  }
  for (const model::RangeTerm& term : ranges.include) {
    const auto hidden_by = std::ranges::find_if(ranges.exclude, [&](const auto& excluded) {
      return std::ranges::all_of(term.forms,
                                 [&](const auto& form) { return leaves_nothing(form, excluded); });
    });
    if (hidden_by == ranges.exclude.end())
      continue;
    const std::string problem = "'" + base::printable(term.written) + "' is included, and '" +
                                base::printable(hidden_by->written) + "' excludes it";
    return base::fail(base::Code::kUsage,
                      problem,
                      "--include, --exclude",
                      "Leave one of them out: what is excluded is never shown");
  }
  for (const auto* terms : {&ranges.include, &ranges.exclude})
    for (const model::RangeTerm& term : *terms)
      warn_of_a_list(term);
  return {};
}

base::Result<void> check_kernels(const model::KernelSelection& kernels) {
  for (const model::KernelPattern& kernel : kernels.include) {
    const std::string& name = kernel.text();
    const auto hidden_by = std::ranges::find_if(kernels.exclude, [&](const auto& excluded) {
      return excluded == kernel || (!kernel.is_regex() && excluded.matches(name, name, name));
    });
    if (hidden_by == kernels.exclude.end())
      continue;
    std::string problem = "kernel '" + base::printable(name) + "' is included";
    if (*hidden_by == kernel)
      problem += " and excluded";
    else
      problem += ", and '" + base::printable(hidden_by->text()) + "' excludes it";
    return base::fail(base::Code::kUsage,
                      problem,
                      "--kernel, --exclude-kernel",
                      "Leave one of them out: what is excluded is never shown");
  }
  return {};
}

collect::nsys::Options nsys_options(const config::Config& config) {
  collect::nsys::Options options;
  fill(config, "pipeline.nsys.", collect::option_table("nsys"), options);
  options.gating = config.flag("pipeline.nsys.gating_nvtx");
  if (!options.gating && config.set_by_user("pipeline.nsys.gating_nvtx"))
    options.asked.insert("capture_range");
  options.env = config.map("pipeline.nsys.env");
  return options;
}

collect::ncu::Options ncu_options(const config::Config& config) {
  collect::ncu::Options options;
  fill(config, "pipeline.ncu.ncu_cli.", collect::option_table("ncu"), options);
  options.gating = config.flag("pipeline.ncu.gating_nvtx", true);
  options.env = config.map("pipeline.ncu.env");
  return options;
}

std::vector<std::string> ncu_metrics(const std::vector<std::string>& names,
                                     std::span<const model::MetricGroup> groups,
                                     const collect::Abilities& ncu,
                                     std::vector<std::string>& notes) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& name) {
    if (std::find(out.begin(), out.end(), name) == out.end())
      out.push_back(name);
  };
  for (const std::string& name : names) {
    const auto group =
        std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.name == name; });
    if (group == groups.end()) {
      add(name);
      continue;
    }
    std::vector<std::string> lacking;
    for (const model::GroupCounter& counter : group->counters) {
      const auto found =
          std::find_if(counter.any.begin(), counter.any.end(), [&](const std::string& metric) {
            return ncu.metrics.empty() || ncu.metrics_elsewhere ||
                   ncu.metrics.count(metric.substr(0, metric.find('.'))) > 0;
          });
      if (found != counter.any.end())
        add(*found);
      else if (!counter.absent)
        lacking.push_back(counter.alias);
    }
    const std::string counters = "its " + base::counted(group->counters.size(), "counter");
    std::string note = "metric group '" + name + "': ";
    if (lacking.empty())
      note += counters + " asked for by name";
    else
      note += "this ncu lacks " + std::to_string(lacking.size()) + " of " + counters + ": " +
              base::join(lacking, ", ");
    notes.push_back(std::move(note));
  }
  return out;
}

collect::Request base_request(const config::Config& config, const std::filesystem::path& run) {
  collect::Request request;
  request.command = config.list("workload.command");
  std::error_code ignored;
  request.cwd = std::filesystem::absolute(config.text("workload.cwd").value_or("."), ignored)
                    .lexically_normal();
  if (request.cwd.has_relative_path() && request.cwd.filename().empty())
    request.cwd = request.cwd.parent_path();
  request.env = config.map("workload.env");
  request.run_dir = std::filesystem::absolute(run, ignored).lexically_normal();
  request.timeout = config.duration("run.timeout");
  request.every = static_cast<std::uint32_t>(config.integer("ranges.every").value_or(1));
  return request;
}

collect::ToolSearch search_for(const config::Config& config, std::string_view tool) {
  collect::ToolSearch search = collect::tool_search();
  search.configured = config.text("pipeline." + std::string(tool) + ".path").value_or("");
  return search;
}

}  // namespace rangescope::profile
