#include "read/ncu/report/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/embedded.hpp"
#include "base/fs.hpp"
#include "base/text.hpp"
#include "model/metric_unit.hpp"
#include "model/range_expression.hpp"
#include "read/index.hpp"
#include "read/ncu/device.hpp"
#include "read/ncu/report/decode.hpp"
#include "read/ncu/report/unpack.hpp"

RANGESCOPE_EMBED(reader, RANGESCOPE_TSV);

namespace rangescope::read::ncu_report {
namespace {

// How a report was collected, from the ncu command line that it records: replay mode, NVTX filters,
// clock and cache control.
//
// The recorded line is words joined by blanks, without quotes: a filter with blanks in it looks
// like two words. Then no filter matches, and the innermost open range is taken for it.

/// The NVTX range that a range result measured; exactly one of the two is set.
struct OwnRange {
  const NvtxThread* thread = nullptr;   ///< of push_pop
  const NvtxRange* push_pop = nullptr;  ///< an element of thread->stack
  const NvtxRange* start_end = nullptr;
};

struct Capture {
  std::vector<std::string> nvtx_include;        ///< as written
  std::vector<model::RangeExpression> filters;  ///< those of nvtx_include that parse
  std::string note;                             ///< what a reader of the numbers must know

  /// The outermost open range that an include filter names: where the filter began to match the
  /// range began. Without a filter none; with filters of which none matches, the innermost one
  /// open.
  [[nodiscard]] std::optional<OwnRange> own_range(const NvtxState& state, std::uint64_t tid) const;
};

Capture read_capture(std::string_view command_line) {
  Capture capture;
  std::string replay_mode = "kernel", clock_control, cache_control;
  const std::vector<std::string_view> words = base::split(command_line, ' ');
  const auto value_of = [&](std::size_t& i, std::string_view option) -> std::optional<std::string> {
    if (words[i] == option && i + 1 < words.size())
      return std::string(words[++i]);
    if (words[i].starts_with(option) && words[i].size() > option.size() &&
        words[i][option.size()] == '=')
      return std::string(words[i].substr(option.size() + 1));
    return std::nullopt;
  };
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (auto mode = value_of(i, "--replay-mode"))
      replay_mode = *mode;
    else if (auto clocks = value_of(i, "--clock-control"))
      clock_control = *clocks;
    else if (auto caches = value_of(i, "--cache-control"))
      cache_control = *caches;
    else if (auto filter = value_of(i, "--nvtx-include"))
      capture.nvtx_include.push_back(*filter);
  }
  for (const std::string& text : capture.nvtx_include) {
    if (auto filter = model::RangeExpression::parse(text))
      capture.filters.push_back(std::move(*filter));
  }
  if (command_line.empty()) {
    capture.note = "Nsight Compute, command line not recorded";
    return capture;
  }
  capture.note = "ncu " + replay_mode + " replay";
  if (cache_control != "none")
    capture.note += ", caches flushed before each pass";
  if (clock_control == "none")
    capture.note += ", clocks not locked";
  return capture;
}

std::optional<OwnRange> Capture::own_range(const NvtxState& state, std::uint64_t tid) const {
  const auto domain_name = [&](const NvtxRange& range) -> std::string_view {
    const NvtxDomain* domain = state.domain(range.domain);
    if (domain == nullptr || domain->name == model::kDefaultDomain)
      return {};
    return domain->name;
  };
  std::optional<OwnRange> best;
  std::uint64_t begun = 0;
  const auto offer = [&](OwnRange candidate, const NvtxRange& range) {
    if (best && begun <= range.last_api_call)
      return;
    best = candidate;
    begun = range.last_api_call;
  };
  const auto push_pops = [&](const NvtxThread& thread, const model::RangeExpression& filter) {
    std::vector<std::uint32_t> seen;
    for (const NvtxRange& first : thread.stack) {
      if (std::ranges::find(seen, first.domain) != seen.end())
        continue;
      seen.push_back(first.domain);
      std::vector<std::string_view> names;
      for (const NvtxRange& range : thread.stack) {
        if (range.domain != first.domain)
          continue;
        names.push_back(state.effective_name(range));
        if (!filter.matches_stack(domain_name(range), names))
          continue;
        offer({&thread, &range, nullptr}, range);
        break;
      }
    }
  };
  // own thread first: with --nvtx-push-pop-scope process another thread's stack may match as well
  for (const bool own_thread : {true, false}) {
    for (const model::RangeExpression& filter : filters) {
      for (const NvtxThread& thread : state.threads) {
        if ((thread.tid == tid) == own_thread)
          push_pops(thread, filter);
      }
      if (!own_thread)
        continue;
      for (const NvtxRange& range : state.start_end) {
        if (filter.names_start_end(domain_name(range), state.effective_name(range)))
          offer({nullptr, nullptr, &range}, range);
      }
    }
    if (best)
      return best;
  }
  if (nvtx_include.empty())
    return std::nullopt;
  for (const NvtxThread& thread : state.threads) {
    for (const NvtxRange& range : thread.stack) {
      if (best && thread.tid != tid)
        continue;
      if (!best || best->thread != &thread || range.last_api_call >= begun) {
        best = OwnRange{&thread, &range, nullptr};
        begun = range.last_api_call;
      }
    }
  }
  if (!best && !state.start_end.empty())
    best = OwnRange{nullptr, nullptr, &state.start_end.back()};
  return best;
}

using model::kNone;

std::string_view chip_name(std::uint64_t chip) {
  const std::string number = fmt::format("{:x}", chip);
  for (const auto& [known, name] : base::rows<2>(rangescope_reader))
    if (known == number)
      return name;
  return {};
}

class Builder {
 public:
  explicit Builder(const File& file)
      : file_(file), capture_(read_capture(file.session.command_line)) {}

