// A recording of tests/golden/savings, what changes ask of it, and whether what is predicted for it
// came true.
//
// The machine was not equally fast when it recorded and when it measured (`sync` took 49 ms under
// the profiler and 30 ms alone), so shares of the loop are compared. A prediction is right within
// 10 % of the saving or 5 % of the loop.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/replay/build.hpp"
#include "analyze/replay/changes.hpp"
#include "analyze/replay/predict.hpp"
#include "base/source_dir.hpp"
#include "config/metric_groups.hpp"
#include "read/native/reader.hpp"

namespace rangescope {
namespace savings_test {

using namespace analyze::replay;

/// conf/replay of the sources.
inline const model::ReplayCosts& costs() {
  static const model::ReplayCosts read = [] {
    const std::string conf = std::string(base::source_dir) + "/conf";
    ::setenv("RANGESCOPE_CONF", conf.c_str(), 1);
    return config::replay_costs().value();
  }();
  return read;
}

/// Of an H100: conf/device/h100-sxm.yaml.
inline constexpr double kFp32PerTf32 = 66.9 / 494.7;
inline constexpr double kTensorFp16_flop_per_s = 989.4e12;
inline constexpr double kMemory_bytes_per_s = 3.35e12;
inline constexpr double kHostLink_bytes_per_s = 63.0e9;

inline Parameter pinned_bytes_per_s() {
  const model::MeasuredValue& share = costs().pinned_share;
  return {share.expected * kHostLink_bytes_per_s,
          share.low * kHostLink_bytes_per_s,
          share.high * kHostLink_bytes_per_s};
}
inline std::int64_t graph_launch_ns() {
  return static_cast<std::int64_t>(costs().graph_launch_ns.expected);
}

/// A recording, and what changes ask of it.
class Recording {
 public:
  explicit Recording(std::string_view name) {
    const auto path = std::filesystem::path(base::source_dir) / "tests/golden/savings" / name;
    auto session = read::native::kReader.read(path, {});
    if (!session)
      return;
    session_ = std::move(*session);
    const auto tracing_ns = static_cast<std::int64_t>(costs().tracing_ns.expected);
    predictor_.emplace(graph_of(session_), tracing_ns);
  }

  [[nodiscard]] const model::Session& session() const { return session_; }
  [[nodiscard]] const Predictor& predictor() const { return *predictor_; }
  [[nodiscard]] const Graph& graph() const { return predictor_->graph(); }

  [[nodiscard]] std::vector<Span> spans(std::string_view name) const {
    std::vector<Span> spans;
    for (const model::Range& range : session_.ranges) {
      const bool is_named = !range.module && session_.strings.view(range.name) == name;
      if (is_named)
        spans.push_back({range.thread, range.start_ns, range.end_ns});
    }
    return spans;
  }

  /// Operations in the loop that fit: their ids in `graph`, which is a changed one.
  template <class Fits>
  [[nodiscard]] std::vector<std::uint32_t> operations_in(const Graph& graph,
                                                         Kind kind,
                                                         Fits fits) const {
    const Span loop = spans("loop").front();
    std::vector<std::uint32_t> found;
    for (std::uint32_t id = 0; id < graph.size(); ++id) {
      const Operation& operation = graph.operations[id];
      const bool in_loop = operation.start_ns >= loop.start_ns && operation.start_ns <= loop.end_ns;
      if (in_loop && operation.kind == kind && fits(operation))
        found.push_back(id);
    }
    return found;
  }
  template <class Fits>
  [[nodiscard]] std::vector<std::uint32_t> operations(Kind kind, Fits fits) const {
    return operations_in(graph(), kind, fits);
  }
  [[nodiscard]] std::vector<std::uint32_t> all(Kind kind) const {
    return operations(kind, [](const Operation&) { return true; });
  }
  [[nodiscard]] std::vector<std::uint32_t> kernels(std::string_view name) const {
    return operations(Kind::kKernel, [&](const Operation& operation) {
      return kernel_name(operation).find(name) != std::string_view::npos;
    });
  }
  [[nodiscard]] std::vector<std::uint32_t> stretches_over(std::int64_t ns) const {
    const std::int64_t loop_end_ns = spans("loop").front().end_ns;
    return operations(Kind::kStretch, [&](const Operation& operation) {
      return operation.duration_ns > ns && operation.end_ns < loop_end_ns;
    });
  }

  [[nodiscard]] std::string_view kernel_name(const Operation& kernel) const {
    const model::KernelName& name = session_.kernel_names[session_.kernels[kernel.source].name];
    return session_.strings.view(name.demangled);
  }
  [[nodiscard]] std::string_view call_name(const Operation& call) const {
    return session_.strings.view(session_.launches[call.source].name);
  }

  /// All kernels of each step as one, whose duration may depend on them.
  [[nodiscard]] std::vector<Fusion> one_kernel_a_step(
      const std::function<std::int64_t(const std::vector<std::uint32_t>&)>& duration_ns) const {
    const std::vector<std::uint32_t> kernels = all(Kind::kKernel);
    const std::size_t count = kernels.size() / spans("step").size();
    std::vector<Fusion> fusions;
    for (std::size_t first = 0; first + count <= kernels.size(); first += count) {
      const auto begin = kernels.begin() + static_cast<std::ptrdiff_t>(first);
      const std::vector<std::uint32_t> step(begin, begin + static_cast<std::ptrdiff_t>(count));
      fusions.push_back({step, duration_ns(step)});
    }
    return fusions;
  }

 private:
  model::Session session_;
  std::optional<Predictor> predictor_;
};

struct Fix {
  Change change;
  Parameter parameter;
};

struct Pair {
  const char* name;
  Fix (*fix)(const Recording&);
  double saves_low, saves_high;  ///< realised shares of the loop
};

inline void expect_replay(std::string_view name) {
  const Recording recording(name);
  ASSERT_FALSE(recording.spans("loop").empty());
  EXPECT_LT(recording.predictor().replay_error(recording.spans("loop")), 0.03);
  EXPECT_LT(recording.predictor().replay_error(recording.spans("step")), 0.03);
}

inline void expect_saving(const Pair& pair) {
  const Recording recording(pair.name);
  const Fix fix = pair.fix(recording);
  const Prediction prediction =
      recording.predictor().predict(recording.spans("loop"), fix.change, fix.parameter);
  std::printf(
      "%-11s %8.1f -> %6.1f ms [%6.1f, %6.1f]: saves %4.1f %%, in truth %4.1f to %4.1f %%\n",
      pair.name,
      prediction.before_ns / 1e6,
      prediction.after_ns / 1e6,
      prediction.after_low_ns / 1e6,
      prediction.after_high_ns / 1e6,
      100 * prediction.saves_share(),
      100 * pair.saves_low,
      100 * pair.saves_high);
  const double allowed = std::max(0.05, 0.10 * pair.saves_high);
  EXPECT_FALSE(prediction.is_bound);
  EXPECT_GE(prediction.saves_share(), pair.saves_low - allowed);
  EXPECT_LE(prediction.saves_share(), pair.saves_high + allowed);
}

}  // namespace savings_test
}  // namespace rangescope
