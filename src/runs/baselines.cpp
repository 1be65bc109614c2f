#include "runs/baselines.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <type_traits>

#include "base/fs.hpp"
#include "base/redact.hpp"
#include "base/text.hpp"
#include "model/measure.hpp"
#include "runs/json_text.hpp"

namespace rangescope::runs {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using model::Digest;
using model::DigestRegion;
constexpr std::string_view kReport = "rangescope.report/1";
constexpr std::string_view kBaseline = "rangescope.baseline/1";

/// 0 where there is none, or, of a whole number, where it has a fraction or an exponent.
template <class T>
T number_of(const Json& object, const char* key) {
  const auto value = object.find(key);
  if (value == object.end() || !value->is_number())
    return T{};
  if (std::is_integral_v<T> && !value->is_number_integer())
    return T{};
  return value->get<T>();
}

std::int64_t occurrences_of(const Json& region) {
  const Json& value = region.at("occurrences");
  if (!value.is_number_integer())
    throw std::range_error("occurrences is " + value.dump() + ", not an integer");
  return value.get<std::int64_t>();
}

constexpr auto kRunFields = [](auto& run, auto field) {
  field("id", run.id);
  field("tool", run.tool);
  field("command", run.command);
  field("cwd", run.cwd);
  field("start_unix_ns", run.start_unix_ns);
  field("duration_ns", run.duration_ns);
  field("exit_code", run.exit_code);
  field("signal", run.signal);
  field("host", run.host);
  field("sources", run.sources);
  field("environment", run.environment);
};

model::RunInfo run_in(const Json& json) {
  model::RunInfo run;
  kRunFields(run,
             [&](const char* name, auto& value) { take_field(json, name, value, Missing::kOld); });
  return run;
}

Json run_json(const model::RunInfo& run) {
  Json json;
  kRunFields(run, [&](const char* name, const auto& value) { put_field(json, name, value); });
  return json;
}

std::vector<model::Loss> losses_of(const Json& list) {
  std::vector<model::Loss> out;
  for (const Json& loss : list) {
    out.push_back(model::Loss::read(text_in(loss, "kind"),
                                    text_in(loss, "severity"),
                                    number_of<std::uint64_t>(loss, "count"),
                                    text_in(loss, "detail")));
  }
  return out;
}

/// Null where the value is no object, or is not there.
const Json* object_in(const Json& json, const char* key) {
  const auto value = json.find(key);
  if (value == json.end() || !value->is_object())
    return nullptr;
  return &*value;
}

std::optional<model::Outcome> outcome_in(const Json& verdict) {
  const Json* after = object_in(verdict, "after");
  if (after == nullptr)
    return {};
  model::Outcome outcome;
  outcome.path = text_in(*after, "path");
  outcome.before_ns = number_of<double>(*after, "before_ns");
  outcome.after_ns = number_of<double>(*after, "after_ns");
  outcome.is_bound = after->value("at_most", false);
  return outcome;
}

/// Nothing where the value is no number, or is not there.
std::optional<double> optional_number(const Json& object, const char* key) {
  const auto value = object.find(key);
  if (value == object.end() || !value->is_number())
    return std::nullopt;
  return value->get<double>();
}

model::Verdict verdict_in(const Json& json) {
  model::Verdict verdict;
  verdict.kind = text_in(json, "kind");
  const std::string severity = text_in(json, "severity");
  for (const model::Weight weight : {model::Weight::kWarning, model::Weight::kError})
    if (severity == model::weight_name(weight))
      verdict.severity = weight;
  verdict.path = text_in(json, "path");
  verdict.text = text_in(json, "text");
  verdict.next = text_in(json, "next");
  verdict.cure = text_in(json, "cure");
  verdict.saves_ns = optional_number(json, "saves_ns");
  verdict.saves_share = optional_number(json, "saves_share");
  verdict.saves_low_ns = optional_number(json, "saves_low_ns");
  verdict.saves_high_ns = optional_number(json, "saves_high_ns");
  verdict.after = outcome_in(json);
  return verdict;
}

void read_verdict(const Json& json, Digest& out) {
  out.judged = json.contains("verdict");
  for (const Json& verdict : json.value("verdict", Json::array()))
    out.verdict.push_back(verdict_in(verdict));
}

model::RangeKind kind_in(const Json& region) {
  if (text_in(region, "kind") == model::range_kind_key(model::RangeKind::kStartEnd))
    return model::RangeKind::kStartEnd;
  return model::RangeKind::kPushPop;
}

DigestRegion head_of(const Json& json) {
  DigestRegion region;
  region.path = json.at("path").get<std::vector<std::string>>();
  region.domain = text_in(json, "domain");
  region.kind = kind_in(json);
  region.occurrences = occurrences_of(json);
  (void)json.at("path").at(0);  // a region has a name
  return region;
}

/// A measure's tag is the path of its value.
const Json* value_of_tag(const Json& region, std::string_view tag) {
  const Json* value = &region;
  for (const std::string_view key : base::split(tag, '.')) {
    if (!value->is_object())
      return nullptr;
    const auto member = value->find(std::string(key));
    if (member == value->end())
      return nullptr;
    value = &*member;
  }
  return value;
}

/// The fields that the keys "functions" and "own_functions" have in common.
model::DigestFunction function_in(const Json& json, const char* name_key, const char* time_key) {
  model::DigestFunction function;
  function.name = text_in(json, name_key);
  function.file = text_in(json, "file");
  function.module = text_in(json, "module");
  function.python = json.value("python", false);
  function.self_ns = number_of<double>(json, time_key);
  return function;
}

std::vector<model::DigestFunction> functions_of(const Json& cpu) {
  std::vector<model::DigestFunction> out;
  for (const Json& function : cpu.value("functions", Json::array()))
    out.push_back(function_in(function, "name", "self_ns"));
  return out;
}

/// Nothing where the report does not have them.
std::optional<std::vector<model::DigestFunction>> own_functions_of(const Json& cpu) {
  const auto list = cpu.find("own_functions");
  if (list == cpu.end())
    return std::nullopt;
  std::vector<model::DigestFunction> out;
  for (const Json& json : *list) {
    model::DigestFunction& function = out.emplace_back();
    function = function_in(json, "function", "cpu_ns");
    function.line = number_of<std::uint32_t>(json, "line");
  }
  return out;
}

/// A number of an object of the report; nothing where it was not measured, or not of the whole run.
std::optional<double> number_at(const Json& report, const char* object, const char* key) {
  const Json* found = object_in(report, object);
  if (found == nullptr || found->value("partial", false))
    return std::nullopt;
  return optional_number(*found, key);
}

/// Of the fullest GPU of a report.
std::optional<double> peak_memory_bytes(const Json& report) {
  std::optional<double> peak_bytes;
  for (const Json& memory : report.value("memory", Json::array()))
    peak_bytes = std::max(peak_bytes.value_or(0), number_of<double>(memory, "peak_bytes"));
  return peak_bytes;
}

/// As analyze::digest() has them.
void add_run_rows(const Json& report, Digest& out) {
  model::RunNumbers whole_run;
  whole_run.wall_ns = out.run.duration_ns;
  whole_run.busy_ns = number_at(report, "total", "busy_ns");
  whole_run.peak_memory_bytes = peak_memory_bytes(report);
  model::RunNumbers outside;
  outside.wall_ns = number_at(report, "outside", "wall_ns");
  outside.busy_ns = number_at(report, "unattributed", "busy_ns");
  if (const auto interval_ns = number_at(report, "cpu_outside", "interval_ns")) {
    outside.cpu_interval_ns = *interval_ns;
    outside.functions = functions_of(report.at("cpu_outside"));
    outside.own_functions = own_functions_of(report.at("cpu_outside"));
  }
  model::add_run_rows(std::move(whole_run), std::move(outside), out);
}

std::map<std::string, double> values_of(const Json& region) {
  std::map<std::string, double> values;
  for (const model::Measure& measure : model::measures()) {
    const Json* value = value_of_tag(region, measure.tag);
    if (value && value->is_number())
      values[std::string(measure.tag)] = value->get<double>();
  }
  const auto metrics = region.find("metrics");
  if (metrics == region.end())
    return values;
  for (const auto& [name, metric] : metrics->items()) {
    if (metric.contains("value") && metric["value"].is_number())
      values["metrics." + name] = metric["value"].get<double>();
  }
  return values;
}

DigestRegion report_region(const Json& json) {
  DigestRegion region = head_of(json);
  region.values = values_of(json);
  const Json* cpu = object_in(json, "cpu");
  if (cpu != nullptr) {
    region.cpu_interval_ns = number_of<double>(*cpu, "interval_ns");
    region.functions = functions_of(*cpu);
    region.own_functions = own_functions_of(*cpu);
  }
  const bool has_gpu = object_in(json, "gpu") != nullptr;
  const auto samples = json.find("samples");
  if (samples == json.end())
    return region;
  for (const Json& sample : *samples) {
    region.wall_ns.push_back(sample.at(1).get<double>());
    if (has_gpu)
      region.busy_ns.push_back(sample.at(2).get<double>());
  }
  return region;
}

/// "NVIDIA H100, 132 SMs, MIG"
std::string device_text(const Json& device) {
  std::string text = text_in(device, "name");
  if (const auto sms = number_of<int>(device, "sm_count"); sms > 0)
    text += fmt::format(", {} SMs", sms);
  if (device.value("mig", false))
    text += ", MIG";
  return text;
}

Json process_of(const Json& region) {
  return region.value("process_index", Json());
}

bool is_of_thread(const Json& region) {
  return !region.value("thread", Json()).is_null();
}

/// The regions over all processes; those of the first process where there are none.
std::vector<const Json*> regions_to_compare(const Json& regions) {
  const bool has_aggregates = std::ranges::any_of(regions, [](const Json& region) {
    return process_of(region).is_null() && !is_of_thread(region);
  });
  Json process;
  if (!has_aggregates && !regions.empty())
    process = process_of(regions.front());
  std::vector<const Json*> chosen;
  for (const Json& region : regions)
    if (!is_of_thread(region) && process_of(region) == process)
      chosen.push_back(&region);
  return chosen;
}

bool is_gpu_partial(const Json& region) {
  const Json* gpu = object_in(region, "gpu");
  return gpu != nullptr && gpu->value("partial", false);
}

model::DigestKernel report_kernel(const Json& json) {
  model::DigestKernel kernel;
  kernel.name = text_in(json, "name");
  kernel.calls = number_of<std::int64_t>(json, "calls");
  kernel.total_ns = number_of<double>(json, "total_ns");
  return kernel;
}

Digest digest_of_report(const Json& json) {
  Digest out;
  out.run = run_in(json.at("run"));
  out.losses = losses_of(json.value("losses", Json::array()));
  for (const Json& device : json.value("devices", Json::array()))
    out.devices.push_back(device_text(device));
  std::ranges::sort(out.devices);
  for (const Json* region : regions_to_compare(json.at("regions"))) {
    out.regions.push_back(report_region(*region));
    out.partial_gpu = out.partial_gpu || is_gpu_partial(*region);
  }
  add_run_rows(json, out);
  read_verdict(json, out);
  for (const Json& kernel : json.value("kernels", Json::array()))
    out.kernels.push_back(report_kernel(kernel));
  return out;
}

/// Of arrays: name, file, module, is it Python's, time; line of the program's own functions.
std::vector<model::DigestFunction> listed_functions(const Json& list) {
  std::vector<model::DigestFunction> functions;
  for (const Json& row : list) {
    model::DigestFunction& function = functions.emplace_back();
    function.name = row.at(0).get<std::string>();
    function.file = row.at(1).get<std::string>();
    function.module = row.at(2).get<std::string>();
    function.python = row.at(3).get<bool>();
    function.self_ns = row.at(4).get<double>();
    if (row.size() > 5)
      function.line = row.at(5).get<std::uint32_t>();
  }
  return functions;
}

DigestRegion baseline_region(const Json& json) {
  DigestRegion region = head_of(json);
  region.values = json.at("values").get<std::map<std::string, double>>();
  region.cpu_interval_ns = json.value("cpu_interval_ns", 0.0);
  region.functions = listed_functions(json.value("functions", Json::array()));
  if (json.contains("own_functions"))
    region.own_functions = listed_functions(json.at("own_functions"));
  region.wall_ns = json.value("wall_ns", region.wall_ns);
  region.busy_ns = json.value("busy_ns", region.busy_ns);
  region.is_whole_run = json.value("whole_run", false);
  region.is_outside_ranges = json.value("outside_ranges", false);
  return region;
}

/// [name, calls, time]
model::DigestKernel baseline_kernel(const Json& row) {
  model::DigestKernel kernel;
  kernel.name = row.at(0).get<std::string>();
  kernel.calls = row.at(1).get<std::int64_t>();
  kernel.total_ns = row.at(2).get<double>();
  return kernel;
}

Digest digest_of_baseline(const Json& json) {
  Digest out;
  out.run = run_in(json.at("run"));
  out.devices = json.at("devices").get<std::vector<std::string>>();
  out.partial_gpu = json.value("partial_gpu", false);
  out.losses = losses_of(json.value("losses", Json::array()));
  for (const Json& region : json.at("regions"))
    out.regions.push_back(baseline_region(region));
  read_verdict(json, out);
  for (const Json& kernel : json.value("kernels", Json::array()))
    out.kernels.push_back(baseline_kernel(kernel));
  return out;
}

Json outcome_json(const model::Outcome& outcome) {
  Json json;
  json["path"] = base::printable(outcome.path);
  json["before_ns"] = outcome.before_ns;
  json["after_ns"] = outcome.after_ns;
  json["at_most"] = outcome.is_bound;
  return json;
}

Json verdict_json(const model::Verdict& verdict) {
  Json json = {{"kind", verdict.kind},
               {"severity", model::weight_name(verdict.severity)},
               {"path", base::printable(verdict.path)},
               {"text", base::printable(verdict.text)}};
  if (verdict.saves_ns)
    json["saves_ns"] = *verdict.saves_ns;
  if (verdict.saves_share)
    json["saves_share"] = *verdict.saves_share;
  if (verdict.saves_low_ns)
    json["saves_low_ns"] = *verdict.saves_low_ns;
  if (verdict.saves_high_ns)
    json["saves_high_ns"] = *verdict.saves_high_ns;
  if (!verdict.cure.empty())
    json["cure"] = verdict.cure;
  if (verdict.after)
    json["after"] = outcome_json(*verdict.after);
  if (!verdict.next.empty())
    json["next"] = base::printable(base::redact_text(verdict.next));
  return json;
}

/// Evenly spaced, whole numbers: a nanosecond is nothing here.
Json thinned(const std::vector<double>& values, std::size_t most) {
  Json list = Json::array();
  const std::size_t count = std::min(values.size(), most);
  for (std::size_t i = 0; i < count; ++i)
    list.push_back(static_cast<std::int64_t>(values[i * values.size() / count]));
  return list;
}

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// An array, each of the list on a line.
std::string lines_of(const auto& list, auto json_of) {
  std::vector<std::string> lines;
  for (const auto& item : list)
    lines.push_back("\n      " + line_of(json_of(item)));
  return "[" + base::join(lines, ",") + " ]";
}

template <class F>
auto guarded(const fs::path& path, std::string_view what, F fill)
    -> base::Result<decltype(fill())> {
  try {
    return fill();
  } catch (const std::exception& error) {
    return base::fail(
        base::Code::kBadData, "is not a " + std::string(what) + ": " + error.what(), path.string());
  }
}

bool is_baseline_name(const std::string& name) {
  if (name.empty() || name.find('.') != std::string::npos)
    return false;
  return base::sanitize_component(name) == name;
}

/// "2x NVIDIA H100 mig" of a run with GPUs, "Xeon 8480 56 cpus" of one without.
std::string machine_text(const Digest& run) {
  std::string text;
  if (!run.devices.empty()) {
    const std::string& device = run.devices.front();
    if (run.devices.size() > 1)
      text = std::to_string(run.devices.size()) + "x ";
    text += device.substr(0, device.find(','));
    if (device.ends_with(", MIG"))
      text += " mig";
    return text;
  }
  const auto& environment = run.run.environment;
  const auto cpu = environment.find("cpu");
  if (cpu == environment.end())
    return text;
  text = cpu->second;
  const auto cpus = environment.find("cpus");
  if (cpus != environment.end())
    text += " " + cpus->second + " cpus";
  return text;
}

/// As listed_functions() reads it, without the line.
Json function_json(const model::DigestFunction& function) {
  return Json::array({function.name,
                      function.file,
                      function.module,
                      function.python,
                      std::round(function.self_ns)});
}

void put_functions(const DigestRegion& region, Json& json) {
  json["cpu_interval_ns"] = region.cpu_interval_ns;
  for (const model::DigestFunction& function : region.functions)
    json["functions"].push_back(function_json(function));
  if (!region.own_functions)
    return;
  Json& list = json["own_functions"] = Json::array();
  for (const model::DigestFunction& function : *region.own_functions) {
    Json row = function_json(function);
    row.push_back(function.line);
    list.push_back(std::move(row));
  }
}

Json region_json(const DigestRegion& region, std::size_t samples) {
  std::vector<std::string> path;
  for (const std::string& name : region.path)
    path.push_back(valid_utf8(name));
  Json json = {{"path", path},
               {"domain", valid_utf8(region.domain)},
               {"kind", model::range_kind_key(region.kind)},
               {"occurrences", region.occurrences},
               {"values", region.values},
               {"wall_ns", thinned(region.wall_ns, samples)},
               {"busy_ns", thinned(region.busy_ns, samples)}};
  if (region.is_whole_run)
    json["whole_run"] = true;
  if (region.is_outside_ranges)
    json["outside_ranges"] = true;
  if (region.cpu_interval_ns > 0)
    put_functions(region, json);
  return json;
}

}  // namespace

