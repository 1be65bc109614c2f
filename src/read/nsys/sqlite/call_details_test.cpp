// Memory and events as nsys exports them (schema 3.20, columns that are read).
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/sqlite.hpp"
#include "read/nsys/sqlite/reader.hpp"

namespace rangescope::read::nsys_sqlite {
namespace call_details_test {

/// globalPid of process 111, whose main thread has the number of the process.
const std::string kProcess = "281476838981632", kThread = "281476838981743";

/// One process: a copy on stream 13, an event behind it, for which stream 14 and the thread wait.
std::string export_sql() {
  std::string sql =
      "create table StringIds(id integer not null primary key, value text not null);"
      "insert into StringIds values(1, 'cudaMemcpyAsync_v3020'), (2, 'cudaEventRecord_v3020'),"
      "(3, 'cudaStreamWaitEvent_v3020'), (4, 'cudaLaunchKernel_v7000'), (5, 'cudaMalloc_v3020'),"
      "(6, 'cudaFree_v3020'), (7, 'cudaEventSynchronize_v3020'), (8, 'k');"
      "create table CUPTI_ACTIVITY_KIND_RUNTIME(start integer, end integer, globalTid integer,"
      "correlationId integer, nameId integer);";
  const auto call = [&](const std::string& times, const std::string& correlation_and_name) {
    sql += "insert into CUPTI_ACTIVITY_KIND_RUNTIME values(" + times + ',' + kThread + ',' +
           correlation_and_name + ");";
  };
  call("100,110", "1,5");
  call("120,130", "2,1");
  call("140,145", "3,2");
  call("150,155", "4,3");
  call("160,170", "5,4");
  call("200,300", "6,7");
  call("310,320", "7,6");
  const std::string stream_columns =
      "deviceId integer, contextId integer, streamId integer, correlationId integer, globalPid "
      "integer";
  const auto on_stream = [&](const char* stream, const char* correlation) {
    return std::string("0,1,") + stream + ',' + correlation + ',' + kProcess;
  };
  sql += "create table CUPTI_ACTIVITY_KIND_MEMCPY(start integer, end integer, " + stream_columns +
         ", bytes integer, copyKind integer, srcKind integer, dstKind integer);"
         "insert into CUPTI_ACTIVITY_KIND_MEMCPY values(135,250," +
         on_stream("13", "2") + ",4096,1,1,2);";
  sql += "create table CUPTI_ACTIVITY_KIND_KERNEL(start integer, end integer, " + stream_columns +
         ", shortName integer);"
         "insert into CUPTI_ACTIVITY_KIND_KERNEL values(255,290," +
         on_stream("14", "5") + ",8);";
  sql += "create table CUPTI_ACTIVITY_KIND_CUDA_EVENT(" + stream_columns +
         ", eventId integer);"
         "insert into CUPTI_ACTIVITY_KIND_CUDA_EVENT values(" +
         on_stream("13", "3") + ",9);";
  sql += "create table CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start integer, end integer, " +
         stream_columns +
         ", deprecatedSyncType integer, syncType integer, eventId integer);"
         "insert into CUPTI_ACTIVITY_KIND_SYNCHRONIZATION values(151,152," +
         on_stream("14", "4") + ",null,2,9), (205,295," + on_stream("4294967295", "6") +
         ",null,0,9);";
  sql +=
      "create table CUDA_GPU_MEMORY_USAGE_EVENTS(start integer, globalPid integer, deviceId "
      "integer, contextId integer,"
      "address integer, bytes integer, memKind integer, memoryOperationType integer, correlationId "
      "integer,"
      "streamId integer, localMemoryPoolAddress integer);"
      "insert into CUDA_GPU_MEMORY_USAGE_EVENTS values(315," +
      kProcess + ",0,1,4096,64,2,1,7,0,null), (105," + kProcess +
      ",0,1,4096,64,2,0,1,0,null), (106," + kProcess + ",0,1,8192,32,1,0,null,0,null), (107," +
      kProcess + ",0,1,9000,16,2,0,null,14,77), (108," + kProcess + ",0,1,9000,16,2,5,null,14,77);";
  sql +=
      "create table TARGET_INFO_CUDA_STREAM(streamId integer, processId integer, contextId "
      "integer, flag integer);"
      "insert into TARGET_INFO_CUDA_STREAM values(13,111,1,2), (14,111,1,1);";
  return sql;
}

model::Session exported() {
  const auto path = std::filesystem::path(::testing::TempDir()) /
                    ("details_" + std::to_string(::getpid()) + ".sqlite");
  {
    auto database = base::Database::create(path);
    const auto done = database->execute(export_sql());
    EXPECT_TRUE(done) << base::to_string(done.error());
  }
  auto session = kReader.read(path, {});
  std::filesystem::remove(path);
  EXPECT_TRUE(session);
  return session ? std::move(*session) : model::Session{};
}

TEST(NsysCallDetails, MemoryEventsHaveTheirCallsAndKinds) {
  const model::Session s = exported();
  ASSERT_EQ(s.memory_events.size(), 4u);
  const model::MemoryEvent& allocation = s.memory_events[0];
  EXPECT_EQ(allocation.at_ns, 105);
  EXPECT_EQ(allocation.bytes, 64u);
  EXPECT_EQ(allocation.kind, model::MemoryKind::kDevice);
  EXPECT_EQ(allocation.device, 0u);
  EXPECT_EQ(s.strings.view(s.launches.at(allocation.launch).name), "cudaMalloc_v3020");
  EXPECT_EQ(s.threads.at(allocation.thread).tid, 111u);
  EXPECT_EQ(s.memory_events[1].kind, model::MemoryKind::kPinned);
  EXPECT_EQ(s.memory_events[1].device, model::kNone);
  EXPECT_EQ(s.memory_events[1].thread, model::kNone);
  EXPECT_EQ(s.memory_events[2].pool, 77u);
  EXPECT_EQ(s.streams.at(s.memory_events[2].stream).id, 14u);
  EXPECT_EQ(s.memory_events[3].operation, model::MemoryOperation::kFree);
  EXPECT_EQ(s.strings.view(s.launches.at(s.memory_events[3].launch).name), "cudaFree_v3020");
  ASSERT_EQ(s.losses.size(), 1u);
  EXPECT_EQ(s.losses[0].kind.id(), "bad_rows");
  EXPECT_NE(s.losses[0].detail.find("memoryOperationType"), std::string::npos);
}

TEST(NsysCallDetails, EventsJoinStreamsAndThreads) {
  const model::Session s = exported();
  ASSERT_EQ(s.event_calls.size(), 3u);
  const auto call_of = [&](model::EventOperation operation) {
    for (const model::EventCall& call : s.event_calls)
      if (call.operation == operation)
        return call;
    return model::EventCall{};
  };
  const model::EventCall record = call_of(model::EventOperation::kRecord);
  const model::EventCall stream_wait = call_of(model::EventOperation::kStreamWait);
  const model::EventCall wait = call_of(model::EventOperation::kSynchronize);
  EXPECT_EQ(record.event, 9u);
  EXPECT_EQ(record.stream, s.copies.at(0).stream);
  EXPECT_EQ(s.strings.view(s.launches.at(record.launch).name), "cudaEventRecord_v3020");
  EXPECT_EQ(stream_wait.event, 9u);
  EXPECT_EQ(stream_wait.stream, s.kernels.at(0).stream);
  EXPECT_EQ(wait.event, 9u);
  EXPECT_EQ(s.strings.view(s.launches.at(wait.launch).name), "cudaEventSynchronize_v3020");
}

TEST(NsysCallDetails, CopiesAndStreamsHaveKinds) {
  const model::Session s = exported();
  const model::Copy& copy = s.copies.at(0);
  EXPECT_EQ(copy.source, model::MemoryKind::kPinned);
  EXPECT_EQ(copy.destination, model::MemoryKind::kDevice);
  EXPECT_EQ(s.streams.at(copy.stream).kind, model::StreamKind::kNonBlocking);
  EXPECT_EQ(s.streams.at(s.kernels.at(0).stream).kind, model::StreamKind::kBlocking);
}

}  // namespace call_details_test
}  // namespace rangescope::read::nsys_sqlite
