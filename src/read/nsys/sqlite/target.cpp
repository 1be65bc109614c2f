#include "read/nsys/sqlite/target.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "read/nsys/sqlite/ids.hpp"
#include "read/nsys/sqlite/parts.hpp"

namespace rangescope::read::nsys_sqlite {
namespace {

/// Small tables: read whole, in place; damage inside one of them is remembered, not fatal.
template <class Row>
void each(const Source& source,
          Target& target,
          std::string_view name,
          std::string_view columns,
          Row&& row) {
  const Table* table = source.find(name);
  if (table == nullptr)
    return;
  target.scans.push_back(source.scan(
      *table, columns, [](std::size_t) {}, row));
}

void read_meta(const Source& source, Target& target) {
  std::int64_t shift = 0;
  for (const char* name : {"META_DATA_EXPORT", "EXPORT_META_DATA"}) {
    each(source, target, name, "name value", [&](const Value* row) {
      const std::string_view key = row[0].text(), value = row[1].text();
      if (key == "EXPORT_PRODUCT_VERSION")
        target.product = "Nsight Systems " + base::printable(value);
      if (key == "EXPORT_SCHEMA_VERSION")
        target.schema = base::printable(value);
      if (key == "EXPORT_PARAM_TIME_SHIFT")
        shift = base::to_int(value).value_or(0);
    });
  }
  target.clock.kind = "nsys session time";
  each(source, target, "TARGET_INFO_SESSION_START_TIME", "utcEpochNs", [&](const Value* row) {
    if (!row[0].integer())
      return;
    target.clock.anchor_ns = shift;
    target.clock.anchor_unix_ns = row[0].bits;
  });
  each(source, target, "ANALYSIS_DETAILS", "duration", [&](const Value* row) {
    target.duration_ns = std::max(target.duration_ns, row[0].as_int());
  });
}

void read_names(const Source& source, const StringIds& strings, Target& target) {
  each(source, target, "PROCESSES", "globalPid name", [&](const Value* row) {
    if (row[0].integer())
      target.processes.emplace(process_of(row[0].bits), std::string(row[1].text()));
  });
  each(source, target, "ThreadNames", "globalTid nameId", [&](const Value* row) {
    if (!row[0].integer() || !row[1].integer())
      return;
    const auto name = strings.find(row[1].bits);
    if (name)
      target.threads.emplace(static_cast<std::uint64_t>(row[0].bits), std::string(*name));
  });
}

void read_gpus(const Source& source, Target& target) {
  const bool recent = source.find("TARGET_INFO_GPU") != nullptr;
  each(source,
       target,
       recent ? "TARGET_INFO_GPU" : "TARGET_INFO_CUDA_GPU",
       "id gpuId cuDevice name uuid busLocation chipName computeMajor computeMinor smCount "
       "totalMemory l2CacheSize "
       "clockRate memoryBandwidth",
       [&](const Value* row) {
         Gpu gpu;
         gpu.id = row[0].as_int(row[1].as_int(static_cast<std::int64_t>(target.gpus.size())));
         gpu.cuda_ordinal = row[2].as_int(-1);
         gpu.name = row[3].text();
         gpu.uuid = row[4].text();
         gpu.bus = row[5].text();
         gpu.chip = row[6].text();
         gpu.numbers.compute_major = static_cast<std::uint32_t>(positive(row[7]));
         gpu.numbers.compute_minor = static_cast<std::uint32_t>(positive(row[8]));
         gpu.numbers.sm_count = static_cast<std::uint32_t>(positive(row[9]));
         gpu.numbers.memory_bytes = positive(row[10]);
         gpu.numbers.l2_bytes = positive(row[11]);
         gpu.numbers.sm_clock_hz = static_cast<double>(positive(row[12]));
         gpu.numbers.memory_bytes_per_s = static_cast<double>(positive(row[13]));
         target.gpus.push_back(std::move(gpu));
       });
  each(source, target, "TARGET_INFO_CUDA_DEVICE", "pid cudaId gpuId", [&](const Value* row) {
    if (!row[0].integer() || !row[1].integer() || !row[2].integer())
      return;
    target.gpu_of.emplace(std::pair(static_cast<std::uint32_t>(row[0].bits & 0xffffff),
                                    static_cast<std::uint32_t>(row[1].bits)),
                          row[2].bits);
  });
}

/// CUpti_ActivityStreamFlag: 1 default, 2 non-blocking, 3 null.
void read_streams(const Source& source, Target& target) {
  constexpr model::StreamKind kKinds[] = {model::StreamKind::kUnknown,
                                          model::StreamKind::kBlocking,
                                          model::StreamKind::kNonBlocking,
                                          model::StreamKind::kLegacyDefault};
  each(source,
       target,
       "TARGET_INFO_CUDA_STREAM",
       "processId contextId streamId flag",
       [&](const Value* row) {
         const std::int64_t flag = row[3].as_int();
         const bool is_known = flag >= 0 && flag < std::ssize(kKinds);
         if (!is_known || !row[0].integer() || !row[1].integer() || !row[2].integer())
           return;
         const auto number = [&](std::size_t column) {
           return static_cast<std::uint32_t>(row[column].bits);
         };
         target.streams.push_back({number(0), number(1), number(2), kKinds[flag]});
       });
}

/// nsys tells of lost events only in its own log, which the export keeps. Severity 2 is a warning,
/// 3 an error.
void read_diagnostics(const Source& source, Target& target) {
  each(source, target, "DIAGNOSTIC_EVENT", "severity text", [&](const Value* row) {
    const std::int64_t severity = row[0].as_int();
    if (severity != 2 && severity != 3)
      return;
    const std::string text = base::lower(row[1].text());
    constexpr std::string_view kOurs[] = {
        "cuda", "nvtx", "cupti", "lost", "dropp", "overflow", "buffer", "not all", "missing"};
    if (std::none_of(std::begin(kOurs), std::end(kOurs), [&](auto word) {
          return text.find(word) != std::string::npos;
        }))
      return;
    std::string shown = base::printable(base::trim(row[1].text()));
    for (model::Loss& known : target.diagnostics) {
      if (known.detail == "Nsight Systems said: " + shown)
        return void(++known.count);
    }
    target.diagnostics.push_back({"nsys_diagnostic", 1, "Nsight Systems said: " + shown});
    if (severity == 3)
      target.diagnostics.back().severity = model::Severity::kError;
  });
}

}  // namespace

const Gpu* Target::gpu(std::uint32_t pid, std::uint32_t ordinal) const {
  const auto by_id = [&](std::int64_t id) -> const Gpu* {
    const auto found = std::ranges::find_if(gpus, [&](const Gpu& gpu) { return gpu.id == id; });
    if (found == gpus.end())
      return nullptr;
    return &*found;
  };
  if (const auto found = gpu_of.find({pid, ordinal}); found != gpu_of.end())
    return by_id(found->second);
  if (!gpu_of.empty())
    return nullptr;
  const auto found =
      std::ranges::find_if(gpus, [&](const Gpu& gpu) { return gpu.cuda_ordinal == ordinal; });
  if (found != gpus.end())
    return &*found;
  const bool ordinals =
      std::ranges::any_of(gpus, [](const Gpu& gpu) { return gpu.cuda_ordinal >= 0; });
  if (ordinals)
    return nullptr;
  return by_id(ordinal);
}

Target read_target(const Source& source, const StringIds& strings) {
  Target target;
  read_meta(source, target);
  read_names(source, strings, target);
  read_gpus(source, target);
  read_streams(source, target);
  read_diagnostics(source, target);
  return target;
}

}  // namespace rangescope::read::nsys_sqlite
