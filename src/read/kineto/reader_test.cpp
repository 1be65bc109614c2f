#include "read/kineto/reader.hpp"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <random>

#include "base/fs.hpp"
#include "base/source_dir.hpp"
#include "read/kineto/event.hpp"
#include "read/timeline.hpp"

namespace rangescope::read::kineto {
namespace reader_test {

/// A training step in small, as PyTorch 2.x writes it: an operator inside an operator, a kernel and
/// a copy, the backward pass on a thread of its own, a wait.
const std::string kStep = R"json({
  "schemaVersion": 1,
  "deviceProperties": [
    {"id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150000000000,
     "computeMajor": 9, "computeMinor": 0, "numSms": 132}
  ],
  "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8},
  "traceEvents": [
  {"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 10, "tid": 10, "ts": 1000.250, "dur": 50.5,
   "args": {"External id": 3, "Sequence number": 7, "Fwd thread id": 0, "Input Dims": [[4], [2, 3], []], "Ev Idx": 2}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::linear", "pid": 10, "tid": 10, "ts": 1000.250, "dur": 60,
   "args": {"External id": 2}},
  {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#4", "pid": 10, "tid": 10, "ts": 1000, "dur": 500,
   "args": {"External id": 1}},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 10, "tid": 10, "ts": 1010, "dur": 5,
   "args": {"External id": 3, "cbid": 211, "correlation": 90}},
  {"ph": "s", "id": 90, "pid": 10, "tid": 10, "ts": 1010, "cat": "ac2g", "name": "ac2g"},
  {"ph": "X", "cat": "kernel", "name": "void gemm<float, \"x\">(float*)",
                  "pid" : 0, "tid" : 7, "ts" : 1020, "dur" : 30.125, "args" : {
  "External id" : 3, "device" : 0, "context" : 1, "stream" : 7, "correlation" : 90, "registers per thread" : 32,
      "grid" : [ 5, 1, 1 ], "block" : [ 128, 1, 1 ], "est. achieved occupancy %" : nan
}
},
  {"ph": "X", "cat": "cpu_op", "name": "autograd::engine::evaluate_function: AddmmBackward0", "pid": 10, "tid": 11,
   "ts": 1200, "dur": 100, "args": {"External id": 5, "Sequence number": 7, "Fwd thread id": 1}},
  {"ph": "X", "cat": "cuda_driver", "name": "cuMemcpyAsync", "pid": 10, "tid": 11, "ts": 1210, "dur": 5,
   "args": {"correlation": 91}},
  {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 0, "tid": 7, "ts": 1220, "dur": 10,
   "args": {"device": 0, "context": 1, "stream": 7, "correlation": 91, "bytes": 4096}},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 10, "tid": 10, "ts": 1400, "dur": 20,
   "args": {"cbid": 165, "correlation": 92}},
  {"ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#4", "pid": 0, "tid": 7, "ts": 1020, "dur": 210,
   "args": {"External id": 1}},
  {"ph": "X", "cat": "python_function", "name": "nn.Module: Linear_0", "pid": 10, "tid": 10, "ts": 1000.125, "dur": 65,
   "args": {"Python id": 1, "Python module id": 0}},
  {"ph": "i", "s": "t", "name": "[memory]", "pid": 10, "tid": 10, "ts": 1005, "cat": "cpu_instant_event",
   "args": {"Bytes": -512, "Device Type": 1, "Device Id": 0}},
  {"ph": "X", "cat": "mtia_ccp_events", "name": "x", "pid": 10, "tid": 10, "ts": 1, "dur": 1},
  {"name": "process_name", "ph": "M", "ts": 0, "pid": 10, "tid": 0, "args": {"name": "python3"}},
  {"name": "thread_name", "ph": "M", "ts": 0, "pid": 10, "tid": 11, "args": {"name": "thread 11 (pt_autograd_0)"}},
  {"ph": "X", "cat": "Trace", "ts": 900, "dur": 700, "pid": "Spans", "tid": "PyTorch Profiler",
   "name": "PyTorch Profiler (0)", "args": {"Op count": 0}}
  ],
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1735632360000000000
})json";

