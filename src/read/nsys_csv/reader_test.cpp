#include "read/nsys_csv/reader.hpp"

#include <gtest/gtest.h>

#include "base/fs.hpp"
#include "read/nsys_csv/csv.hpp"

namespace rangescope::read::nsys_csv {
namespace {

const std::string kGolden = std::string(RANGESCOPE_SOURCE_DIR) + "/tests/golden/nsys/";

std::string number(std::optional<double> value) {
  return value ? std::to_string(static_cast<long long>(*value)) : "-";
}

/// One line a fact.
std::string show(const base::Result<model::Session>& session) {
  if (!session) return base::to_string(session.error());
  const model::Session& s = *session;
  const auto text = [&](model::StringId id) { return std::string(s.strings.view(id)); };
  const auto style = [](model::RangeKind kind) {
    return kind == model::RangeKind::kPushPop ? "push/pop " : "start/end ";
  };
  std::string out;
  for (const auto& r : s.summary.ranges) {
    out += style(r.kind) + text(r.domain) + '@' + text(r.name) + " x" + std::to_string(r.occurrences) + ' ' +
           number(r.total_ns) + " ns, median " + number(r.per_occurrence_ns.median) + " max " +
           number(r.per_occurrence_ns.max) + " gpu " + number(r.gpu_span_ns) + '\n';
  }
  for (const auto& k : s.summary.kernels) {
    out += "kernel " + text(k.name) + " x" + std::to_string(k.calls) + ' ' +
           std::to_string(static_cast<long long>(k.total_ns)) + " ns, max " + number(k.duration_ns.max);
    if (k.in_range)
      out += k.outside ? std::string(" outside")
                       : std::string(" in ") + style(k.kind) + text(k.domain) + '@' + text(k.range);
    out += '\n';
  }
  for (const auto& c : s.summary.copies) {
    out += (c.memset ? std::string("memset") : "copy " + std::to_string(static_cast<int>(c.kind))) + " x" +
           std::to_string(c.calls) + ' ' + std::to_string(static_cast<long long>(c.total_ns)) + " ns " +
           std::to_string(static_cast<long long>(c.bytes)) + " B\n";
  }
  for (const auto& l : s.losses) {
    if (l.kind != "no_timeline") out += "loss " + l.kind + ' ' + std::to_string(l.count) + ' ' + l.detail + '\n';
  }
  return out;
}

TEST(NsysCsv, Columns2020WithChatter) {
  EXPECT_EQ(show(read_text("Using x.sqlite for SQL queries.\n"
                           "Running [/opt/reports/gpukernsum.py x.sqlite]... \n\n"
                           "Time(%),Total Time (ns),Instances,Average,Minimum,Maximum,Name\n"
                           "60.0,3000,3,1000.0,900,1100,\"void k<int, 2>(float*)\"\n"
                           "40.0,2000,1,2000.0,2000,2000,gemm\n\n"
                           "Running [/opt/reports/nvtxppsum.py x.sqlite]... \n\n"
                           "Time(%),Total Time (ns),Instances,Average,Minimum,Maximum,Range\n"
                           "100.0,500,2,250.0,200,300,A::A1\n",
                           "out.txt")),
            "push/pop @A::A1 x2 500 ns, median - max 300 gpu -\n"
            "kernel void k<int, 2>(float*) x3 3000 ns, max 1100\n"
            "kernel gemm x1 2000 ns, max 2000\n");
}

TEST(NsysCsv, UnitsAndRenamedColumns) {
  EXPECT_EQ(show(read_text(
                "Time (%),Total Time (ms),Instances,Avg (us),Med (us),Min (us),Max (us),StdDev (us),Style,Range\r\n"
                "100.0,1.5,2,750,740,700,800,1,StartEnd,Dom:a:b\r\n",
                "x.csv")),
            "start/end Dom@a:b x2 1500000 ns, median 740000 max 800000 gpu -\n");
}

TEST(NsysCsv, ChatterOrNameTellsStartEndFromPushPop) {
  const std::string table =
      "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev "
      "(ns),Range\n100.0,5,1,5,5,5,5,0,:r\n";
  EXPECT_EQ(show(read_text("Processing [a.sqlite] with [/x/nvtx_startend_sum.py]... \n\n" + table, "a.csv")),
            "start/end @r x1 5 ns, median 5 max 5 gpu -\n");
  EXPECT_EQ(show(read_text(table, "a_nvtx_startend_sum.csv")), "start/end @r x1 5 ns, median 5 max 5 gpu -\n");
  EXPECT_EQ(show(read_text(table, "a.csv")), "push/pop @r x1 5 ns, median 5 max 5 gpu -\n");
}

TEST(NsysCsv, RecordedTables) {
  EXPECT_EQ(show(NsysCsvReader{}.read(kGolden + "zoo_nvtx_startend_sum.csv", {})),
            "start/end @request x2 300424 ns, median 150212 max 162325 gpu -\n");
  EXPECT_EQ(show(NsysCsvReader{}.read(kGolden + "zoo_cuda_gpu_mem_time_sum.csv", {})),
            "copy 1 x3 22207 ns 0 B\ncopy 2 x1 6496 ns 0 B\nmemset x1 832 ns 0 B\n");
  const auto kernels = NsysCsvReader{}.read(kGolden + "zoo_nvtx_kern_sum.csv", {});
  ASSERT_TRUE(kernels);
  ASSERT_EQ(kernels->summary.kernels.size(), 27u);
  EXPECT_TRUE(kernels->summary.kernels[0].outside);
  EXPECT_EQ(kernels->summary.kernels[0].tid, 463u);
  const auto projected = show(NsysCsvReader{}.read(kGolden + "zoo_nvtx_gpu_proj_sum.csv", {}));
  EXPECT_NE(projected.find("push/pop LLM@decode_all x2 211149 ns, median - max - gpu 191070\n"), std::string::npos)
      << projected;
  for (const char* file : {"zoo_nvtx_startend_sum.csv", "zoo_nvtx_kern_sum.csv", "zoo_nvtx_gpu_proj_sum.csv",
                           "zoo_cuda_gpu_kern_sum.csv"}) {
    const std::string head = *base::read_head(kGolden + file, 4096);
    EXPECT_TRUE(NsysCsvReader{}.sniff(std::as_bytes(std::span(head)), file)) << file;
  }
}

TEST(NsysCsv, BadRowsAreCountedAndForeignFilesRefused) {
  EXPECT_EQ(show(read_text("Time (%),Total Time (ns),Instances,Name\n1,x,1,a\n1,2,3\n1,7,1,lost\n", "x")),
            "loss bad_rows 2 rows that do not fit their header were left out, the first in line 2\n");
  EXPECT_EQ(show(read_text("a,b,c\n1,2,3\n", "x.csv")),
            "x.csv: no header of an nsys stats table in 3 lines\n"
            "hint: Make one with: nsys stats --report nvtx_sum --report nvtx_kern_sum --format csv FILE");
  const std::string_view ncu = "\"ID\",\"Process ID\",\"Kernel Name\",\"Metric Name\"\n";
  EXPECT_FALSE(NsysCsvReader{}.sniff(std::as_bytes(std::span(ncu)), "x.csv"));
}

TEST(NsysCsv, QuotesAndLineBreaksInNames) {
  std::string_view text = "\"a\"\"b\",\"c\nd\",e\r\nnext\n\"never closed,1\nlast,line\n";
  EXPECT_EQ(take_record(text), (std::vector<std::string>{"a\"b", "c\nd", "e"}));
  EXPECT_EQ(take_record(text), (std::vector<std::string>{"next"}));
  EXPECT_EQ(take_record(text), (std::vector<std::string>{"never closed,1\n"}));
  EXPECT_EQ(take_record(text), (std::vector<std::string>{"last", "line"}));
}

}  // namespace
}  // namespace rangescope::read::nsys_csv