  base::Result<model::Session> build() {
    describe();
    std::uint64_t unknown = file_.unknown_fields, damaged = 0;
    std::optional<base::Error> first;
    session_.measurements.reserve(file_.results.size());
    for (const Entry& entry : file_.results) {
      auto result = decode(file_, entry, unknown);
      if (!result) {
        ++damaged;
        if (!first)
          first = std::move(result).error();
        continue;
      }
      add(*result);
    }
    if (damaged > 0 && damaged == file_.results.size())
      return tl::make_unexpected(*first);
    session_.losses = file_.losses;
    if (damaged > 0) {
      session_.losses.push_back(
          {"damaged_result",
           damaged,
           "results could not be decoded and are left out, the first at " + first->where});
    }
    if (no_numbers_ > 0)
      session_.losses.push_back({"no_number",
                                 no_numbers_,
                                 "values that are no finite number were left out, the first of " +
                                     std::string(first_no_number_) + ": " + file_.path});
    if (unknown > 0) {
      session_.losses.push_back(
          {"unknown_fields",
           unknown,
           "fields of a newer (or another) Nsight Compute were skipped: " + file_.path});
    }
    return std::move(session_);
  }

 private:
  model::StringId text(std::string_view bytes) { return session_.strings.intern(bytes); }

  void describe() {
    const std::string_view tool = file_.tool_version();
    session_.sources.push_back(
        {file_.path,
         "ncu-report",
         tool.empty() ? "Nsight Compute" : "Nsight Compute " + std::string(tool),
         std::to_string(file_.version),
         model::Maker::kNcu,
         true});
    session_.clock.kind = "none: an Nsight Compute report has no timeline";
    session_.clock.anchor_unix_ns =
        static_cast<std::int64_t>(std::min<std::uint64_t>(file_.session.creation_time, 1u << 31)) *
        1'000'000'000;
    for (const ProcessInfo& process : file_.processes)
      session_.processes.push_back({process.pid, 0, text(process.name)});
    for (const DeviceInfo& device : file_.session.devices)
      add_device(device);
  }

  void add_device(const DeviceInfo& info) {
    model::Device device;
    device.process = info.process;
    device.ordinal = info.id;
    device.name = text(info.name);
    ncu::DeviceAttributes numbers;
    std::uint64_t domain = 0, bus = 0, slot = 0;
    bool has_bus = false;
    for (const Attribute& attribute : info.attributes) {
      if (!attribute.name.starts_with(numbers.kPrefix) || !attribute.value.is_integer())
        continue;
      const std::string_view name = attribute.name.substr(numbers.kPrefix.size());
      const std::uint64_t value = attribute.value.integer;
      numbers.set(name, static_cast<double>(value), device);
      if (name == "chip")
        device.chip = text(chip_name(value));
      if (name == "pci_domain_id")
        domain = value;
      if (name == "pci_bus_id")
        bus = value, has_bus = true;
      if (name == "pci_device_id")
        slot = value;
    }
    if (has_bus)
      device.pci_bus =
          text(fmt::format("{:04x}:{:02x}:{:02x}.0", domain & 0xffff, bus & 0xff, slot & 0xff));
    session_.devices.push_back(device);
  }