std::string show(const base::Result<model::Session>& session) {
  if (!session)
    return base::to_string(session.error());
  const model::Session& s = *session;
  const auto text = [&](model::StringId id) { return std::string(s.strings.view(id)); };
  const auto thread = [&](std::uint32_t i) {
    return std::to_string(s.processes[s.threads[i].process].pid) + '/' +
           std::to_string(s.threads[i].tid);
  };
  const auto launch = [&](std::uint32_t i) {
    return i == model::kNone
               ? std::string(" by no call")
               : " by " + text(s.launches[i].name) + '@' + std::to_string(s.launches[i].start_ns) +
                     " on " + thread(s.launches[i].thread);
  };
  std::string out = "span " + std::to_string(s.begin_ns) + '-' + std::to_string(s.end_ns) + '\n';
  for (const auto& p : s.processes)
    out += "process " + std::to_string(p.pid) + ' ' + text(p.name) + " rank " +
           (p.rank == model::kNone ? "-" : std::to_string(p.rank)) + '\n';
  for (const auto& r : s.ranges) {
    out += text(s.domains[r.domain].name) + '@' + text(r.name) + ' ' + std::to_string(r.start_ns) +
           '-' + std::to_string(r.end_ns) + " on " + thread(r.thread);
    if (r.attributes != model::kNone) {
      const model::Attributes& with = s.attributes[r.attributes];
      if (with.text != 0)
        out += ' ' + text(with.text);
      if (with.payload_type != model::PayloadType::kAbsent)
        out += " sequence " + std::to_string(with.payload_i64);
    }
    out += '\n';
  }
  for (const auto& k : s.kernels)
    out += "kernel " + text(s.kernel_names[k.name].demangled) + ' ' + std::to_string(k.start_ns) +
           '-' + std::to_string(k.end_ns) + " grid " +
           std::to_string(s.kernel_shapes[k.shape].grid[0]) + " stream " +
           std::to_string(s.streams[k.stream].id) + launch(k.launch) + '\n';
  for (const auto& c : s.copies)
    out += "copy " + std::to_string(static_cast<int>(c.kind)) + ' ' + std::to_string(c.bytes) +
           " B " + std::to_string(c.start_ns) + launch(c.launch) + '\n';
  for (const auto& w : s.synchronizations)
    out += "wait " + std::to_string(static_cast<int>(w.kind)) + ' ' + std::to_string(w.start_ns) +
           launch(w.launch) + '\n';
  for (const auto& m : s.marks)
    out += "mark " + text(m.name) + ' ' + std::to_string(s.attributes[m.attributes].payload_i64) +
           '\n';
  for (const auto& l : s.losses)
    out += "loss " + std::string(l.kind.id()) + ' ' + std::to_string(l.count) + '\n';
  return out;
}

const std::string kExpected =
    "span 900000-1600000\n"
    "process 10 python3 rank 3\n"
    "@ProfilerStep#4 1000000-1500000 on 10/10\n"
    "nn.Module@Linear_0 1000125-1065125 on 10/10\n"
    "@aten::linear 1000250-1060250 on 10/10\n"
    "@aten::addmm 1000250-1050750 on 10/10 [[4], [2, 3], []] sequence 7\n"
    "@autograd::engine::evaluate_function: AddmmBackward0 1200000-1300000 on 10/11 sequence 7\n"
    "gpu_annotation@ProfilerStep#4 1020000-1230000 on 10/7\n"
    "kernel void gemm<float, \"x\">(float*) 1020000-1050125 grid 5 stream 7 by "
    "cudaLaunchKernel@1010000 on 10/10\n"
    "copy 1 4096 B 1220000 by cuMemcpyAsync@1210000 on 10/11\n"
    "wait 4 1400000 by cudaDeviceSynchronize@1400000 on 10/10\n"
    "mark [memory] -512\n"
    "loss unread_events 1\n";

TEST(Kineto, AStepOfTraining) {
  const auto session = read_text(kStep, "x.json");
  EXPECT_EQ(show(session), kExpected);
  EXPECT_EQ(session->devices.at(0).sm_count, 132u);
  EXPECT_EQ(session->strings.view(session->threads.at(1).name), "thread 11 (pt_autograd_0)");
  EXPECT_EQ(session->clock.anchor_unix_ns, 1735632360000000000 + 900000);
  EXPECT_EQ(session->kernel_shapes.at(0).registers_per_thread, 32u);
}

