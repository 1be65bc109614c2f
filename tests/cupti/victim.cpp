// What the stand-in driver is driven with: every kind of GPU work that the collector records,
// inside ranges. One word of argument chooses; each scene's truth stands in the test.
#include <cuda.h>
#include <cudaProfiler.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <nvtx3/nvToolsExt.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

extern "C" CUresult cuCtxCreate_v2(CUcontext*, unsigned, CUdevice);

namespace {

constexpr char kGemm[] = "_Z4gemmPKfS0_Pfi";
constexpr int kChildHangs = 71;  // an exit code
constexpr char kReduce[] = "_ZN2my6reduceILi4EEEvPf";

CUstream stream(std::uintptr_t id) {
  return reinterpret_cast<CUstream>(id);
}

void launch(const char* name,
            std::uint64_t duration_ns,
            CUstream on = nullptr,
            unsigned grid = 16) {
  void* parameters[] = {&duration_ns};
  cuLaunchKernel(reinterpret_cast<CUfunction>(const_cast<char*>(name)),
                 grid,
                 1,
                 1,
                 128,
                 1,
                 1,
                 0,
                 on,
                 parameters,
                 nullptr);
}

// Waits for a child for at most 20 s, and kills it then.
bool ends(pid_t child) {
  for (int turn = 0; turn < 200; ++turn) {
    if (waitpid(child, nullptr, WNOHANG) == child)
      return true;
    usleep(100000);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return false;
}

void start() {
  cuInit(0);
  CUcontext context = nullptr;
  cuCtxCreate_v2(&context, 0, 0);
}

void zoo() {
  launch(kGemm, 5000);
  for (int step = 0; step < 3; ++step) {
    nvtxRangePushA("step");
    nvtxRangePushA("layer");
    launch(kGemm, 2000, stream(13));
    launch(kReduce, 1000, stream(13), 1);
    nvtxRangePop();
    cuCtxSynchronize();
    nvtxRangePop();
  }
  nvtxRangePushA("copies");
  cuMemcpyHtoDAsync_v2(0, nullptr, 4096, nullptr);
  cuMemsetD8Async(0, 0, 64, nullptr);
  nvtxRangePop();
  nvtxRangePushA("main");
  std::thread([] {
    nvtxRangePushA("worker");
    launch(kGemm, 3000, stream(14));
    nvtxRangePop();
  }).join();
  nvtxRangePop();
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  nvtxRangePushA("graph_capture");
  cuStreamBeginCapture_v2(stream(13), CU_STREAM_CAPTURE_MODE_GLOBAL);
  nvtxRangePushA("captured_layer");
  launch(kGemm, 2000, stream(13));
  nvtxRangePop();
  launch(kReduce, 1000, stream(13));
  cuStreamEndCapture(stream(13), &graph);
  cuGraphInstantiateWithFlags(&executable, graph, 0);
  nvtxRangePop();
  for (int i = 0; i < 4; ++i) {
    nvtxRangePushA("graph_replay");
    cuGraphLaunch(executable, stream(13));
    nvtxRangePop();
  }
  cuCtxSynchronize();
}

void decode(const char* first = kGemm, useconds_t pause_us = 2000) {
  nvtxRangePushA("decode");
  launch(first, 2000, stream(13), 16);
  launch(kReduce, 1000, stream(13), 1);
  nvtxRangePop();
  usleep(pause_us);  // time for the hardware to be programmed
}

// A loop of ranges whose counters are collected.
void counted(const std::string& scene, int times) {
  for (int i = 0; i < times; ++i) {
    if (scene == "decode" || scene == "aside")
      decode();
    if (scene == "quick")
      decode(kGemm, 0);
    if (scene == "nccl")
      decode(i < 20 ? kGemm : "_Z24ncclDevKernel_AllReduce_v");
    if (scene == "steps") {  // of one, two and three kernels in turn
      nvtxRangePushA("step");
      for (int kernel = 0; kernel <= i % 3; ++kernel)
        launch(kGemm, 10000, stream(13));
      cuCtxSynchronize();
      nvtxRangePop();
      usleep(200);
    }
    if (scene == "changing")
      decode(i % 5 == 4 ? kReduce : kGemm);
    if (scene == "sized") {  // every other one has half the blocks
      nvtxEventAttributes_t attributes = {};
      attributes.version = NVTX_VERSION;
      attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
      attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
      attributes.message.ascii = "sized";
      attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
      attributes.payload.ullValue = i % 2 == 0 ? 2 : 4;
      nvtxRangePushEx(&attributes);
      launch(kGemm, 1000, stream(13), static_cast<unsigned>(attributes.payload.ullValue));
      nvtxRangePop();
      usleep(2000);
    }
    if (scene == "nested") {
      nvtxRangePushA("step");
      launch(kGemm, 1000, stream(13), 3);
      decode();
      nvtxRangePop();
      usleep(2000);
    }
    if (scene == "stops_coming" && i < 12)
      decode();
    if (scene == "stops_coming" && i >= 12) {
      nvtxRangePushA("other");
      launch(kGemm, 1000, stream(13), 1);
      nvtxRangePop();
      usleep(20000);
    }
    if (scene == "late") {  // a range that comes when the first has everything
      if (i < 20)
        decode();
      if (i == 20)
        usleep(300000);
      if (i >= 20) {
        nvtxRangePushA("eval");
        launch(kReduce, 1000, stream(13), 7);
        nvtxRangePop();
        usleep(2000);
      }
    }
  }
}

void counted_graph(int times) {
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  cuStreamBeginCapture_v2(stream(13), CU_STREAM_CAPTURE_MODE_GLOBAL);
  launch(kGemm, 2000, stream(13));
  launch(kReduce, 1000, stream(13));
  cuStreamEndCapture(stream(13), &graph);
  cuGraphInstantiateWithFlags(&executable, graph, 0);
  for (int i = 0; i < times; ++i) {
    nvtxRangePushA("replay");
    cuGraphLaunch(executable, stream(13));
    nvtxRangePop();
    usleep(2000);
  }
}

// The same range is captured into graphs now and then; 7: a capture was broken.
int captured(int times) {
  int broken = 0;
  for (int i = 0; i < times; ++i) {
    decode();
    CUgraph graph = nullptr;
    if (i % 3 == 0) {
      cuStreamBeginCapture_v2(stream(13), CU_STREAM_CAPTURE_MODE_GLOBAL);
      for (int k = 0; k < 4; ++k)
        decode();
      broken += cuStreamEndCapture(stream(13), &graph) != CUDA_SUCCESS ? 1 : 0;
    }
    if (i % 3 == 1) {  // begins within the range and outlasts it
      nvtxRangePushA("decode");
      launch(kGemm, 2000, stream(13), 16);
      launch(kReduce, 1000, stream(13), 1);
      cuStreamBeginCapture_v2(stream(14), CU_STREAM_CAPTURE_MODE_GLOBAL);
      nvtxRangePop();
      usleep(3000);
      broken += cuStreamEndCapture(stream(14), &graph) != CUDA_SUCCESS ? 1 : 0;
    }
  }
  return broken > 0 ? 7 : 0;
}

/// The sampler's file: who counts holds a lock on it. Only other processes see that, so a child
/// looks.
std::string aside() {
  return std::string(std::getenv("RANGESCOPE_DIR")) + "/samples";
}
void make_aside() {
  mkdir(aside().c_str(), 0700);
  const int file = open((aside() + "/aside").c_str(), O_CREAT | O_WRONLY, 0600);
  if (file < 0 || write(file, "1", 1) != 1)
    _exit(8);
  close(file);
}
bool device_is_let_go() {
  const pid_t child = fork();
  if (child == 0) {
    const int file = open((aside() + "/aside").c_str(), O_RDWR);
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    _exit(file >= 0 && fcntl(file, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  return status == 0;
}

// 1 MiB for good, 2 MiB twice, one after the other, in "step"; one that fails; one of each other
// kind.
void allocates() {
  CUdeviceptr kept = 0, scratch = 0, pooled = 0, managed = 0;
  void* pinned = nullptr;
  cuMemFree_v2(0);
  nvtxRangePushA("setup");
  cuMemAlloc_v2(&kept, 1 << 20);
  cuMemHostAlloc(&pinned, 4096, 0);
  cuMemAllocManaged(&managed, 8192, 0);
  nvtxRangePop();
  for (int step = 0; step < 2; ++step) {
    nvtxRangePushA("step");
    cuMemAlloc_v2(&scratch, 2 << 20);
    launch(kGemm, 1000);
    cuMemFree_v2(scratch);
    cuMemAllocFromPoolAsync(&pooled, 512, reinterpret_cast<CUmemoryPool>(0xbeef), stream(13));
    cuMemFreeAsync(pooled, stream(13));
    nvtxRangePop();
  }
  nvtxRangePushA("too much");
  cuMemAlloc_v2(&scratch, 1ull << 40);
  nvtxRangePop();
  cuMemFreeHost(pinned);
  std::thread([managed] { cuMemFree_v2(managed); }).join();
}

// A copy stream that runs ahead of the stream of kernels, which waits for it by an event.
void records_events() {
  CUstream copies = nullptr, kernels = nullptr;
  CUevent copied = nullptr;
  cuStreamCreate(&copies, CU_STREAM_NON_BLOCKING);
  cuStreamCreate(&kernels, 0);
  cuEventCreate(&copied, 0);
  for (int step = 0; step < 3; ++step) {
    nvtxRangePushA("step");
    cuMemcpyHtoDAsync_v2(0, nullptr, 4096, copies);
    cuEventRecord(copied, copies);
    cuStreamWaitEvent(kernels, copied, 0);
    launch(kGemm, 2000, kernels);
    cuEventSynchronize(copied);
    cuStreamSynchronize(kernels);
    nvtxRangePop();
  }
}

// Twenty works of every kind, some time after the beginning.
void works_of_all_kinds() {
  usleep(20000);
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  cuStreamBeginCapture_v2(stream(13), CU_STREAM_CAPTURE_MODE_GLOBAL);
  launch(kReduce, 1000, stream(13));
  cuStreamEndCapture(stream(13), &graph);
  cuGraphInstantiateWithFlags(&executable, graph, 0);
  for (int i = 0; i < 20; ++i) {
    launch(kGemm, 1000);
    cuMemcpyHtoDAsync_v2(0, nullptr, 4096, nullptr);
    cuMemsetD8Async(0, 0, 64, nullptr);
    cuGraphLaunch(executable, stream(13));
    cuCtxSynchronize();
  }
}

void many(int count) {
  for (int i = 0; i < count; ++i)
    launch(kGemm, 10, nullptr, static_cast<unsigned>(i % 7 + 1));
}

// The program's own profiler records five of twenty steps, twice. Its exit code: what that saw.
int profiles_itself(const char* library) {
  void* const kineto = dlopen(library, RTLD_NOW);
  const auto begin = reinterpret_cast<void (*)()>(dlsym(kineto, "kineto_begin"));
  const auto end = reinterpret_cast<int (*)()>(dlsym(kineto, "kineto_end"));
  if (std::getenv("STANDIN_SHARES_FIRST") != nullptr)
    begin();
  start();
  int seen = 0;
  for (int step = 0; step < 20; ++step) {
    if (step == 5 || step == 12)
      begin();
    nvtxRangePushA("step");
    launch(kGemm, 1000);
    nvtxRangePop();
    if (step == 9 || step == 16)
      seen = end();
  }
  return seen < 0 ? 100 - seen : seen;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string scene = argc > 1 ? argv[1] : "zoo";
  if (scene == "nothing")
    return 0;
  if (scene == "kineto")
    return profiles_itself(std::getenv("STANDIN_KINETO"));
  if (scene == "aside")
    make_aside();
  start();
  if (scene == "zoo")
    zoo();
  if (scene == "many")
    many(20000);
  if (scene == "allocates")
    allocates();
  if (scene == "events")
    records_events();
  if (scene == "all kinds")
    works_of_all_kinds();
  if (scene == "busy") {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
    for (int round = 0; round < 10 || std::chrono::steady_clock::now() < end; ++round)
      many(1000);
  }
  if (argc > 2 && scene == "destroyed") {
    counted("decode", std::atoi(argv[2]));
    cuCtxDestroy_v2(nullptr);
  }
  if (argc > 2 && scene == "captured")
    return captured(std::atoi(argv[2]));
  if (argc > 2 && scene == "graph")
    counted_graph(std::atoi(argv[2]));
  if (scene == "steps")
    nvtxRangePushA("main");
  if (argc > 2)
    counted(scene, std::atoi(argv[2]));
  if (scene == "steps")
    nvtxRangePop();
  if (scene == "profiled") {  // thirty steps, of which the program asks for ten, twice
    for (int step = 0; step < 30; ++step) {
      if (step == 10 || step == 12)
        cuProfilerStart();
      if (step == 20 || step == 25)
        cuProfilerStop();
      nvtxRangePushA("step");
      launch(kGemm, 100000, nullptr, 1000);
      cuCtxSynchronize();
      nvtxRangePop();
      usleep(2000);
    }
  }
  if (scene == "sampled" || scene == "watched") {
    for (int step = 0; step < (scene == "sampled" ? 40 : 300); ++step) {
      nvtxRangePushA("step");
      launch(kGemm, 4000000, nullptr, 1000);
      launch(kReduce, 2000000, nullptr, 10);
      cuCtxSynchronize();
      nvtxRangePop();
      usleep(4000);
    }
  }
  if (scene == "threads") {
    std::vector<std::thread> threads;
    for (int i = 0; i < 50; ++i)
      threads.emplace_back([] { many(200); });
    for (std::thread& thread : threads)
      thread.join();
  }
  if (scene == "killed") {
    many(20000);
    usleep(300000);
    many(10);
    kill(getpid(), SIGKILL);
  }
  if (scene == "quick_exit") {
    many(100);
    _exit(3);
  }
  if (scene == "fork") {
    many(10);
    const pid_t child = fork();
    if (child == 0)
      std::exit(0);  // its atexit handlers must leave the parent's stream alone
    usleep(100000);
    many(10);
    if (!ends(child))
      return kChildHangs;
  }
  if (scene == "reset") {
    many(10);
    cuCtxDestroy_v2(nullptr);
    _exit(0);
  }
  if (scene == "closes_descriptors") {
    for (int file = 3; file < 64; ++file)
      close(file);
    many(100);
  }
  if (scene == "aside" && !device_is_let_go())
    return 9;
  return scene == "exit_code" ? 42 : 0;
}
