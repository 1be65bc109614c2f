#include "analyze/cpu/hot_functions.hpp"

#include <algorithm>
#include <cstddef>

#include "analyze/cpu/cpu.hpp"

namespace rangescope::analyze {
namespace {

constexpr std::uint32_t kEnoughOfALine = 5;  ///< samples

std::uint32_t stack_of(std::uint64_t key) {
  return static_cast<std::uint32_t>(key >> 2);
}

}  // namespace

HotFunctions::HotFunctions(const model::Session& session) : session_(session), cpu_(session.cpu) {
  hot_line_.resize(cpu_.frames.size());
  for (const model::CpuLine& line : cpu_.lines)
    if (line.samples >= kEnoughOfALine && line.samples > hot_line_[line.frame].samples)
      hot_line_[line.frame] = line;
  unread_.resize(cpu_.frames.size());
  for (std::size_t f = 0; f < cpu_.frames.size(); ++f) {
    const model::CpuFrame& frame = cpu_.frames[f];
    unread_[f] = frame.kind == model::FrameKind::kPython && frame.file == 0 &&
                 session.strings.view(frame.name) == model::kNotRead;
  }
}

/// Of samples of Python code some lack its functions: those of the others represent them.
HotFunctions::PythonScale HotFunctions::python_scale(const StackCounts& stacks) const {
  if (std::ranges::find(unread_, true) == unread_.end())
    return {};
  std::int64_t read = 0, unread = 0, self_read = 0, self_unread = 0;
  for (const auto& [key, count] : stacks) {
    const std::uint32_t innermost = stack_of(key);
    bool has_python = false, has_unread = false;
    for (std::uint32_t s = innermost; s < cpu_.stacks.size() && !has_unread;
         s = cpu_.stacks[s].parent) {
      const std::uint32_t frame = cpu_.stacks[s].frame;
      const bool is_python = cpu_.frames[frame].kind == model::FrameKind::kPython;
      has_unread = unread_[frame];
      has_python |= is_python;
      if (s == innermost && is_python)
        (has_unread ? self_unread : self_read) += count;
    }
    if (has_python)
      (has_unread ? unread : read) += count;
  }
  const auto scale = [](std::int64_t with_functions, std::int64_t without) {
    if (with_functions == 0)
      return 1.0;
    return static_cast<double>(with_functions + without) / static_cast<double>(with_functions);
  };
  return {scale(self_read, self_unread), scale(read, unread)};
}

void HotFunctions::add_times(const StackCounts& stacks, double sample_ns, FrameTimes& times) const {
  std::vector<std::uint32_t> frames;
  for (const auto& [key, count] : stacks) {
    const double ns = static_cast<double>(count) * sample_ns;
    const std::uint32_t innermost = stack_of(key);
    frames.clear();
    for (std::uint32_t s = innermost; s < cpu_.stacks.size(); s = cpu_.stacks[s].parent)
      frames.push_back(cpu_.stacks[s].frame);
    if (!frames.empty())
      times[frames.front()].self_ns += ns;
    std::ranges::sort(frames);  // a recursive function counts once
    frames.erase(std::unique(frames.begin(), frames.end()), frames.end());
    for (const std::uint32_t frame : frames)
      times[frame].total_ns += ns;
  }
}

void HotFunctions::take_largest(const FrameTimes& times,
                                std::vector<std::uint32_t>& frames,
                                double Time::*time,
                                std::vector<model::CpuFunction>& functions) const {
  const std::size_t count = std::min(frames.size(), model::kMostFunctions);
  const auto end = frames.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(frames.begin(), end, frames.end(), [&](std::uint32_t a, std::uint32_t b) {
    const double ns_a = times.at(a).*time;
    const double ns_b = times.at(b).*time;
    return ns_a != ns_b ? ns_a > ns_b : a < b;
  });
  for (std::size_t i = 0; i < count; ++i) {
    const Time& frame_time = times.at(frames[i]);
    if (frame_time.*time <= 0)
      break;
    model::CpuFunction function = function_of(session_, frames[i]);
    function.self_ns = frame_time.self_ns;
    function.total_ns = frame_time.total_ns;
    function.hot_line = hot_line_[frames[i]].line;
    functions.push_back(std::move(function));
  }
}

void HotFunctions::fill(const StackCounts& stacks,
                        double sample_ns,
                        const StackCounts& pool,
                        model::CpuWork& work) const {
  const PythonScale python = python_scale(stacks);
  FrameTimes times;
  add_times(stacks, sample_ns, times);
  add_times(pool, work.interval_ns, times);
  std::vector<std::uint32_t> frames;
  for (auto& [frame, time] : times) {
    const bool is_represented = unread_[frame] && python.total > 1;
    if (cpu_.frames[frame].kind == model::FrameKind::kCut || is_represented)
      continue;
    frames.push_back(frame);
    if (cpu_.frames[frame].kind != model::FrameKind::kPython)
      continue;
    time.self_ns *= python.self;
    time.total_ns = std::max(time.self_ns, time.total_ns * python.total);
  }
  take_largest(times, frames, &Time::self_ns, work.functions);
  take_largest(times, frames, &Time::total_ns, work.callers);
}

}  // namespace rangescope::analyze