TEST(Kineto, GzipAndPlainFilesAreTheSame) {
  const std::string path = ::testing::TempDir() + "/kineto_" + std::to_string(::getpid()) + ".json";
  ASSERT_TRUE(base::write_file(path, kStep));
  gzFile gz = ::gzopen((path + ".gz").c_str(), "wb");
  ASSERT_NE(gz, nullptr);
  ::gzwrite(gz, kStep.data(), static_cast<unsigned>(kStep.size()));
  ::gzclose(gz);
  for (const std::string& file : {path, path + ".gz"}) {
    const std::string head = *base::read_head(file, 4096);
    EXPECT_TRUE(kReader.sniff(std::as_bytes(std::span(head)), file)) << file;
    EXPECT_EQ(show(kReader.read(file, {})), kExpected) << file;
  }
  const std::string packed = *base::read_file(path + ".gz");
  ASSERT_TRUE(base::write_file(path + ".gz", packed.substr(0, packed.size() * 3 / 4)));
  const auto cut = kReader.read(path + ".gz", {});
  ASSERT_TRUE(cut) << base::to_string(cut.error());
  EXPECT_TRUE(std::any_of(
      cut->losses.begin(), cut->losses.end(), [](const auto& l) { return l.kind == "torn_tail"; }));
  std::filesystem::remove(path);
  std::filesystem::remove(path + ".gz");
}

/// 300 KB of a gz that stand for 300 MB.
TEST(Kineto, WhatAGzipUnpacksToIsBounded) {
  const std::string path =
      ::testing::TempDir() + "/kineto_bomb_" + std::to_string(::getpid()) + ".json.gz";
  const std::string blanks(std::size_t{1} << 20, ' ');
  gzFile gz = ::gzopen(path.c_str(), "wb");
  ASSERT_NE(gz, nullptr);
  ::gzwrite(gz, "{\"traceEvents\": [", 17);
  for (int piece = 0; piece < 300; ++piece)
    ::gzwrite(gz, blanks.data(), static_cast<unsigned>(blanks.size()));
  ::gzclose(gz);
  const auto read = kReader.read(path, {});
  std::filesystem::remove(path);
  ASSERT_FALSE(read.has_value());
  EXPECT_NE(read.error().what.find("unpacks to more than 268435456 bytes"), std::string::npos)
      << read.error().what;
}

TEST(Kineto, ATraceThatEndsEarlyKeepsWhatCameBefore) {
  for (std::size_t length = 0; length < kStep.size(); length += 7) {
    const auto session = read_text(std::string_view(kStep).substr(0, length), "x.json");
    if (!session) {
      EXPECT_EQ(session.error().code, base::Code::kBadData);
      EXPECT_FALSE(session.error().where.empty());
      continue;
    }
    EXPECT_EQ(session->losses.back().kind.id(), "torn_tail") << length;
    EXPECT_TRUE(session->losses.back().detail.starts_with("the trace ends early: x.json: byte "));
  }
}

TEST(Kineto, AlteredBytesNeverCrash) {
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    std::string bad = kStep;
    for (int i = 0; i <= round % 4; ++i)
      bad[random() % bad.size()] = static_cast<char>(random());
    const auto session = read_text(bad, "x.json");
    if (!session) {
      EXPECT_FALSE(session.error().what.empty());
    }
  }
}

std::string trace(const std::string& events) {
  return "{\"traceEvents\": [" + events + "]}";
}

TEST(Kineto, WorkWithoutACallBelongsToItsOperator) {
  const std::string text = trace(
      R"({"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":1,"ts":10.5,"dur":5,"args":{"External id":3}},)"
      R"({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":30,"dur":4,)"
      R"("args":{"External id":3,"correlation":8}})");
  EXPECT_EQ(show(read_text(text, "x")),
            "span 10500-34000\nprocess 1  rank -\n@aten::add 10500-15500 on 1/1\n"
            "kernel k 30000-34000 grid 0 stream 7 by @10500 on 1/1\nloss placed_by_operator 1\n");
}

