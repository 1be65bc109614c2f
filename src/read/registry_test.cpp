// Each kind of file that people give and no reader can read is named for what it is, with what to
// do.
#include "read/registry.hpp"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include "base/fs.hpp"
#include "base/source_dir.hpp"
#include "base/sqlite.hpp"
#include "read/ncu/report/unpack.hpp"

namespace rangescope::read {
namespace registry_test {

const std::filesystem::path kFile =
    std::filesystem::path(::testing::TempDir()) / ("lookalike_" + std::to_string(::getpid()));

std::string gzip(std::string_view text) {
  std::string out(text.size() + 100, '\0');
  ::z_stream stream{};
  EXPECT_EQ(::deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  return out;
}

/// "what | hint", or the name of the reader that takes it.
std::string answer() {
  const auto reader = find_reader(kFile);
  const std::string out =
      reader ? std::string((*reader)->name) : reader.error().what + " | " + reader.error().hint;
  std::filesystem::remove(kFile);
  return out;
}

std::string answer_to(std::string_view bytes) {
  EXPECT_TRUE(base::write_file(kFile, bytes));
  return answer();
}

std::string answer_to_database(const std::string& sql) {
  {
    auto database = base::Database::create(kFile);
    EXPECT_TRUE(database && database->execute(sql));
  }
  return answer();
}

using namespace std::string_literals;

TEST(Lookalikes, AreNamed) {
  const std::string other_json = R"({"results": [1, 2, 3]})";
  const std::pair<std::string, std::string_view> kinds[] = {
      {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n",
       "this is a pointer of Git LFS: the file itself was not downloaded | Fetch it in its "
       "repository: git lfs pull"},
      {gzip(other_json), "this is JSON | "},
      {gzip("plain text"), "this is a gzip file | Unpack it first: gunzip FILE"},
      {"\n\n" + other_json, "this is JSON | "},
      {"\n[1, 2]", "this is JSON | Of nsys stats, print it with --format csv."},
      {R"({"SessionStartTime": {"utc": 1}, "x": {}})",
       "this is what nsys export writes as info | Export it as SQLite: nsys export --type sqlite "
       "FILE"},
      {R"({"VmSystemInformation": []})", "this is what nsys export writes as info | "},
      {R"({"ncu-proj": {"version": 1}, "reports": ["a.ncu-rep"]})",
       "this is a project of Nsight Compute, which only names its reports | Give one of the "
       "reports"},
      {R"({"rocprofiler-sdk-tool": []})", "this is JSON of AMD's rocprofv3, which is not read | "},
      {"\x80\x04\x95\x10\0\0\0\0\0\0\0}\x94(\x8c\x08weights\x94]\x94"s,
       "this is a pickle of Python, and no snapshot of GPU memory | Give what "
       "torch.cuda.memory._dump_snapshot"},
      {"\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Kernel_Name\"\n",
       "this is a table of AMD's rocprofv3, which is not read | "},
      {R"({"schema": "1.1.1", "nodes": [{"attrs": [{"name": "op_schema"}]}]})",
       "this is an execution trace of PyTorch, which has no times | "},
      {"<?xml version=\"1.0\"?>\n<session version=\"2\" name=\"NewSession1.nvvp\">",
       "this is a session of NVIDIA's Visual Profiler, which is not read | Record the program"},
      {"<!doctype html>", "this is HTML or XML | "},
      {"PK\x03\x04zip", "this is a zip archive | Unpack it first: unzip FILE"},
      {"\xfd"s + "7zXZ", "this is an xz file | "},
      {"BZh91AY", "this is a bzip2 file | "},
      {"\xff\xfeI\0D\0"s, "this is text in UTF-16 | Convert it: iconv"},
      {"PAR1....", "this is a Parquet file, which nsys export writes | "},
      {"\x89HDF\r\n", "this is HDF5, which nsys export writes | "},
      {"ARROW1", "this is an Arrow file, which nsys export writes | "},
      {"", "no reader understands this: it is empty | Whatever should have written it failed"},
      {"hello",
       "no reader understands this: it starts with \"hello\" | Give a file of one of these "
       "formats: "},
  };
  for (const auto& [bytes, expected] : kinds)
    EXPECT_TRUE(answer_to(bytes).starts_with(expected)) << answer_to(bytes);
}

/// Answers begin so for text that a tool printed for people.
constexpr std::string_view kNcuPage =
    "this is a page that ncu prints for people, which is not read | Give the report itself "
    "(.ncu-rep), or its CSV: "
    "ncu --import FILE.ncu-rep --csv --page raw > FILE.csv";
constexpr std::string_view kNsysTable =
    "this is a table of nsys stats, but not as CSV | Print it as CSV: nsys stats --format csv "
    "FILE.nsys-rep > "
    "FILE.csv; or export the recording: nsys export --type sqlite FILE.nsys-rep";
constexpr std::string_view kAverages =
    "this is a table that PyTorch's key_averages() prints for people, which is not read | Give the "
    "profiler's trace: "
    "prof.export_chrome_trace(\"trace.json\")";
constexpr std::string_view kNvprof =
    "this is what nvprof prints, which is not read | Record the program with rangescope profile -- "
    "COMMAND, or with "
    "nsys profile";

TEST(Lookalikes, PrintedPagesOfNcu) {
  const std::string kernel =
      "[4700] zoo@127.0.0.1\n  gemm(int) (16, 16, 1)x(16, 16, 1), Context 1, Stream 13, Device 0, "
      "CC 9.0\n\n";
  const std::string range = "[5277] zoo@127.0.0.1\n  range, Context 1, Device 0, CC 9.0\n";
  const std::string table =
      "    Section: Launch Statistics\n"
      "    -------------------------------- --------------- ---------------\n"
      "    Metric Name                          Metric Unit    Metric Value\n"
      "    -------------------------------- --------------- ---------------\n"
      "    Registers Per Thread             register/thread              18\n";
  const std::string summary =
      "  gemm(int) (16, 16, 1)x(16, 16, 1), Device 0, CC 9.0, Invocations 4\n    Section: Launch "
      "Statistics\n"
      "    -------------------------------- --------------- ------- ------- -------\n"
      "    Metric Name                          Metric Unit Minimum Maximum Average\n";
  for (const std::string& page :
       {kernel + table, kernel, range, table, summary, "==PROF== Connected\n" + kernel + table})
    EXPECT_EQ(answer_to(page), kNcuPage) << page;
  EXPECT_EQ(
      answer_to(
          "==PROF== Connected to process 7 (/app)\nhello\n==PROF== Disconnected from process 7\n"),
      "this is what ncu prints while it runs, without results" +
          std::string(kNcuPage.substr(kNcuPage.find(" | "))));
  const std::string failed = answer_to(
      "[libprotobuf ERROR message_lite.cc:122] Can't parse message\n==ERROR== Failed to load "
      "report file "
      "'x.ncu-rep'.\nmore\n");
  EXPECT_TRUE(failed.starts_with(
      "this is what ncu prints while it runs, without results: ==ERROR== Failed to load "
      "report file 'x.ncu-rep'. | "))
      << failed;
}

TEST(Lookalikes, EveryRecordedPageOfNcu) {
  std::size_t pages = 0;
  const std::filesystem::path recorded = std::string(base::source_dir) + "/tests/golden/ncu";
  for (const auto& file : std::filesystem::directory_iterator(recorded)) {
    if (!file.path().string().ends_with("_details.txt.zst"))
      continue;
    const auto packed = base::read_file(file.path());
    ASSERT_TRUE(packed);
    const auto page = ncu_report::unpack(*packed, file.path().string());
    ASSERT_TRUE(page);
    EXPECT_EQ(answer_to(page->bytes), kNcuPage) << file.path();
    ++pages;
  }
  EXPECT_GE(pages, 12u);
}

TEST(Lookalikes, PrintedTablesOfNsys) {
  for (const std::string_view header :
       {" Time (%)  Total Time (ns)  Instances  Avg (ns)  Med (ns)  Min (ns)  Max (ns)  StdDev "
        "(ns)  Name\n",
        " Time(%)  Total Time (ns)  Instances   Average   Minimum   Maximum   Name\n",  // 2020
        "| Time (%) | Total Time (ns) | Instances | Avg (ns) | Name |\n",  // --format table
        "Time (%)\tTotal Time (ns)\tInstances\tName\n",                    // --format tsv
        " NVTX Range   Style   PID  TID  NVTX Inst  Kern Inst  Total Time (ns)  Avg (ns)  Kernel "
        "Name\n",
        " Range    Style   Total Proj Time (ns)  Total Range Time (ns)  Range Instances\n",
        " Total (MB)  Count  Avg (MB)  Med (MB)  Min (MB)  Max (MB)  StdDev (MB)  Operation\n",
        " Start (ns)  End (ns)   Duration (ns)  DurChild (ns)  Name  PID  TID\n",
        " API Start (ns)  API Dur (ns)  Queue Start (ns)  Kernel Start (ns)  PID  TID\n"}) {
    EXPECT_EQ(answer_to(header), kNsysTable) << header;
    EXPECT_EQ(
        answer_to("Processing [x.sqlite] with [/r/nvtx_sum.py]... \n\n" + std::string(header)),
        kNsysTable);
  }
}

TEST(Lookalikes, PrintedTablesOfPyTorch) {
  for (const std::string_view header : {"     Name    Self CPU %      Self CPU   CPU total %     "
                                        "CPU total  CPU time avg    # of Calls  Input Shapes\n",
                                        "Name   Self CPU total %  Self CPU total  CPU total %  CPU "
                                        "total  CPU time avg  Number of Calls\n",  // 1.0
                                        "| Name | Self CPU | CPU total | # of Calls |\n"})
    EXPECT_EQ(answer_to(header), kAverages) << header;
}

TEST(Lookalikes, PrintedByNvprof) {
  for (const std::string_view text : {"==9587== NVPROF is profiling process 9587, command: "
                                      "./app\n==9587== Profiling result:\n   Start  Duration\n",
                                      "==27694== Profiling result:\n            Type  Time(%)      "
                                      "Time     Calls       Avg       Min       Max  "
                                      "Name\n"})
    EXPECT_EQ(answer_to(text), kNvprof) << text;
}

TEST(Lookalikes, PrintedTablesAreFoundBehindWhatTheProgramPrinted) {
  std::string log;
  for (int step = 0; step < 1000; ++step)
    log += "step " + std::to_string(step) + ", loss 0.5\n";
  EXPECT_EQ(answer_to(log + "     Name    Self CPU %      Self CPU    # of Calls\n"), kAverages);
  EXPECT_TRUE(
      answer_to(log).starts_with("no reader understands this: it starts with \"step 0, loss 0.5"));
  EXPECT_EQ(answer_to(log + "Time (%),Total Time (ns),Instances,Name\n100.0,7,1,k\n"), "nsys-csv");
}

TEST(Lookalikes, DatabasesAreNamedByTheirTables) {
  EXPECT_EQ(answer_to_database("create table rocpd_op(id integer); insert into rocpd_op values(1)"),
            "rocm");
  EXPECT_EQ(answer_to_database("create table OPS(BeginNs integer)"), "rocm");
  EXPECT_TRUE(answer_to_database("create table StringTable(_id_ integer, value text)")
                  .starts_with("this is a database of nvprof, which is not read | Record the "
                               "program with rangescope"));
  EXPECT_TRUE(answer_to_database("create table places(id integer)")
                  .starts_with("this is a SQLite database without the tables of nsys | "));
  EXPECT_EQ(answer_to_database("create table StringTable(_id_ integer, value text);"
                               "create table CUPTI_ACTIVITY_KIND_RUNTIME(start int)"),
            answer_to_database("create table StringTable(_id_ integer, value text)"));
  EXPECT_EQ(answer_to_database("create table StringIds(id integer, value text);"
                               "create table CUPTI_ACTIVITY_KIND_RUNTIME(start int)"),
            "nsys-sqlite");
}

TEST(Lookalikes, WhatIsReadIsNotOne) {
  const std::string trace =
      R"({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1}]})";
  EXPECT_EQ(answer_to(trace), "kineto");
  EXPECT_EQ(answer_to("\n\n" + trace), "kineto");
  EXPECT_EQ(answer_to(gzip(trace)), "kineto");
}

}  // namespace registry_test
}  // namespace rangescope::read
