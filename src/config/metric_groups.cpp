#include "config/metric_groups.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/text.hpp"
#include "config/compose.hpp"
#include "config/yaml.hpp"

namespace rangescope::config {
namespace {

using base::Code;
using base::Result;
namespace fs = std::filesystem;

// Reading a mapping key by key; the first mistake wins and is located.
class Fields {
 public:
  explicit Fields(const Value& map) : map_(map) {
    if (!map.is_map())
      refuse(map, "expected a mapping");
  }

  /// What an error about the value names; the map where the value is missing.
  [[nodiscard]] const Value& value_or_map(const Value* value) const {
    return value != nullptr ? *value : map_;
  }

  const Value* get(const char* key) {
    known_.emplace_back(key);
    const Value* value = map_.find(key);
    if (value == nullptr || value->is_null())
      return nullptr;
    return value;
  }

  std::string text(const char* key) {
    const Value* value = get(key);
    if (value && value->is_scalar())
      return value->text;
    refuse(value_or_map(value), std::string("expected text under '") + key + "'");
    return {};
  }

  double number(const char* key) { return number(get(key), key); }

  double number(const Value* value, const std::string& key) {
    std::optional<double> parsed;
    if (value && value->is_scalar())
      parsed = base::to_double(value->text);
    if (!parsed)
      refuse(value_or_map(value), "expected a number under '" + key + "'");
    return parsed.value_or(0);
  }

  std::vector<std::string> texts(const Value& value, const std::string& key) {
    if (value.is_scalar())
      return {value.text};
    if (!value.is_list() || value.items.empty())
      refuse(value, "expected text or a list under '" + key + "'");
    std::vector<std::string> out;
    for (const Value& item : value.items) {
      if (!item.is_scalar())
        refuse(item, "expected text in the list '" + key + "'");
      out.push_back(item.text);
    }
    return out;
  }

  const std::vector<Entry>& entries(const char* key) {
    static const std::vector<Entry> none;
    const Value* value = get(key);
    if (value && value->is_map())
      return value->entries;
    refuse(map_, std::string("expected a mapping under '") + key + "'");
    return none;
  }

  void refuse(const Value& at, std::string what, std::string hint = {}) {
    if (!error_)
      error_ = base::Error{Code::kConfig, std::move(what), to_string(at.origin), std::move(hint)};
  }

  /// Refuses keys that were not read, then hands out the first mistake.
  Result<void> finish() {
    for (const Entry& entry : map_.entries)
      if (std::ranges::find(known_, entry.key) == known_.end())
        refuse(
            entry.value, "unknown key '" + entry.key + "'", base::did_you_mean(entry.key, known_));
    if (error_)
      return tl::make_unexpected(*error_);
    return {};
  }