TEST(Kineto, WorkWithoutADurationIsLeftOut) {
  const auto kernel = [](const std::string& duration) {
    return R"(,{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":30)" + duration + '}';
  };
  const std::string range =
      R"({"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":10,"dur":9.5})";
  for (const char* bad :
       {R"(,"dur":NaN)", R"(,"dur":1e30)", R"(,"dur":null)", R"(,"dur":"x")", ""}) {
    const auto session = read_text(trace(range + kernel(bad)), "x");
    EXPECT_EQ(show(session),
              "span 10000-19500\nprocess 1  rank -\n@a 10000-19500 on 1/1\nloss bad_events 1\n")
        << bad;
    EXPECT_EQ(session->losses.at(0).detail,
              "events whose duration is missing, negative or no number were left out");
    EXPECT_TRUE(session->unrecorded.kernels) << bad;
  }
  const auto backward = read_text(trace(range + kernel(R"(,"dur":-4)")), "x");
  EXPECT_EQ(show(backward),
            "span 10000-19500\nprocess 1  rank -\n@a 10000-19500 on 1/1\nloss impossible_time 1\n");
  EXPECT_TRUE(backward->unrecorded.kernels);
  // A range that was open at the end has none, and is no loss; a wait without one is not of 0 ns.
  EXPECT_EQ(show(read_text(
                trace(range +
                      R"(,{"ph":"X","cat":"cpu_op","name":"b","pid":1,"tid":1,"ts":12})"
                      R"(,{"ph":"X","cat":"cpu_op","name":"c","pid":1,"tid":1,"ts":13,"dur":1e30})"
                      R"(,{"ph":"X","cat":"cuda_sync","name":"s","pid":1,"tid":1,"ts":14})"),
                "x")),
            "span 10000-19500\nprocess 1  rank -\n@a 10000-19500 on 1/1\n@b 12000-" +
                std::to_string(model::kOpen) + " on 1/1\nloss bad_events 2\n");
}

TEST(Kineto, EndsOfWholeMicrosecondsLieInWhatHoldsThem) {
  // aten::b was cut to whole microseconds and seems to end one behind aten::a
  const std::string text =
      trace(R"({"ph":"X","cat":"Operator","name":"aten::b","pid":1,"tid":1,"ts":12,"dur":9},)"
            R"({"ph":"X","cat":"Operator","name":"aten::a","pid":1,"tid":1,"ts":10,"dur":10})");
  EXPECT_EQ(show(read_text(text, "x")),
            "span 10000-20000\nprocess 1  rank -\n@aten::a 10000-20000 on 1/1\n@aten::b "
            "12000-20000 on 1/1\n");
}

TEST(Kineto, CollectivesSayTheirSize) {
  const auto session = read_text(
      trace(
          R"({"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":1,"ts":10.5,"dur":5,"args":{)"
          R"("Collective name":"allreduce","In msg nelems":1024,"dtype":"Float","Group size":8,)"
          R"("Process Group Description":"default_pg"}})"),
      "x");
  EXPECT_NE(show(session).find("allreduce of 1024 Float over 8 ranks (default_pg)"),
            std::string::npos)
      << show(session);
  EXPECT_EQ(session->attributes.at(0).payload_u64, 4096u);
}

/// Of one rank of two, whose clocks and ids are its own: an all-reduce of a gradient, a wait, and a
/// reduce-scatter.
std::string rank_of_two(int rank, int kernel_us) {
  const auto comms = [&](int at,
                         const std::string& name,
                         int in,
                         int out,
                         int kernel,
                         int correlation) {
    const std::string pid = std::to_string(100 + rank), id = std::to_string(correlation);
    return R"({"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":)" + pid +
           R"(,"tid":7,"ts":)" + std::to_string(at) + R"(.5,"dur":40,"args":{"Collective name":")" +
           name + R"(","In msg nelems":)" + std::to_string(in) + R"(,"Out msg nelems":)" +
           std::to_string(out) +
           R"(,"dtype":"Float","Group size":2,"Process Group Name":"0","Process Group Ranks":"[0, 1]",)"
           R"("Process Group Description":"default_pg"}},{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernelExC",)"
           R"("pid":)" +
           pid + R"(,"tid":7,"ts":)" + std::to_string(at + 10) +
           R"(,"dur":5,"args":{"correlation":)" + id +
           R"(}},{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce_Sum_f32_RING_LL","pid":0,)"
           R"("tid":40,"ts":)" +
           std::to_string(at + 20) + R"(,"dur":)" + std::to_string(kernel) +
           R"(,"args":{"device":0,"context":1,"stream":40,"correlation":)" + id + "}}";
  };
  return R"({"distributedInfo": {"backend": "nccl", "rank": )" + std::to_string(rank) +
         R"(, "world_size": 2, "pg_count": 1}, "baseTimeNanoseconds": 1790857026000000000, "traceEvents": [)" +
         comms(1000 + rank, "allreduce", 1024, 1024, kernel_us, 5 + rank) + "," +
         R"({"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":7,"ts":1500,"dur":5,"args":{)"
         R"("Collective name":"wait","In msg nelems":0,"dtype":"Byte","Group size":1}},)" +
         comms(2000 + rank, "_reduce_scatter_base", 2048, 1024, 30, 8) + "]}";
}