/// One line a region and kernel, so that a repository shows what changed.
std::string digest_text(const Digest& run, std::size_t samples) {
  Json losses = Json::array();
  for (const model::Loss& loss : run.losses)
    losses.push_back(loss_json<Json>(loss, loss.detail));
  const auto json_of_region = [&](const DigestRegion& region) {
    return region_json(region, samples);
  };
  const auto json_of_kernel = [](const model::DigestKernel& kernel) {
    return Json::array({kernel.name, kernel.calls, kernel.total_ns});
  };
  std::string text = "  { \"run\": " + line_of(run_json(run.run));
  text += ",\n    \"devices\": " + line_of(run.devices);
  text += ", \"partial_gpu\": " + line_of(run.partial_gpu);
  text += ", \"losses\": " + line_of(losses);
  text += ",\n    \"regions\": " + lines_of(run.regions, json_of_region);
  if (run.judged)
    text += ",\n    \"verdict\": " + lines_of(run.verdict, verdict_json);
  text += ",\n    \"kernels\": " + lines_of(run.kernels, json_of_kernel);
  return text + " }";
}

base::Result<Digest> read_digest(const std::string& text, const std::string& where) {
  return guarded(where, "digest", [&] { return digest_of_baseline(Json::parse(text)); });
}

std::string machine_kind(const Digest& run) {
  std::string kind;
  for (const char c : base::lower(machine_text(run))) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      kind += c;
    else if (!kind.empty() && kind.back() != '-')
      kind += '-';
  }
  while (kind.ends_with('-'))
    kind.pop_back();
  if (kind.empty())
    return "unknown";
  return kind;
}

