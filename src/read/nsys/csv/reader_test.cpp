#include "read/nsys/csv/reader.hpp"

#include <gtest/gtest.h>

#include "base/fs.hpp"
#include "base/source_dir.hpp"
#include "base/temporary_folder.hpp"
#include "read/csv.hpp"

namespace rangescope::read::nsys_csv {
namespace reader_test {

base::Result<model::Session> read_text(std::string_view text, std::string_view name) {
  const Text one{text, name};
  return read_texts(std::span(&one, 1));
}

const std::string kGolden = std::string(base::source_dir) + "/tests/golden/nsys/";

std::string number(std::optional<double> value) {
  return value ? std::to_string(static_cast<long long>(*value)) : "-";
}

/// One line a fact.
std::string show(const base::Result<model::Session>& session) {
  if (!session)
    return base::to_string(session.error());
  const model::Session& s = *session;
  const auto text = [&](model::StringId id) { return std::string(s.strings.view(id)); };
  const auto style = [](model::RangeKind kind) {
    return kind == model::RangeKind::kPushPop ? "push/pop " : "start/end ";
  };
  std::string out;
  for (const auto& r : s.summary.ranges) {
    out += style(r.kind) + text(r.domain) + '@' + text(r.name) + " x" +
           std::to_string(r.occurrences) + ' ' + number(r.total_ns) + " ns, median " +
           number(r.per_occurrence_ns.median) + " max " + number(r.per_occurrence_ns.max) +
           " gpu " + number(r.gpu_span_ns) + '\n';
  }
  for (const auto& k : s.summary.kernels) {
    out += "kernel " + text(k.name) + " x" + std::to_string(k.calls) + ' ' +
           std::to_string(static_cast<long long>(k.total_ns)) + " ns, max " +
           number(k.duration_ns.max);
    if (k.in_range)
      out += k.outside ? std::string(" outside")
                       : std::string(" in ") + style(k.kind) + text(k.domain) + '@' + text(k.range);
    out += '\n';
  }
  for (const auto& c : s.summary.copies) {
    out += (c.memset ? std::string("memset") : "copy " + std::to_string(static_cast<int>(c.kind))) +
           " x" + std::to_string(c.calls) + ' ' +
           std::to_string(static_cast<long long>(c.total_ns)) + " ns " +
           std::to_string(static_cast<long long>(c.bytes)) + " B\n";
  }
  for (const auto& l : s.losses) {
    if (l.kind != "no_timeline")
      out += "loss " + std::string(l.kind.id()) + ' ' + std::to_string(l.count) + ' ' + l.detail +
             '\n';
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
  EXPECT_EQ(show(read_text("Time (%),Total Time (ms),Instances,Avg (us),Med (us),Min (us),Max "
                           "(us),StdDev (us),Style,Range\r\n"
                           "100.0,1.5,2,750,740,700,800,1,StartEnd,Dom:a:b\r\n",
                           "x.csv")),
            "start/end Dom@a:b x2 1500000 ns, median 740000 max 800000 gpu -\n");
}

TEST(NsysCsv, ChatterOrNameTellsStartEndFromPushPop) {
  const std::string table =
      "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev "
      "(ns),Range\n100.0,5,1,5,5,5,5,0,:r\n";
  EXPECT_EQ(show(read_text("Processing [a.sqlite] with [/x/nvtx_startend_sum.py]... \n\n" + table,
                           "a.csv")),
            "start/end @r x1 5 ns, median 5 max 5 gpu -\n");
  EXPECT_EQ(show(read_text(table, "a_nvtx_startend_sum.csv")),
            "start/end @r x1 5 ns, median 5 max 5 gpu -\n");
  EXPECT_EQ(show(read_text(table, "a.csv")), "push/pop @r x1 5 ns, median 5 max 5 gpu -\n");
}

TEST(NsysCsv, RecordedTables) {
  EXPECT_EQ(show(kReader.read(kGolden + "zoo_nvtx_startend_sum.csv", {})),
            "start/end @request x2 300424 ns, median 150212 max 162325 gpu -\n");
  EXPECT_EQ(show(kReader.read(kGolden + "zoo_cuda_gpu_mem_time_sum.csv", {})),
            "copy 1 x3 22207 ns 0 B\ncopy 2 x1 6496 ns 0 B\nmemset x1 832 ns 0 B\n");
  const auto kernels = kReader.read(kGolden + "zoo_nvtx_kern_sum.csv", {});
  ASSERT_TRUE(kernels);
  ASSERT_EQ(kernels->summary.kernels.size(), 27u);
  EXPECT_TRUE(kernels->summary.kernels[0].outside);
  EXPECT_EQ(kernels->summary.kernels[0].tid, 463u);
  const auto projected = show(kReader.read(kGolden + "zoo_nvtx_gpu_proj_sum.csv", {}));
  EXPECT_NE(projected.find("push/pop LLM@decode_all x2 211149 ns, median - max - gpu 191070\n"),
            std::string::npos)
      << projected;
  for (const char* file : {"zoo_nvtx_startend_sum.csv",
                           "zoo_nvtx_kern_sum.csv",
                           "zoo_nvtx_gpu_proj_sum.csv",
                           "zoo_cuda_gpu_kern_sum.csv"}) {
    const std::string head = *base::read_head(kGolden + file, 4096);
    EXPECT_TRUE(kReader.sniff(std::as_bytes(std::span(head)), file)) << file;
  }
}

TEST(NsysCsv, BadRowsAreCountedAndForeignFilesRefused) {
  EXPECT_EQ(
      show(read_text("Time (%),Total Time (ns),Instances,Name\n1,x,1,a\n1,2,3\n1,7,1,kept\n", "x")),
      "kernel kept x1 7 ns, max -\n"
      "loss bad_rows 2 rows that do not fit their header were left out, the first in line 2\n");
  EXPECT_EQ(
      show(read_text("Time (%),Total Time (ns),Instances,Max "
                     "(ns),Name\n50,9000000000000000000,4,10,a\n50,30,4,10,b\n",
                     "absurd")),
      "kernel b x4 30 ns, max 10\n"
      "loss bad_rows 1 rows that do not fit their header were left out, the first in line 2\n");
  EXPECT_EQ(
      show(read_text("a,b,c\n1,2,3\n", "x.csv")),
      "x.csv: no header of an nsys stats table in 2 lines\n"
      "hint: Make one with: nsys stats --report nvtx_sum --report nvtx_kern_sum --format csv FILE");
  const std::string_view ncu = "\"ID\",\"Process ID\",\"Kernel Name\",\"Metric Name\"\n";
  EXPECT_FALSE(kReader.sniff(std::as_bytes(std::span(ncu)), "x.csv"));
}

TEST(NsysCsv, TablesAreFoundBehindWhatTheProgramPrinted) {
  const base::TemporaryFolder folder("rangescope-sniff");
  std::string output;
  for (int i = 0; i < 500; ++i)
    output += "step " + std::to_string(i) + ", loss 0.5, time 3\n";
  const auto sniffs = [&](const std::string& text) {
    const auto path = folder.path() / "log.txt";
    EXPECT_TRUE(base::write_file(path, text));
    return kReader.sniff(std::as_bytes(std::span(text).first(4096)), path);
  };
  EXPECT_TRUE(sniffs(output + "Time (%),Total Time (ns),Instances,Avg (ns),Name\n100,7,1,7,k\n"));
  EXPECT_FALSE(sniffs(output + "time,name,count\n1,a,2\n"));
}

const std::string kPushPop =
    "Start (ns),End (ns),Duration (ns),DurChild (ns),DurNonChild "
    "(ns),Name,PID,TID,Lvl,NumChild,RangeId,ParentId,"
    "RangeStack,NameTree\n";

/// Ranges in their order, one line each; or the error.
std::string timeline(std::string_view text, std::string_view name = "x.csv") {
  const auto session = read_text(text, name);
  if (!session)
    return base::to_string(session.error());
  std::string out;
  for (const model::Range& r : session->ranges)
    out += std::string(session->strings.view(session->domains[r.domain].name)) + '@' +
           std::string(session->strings.view(r.name)) + ' ' + std::to_string(r.start_ns) + '-' +
           std::to_string(r.end_ns) + '\n';
  for (const model::Kernel& k : session->kernels)
    out += "kernel " + std::string(session->strings.view(session->kernel_names[k.name].demangled)) +
           ' ' + std::to_string(k.start_ns) + '-' + std::to_string(k.end_ns) + '\n';
  for (const model::Loss& loss : session->losses)
    if (loss.severity != model::Severity::kInfo || loss.kind == "domain_guessed")
      out += "loss " + std::string(loss.kind.id()) + ' ' + std::to_string(loss.count) + '\n';
  return out;
}

TEST(NsysCsvTrace, TheLongerOfTwoThatBeginAtOnceHoldsTheOther) {
  EXPECT_EQ(
      timeline(
          "chatter, with, commas\n" + kPushPop +
          "10,15,5,0,5,inner,1,1,1,0,2,1,:1:2,--inner\n10,30,20,5,15,outer,1,1,0,1,1,,:1,outer\n"),
      "@outer 10-30\n@inner 10-15\n");
}

TEST(NsysCsvTrace, ColonsInNames) {
  EXPECT_EQ(
      timeline(kPushPop +
               "1,9,8,0,8,aten::mm,1,1,0,0,1,,:1,\n2,3,1,0,1,Step: 5,1,1,0,0,2,,:2,\n"
               "3,4,1,0,1,NCCL:ncclSend,1,1,0,0,3,,:3,\n4,5,1,0,1,batch of 4:x,1,1,0,0,4,,:4,\n"),
      "@aten::mm 1-9\n@Step: 5 2-3\nNCCL@ncclSend 3-4\n@batch of 4:x 4-5\nloss domain_guessed 1\n");
  // With the default domain as ":name" there is nothing to guess.
  EXPECT_EQ(timeline(kPushPop +
                     "1,9,8,0,8,:aten::mm,1,1,0,0,1,,:1,\n3,4,1,0,1,NCCL:a:b,1,1,0,0,3,,:3,\n"),
            "@aten::mm 1-9\nNCCL@a:b 3-4\n");
  // nor when a table of sums has the names in full
  EXPECT_EQ(timeline("Time (%),Total Time (ns),Instances,Range\n1,1,1,:layer:0\n1,1,1,D:a\n\n" +
                     kPushPop + "1,9,8,0,8,layer:0,1,1,0,0,1,,:1,\n3,4,1,0,1,D:a,1,1,0,0,3,,:3,\n"),
            "@layer:0 1-9\nD@a 3-4\n");
}

TEST(NsysCsvTrace, SixtyFiveDomainsAreNames) {
  std::string rows;
  for (int i = 0; i < 65; ++i)
    rows += "1,2,1,0,1,step" + std::to_string(i) + ":forward,1,1,0,0,1,,:1,\n";
  const std::string read = timeline(kPushPop + rows);
  EXPECT_NE(read.find("@step64:forward 1-2\n"), std::string::npos) << read;
  EXPECT_EQ(read.find("loss"), std::string::npos) << read;
}

TEST(NsysCsvTrace, UnitsAndPrecisionOfTimes) {
  const std::string columns =
      "API Start (U),API Dur (U),Kernel Start (U),Kernel Dur (U),PID,TID,Kernel Name\n";
  const auto in = [&](const std::string& unit, const std::string& row) {
    std::string text = columns + row;
    for (std::size_t at = 0; (at = text.find("(U)", at)) != std::string::npos;)
      text.replace(at, 3, '(' + unit + ')');
    return timeline(text);
  };
  EXPECT_EQ(in("us", "1.000,2.500,\"1,234.567\",0.001,1,1,k\n"), "kernel k 1234567-1234568\n");
  EXPECT_EQ(in("ns", "1,2,1700000000123456789,1,1,1,k\n"),
            "kernel k 1700000000123456789-1700000000123456790\n");
  EXPECT_EQ(in("ms", "0.1000,2.0000,0.1234,0.0001,1,1,k\n"),
            "kernel k 123400-123500\nloss rounded_times 0\n");
  EXPECT_EQ(in("sec", "1.0000,2.0000,0.1234,0.0001,1,1,k\n"),
            "x.csv: times are too coarse for a timeline: rounded to 100 us\n"
            "hint: Print the table again without --timeunit.");
}

TEST(NsysCsvTrace, RangesInFrontOfKernelNames) {
  const std::string table =
      "API Start (ns),API Dur (ns),Kernel Start (ns),Kernel Dur (ns),PID,TID,Kernel "
      "Name\n1,1,2,1,1,1,layer0/k\n";
  EXPECT_EQ(timeline(table), "kernel layer0/k 2-3\n");
  EXPECT_EQ(timeline(table, "a_cuda_kern_exec_trace_nvtx-name.csv"), "kernel k 2-3\n");
  EXPECT_EQ(
      timeline("Processing [a.sqlite] with [/x/cuda_kern_exec_trace.py](nvtx-name)... \n" + table),
      "kernel k 2-3\n");
}

TEST(NsysCsvTrace, RowsOfNonsense) {
  EXPECT_EQ(
      timeline(kPushPop +
               "x,9,8,0,8,a,1,1,0,0,1,,:1,\n1,9,-8,0,8,a,1,1,0,0,1,,:1,\n"
               "1,9,8,0,8,a,1e300,1,0,0,1,,:1,\n99999999999999999999,9,8,0,8,a,1,1,0,0,1,,:1,\n"
               "None,None,None,0,8,a,1,1,0,0,1,,:1,\n1,9,nan,0,8,a,1,1,0,0,1,,:1,\n"),
      "x.csv: no row fits its header: 6 rows, the first in line 2\n"
      "hint: Print the table again with: nsys stats --format csv FILE");
}

TEST(NsysCsvTrace, TablesThatAreNotRead) {
  const std::string error = timeline(
      "Processing [a] with [vulkan_api_trace.py]...\n"
      "Start (ns),Duration (ns),Name,Event Class,Context,CorrID,Pid,Tid\n1,1,a,1,1,1,1,1\n");
  EXPECT_NE(error.find("x.csv:2: a table of nsys stats that is not read: its columns start with "
                       "\"Start (ns),Duration "
                       "(ns),Name\""),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("nvtx_pushpop_trace"), std::string::npos) << error;
}

TEST(NsysCsv, TablesWithoutALineBetweenThem) {
  EXPECT_EQ(show(read_text("Time (%),Total Time (ns),Instances,Name\n1,7,1,a\n"
                           "Time (%),Total Time (ns),Instances,Range\n1,5,1,:r\n",
                           "x")),
            "push/pop @r x1 5 ns, median - max - gpu -\nkernel a x1 7 ns, max -\n");
  EXPECT_EQ(show(read_text("Time (%),Total Time (ns),Instances,Name\n1,7,1,a\n"
                           "Time (%),Total Time (ns),Num Calls,Name\n1,5,1,cudaFree\n",
                           "x")),
            "kernel a x1 7 ns, max -\n"
            "loss ignored_table 0 line 3: a table that is not read starts with \"Time (%),Total "
            "Time (ns),Num Calls\"\n");
}

TEST(NsysCsv, QuotesAndLineBreaksInNames) {
  std::string_view text = "\"a\"\"b\",\"c\nd\",e\r\nnext\n\"never closed,1\nlast,line\n";
  const std::vector<std::vector<std::string_view>> rows{
      {"a\"b", "c\nd", "e"}, {"next"}, {"never closed,1"}, {"last", "line"}};
  read::Row row;
  std::size_t offset = 0;
  std::uint64_t line = 1;
  for (const auto& cells : rows) {
    ASSERT_TRUE(next_row(text, offset, line, row));
    EXPECT_EQ(row.cells, cells);
  }
  EXPECT_EQ(row.line, 5u);
  EXPECT_FALSE(next_row(text, offset, line, row));
}

TEST(NsysCsv, RowsOfOneKernelArePutTogether) {
  // nsys 2022.4 prints a row for each launch configuration
  EXPECT_EQ(show(read_text(
                "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev "
                "(ns),GridXYZ,"
                "BlockXYZ,Name\n"
                "60.0,3000,3,1000.0,1000.0,900,1100,10.0,   1    1    1,  32    1    1,k(int)\n"
                "40.0,2000,1,2000.0,2000.0,2000,2000,0.0,   2    1    1,  32    1    1,k(int)\n",
                "x")),
            "kernel k(int) x4 5000 ns, max 2000\n");
}

TEST(NsysCsv, ColumnsUnderOtherNames) {
  for (const char* name : {"Kernel Name", "Function Name", "kernel_name", "KERNEL"}) {
    EXPECT_EQ(
        show(read_text("Total Time (ns),Instances," + std::string(name) + "\n3000,3,k\n", "x")),
        "kernel k x3 3000 ns, max -\n")
        << name;
  }
  EXPECT_EQ(show(read_text("NVTX Range Name,total_time_us,Instances\n:decode,3,3\n", "x")),
            "push/pop @decode x3 3000 ns, median - max - gpu -\n");
}

TEST(NsysCsv, TheMissingColumnIsNamed) {
  const std::string out = show(read_text("Time (%),Total Time (ns),Name\n60.0,3000,k\n", "x.csv"));
  EXPECT_NE(out.find("and a column called \"instances\" is missing"), std::string::npos) << out;
}

TEST(NsysCsv, FileThatEndsInsideARowIsTorn) {
  const std::string head = "Total Time (ns),Instances,Name\n3000,3,k\n";
  for (const char* cut : {"2000,1,", "2000,1", "2000,"})
    EXPECT_EQ(show(read_text(head + cut, "x.csv")),
              "kernel k x3 3000 ns, max -\nloss torn_tail 1 the file ends inside a row: x.csv:3\n")
        << cut;
  EXPECT_EQ(show(read_text(head + "2000,1,j", "x.csv")),
            "kernel k x3 3000 ns, max -\nkernel j x1 2000 ns, max -\n");
}

}  // namespace reader_test
}  // namespace rangescope::read::nsys_csv