  /// Index into Session::metrics and the factor to its unit; kNone for what is no measurement. By
  /// string id, since every result names the same few hundred metrics.
  struct Metric {
    std::uint32_t index = kNone;
    double factor = 1;
    bool is_resolved = false;
    std::uint8_t role = 0;  // see Role
  };
  enum Role : std::uint8_t {
    kPlain,
    kDevice,
    kPasses,
    kRegisters,
    kStatic,
    kDynamic,
    kClusterX,
    kClusterY,
    kClusterZ,
    kIdentity,
    kSkipped
  };

  static Role role_of(std::string_view name) {
    if (name.starts_with("device__attribute_") || name.starts_with("group:") ||
        name.starts_with("breakdown:") || name.starts_with("regex:") || name.empty()) {
      return kSkipped;
    }
    if (name == "launch__device_id")
      return kDevice;
    if (name == "profiler__replayer_passes")
      return kPasses;
    if (name == "launch__registers_per_thread")
      return kRegisters;
    if (name == "launch__shared_mem_per_block_static")
      return kStatic;
    if (name == "launch__shared_mem_per_block_dynamic")
      return kDynamic;
    if (name == "launch__cluster_dim_x")
      return kClusterX;
    if (name == "launch__cluster_dim_y")
      return kClusterY;
    if (name == "launch__cluster_dim_z")
      return kClusterZ;
    if (name == "launch__context_id" || name == "launch__stream_id")
      return kIdentity;
    return kPlain;
  }

  const Metric& metric(std::uint32_t id) {
    if (id >= file_.string_count())
      return missing_;
    if (metrics_.empty())
      metrics_.resize(file_.string_count());
    Metric& metric = metrics_[id];
    if (metric.is_resolved)
      return metric;
    metric.is_resolved = true;
    const std::string_view name = file_.string(id);
    metric.role = role_of(name);
    if (metric.role == kSkipped || metric.role == kDevice || metric.role == kIdentity)
      return metric;
    // a damaged or unusual file may name one metric twice
    const auto [at, added] =
        by_name_.try_emplace(name, static_cast<std::uint32_t>(session_.metrics.size()));
    const auto scaled =
        model::parse_ncu_unit(model::metric_unit(name, model::UnitSpelling::kNcu2024));
    if (added) {
      session_.metrics.push_back({std::string(name), model::metric_unit(name), "ncu"});
      given_.push_back({std::numeric_limits<std::size_t>::max(), 0});
    }
    metric.index = at->second;
    metric.factor = scaled.factor;
    return metric;
  }

  static model::MeasuredScope scope_of(ResultKind kind) {
    switch (kind) {
      case ResultKind::kRange: return model::MeasuredScope::kRange;
      case ResultKind::kCommandList: return model::MeasuredScope::kCommandList;
      case ResultKind::kGraph: return model::MeasuredScope::kGraph;
      case ResultKind::kKernel: break;
    }
    return model::MeasuredScope::kKernel;
  }

  void add(const Result& result) {
    model::Measurement measurement;
    measurement.scope = scope_of(result.kind);
    measurement.process = result.process;
    measurement.thread =
        index_.threads.of({result.process, static_cast<std::uint32_t>(result.thread)});
    model::KernelShape shape;
    if (result.grid)
      shape.grid = *result.grid;
    if (result.block)
      shape.block = *result.block;
    const std::uint32_t ordinal = add_metrics(result, measurement, shape);
    for (std::uint32_t i = 0; i < session_.devices.size(); ++i)
      if (session_.devices[i].process == result.process && session_.devices[i].ordinal == ordinal)
        measurement.device = i;
    const bool is_kernel = result.kind == ResultKind::kKernel;
    const bool is_named_list = result.kind == ResultKind::kCommandList && !result.demangled.empty();
    if (is_kernel || is_named_list)
      measurement.kernel_name = kernel_name(result);
    if (is_kernel)
      measurement.shape = index_.shapes.of(shape);
    if (result.stream) {
      const auto context = static_cast<std::uint32_t>(result.context.value_or(0));
      const auto stream = static_cast<std::uint32_t>(*result.stream);
      measurement.stream = index_.streams.of({result.process, measurement.device, context, stream});
    }
    measurement.note = capture_.note;
    if (result.nvtx)
      open_ranges(result, measurement);
    count(measurement);
    session_.measurements.push_back(std::move(measurement));
  }

