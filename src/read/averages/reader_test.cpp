#include "read/averages/reader.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/fs.hpp"
#include "base/text.hpp"

namespace rangescope::read::averages {
namespace averages_test {

std::string show(const base::Result<model::Session>& session) {
  if (!session) return session.error().what + '\n';
  const model::Session& s = *session;
  const auto text = [&](model::StringId id) { return std::string(s.strings.view(id)); };
  const auto time = [](const std::optional<double>& ns) { return ns ? std::to_string(std::llround(*ns)) : "-"; };
  std::string out;
  for (const model::OperatorSummary& row : s.summary.operators)
    out += text(row.name) + (row.shapes != 0 ? ' ' + text(row.shapes) : "") + " x" + std::to_string(row.calls) +
           " cpu " + time(row.cpu_ns) + '/' + time(row.exclusive_cpu_ns) + " gpu " + time(row.gpu_ns) + '/' +
           time(row.exclusive_gpu_ns) + '\n';
  for (const model::KernelSummary& row : s.summary.kernels)
    out += "kernel " + text(row.name) + " x" + std::to_string(row.calls) + ' ' + time(row.total_ns) + '\n';
  for (const model::CopySummary& row : s.summary.copies)
    out += (row.memset ? "set " : "copy ") + std::to_string(static_cast<int>(row.kind)) + " x" +
           std::to_string(row.calls) + ' ' + time(row.total_ns) + (std::isnan(row.bytes) ? "" : " with bytes") + '\n';
  if (s.summary.cut) out += "cut\n";
  for (const model::Loss& loss : s.losses)
    if (loss.kind.id() != "totals_only")
      out += "loss " + std::string(loss.kind.id()) + ' ' + std::to_string(loss.count) + '\n';
  return out;
}

std::string golden(const std::string& name) {
  return *base::read_file(std::string(RANGESCOPE_SOURCE_DIR) + "/tests/golden/averages/" + name);
}

const std::string kCuda =
    "aten::mm x2 cpu 250000/200000 gpu 900000/900000\naten::add x2 cpu 120000/100000 gpu 130000/130000\n"
    "ProfilerStep* x2 cpu 2000000/1600000 gpu 1070000/0\ncudaLaunchKernel x4 cpu 100000/100000 gpu 0/0\n"
    "kernel sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize64x64... x2 900000\n"
    "kernel void at::native::vectorized_elementwise_kernel<4, at... x2 130000\ncopy 1 x2 40000\n";

TEST(Averages, KernelsAreRowsWithoutTimeOnTheCpuAndAnnotationsAreNone) {
  EXPECT_EQ(show(read_text(golden("cuda.txt"), "x")), kCuda);
}

TEST(Averages, RowsThatWereNotPrintedAreMissed) {
  std::string text = golden("cuda.txt");
  const std::size_t at = text.find("void at::native"), end = text.find('\n', at) + 1;
  text.erase(at, end - at);
  const std::string out = show(read_text(text, "x"));
  EXPECT_NE(out.find("cut\nloss rows_missing 0\n"), std::string::npos) << out;
}

// key_averages(group_by_stack_n=3) of PyTorch 1.13: functions of the engine have no stack.
TEST(Averages, RowsWithoutAStack) {
  const std::string out = show(read_text(golden("stack.txt"), "x"));
  EXPECT_NE(out.find("torch::autograd::AccumulateGrad x40 cpu 407000/137000"), std::string::npos) << out;
  EXPECT_EQ(out.find("loss"), std::string::npos) << out;
}

TEST(Averages, TheFirstOfSeveralTablesIsRead) {
  const std::string text = golden("cuda.txt");
  EXPECT_EQ(show(read_text(text + text, "x")), kCuda + "loss ignored_table 1\n");
}

// PyTorch 1.13: 36 rows, and what the profiler itself gave for them.
TEST(Averages, PrintedByPyTorch) {
  for (const auto& [file, row] :
       {std::pair("kineto.txt", "aten::threshold_backward x3 cpu 17243000/17243000 gpu -/-\n"),
        std::pair("shapes.txt", "aten::threshold_backward [[16, 64], [16, 64], []] x3 cpu 17243000/17243000 gpu -/-\n"),
        std::pair("legacy.txt", "step x2 ")}) {
    const std::string out = show(read_text(golden(file), "x"));
    EXPECT_NE(out.find(row), std::string::npos) << file << '\n' << out;
    EXPECT_EQ(out.find("bad_rows"), std::string::npos) << file << '\n' << out;
    EXPECT_EQ(out.find("rows_missing") != std::string::npos, file == std::string("shapes.txt")) << file;
  }
}

TEST(Averages, TablesOfTheFirstVersionsAndOfMarkdown) {
  EXPECT_EQ(
      show(read_text("Name   Self CPU total %  Self CPU total  CPU total %  CPU total  CPU time avg  Number of Calls\n"
                     "t      62.10%            1.044ms         62.77%       1.055ms    1.055ms       1\n",
                     "x")),
      "t x1 cpu 1055000/1044000 gpu -/-\n");
  EXPECT_EQ(show(read_text("| Name | Self CPU | CPU total | # of Calls |\n|---|---|---|---|\n"
                           "| aten::mm | 12.000us | 1.5ms | 3 |\n",
                           "x")),
            "aten::mm x3 cpu 1500000/12000 gpu -/-\n");
}

TEST(Averages, HostileRowsAreLeftOut) {
  const std::string head = "Name  CPU total  # of Calls\n";
  EXPECT_EQ(show(read_text(head + "a  1.0us  2\nb  NaN  2\nc  -1us  2\nd  1e300s  2\ne  1us  -4\nf  1us  1  9\n"
                                  "g  1us  99999999999999999999\n",
                           "x")),
            "a x2 cpu 1000/- gpu -/-\nloss bad_rows 6\n");
  EXPECT_EQ(show(read_text(head, "x")), "no table of key_averages() with rows in it\n");
  EXPECT_EQ(show(read_text("", "x")), "no table of key_averages() with rows in it\n");
}

TEST(Averages, OtherTextIsNotOne) {
  const auto sniff = [](std::string_view head) { return kReader.sniff(std::as_bytes(std::span(head)), "/nowhere"); };
  EXPECT_TRUE(sniff("loading\n\nName    CPU total    # of Calls\n"));
  EXPECT_FALSE(sniff("Name,CPU total,# of Calls\n"));
  EXPECT_FALSE(sniff("The CPU total of Name\n"));
  EXPECT_FALSE(sniff("Time (%)  Total Time (ns)  Instances  Name\n"));
}

}  // namespace averages_test
}  // namespace rangescope::read::averages
