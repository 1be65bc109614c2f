// Programs that use NVTX in every way, and die in every way: `victim SCENARIO`. What each opens is
// known to victims_test.cpp.
//
// None prints anything that depends on whether a tool is there, but `values`, which prints what
// NVTX answers.
#include <dlfcn.h>
#include <fcntl.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

extern char** environ;

int nccl_calls();  // nccl_calls.cpp

namespace {

std::string self;

struct Range {
  explicit Range(const char* name) { nvtxRangePushA(name); }
  ~Range() { nvtxRangePop(); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

void leaf(const char* name, int times = 1) {
  for (int i = 0; i < times; ++i)
    Range range(name);
}

nvtxEventAttributes_t attributes(const char* name) {
  nvtxEventAttributes_t a = {};
  a.version = NVTX_VERSION;
  a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  a.messageType = NVTX_MESSAGE_TYPE_ASCII;
  a.message.ascii = name;
  return a;
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// Static objects of the program: NVTX before main, and after main has returned.
struct Early {
  Early() {
    if (std::getenv("VICTIM_EARLY") != nullptr)
      leaf("before main");
  }
  ~Early() {
    if (std::getenv("VICTIM_EARLY") != nullptr)
      leaf("static destructor");
  }
} early;

// ---- the ranges of fixtures/zoo, without a GPU
// -------------------------------------------------------------------------
void layers() {
  leaf("layer0");
  leaf("layer1");
}

int zoo() {
  nvtxNameCategoryA(7, "compute");
  nvtxDomainHandle_t llm = nvtxDomainCreateA("LLM");
  nvtxStringHandle_t all = nvtxDomainRegisterStringA(llm, "decode_all");
  for (int request = 0; request < 2; ++request) {
    const nvtxRangeId_t id = nvtxRangeStartA("request");
    {
      Range prefill("prefill");
      layers();
    }
    nvtxEventAttributes_t a = attributes(nullptr);
    a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    a.message.registered = all;
    nvtxDomainRangePushEx(llm, &a);
    for (int token = 0; token < 3; ++token) {
      Range decode("decode");
      layers();
    }
    nvtxDomainRangePop(llm);
    nvtxRangeEnd(id);
  }
  {
    Range a("A");
    leaf("A::A1");
  }
  leaf("B");
  leaf("empty");
  leaf("async");
  leaf("a/b [x], y@z");
  leaf("\xe5\xb1\xa4");
  nvtxEventAttributes_t a = attributes("attrs");
  a.category = 7;
  a.colorType = NVTX_COLOR_ARGB;
  a.color = 0xff112233;
  a.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  a.payload.llValue = 42;
  nvtxRangePushEx(&a);
  nvtxRangePop();
  {
    Range main_thread("main_thread");
    std::thread([] { leaf("worker"); }).join();
  }
  leaf("copies");
  {
    Range capture("graph_capture");
    leaf("captured_layer");
  }
  leaf("graph_replay", 4);
  nvtxMarkA("done");
  std::puts("zoo done");
  return 0;
}

// ---- what NVTX answers
// -------------------------------------------------------------------------------------------------
int values() {
  nvtxDomainHandle_t domain = nvtxDomainCreateA("D");
  nvtxEventAttributes_t a = attributes("x");
  std::printf("%d", nvtxRangePushA("a"));
  std::printf(" %d", nvtxRangePushW(L"b"));
  std::printf(" %d", nvtxDomainRangePushEx(domain, &a));
  std::printf(" %d", nvtxRangePushEx(&a));
  std::printf(" | %d", nvtxRangePop());
  std::printf(" %d", nvtxDomainRangePop(domain));
  std::printf(" %d", nvtxRangePop());
  std::printf(" %d", nvtxRangePop());
  std::printf(" | %d %d\n", nvtxRangePop() < 0, nvtxDomainRangePop(domain) < 0);
  const nvtxRangeId_t one = nvtxRangeStartA("one"), two = nvtxRangeStartW(L"two"),
                      three = nvtxDomainRangeStartEx(domain, &a);
  std::printf("%d\n", one != two && two != three && one != three && one != 0);
  nvtxRangeEnd(two);
  nvtxDomainRangeEnd(domain, three);
  nvtxRangeEnd(one);
  nvtxRangeEnd(987654321);
  std::printf("%d %d\n",
              nvtxDomainCreateA("D") == domain,
              nvtxDomainRegisterStringA(domain, "s") != nullptr);
  nvtxDomainDestroy(domain);
  return 0;
}

// Ranges as NCCL makes them: pushed as ever and popped with a payload, or pushed with one that
// holds the message.
int payload_extension() {
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("NCCL");
  struct Call {
    std::uint64_t bytes;
    char message[16];
  } call = {4096, "allgather"};
  nvtxPayloadSchemaEntry_t entries[2] = {};
  entries[0].type = NVTX_PAYLOAD_ENTRY_TYPE_UINT64;
  entries[1].type = NVTX_PAYLOAD_ENTRY_TYPE_CSTRING;
  entries[1].flags = NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE;
  entries[1].arrayOrUnionDetail = sizeof call.message;
  entries[1].offset = offsetof(Call, message);
  nvtxPayloadSchemaAttr_t schema = {};
  schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES;
  schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  schema.entries = entries;
  schema.numEntries = 2;
  const nvtxPayloadData_t data = {nvtxPayloadSchemaRegister(domain, &schema), sizeof call, &call};
  nvtxEventAttributes_t a = {};
  a.version = NVTX_VERSION;
  a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  a.messageType = NVTX_MESSAGE_TYPE_ASCII;
  a.message.ascii = "init";
  nvtxDomainRangePushEx(domain, &a);
  nvtxRangePopPayload(domain, &data, 1);
  nvtxRangePushPayload(domain, &data, 1);
  const nvtxPayloadData_t cut = {data.schemaId, 4, &call};  // too short for the message
  nvtxRangePushPayload(domain, &cut, 1);
  nvtxRangePopPayload(domain, nullptr, 0);
  nvtxDomainRangePop(domain);
  const nvtxRangeId_t id = nvtxRangeStartPayload(domain, &data, 1);
  nvtxMarkPayload(domain, &data, 1);
  nvtxRangeEndPayload(domain, id, &data, 1);
  return 0;
}

int payloads() {
  nvtxDomainHandle_t domain = nvtxDomainCreateW(L"d\u00e9");
  const auto put = [domain](int type, auto set) {
    nvtxEventAttributes_t a = attributes("p");
    a.payloadType = type;
    set(a);
    nvtxDomainMarkEx(domain, &a);
  };
  put(NVTX_PAYLOAD_TYPE_UNSIGNED_INT64,
      [](auto& a) { a.payload.ullValue = 0xffffffffffffffffull; });
  put(NVTX_PAYLOAD_TYPE_INT64, [](auto& a) { a.payload.llValue = -5; });
  put(NVTX_PAYLOAD_TYPE_DOUBLE, [](auto& a) { a.payload.dValue = 0.5; });
  put(NVTX_PAYLOAD_TYPE_UNSIGNED_INT32, [](auto& a) { a.payload.uiValue = 7; });
  put(NVTX_PAYLOAD_TYPE_INT32, [](auto& a) { a.payload.iValue = -7; });
  put(NVTX_PAYLOAD_TYPE_FLOAT, [](auto& a) { a.payload.fValue = 0.25f; });
  put(99, [](auto& a) { a.payload.ullValue = 1; });
  return 0;
}

int names() {
  leaf("\xff\xfe bytes");
  leaf("");
  nvtxRangePushA(nullptr);
  nvtxRangePop();
  leaf(std::string(65536, 'L').c_str());
  leaf(std::string(300 * 1024, 'M').c_str());
  nvtxRangePushW(L"wide \u5c64 \U0001f600");
  nvtxRangePop();
  nvtxRangePushW(std::wstring(2000, L'w').c_str());
  nvtxRangePop();
  nvtxDomainHandle_t domain = nvtxDomainCreateA("names");
  nvtxEventAttributes_t a = attributes(nullptr);
  a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  a.message.registered = nvtxDomainRegisterStringW(domain, L"registered wide");
  nvtxDomainRangePushEx(domain, &a);
  nvtxDomainRangePop(domain);
  a.message.registered = reinterpret_cast<nvtxStringHandle_t>(0x1234);  // of nobody
  nvtxDomainRangePushEx(domain, &a);
  nvtxDomainRangePop(domain);
  nvtxRangePushEx(nullptr);
  nvtxRangePop();
  nvtxNameOsThreadA(static_cast<std::uint32_t>(syscall(SYS_gettid)), "the main thread");
  nvtxDomainNameCategoryA(domain, 3, "third");
  return 0;
}

// Ever new names in one buffer: the table of names must not grow without bound, nor confuse equal
// addresses.
int unique(long number) {
  char name[32];
  for (long i = 0; i < number; ++i) {
    std::snprintf(name, sizeof name, "step %ld", i);
    leaf(name);
  }
  return 0;
}

std::size_t resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  unsigned long all = 0, resident = 0;
  if (file == nullptr || std::fscanf(file, "%lu %lu", &all, &resident) != 2)
    return 0;
  std::fclose(file);
  return resident * 4096;
}

// The same texts over and over, in two domains.
int register_again() {
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("d");
  leaf("first");
  const std::size_t before = resident_bytes();
  for (int i = 0; i < 500000; ++i) {
    (void)nvtxDomainRegisterStringA(domain, "again");
    (void)nvtxDomainRegisterStringA(nullptr, "again");
    (void)nvtxDomainRegisterStringA(domain, nullptr);
  }
  leaf(resident_bytes() > before + (std::size_t{8} << 20) ? "grew" : "did not grow");
  return 0;
}

// The capture of a child takes few pages of the system's cache, which are filled one by one.
int fork_file() {
  leaf("parent");
  const pid_t child = fork();
  if (child == 0) {
    leaf("child");
    const char* folder = std::getenv("RANGESCOPE_DIR");
    const std::string path = std::string(folder != nullptr ? folder : "") + "/" +
                             std::to_string(getpid()) + ".0.rstrace";
    const int file = open(path.c_str(), O_RDONLY);
    constexpr std::size_t kPages = 512;
    void* at = mmap(nullptr, kPages * 4096, PROT_READ, MAP_SHARED, file, 0);
    unsigned char resident[kPages] = {};
    const bool known = at != MAP_FAILED && mincore(at, sizeof resident * 4096, resident) == 0;
    leaf(known && std::count(std::begin(resident), std::end(resident), 1) < 16 ? "few pages"
                                                                               : "many pages");
    _exit(0);
  }
  wait_for(child);
  return 0;
}

// ---- processes
// ---------------------------------------------------------------------------------------------------------
int forks() {
  leaf("before");
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    leaf("child", 3);
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      leaf("grandchild", 2);
      _exit(0);
    }
    wait_for(grandchild);
    _exit(0);
  }
  wait_for(child);
  leaf("after");
  return 0;
}

int fork_in_range() {
  nvtxRangePushA("outer");
  const nvtxRangeId_t id = nvtxRangeStartA("span");
  const pid_t child = fork();
  if (child == 0) {
    leaf("in child");
    nvtxRangePop();  // the parent's
    nvtxRangeEnd(id);
    leaf("later in child");
    _exit(0);
  }
  wait_for(child);
  leaf("in parent");
  nvtxRangeEnd(id);
  nvtxRangePop();
  return 0;
}

int raw_fork() {
  leaf("parent");
  const long child = syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) {
    leaf("raw child", 2);
    _exit(0);
  }
  wait_for(static_cast<pid_t>(child));
  leaf("parent");
  return 0;
}

