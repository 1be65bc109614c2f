// Kernels that a library compiles at run time in each step, since a shape is new each time: cuDNN's
// attention over a cache that grows takes 12 times as long as one that compiles nothing (H100).
#include <fmt/format.h>

#include <algorithm>

#include "analyze/cures/alike_stretches.hpp"
#include "analyze/cures/candidate.hpp"
#include "base/units.hpp"

namespace rangescope::analyze::cures {
namespace {

/// CUDA's compilers of C++ and PTX.
constexpr std::string_view kCompilers[] = {
    "libnvrtc", "libnvJitLink.so", "libnvidia-ptxjitcompiler.so"};
constexpr std::size_t kFewestCompilerSamples = 8;

struct Compilation {
  Ids stretches;
  std::set<std::size_t> instances;
  StackSamples::Share share;
};

Compilation compilation_of(const Recording& recording, Findings& findings) {
  Compilation compilation;
  for (const AlikeStretches& group : alike_stretches(recording, findings)) {
    const auto share = findings.samples().share_in(recording, group.ids, kCompilers);
    if (share.at_places == 0 || 2 * share.at_places < share.samples)
      continue;
    append(compilation.stretches, group.ids);
    compilation.instances.insert(group.instances.begin(), group.instances.end());
    compilation.share.samples += share.samples;
    compilation.share.at_places += share.at_places;
  }
  std::ranges::sort(compilation.stretches);
  return compilation;
}

}  // namespace

void find_kernels_compiled(const Recording& recording, Findings& findings) {
  if (!recording.has_steps() || findings.samples().empty())
    return;
  Compilation compilation = compilation_of(recording, findings);
  const bool is_sampled = compilation.share.at_places >= kFewestCompilerSamples;
  if (!is_sampled || !goes_on(recording, compilation.instances))
    return;
  findings.claim(compilation.stretches);
  const replay::Parameter rest = rest_of(compilation.share);
  const double compiling_ns = (1 - rest.expected) * recording.duration_ns(compilation.stretches);
  const std::string function = findings.samples().python_function(recording, compilation.stretches);
  Candidate candidate{"kernels_compiled",
                      fmt::format("kernels are compiled in {} of {} instances ({} in all){}",
                                  compilation.instances.size(),
                                  recording.instances().size(),
                                  base::format_ns(compiling_ns),
                                  function.empty() ? "" : ", called from " + function),
                      {},
                      rest,
                      {{"instances", static_cast<double>(compilation.instances.size())},
                       {"samples", static_cast<double>(compilation.share.at_places)},
                       {"stretch_ns", compiling_ns}}};
  candidate.remedy.shortened = std::move(compilation.stretches);
  findings.add(std::move(candidate));
}

}  // namespace rangescope::analyze::cures
