// Captures of an H200 against what the programs themselves counted (tests/golden/native-gpu), and
// damage.
#include "read/native/gpu.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/demangle.hpp"
#include "base/fs.hpp"
#include "base/source_dir.hpp"
#include "model/kernel_name.hpp"
#include "read/native/gpu_clock.hpp"
#include "read/native/reader.hpp"

namespace rangescope::read::native {
namespace gpu_test {

namespace fs = std::filesystem;
const fs::path kGolden = fs::path(base::source_dir) / "tests/golden/native-gpu";

model::Session session_of(const fs::path& folder) {
  auto session = kReader.read(folder, {});
  EXPECT_TRUE(session.has_value()) << folder;
  return session ? std::move(*session) : model::Session{};
}

// Names of the push/pop ranges of the default domain that were open around a call, outermost first.
std::vector<std::string> stack_at(const model::Session& s, const model::Launch& call) {
  std::vector<std::string> names;
  for (const model::Range& range : s.ranges) {
    if (range.kind != model::RangeKind::kPushPop || range.domain != 0 ||
        range.thread != call.thread)
      continue;
    if (range.start_ns <= call.start_ns && range.end_ns >= call.end_ns)
      names.emplace_back(s.strings.view(range.name));
  }
  return names;
}

// Kernels of every path, those of the paths below included; "(none)" for kernels outside all
// ranges.
std::map<std::string, int> kernels_by_path(const model::Session& s) {
  std::map<std::string, int> counts;
  for (const model::Kernel& kernel : s.kernels) {
    EXPECT_NE(kernel.launch, model::kNone);
    if (kernel.launch == model::kNone)
      continue;
    const std::vector<std::string> stack = stack_at(s, s.launches[kernel.launch]);
    if (stack.empty())
      ++counts["(none)"];
    std::string path;
    for (const std::string& name : stack) {
      path += (path.empty() ? "" : " > ") + name;
      ++counts[path];
    }
  }
  return counts;
}

TEST(NativeGpu, EveryKernelOfTheZooIsInItsRange) {
  const auto truth = nlohmann::json::parse(std::ifstream(kGolden / "zoo.truth.json"));
  int captures = 0;
  for (const auto& entry : fs::directory_iterator(kGolden)) {
    if (!entry.is_directory() || !entry.path().filename().string().starts_with("zoo"))
      continue;
    ++captures;
    const model::Session s = session_of(entry.path());
    const auto counted = kernels_by_path(s);
    for (const auto& [path, expected] : truth.items()) {
      const auto at = counted.find(path);
      EXPECT_EQ(at != counted.end() ? at->second : 0, expected["kernels"].get<int>())
          << entry.path() << ": " << path;
    }
    std::size_t replayed = 0;
    for (const model::Kernel& kernel : s.kernels) {
      if (kernel.graph_node == model::kNone)
        continue;
      ++replayed;
      const std::uint32_t captured = s.graph_nodes.at(kernel.graph_node).captured_path;
      ASSERT_NE(captured, model::kNone);
      ASSERT_EQ(s.captured_paths.at(captured).size(), 1u);
      EXPECT_EQ(s.strings.view(s.captured_paths[captured][0].name), "captured_layer");
    }
    EXPECT_EQ(replayed, 8u);
    EXPECT_EQ(s.copies.size(), 4u);
    EXPECT_EQ(s.memsets.size(), 1u);
    ASSERT_EQ(s.devices.size(), 1u);
    EXPECT_EQ(s.strings.view(s.devices[0].name), "NVIDIA H200");
    EXPECT_EQ(s.strings.view(s.devices[0].chip), "GH100");
    EXPECT_EQ(s.devices[0].sm_count, 132u);
    for (const model::Loss& loss : s.losses)
      ADD_FAILURE() << entry.path() << ": " << loss.kind.id() << ": " << loss.detail;
  }
  EXPECT_GT(captures, 0);
}

int kernels_in(const std::map<std::string, int>& counts, const std::string& path) {
  const auto at = counts.find(path);
  return at != counts.end() ? at->second : 0;
}

// tests/gpu/stalls.cu on an H200, one step of it sampled: the line where each kernel waits is
// marked there.
TEST(NativeGpu, SamplesOfTheProgramCounterStandWhereKernelsWait) {
  const model::Session s = session_of(kGolden / "stalls");
  std::map<std::string, std::map<std::pair<std::uint32_t, std::string>, std::uint64_t>> found;
  for (const model::PcSample& sample : s.pc.samples) {
    const model::PcPlace& place = s.pc.places.at(sample.place);
    EXPECT_EQ(s.launches.at(sample.launch).kind, model::LaunchKind::kKernel);
    EXPECT_EQ(s.strings.view(place.file), "/tmp/b/tests/gpu/stalls.cu");
    found[std::string(s.strings.view(s.kernel_names.at(place.function).short_name))]
         [{place.line, std::string(s.strings.view(sample.reason))}] += sample.samples;
  }
  EXPECT_EQ(found.size(), 10u);
  for (const auto& [kernel, line, reason] : {std::tuple{"chase", 16u, "long_scoreboard"},
                                             {"banks", 26u, "short_scoreboard"},
                                             {"chain", 33u, "wait"},
                                             {"strided", 51u, "long_scoreboard"},
                                             {"storing", 79u, "lg_throttle"},
                                             {"sleeping", 84u, "sleeping"}}) {
    const auto& of = found[kernel];
    const auto most = std::max_element(
        of.begin(), of.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    ASSERT_NE(most, of.end()) << kernel;
    EXPECT_EQ(most->first, (std::pair{line, std::string(reason)})) << kernel;
  }
  EXPECT_EQ(s.gpu_pauses.size(), 1u) << "the occurrence that was sampled";
  for (const model::Loss& loss : s.losses)
    EXPECT_EQ(loss.severity, model::Severity::kInfo) << loss.detail;
}

TEST(NativeGpu, WholeGraphLaunches) {
  const model::Session s = session_of(kGolden / "graph");
  EXPECT_EQ(s.kernels.size(), 49u);
  ASSERT_EQ(s.graph_launches.size(), 4u);
  for (const model::GraphLaunch& launch : s.graph_launches) {
    EXPECT_EQ(launch.kernel_nodes, 2u);
    EXPECT_GT(launch.end_ns, launch.start_ns);
    ASSERT_NE(launch.launch, model::kNone);
    EXPECT_EQ(stack_at(s, s.launches[launch.launch]), std::vector<std::string>{"graph_replay"});
  }
}

// `tests/gpu/models_program.py llama-compiled 8` on an H100 (PyTorch 2.11, transformers 5.17): a
// graph is captured in each of three calls of generate(), between ranges that CUB opens. All nodes
// are in what Inductor's code computed.
TEST(NativeGpu, GraphsCapturedBeforeOtherRangesOfTheirThread) {
  const model::Session s = session_of(kGolden / "llama-compiled");
  std::map<std::uint64_t, int> replayed;
  for (const model::Kernel& kernel : s.kernels) {
    if (kernel.graph_node == model::kNone)
      continue;
    const model::GraphNode& node = s.graph_nodes.at(kernel.graph_node);
    ++replayed[node.graph_id];
    ASSERT_NE(node.captured_path, model::kNone);
    const std::string_view innermost =
        s.strings.view(s.captured_paths.at(node.captured_path).back().name);
    EXPECT_TRUE(innermost.starts_with('[')) << innermost;
  }
  EXPECT_EQ(replayed, (std::map<std::uint64_t, int>{{5, 151 * 6}, {8, 151 * 7}, {11, 151 * 7}}));
}

// tests/gpu/several.cu on two GPUs, whose counts stand in its source: a thread a GPU, one thread on
// both in turn, copies between them, a green context, and ranges of which every fourth is captured
// into a graph and never runs.
TEST(NativeGpu, SeveralGpusAndAGreenContext) {
  const model::Session s = session_of(kGolden / "several");
  const std::map<std::string, int> expected = {{"device0", 120},
                                               {"device1", 120},
                                               {"both", 160},
                                               {"both > layer", 160},
                                               {"green", 4},
                                               {"captured", 60}};
  EXPECT_EQ(kernels_by_path(s), expected);
  std::map<std::uint32_t, int> on_device;
  for (const model::Kernel& kernel : s.kernels)
    ++on_device[s.devices.at(s.streams.at(kernel.stream).device).ordinal];
  EXPECT_EQ(on_device, (std::map<std::uint32_t, int>{{0, 120 + 80 + 4 + 60}, {1, 120 + 80}}));
  ASSERT_EQ(s.devices.size(), 2u);
  EXPECT_NE(s.devices[0].uuid, s.devices[1].uuid);
  ASSERT_EQ(s.copies.size(), 8u)
      << "without peer access each went through the host's memory: two copies for one call";
  for (std::size_t i = 0; i < s.copies.size(); ++i) {
    EXPECT_EQ(s.copies[i].kind,
              i % 2 == 0 ? model::CopyKind::kDeviceToHost : model::CopyKind::kHostToDevice);
    EXPECT_EQ(s.copies[i].bytes, 1u << 20);
    EXPECT_EQ(s.copies[i].launch, s.copies[i - i % 2].launch);
  }
  EXPECT_TRUE(s.losses.empty()) << s.losses.front().kind.id();
}

// 20 steps of 20 launches, each in a range of its own, and one launch before them.
TEST(NativeGpu, EveryLaunchInItsOwnRange) {
  const auto counts = kernels_by_path(session_of(kGolden / "launch"));
  const std::map<std::string, int> expected = {
      {"(none)", 1}, {"step", 400}, {"step > a", 200}, {"step > b", 200}};
  EXPECT_EQ(counts, expected);
}

// PyTorch launches the backward pass from a thread that has no range: 134 kernels in all, as nsys
// counts them too (tests/golden/nsys/autograd_cuda_gpu_kern_sum.csv).
TEST(NativeGpu, AutogradLaunchesFromAnotherThread) {
  const model::Session s = session_of(kGolden / "autograd");
  const auto counts = kernels_by_path(s);
  EXPECT_EQ(s.kernels.size(), 134u);
  EXPECT_EQ(kernels_in(counts, "step > forward"), 35);
  EXPECT_EQ(kernels_in(counts, "step > optimizer"), 43);
  EXPECT_EQ(kernels_in(counts, "(none)"), 134 - 35 - 43 - kernels_in(counts, "step > backward"));
  std::map<std::uint32_t, int> by_thread;
  for (const model::Kernel& kernel : s.kernels)
    ++by_thread[s.launches.at(kernel.launch).thread];
  EXPECT_EQ(by_thread.size(), 2u);
}

TEST(NativeGpu, TwoProcessesOnOneGpu) {
  const model::Session s = session_of(kGolden / "mp");
  EXPECT_EQ(s.processes.size(), 2u);
  EXPECT_EQ(s.kernels.size(), 26u);  // as nsys counts them
  ASSERT_EQ(s.devices.size(), 2u);
  EXPECT_EQ(s.devices[0].uuid, s.devices[1].uuid);
  std::map<std::uint32_t, int> by_process;
  for (const model::Kernel& kernel : s.kernels) {
    const model::Launch& call = s.launches.at(kernel.launch);
    ++by_process[s.threads.at(call.thread).process];
    EXPECT_EQ(s.streams.at(kernel.stream).process, s.threads[call.thread].process);
  }
  EXPECT_EQ(by_process, (std::map<std::uint32_t, int>{{0, 13}, {1, 13}}));
}

TEST(NativeGpu, ATransformerStep) {
  const model::Session s = session_of(kGolden / "work");
  const auto counts = kernels_by_path(s);
  EXPECT_EQ(s.kernels.size(), 145u);
  EXPECT_GT(kernels_in(counts, "prefill"), 30);
  EXPECT_EQ(kernels_in(counts, "decode") % 3, 0);
  EXPECT_GT(kernels_in(counts, "decode"), 90);
  EXPECT_TRUE(s.losses.empty());
}

// Cut or flipped anywhere, a stream is read up to there, the rest is a loss, and nothing crashes.
TEST(NativeGpu, DamagedStreams) {
  std::string content;
  for (const auto& entry : fs::directory_iterator(kGolden / "zoo-callback")) {
    if (entry.path().extension() == ".gpu")
      content = base::read_file(entry.path()).value();
  }
  ASSERT_FALSE(content.empty());
  const auto kernels_of = [](const std::string& bytes, std::size_t* losses = nullptr) {
    model::Session s;
    s.processes.push_back({});
    const auto read = read_gpu(std::as_bytes(std::span(bytes)), "x.gpu", 0, s);
    if (losses != nullptr)
      *losses = s.losses.size();
    return read ? s.kernels.size() : 0;
  };
  const std::size_t whole = kernels_of(content);
  EXPECT_EQ(whole, 57u);
  std::mt19937 random(7);
  for (int i = 0; i < 500; ++i) {
    std::size_t losses = 0;
    const std::size_t cut = random() % content.size();
    EXPECT_LE(kernels_of(content.substr(0, cut), &losses), whole);
    if (cut >= 40) {
      EXPECT_GT(losses, 0u) << cut;
    }
    std::string flipped = content;
    flipped[random() % flipped.size()] ^= static_cast<char>(1 + random() % 255);
    EXPECT_LE(kernels_of(flipped), whole);
    // The same with a checksum that fits: what a record says of itself is not believed.
    wire::gpu::BlockHeader block{};
    const std::size_t at = sizeof(wire::gpu::FileHeader);
    std::memcpy(&block, flipped.data() + at, sizeof block);
    if (block.bytes == content.size() - at - sizeof block) {
      block.checksum = wire::gpu::checksum(flipped.data() + at + sizeof block, block.bytes);
      std::memcpy(flipped.data() + at, &block, sizeof block);
      EXPECT_LE(kernels_of(flipped), whole + 10);
    }
  }
}

TEST(NativeGpu, NewerVersionsAndStrangersAreRefused) {
  model::Session s;
  s.processes.push_back({});
  wire::gpu::FileHeader header{};
  std::memcpy(header.magic, wire::gpu::kMagic, sizeof header.magic);
  header.version = wire::gpu::kVersion + 1;
  header.header_bytes = sizeof header;
  const auto newer = read_gpu(std::as_bytes(std::span(&header, 1)), "x.gpu", 0, s);
  ASSERT_FALSE(newer.has_value());
  EXPECT_EQ(newer.error().code, base::Code::kBadData);
  EXPECT_EQ(newer.error().where, "x.gpu:8");
  EXPECT_FALSE(read_gpu({}, "empty.gpu", 0, s).has_value());
}

TEST(NativeGpu, ClocksAreInterpolatedBetweenSamples) {
  GpuClock clock;
  clock.add({{}, 1000, 50, 1010});    // ours 1005 at 50: offset 955
  clock.add({{}, 2010, 1050, 2010});  // offset 960
  EXPECT_EQ(clock.correct(50), 1005);
  EXPECT_EQ(clock.correct(550), 550 + 958);
  EXPECT_EQ(clock.correct(0), 955);
  EXPECT_EQ(clock.correct(2050), 2050 + 960);
  EXPECT_EQ(clock.describe(), "offset 955 ns, drift 5000.0 ppm");
}

TEST(NativeGpu, ShortKernelNames) {
  const std::map<std::string, std::string> names = {
      {"_Z9gemm_likePKfS0_Pfi", "gemm_like"},
      {"_Z11reduce_likeILi65536EEvPKfPf", "reduce_like"},
      {"void at::native::(anonymous namespace)::fill<float, at::native::Op<float> >(int, float)",
       "fill"},
      {"void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128>(cutlass_80::Params)",
       "Kernel2"},
      {"std::enable_if<true, void>::type scale<double>(double*)", "scale"},
      {"sm90_xmma_gemm_bf16bf16_bf16f32", "sm90_xmma_gemm_bf16bf16_bf16f32"},
      {"triton_poi_fused_0", "triton_poi_fused_0"},
      {"", ""}};
  for (const auto& [given, expected] : names)
    EXPECT_EQ(model::short_kernel_name(base::demangle(given)), expected) << given;
}

// `tests/gpu/counted.cu`: what its kernels do is known from the source.
TEST(NativeGpu, CountersOfAnH200AreWhatTheKernelsDo) {
  const model::Session s = session_of(kGolden / "counted");
  const auto value = [&](const char* range, const char* metric) {
    for (const model::Measurement& one : s.measurements) {
      if (one.ranges.empty() || s.strings.view(one.ranges.back().name) != range)
        continue;
      for (const model::MetricValue& each : one.values) {
        if (s.metrics[each.metric].name == metric)
          return each.value;
      }
    }
    ADD_FAILURE() << range << " has no " << metric;
    return 0.0;
  };
  constexpr double kFloats = 64.0 * 1024 * 1024, kFma = 2.0 * 1024 * 1024 * 256;
  EXPECT_EQ(value("copy", "l1tex__t_bytes.sum"), 2 * kFloats * sizeof(float)) << "read and written";
  EXPECT_NEAR(value("copy", "dram__bytes.sum"),
              2 * kFloats * sizeof(float),
              0.01 * 2 * kFloats * sizeof(float));
  EXPECT_EQ(value("copy", "sm__sass_thread_inst_executed_op_ffma_pred_on.sum"), 0);
  EXPECT_EQ(value("fma", "sm__sass_thread_inst_executed_op_ffma_pred_on.sum"), kFma);
}

}  // namespace gpu_test
}  // namespace rangescope::read::native
