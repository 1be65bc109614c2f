#include "cli/version.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "analyze/tally/coding.hpp"
#include "base/version.hpp"
#include "wire/cpu.hpp"
#include "wire/gpu.hpp"
#include "wire/native.hpp"
#include "wire/samples.hpp"

namespace rangescope::cli {
namespace {

// Set by src/CMakeLists.txt; empty where the build did not know.
constexpr std::string_view kCommit = RANGESCOPE_COMMIT, kBuildType = RANGESCOPE_BUILD_TYPE;
constexpr int kCupti = RANGESCOPE_CUPTI_VERSION;  // 130001 for 13.0 update 1, 0 without its headers

std::string cupti() {
  return fmt::format("{}.{}", kCupti / 10'000, kCupti / 100 % 100);
}

}  // namespace

std::string version_text() {
  std::string text = base::tool_version() + "\n";
  if (!kCommit.empty())
    text += fmt::format("commit {}, ", kCommit);
  text += fmt::format("{} build, ", kBuildType);
  if (kCupti == 0)
    return text + "without CUPTI's headers: no GPU work is recorded\n";
  return text + "CUPTI " + cupti() + " headers\n";
}

std::string version_json() {
  nlohmann::ordered_json json = {{"schema", "rangescope.version/1"},
                                 {"tool", base::tool_version()}};
  if (!kCommit.empty())
    json["commit"] = kCommit;
  json["build_type"] = kBuildType;
  if (kCupti != 0)
    json["cupti_headers"] = cupti();
  json["formats"] = {
      {"report", "rangescope.report/1"},
      {"compare", "rangescope.compare/1"},
      {"native_trace", fmt::format("{}.{}", wire::native::kMajor, wire::native::kMinor)},
      {"native_gpu", wire::gpu::kVersion},
      {"cpu", wire::cpu::kVersion},
      {"samples", wire::samples::kVersion},
      {"digest", analyze::tally::coding::kVersion}};
  return json.dump(2) + "\n";
}

}  // namespace rangescope::cli