TEST(Kineto, CollectivesOfARankAreCallsOfNccl) {
  const auto session = read_text(rank_of_two(1, 100), "rank1.json");
  ASSERT_TRUE(session);
  EXPECT_EQ(session->processes.at(0).rank, 1U);
  EXPECT_EQ(session->processes.at(0).world, 2U);
  std::string calls;
  for (const model::PayloadField& field : session->payload_fields) {
    const model::Range& range = session->ranges.at(field.range);
    ASSERT_EQ(session->strings.view(session->domains[range.domain].name), "NCCL");
    const std::string_view name = session->strings.view(field.name);
    if (name == "Message size [bytes]" || name == "No. of ranks")
      calls += std::string(session->strings.view(range.name)) + ' ' + std::string(name) + ' ' +
               std::to_string(field.bits) + '\n';
  }
  EXPECT_EQ(calls,
            "ncclAllReduce No. of ranks 2\nncclAllReduce Message size [bytes] 4096\n"
            "ncclReduceScatter No. of ranks 2\nncclReduceScatter Message size [bytes] 4096\n");
  const auto other = read_text(rank_of_two(0, 300), "rank0.json");
  ASSERT_TRUE(other);
  ASSERT_FALSE(other->payload_fields.empty());
  EXPECT_EQ(other->payload_fields[0].bits, session->payload_fields[0].bits);  // one communicator
}

TEST(Kineto, NegativeIdsAreIds) {
  const auto session = read_text(
      trace(
          R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":7,"tid":-1811237120,"ts":10.5,"dur":5,)"
          R"("args":{"correlation":8}},{"name":"thread_name","ph":"M","ts":0,"pid":7,"tid":-1811237120,)"
          R"("args":{"name":"driver"}})"),
      "x");
  ASSERT_TRUE(session);
  EXPECT_EQ(session->threads.at(0).tid, 2483730176u);
  EXPECT_EQ(session->strings.view(session->threads.at(0).name), "driver");
  EXPECT_TRUE(session->losses.empty());
}

TEST(Kineto, TheProfilersOwnEventsStandOnATimelineOfTheirOwn) {
  const std::string text = trace(
      R"({"ph":"X","cat":"cpu_op","name":"aten::a","pid":1,"tid":1,"ts":10.5,"dur":5},)"
      R"({"ph":"X","cat":"overhead","name":"Activity Buffer Request","pid":-1,"tid":0,"ts":11,"dur":2})");
  EXPECT_EQ(show(read_text(text, "x")),
            "span 10500-15500\nprocess 1  rank -\n@aten::a 10500-15500 on 1/1\n"
            "overhead@Activity Buffer Request 11000-13000 on 1/0\n");
}

