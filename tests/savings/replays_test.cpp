// Every recording with GPU work in tests/golden, of ours, of nsys and of PyTorch, replayed as it
// was.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "analyze/replay/build.hpp"
#include "analyze/replay/replay.hpp"
#include "base/source_dir.hpp"
#include "read/registry.hpp"

namespace rangescope {
namespace replays_test {

using namespace analyze::replay;

std::vector<std::filesystem::path> recordings() {
  std::vector<std::filesystem::path> paths;
  for (const char* folder : {"native-gpu", "savings", "nsys", "kineto"}) {
    const auto golden = std::filesystem::path(base::source_dir) / "tests/golden" / folder;
    for (const auto& entry : std::filesystem::directory_iterator(golden)) {
      const std::string extension = entry.path().extension();
      const bool is_recording =
          entry.is_directory() || extension == ".sqlite" || extension == ".gz";
      if (is_recording && entry.path().filename() != "stats")
        paths.push_back(entry.path());
    }
  }
  std::ranges::sort(paths);
  return paths;
}

/// From its first operation to its last, each thread that made calls.
std::vector<Span> threads_of(const Graph& graph) {
  std::vector<Span> spans(graph.lanes.size());
  for (const Operation& operation : graph.operations) {
    Span& span = spans[operation.lane];
    if (span.end_ns == 0)
      span = {graph.lanes[operation.lane].thread, operation.start_ns, 0};
    span.end_ns = std::max(span.end_ns, operation.end_ns);
  }
  std::erase_if(spans,
                [](const Span& span) { return span.end_ns == 0 || span.thread == model::kNone; });
  return spans;
}

std::int64_t end_of_gpu(const Graph& graph, const std::vector<std::int64_t>& ends_ns) {
  std::int64_t end_ns = graph.operations.front().start_ns;
  for (std::uint32_t id = 0; id < graph.size(); ++id) {
    if (is_gpu_work(graph.operations[id].kind))
      end_ns = std::max(end_ns, ends_ns[id]);
  }
  return end_ns - graph.operations.front().start_ns;
}

TEST(Replays, EveryRecordingTakesTheTimeThatItTook) {
  std::vector<double> errors;
  for (const std::filesystem::path& path : recordings()) {
    SCOPED_TRACE(path.string());
    const auto session = read::read_any(path);
    ASSERT_TRUE(session);
    const Graph graph = graph_of(*session);
    const Times times = replay(graph);
    const ReplayedClock clock(graph, times);
    for (const Span& thread : threads_of(graph)) {
      const double error = compare(clock, std::span(&thread, 1)).error();
      EXPECT_LT(error, kTrustedError);
      errors.push_back(error);
    }
    std::vector<std::int64_t> recorded_ends_ns;
    for (const Operation& operation : graph.operations)
      recorded_ends_ns.push_back(operation.end_ns);
    const auto recorded_ns = static_cast<double>(end_of_gpu(graph, recorded_ends_ns));
    EXPECT_NEAR(
        static_cast<double>(end_of_gpu(graph, times.end_ns)), recorded_ns, 0.03 * recorded_ns);
  }
  ASSERT_GT(errors.size(), 30u);
  std::ranges::sort(errors);
  EXPECT_LT(errors[errors.size() / 2], 0.03);
  std::printf("%zu threads: median error %.2f %%, largest %.2f %%\n",
              errors.size(),
              100 * errors[errors.size() / 2],
              100 * errors.back());
}

}  // namespace replays_test
}  // namespace rangescope
