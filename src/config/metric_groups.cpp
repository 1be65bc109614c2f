#include "config/metric_groups.hpp"

#include <yaml-cpp/yaml.h>
#include <algorithm>
#include <cstdlib>
#include <set>

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
  Fields(YAML::Node node, std::string file) : node_(std::move(node)), file_(std::move(file)) {
    if (!node_.IsMap()) {
      refuse(node_, "expected a mapping");
      return;
    }
    for (const auto& entry : node_) {
      if (!seen_.insert(entry.first.Scalar()).second)
        refuse(entry.first, "key '" + entry.first.Scalar() + "' stands twice");
    }
  }

  std::string text(const char* key) {
    const YAML::Node value = get(key);
    if (!value || !value.IsScalar()) {
      refuse(value ? value : node_, std::string("expected text under '") + key + "'");
      return {};
    }
    return value.Scalar();
  }

  double number(const char* key) { return number(get(key), key); }

  double number(const YAML::Node& value, const std::string& key) {
    const auto parsed = value && value.IsScalar() ? base::to_double(value.Scalar()) : std::nullopt;
    if (!parsed) refuse(value ? value : node_, "expected a number under '" + key + "'");
    return parsed.value_or(0);
  }

  std::vector<std::string> texts(const YAML::Node& value, const std::string& key) {
    std::vector<std::string> out;
    if (value.IsScalar()) return {value.Scalar()};
    if (!value.IsSequence() || value.size() == 0) refuse(value, "expected text or a list under '" + key + "'");
    for (const auto& item : value) {
      if (!item.IsScalar())
        refuse(item, "expected text in the list '" + key + "'");
      else
        out.push_back(item.Scalar());
    }
    return out;
  }

  YAML::Node get(const char* key) {
    known_.emplace_back(key);
    if (!node_.IsMap()) return YAML::Node(YAML::NodeType::Undefined);
    const YAML::Node fixed = node_;  // operator[] on a const node does not create the key
    return fixed[key];
  }

  void refuse(const YAML::Node& at, std::string what, std::string hint = {}) {
    if (error_) return;
    const YAML::Mark mark = at ? at.Mark() : node_.Mark();
    error_ = base::Error{Code::kConfig, std::move(what),
                         file_ + ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1),
                         std::move(hint)};
  }

  /// Refuses keys that nobody asked for, then hands out the first mistake.
  std::optional<base::Error> finish() {
    if (!error_ && node_.IsMap()) {
      for (const auto& entry : node_) {
        const std::string& key = entry.first.Scalar();
        if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
          refuse(entry.first, "unknown key '" + key + "'", base::did_you_mean(key, known_));
        }
      }
    }
    return error_;
  }

 private:
  YAML::Node node_;
  std::string file_;
  std::set<std::string> seen_;
  std::vector<std::string> known_;
  std::optional<base::Error> error_;
};

Result<YAML::Node> load(const fs::path& file) {
  try {
    return YAML::LoadFile(file.string());
  } catch (const YAML::Exception& e) {
    return base::fail(Code::kConfig, e.msg,
                      file.string() + ":" + std::to_string(e.mark.line + 1) + ":" + std::to_string(e.mark.column + 1));
  }
}

model::GroupCounter counter(Fields& fields, const std::string& file, const std::string& alias,
                            const YAML::Node& value) {
  model::GroupCounter out{alias, {}, std::nullopt};
  if (!value.IsMap()) {
    out.any = fields.texts(value, alias);
    return out;
  }
  Fields inner(value, file);
  const YAML::Node any = inner.get("any");
  if (any)
    out.any = inner.texts(any, alias + ".any");
  else
    inner.refuse(value, "counter '" + alias + "' needs 'any'");
  if (inner.get("absent")) out.absent = inner.number("absent");
  if (auto error = inner.finish()) fields.refuse(value, error->what, error->hint);
  return out;
}

Result<model::GroupMetric> metric(const YAML::Node& node, const std::string& file) {
  Fields fields(node, file);
  model::GroupMetric out;
  out.name = fields.text("name");
  out.title = fields.text("title");
  out.unit = fields.text("unit");
  out.explain = fields.text("explain");
  const std::string formula = fields.text("formula");
  if (const YAML::Node column = fields.get("column")) out.column = column.as<bool>(false);
  if (auto error = fields.finish()) return tl::make_unexpected(*error);
  auto parsed = base::Formula::parse(formula);
  if (!parsed) {
    const YAML::Mark mark = node.Mark();
    return base::fail(Code::kConfig, parsed.error().what,
                      file + ":" + std::to_string(mark.line + 1) + ", " + parsed.error().where, parsed.error().hint);
  }
  out.formula = std::move(*parsed);
  return out;
}