 private:
  const Value& map_;
  std::vector<std::string> known_;
  std::optional<base::Error> error_;
};

model::GroupCounter counter(Fields& fields, const std::string& alias, const Value& value) {
  model::GroupCounter out{alias, {}, std::nullopt};
  if (!value.is_map()) {
    out.any = fields.texts(value, alias);
    return out;
  }
  Fields inner(value);
  if (const Value* any = inner.get("any"))
    out.any = inner.texts(*any, alias + ".any");
  else
    inner.refuse(value, "counter '" + alias + "' needs 'any'");
  if (const Value* absent = inner.get("absent"))
    out.absent = inner.number(absent, "absent");
  if (const auto done = inner.finish(); !done)
    fields.refuse(value, done.error().what, done.error().hint);
  return out;
}

Result<model::GroupMetric> metric(const Value& node) {
  Fields fields(node);
  model::GroupMetric out;
  out.name = fields.text("name");
  out.title = fields.text("title");
  out.unit = fields.text("unit");
  out.explain = fields.text("explain");
  const std::string formula = fields.text("formula");
  if (const Value* column = fields.get("column"))
    out.column = column->boolean;
  TRY(fields.finish());
  auto parsed = base::Formula::parse(formula);
  if (!parsed)
    return base::fail(Code::kConfig,
                      parsed.error().what,
                      to_string(node.origin) + ", " + parsed.error().where,
                      parsed.error().hint);
  out.formula = std::move(*parsed);
  return out;
}

Result<model::MetricGroup> group(const fs::path& file) {
  const auto document = TRY(read_yaml(file));
  Fields fields(document);
  model::MetricGroup out;
  out.file = file.string();
  out.name = fields.text("name");
  out.title = fields.text("title");
  out.explain = fields.text("explain");
  std::vector<std::string> aliases;
  for (const Entry& entry : fields.entries("counters")) {
    out.counters.push_back(counter(fields, entry.key, entry.value));
    aliases.push_back(entry.key);
  }
  const Value* metrics = fields.get("metrics");
  if (!metrics || !metrics->is_list())
    fields.refuse(document, "expected a list under 'metrics'");
  TRY(fields.finish());
  for (const Value& item : metrics->items) {
    auto read = TRY(metric(item));
    for (const std::string& name : read.formula.names()) {
      if (std::ranges::find(aliases, name) != aliases.end())
        continue;
      return refused(
          "metric '" + read.name + "' uses '" + name + "', which is not a counter of the group",
          item.origin,
          base::did_you_mean(name, aliases));
    }
    out.metrics.push_back(std::move(read));
  }
  return out;
}

Result<model::Peaks> peaks(const fs::path& file) {
  const auto document = TRY(read_yaml(file));
  Fields fields(document);
  model::Peaks out;
  out.id = file.stem();
  out.name = fields.text("name");
  out.chip = fields.text("chip");
  out.source = fields.text("source");
  out.memory_bytes_per_s = fields.number("memory_bytes_per_s");
  if (const Value* l2 = fields.get("l2_bytes_per_s"))
    out.l2_bytes_per_s = fields.number(l2, "l2_bytes_per_s");
  if (const Value* link = fields.get("host_link_bytes_per_s"))
    out.host_link_bytes_per_s = fields.number(link, "host_link_bytes_per_s");
  if (const Value* match = fields.get("match"))
    out.match = fields.texts(*match, "match");
  for (const Entry& entry : fields.entries("flop_per_s"))
    out.flop_per_s[entry.key] = fields.number(&entry.value, entry.key);
  TRY(fields.finish());
  return out;
}

model::MeasuredValue measured_value(Fields& fields, const char* key) {
  const Value* value = fields.get(key);
  if (value == nullptr || !value->is_map()) {
    fields.refuse(fields.value_or_map(value),
                  std::string("expected a mapping under '") + key + "'");
    return {};
  }
  Fields inner(*value);
  model::MeasuredValue out;
  out.expected = inner.number("expected");
  out.low = inner.number("low");
  out.high = inner.number("high");
  (void)inner.text("source");
  const bool is_ordered = out.low <= out.expected && out.expected <= out.high;
  if (!is_ordered)
    inner.refuse(*value, "'low', 'expected' and 'high' are not in order");
  const auto done = inner.finish();
  if (!done)
    fields.refuse(*value, done.error().what, done.error().hint);
  return out;
}

template <class T, class Read>
Result<std::vector<T>> load_folder(const fs::path& folder, Read read) {
  std::error_code error;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".yaml")
      files.push_back(entry.path());
  }
  if (error)
    return base::fail(
        Code::kNoInput, "cannot list the folder: " + error.message(), folder.string());
  std::ranges::sort(files);
  std::vector<T> out;
  for (const fs::path& file : files) {
    auto item = TRY(read(file));
    out.push_back(std::move(item));
  }
  return out;
}

Result<std::vector<model::MetricGroup>> groups_in(const char* folder) {
  auto conf = TRY(shipped_folder());
  return load_metric_groups(conf / folder);
}

}  // namespace

Result<std::vector<model::MetricGroup>> load_metric_groups(const fs::path& folder) {
  return load_folder<model::MetricGroup>(folder, group);
}

Result<std::vector<model::Peaks>> load_peaks(const fs::path& folder) {
  return load_folder<model::Peaks>(folder, peaks);
}

Result<std::vector<model::MetricGroup>> shipped_groups() {
  return groups_in("metrics");
}

Result<std::vector<model::MetricGroup>> sampled_groups() {
  return groups_in("sample");
}

Result<std::vector<model::MetricGroup>> cpu_counter_groups() {
  return groups_in("cpu_counters");
}

