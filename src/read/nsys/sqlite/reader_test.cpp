#include "read/nsys/sqlite/reader.hpp"
#include "base/source_dir.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <tuple>

namespace rangescope::read::nsys_sqlite {
namespace reader_test {

const std::string kGolden = std::string(base::source_dir) + "/tests/golden/nsys/";

model::Session golden(const std::string& name) {
  auto session = kReader.read(kGolden + name, {});
  EXPECT_TRUE(session) << (session ? "" : base::to_string(session.error()));
  return session ? std::move(*session) : model::Session{};
}

/// Cells of a CSV file whose fields may be quoted.
std::vector<std::vector<std::string>> csv(const std::string& name) {
  std::ifstream in(kGolden + name);
  EXPECT_TRUE(in) << name;
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(in, line);) {
    std::vector<std::string> row(1);
    bool quoted = false;
    for (const char c : line) {
      if (c == '"')
        quoted = !quoted;
      else if (c == ',' && !quoted)
        row.emplace_back();
      else
        row.back() += c;
    }
    rows.push_back(std::move(row));
  }
  rows.erase(rows.begin());
  return rows;
}

std::string text(const model::Session& s, model::StringId id) {
  return std::string(s.strings.view(id));
}

/// nsys writes "domain:name", the default domain as nothing.
std::string nsys_name(const model::Session& s, const model::Range& range) {
  return text(s, s.domains[range.domain].name) + ':' + text(s, range.name);
}

bool contains(const model::Session& s, const model::Range& range, const model::Launch& launch) {
  return range.thread == launch.thread && range.start_ns <= launch.start_ns &&
         launch.end_ns <= range.end_ns && range.end_thread == model::kNone &&
         s.threads[range.thread].process == s.threads[launch.thread].process;
}

/// nvtx_kern_sum: (range, tid, kernel) -> instances, nanoseconds. Brute force: every range against
/// every kernel.
using KernSum = std::map<std::tuple<std::string, std::string, std::string>,
                         std::pair<std::int64_t, std::int64_t>>;
KernSum kern_sum(const model::Session& s) {
  KernSum sums;
  for (const model::Kernel& kernel : s.kernels) {
    if (kernel.launch == model::kNone)
      continue;
    const model::Launch& launch = s.launches[kernel.launch];
    const std::string name = text(s, s.kernel_names[kernel.name].demangled);
    const std::string tid = std::to_string(s.threads[launch.thread].tid);
    bool any = false;
    for (const model::Range& range : s.ranges) {
      if (!contains(s, range, launch))
        continue;
      any = true;
      auto& sum = sums[{nsys_name(s, range), tid, name}];
      sum.first += 1;
      sum.second += kernel.end_ns - kernel.start_ns;
    }
    if (any)
      continue;
    auto& sum = sums[{"", tid, name}];
    sum.first += 1;
    sum.second += kernel.end_ns - kernel.start_ns;
  }
  return sums;
}

KernSum kern_sum_of(const std::string& file) {
  KernSum sums;
  for (const auto& row : csv(file)) {
    auto& sum = sums[{row[0], row[3], row[12]}];
    sum.first += std::stoll(row[5]);
    sum.second += std::stoll(row[6]);
  }
  return sums;
}

class Stats : public ::testing::TestWithParam<const char*> {};

TEST_P(Stats, KernelsByNameEqualNsysStats) {
  const std::string name = GetParam();
  const model::Session s = golden(name + ".sqlite");
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> sums, expected;
  for (const model::Kernel& kernel : s.kernels) {
    auto& sum = sums[text(s, s.kernel_names[kernel.name].demangled)];
    sum.first += 1;
    sum.second += kernel.end_ns - kernel.start_ns;
  }
  for (const auto& row : csv(name + "_cuda_gpu_kern_sum.csv"))
    expected[row[8]] = {std::stoll(row[2]), std::stoll(row[1])};
  EXPECT_EQ(sums, expected);
}

TEST_P(Stats, KernelsByRangeEqualNsysStats) {
  const std::string name = GetParam();
  EXPECT_EQ(kern_sum(golden(name + ".sqlite")), kern_sum_of(name + "_nvtx_kern_sum.csv"));
}

TEST_P(Stats, PushPopTimesEqualNsysStats) {
  const std::string name = GetParam();
  const model::Session s = golden(name + ".sqlite");
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> sums, expected;
  for (const model::Range& range : s.ranges) {
    if (range.kind != model::RangeKind::kPushPop || range.end_ns == model::kOpen)
      continue;
    auto& sum = sums[nsys_name(s, range)];
    sum.first += 1;
    sum.second += range.end_ns - range.start_ns;
  }
  for (const auto& row : csv(name + "_nvtx_pushpop_sum.csv"))
    expected[row[8]] = {std::stoll(row[2]), std::stoll(row[1])};
  EXPECT_EQ(sums, expected);
}

INSTANTIATE_TEST_SUITE_P(Recorded, Stats, ::testing::Values("zoo", "work", "autograd", "mp"));

/// Regions of the default domain by path, counted by brute force: a range's parents are the ranges
/// around it.
std::map<std::string, std::pair<std::int64_t, std::int64_t>> truth_of(const model::Session& s) {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> counted;
  const auto path = [&](const model::Range& range) {
    std::string out;
    for (const model::Range& other : s.ranges) {
      if (other.thread == range.thread && other.domain == 0 &&
          other.kind == model::RangeKind::kPushPop && other.start_ns <= range.start_ns &&
          range.end_ns <= other.end_ns) {
        out += (out.empty() ? "" : " > ") + text(s, other.name);
      }
    }
    return out;
  };
  for (const model::Range& range : s.ranges) {
    if (range.domain != 0 || range.kind != model::RangeKind::kPushPop)
      continue;
    auto& region = counted[path(range)];
    region.first += 1;
    for (const model::Kernel& kernel : s.kernels)
      region.second += contains(s, range, s.launches[kernel.launch]) ? 1 : 0;
  }
  for (const model::Kernel& kernel : s.kernels) {
    const bool inside =
        std::any_of(s.ranges.begin(), s.ranges.end(), [&](const model::Range& range) {
          return range.domain == 0 && range.kind == model::RangeKind::kPushPop &&
                 contains(s, range, s.launches[kernel.launch]);
        });
    if (!inside)
      counted["(none)"].second += 1;
  }
  return counted;
}

/// `  "decode > layer0": {"occurrences": 6, "kernels": 12},` a line.
std::map<std::string, std::pair<std::int64_t, std::int64_t>> truth_in(const std::string& file) {
  std::ifstream in(kGolden + file);
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> truth;
  for (std::string line; std::getline(in, line);) {
    const auto middle = line.find("\": {\"occurrences\": ");
    if (middle == std::string::npos)
      continue;
    auto& region = truth[line.substr(3, middle - 3)];
    region.first = std::stoll(line.substr(middle + 19));
    region.second = std::stoll(line.substr(line.find("\"kernels\": ") + 11));
  }
  return truth;
}

TEST(NsysSqlite, EveryRegionIsWhatTheProgramCounted) {
  EXPECT_EQ(truth_of(golden("zoo_graphnode.sqlite")), truth_in("zoo_truth.json"));
}

TEST(NsysSqlite, WholeGraphsHideTheirKernels) {
  const model::Session s = golden("zoo.sqlite");
  auto expected = truth_in("zoo_truth_risky.json");
  EXPECT_EQ(expected["graph_replay"].second, 8);
  expected["graph_replay"].second = 0;
  EXPECT_EQ(truth_of(s), expected);
  ASSERT_EQ(s.graph_launches.size(), 4u);
  for (const model::GraphLaunch& graph : s.graph_launches) {
    ASSERT_NE(graph.launch, model::kNone);
    EXPECT_EQ(s.launches[graph.launch].kind, model::LaunchKind::kGraph);
    EXPECT_EQ(graph.graph_id, 1u);
    EXPECT_EQ(graph.exec_id, 2u);
  }
}

TEST(NsysSqlite, GraphNodesKnowWhereTheyWereCaptured) {
  const model::Session s = golden("zoo_graphnode.sqlite");
  std::size_t in_graph = 0;
  for (const model::Kernel& kernel : s.kernels) {
    if (kernel.graph_node == model::kNone)
      continue;
    ++in_graph;
    const model::GraphNode& node = s.graph_nodes[kernel.graph_node];
    ASSERT_NE(node.captured_path, model::kNone);
    std::string path;
    for (const model::OpenRange& range : s.captured_paths[node.captured_path])
      path += "/" + text(s, range.name);
    EXPECT_EQ(path, "/graph_capture/captured_layer");
    EXPECT_EQ(s.launches[kernel.launch].kind, model::LaunchKind::kGraph);
  }
  EXPECT_EQ(in_graph, 8u);
}

TEST(NsysSqlite, NamesAttributesAndMachine) {
  const model::Session s = golden("zoo.sqlite");
  ASSERT_EQ(s.domains.size(), 2u);
  EXPECT_EQ(text(s, s.domains[1].name), "LLM");
  ASSERT_EQ(s.categories.size(), 1u);
  EXPECT_EQ(s.categories[0].id, 7u);
  EXPECT_EQ(text(s, s.categories[0].name), "compute");
  const auto named = [&](std::string_view name) {
    return *std::find_if(s.ranges.begin(), s.ranges.end(), [&](const auto& r) {
      return s.strings.view(r.name) == name;
    });
  };
  const model::Range attrs = named("attrs");
  ASSERT_NE(attrs.attributes, model::kNone);
  EXPECT_EQ(s.attributes[attrs.attributes].category, 7u);
  EXPECT_EQ(s.attributes[attrs.attributes].color_argb, 0xff112233u);
  EXPECT_EQ(s.attributes[attrs.attributes].payload(), 42.0);
  EXPECT_EQ(named("A").attributes, model::kNone);
  EXPECT_TRUE(named("decode_all").registered);
  EXPECT_EQ(named("request").kind, model::RangeKind::kStartEnd);
  ASSERT_EQ(s.marks.size(), 1u);
  EXPECT_EQ(text(s, s.marks[0].name), "done");
  ASSERT_EQ(s.devices.size(), 1u);
  EXPECT_EQ(text(s, s.devices[0].name), "NVIDIA H200");
  EXPECT_EQ(text(s, s.devices[0].chip), "GH100");
  EXPECT_EQ(s.devices[0].sm_count, 132u);
  EXPECT_EQ(s.devices[0].sm_clock_hz, 1.98e9);
  EXPECT_EQ(s.devices[0].compute_major, 9u);
  ASSERT_EQ(s.processes.size(), 1u);
  EXPECT_EQ(s.processes[0].pid, 463u);
  EXPECT_EQ(text(s, s.processes[0].name), "./zoo");
  EXPECT_EQ(s.threads.size(), 2u);
  EXPECT_EQ(s.sources.at(0).tool, "Nsight Systems 2025.3.2.0");
  EXPECT_EQ(s.sources.at(0).schema, "3.20.3");
  EXPECT_EQ(s.clock.anchor_unix_ns, 1795174990152334895);
  EXPECT_EQ(s.begin_ns, 0);
  EXPECT_EQ(s.end_ns, 636335657);
  EXPECT_EQ(s.copies.size(), 4u);
  EXPECT_EQ(s.memsets.size(), 1u);
  EXPECT_EQ(s.copies[2].kind, model::CopyKind::kHostToDevice);
  EXPECT_TRUE(s.losses.empty());
}

TEST(NsysSqlite, WaitsAreCountedOnce) {
  const model::Session s = golden("work.sqlite");
  // 59 stream waits with a CUPTI record and 36 calls of cudaDeviceSynchronize without one.
  std::size_t streams = 0, contexts = 0;
  for (const model::Synchronization& wait : s.synchronizations) {
    streams += wait.kind == model::SyncKind::kStream ? 1 : 0;
    contexts += wait.kind == model::SyncKind::kContext ? 1 : 0;
    EXPECT_NE(wait.launch, model::kNone);
  }
  EXPECT_EQ(streams, 59u);
  EXPECT_EQ(contexts, 36u);
}

TEST(NsysSqlite, TwoProcessesKeepTheirCorrelationIdsApart) {
  const model::Session s = golden("mp.sqlite");
  ASSERT_EQ(s.processes.size(), 2u);
  ASSERT_EQ(s.devices.size(), 2u);
  EXPECT_EQ(s.devices[0].uuid, s.devices[1].uuid);
  for (const model::Kernel& kernel : s.kernels) {
    ASSERT_NE(kernel.launch, model::kNone);
    EXPECT_EQ(s.threads[s.launches[kernel.launch].thread].process,
              s.streams[kernel.stream].process);
  }
}

TEST(NsysSqlite, RangesWithoutAnyGpu) {
  const model::Session s = golden("cpu.sqlite");
  EXPECT_EQ(s.ranges.size(), 20u);
  EXPECT_TRUE(s.kernels.empty());
  EXPECT_EQ(s.sources.at(0).schema, "3.0.0");
  std::size_t handed_over = 0;
  for (const model::Range& range : s.ranges)
    handed_over += range.end_thread != model::kNone ? 1 : 0;
  EXPECT_EQ(handed_over, 5u);
}

}  // namespace reader_test
}  // namespace rangescope::read::nsys_sqlite