TEST(Kineto, StreamsAreNamedInWordsByPyTorch18) {
  const std::string text = trace(
      R"({"ph":"X","cat":"Runtime","name":"cudaLaunchKernel","pid":9,"tid":"9","ts":10,"dur":5,)"
      R"("args":{"correlation":334}},)"
      R"({"ph":"X","cat":"Kernel","name":"k","pid":0,"tid":"stream 7","ts":20,"dur":32,"args":{"device":0,)"
      R"("context":1,"stream":7,"correlation":334}},)"
      R"({"ph":"X","cat":"Memcpy","name":"Memcpy HtoD","pid":0,"tid":"stream 7 ","ts":60,)"
      R"("dur":10,"args":{"stream":7,"correlation":335}},)"
      R"({"ph":"X","cat":"kernel","name":"k","pid":"gpu","tid":"compute","ts":80,"dur":1})");
  EXPECT_EQ(show(read_text(text, "x")),
            "span 10000-70000\nprocess 9  rank -\n"
            "kernel k 20000-52000 grid 0 stream 7 by cudaLaunchKernel@10000 on 9/9\n"
            "copy 1 0 B 60000 by no call\nloss bad_events 1\n");
  const auto lost = read_text(
      trace(R"({"ph":"X","cat":"Runtime","name":"cudaFree","pid":9,"tid":9,"ts":1,"dur":5},)"
            R"({"ph":"X","cat":"kernel","name":"k","tid":"compute","ts":80,"dur":1})"),
      "x");
  ASSERT_TRUE(lost);
  EXPECT_TRUE(lost->unrecorded.kernels) << "unknown, and not none";
}

/// Of each range, what of it the profiler took.
std::string overhead(const std::string& events) {
  const auto session = read_text(trace(events), "x");
  std::string out;
  for (const model::UnlistedInside& of : session->unlisted_inside)
    out += std::string(session->strings.view(session->ranges[of.range].name)) + ' ' +
           std::to_string(of.recorded_ns) + '\n';
  return out;
}

TEST(Kineto, TheProfilersOwnTimeIsTakenOutOfTheOperatorsAroundIt) {
  EXPECT_EQ(
      overhead(
          R"({"ph":"X","cat":"user_annotation","name":"step","pid":1,"tid":1,"ts":1,"dur":99},)"
          R"({"ph":"X","cat":"cpu_op","name":"aten::a","pid":1,"tid":1,"ts":10.5,"dur":50},)"
          R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":12,"dur":40},)"
          R"({"ph":"X","cat":"overhead","name":"Activity Buffer Request","pid":-1,"tid":0,"ts":14,"dur":30},)"
          R"({"ph":"X","cat":"overhead","name":"Lazy Function Loading","pid":-1,"tid":0,"ts":45,"dur":5},)"
          R"({"ph":"X","cat":"overhead","name":"Instrumentation","pid":-1,"tid":0,"ts":200,"dur":30})"),
      "aten::a 30000\n");
}

TEST(Kineto, CuptiAsksForABufferBeforeTheCallThatNeedsIt) {
  EXPECT_EQ(
      overhead(
          R"({"ph":"X","cat":"user_annotation","name":"backward","pid":1,"tid":1,"ts":1,"dur":99},)"
          R"({"ph":"X","cat":"cpu_op","name":"autograd::engine::evaluate_function: Mm","pid":1,"tid":2,"ts":20,)"
          R"("dur":50},{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":2,"ts":21,"dur":48},)"
          R"({"ph":"X","cat":"overhead","name":"Activity Buffer Request","pid":-1,"tid":0,"ts":24,"dur":30},)"
          R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":2,"ts":60,"dur":4},)"
          R"({"ph":"X","cat":"user_annotation","name":"loader","pid":1,"tid":3,"ts":1,"dur":99},)"
          R"({"ph":"X","cat":"cuda_runtime","name":"cudaMemcpyAsync","pid":1,"tid":3,"ts":30,"dur":4},)"
          R"({"ph":"X","cat":"cuda_runtime","name":"cudaMemcpyAsync","pid":1,"tid":3,"ts":55,"dur":4})"),
      "backward 30000\naten::mm 30000\n");
}

TEST(Kineto, PythonThreadsThatOnlyWaitAreLeftOut) {
  const auto session = read_text(
      trace(
          R"({"ph":"X","cat":"cpu_op","name":"aten::a","pid":1,"tid":1,"ts":10.5,"dur":50},)"
          R"({"ph":"X","cat":"python_function","name":"threading.py(1016): _bootstrap","pid":1,"tid":2,"ts":0,)"
          R"("dur":100},{"ph":"X","cat":"python_function","name":"connection.py(374): _recv","pid":1,"tid":2,"ts":1,)"
          R"("dur":98},{"ph":"X","cat":"python_function","name":"data.py(4): parse","pid":1,"tid":3,"ts":0,)"
          R"("dur":100},{"ph":"X","cat":"python_function","name":"threading.py(320): wait","pid":1,"tid":3,"ts":0,)"
          R"("dur":40})"),
      "x");
  EXPECT_EQ(
      show(session),
      "span 0-100000\nprocess 1  rank -\n@aten::a 10500-60500 on 1/1\n"
      "python@data.py(4): parse 0-100000 on 1/3\npython@threading.py(320): wait 0-40000 on 1/3\n"
      "loss unread_events 1\n");
}