int exec_self() {
  Range range("before exec");
  const char* argv[] = {self.c_str(), "leaf", nullptr};
  execv(self.c_str(), const_cast<char**>(argv));
  return 1;
}

int spawn_self() {
  Range range("spawning");
  const char* argv[] = {self.c_str(), "leaf", nullptr};
  pid_t child = 0;
  if (posix_spawn(&child, self.c_str(), nullptr, nullptr, const_cast<char**>(argv), environ) != 0)
    return 1;
  wait_for(child);
  const pid_t forked = vfork();
  if (forked == 0) {
    execv(self.c_str(), const_cast<char**>(argv));
    _exit(1);
  }
  wait_for(forked);
  leaf("after");
  return 0;
}

int die(int how) {
  leaf("done", 1000);
  nvtxRangePushA("dying");
  leaf("last");
  std::puts("about to die");
  std::fflush(stdout);
  if (how == SIGSEGV)
    *static_cast<volatile int*>(
        mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) = 1;
  if (how == SIGABRT)
    std::abort();
  if (how == 0)
    _exit(7);
  if (how == 1)
    std::exit(9);
  if (how == 2)
    throw std::runtime_error("thrown out of main");
  kill(getpid(), how);
  return 0;
}

int throws() {
  try {
    Range outer("outer");
    Range inner("inner");
    throw std::runtime_error("x");
  } catch (const std::exception&) {
    leaf("caught");
  }
  return 0;
}