std::optional<std::string> json_schema_of(const fs::path& path) {
  const auto head = base::read_head(path, 256);
  if (!head)
    return std::nullopt;
  const std::string_view text = base::trim(*head);
  constexpr std::string_view kKey = "\"schema\"";
  const auto key = text.find(kKey);
  if (!text.starts_with('{') || key == std::string_view::npos)
    return std::nullopt;
  const auto open = text.find('"', key + kKey.size());
  if (open == std::string_view::npos)
    return std::nullopt;
  const auto end = text.find('"', open + 1);
  if (end == std::string_view::npos)
    return std::nullopt;
  const std::string schema(text.substr(open + 1, end - open - 1));
  if (!schema.starts_with("rangescope."))
    return std::nullopt;
  return schema;
}

base::Result<Digest> read_report(const fs::path& path) {
  auto json = TRY(read_json(path, kReport));
  return guarded(path, "report", [&] { return digest_of_report(json); });
}

base::Result<Baseline> read_baseline(const fs::path& path) {
  auto json = TRY(read_json(path, kBaseline));
  return guarded(path, "baseline", [&] {
    Baseline baseline;
    baseline.name = text_in(json, "name");
    baseline.machine = text_in(json, "machine");
    baseline.saved_unix_ns = number_of<std::int64_t>(json, "saved_unix_ns");
    (void)json.at("runs").at(0);  // and a baseline a run
    for (const Json& run : json.at("runs"))
      baseline.runs.push_back(digest_of_baseline(run));
    return baseline;
  });
}