TEST(Kineto, TheProfilerBeforeKinetoNamesNoCategory) {
  const std::string text =
      R"([{"name": "aten::mm", "ph": "X", "ts": 136.5, "dur": 184.5, "tid": 1, "pid": "CPU functions", "args": {}}, )"
      R"({"name": "aten::mm", "ph": "s", "ts": 136.5, "tid": 1, "pid": "CPU functions", )"
      R"("id": 0, "cat": "cpu_to_cuda"}, )"
      R"({"name": "aten::mm", "ph": "X", "ts": 140, "dur": 9, "tid": 0, "pid": "CUDA functions", "args": {}}])";
  EXPECT_EQ(show(read_text(text, "x")),
            "span 136500-321000\nprocess 0  rank -\n@aten::mm 136500-321000 on 0/1\n"
            "gpu_annotation@aten::mm 140000-149000 on 0/0\n");
}

TEST(Kineto, TheJobIsNamed) {
  const auto source = [](const std::string& info) {
    return read_text(
               "{\"distributedInfo\": " + info + ", " +
                   trace(R"({"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":1})")
                       .substr(1),
               "x")
        ->sources.at(0)
        .tool;
  };
  EXPECT_EQ(
      source(
          R"({"backend": "nccl", "rank": 1, "world_size": 2, "pg_count": 3, "pg_config": [{"ranks": [0]}]})"),
      "PyTorch profiler, rank 1 of 2, 3 process groups, nccl");
  EXPECT_EQ(source(R"({"rank": 0})"), "PyTorch profiler");
  EXPECT_EQ(source("[1]"), "PyTorch profiler");
}

TEST(Kineto, EventsMayStandBehindMuchElse) {
  const std::string path =
      ::testing::TempDir() + "/kineto_late_" + std::to_string(::getpid()) + ".json";
  const std::string text =
      "{\"metadata\": \"" + std::string(30000, 'x') + "\", " + kStep.substr(kStep.find('{') + 1);
  ASSERT_TRUE(base::write_file(path, text));
  const std::string head = text.substr(0, 4096);
  EXPECT_TRUE(kReader.sniff(std::as_bytes(std::span(head)), path));
  EXPECT_EQ(show(kReader.read(path, {})), kExpected);
  ASSERT_TRUE(base::write_file(path, "{\"metadata\": \"" + std::string(30000, 'x') + "\"}"));
  EXPECT_FALSE(kReader.sniff(std::as_bytes(std::span(head)), path));
  std::filesystem::remove(path);
}

TEST(Kineto, OtherJsonIsNamed) {
  EXPECT_NE(
      show(
          read_text(
              R"({"traceEvents":[{"ph":"X","cat":"jax","name":"a","pid":1,"tid":1,"ts":1,"dur":1}]})",
              "x"))
          .find("without operators, CUDA calls or kernels of PyTorch"),
      std::string::npos);
  EXPECT_NE(show(read_text(R"({"traceEvents":[]})", "x")).find("a trace without events"),
            std::string::npos);
  EXPECT_NE(show(read_text("", "x")).find("it is empty"), std::string::npos);
  const auto sniff = [](std::string_view head) {
    return kReader.sniff(std::as_bytes(std::span(head)), "x");
  };
  EXPECT_FALSE(sniff(R"({"schema": "rangescope.report/1"})"));
  EXPECT_FALSE(sniff("SQLite format 3"));
  EXPECT_TRUE(sniff("\n [ {\"ph\": \"X\", \"ts\": 1}"));
}

