// What the program's own Python functions compute on the thread that launches, between its calls:
// metrics in NumPy, samples that are drawn in Python, text that is parsed. CPU samples show which
// function it is.
//
// PyTorch's own Python code is left out: a program cannot do without it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "analyze/cpu/own/user_code.hpp"
#include "analyze/cures/alike_stretches.hpp"
#include "analyze/cures/candidate.hpp"
#include "base/units.hpp"

namespace rangescope::analyze::cures {
namespace {

/// Of the package torch, wherever it is installed: an environment may be called torch, too.
bool is_of_pytorch(std::string_view file) {
  constexpr std::string_view kPackages = "-packages/";
  const std::size_t packages = file.rfind(kPackages);
  if (packages != std::string_view::npos)
    return file.substr(packages + kPackages.size()).starts_with("torch/");
  return file.find("/torch/") != std::string_view::npos;
}

/// Finds the program's own function of a sample.
class OwnFunctions {
 public:
  explicit OwnFunctions(const model::Session& session)
      : session_(session), code_(user_code(session)) {}

  /// A frame of the innermost own Python function, kNone where there is none, or where it called
  /// PyTorch's Python code. All samples of a function give the same frame.
  [[nodiscard]] std::uint32_t function_of(std::uint32_t stack) {
    const std::uint32_t own = code_.innermost[stack];
    const bool is_python =
        own != model::kNone && session_.cpu.frames[own].kind == model::FrameKind::kPython;
    if (!is_python || calls_pytorch(stack, own))
      return model::kNone;
    const model::CpuFrame& frame = session_.cpu.frames[own];
    return first_frames_.try_emplace({frame.name, frame.file}, own).first->second;
  }
  [[nodiscard]] std::string text(std::uint32_t frame) const {
    return model::place_text(code_place(session_, code_, frame));
  }

 private:
  /// Between the sampled place and the program's own function.
  [[nodiscard]] bool calls_pytorch(std::uint32_t stack, std::uint32_t own) const {
    for (; stack != model::kNone; stack = session_.cpu.stacks[stack].parent) {
      const std::uint32_t frame = session_.cpu.stacks[stack].frame;
      if (frame == own)
        return false;
      const model::CpuFrame& called = session_.cpu.frames[frame];
      const bool is_python = called.kind == model::FrameKind::kPython;
      if (is_python && is_of_pytorch(session_.strings.view(called.file)))
        return true;
    }
    return false;
  }

  const model::Session& session_;
  UserCode code_;
  std::map<std::pair<model::StringId, model::StringId>, std::uint32_t> first_frames_;
};

/// By a frame of the function.
std::map<std::uint32_t, SampledStretches> work_by_function(
    const Recording& recording,
    const StackSamples& samples,
    const std::vector<AlikeStretches>& groups,
    OwnFunctions& functions) {
  std::map<std::uint32_t, SampledStretches> work_of;
  for (const AlikeStretches& group : groups) {
    std::map<std::uint32_t, std::size_t> samples_of;
    std::size_t count = 0;
    for (const Id stretch : group.ids) {
      for (const std::uint32_t stack : samples.in(recording, stretch)) {
        ++count;
        ++samples_of[functions.function_of(stack)];
      }
    }
    samples_of.erase(model::kNone);
    const auto usual =
        std::ranges::max_element(samples_of, {}, [](const auto& entry) { return entry.second; });
    if (usual == samples_of.end() || 2 * usual->second < count)
      continue;
    work_of[usual->first].add(group, {count, usual->second});
  }
  return work_of;
}

}  // namespace

void find_own_functions(const Recording& recording, Findings& findings) {
  if (!recording.has_steps() || findings.samples().empty())
    return;
  const std::vector<AlikeStretches> groups = alike_stretches(recording, findings);
  OwnFunctions functions(recording.session());
  for (auto& [frame, work] : work_by_function(recording, findings.samples(), groups, functions)) {
    if (!work.go_on(recording))
      continue;
    std::string text =
        fmt::format("the launching thread computes in {} in {} of {} instances ({} in all)",
                    functions.text(frame),
                    work.instances.size(),
                    recording.instances().size(),
                    base::format_ns(work.duration_ns(recording)));
    add_shortened(recording, findings, "own_function", std::move(text), std::move(work));
  }
}

}  // namespace rangescope::analyze::cures
