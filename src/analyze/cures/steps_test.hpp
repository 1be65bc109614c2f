// Small programs for tests of cures: a loop of steps on one thread and one stream of an H100, timed
// as that would run them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/cures/candidate.hpp"
#include "analyze/options.hpp"
#include "analyze/session_test.hpp"
#include "model/peaks.hpp"
#include "model/replay_costs.hpp"

namespace rangescope::analyze::cures::testing {

inline constexpr std::int64_t kUs = 1'000, kMs = 1'000'000;

inline model::Peaks h100() {
  model::Peaks peaks;
  peaks.match = {"GPU"};  // of a test's session
  peaks.memory_bytes_per_s = 3.35e12;
  peaks.host_link_bytes_per_s = 63e9;
  peaks.flop_per_s = {{"fp32", 66.9e12}, {"tensor_tf32", 494.7e12}};
  return peaks;
}

/// As conf/replay/costs.yaml has them.
inline model::ReplayCosts replay_costs() {
  return {
      {1'300, 1'300, 2'800}, {5'000, 3'000, 10'000}, {33'000, 25'000, 44'000}, {0.83, 0.76, 0.87}};
}

inline Reference reference() {
  Reference reference;
  reference.replay_costs = replay_costs();
  reference.peaks = {h100()};
  return reference;
}

class Steps {
 public:
  Steps() {
    process_ = builder_.process(1);
    thread_ = builder_.thread(process_, 1);
    const std::uint32_t device = builder_.device(process_, 0);
    builder_.stream(process_, device, 7);
    builder_.session.devices[0].sm_count = 132;
    builder_.session.devices[0].compute_major = 9;
  }

  template <class Step>
  static Steps run(Step step, int count = 8) {
    Steps steps;
    const std::int64_t begin_ns = steps.now_ns_;
    for (steps.step_ = 0; steps.step_ < count; ++steps.step_) {
      const std::int64_t step_ns = steps.now_ns_;
      step(steps);
      steps.compute(2 * kUs);
      steps.spans_.push_back({step_ns, steps.now_ns_});
    }
    steps.wait();
    steps.compute(2 * kUs);
    steps.builder_.range(steps.thread_, "loop", begin_ns, steps.now_ns_);
    for (const auto& [start_ns, end_ns] : steps.spans_)
      steps.builder_.range(steps.thread_, "step", start_ns, end_ns);
    return steps;
  }

  [[nodiscard]] int step() const { return step_; }
  void compute(std::int64_t ns) { now_ns_ += ns; }

  /// The thread is seen three times in that function.
  void compute_in(std::string_view function, std::int64_t ns, std::string_view file = "") {
    model::Session& session = builder_.session;
    model::CpuProfile& cpu = session.cpu;
    model::CpuFrame frame;
    frame.name = session.strings.intern(function);
    frame.file = session.strings.intern(file);
    cpu.frames.push_back(frame);
    cpu.stacks.push_back({model::kNone, static_cast<std::uint32_t>(cpu.frames.size() - 1)});
    const std::uint32_t thread = sampled_thread();
    for (int part = 1; part <= 3; ++part) {
      const auto stack = static_cast<std::uint32_t>(cpu.stacks.size() - 1);
      cpu.samples.push_back({now_ns_ + part * ns / 4, thread, stack});
    }
    compute(ns);
  }

  /// The thread is sampled three times in code of that library.
  void compute_in_library(std::string_view path, std::int64_t ns) {
    compute_in("", ns);
    model::Session& session = builder_.session;
    session.cpu.frames.back().module = session.strings.intern(path);
  }

  struct PythonFunction {
    std::string_view name, file;
  };
  /// The thread is sampled so many times in this chain of functions, the outermost first.
  void compute_in_python(std::initializer_list<PythonFunction> chain,
                         std::int64_t ns,
                         int samples = 3) {
    model::Session& session = builder_.session;
    model::CpuProfile& cpu = session.cpu;
    std::uint32_t stack = model::kNone;
    for (const PythonFunction& function : chain) {
      model::CpuFrame frame;
      frame.kind = model::FrameKind::kPython;
      frame.name = session.strings.intern(function.name);
      frame.file = session.strings.intern(function.file);
      cpu.frames.push_back(frame);
      cpu.stacks.push_back({stack, static_cast<std::uint32_t>(cpu.frames.size() - 1)});
      stack = static_cast<std::uint32_t>(cpu.stacks.size() - 1);
    }
    const std::uint32_t thread = sampled_thread();
    for (int part = 1; part <= samples; ++part)
      cpu.samples.push_back({now_ns_ + part * ns / (samples + 1), thread, stack});
    compute(ns);
  }

  /// A thread without ranges launches while the thread of the steps waits for it, as PyTorch's
  /// backward pass does.
  template <class Launch>
  void on_other_thread(Launch launch) {
    if (other_thread_ == model::kNone)
      other_thread_ = builder_.thread(process_, 2);
    compute(100 * kUs);
    std::swap(thread_, other_thread_);
    launch();
    std::swap(thread_, other_thread_);
    compute(100 * kUs);
  }

  /// What is launched meanwhile is of that module, or of the whole `backward`.
  template <class Launch>
  void in_module(std::string_view name, Launch launch) {
    const std::int64_t start_ns = now_ns_;
    launch();
    const std::uint32_t range = builder_.range(thread_, name, start_ns, now_ns_, "nn.Module");
    builder_.session.ranges[range].module = true;
  }

  void kernel(std::string_view name, std::int64_t ns, std::uint32_t grid) {
    compute(4 * kUs);
    const std::uint32_t launch = call("cuLaunchKernel", 4 * kUs, model::LaunchKind::kKernel);
    const std::int64_t start_ns = std::max(now_ns_ + 2 * kUs, free_ns_ + kUs);
    free_ns_ = start_ns + ns;
    builder_.kernel(launch, name, start_ns, free_ns_, 0, grid);
  }

  /// PyTorch's allocator hands out memory for the result of what is called next.
  void allocate(std::uint64_t bytes) {
    model::Allocators& allocators = builder_.session.allocators;
    if (allocators.empty())
      allocators.allocators.emplace_back();
    compute(2 * kUs);
    model::Allocation allocation;
    allocation.start_ns = now_ns_;
    allocation.bytes = bytes;
    allocators.allocations.push_back(allocation);
  }

  /// Its call returns at once: the memory is pinned.
  void copy(model::CopyKind kind, std::uint64_t bytes, std::int64_t ns) {
    const std::uint32_t launch = call("cuMemcpyAsync", 4 * kUs, model::LaunchKind::kCopy);
    const std::int64_t start_ns = std::max(now_ns_ + 2 * kUs, free_ns_ + kUs);
    free_ns_ = start_ns + ns;
    builder_.copy(launch, start_ns, free_ns_, bytes, kind);
  }

  /// Lies inside its call, which does not wait for it.
  void short_copy_on_gpu(std::uint64_t bytes) {
    const std::uint32_t launch = call("cuMemcpyDtoDAsync", 8 * kUs, model::LaunchKind::kCopy);
    const std::int64_t start_ns = std::max(now_ns_ - 4 * kUs, free_ns_ + kUs);
    free_ns_ = start_ns + kUs;
    builder_.copy(launch, start_ns, free_ns_, bytes, model::CopyKind::kDeviceToDevice);
  }

  /// Its call returns when it has ended.
  void pageable_copy(std::uint64_t bytes, std::int64_t ns) {
    const std::int64_t called_ns = now_ns_;
    const std::int64_t start_ns = std::max(now_ns_ + 4 * kUs, free_ns_ + kUs);
    now_ns_ = free_ns_ = start_ns + ns;
    const std::uint32_t launch =
        builder_.launch(thread_, called_ns, now_ns_, model::LaunchKind::kCopy);
    builder_.copy(launch, start_ns, free_ns_, bytes, model::CopyKind::kHostToDevice);
  }

  void wait() {
    const std::int64_t called_ns = now_ns_;
    now_ns_ = std::max(now_ns_ + 3 * kUs, free_ns_ + 5 * kUs);
    builder_.launch(thread_, called_ns, now_ns_, model::LaunchKind::kSynchronize);
  }

  std::uint32_t call(std::string_view name,
                     std::int64_t ns,
                     model::LaunchKind kind = model::LaunchKind::kOther) {
    const std::uint32_t launch = builder_.launch(thread_, now_ns_, now_ns_ + ns, kind);
    builder_.session.launches[launch].name = builder_.session.strings.intern(name);
    now_ns_ += ns;
    return launch;
  }

  [[nodiscard]] const model::Session& session() const { return builder_.session; }
  [[nodiscard]] model::Session& session() { return builder_.session; }

 private:
  /// Index into CpuProfile::threads.
  std::uint32_t sampled_thread() {
    std::vector<model::CpuThread>& threads = builder_.session.cpu.threads;
    const auto found = std::ranges::find(threads, thread_, &model::CpuThread::thread);
    const auto index = static_cast<std::uint32_t>(found - threads.begin());
    const std::uint32_t tid = builder_.session.threads[thread_].tid;
    if (found == threads.end())
      threads.push_back({1, tid, 0, thread_});
    return index;
  }

  analyze::testing::SessionBuilder builder_;
  std::uint32_t process_ = 0, thread_ = 0, other_thread_ = model::kNone;
  std::int64_t now_ns_ = kMs, free_ns_ = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> spans_;
  int step_ = 0;
};

}  // namespace rangescope::analyze::cures::testing