TEST(Kineto, WorkOfImpossibleTimesIsALoss) {
  const auto session =
      kReader.read(std::string(base::source_dir) + "/tests/golden/kineto/impossible.json", {});
  ASSERT_TRUE(session);
  EXPECT_EQ(session->kernels.size(), 10u);
  std::int64_t ns = 0;
  for (const model::Kernel& kernel : session->kernels)
    ns += kernel.end_ns - kernel.start_ns;
  EXPECT_EQ(ns, 400'000);
  ASSERT_EQ(session->losses.size(), 3u);
  for (const model::Loss& loss : session->losses) {
    EXPECT_EQ(loss.kind.id(), "impossible_time");
    EXPECT_EQ(loss.count, 1u);
  }
}

TEST(Kineto, AStreamThatWaitsForAnEventNamesTheCallThatRecordedIt) {
  const std::string text = trace(
      R"({"ph":"X","cat":"cuda_runtime","name":"cudaEventRecord","pid":1,"tid":1,"ts":10,"dur":1,)"
      R"("args":{"correlation":5}},)"
      R"({"ph":"X","cat":"cuda_runtime","name":"cudaStreamWaitEvent","pid":1,"tid":1,"ts":12,"dur":1,)"
      R"("args":{"correlation":6}},)"
      R"({"ph":"X","cat":"cuda_sync","name":"Stream Wait Event","pid":0,"tid":20,"ts":12,"dur":1,"args":{)"
      R"("cuda_sync_kind":"Stream Wait Event","stream":20,"correlation":6,"device":0,"context":1,)"
      R"("wait_on_stream":7,"wait_on_cuda_event_record_corr_id":5,"wait_on_cuda_event_id":3}},)"
      R"({"ph":"X","cat":"cuda_sync","name":"Event Sync","pid":0,"tid":20,"ts":15,"dur":1,"args":{)"
      R"("cuda_sync_kind":"Event Sync","stream":-1,"correlation":8,"device":0,"context":1,)"
      R"("wait_on_stream":-1,"wait_on_cuda_event_record_corr_id":-1,"wait_on_cuda_event_id":3}})");
  const auto session = read_text(text, "x");
  ASSERT_TRUE(session);
  ASSERT_EQ(session->event_calls.size(), 2u);
  const auto stream = [&](std::size_t call) {
    return session->streams.at(session->event_calls[call].stream).id;
  };
  const auto name = [&](std::size_t call) {
    return session->strings.view(session->launches.at(session->event_calls[call].launch).name);
  };
  EXPECT_EQ(session->event_calls[0].operation, model::EventOperation::kRecord);
  EXPECT_EQ(name(0), "cudaEventRecord");
  EXPECT_EQ(stream(0), 7u);
  EXPECT_EQ(session->event_calls[1].operation, model::EventOperation::kStreamWait);
  EXPECT_EQ(name(1), "cudaStreamWaitEvent");
  EXPECT_EQ(stream(1), 20u);
  EXPECT_EQ(session->event_calls[1].event, session->event_calls[0].event);
}

TEST(Kineto, CopiesNameTheirMemory) {
  const CopyMemory memory = copy_memory("Memcpy HtoD (Pageable -> Device)");
  EXPECT_EQ(memory.source, model::MemoryKind::kPageable);
  EXPECT_EQ(memory.destination, model::MemoryKind::kDevice);
  EXPECT_EQ(copy_memory("Memcpy DtoH (Device -> Pinned)").destination, model::MemoryKind::kPinned);
  EXPECT_EQ(copy_memory("MemcpyH2D").source, model::MemoryKind::kUnknown);
}

TEST(Kineto, TimesAreExact) {
  bool fraction = false;
  EXPECT_EQ(microseconds("1712195495520883.123", fraction), 1712195495520883123);
  EXPECT_TRUE(fraction);
  EXPECT_EQ(microseconds("1712195495520883.5", fraction), 1712195495520883500);
  EXPECT_EQ(microseconds("12", fraction), 12000);
  EXPECT_EQ(microseconds("-1.5", fraction), -1500);
  EXPECT_EQ(microseconds("1.7e3", fraction), 1700000);
  EXPECT_EQ(microseconds("9223372036854775807", fraction), std::nullopt);
  EXPECT_EQ(microseconds("abc", fraction), std::nullopt);
}

}  // namespace reader_test
}  // namespace rangescope::read::kineto
