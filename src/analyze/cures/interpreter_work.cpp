// What the launching thread does in the loop that is no part of the step: it compiles again,
// captures a graph again, exports a profile, writes a checkpoint. Samples of its Python files tell.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "analyze/cures/candidate.hpp"
#include "base/units.hpp"

namespace rangescope::analyze::cures {
namespace {

/// Shorter stretches are what a framework does between two calls.
constexpr std::int64_t kLongStretch_ns = 100'000;
/// The first instances start up: compiling and capturing belongs there.
constexpr std::size_t kStartUpInstances = 2;
constexpr std::size_t kFewestInstances = 2;
constexpr std::size_t kFewestSamples = 3;

struct Culprit {
  std::string_view cure;
  const char* what;  ///< that its thread does
  std::span<const std::string_view> files;
};

constexpr std::string_view kCompiler[] = {"torch/_dynamo/", "torch/_inductor/",
                                          "torch/_functorch/"};
constexpr std::string_view kGraphs[] = {"torch/cuda/graphs.py"};
constexpr std::string_view kProfiler[] = {"torch/profiler/"};
constexpr std::string_view kCheckpoints[] = {"torch/serialization.py",
                                             "torch/distributed/checkpoint/", "safetensors/"};
constexpr Culprit kCulprits[] = {
    {"recompilations", "compiles again", kCompiler},
    {"graph_captures", "captures a CUDA graph again", kGraphs},
    {"profiler_in_loop", "writes what PyTorch's profiler recorded", kProfiler},
    {"checkpoints_in_loop", "writes checkpoints", kCheckpoints},
};

/// The long stretches of the loop in which most samples are in a culprit's files.
struct SampledWork {
  Ids stretches;
  std::size_t instances = 0, samples = 0, culprit_samples = 0;
};

SampledWork work_of(const Recording& recording, Findings& findings, const Culprit& culprit) {
  SampledWork work;
  const auto& instances = recording.instances();
  for (std::size_t index = kStartUpInstances; index < instances.size(); ++index) {
    const std::size_t before = work.stretches.size();
    for (const Id id : instances[index].calls) {
      const Operation& operation = recording.operation(id);
      const bool is_long =
          operation.kind == Kind::kStretch && operation.duration_ns >= kLongStretch_ns;
      if (!is_long || findings.is_claimed(id)) continue;
      const auto [samples, in_files] =
          findings.samples().share_in_files(recording, {id}, culprit.files);
      if (in_files == 0 || 2 * in_files < samples) continue;
      work.stretches.push_back(id);
      work.samples += samples;
      work.culprit_samples += in_files;
    }
    if (work.stretches.size() > before) ++work.instances;
  }
  return work;
}

}  // namespace

void find_interpreter_work(const Recording& recording, Findings& findings) {
  if (!recording.has_ranges() || findings.samples().empty()) return;
  for (const Culprit& culprit : kCulprits) {
    SampledWork work = work_of(recording, findings, culprit);
    const bool goes_on =
        work.instances >= kFewestInstances && work.culprit_samples >= kFewestSamples;
    if (!goes_on) continue;
    const double work_ns = recording.duration_ns(work.stretches);
    const double left =
        1 - static_cast<double>(work.culprit_samples) / static_cast<double>(work.samples);
    findings.claim(work.stretches);
    Candidate candidate{
        culprit.cure,
        fmt::format("the launching thread {} in {} of {} instances ({} in all)", culprit.what,
                    work.instances, recording.instances().size(), base::format_ns(work_ns)),
        {},
        {left, 0, std::min(1.0, left + 0.1)},
        {{"instances", static_cast<double>(work.instances)},
         {"samples", static_cast<double>(work.culprit_samples)},
         {"stretch_ns", work_ns}}};
    candidate.remedy.shortened = std::move(work.stretches);
    findings.add(std::move(candidate));
  }
}

}  // namespace rangescope::analyze::cures