  /// Adds the values of metrics, and sets what metrics tell of the launch. Returns the ordinal of
  /// the device.
  std::uint32_t add_metrics(const Result& result,
                            model::Measurement& measurement,
                            model::KernelShape& shape) {
    std::uint32_t ordinal = 0;
    measurement.values.reserve(result.metrics.size());
    for (const MetricEntry& entry : result.metrics) {
      if (!entry.value.is_number())
        continue;
      const Metric& definition = metric(entry.name);
      const auto small = static_cast<std::uint32_t>(entry.value.integer);
      switch (definition.role) {
        case kDevice: ordinal = small; break;
        case kPasses: measurement.passes = std::max(1u, small); break;
        case kRegisters: shape.registers_per_thread = small; break;
        case kStatic: shape.static_shared_bytes = small; break;
        case kDynamic: shape.dynamic_shared_bytes = small; break;
        case kClusterX: shape.cluster[0] = small; break;
        case kClusterY: shape.cluster[1] = small; break;
        case kClusterZ: shape.cluster[2] = small; break;
        default: break;
      }
      const double value = entry.value.as_double() * definition.factor;
      if (definition.index == kNone)
        continue;
      if (!std::isfinite(value)) {
        if (no_numbers_++ == 0)
          first_no_number_ = file_.string(entry.name);
        continue;
      }
      // Reports of 2025 with PM sampling hold some metrics twice; ncu shows the last one.
      Given& given = given_[definition.index];
      if (given.measurement == session_.measurements.size()) {
        measurement.values[given.position].value = value;
        continue;
      }
      given = {session_.measurements.size(), measurement.values.size()};
      measurement.values.push_back({definition.index, value});
    }
    return ordinal;
  }

  std::uint32_t kernel_name(const Result& result) {
    const auto& demangled = result.demangled.empty() ? result.function : result.demangled;
    const auto& function = result.function.empty() ? result.demangled : result.function;
    return index_.kernel_names.of({text(demangled), text(function), text(result.mangled)});
  }

  model::OpenRange open_range(const NvtxState& state,
                              const NvtxRange& range,
                              model::RangeKind kind,
                              bool inherited) {
    const NvtxDomain* in = state.domain(range.domain);
    const std::uint64_t instance =
        kind == model::RangeKind::kStartEnd || state.process_scope ? range.id : range.last_api_call;
    const bool other = in != nullptr && in->name != model::kDefaultDomain;
    return {index_.domain(other ? in->name : std::string_view{}),
            text(state.effective_name(range)),
            kind,
            instance + 1,
            inherited};
  }

  /// The thread whose stack a result is in: the launching thread; where that has no stack, the only
  /// other thread that has one (a backward pass).
  static const NvtxThread* thread_with_stack(const NvtxState& state, std::uint64_t launching) {
    const NvtxThread* first = nullptr;
    std::size_t other_stacks = 0;
    for (const NvtxThread& thread : state.threads) {
      if (thread.stack.empty())
        continue;
      if (thread.tid == launching)
        return &thread;
      if (other_stacks == 0)
        first = &thread;
      ++other_stacks;
    }
    return other_stacks > 1 ? nullptr : first;
  }