// ---- threads and signals
// -----------------------------------------------------------------------------------------------
int threads_at_once(int count) {
  // NVTX's header hands its function pointers to other threads without synchronization: not a race
  // of ours.
  nvtxInitialize(nullptr);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 256 * 1024);
  static pthread_barrier_t all;
  pthread_barrier_init(&all, nullptr, static_cast<unsigned>(count));
  std::vector<pthread_t> threads(static_cast<std::size_t>(count));
  for (pthread_t& thread : threads) {
    const auto body = [](void*) -> void* {
      nvtxRangePushA("thread");
      pthread_barrier_wait(&all);
      leaf("work");
      nvtxRangePop();
      return nullptr;
    };
    if (pthread_create(&thread, &small, body, nullptr) != 0)
      return 1;
  }
  for (pthread_t thread : threads)
    pthread_join(thread, nullptr);
  return 0;
}

int threads_in_turn() {
  for (int i = 0; i < 2000; ++i)
    std::thread([] { leaf("short"); }).join();
  return 0;
}

volatile sig_atomic_t alarms = 0;

int signals() {
  // A handler that came during NVTX's own initialisation would wait for it for ever, with any tool.
  nvtxInitialize(nullptr);
  struct sigaction action = {};
  action.sa_handler = [](int) {
    nvtxRangePushA("handler");
    nvtxMarkA("alarm");
    nvtxRangePop();
    alarms = alarms + 1;
  };
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often = {{0, 100}, {0, 100}};
  setitimer(ITIMER_REAL, &often, nullptr);
  while (alarms < 2000) {
    Range range("storm");
    leaf("drop");
#ifdef __SANITIZE_THREAD__
    usleep(10);  // ThreadSanitizer holds signals back until a call that may block
#endif
  }
  const itimerval never = {};
  setitimer(ITIMER_REAL, &never, nullptr);
  leaf("calm", 5);
  return 0;
}

