// Trace tables that nsys stats printed of a recording, against its SQLite export: the same events,
// to the nanosecond.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/source_dir.hpp"
#include "read/join.hpp"
#include "read/registry.hpp"

namespace rangescope::read {
namespace trace_tables_test {

namespace fs = std::filesystem;

const fs::path kGolden = fs::path(base::source_dir) / "tests/golden/nsys";

model::Session of(const std::vector<fs::path>& paths) {
  std::vector<model::Session> sessions;
  for (const auto& parts : recordings(paths)) {
    auto session = read_recording(parts, {});
    EXPECT_TRUE(session) << base::to_string(session.error());
    if (session)
      sessions.push_back(std::move(*session));
  }
  return join(std::move(sessions));
}

std::vector<fs::path> tables(const std::string& version,
                             const std::string& recording,
                             const std::vector<std::string>& reports) {
  std::vector<fs::path> paths;
  for (const std::string& report : reports)
    paths.push_back(kGolden / "stats" / version / (recording + '_' + report + ".csv"));
  return paths;
}

std::string thread_text(const model::Session& s, std::uint32_t thread) {
  return std::to_string(s.processes[s.threads[thread].process].pid) + '/' +
         std::to_string(s.threads[thread].tid);
}

std::string call_text(const model::Session& s, std::uint32_t launch) {
  if (launch == model::kNone)
    return "no call";
  const model::Launch& call = s.launches[launch];
  std::string_view name = s.strings.view(call.name);
  name = name.substr(0, name.find("_v"));
  return std::string(name) + ' ' + std::to_string(call.start_ns) + '-' +
         std::to_string(call.end_ns) + " on " + thread_text(s, call.thread);
}

std::string stream_text(const model::Session& s, std::uint32_t stream) {
  const model::Stream& at = s.streams[stream];
  const model::Device& device = s.devices[at.device];
  return std::to_string(s.processes[at.process].pid) + ' ' +
         std::string(s.strings.view(device.name)) + ' ' + std::to_string(device.ordinal) + ' ' +
         std::to_string(at.context) + ':' + std::to_string(at.id);
}

std::vector<std::string> sorted(std::vector<std::string> lines) {
  std::sort(lines.begin(), lines.end());
  return lines;
}

/// Ranges of one kind, one line each.
std::vector<std::string> ranges(const model::Session& s, model::RangeKind kind) {
  std::vector<std::string> out;
  for (const model::Range& range : s.ranges) {
    if (range.kind != kind)
      continue;
    out.push_back(std::to_string(range.start_ns) + '-' + std::to_string(range.end_ns) + ' ' +
                  std::string(s.strings.view(s.domains[range.domain].name)) + '@' +
                  std::string(s.strings.view(range.name)) + " on " + thread_text(s, range.thread));
  }
  return sorted(std::move(out));
}

/// Kernels, with what launched them; `whole` also where they ran and with what resources.
std::vector<std::string> kernels(const model::Session& s, bool whole) {
  std::vector<std::string> out;
  for (const model::Kernel& kernel : s.kernels) {
    const model::KernelShape& shape = s.kernel_shapes[kernel.shape];
    std::string line = std::to_string(kernel.start_ns) + '-' + std::to_string(kernel.end_ns) + ' ' +
                       std::string(s.strings.view(s.kernel_names[kernel.name].demangled)) + " (" +
                       std::string(s.strings.view(s.kernel_names[kernel.name].short_name)) + ')';
    for (const auto& three : {shape.grid, shape.block})
      for (const std::uint32_t one : three)
        line += ' ' + std::to_string(one);
    if (whole)
      line += " regs " + std::to_string(shape.registers_per_thread) + " " +
              stream_text(s, kernel.stream);
    out.push_back(line + " by " + call_text(s, kernel.launch));
  }
  return sorted(std::move(out));
}

std::vector<std::string> transfers(const model::Session& s) {
  std::vector<std::string> out;
  for (const model::Copy& copy : s.copies)
    out.push_back(std::to_string(copy.start_ns) + '-' + std::to_string(copy.end_ns) + " copy " +
                  std::to_string(static_cast<int>(copy.kind)) + ' ' + stream_text(s, copy.stream) +
                  " by " + call_text(s, copy.launch));
  for (const model::Memset& set : s.memsets)
    out.push_back(std::to_string(set.start_ns) + '-' + std::to_string(set.end_ns) + " set " +
                  stream_text(s, set.stream) + " by " + call_text(s, set.launch));
  return sorted(std::move(out));
}

std::vector<std::string> losses(const model::Session& s) {
  std::vector<std::string> out;
  for (const model::Loss& loss : s.losses)
    out.push_back(std::string(loss.kind.id()) + ' ' + std::to_string(loss.count));
  return sorted(std::move(out));
}

using Lines = std::vector<std::string>;

TEST(TraceTables, AllOfARecordingAreTheRecording) {
  const model::Session truth = of({kGolden / "zoo.sqlite"});
  for (const auto& paths :
       {tables("2022.4.2",
               "zoo",
               {"gputrace", "kernexectrace", "cudaapitrace", "nvtxpptrace", "nvtxgpuproj"}),
        tables("2023.4.4",
               "zoo",
               {"nvtx_gpu_proj_trace",
                "nvtx_pushpop_trace",
                "cuda_gpu_trace",
                "cuda_kern_exec_trace",
                "cuda_api_trace"}),
        tables(
            "2023.4.4",
            "zoo",
            {"cuda_gpu_trace", "cuda_api_trace", "nvtx_gpu_proj_trace", "nvtx_pushpop_trace"})}) {
    const model::Session read = of(paths);
    EXPECT_EQ(ranges(read, model::RangeKind::kPushPop), ranges(truth, model::RangeKind::kPushPop));
    EXPECT_EQ(ranges(read, model::RangeKind::kStartEnd),
              ranges(truth, model::RangeKind::kStartEnd));
    EXPECT_EQ(kernels(read, true), kernels(truth, true));
    EXPECT_EQ(transfers(read), transfers(truth));
    EXPECT_EQ(read.sources.size(), paths.size());
    // Whole graphs are not in cuda_gpu_trace; bytes are printed in MB.
    EXPECT_EQ(losses(read), (Lines{"domain_guessed 1", "graph_work_missing 4", "rounded_bytes 5"}));
  }
}

TEST(TraceTables, EachAloneSaysWhatItKnows) {
  const model::Session truth = of({kGolden / "zoo.sqlite"});
  const model::Session executions = of(tables("2022.4.2", "zoo", {"kernexectrace"}));
  EXPECT_EQ(kernels(executions, false), kernels(truth, false));
  EXPECT_TRUE(executions.unrecorded.copies && executions.unrecorded.calls &&
              !executions.unrecorded.kernels);
  EXPECT_EQ(losses(executions), (Lines{"no_calls 0", "no_copies 0"}));

  const model::Session work = of(tables("2023.4.4", "zoo", {"cuda_gpu_trace"}));
  EXPECT_EQ(work.kernels.size(), truth.kernels.size());
  EXPECT_TRUE(
      std::all_of(work.kernels.begin(), work.kernels.end(), [](const model::Kernel& kernel) {
        return kernel.launch == model::kNone;
      }));
  EXPECT_EQ(losses(work), (Lines{"kernel_without_call 56", "no_calls 0", "rounded_bytes 5"}));

  const model::Session pushed = of(tables("2022.4.2", "zoo", {"nvtxpptrace"}));
  EXPECT_EQ(ranges(pushed, model::RangeKind::kPushPop), ranges(truth, model::RangeKind::kPushPop));
  EXPECT_TRUE(pushed.unrecorded.kernels);
  EXPECT_EQ(losses(pushed), (Lines{"domain_guessed 1", "no_gpu_work 0", "no_start_end_ranges 0"}));

  // 2025 writes the default domain as ":name", so that nothing is guessed.
  const model::Session projected = of(tables("2025.3.1", "zoo", {"nvtx_gpu_proj_trace"}));
  EXPECT_EQ(ranges(projected, model::RangeKind::kStartEnd),
            ranges(truth, model::RangeKind::kStartEnd));
  EXPECT_EQ(projected.projections.size(), projected.ranges.size());
  EXPECT_EQ(losses(projected), (Lines{"no_gpu_work 0", "ranges_without_work 0"}));
}

TEST(TraceTables, SumsTellWhichColonsAreDomains) {
  auto paths = tables("2022.4.2", "zoo", {"nvtxpptrace"});
  paths.push_back(kGolden / "zoo_nvtx_sum.csv");
  EXPECT_EQ(of(paths).sources.size(), 2u);
  // The name says that this one is of the same recording only when it stands in the same folder.
  EXPECT_EQ(recordings(paths).size(), 2u);
  const fs::path folder = fs::path(testing::TempDir()) / "rangescope_trace_tables";
  fs::create_directories(folder);
  for (fs::path& path : paths) {
    fs::copy_file(path, folder / path.filename(), fs::copy_options::overwrite_existing);
    path = folder / path.filename();
  }
  EXPECT_EQ(recordings(paths).size(), 1u);
  EXPECT_EQ(losses(of(paths)), (Lines{"no_gpu_work 0", "no_start_end_ranges 0"}));
  fs::remove_all(folder);
}

TEST(TraceTables, TwoProcessesWithOneCorrelationId) {
  const model::Session truth = of({kGolden / "mp.sqlite"});
  const model::Session read = of(
      tables("2023.4.4", "mp", {"cuda_gpu_trace", "cuda_kern_exec_trace", "nvtx_pushpop_trace"}));
  EXPECT_EQ(ranges(read, model::RangeKind::kPushPop), ranges(truth, model::RangeKind::kPushPop));
  EXPECT_EQ(kernels(read, true), kernels(truth, true));
}

TEST(TraceTables, Columns2020RoundStartsToMicroseconds) {
  const model::Session truth = of({kGolden / "zoo.sqlite"});
  const model::Session read = of(tables("2020.4.3", "zoo", {"gputrace", "cudaapitrace"}));
  ASSERT_EQ(read.kernels.size(), truth.kernels.size());
  EXPECT_EQ(read.kernels[0].start_ns, 439405000);  // 0.439405
  EXPECT_EQ(read.kernels[0].end_ns, 439405000 + 11680);
  EXPECT_EQ(call_text(read, read.kernels[0].launch), call_text(truth, truth.kernels[0].launch));
  EXPECT_EQ(read.memsets[0].bytes, 4u);
  EXPECT_EQ(losses(read), (Lines{"graph_work_missing 4", "rounded_times 0"}));
}

TEST(TraceTables, RecordingsAreKeptApartByNameAndByTable) {
  const fs::path stats = kGolden / "stats";
  const fs::path a = stats / "2023.4.4/zoo_cuda_gpu_trace.csv",
                 b = stats / "2023.4.4/zoo_nvtx_pushpop_trace.csv",
                 other = stats / "2023.4.4/mp_nvtx_pushpop_trace.csv",
                 old = stats / "2022.4.2/zoo_gputrace.csv", sqlite = kGolden / "zoo.sqlite";
  using Groups = std::vector<std::vector<fs::path>>;
  EXPECT_EQ(recordings(std::vector<fs::path>{a, sqlite, b, other}),
            (Groups{{a, b}, {sqlite}, {other}}));
  EXPECT_EQ(recordings(std::vector<fs::path>{a, old}), (Groups{{a}, {old}}));
}

}  // namespace trace_tables_test
}  // namespace rangescope::read
