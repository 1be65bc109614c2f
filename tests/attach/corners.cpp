// Programs whose threads must not be made to call dlopen(): each waits for its input to end, and
// says then whether it is whole. And one whose first thread has ended.
//
//   corners coroutine   its thread is on a stack of 8 KiB between bytes of others
//   corners deep        its thread has 14 KiB of stack left
//   corners allocator   its own malloc(): one thread holds its lock, the other naps for it
//   corners first       goes on in another thread, which works and naps
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace {

constexpr std::size_t kArena = 1 << 20;
alignas(64) char g_arena[kArena];
std::atomic<std::size_t> g_used;
std::atomic<int> g_locked;
std::atomic<bool> g_holds_lock;

void wait_for_end_of_input() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  ::poll(&input, 1, -1);
}

int answer(bool is_whole) {
  std::puts(is_whole ? "ok" : "harmed");
  return is_whole ? 0 : 1;
}

void ready() {
  std::puts("ready");
  std::fflush(stdout);
}

// ---- coroutine

constexpr std::size_t kStack = 8 * 1024, kNeighbour = 64 * 1024;
constexpr char kPattern = 0x5a;
alignas(4096) char g_memory[kNeighbour + kStack + kNeighbour];
ucontext_t g_main, g_coroutine;

void in_coroutine() {
  wait_for_end_of_input();
}

int coroutine() {
  std::memset(g_memory, kPattern, sizeof g_memory);
  ::getcontext(&g_coroutine);
  g_coroutine.uc_stack.ss_sp = g_memory + kNeighbour;
  g_coroutine.uc_stack.ss_size = kStack;
  g_coroutine.uc_link = &g_main;
  ::makecontext(&g_coroutine, in_coroutine, 0);
  ready();
  ::swapcontext(&g_main, &g_coroutine);
  bool is_whole = true;
  for (std::size_t i = 0; i < kNeighbour; ++i)
    is_whole = is_whole && g_memory[i] == kPattern;
  return answer(is_whole);
}

// ---- deep

constexpr rlim_t kLimit = 1 << 20;
std::uintptr_t g_lowest;  // of the stack, at its limit
bool g_has_waited;

/// To the end of the stack, so that all of it is mapped, and back to where 14 KiB are left.
__attribute__((noinline)) void descend() {
  volatile char frame[1024];
  frame[0] = 1;
  const auto here = reinterpret_cast<std::uintptr_t>(&frame[0]);
  if (here > g_lowest + 4 * 1024)
    descend();
  if (here > g_lowest + 14 * 1024 && !g_has_waited) {
    g_has_waited = true;
    wait_for_end_of_input();
  }
  frame[1] = frame[0];
}

std::uintptr_t end_of_stack() {
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  char line[512];
  unsigned long begin = 0, end = 0;
  while (maps != nullptr && std::fgets(line, sizeof line, maps) != nullptr)
    if (std::strstr(line, "[stack]") != nullptr)
      std::sscanf(line, "%lx-%lx", &begin, &end);
  return end;
}

int deep() {
  const rlimit limit{kLimit, kLimit};
  if (::setrlimit(RLIMIT_STACK, &limit) != 0)
    return 2;
  g_lowest = end_of_stack() - kLimit;
  ready();
  descend();
  return answer(g_has_waited);
}

// ---- allocator

void lock() {
  while (g_locked.exchange(1) != 0) {
    const timespec nap{0, 1'000'000};
    ::nanosleep(&nap, nullptr);
  }
}

}  // namespace

extern "C" void* malloc(std::size_t bytes) {
  lock();
  if (g_holds_lock)
    wait_for_end_of_input();
  const std::size_t begin = g_used.fetch_add((bytes + 63) / 64 * 64);
  g_locked = 0;
  return begin + bytes <= kArena ? g_arena + begin : nullptr;
}
extern "C" void free(void*) {}
extern "C" void* calloc(std::size_t count, std::size_t bytes) {
  return malloc(count * bytes);  // never used before, so zero
}
extern "C" void* realloc(void* old, std::size_t bytes) {
  void* memory = malloc(bytes);
  if (old != nullptr && memory != nullptr)
    std::memmove(memory, old, bytes);
  return memory;
}

namespace {

void* hold_lock(void*) {
  while (!g_holds_lock)
    ::usleep(1000);
  void* volatile memory = malloc(8);
  return memory;
}

int allocator() {
  pthread_t holder;
  if (::pthread_create(&holder, nullptr, hold_lock, nullptr) != 0)
    return 2;
  g_holds_lock = true;
  while (g_locked == 0)
    ::usleep(1000);
  ready();
  g_holds_lock = false;
  void* volatile memory = malloc(8);
  ::pthread_join(holder, nullptr);
  return answer(memory != nullptr);
}

void* goes_on(void*) {
  volatile std::uint64_t sum = 0;
  pollfd input{STDIN_FILENO, POLLIN, 0};
  while (::poll(&input, 1, 1) == 0)
    for (int i = 0; i < 2'000'000; ++i)
      sum = sum + 1;
  std::puts("ok");
  std::fflush(stdout);
  return nullptr;
}

[[noreturn]] void end_first_thread() {
  pthread_t thread{};
  ::pthread_create(&thread, nullptr, goes_on, nullptr);
  std::puts("ready");
  std::fflush(stdout);
  ::pthread_exit(nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  static char output[256];
  std::setvbuf(stdout, output, _IOFBF, sizeof output);  // allocates nothing
  const char* mode = argc > 1 ? argv[1] : "";
  if (std::strcmp(mode, "coroutine") == 0)
    return coroutine();
  if (std::strcmp(mode, "deep") == 0)
    return deep();
  if (std::strcmp(mode, "allocator") == 0)
    return allocator();
  if (std::strcmp(mode, "first") == 0)
    end_first_thread();
  return 2;
}