Result<model::MetricGroup> group(const fs::path& file) {
  auto node = TRY(load(file));
  Fields fields(node, file.string());
  model::MetricGroup out;
  out.file = file.string();
  out.name = fields.text("name");
  out.title = fields.text("title");
  out.explain = fields.text("explain");
  std::vector<std::string> aliases;
  const YAML::Node counters = fields.get("counters");
  if (!counters || !counters.IsMap())
    fields.refuse(node, "expected a mapping under 'counters'");
  else {
    for (const auto& entry : counters) {
      out.counters.push_back(counter(fields, out.file, entry.first.Scalar(), entry.second));
      aliases.push_back(entry.first.Scalar());
    }
  }
  const YAML::Node metrics = fields.get("metrics");
  if (!metrics || !metrics.IsSequence()) fields.refuse(node, "expected a list under 'metrics'");
  if (auto error = fields.finish()) return tl::make_unexpected(*error);
  for (const auto& item : metrics) {
    auto read = TRY(metric(item, out.file));
    for (const std::string& name : read.formula.names()) {
      if (std::find(aliases.begin(), aliases.end(), name) != aliases.end()) continue;
      return base::fail(Code::kConfig,
                        "metric '" + read.name + "' uses '" + name + "', which is no counter of the group",
                        out.file + ":" + std::to_string(item.Mark().line + 1), base::did_you_mean(name, aliases));
    }
    out.metrics.push_back(std::move(read));
  }
  return out;
}

Result<model::Peaks> peaks(const fs::path& file) {
  auto node = TRY(load(file));
  Fields fields(node, file.string());
  model::Peaks out;
  out.id = file.stem();
  out.name = fields.text("name");
  out.chip = fields.text("chip");
  out.source = fields.text("source");
  out.memory_bytes_per_s = fields.number("memory_bytes_per_s");
  if (fields.get("l2_bytes_per_s")) out.l2_bytes_per_s = fields.number("l2_bytes_per_s");
  if (const YAML::Node match = fields.get("match")) out.match = fields.texts(match, "match");
  const YAML::Node rates = fields.get("flop_per_s");
  if (!rates || !rates.IsMap())
    fields.refuse(node, "expected a mapping under 'flop_per_s'");
  else {
    for (const auto& entry : rates)
      out.flop_per_s[entry.first.Scalar()] = fields.number(entry.second, entry.first.Scalar());
  }
  if (auto error = fields.finish()) return tl::make_unexpected(*error);
  return out;
}

template <class T, class Read>
Result<std::vector<T>> load_folder(const fs::path& folder, Read read) {
  std::error_code error;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  if (error) return base::fail(Code::kNoInput, "cannot list the folder: " + error.message(), folder.string());
  std::sort(files.begin(), files.end());
  std::vector<T> out;
  for (const fs::path& file : files) {
    try {
      Result<T> item = read(file);
      if (!item) return base::fail(std::move(item));
      out.push_back(std::move(*item));
    } catch (const YAML::Exception& e) {
      return base::fail(Code::kConfig, e.msg, file.string() + ":" + std::to_string(e.mark.line + 1));
    }
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
  const Value* families = read.root.find("families");
  if (!families || !families->is_list())
    return base::fail(Code::kConfig, "expected a list under 'families'", file.string());
  for (const Value& family : families->items) {
    const Value *name = family.find("name"), *match = family.find("match");
    if (!name || !match || !match->is_list())
      return base::fail(Code::kConfig, "a family has a name and a list under 'match'", family.where);
    auto& kind = out.emplace_back(name->text, std::vector<model::NameRegex>{});
    for (const Value& one : match->items) {
      auto regex = model::NameRegex::parse("(?i)" + one.text);
      if (!regex) return base::fail(Code::kConfig, regex.error().what, one.where);
      kind.second.push_back(std::move(*regex));
    }
  }
  return out;
}

Result<fs::path> user_devices() {
  if (const char* folder = std::getenv("XDG_CONFIG_HOME"); folder != nullptr && folder[0] == '/')
    return fs::path(folder) / "rangescope" / "device";
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/')
    return fs::path(home) / ".config" / "rangescope" / "device";
  return base::fail(Code::kConfig, "there is no home folder to keep results in", "HOME", "Set XDG_CONFIG_HOME.");
}

Result<std::vector<model::Peaks>> known_peaks() {
  auto conf = TRY(shipped_folder());
  std::vector<model::Peaks> all;
  std::error_code error;
  if (const auto own = user_devices(); own && fs::is_directory(*own, error)) {
    all = TRY(load_peaks(*own));
    for (model::Peaks& peaks : all) peaks.measured = true;
  }
  auto shipped = TRY(load_peaks(conf / "device"));
  all.insert(all.end(), std::make_move_iterator(shipped.begin()), std::make_move_iterator(shipped.end()));
  return all;
}

Result<void> check_device(const std::string& id) {
  if (id.empty() || id == "auto") return {};
  const auto known = TRY(known_peaks());
  std::vector<std::string> ids;
  for (const model::Peaks& peaks : known) {
    if (peaks.id == id) return {};
    ids.push_back(peaks.id);
  }
  const std::string near = base::did_you_mean(id, ids);
  const bool which = id.starts_with("cuda") || id.starts_with("cpu") || base::to_uint(id);
  return base::fail(Code::kConfig, "no peaks are known for a device '" + base::printable(id) + "'", "device",
                    which ? "It names the GPU whose peaks count; choose a GPU with CUDA_VISIBLE_DEVICES, or by the "
                            "program's own option."
                    : near.empty() ? "Write auto, or one of " + base::join(ids, ", ") + "."
                                   : near);
}

}  // namespace rangescope::config