namespace {

std::string baseline_text(const Baseline& baseline, std::size_t samples) {
  std::vector<std::string> digests;
  for (const Digest& run : baseline.runs)
    digests.push_back(digest_text(run, samples));
  std::string text = "{ \"schema\": " + line_of(kBaseline);
  text += ", \"name\": " + line_of(baseline.name);
  text += ", \"machine\": " + line_of(baseline.machine);
  text += ",\n  \"saved_unix_ns\": " + std::to_string(baseline.saved_unix_ns);
  text += ",\n  \"runs\": [\n" + base::join(digests, ",\n") + " ] }\n";
  return text;
}

}  // namespace

base::Result<fs::path> save_baseline(const fs::path& folder,
                                     const Baseline& baseline,
                                     std::size_t samples) {
  if (!is_baseline_name(baseline.name))
    return base::fail(base::Code::kUsage,
                      "'" + base::printable(baseline.name) + "' is not a valid name for a baseline",
                      "--name",
                      "Use letters, digits, _ and -");
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return base::fail(base::Code::kIo,
                      "cannot make the folder for baselines: " + error.message(),
                      folder.string(),
                      "Name another one with --dir");
  const fs::path path = folder / (baseline.name + "." + baseline.machine + ".json");
  TRY(base::write_file(path, baseline_text(baseline, samples)));
  return path;
}

