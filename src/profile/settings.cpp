#include "profile/settings.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "base/units.hpp"

namespace rangescope::profile {
namespace {

/// A configuration value as the texts that a collector takes.
std::vector<std::string> texts(const config::Config& config, const std::string& path) {
  const config::Value* value = config.get(path);
  if (!value) return {};
  if (const auto ns = config.duration(path); ns && config::find_key(path)->type == config::Type::kDuration)
    return {std::to_string(std::chrono::ceil<std::chrono::seconds>(*ns).count())};
  return config.list(path);
}

template <class Table, class Options>
void fill(const config::Config& config, const std::string& section, const Table& table, Options& options) {
  for (const auto& row : table) {
    const std::string key(row.key), path = section + key;
    if (auto values = texts(config, path); !values.empty()) options.values[key] = std::move(values);
    if (config.set_by_user(path)) options.asked.insert(key);
  }
  options.extra_args = config.list(section + "extra_args");
}

}  // namespace

collect::nsys::Options nsys_options(const config::Config& config) {
  collect::nsys::Options options;
  fill(config, "pipeline.nsys.", collect::nsys::option_table(), options);
  options.gating = config.flag("pipeline.nsys.gating_nvtx");
  options.env = config.map("pipeline.nsys.env");
  return options;
}

collect::ncu::Options ncu_options(const config::Config& config) {
  collect::ncu::Options options;
  fill(config, "pipeline.ncu.ncu_cli.", collect::ncu::option_table(), options);
  options.gating = config.flag("pipeline.ncu.gating_nvtx", true);
  options.env = config.map("pipeline.ncu.env");
  return options;
}

std::vector<std::string> ncu_metrics(const std::vector<std::string>& names, std::span<const model::MetricGroup> groups,
                                     const collect::Abilities& ncu, std::vector<std::string>& notes) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& name) {
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  };
  for (const std::string& name : names) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.name == name; });
    if (group == groups.end()) {
      add(name);
      continue;
    }
    std::vector<std::string> lacking;
    for (const model::GroupCounter& counter : group->counters) {
      const auto found = std::find_if(counter.any.begin(), counter.any.end(), [&](const std::string& metric) {
        return ncu.metrics.empty() || ncu.metrics.count(metric.substr(0, metric.find('.'))) > 0;
      });
      if (found != counter.any.end())
        add(*found);
      else if (!counter.absent)
        lacking.push_back(counter.alias);
    }
    const std::string all = "its " + base::counted(group->counters.size(), "counter");
    notes.push_back("metric group '" + name + "': " +
                    (lacking.empty() ? all + " asked for by name"
                                     : "this ncu lacks " + std::to_string(lacking.size()) + " of " + all + ": " +
                                           base::join(lacking, ", ")));
  }
  return out;
}

collect::Request base_request(const config::Config& config, const std::filesystem::path& run) {
  collect::Request request;
  request.command = config.list("workload.command");
  std::error_code ignored;
  request.cwd = std::filesystem::absolute(config.text("workload.cwd").value_or("."), ignored).lexically_normal();
  if (request.cwd.has_relative_path() && request.cwd.filename().empty()) request.cwd = request.cwd.parent_path();
  request.env = config.map("workload.env");
  request.run_dir = std::filesystem::absolute(run, ignored).lexically_normal();
  request.timeout = config.duration("run.timeout");
  return request;
}

collect::ToolSearch search_for(const config::Config& config, std::string_view tool) {
  collect::ToolSearch search = collect::tool_search();
  search.configured = config.text("pipeline." + std::string(tool) + ".path").value_or("");
  return search;
}

}  // namespace rangescope::profile
