// A small run as nvprof of CUDA 8 and of CUDA 11 would write it: the schema is that of real files, rows are made here.
#include "read/nvprof/reader.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "base/fs.hpp"
#include "base/sqlite.hpp"
#include "read/registry.hpp"

namespace rangescope::read::nvprof {
namespace nvprof_test {

const std::string kActivity = "create table CUPTI_ACTIVITY_KIND_";
const std::string kKernelColumns =
    "(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, cacheConfig BLOB NOT NULL, sharedMemoryConfig INT NOT NULL, "
    "registersPerThread INT NOT NULL, start INT NOT NULL, end INT NOT NULL, completed INT NOT NULL, deviceId INT NOT "
    "NULL, contextId INT NOT NULL, streamId INT NOT NULL, gridX INT NOT NULL, gridY INT NOT NULL, gridZ INT NOT NULL, "
    "blockX INT NOT NULL, blockY INT NOT NULL, blockZ INT NOT NULL, staticSharedMemory INT NOT NULL, "
    "dynamicSharedMemory INT NOT NULL, localMemoryPerThread INT NOT NULL, localMemoryTotal INT NOT NULL, correlationId "
    "INT NOT NULL, gridId INT NOT NULL, name INT NOT NULL);";
const std::string kCallColumns =
    "(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, cbid INT NOT NULL, start INT NOT NULL, end INT NOT NULL, processId INT "
    "NOT NULL, threadId INT NOT NULL, correlationId INT NOT NULL, returnValue INT NOT NULL);";

std::string schema(bool domains) {
  return "create table StringTable(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT NOT NULL UNIQUE);"
         "create table Version(version INTEGER); insert into Version values(" +
         std::string(domains ? "11" : "8") + ");" + kActivity + "KERNEL" + kKernelColumns + kActivity +
         "CONCURRENT_KERNEL" + kKernelColumns + kActivity + "DRIVER" + kCallColumns + kActivity + "RUNTIME" +
         kCallColumns + kActivity +
         "MEMCPY(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, copyKind INT NOT NULL, srcKind INT NOT NULL, dstKind INT NOT "
         "NULL, flags INT NOT NULL, bytes INT NOT NULL, start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL, "
         "contextId INT NOT NULL, streamId INT NOT NULL, correlationId INT NOT NULL, runtimeCorrelationId INT NOT "
         "NULL);" +
         kActivity +
         "MEMSET(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, value INT NOT NULL, bytes INT NOT NULL, start INT NOT NULL, "
         "end INT NOT NULL, deviceId INT NOT NULL, contextId INT NOT NULL, streamId INT NOT NULL, correlationId INT "
         "NOT NULL);" +
         kActivity +
         "DEVICE(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, globalMemoryBandwidth INT NOT NULL, globalMemorySize INT NOT "
         "NULL, coreClockRate INT NOT NULL, numMultiprocessors INT NOT NULL, computeCapabilityMajor INT NOT NULL, "
         "computeCapabilityMinor INT NOT NULL, id INT NOT NULL, uuid BLOB NOT NULL, name INT NOT NULL);" +
         kActivity +
         "NAME(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, objectKind INT NOT NULL, objectId BLOB NOT NULL, name INT NOT "
         "NULL);" +
         kActivity +
         "METRIC(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, id INT NOT NULL, value BLOB NOT NULL, correlationId INT NOT "
         "NULL, flags INT NOT NULL);" +
         kActivity +
         "MARKER(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, flags INT NOT NULL, timestamp INT NOT NULL, id INT NOT NULL, "
         "objectKind INT NOT NULL, objectId BLOB NOT NULL, name INT NOT NULL" +
         (domains ? ", domain INT NOT NULL" : "") + ");";
}

// Threads 2 and -3 of process 7, as twelve bytes.
const std::string kTwo = "x'070000000200000000000000'", kThree = "x'07000000fdffffff00000000'";

std::string marker(int flags, std::int64_t at, int id, const std::string& object, int name, bool domains, int domain) {
  return "insert into CUPTI_ACTIVITY_KIND_MARKER values(null, " + std::to_string(flags) + ", " + std::to_string(at) +
         ", " + std::to_string(id) + ", 2, " + object + ", " + std::to_string(name) +
         (domains ? ", " + std::to_string(domain) : "") + ");";
}

std::string run_sql(bool domains) {
  std::string sql = schema(domains);
  sql +=
      "insert into StringTable values(0, '-- null --'), (1, 'python train.py --token x'), (2, 'TITAN V'),"
      "(3, '_Z5scaleIfEvPT_i'), (4, 'step'), (5, 'forward'), (6, 'io'), (7, 'MyDomain'), (8, 'here'), (9, 'across');"
      "insert into CUPTI_ACTIVITY_KIND_DEVICE values(null, 652800000, 12621381632, 1455000, 80, 7, 0, 0, x'00', 2);"
      "insert into CUPTI_ACTIVITY_KIND_NAME values(null, 1, x'070000000000000000000000', 1);"
      // cudaLaunchKernel in both ranges, cudaMemcpyAsync by the driver on the other thread, a wait, and one unknown.
      "insert into CUPTI_ACTIVITY_KIND_RUNTIME values(null, 211, 1200, 1250, 7, 2, 31, 0),"
      "(null, 165, 1700, 1900, 7, 2, 32, 0), (null, 9999, 1910, 1911, 7, 2, 33, 0);"
      "insert into CUPTI_ACTIVITY_KIND_DRIVER values(null, 277, 1300, 1350, 7, -3, 34, 0);"
      "insert into CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL values(null, x'00', 0, 16, 1400, 1450, 1450, 0, 1, 14, 27, 1, "
      "1, 256, 1, 1, 8, 9, 0, 0, 31, 1, 3);"
      "insert into CUPTI_ACTIVITY_KIND_MEMCPY values(null, 1, 1, 3, 0, 112, 1500, 1520, 0, 1, 7, 34, 0);"
      "insert into CUPTI_ACTIVITY_KIND_MEMSET values(null, 0, 64, 1530, 1540, 0, 1, 7, 999);"
      "insert into CUPTI_ACTIVITY_KIND_METRIC values(null, 1, x'00', 31, 0);";
  sql += marker(2, 1000, 1, kTwo, 4, domains, 0) + marker(2, 1100, 2, kTwo, 5, domains, 0) +
         marker(4, 1600, 2, kTwo, 0, domains, 0) + marker(1, 1650, 3, kTwo, 8, domains, 0) +
         marker(4, 2000, 1, kTwo, 0, domains, 0);
  // Across threads; two that cross on one thread; an end without its begin.
  sql += marker(2, 1250, 4, kThree, 6, domains, 7) + marker(4, 1700, 4, kTwo, 0, domains, 7) +
         marker(2, 3000, 5, kTwo, 9, domains, 0) + marker(2, 3100, 6, kTwo, 6, domains, 0) +
         marker(4, 3200, 5, kTwo, 0, domains, 0) + marker(4, 3300, 6, kTwo, 0, domains, 0) +
         marker(4, 3400, 77, kTwo, 0, domains, 0);
  return sql;
}

struct Scratch {
  std::filesystem::path path =
      std::filesystem::path(::testing::TempDir()) / ("nvprof_" + std::to_string(::getpid()) + ".nvprof");
  explicit Scratch(const std::string& sql) {
    auto database = base::Database::create(path);
    const auto made = database ? database->execute(sql) : base::Result<void>(tl::make_unexpected(database.error()));
    EXPECT_TRUE(made) << made.error().what;
  }
  ~Scratch() { std::filesystem::remove(path); }
};

/// "name thread start..end kind domain", in the session's order.
std::vector<std::string> ranges_of(const model::Session& s) {
  std::vector<std::string> out;
  for (const model::Range& range : s.ranges)
    out.push_back(std::string(s.strings.view(range.name)) + ' ' +
                  std::to_string(static_cast<std::int32_t>(s.threads[range.thread].tid)) + ' ' +
                  std::to_string(range.start_ns) + ".." + std::to_string(range.end_ns) +
                  (range.kind == model::RangeKind::kPushPop ? " pushed " : " started ") +
                  std::string(s.strings.view(s.domains[range.domain].name)));
  return out;
}

bool has_loss(const model::Session& s, std::string_view kind) {
  return std::any_of(s.losses.begin(), s.losses.end(), [&](const model::Loss& loss) { return loss.kind.id() == kind; });
}

TEST(Nvprof, MarkersCallsAndWorkOfBothSchemas) {
  for (const bool domains : {true, false}) {
    SCOPED_TRACE(domains ? "CUDA 11" : "CUDA 8");
    const Scratch file(run_sql(domains));
    const auto reader = find_reader(file.path);
    ASSERT_TRUE(reader);
    EXPECT_EQ((*reader)->name(), "nvprof");
    const auto read = (*reader)->read(file.path, {});
    ASSERT_TRUE(read) << read.error().what;
    const model::Session& s = *read;
    EXPECT_EQ(ranges_of(s),
              (std::vector<std::string>{"step 2 1000..2000 pushed ", "forward 2 1100..1600 pushed ",
                                        "across 2 3000..3200 started ", "io 2 3100..3300 started ",
                                        domains ? "io -3 1250..1700 started MyDomain" : "io -3 1250..1700 started "}));
    ASSERT_EQ(s.marks.size(), 1U);
    EXPECT_EQ(s.strings.view(s.marks[0].name), "here");

    ASSERT_EQ(s.kernels.size(), 1U);
    EXPECT_EQ(s.strings.view(s.kernel_names[s.kernels[0].name].demangled), "void scale<float>(float*, int)");
    EXPECT_EQ(s.strings.view(s.kernel_names[s.kernels[0].name].mangled), "_Z5scaleIfEvPT_i");
    const model::KernelShape& shape = s.kernel_shapes[s.kernels[0].shape];
    EXPECT_EQ(shape.grid[0], 27U);
    EXPECT_EQ(shape.block[0], 256U);
    EXPECT_EQ(shape.static_shared_bytes, 8U);
    const model::Launch& launch = s.launches[s.kernels[0].launch];
    EXPECT_EQ(s.strings.view(launch.name), "cudaLaunchKernel");
    EXPECT_EQ(launch.kind, model::LaunchKind::kKernel);

    ASSERT_EQ(s.copies.size(), 1U);
    EXPECT_EQ(s.copies[0].kind, model::CopyKind::kHostToDevice);
    EXPECT_EQ(s.copies[0].bytes, 112U);
    EXPECT_EQ(s.threads[s.launches[s.copies[0].launch].thread].tid, static_cast<std::uint32_t>(-3));
    ASSERT_EQ(s.memsets.size(), 1U);
    EXPECT_EQ(s.memsets[0].launch, model::kNone);  // its call was not recorded

    ASSERT_EQ(s.synchronizations.size(), 1U);
    EXPECT_EQ(s.synchronizations[0].end_ns, 1900);
    EXPECT_EQ(s.strings.view(s.launches[2].name), "runtime call 9999");

    ASSERT_EQ(s.processes.size(), 1U);
    EXPECT_EQ(s.processes[0].pid, 7U);
    EXPECT_EQ(s.strings.view(s.processes[0].name), "python");  // not its arguments
    ASSERT_EQ(s.devices.size(), 1U);
    EXPECT_EQ(s.strings.view(s.devices[0].name), "TITAN V");
    EXPECT_EQ(s.devices[0].memory_bytes_per_s, 652.8e9);
    EXPECT_TRUE(has_loss(s, "unknown_end"));
    EXPECT_TRUE(has_loss(s, "ignored_table"));  // METRIC
    EXPECT_FALSE(has_loss(s, "bad_rows"));
  }
}

TEST(Nvprof, RowsThatMakeNoSenseAreCounted) {
  const Scratch file(
      schema(true) +
      "insert into CUPTI_ACTIVITY_KIND_RUNTIME values(null, 211, 'soon', 5, 7, 2, 31, 0), (null, 211, "
      "20, 10, 7, 2, 32, 0), (null, 211, 1, 2, 7, 2, 33, 0), (null, 211, 1, 2, 8, 2, 33, 0);"
      "insert into CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL values(null, x'00', 0, 16, 30, 20, 0, 0, 1, 14, "
      "1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 33, 1, 3), (null, x'00', 0, 16, 30, 40, 0, 0, 1, 14, "
      "1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 33, 1, 3);"
      "insert into CUPTI_ACTIVITY_KIND_MARKER values(null, 2, 5, 1, 2, x'07', 44, 0);");
  const auto read = NvprofReader().read(file.path, {});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->launches.size(), 2U);
  ASSERT_EQ(read->kernels.size(), 1U);
  EXPECT_EQ(read->strings.view(read->kernel_names[0].demangled), "[string 3]");
  ASSERT_EQ(read->ranges.size(), 1U);
  EXPECT_EQ(read->ranges[0].end_ns, model::kOpen);
  for (const std::string_view kind : {"bad_rows", "missing_string", "ambiguous_correlation"})
    EXPECT_TRUE(has_loss(*read, kind)) << kind;
}

TEST(Nvprof, FilesCutAnywhereFailOrTellIt) {
  const Scratch file(run_sql(true));
  const auto whole = base::read_file(file.path);
  ASSERT_TRUE(whole);
  for (std::size_t size = 100; size < whole->size(); size += 1021) {
    ASSERT_TRUE(base::write_file(file.path, whole->substr(0, size)));
    const auto read = NvprofReader().read(file.path, {});
    EXPECT_TRUE(!read || has_loss(*read, "damaged_table") || !model::holds_anything(*read)) << size;
  }
}

}  // namespace nvprof_test
}  // namespace rangescope::read::nvprof