std::vector<std::pair<fs::path, Baseline>> list_baselines(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    files.push_back(entry.path());
  std::ranges::sort(files);
  std::vector<std::pair<fs::path, Baseline>> out;
  for (const auto& file : files) {
    if (json_schema_of(file) != kBaseline)
      continue;
    if (auto baseline = read_baseline(file))
      out.emplace_back(file, std::move(*baseline));
  }
  return out;
}

base::Result<fs::path> find_baseline(const fs::path& folder,
                                     const std::string& written,
                                     const std::string& machine) {
  std::error_code error;
  if (fs::exists(written, error))
    return fs::path(written);
  std::vector<std::string> names;     // of all baselines
  std::vector<std::string> machines;  // of those with the name
  for (const auto& [path, baseline] : list_baselines(folder)) {
    names.push_back(baseline.name);
    if (baseline.name != written)
      continue;
    if (baseline.machine == machine)
      return path;
    machines.push_back(baseline.machine);
  }
  if (!machines.empty())
    return base::fail(base::Code::kNotComparable,
                      "there is no baseline '" + written + "' of a machine like this one (" +
                          machine + "), only of " + base::join(machines, ", "),
                      folder.string(),
                      "Save one here: rangescope gate --save --name " + written + " RUN");
  std::string hint = base::did_you_mean(written, names);
  if (hint.empty())
    hint = "Save one: rangescope gate --save --name NAME RUN, or name the folder with --dir";
  return base::fail(base::Code::kNoInput,
                    "there is no baseline '" + base::printable(written) + "'",
                    folder.string(),
                    std::move(hint));
}

}  // namespace rangescope::runs
