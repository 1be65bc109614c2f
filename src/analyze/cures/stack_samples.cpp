#include "analyze/cures/stack_samples.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/text.hpp"

namespace rangescope::analyze::cures {

StackSamples::StackSamples(const model::Session& session) : session_(session) {
  for (const model::CpuSample& sample : session.cpu.samples) {
    sampled_processes_.emplace_back(session.cpu.threads[sample.thread].pid, sample.at_ns);
    const std::uint32_t thread = session.cpu.threads[sample.thread].thread;
    const bool is_known = thread != model::kNone && sample.stack != model::kNone;
    if (is_known)
      samples_.push_back({thread, sample.at_ns, sample.stack});
  }
  std::ranges::stable_sort(
      samples_, {}, [](const Sample& sample) { return std::tuple(sample.thread, sample.at_ns); });
  std::ranges::sort(sampled_processes_);
}

double StackSamples::busy_cpus(const Recording& recording,
                               const std::vector<Id>& operations) const {
  std::size_t of_thread = 0, of_process = 0;
  for (const Id operation : operations) {
    of_thread += in(recording, operation).size();
    const Operation& recorded = recording.operation(operation);
    const Id thread = recording.graph().lanes[recorded.lane].thread;
    const std::uint32_t pid = session_.processes[session_.threads[thread].process].pid;
    const auto first =
        std::ranges::lower_bound(sampled_processes_, std::pair(pid, recorded.start_ns));
    const auto last = std::ranges::upper_bound(sampled_processes_, std::pair(pid, recorded.end_ns));
    of_process += static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, last - first));
  }
  if (of_thread == 0)
    return 1;
  return std::max(1.0, static_cast<double>(of_process) / static_cast<double>(of_thread));
}

std::vector<std::uint32_t> StackSamples::in(const Recording& recording, Id operation) const {
  const Operation& recorded = recording.operation(operation);
  const Id thread = recording.graph().lanes[recorded.lane].thread;
  const auto key = [](const Sample& sample) { return std::tuple(sample.thread, sample.at_ns); };
  const auto first =
      std::ranges::lower_bound(samples_, std::tuple(thread, recorded.start_ns), {}, key);
  const auto last =
      std::ranges::upper_bound(samples_, std::tuple(thread, recorded.end_ns), {}, key);
  std::vector<std::uint32_t> stacks;
  for (auto sample = first; sample < last; ++sample)
    stacks.push_back(sample->stack);
  return stacks;
}

std::string_view StackSamples::function_of(std::uint32_t stack) const {
  const model::CpuFrame& frame = session_.cpu.frames[session_.cpu.stacks[stack].frame];
  return session_.strings.view(frame.name);
}

std::string_view StackSamples::module_of(std::uint32_t stack) const {
  const model::CpuFrame& frame = session_.cpu.frames[session_.cpu.stacks[stack].frame];
  return session_.strings.view(frame.module);
}

bool StackSamples::enters_kernel_from_driver(std::uint32_t stack) const {
  constexpr std::string_view kRecorded[] = {"Launch", "Memcpy", "Memset", "Synchronize"};
  bool calls_kernel = false, is_of_driver = false;
  for (; stack != model::kNone; stack = session_.cpu.stacks[stack].parent) {
    const std::string_view function = function_of(stack);
    calls_kernel =
        calls_kernel || function == "ioctl" || function == "mmap" || function == "munmap";
    const bool is_driver = module_of(stack).find("libcuda.so") != std::string_view::npos;
    is_of_driver = is_of_driver || (is_driver && calls_kernel);
    for (const std::string_view recorded : kRecorded) {
      if (function.starts_with("cu") && function.find(recorded) != std::string_view::npos)
        return false;
    }
  }
  return is_of_driver;
}

bool StackSamples::is_at(std::uint32_t frame, const CodePlace& place) const {
  const model::CpuFrame& sampled = session_.cpu.frames[frame];
  if (session_.strings.view(sampled.file).find(place.file_part) == std::string_view::npos)
    return false;
  // A qualified name, "graph.__enter__", ends in that of the function.
  const std::string_view name = session_.strings.view(sampled.name);
  return place.function.empty() || name.substr(name.rfind('.') + 1) == place.function;
}

/// `fits` decides by one entry of a stack whether the sample counts.
template <class Fits>
StackSamples::Share StackSamples::share_of_stacks(const Recording& recording,
                                                  const std::vector<Id>& operations,
                                                  Fits fits) const {
  const auto has_fitting = [&](std::uint32_t stack) {
    for (; stack != model::kNone; stack = session_.cpu.stacks[stack].parent) {
      if (fits(stack))
        return true;
    }
    return false;
  };
  Share share;
  for (const Id operation : operations) {
    for (const std::uint32_t stack : in(recording, operation)) {
      ++share.samples;
      if (has_fitting(stack))
        ++share.at_places;
    }
  }
  return share;
}

StackSamples::Share StackSamples::share_at(const Recording& recording,
                                           const std::vector<Id>& operations,
                                           std::span<const CodePlace> places) const {
  return share_of_stacks(recording, operations, [&](std::uint32_t stack) {
    const std::uint32_t frame = session_.cpu.stacks[stack].frame;
    return std::ranges::any_of(places, [&](const CodePlace& place) { return is_at(frame, place); });
  });
}

StackSamples::Share StackSamples::share_in(const Recording& recording,
                                           const std::vector<Id>& operations,
                                           std::span<const std::string_view> libraries) const {
  return share_of_stacks(recording, operations, [&](std::uint32_t stack) {
    const std::string_view module = module_of(stack);
    return std::ranges::any_of(libraries, [&](std::string_view library) {
      return module.find(library) != std::string_view::npos;
    });
  });
}

std::string StackSamples::python_function(const Recording& recording,
                                          const std::vector<Id>& operations) const {
  std::map<std::uint32_t, std::size_t> count_of_frame;
  std::size_t count = 0;
  for (const Id operation : operations) {
    for (std::uint32_t stack : in(recording, operation)) {
      ++count;
      for (; stack != model::kNone; stack = session_.cpu.stacks[stack].parent) {
        const std::uint32_t frame = session_.cpu.stacks[stack].frame;
        if (session_.cpu.frames[frame].kind != model::FrameKind::kPython)
          continue;
        ++count_of_frame[frame];
        break;
      }
    }
  }
  const auto usual =
      std::ranges::max_element(count_of_frame, {}, [](const auto& entry) { return entry.second; });
  if (usual == count_of_frame.end() || 2 * usual->second < count)
    return {};
  const model::CpuFrame& frame = session_.cpu.frames[usual->first];
  const std::string_view file = base::file_name(session_.strings.view(frame.file));
  return std::string(session_.strings.view(frame.name)) + " (" + std::string(file) + ")";
}

}  // namespace rangescope::analyze::cures