Result<std::vector<std::pair<std::string, std::vector<model::NameRegex>>>> kernel_kinds() {
  auto conf = TRY(shipped_folder());
  const fs::path file = conf / "kernels" / "families.yaml";
  auto read = TRY(read_yaml(file));
  std::vector<std::pair<std::string, std::vector<model::NameRegex>>> out;
  const Value* families = read.find("families");
  if (!families || !families->is_list())
    return base::fail(Code::kConfig, "expected a list under 'families'", file.string());
  for (const Value& family : families->items) {
    const Value *name = family.find("name"), *match = family.find("match");
    if (!name || !match || !match->is_list())
      return refused("a family has a name and a list under 'match'", family.origin);
    auto& kind = out.emplace_back(name->text, std::vector<model::NameRegex>{});
    for (const Value& pattern : match->items) {
      auto regex = model::NameRegex::parse("(?i)" + pattern.text);
      if (!regex)
        return refused(regex.error().what, pattern.origin);
      kind.second.push_back(std::move(*regex));
    }
  }
  return out;
}

Result<model::ReplayCosts> replay_costs() {
  auto conf = TRY(shipped_folder());
  const auto document = TRY(read_yaml(conf / "replay" / "costs.yaml"));
  Fields fields(document);
  model::ReplayCosts costs;
  costs.tracing_ns = measured_value(fields, "tracing_ns");
  costs.graph_launch_ns = measured_value(fields, "graph_launch_ns");
  costs.compiled_call_ns = measured_value(fields, "compiled_call_ns");
  costs.pinned_share = measured_value(fields, "pinned_share");
  TRY(fields.finish());
  return costs;
}

Result<fs::path> user_devices() {
  if (const char* folder = std::getenv("XDG_CONFIG_HOME"); folder != nullptr && folder[0] == '/')
    return fs::path(folder) / "rangescope" / "device";
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/')
    return fs::path(home) / ".config" / "rangescope" / "device";
  return base::fail(
      Code::kConfig, "there is no home folder to keep results in", "HOME", "Set XDG_CONFIG_HOME.");
}

Result<std::vector<model::Peaks>> known_peaks() {
  auto conf = TRY(shipped_folder());
  std::vector<model::Peaks> all;
  std::error_code error;
  if (const auto folder = user_devices(); folder && fs::is_directory(*folder, error)) {
    all = TRY(load_peaks(*folder));
    for (model::Peaks& peaks : all)
      peaks.measured = true;
  }
  auto shipped = TRY(load_peaks(conf / "device"));
  all.insert(
      all.end(), std::make_move_iterator(shipped.begin()), std::make_move_iterator(shipped.end()));
  return all;
}

namespace {

/// "NVIDIA H100 PCIe" as the ids of peaks are written: "h100-pcie".
std::string as_device_id(const std::string& name) {
  std::string id = base::lower(name);
  std::ranges::replace_if(
      id, [](char c) { return c == ' ' || c == '_'; }, '-');
  for (const char* maker : {"nvidia-", "geforce-"})
    if (id.starts_with(maker))
      id.erase(0, std::strlen(maker));
  return id;
}

std::string digits_of(std::string text) {
  std::erase_if(text, [](char c) { return c < '0' || c > '9'; });
  return text;
}

/// What to write in place of `id`, which is none of `ids`.
std::string hint_for_device(const std::string& id, const std::vector<std::string>& ids) {
  if (id.starts_with("cuda") || id.starts_with("cpu") || base::to_uint(id))
    return "It names the GPU whose peaks are used; choose a GPU to run on with "
           "CUDA_VISIBLE_DEVICES, or an option of the program.";
  const std::string written = as_device_id(id);
  std::vector<std::string> same_number, variants;  // another number is another card
  for (const std::string& candidate : ids) {
    if (digits_of(candidate) == digits_of(written))
      same_number.push_back(candidate);
    if (candidate == written)
      variants = {candidate};
    if (candidate.starts_with(written + "-") && !std::ranges::count(variants, written))
      variants.push_back(candidate);
  }
  if (!variants.empty())
    return "Write " + base::join(variants, " or ") + ".";
  const std::string suggestion = base::did_you_mean(written, same_number);
  if (!suggestion.empty())
    return suggestion;
  return "Write auto, or one of " + base::join(ids, ", ") + ".";
}

}  // namespace

Result<void> check_device(const std::string& id) {
  if (id.empty() || id == "auto")
    return {};
  const std::vector<model::Peaks> devices = TRY(known_peaks());
  std::vector<std::string> ids;
  for (const model::Peaks& device : devices)
    ids.push_back(device.id);
  if (std::ranges::count(ids, id) > 0)
    return {};
  return base::fail(Code::kConfig,
                    "no peaks are known for a device '" + base::printable(id) + "'",
                    "device",
                    hint_for_device(id, ids));
}

}  // namespace rangescope::config