  void open_ranges(const Result& result, model::Measurement& measurement) {
    const NvtxState& state = *result.nvtx;
    if (result.kind == ResultKind::kRange) {
      if (const auto measured = capture_.own_range(state, result.thread))
        return open_measured_range(result, *measured, measurement);
      if (!measurement.note.empty())
        measurement.note += "; ";
      measurement.note +=
          "the range is not an NVTX range: it is delimited by profiler start and stop, or its "
          "filter is not recorded";
      return;
    }
    if (const NvtxThread* thread = thread_with_stack(state, result.thread)) {
      const bool is_inherited = thread->tid != result.thread;
      for (const NvtxRange& range : thread->stack)
        measurement.ranges.push_back(
            open_range(state, range, model::RangeKind::kPushPop, is_inherited));
    }
    for (const NvtxRange& range : state.start_end)
      measurement.ranges.push_back(open_range(state, range, model::RangeKind::kStartEnd, false));
  }

  /// The result is that of a range: this one last, without those above it, and those of other
  /// domains before.
  void open_measured_range(const Result& result,
                           const OwnRange& measured,
                           model::Measurement& measurement) {
    const NvtxState& state = *result.nvtx;
    for (const NvtxRange& range : state.start_end)
      if (&range != measured.start_end)
        measurement.ranges.push_back(open_range(state, range, model::RangeKind::kStartEnd, false));
    const NvtxThread* thread = measured.thread;
    if (thread == nullptr)
      thread = thread_with_stack(state, result.thread);
    if (thread != nullptr) {
      const bool is_inherited = thread->tid != result.thread;
      for (const bool in_its_domain : {false, true}) {
        for (const NvtxRange& range : thread->stack) {
          const bool has_its_domain =
              measured.push_pop != nullptr && range.domain == measured.push_pop->domain;
          const bool is_above = has_its_domain && &range > measured.push_pop;
          if (has_its_domain != in_its_domain || is_above)
            continue;
          measurement.ranges.push_back(
              open_range(state, range, model::RangeKind::kPushPop, is_inherited));
        }
      }
    }
    if (measured.start_end != nullptr)
      measurement.ranges.push_back(
          open_range(state, *measured.start_end, model::RangeKind::kStartEnd, false));
  }

  /// Position within its occurrence and number of the occurrence of its path, both among the
  /// results of the report.
  void count(model::Measurement& measurement) {
    std::string path, occurrence;
    path = occurrence =
        std::to_string(measurement.process) + "/" + std::to_string(measurement.thread);
    for (const model::OpenRange& range : measurement.ranges) {
      const std::string name =
          "\n" + std::to_string(range.domain) + "/" + std::to_string(range.name);
      path += name;
      occurrence += name + "#" + std::to_string(range.instance);
    }
    auto [seen, is_new] = occurrences_.try_emplace(std::move(occurrence));
    if (is_new && !measurement.ranges.empty())
      seen->second.number = paths_[std::move(path)]++;
    if (!measurement.ranges.empty())
      measurement.occurrence = seen->second.number;
    measurement.ordinal = seen->second.members++;
  }

  struct Occurrence {
    std::uint32_t number = 0, members = 0;
  };

  const File& file_;
  const Capture capture_;
  model::Session session_;
  Index index_{session_};
  std::vector<Metric> metrics_;
  struct Given {
    std::size_t measurement;  // the last one with a value of the metric
    std::size_t position;     // in its values
  };
  std::vector<Given> given_;      // by metric of the session
  std::uint64_t no_numbers_ = 0;  ///< values that are NaN or infinite
  std::string_view first_no_number_;
  const Metric missing_{kNone, 1, true, kSkipped};
  std::unordered_map<std::string_view, std::uint32_t> by_name_;
  std::unordered_map<std::string, Occurrence> occurrences_;
  std::unordered_map<std::string, std::uint32_t> paths_;
};

}  // namespace

base::Result<model::Session> to_session(const File& file) {
  return Builder(file).build();
}

static bool sniff(std::span<const std::byte> head, const std::filesystem::path& path) {
  const std::string_view bytes(reinterpret_cast<const char*>(head.data()), head.size());
  if (!is_zstd(bytes))
    return File::sniff(bytes);
  // nothing of a zstd block can be unpacked before all of it (up to 128 KiB) is there
  const auto block = base::read_head(path, 2 * kMostBlock);
  return File::sniff(block ? std::string_view(*block) : bytes);
}

static base::Result<model::Session> read(const std::filesystem::path& path, const Options&) {
  auto file = TRY(File::open(path));
  return to_session(file);
}

const Reader kReader{"ncu-report", sniff, read};

}  // namespace rangescope::read::ncu_report
