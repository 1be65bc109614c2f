#include "read/rocm/reader.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>

#include "base/fs.hpp"
#include "base/source_dir.hpp"
#include "base/sqlite.hpp"
#include "base/text.hpp"

namespace rangescope::read::rocm {
namespace rocm_test {

const std::string kGolden = std::string(base::source_dir) + "/tests/golden/rocm/";

std::string show(const base::Result<model::Session>& session) {
  if (!session)
    return session.error().what + '\n';
  const model::Session& s = *session;
  const auto text = [&](model::StringId id) { return std::string(s.strings.view(id)); };
  const auto where = [&](const auto& work) {
    const model::Stream& stream = s.streams[work.stream];
    return " gpu " + std::to_string(s.devices[stream.device].ordinal) + " stream " +
           std::to_string(stream.id) +
           (work.launch == model::kNone ? " by no call"
                                        : " by " + text(s.launches[work.launch].name)) +
           '\n';
  };
  const auto span = [](const auto& one) {
    return ' ' + std::to_string(one.start_ns) + '-' + std::to_string(one.end_ns);
  };
  std::string out;
  for (const model::Process& process : s.processes)
    out +=
        "process " + std::to_string(process.pid) + (process.operators ? " of a framework\n" : "\n");
  for (const model::Range& range : s.ranges)
    out += text(s.domains[range.domain].name) + '@' + text(range.name) + span(range) + " on " +
           std::to_string(s.threads[range.thread].tid) + '\n';
  for (const model::Launch& call : s.launches)
    out += "call " + text(call.name) + span(call) + " on " +
           std::to_string(s.threads[call.thread].tid) + '\n';
  for (const model::Kernel& kernel : s.kernels)
    out += "kernel " + text(s.kernel_names[kernel.name].demangled) + span(kernel) + " grid " +
           std::to_string(s.kernel_shapes[kernel.shape].grid[0]) + 'x' +
           std::to_string(s.kernel_shapes[kernel.shape].block[0]) + where(kernel);
  for (const model::Copy& copy : s.copies)
    out += "copy " + std::to_string(static_cast<int>(copy.kind)) + ' ' +
           std::to_string(copy.bytes) + " B" + span(copy) + where(copy);
  for (const model::Memset& set : s.memsets)
    out += "set" + span(set) + where(set);
  for (const model::KernelSummary& row : s.summary.kernels)
    out += "kernels " + text(row.name) + " x" + std::to_string(row.calls) + ' ' +
           std::to_string(std::llround(row.total_ns)) + '\n';
  for (const model::CallSummary& row : s.summary.calls)
    out += "calls " + text(row.name) + " x" + std::to_string(row.calls) + ' ' +
           std::to_string(std::llround(row.total_ns)) + '\n';
  for (const model::RangeSummary& row : s.summary.ranges)
    out += "ranges " + text(row.name) + " x" + std::to_string(row.occurrences) + '\n';
  for (const model::CopySummary& row : s.summary.copies)
    out += (row.memset ? "sets x" : "copies " + std::to_string(static_cast<int>(row.kind)) + " x") +
           std::to_string(row.calls) + '\n';
  for (const model::Loss& loss : s.losses)
    if (loss.kind.id() != "totals_only")
      out += "loss " + std::string(loss.kind.id()) + ' ' + std::to_string(loss.count) + '\n';
  return out;
}

std::string show_database(const std::string& sql) {
  const std::string path = ::testing::TempDir() + "/rocm_" + std::to_string(::getpid()) + ".db";
  {
    auto database = base::Database::create(path);
    EXPECT_TRUE(database);
    const auto done = database->execute(sql);
    EXPECT_TRUE(done) << (done ? "" : done.error().what);
  }
  EXPECT_TRUE(is_database(path));
  std::string out = show(read_database(path));
  std::filesystem::remove(path);
  return out;
}

std::string golden(const std::string& name) {
  return *base::read_file(kGolden + name);
}

const std::string kProgram =
    "process 70\n@step 5000100000-5001000000 on 77\n"
    "call hipMemcpy 5000120000-5000205000 on 77\ncall hipLaunchKernel 5000300000-5000310000 on "
    "77\n";

TEST(Rocm, DatabasesOfThreeTools) {
  const std::string copy = "copy 1 4096 B 5000150000-5000200000 gpu 1 stream 4 by hipMemcpy\n";
  const auto kernel = [](const std::string& grid) {
    return "kernel vector_add(float*, int) 5000320000-5000720000 grid " + grid +
           " gpu 1 stream 4 by hipLaunchKernel\n";
  };
  EXPECT_EQ(show_database(golden("rocprof.sql")), kProgram + kernel("0x0") + copy);
  EXPECT_EQ(show_database(golden("rpd.sql")),
            kProgram + kernel("16x64") + copy + "loss unread_events 1\nloss unread_events 1\n");
  EXPECT_EQ(show_database(golden("rocpd.sql")),
            kProgram + kernel("16x64") + copy + "loss unread_events 1\n");
}

TEST(Rocm, ArrowsOfATraceLeadFromCallsToTheirWork) {
  EXPECT_EQ(show(read_text(golden("results.json"), "x")),
            kProgram +
                "kernel vector_add(float*, int) 5000320000-5000720000 grid 0x0 gpu 0 stream 0 by "
                "hipLaunchKernel\ncopy 1 4096 B 5000150000-5000200000 gpu 0 stream 1 by hipMemcpy\n"
                "set 5000210000-5000215000 gpu 0 stream 1 by no call\n");
}

TEST(Rocm, ATraceThatEndsEarlyIsReadUpToThere) {
  const std::string text = golden("results.json");
  const std::string out =
      show(read_text(std::string_view(text).substr(0, text.find("\"ph\":\"s\"")), "x"));
  EXPECT_NE(out.find("by no call"), std::string::npos);
  EXPECT_NE(out.find("loss torn_tail 1\n"), std::string::npos) << out;
  EXPECT_EQ(show(read_text(R"({"traceEvents":[{},{"ph":"X"},7,{"ph":"s","id":1}]})", "x")),
            "a trace of rocprof without events\n");
}

TEST(Rocm, TablesOfTotals) {
  const std::string head = "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\"\n";
  EXPECT_EQ(show(read_text(golden("results.stats.csv"), "results.stats.csv")),
            "kernels void gemm<float, 4>(float const*, float*) x63840 423139695\n"
            "kernels __amd_rocclr_copyBuffer x1920 9986541\n");
  const std::string mixed = head +
                            "\"hipMemcpy\",3,1342,447,62.3\n\"CopyDeviceToHost\",1,885,885,83\n"
                            "\"FillBuffer\",1,5,5,1\n\"k\",1,2,2,1\n\"bad\",x,2,2,1\n\"short\",1\n";
  EXPECT_EQ(show(read_text(mixed, "results.stats.csv")),
            "kernels k x1 2\ncalls hipMemcpy x3 1342\ncopies 2 x1\nsets x1\nloss bad_rows 2\n");
  EXPECT_EQ(show(read_text(head + "\"step\",2,9,4.5,1\n", "70_marker_api_stats.csv")),
            "ranges step x2\n");
  EXPECT_EQ(show(read_text(head + "\"HIP_API\",2,9,4.5,1\n", "70_domain_stats.csv")),
            "a table of rocprof without rows of kernels, copies, calls or ranges\n");
  EXPECT_EQ(
      show(read_text(
          "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\",\"MinNs\",\"MaxNs\","
          "\"StdDev\"\n\"k\",4,1.2e3,300.0,100.0,200,400,81.6\n",
          "70_kernel_stats.csv")),
      "kernels k x4 1200\n");
}

TEST(Rocm, HostileDatabases) {
  EXPECT_TRUE(show_database("create table OPS(BeginNs text, EndNs blob)")
                  .starts_with("OPS: no such column: Name"));
  EXPECT_NE(show_database("create table \"rocpd_region\"(id integer)")
                .find("rocpd_region: no such table"),
            std::string::npos);
  std::string sql = golden("rocprof.sql");
  sql +=
      "insert into OPS values (9, 3, 0, 0, 'k', 1, 1, 1), (-5, 'x', null, null, null, null, null, "
      "null),"
      "(5, 9223372036854775807, -1, 99999999999, x'00ff', -1, -1, -7);";
  const std::string out = show_database(sql);
  EXPECT_NE(out.find("loss bad_events 2\nloss bad_events 1\n"), std::string::npos) << out;
}

TEST(Rocm, AnIdentifierThatRepeatsMakesNoFurtherEvents) {
  const std::string program = golden("rocprof.sql"),
                    same_index =
                        "update HIP set \"Index\" = 1; update COPY set \"Index\" = 1; insert into "
                        "HIP select * from HIP;"
                        "insert into COPY select * from COPY;";
  const std::string copies = show_database(program + same_index);
  std::size_t shown = 0;
  for (std::size_t found = copies.find("\ncopy "); found != std::string::npos;
       found = copies.find("\ncopy ", found + 1))
    ++shown;
  EXPECT_EQ(shown, 2u) << copies;

  const std::string without_keys =
      base::replace_all(golden("rocpd.sql"), "id integer primary key", "id integer");
  const std::string damaged = show_database(
      without_keys + "insert into \"rocpd_event_1a2b\" select * from \"rocpd_event_1a2b\";");
  EXPECT_NE(damaged.find("loss damaged_table"), std::string::npos) << damaged;
}

}  // namespace rocm_test
}  // namespace rangescope::read::rocm
