// The same small run as every schema of nsys would export it, and damaged and trimmed exports.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/fs.hpp"
#include "base/source_dir.hpp"
#include "base/sqlite.hpp"
#include "read/nsys/sqlite/parts.hpp"
#include "read/nsys/sqlite/reader.hpp"
#include "read/nsys/sqlite/session_text_test.hpp"

namespace rangescope::read::nsys_sqlite {
namespace schema_test {

const std::string kGolden = std::string(base::source_dir) + "/tests/golden/nsys/";

class Scratch {
 public:
  Scratch()
      : path_(std::filesystem::path(::testing::TempDir()) /
              ("schema_" + std::to_string(::getpid()) + ".sqlite")) {}
  ~Scratch() { std::filesystem::remove(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Ids of host 1, pid 111 with threads 111 and 112, and pid 222.
constexpr std::int64_t kP1 = 0x000100006f000000, kP2 = 0x00010000de000000;
std::string id(std::int64_t value) {
  return std::to_string(value);
}

/// Which columns and tables a schema has (docs/formats/nsys-sqlite.md). 0 stands for exports before
/// 2022.
std::string export_sql(int version) {
  const bool old = version == 0;
  std::string sql;
  if (version > 0) {
    const std::string meta = version < 30400 ? "EXPORT_META_DATA" : "META_DATA_EXPORT";
    sql += "create table " + meta +
           "(name text, value text);"
           "insert into " +
           meta + " values('EXPORT_SCHEMA_VERSION', '" + std::to_string(version / 10000) + '.' +
           std::to_string(version / 100 % 100) + '.' + std::to_string(version % 100) +
           "'), ('EXPORT_PRODUCT_VERSION', 'x');";
  }
  sql +=
      "create table StringIds(id integer not null primary key, value text not null);"
      "insert into StringIds values(1, 'cudaLaunchKernel_v7000'), (2, 'void gemm<int>(float*)'), "
      "(3, 'gemm'), (4, "
      "'_Z4gemm'),"
      "(5, 'reg name'), (6, 'main'), (7, 'cudaMemcpyAsync_v3020'), (8, "
      "'cudaDeviceSynchronize_v3020'), (9, "
      "'cudaMalloc_v3020'),"
      "(10, 'cudaGraphLaunch_v10000'), (11, 'secret=1');";
  sql +=
      "create table ThreadNames(nameId integer, priority integer, globalTid integer); insert into "
      "ThreadNames "
      "values(6, 20, " +
      id(kP1 | 111) + "), (6, 20, " + id(kP2 | 222) + ");";
  if (version >= 20901) {
    sql +=
        "create table PROCESSES(globalPid integer, pid integer, name text); insert into PROCESSES "
        "values(" +
        id(kP1) + ", 111, 'main'), (" + id(kP2) + ", 222, 'main');";
  }
  const std::string gpu = old ? "TARGET_INFO_CUDA_GPU" : "TARGET_INFO_GPU";
  sql += "create table " + gpu +
         "(vmId integer, id integer, name text, busLocation text, smCount integer, totalMemory "
         "integer, uuid text);"
         "insert into " +
         gpu + " values(0, 0, 'A', '0:1', 80, 1000, 'u0'), (0, 1, 'B', '0:2', 80, 1000, 'u1');";
  // CUDA_VISIBLE_DEVICES=1 in process 222: its device 0 is card 1.
  sql +=
      "create table TARGET_INFO_CUDA_DEVICE(gpuId integer, cudaId integer, pid integer);"
      "insert into TARGET_INFO_CUDA_DEVICE values(0, 0, 111), (1, 0, 222);";
  sql +=
      "create table TARGET_INFO_SYSTEM_ENV(name text, value text); insert into "
      "TARGET_INFO_SYSTEM_ENV values('TOKEN', "
      "'secret=1');";

  const std::string green = version >= 31600 ? ", greenContextId integer" : "";
  sql +=
      "create table CUPTI_ACTIVITY_KIND_KERNEL(start integer not null, end integer not null, "
      "deviceId integer, "
      "contextId integer" +
      green +
      ", streamId integer, correlationId integer, globalPid integer, demangledName integer, "
      "shortName integer" +
      (old ? "" : ", mangledName integer") +
      ", launchType integer, registersPerThread integer, gridX integer, gridY integer, gridZ "
      "integer,"
      "blockX integer, blockY integer, blockZ integer, staticSharedMemory integer, "
      "dynamicSharedMemory integer, "
      "graphNodeId integer" +
      (version >= 32400 ? ", clusterX integer, clusterY integer, clusterZ integer, "
                          "tensorSizeMinusOneElements text"
                        : "") +
      ");";
  const auto kernel =
      [&](std::int64_t start, std::int64_t process, int correlation, const char* node) {
        sql +=
            "insert into CUPTI_ACTIVITY_KIND_KERNEL(start, end, deviceId, contextId, streamId, "
            "correlationId, globalPid, "
            "demangledName, shortName" +
            std::string(old ? "" : ", mangledName") +
            ", registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ, graphNodeId" +
            (version >= 32400 ? ", clusterX, clusterY, clusterZ" : "") + ") values(" + id(start) +
            ',' + id(start + 10) + ",0,1,7," + id(correlation) + ',' + id(process) + ",2,3" +
            (old ? "" : ",4") + ",32,5,1,1,128,1,1," + node + (version >= 32400 ? ",2,1,1" : "") +
            ");";
      };
  kernel(1000, kP1, 50, "null");
  kernel(1100, kP2, 50, "null");  // the same correlation id in another process
  kernel(1200, kP1, 60, "4294967297");
  sql +=
      "create table CUPTI_ACTIVITY_KIND_MEMCPY(start integer, end integer, deviceId integer, "
      "contextId integer, "
      "streamId integer,"
      "correlationId integer, globalPid integer, bytes integer, copyKind integer" +
      green + ", graphNodeId integer" + (version >= 32000 ? ", copyCount integer" : "") +
      ");"
      "insert into CUPTI_ACTIVITY_KIND_MEMCPY(start, end, deviceId, contextId, streamId, "
      "correlationId, globalPid, "
      "bytes, copyKind)"
      "values(900, 950, 0, 1, 7, 55, " +
      id(kP2) + ", 4096, 1), (960, 970, 0, 1, 7, null, " + id(kP2) + ", 64, 12);";
  sql +=
      "create table CUPTI_ACTIVITY_KIND_RUNTIME(start integer, end integer, eventClass integer, "
      "globalTid integer, "
      "correlationId integer,"
      "nameId integer, returnValue integer" +
      std::string(old ? "" : ", callchainId integer") +
      ");"
      "insert into CUPTI_ACTIVITY_KIND_RUNTIME(start, end, eventClass, globalTid, correlationId, "
      "nameId, returnValue) "
      "values"
      "(500, 510, 0, " +
      id(kP1 | 112) + ", 50, 1, 0), (520, 530, 0, " + id(kP2 | 222) +
      ", 50, 1, 0), (540, 550, 0, " + id(kP2 | 222) +
      ", 55, 7, 0),"
      "(560, 561, 0, " +
      id(kP1 | 111) + ", 56, 9, 0), (570, 580, 0, " + id(kP1 | 111) +
      ", 60, 10, 0), (600, 1300, 0, " + id(kP1 | 111) + ", 61, 8, 0);";
  const std::string nodes =
      version > 0 && version < 31600 ? "CUDA_GRAPH_EVENTS" : "CUDA_GRAPH_NODE_EVENTS";
  sql += "create table " + nodes +
         "(start integer, end integer, eventClass integer, globalTid integer, nameId integer, "
         "graphNodeId integer,"
         "originalGraphNodeId integer); insert into " +
         nodes + " values(130, 130, 77, " + id(kP1 | 111) +
         ", 1, 1, null),"
         "(300, 300, 77, " +
         id(kP1 | 111) + ", 1, 4294967297, 1);";
  sql +=
      "create table NVTX_EVENTS(start integer not null, end integer, eventType integer not null, "
      "rangeId integer, "
      "category integer, color integer,"
      "text text, globalTid integer, endGlobalTid integer, textId integer, domainId integer, "
      "uint64Value integer, "
      "int64Value integer, doubleValue real,"
      "uint32Value integer, int32Value integer, floatValue real, jsonTextId integer, jsonText "
      "text" +
      std::string(version >= 32000 ? ", binaryData text" : "") + ");";
  const auto nvtx = [&](const std::string& columns, const std::string& values) {
    sql += "insert into NVTX_EVENTS(" + columns + ") values(" + values + ");";
  };
  const std::string t1 = id(kP1 | 111), t2 = id(kP1 | 112), t3 = id(kP2 | 222);
  nvtx("start,eventType,text,globalTid,domainId", "90,75,'Dom'," + t1 + ",1");
  nvtx("start,eventType,text,globalTid,domainId",
       "91,75,'Dom'," + t2 + ",1");  // the same domain, told again by another thread
  nvtx("start,eventType,text,globalTid,domainId",
       "92,75,'Dom'," + t3 + ",4");  // the same name, another number in another process
  nvtx("start,eventType,category,text,globalTid,domainId", "93,33,7,'cat'," + t1 + ",0");
  nvtx("start,end,eventType,text,globalTid,domainId,category,color,floatValue",
       "100,700,59,'outer'," + t1 + ",0,7,4278190335,1.5");
  nvtx("start,end,eventType,text,globalTid,domainId", "100,200,59,'inner'," + t1 + ",0");
  nvtx("start,end,eventType,textId,globalTid,domainId", "490,515,59,5," + t2 + ",1");
  nvtx("start,eventType,text,globalTid,domainId", "495,59,'never popped'," + t2 + ",0");
  nvtx("start,end,eventType,rangeId,text,globalTid,endGlobalTid,domainId",
       "480,640,60,3,'se'," + t3 + "," + id(kP2 | 223) + ",4");
  nvtx("start,eventType,text,globalTid,domainId,int64Value", "650,34,'mark'," + t3 + ",0,-3");
  nvtx("start,eventType,text,globalTid", "660,39,'renamed'," + t2);
  nvtx("start,eventType,text,globalTid,uint64Value", "670,99,'my stream'," + t1 + ",7");
  nvtx("start,eventType,globalTid,domainId", "680,76," + t1 + ",1");
  return sql;
}

std::string run(const std::string& sql, int threads = 0) {
  Scratch scratch;
  {
    auto database = base::Database::create(scratch.path());
    auto done = database->execute(sql);
    EXPECT_TRUE(done) << base::to_string(done.error());
  }
  Options options;
  options.threads = threads;
  auto session = kReader.read(scratch.path(), options);
  if (!session)
    return base::to_string(session.error()).substr(scratch.path().string().size());
  EXPECT_EQ(session_text(*session), session_text(*read_through_library(scratch.path(), options)));
  return session_text(*session);
}

std::string expected(int version) {
  const std::string mangled = version == 0 ? "" : "_Z4gemm", cluster = version >= 32400 ? "2" : "0";
  const std::string kernel = "kernel void gemm<int>(float*)/gemm/" + mangled + ' ',
                    shape = " grid 5 block 128 cluster " + cluster;
  return "span 100-1300\n"
         "process 111 main 100-1300\n"
         "process 222 main 480-1110\n"
         "thread 111 of 111 main\n"
         "thread 112 of 111 renamed\n"
         "thread 222 of 222 main\n"
         "thread 223 of 222 \n"
         "category 7 cat\n"
         "resource 262147 7 my stream\n"
         "push/pop @outer 100-700 on 111/111 category 7 color 4278190335 payload 6=1.500000\n"
         "push/pop @inner 100-200 on 111/111\n"
         "start/end Dom@se 480-640 on 222/222 ends on 222/223\n"
         "push/pop Dom@reg name 490-515 on 111/112 registered\n"
         "push/pop @never popped 495-open on 111/112\n"
         "mark @mark 650 on 222/222\n" +
         kernel + "1000-1010 111:gpu0(A u0):1:7" + shape +
         " by cudaLaunchKernel_v7000@500-510 on 111/112\n" + kernel +
         "1100-1110 222:gpu0(B u1):1:7" + shape +
         " by cudaLaunchKernel_v7000@520-530 on 222/222\n" + kernel +
         "1200-1210 111:gpu0(A u0):1:7" + shape +
         " node 4294967297 > outer > inner by cudaGraphLaunch_v10000@570-580 on 111/111\n"
         "copy 1 4096 B 900-950 222:gpu0(B u1):1:7 by cudaMemcpyAsync_v3020@540-550 on 222/222\n"
         "copy 2 64 B 960-970 222:gpu0(B u1):1:7 by no call\n"
         "wait 4 600-1300 by cudaDeviceSynchronize_v3020@600-1300 on 111/111\n"
         "launch 0 cudaLaunchKernel_v7000@500 on 111/112\n"
         "launch 0 cudaLaunchKernel_v7000@520 on 222/222\n"
         "launch 1 cudaMemcpyAsync_v3020@540 on 222/222\n"
         "launch 3 cudaGraphLaunch_v10000@570 on 111/111\n"
         "launch 4 cudaDeviceSynchronize_v3020@600 on 111/111\n";
}

class Schema : public ::testing::TestWithParam<int> {};
TEST_P(Schema, GivesTheSameSession) {
  EXPECT_EQ(run(export_sql(GetParam())), expected(GetParam()));
  EXPECT_EQ(run(export_sql(GetParam()), 1), expected(GetParam()));
}
INSTANTIATE_TEST_SUITE_P(Versions,
                         Schema,
                         ::testing::Values(0, 20901, 30000, 30107, 30400, 31600, 32000, 32500),
                         [](const auto& version) { return "v" + std::to_string(version.param); });

TEST(NsysSchema, TrimmedExportOfOneProcessNeedsNoGlobalPid) {
  const std::string out =
      run("create table CUPTI_ACTIVITY_KIND_KERNEL(start, end, correlationId, shortName);"
          "create table CUPTI_ACTIVITY_KIND_RUNTIME(start, end, globalTid, correlationId);"
          "create table StringIds(id integer primary key, value);"
          "insert into StringIds values(1, 'k');"
          "insert into CUPTI_ACTIVITY_KIND_KERNEL values(10, 20, 5, 1), (30, 40, 6, 2);"
          "insert into CUPTI_ACTIVITY_KIND_RUNTIME values(1, 2, " +
          id(kP1 | 111) + ", 5);");
  EXPECT_EQ(
      out,
      "span 1-40\nprocess 111  1-40\nthread 111 of 111 \n"
      "kernel k/k/ 10-20 111:gpu0( ):0:0 grid 0 block 0 cluster 0 by @1-2 on 111/111\n"
      "kernel <string 2>/<string 2>/ 30-40 111:gpu0( ):0:0 grid 0 block 0 cluster 0 by no call\n"
      "launch 0 @1 on 111/111\n"
      "loss missing_string 2 names that StringIds does not hold\n");
}

/// One kernel, and calls "name start end correlation" of one thread.
std::string calls_sql(std::initializer_list<std::string> calls, bool kernel) {
  std::string sql =
      "create table StringIds(id integer primary key, value);"
      "insert into StringIds values(1, 'k'), (2, 'cudaLaunchKernel'), (3, 'cuLaunchKernel');"
      "create table CUPTI_ACTIVITY_KIND_RUNTIME(start, end, globalTid, correlationId, nameId);";
  for (const std::string& call : calls)
    sql += "insert into CUPTI_ACTIVITY_KIND_RUNTIME values(" + call + ");";
  if (kernel)
    sql +=
        "create table CUPTI_ACTIVITY_KIND_KERNEL(start, end, correlationId, shortName);"
        "insert into CUPTI_ACTIVITY_KIND_KERNEL values(100, 200, 5, 1);";
  return sql;
}

TEST(NsysSchema, CallInsideACallWithItsIdIsNoDuplicate) {
  const std::string thread = id(kP1 | 111);
  const std::string driver_first =
      run(calls_sql({"12, 18, " + thread + ", 5, 3", "10, 20, " + thread + ", 5, 2"}, true));
  EXPECT_NE(driver_first.find("by cudaLaunchKernel@10-20"), std::string::npos) << driver_first;
  EXPECT_EQ(driver_first.find("loss"), std::string::npos) << driver_first;
  const std::string apart =
      run(calls_sql({"10, 20, " + thread + ", 5, 2", "30, 40, " + thread + ", 5, 2"}, true));
  EXPECT_NE(apart.find("loss duplicate_correlation 1"), std::string::npos) << apart;
}

TEST(NsysSchema, CallsWithoutGpuWorkAreKept) {
  const std::string thread = id(kP1 | 111);
  const std::string out =
      run(calls_sql({"10, 20, " + thread + ", 5, 2", "30, 40, " + thread + ", 6, 2"}, false));
  EXPECT_EQ(
      out,
      "span 10-40\nprocess 111  10-40\nthread 111 of 111 \n"
      "launch 5 cudaLaunchKernel@10 on 111/111\nlaunch 5 cudaLaunchKernel@30 on 111/111\n"
      "loss no_gpu_work 2 CUDA API calls were recorded, but no kernel, copy or set of a GPU\n");
}

// cudaDeviceReset and the wait inside it have one id, the wait before the call; 7 is a wait of the
// GPU.
TEST(NsysSchema, WaitsAreNoGpuWorkAndNoDuplicates) {
  const std::string thread = id(kP1 | 111);
  const std::string sql =
      calls_sql({"10, 20, " + thread + ", 5, 2",
                 "30, 31, " + thread + ", 7, 4",
                 "40, 60, " + thread + ", 7, 5"},
                false) +
      "insert into StringIds values(4, 'cuCtxSynchronize'), (5, 'cudaDeviceReset');"
      "create table CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start, end, correlationId, syncType);"
      "insert into CUPTI_ACTIVITY_KIND_SYNCHRONIZATION values(30, 31, 7, 4);";
  const std::string out = run(sql);
  EXPECT_NE(out.find("cudaLaunchKernel@10"), std::string::npos) << out;
  EXPECT_EQ(out.find("duplicate_correlation"), std::string::npos) << out;
}

TEST(NsysSchema, MigrationsOfUnifiedMemoryNeedNoCall) {
  Scratch scratch;
  {
    ASSERT_TRUE(
        base::Database::create(scratch.path())
            ->execute(
                "create table CUPTI_ACTIVITY_KIND_MEMCPY(start, end, bytes, copyKind, globalPid);"
                "insert into CUPTI_ACTIVITY_KIND_MEMCPY values(10, 20, 4096, 11, " +
                id(kP1) + "), (30, 40, 4096, 1, " + id(kP1) + ");"));
  }
  const auto session = kReader.read(scratch.path(), {});
  ASSERT_TRUE(session);
  ASSERT_EQ(session->copies.size(), 2u);
  EXPECT_TRUE(session->copies[0].migration);
  EXPECT_EQ(session->copies[0].kind, model::CopyKind::kHostToDevice);
  EXPECT_FALSE(session->copies[1].migration);
  EXPECT_TRUE(model::holds_anything(*session));
}

// Two metrics of GPU 1; the third sample lacks one, and before the fourth lies a gap.
TEST(NsysSchema, GpuMetricsAreSamples) {
  Scratch scratch;
  {
    ASSERT_TRUE(
        base::Database::create(scratch.path())
            ->execute("create table TARGET_INFO_GPU(id, name, uuid);"
                      "insert into TARGET_INFO_GPU values(1, 'NVIDIA H200', 'GPU-1');"
                      "create table TARGET_INFO_GPU_METRICS(typeId, sourceId, typeName, metricId, "
                      "metricName);"
                      "insert into TARGET_INFO_GPU_METRICS values(257, 0, 'GPU Metrics', 0, 'GPC "
                      "Clock Frequency [MHz]'),"
                      "(257, 0, 'GPU Metrics', 7, 'DRAM Read Bandwidth [Throughput %]');"
                      "create table GPU_METRICS(rawTimestamp, timestamp, typeId, metricId, value);"
                      "insert into GPU_METRICS values(0, 100, 257, 0, 1980), (0, 100, 257, 7, 50), "
                      "(0, 200, 257, 7, 25),"
                      "(0, 200, 257, 0, 1980), (0, 300, 257, 7, 100), (0, 900, 257, 0, 1500), (0, "
                      "900, 257, 7, 0),"
                      "(0, 850, 257, 7, 1), (0, 1000, 257, 9, 1);"
                      "create table NVTX_EVENTS(start, end, eventType, text, globalTid, domainId);"
                      "insert into NVTX_EVENTS values(1, 9, 59, 'r', 111, 0);"));
  }
  const auto session = kReader.read(scratch.path(), {});
  ASSERT_TRUE(session);
  ASSERT_EQ(session->samples.size(), 1u);
  const model::SampleStream& samples = session->samples[0];
  EXPECT_EQ(samples.uuid, "GPU-1");
  EXPECT_EQ(samples.interval_ns, 100);
  EXPECT_EQ(samples.start_ns, (std::vector<std::int64_t>{0, 100, 200, 800, 900}));
  EXPECT_EQ(samples.end_ns, (std::vector<std::int64_t>{100, 200, 300, 900, 1000}));
  ASSERT_EQ(samples.metrics.size(), 2u);
  EXPECT_EQ(samples.metrics[0].kind, model::SampleKind::kMean);
  EXPECT_EQ(samples.metrics[0].values[0], 1980e6F);
  EXPECT_TRUE(std::isnan(samples.metrics[0].values[2])) << "what was not read is unknown";
  EXPECT_EQ(samples.metrics[1].name, "dram__read_throughput.avg.pct_of_peak_sustained_elapsed");
  EXPECT_EQ(samples.metrics[1].values[1], 0.25F);
  ASSERT_EQ(session->losses.size(), 1u);
  EXPECT_EQ(session->losses[0].count, 2u) << "one out of order, one without a name";
}

TEST(NsysSchema, RowsThatMakeNoSenseAreLeftOutAndCounted) {
  const std::string out =
      run("create table NVTX_EVENTS(start, end, eventType, text, globalTid, domainId);"
          "insert into NVTX_EVENTS values('x', 2, 59, 'bad', 111, 0), (5, 4, 59, 'backwards', 111, "
          "0), (1, 9, 59, "
          "x'ff00fe', 111, 9), (2, 3, 12345, 'new', 111, 0);");
  EXPECT_EQ(out,
            std::string("span 1-9\nprocess 0  1-9\nthread 111 of 0 \npush/pop <domain "
                        "9>@\xff\0\xfe 1-9 on 0/111\n",
                        78) +
                "loss bad_rows 2 NVTX_EVENTS: rows left out, the first because its start is "
                "not a number\n"
                "loss unnamed_domain 1 NVTX domains whose creation was not recorded\n"
                "loss unknown_nvtx_event 1 rows of NVTX_EVENTS of an unknown eventType\n");
}

TEST(NsysSchema, MissingColumnIsNamed) {
  EXPECT_EQ(
      run("create table CUPTI_ACTIVITY_KIND_KERNEL(begin, end)"),
      ": CUPTI_ACTIVITY_KIND_KERNEL.start: the table has no column start\n"
      "hint: Export the report again: nsys export --type sqlite --force-overwrite true REPORT");
}

TEST(NsysSchema, ForeignDatabaseIsRefused) {
  const std::string out = run("create table photos(a)");
  EXPECT_NE(out.find("not of Nsight Systems"), std::string::npos) << out;
  Scratch scratch;
  { ASSERT_TRUE(base::Database::create(scratch.path())->execute("create table photos(a)")); }
  const std::string head = *base::read_head(scratch.path(), 4096);
  EXPECT_FALSE(kReader.sniff(std::as_bytes(std::span(head)), scratch.path()));
}

TEST(NsysSchema, EnvironmentOfTheProfiledProgramIsNotCopied) {
  Scratch scratch;
  { ASSERT_TRUE(base::Database::create(scratch.path())->execute(export_sql(30400))); }
  const auto session = kReader.read(scratch.path(), {});
  ASSERT_TRUE(session);
  EXPECT_EQ(session->strings.find("secret=1"), 0u);
}

TEST(NsysSqlite, PagesEqualTheLibraryAndThreadsDoNotMatter) {
  for (const char* name : {"zoo", "zoo_graphnode", "cpu", "work", "autograd", "mp"}) {
    const std::string path = kGolden + name + ".sqlite";
    const std::string pages = session_text(*kReader.read(path, {}));
    EXPECT_EQ(pages, session_text(*read_through_library(path, {}))) << name;
    for (const int threads : {1, 2, 3}) {
      Options options;
      options.threads = threads;
      EXPECT_EQ(pages, session_text(*kReader.read(path, options))) << name;
    }
  }
}

TEST(NsysSqlite, CutAndFlippedExportsFailOrTellWhatIsMissing) {
  std::mt19937 random(11);
  for (const char* name : {"zoo", "mp"}) {
    const std::string good = *base::read_file(kGolden + name + ".sqlite");
    const std::string whole = session_text(*kReader.read(kGolden + name + ".sqlite", {}));
    Scratch scratch;
    for (int round = 0; round < 120; ++round) {
      std::string bad = good;
      if (round < 20) {
        bad.resize(bad.size() * static_cast<std::size_t>(round) / 20);
      } else {
        for (int i = 0; i <= round % 5; ++i)
          bad[random() % (round % 2 ? 8192 : bad.size())] = static_cast<char>(random());
      }
      ASSERT_TRUE(base::write_file(scratch.path(), bad));
      const auto session = kReader.read(scratch.path(), {});
      if (!session) {
        EXPECT_TRUE(session.error().code == base::Code::kBadData ||
                    session.error().code == base::Code::kIo);
        EXPECT_FALSE(session.error().where.empty());
      } else if (round < 20) {
        EXPECT_TRUE(!session->losses.empty() || session_text(*session) == whole)
            << name << " cut " << round;
      }
    }
  }
}

TEST(NsysSqlite, OutOfOrderRangesAreSorted) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<model::Range> ranges(random() % 50);
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      ranges[i].start_ns =
          round % 2 ? static_cast<std::int64_t>(random() % 20) : static_cast<std::int64_t>(i);
      ranges[i].end_ns = ranges[i].start_ns + static_cast<std::int64_t>(random() % 5);
      ranges[i].name = static_cast<model::StringId>(i);
    }
    if (ranges.size() > 3)
      std::swap(ranges[1], ranges[ranges.size() - 1]);
    auto expected_order = ranges;
    std::stable_sort(
        expected_order.begin(), expected_order.end(), [](const auto& a, const auto& b) {
          return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
        });
    order_ranges(ranges);
    for (std::size_t i = 0; i < ranges.size(); ++i)
      ASSERT_EQ(ranges[i].name, expected_order[i].name);
  }
}

TEST(NsysSqlite, CpuSamplesAreRead) {
  const Scratch scratch;
  const std::string thread = id(kP1 | 111);
  {
    ASSERT_TRUE(
        base::Database::create(scratch.path())
            ->execute(export_sql(30400) +
                      "insert into StringIds values(100, 'main'), (101, 'work'), (102, '/bin/app');"
                      "create table COMPOSITE_EVENTS(id integer primary key, start integer, "
                      "globalTid integer);"
                      "insert into COMPOSITE_EVENTS values(1, 1000, " +
                      thread + "), (2, 3000, " + thread + "), (3, 5000, " + thread +
                      ");"
                      "create table SAMPLING_CALLCHAINS(id integer, symbol integer, module "
                      "integer, stackDepth "
                      "integer, primary key(id, stackDepth));"
                      "insert into SAMPLING_CALLCHAINS values(1, 101, 102, 0), (1, 100, 102, 1), "
                      "(2, 101, 102, "
                      "0), (2, 100, 102, 1), (3, 100, 102, 0);"));
  }
  const auto session = kReader.read(scratch.path(), {});
  ASSERT_TRUE(session) << base::to_string(session.error());
  const model::CpuProfile& cpu = session->cpu;
  EXPECT_EQ(cpu.interval_ns, 2000);
  ASSERT_EQ(cpu.samples.size(), 3u);
  ASSERT_EQ(cpu.threads.size(), 1u);
  EXPECT_EQ(cpu.threads[0].pid, 111u);
  EXPECT_NE(cpu.threads[0].thread, model::kNone);
  EXPECT_EQ(cpu.samples[0].stack, cpu.samples[1].stack);
  const model::CpuStack& innermost = cpu.stacks.at(cpu.samples[0].stack);
  EXPECT_EQ(session->strings.view(cpu.frames.at(innermost.frame).name), "work");
  EXPECT_EQ(innermost.parent, cpu.samples[2].stack);
}

}  // namespace schema_test
}  // namespace rangescope::read::nsys_sqlite
