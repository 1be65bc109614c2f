// Kernels that a library compiles at run time in each step, since a shape is new each time: cuDNN's
// attention over a cache that grows takes 12 times as long as one that compiles nothing (H100).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analyze/cures/alike_stretches.hpp"
#include "analyze/cures/candidate.hpp"
#include "base/units.hpp"

namespace rangescope::analyze::cures {
namespace {

/// CUDA's compilers of C++ and PTX.
constexpr std::string_view kCompilers[] = {
    "libnvrtc", "libnvJitLink.so", "libnvidia-ptxjitcompiler.so"};

SampledStretches compilation_in(const Recording& recording, Findings& findings) {
  SampledStretches compilation;
  for (const AlikeStretches& group : alike_stretches(recording, findings)) {
    const auto share = findings.samples().share_in(recording, group.ids, kCompilers);
    if (share.at_places > 0 && 2 * share.at_places >= share.samples)
      compilation.add(group, share);
  }
  std::ranges::sort(compilation.ids);
  return compilation;
}

}  // namespace

void find_kernels_compiled(const Recording& recording, Findings& findings) {
  if (!recording.has_steps() || findings.samples().empty())
    return;
  SampledStretches compilation = compilation_in(recording, findings);
  if (!compilation.go_on(recording))
    return;
  std::string text = fmt::format("kernels are compiled in {} of {} instances ({} in all)",
                                 compilation.instances.size(),
                                 recording.instances().size(),
                                 base::format_ns(compilation.duration_ns(recording)));
  const std::string function = findings.samples().python_function(recording, compilation.ids);
  if (!function.empty())
    text += ", called from " + function;
  add_shortened(recording, findings, "kernels_compiled", std::move(text), std::move(compilation));
}

}  // namespace rangescope::analyze::cures
