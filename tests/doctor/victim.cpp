// A program with a range `decode` (and others) that is broken in the way that its first argument
// names, or healthy.
//
// CUDA is the stand-in driver of tests/cupti, loaded from $STANDIN_CUDA where a scene needs it: a
// scene that does not load it is a program without CUDA.
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

namespace {

void* driver = nullptr;

template <typename... Arguments>
int cuda(const char* name, Arguments... arguments) {
  if (driver == nullptr) {
    const char* path = std::getenv("STANDIN_CUDA");
    driver = dlopen(path ? path : "libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (driver == nullptr) {
      std::fprintf(stderr, "no CUDA driver: %s\n", dlerror());
      std::exit(127);
    }
  }
  auto* function = reinterpret_cast<int (*)(Arguments...)>(dlsym(driver, name));
  return function(arguments...);
}

void start() {
  void* context = nullptr;
  cuda("cuInit", 0u);
  cuda("cuCtxCreate_v2", &context, 0u, 0);
}

void* stream(std::uintptr_t number) {
  return reinterpret_cast<void*>(number);
}

void launch(std::uint64_t duration_ns = 2000,
            const char* name = "_Z4gemmPKfS0_Pfi",
            void* on = nullptr) {
  void* parameters[] = {&duration_ns};
  cuda("cuLaunchKernel",
       const_cast<char*>(name),
       16u,
       1u,
       1u,
       128u,
       1u,
       1u,
       0u,
       on,
       static_cast<void**>(parameters),
       static_cast<void**>(nullptr));
}

void wait() {
  cuda("cuCtxSynchronize");
}

void warm_up() {
  start();
  launch();
  wait();
}

/// `steps` times prefill-free decoding: decode > layer0, layer1, with what `inside` adds.
void decode(int steps, const std::function<void(int)>& inside, const char* name = "decode") {
  for (int step = 0; step < steps; ++step) {
    nvtxRangePushA(name);
    inside(step);
    nvtxRangePop();
  }
}

void two_layers(int) {
  for (const char* layer : {"layer0", "layer1"}) {
    nvtxRangePushA(layer);
    launch();
    launch(1000, "_ZN2my6reduceILi4EEEvPf");
    nvtxRangePop();
  }
  wait();
}

void healthy() {
  warm_up();
  decode(6, two_layers);
}

void in_domain() {
  warm_up();
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("LLM");
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = "decode";
  for (int i = 0; i < 4; ++i) {
    nvtxDomainRangePushEx(domain, &attributes);
    launch();
    wait();
    nvtxDomainRangePop(domain);
  }
}

void registered() {
  warm_up();
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("LLM");
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = nvtxDomainRegisterStringA(domain, "decode");
  for (int i = 0; i < 4; ++i) {
    nvtxDomainRangePushEx(domain, &attributes);
    launch();
    wait();
    nvtxDomainRangePop(domain);
  }
}

void start_end() {
  warm_up();
  for (int i = 0; i < 4; ++i) {
    const nvtxRangeId_t id = nvtxRangeStartA("decode");
    launch();
    wait();
    nvtxRangeEnd(id);
  }
}

void child(char* self, const char* scene) {
  const pid_t pid = fork();
  if (pid == 0) {
    execl(self, self, scene, nullptr);
    _exit(127);
  }
  waitpid(pid, nullptr, 0);
}

void graph_inside() {
  warm_up();
  void *graph = nullptr, *executable = nullptr;
  cuda("cuStreamBeginCapture_v2", stream(13), 0);
  launch(2000, "_Z4gemmPKfS0_Pfi", stream(13));
  cuda("cuStreamEndCapture", stream(13), &graph);
  cuda("cuGraphInstantiateWithFlags", &executable, graph, 0ull);
  decode(4, [&](int) {
    cuda("cuGraphLaunch", executable, stream(13));
    wait();
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string scene = argc > 1 ? argv[1] : "healthy";
  const auto is = [&](const char* name) { return scene == name; };
  if (is("healthy"))
    healthy();
  if (is("often")) {
    warm_up();
    decode(60, two_layers);
  }
  if (is("domain"))
    in_domain();
  if (is("registered"))
    registered();
  if (is("start_end"))
    start_end();
  if (is("nested")) {
    warm_up();
    decode(4, [](int) {
      nvtxRangePushA("step");
      two_layers(0);
      nvtxRangePop();
    });
  }
  if (is("numbered")) {  // one range around everything, and a name of its own for each step
    warm_up();
    nvtxRangePushA("main");
    for (int step = 0; step < 8; ++step) {
      decode(1, two_layers, ("step " + std::to_string(step)).c_str());
    }
    decode(6, two_layers, "it's \"quoted\": #1");
    nvtxRangePop();
  }
  if (is("mark"))
    nvtxMarkA("hello");
  if (is("cpu"))
    decode(6, [](int) { usleep(500); });
  if (is("no_descriptors") || is("no_bytes")) {
    const rlimit none = {0, 0};
    setrlimit(is("no_bytes") ? RLIMIT_FSIZE : RLIMIT_NOFILE, &none);
    decode(6, [](int) { usleep(500); });
  }
  if (is("cpu_slow")) {  // other tools need a moment to begin and to end
    usleep(300000);
    decode(3, [](int) { usleep(20000); });
    usleep(300000);
  }
  if (is("sets_injection")) {  // as another profiler's start script in the program does
    setenv("NVTX_INJECTION64_PATH", "/usr/lib/libother_tool.so", 1);
    decode(20, [](int) { usleep(20000); });
  }
  if (is("child_cleared")) {
    decode(
        2, [](int) { usleep(500); }, "parent");
    const pid_t pid = fork();
    if (pid == 0) {
      char* const none[] = {nullptr};
      char* const arguments[] = {argv[0], const_cast<char*>("cpu_slow"), nullptr};
      execve(argv[0], arguments, none);
      _exit(127);
    }
    waitpid(pid, nullptr, 0);
  }
  if (is("worker")) {
    warm_up();
    decode(4, [](int) {
      std::thread([] {
        launch();
        wait();
      }).join();
    });
  }
  if (is("pool")) {  // threads with ranges of their own are nobody's business
    warm_up();
    std::thread other([] {
      decode(
          50, [](int) { launch(); }, "prefill");
    });
    decode(6, [](int) {
      launch();
      wait();
      usleep(200);
    });
    other.join();
  }
  if (is("launching"))
    warm_up();
  if (is("child_launches")) {
    warm_up();
    decode(3, [&](int) { child(argv[0], "launching"); });
  }
  if (is("child_range")) {
    nvtxMarkA("parent");
    child(argv[0], "healthy");
  }
  if (is("empty")) {
    warm_up();
    decode(4, [](int) { usleep(100); });
    nvtxRangePushA("prefill");
    launch();
    wait();
    nvtxRangePop();
  }
  if (is("context_inside")) {
    decode(4, [](int step) {
      if (step == 0)
        start();
      launch();
      wait();
    });
  }
  if (is("graphs"))
    graph_inside();
  if (is("malloc_async") || is("kernel_attribute") || is("malloc")) {
    warm_up();
    decode(4, [&](int) {
      std::uint64_t pointer = 0;
      if (is("malloc_async"))
        cuda("cuMemAllocAsync", &pointer, std::size_t{64}, stream(0));
      if (is("malloc"))
        cuda("cuMemAlloc_v2", &pointer, std::size_t{64});
      if (is("kernel_attribute"))
        cuda("cuKernelSetAttribute", 0, 0, stream(0), 0);
      launch();
      wait();
    });
  }
  if (is("contexts")) {
    warm_up();
    decode(4, [](int) {
      launch();
      start();  // another context, from now on the thread's
      launch();
      wait();
    });
  }
  if (is("differ")) {
    warm_up();
    decode(6, [](int step) {
      for (int i = 0; i <= step; ++i)
        launch();
      wait();
    });
  }
  if (is("first_differs")) {
    warm_up();
    decode(6, [](int step) {
      for (int i = 0; i <= (step == 0 ? 3 : 1); ++i)
        launch();
      wait();
    });
  }
  if (is("async")) {
    warm_up();
    decode(4, [](int) { launch(3000000); });
    wait();
  }
  if (is("never_ends")) {
    warm_up();
    nvtxRangePushA("decode");
    launch();
    wait();
  }
  if (is("popped_elsewhere")) {
    warm_up();
    for (int i = 0; i < 3; ++i) {
      std::thread([] {
        nvtxRangePushA("decode");
        launch();
        wait();
      }).join();
      nvtxRangePop();
    }
  }
  if (is("exits_early")) {
    warm_up();
    decode(2, two_layers, "load");
    std::fputs("no such checkpoint: model.bin\n", stderr);
    return 3;
  }
  if (is("returns_early")) {
    warm_up();
    decode(2, two_layers, "load");
  }
  if (is("crashes")) {
    warm_up();
    nvtxRangePushA("decode");
    launch();
    raise(SIGSEGV);
  }
  if (is("cpu_fails")) {
    decode(
        2, [](int) {}, "load");
    return 3;
  }
  if (is("domain_fails")) {
    in_domain();
    return 4;
  }
  if (is("slow")) {
    nvtxMarkA("start");
    decode(
        1, [](int) {}, "load");
    sleep(20);
  }
  if (is("serves")) {  // for ever, with a child in its group
    const pid_t pid = fork();
    if (pid == 0) {
      signal(SIGTERM, SIG_IGN);
      sleep(100);
      _exit(0);
    }
    std::printf("%d\n", pid);
    std::fflush(stdout);
    if (const char* file = std::getenv("VICTIM_CHILD")) {
      if (std::FILE* out = std::fopen(file, "w")) {
        std::fprintf(out, "%d", pid);
        std::fclose(out);
      }
    }
    warm_up();
    for (;;) {
      decode(1, two_layers);
      usleep(2000);
    }
  }
  return 0;
}
