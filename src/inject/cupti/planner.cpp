// The table of wire/planner.hpp, answered by the CUPTI that load() finds.
#include "wire/planner.hpp"

#include <algorithm>
#include <cstdio>

#include "inject/counters/plan.hpp"
#include "inject/cupti/host.hpp"
#include "inject/text.hpp"

namespace rangescope::inject::cupti {
namespace {

namespace planner = wire::planner;

// Used only by the command line, in its own process, one call at a time.
Api g_api;
HostApi g_host;
bool g_open = false;
char g_version[32];

int open(char* why, std::size_t why_bytes) {
  if (g_open)
    return 0;
  if (g_api.library == nullptr && !load(g_api, why, why_bytes))
    return -1;
  if (!g_host.load(g_api, why, why_bytes))
    return -1;
  version_name(g_api.version, g_version, sizeof g_version);
  g_open = true;
  return 0;
}

const char* library() {
  return g_api.path;
}
const char* library_version() {
  return g_version;
}

int chips(planner::EmitName emit, void* context, char* why, std::size_t why_bytes) {
  if (open(why, why_bytes) != 0)
    return -1;
  CUpti_Profiler_Host_GetSupportedChips_Params params = {
      CUpti_Profiler_Host_GetSupportedChips_Params_STRUCT_SIZE};
  const CUptiResult result = g_host.cuptiProfilerHostGetSupportedChips(&params);
  if (result != CUPTI_SUCCESS) {
    std::snprintf(why, why_bytes, "cuptiProfilerHostGetSupportedChips: %s", g_api.text(result));
    return -1;
  }
  for (std::size_t i = 0; i < params.numChips; ++i)
    emit(context, params.ppChipNames[i]);
  return 0;
}

int metrics(const char* chip,
            planner::MetricKind kind,
            planner::EmitName emit,
            void* context,
            char* why,
            std::size_t why_bytes) {
  if (open(why, why_bytes) != 0)
    return -1;
  Host host;
  if (!host.open(g_host, chip, nullptr, why, why_bytes))
    return -1;
  CUpti_Profiler_Host_GetBaseMetrics_Params params = {
      CUpti_Profiler_Host_GetBaseMetrics_Params_STRUCT_SIZE};
  params.pHostObject = host.object();
  params.metricType = static_cast<CUpti_MetricType>(kind);
  const CUptiResult result = g_host.cuptiProfilerHostGetBaseMetrics(&params);
  if (result != CUPTI_SUCCESS) {
    std::snprintf(why, why_bytes, "cuptiProfilerHostGetBaseMetrics: %s", g_api.text(result));
    return -1;
  }
  for (std::size_t i = 0; i < params.numMetrics; ++i)
    emit(context, params.ppMetricNames[i]);
  return 0;
}

int describe(const char* chip,
             const char* metric,
             planner::EmitName description,
             planner::EmitName hardware,
             planner::EmitName dimension,
             void* context,
             char* why,
             std::size_t why_bytes) {
  if (open(why, why_bytes) != 0)
    return -1;
  Host host;
  if (!host.open(g_host, chip, nullptr, why, why_bytes))
    return -1;
  CUpti_Profiler_Host_GetMetricProperties_Params params = {
      CUpti_Profiler_Host_GetMetricProperties_Params_STRUCT_SIZE};
  params.pHostObject = host.object();
  params.pMetricName = metric;
  const CUptiResult result = g_host.cuptiProfilerHostGetMetricProperties(&params);
  if (result != CUPTI_SUCCESS) {
    std::snprintf(why, why_bytes, "metric %s on %s: %s", metric, chip, g_api.text(result));
    return 1;
  }
  description(context, text_or(params.pDescription, ""));
  hardware(context, text_or(params.pHwUnit, ""));
  dimension(context, text_or(params.pDimUnit, ""));
  return 0;
}

int passes(const char* chip,
           const char* const* names,
           std::size_t count,
           std::size_t* number,
           std::size_t* refused,
           char* why,
           std::size_t why_bytes) {
  if (open(why, why_bytes) != 0)
    return -1;
  Host host;
  Bytes image;
  if (!host.open(g_host, chip, nullptr, why, why_bytes))
    return -1;
  bool is_refused[counters::kMaxMetrics] = {};
  if (count > counters::kMaxMetrics) {
    std::snprintf(why, why_bytes, "too many metrics");
    return -1;
  }
  if (!host.add(names, count, is_refused, why, why_bytes)) {
    const bool* first = std::find(is_refused, is_refused + count, true);
    *refused = static_cast<std::size_t>(first - is_refused);
    return *refused < count ? 1 : 2;
  }
  if (!host.config(image, *number, why, why_bytes))
    return -1;
  return 0;
}

constexpr planner::Table kTable = {planner::kVersion,
                                   sizeof(planner::Table),
                                   open,
                                   library,
                                   library_version,
                                   chips,
                                   metrics,
                                   describe,
                                   passes};

}  // namespace
}  // namespace rangescope::inject::cupti

extern "C" __attribute__((visibility("default"))) const rangescope::wire::planner::Table*
rangescope_planner() {
  return &rangescope::inject::cupti::kTable;
}