int dlopens(const char* path) {
  leaf("main");
  for (int i = 0; i < 20; ++i) {
    void* client = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (client == nullptr) {
      std::puts(dlerror());
      return 1;
    }
    reinterpret_cast<void (*)(const char*)>(dlsym(client, "client_push"))("plugin");
    reinterpret_cast<void (*)()>(dlsym(client, "client_pop"))();
    dlclose(client);
  }
  leaf("main");
  return 0;
}

int at_exit() {
  std::atexit([] { leaf("atexit"); });
  leaf("main");
  return 0;
}

// ---- limits
// ------------------------------------------------------------------------------------------------------------
int many(long pairs) {
  Range all("all");
  for (long i = 0; i < pairs; ++i) {
    nvtxRangePushA("step");
    nvtxRangePop();
  }
  return 0;
}

int file_limit() {
  leaf("early");
  const rlimit small = {64 * 1024, 64 * 1024};
  setrlimit(RLIMIT_FSIZE, &small);
  leaf("many", 100000);
  const int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
  return fd < 0 ? 1 : close(fd);
}

int no_files() {
  leaf("early");
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_NOFILE, &none);
  leaf("many", 100000);
  return 0;
}

int no_memory() {
  leaf("early");
  const rlimit small = {1 << 20, 1 << 20};
  setrlimit(RLIMIT_AS, &small);
  leaf("many", 100000);
  return 0;
}

