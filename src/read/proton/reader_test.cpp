#include "read/proton/reader.hpp"

#include <gtest/gtest.h>

#include "base/fs.hpp"
#include "base/source_dir.hpp"

namespace rangescope::read::proton {
namespace proton_test {

std::string show(const base::Result<model::Session>& session) {
  if (!session)
    return session.error().what + '\n';
  const model::Session& s = *session;
  const auto text = [&](model::StringId id) { return std::string(s.strings.view(id)); };
  std::string out;
  for (const model::Device& device : s.devices)
    out += "device " + std::to_string(device.ordinal) + ' ' + text(device.name) + ' ' +
           std::to_string(device.sm_count) + '\n';
  for (const model::RangeSummary& row : s.summary.ranges)
    out += text(row.name) + " depth " + std::to_string(s.summary.paths.at(row.name).size()) +
           (row.total_ns ? " cpu " + std::to_string(std::llround(*row.total_ns)) : "") + '\n';
  for (const model::KernelSummary& row : s.summary.kernels)
    out += (row.outside    ? "outside"
            : row.in_range ? text(row.range)
                           : "run") +
           ": " + text(row.name) + " x" + std::to_string(row.calls) + ' ' +
           std::to_string(std::llround(row.total_ns)) + '\n';
  for (const model::Loss& loss : s.losses)
    if (loss.kind.id() != "totals_only")
      out += "loss " + std::string(loss.kind.id()) + ' ' + std::to_string(loss.count) + '\n';
  return out;
}

TEST(Proton, KernelsCountInEveryRangeAroundThem) {
  const auto text =
      base::read_file(std::string(base::source_dir) + "/tests/golden/proton/nested.hatchet");
  EXPECT_EQ(show(read_text(*text, "x")),
            "device 0 CUDA 90 132\nlayer depth 1 cpu 25000\nlayer > norm depth 2\n"
            "run: matmul_kernel x4 8000\nlayer: matmul_kernel x4 8000\n"
            "run: copy_elements(float*, int) x1 500\nlayer: copy_elements(float*, int) x1 500\n"
            "layer > norm: copy_elements(float*, int) x1 500\n"
            "run: matmul_kernel x2 4000\noutside: matmul_kernel x2 4000\n");
}

std::string root(const std::string& children) {
  return R"([{"frame": {"name": "ROOT"}, "metrics": {}, "children": [)" + children + "]}]";
}

TEST(Proton, HostileTrees) {
  const std::string kernel =
      R"x({"frame":{"name":"k"},"metrics":{"count":1,"time (ns)":5,"device_type":"HIP"},"children":[]})x";
  EXPECT_EQ(
      show(read_text(
          root(kernel +
               R"(,{"frame":{"name":"k"},"metrics":{"device_type":"CUDA"}},7,{"frame":3},)"
               R"x({"frame":{"name":"k"},"metrics":{"count":-1,"time (ns)":5,"device_type":1}},)x"
               R"({"frame":{"name":"s"},"metrics":[],"children":{}})"),
          "x")),
      "s depth 1\nrun: k x1 5\noutside: k x1 5\nloss bad_rows 4\n");
  std::string deep = kernel;
  for (int i = 0; i < 5000; ++i)
    deep = R"({"frame":{"name":"d"},"children":[)" + deep + "]}";
  EXPECT_EQ(show(read_text(root(kernel + ',' + deep), "x")).substr(0, 8), "d depth ");
  EXPECT_EQ(show(read_text(root(""), "x")),
            "a profile of Proton without kernels that have a time\n");
  EXPECT_EQ(show(read_text("[{", "x")), "this JSON cannot be read\n");
  EXPECT_EQ(show(read_text("{}", "x")), "a profile of Proton without kernels that have a time\n");
}

}  // namespace proton_test
}  // namespace rangescope::read::proton