int close_all() {
  leaf("early");
  for (int fd = 0; fd < 64; ++fd)
    close(fd);
  for (int fd = 0; fd < 3; ++fd) {
    if (open("/dev/null", O_RDWR) != fd)
      _exit(3);  // lowest number first: nothing of ours in the way
  }
  leaf("many", 5000);
  return chdir("/");
}

int unbalanced() {
  nvtxRangePop();
  nvtxRangePop();
  nvtxRangePushA("open");
  for (int i = 0; i < 3000; ++i)
    nvtxRangePushA("deep");
  for (int i = 0; i < 3000; ++i)
    nvtxRangePop();
  nvtxDomainHandle_t d = nvtxDomainCreateA("D");
  nvtxEventAttributes_t a = attributes("crossing");
  nvtxDomainRangePushEx(d, &a);
  nvtxRangePop();
  leaf("after");
  nvtxDomainRangePop(d);
  const nvtxRangeId_t never = nvtxRangeStartA("never ended");
  const nvtxRangeId_t crossed = nvtxRangeStartA("crosses threads");
  std::thread([crossed] { nvtxRangeEnd(crossed); }).join();
  return static_cast<int>(never - never);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2)
    return 64;
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  self.assign(path, static_cast<std::size_t>(length > 0 ? length : 0));
  const long number = argc > 2 ? std::atol(argv[2]) : 0;
  const std::map<std::string, std::function<int()>> scenarios = {
      {"zoo", zoo},
      {"values", values},
      {"payloads", payloads},
      {"payload_extension", payload_extension},
      {"nccl_calls", nccl_calls},
      {"names", names},
      {"unique", [number] { return unique(number > 0 ? number : 200000); }},
      {"register_again", register_again},
      {"fork", forks},
      {"fork_file", fork_file},
      {"fork_in_range", fork_in_range},
      {"raw_fork", raw_fork},
      {"exec", exec_self},
      {"spawn", spawn_self},
      {"leaf",
       [] {
         leaf("leaf");
         return 0;
       }},
      {"nothing", [] { return 3; }},
      {"kill", [] { return die(SIGKILL); }},
      {"term", [] { return die(SIGTERM); }},
      {"segv", [] { return die(SIGSEGV); }},
      {"abort", [] { return die(SIGABRT); }},
      {"_exit", [] { return die(0); }},
      {"exit", [] { return die(1); }},
      {"terminate", [] { return die(2); }},
      {"throw", throws},
      {"threads", [number] { return threads_at_once(static_cast<int>(number)); }},
      {"threads_in_turn", threads_in_turn},
      {"signals", signals},
      {"dlopen", [argc, argv] { return argc > 2 ? dlopens(argv[2]) : 64; }},
      {"atexit", at_exit},
      {"many", [number] { return many(number); }},
      {"file_limit", file_limit},
      {"no_files", no_files},
      {"no_memory", no_memory},
      {"close_all", close_all},
      {"unbalanced", unbalanced}};
  const auto scenario = scenarios.find(argv[1]);
  return scenario == scenarios.end() ? 64 : scenario->second();
}
