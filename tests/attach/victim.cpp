// Checks itself while somebody attaches to it: system calls that are not interrupted, values in
// registers, errno, signals of its own, threads and children that come and go. Prints "ready", runs
// until its standard input ends, then prints "ok" and what it did, or what went wrong, and ends by
// 0 or 1. With an argument it is one thread that waits with values in its vector registers and red
// zone.
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <iterator>
#include <mutex>
#include <thread>
#include <vector>

namespace {

std::atomic<bool> over{false};
std::atomic<unsigned long> ticks{0};
std::atomic<const char*> wrong{nullptr};
std::atomic<unsigned long> steps[11];

void check(bool good, const char* what) {
  if (!good)
    wrong = what;
}

/// Calls it until the end; the thread takes no signal.
void loop(int number, const std::function<void()>& step) {
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
  for (; !over; ++steps[number]) {
    errno = 4711;
    step();
  }
}

void sleeps() {
  timespec wish{0, 3'000'000}, left{}, begun{}, ended{};
  clock_gettime(CLOCK_MONOTONIC, &begun);
  check(nanosleep(&wish, &left) == 0 && errno == 4711, "nanosleep was interrupted");
  clock_gettime(CLOCK_MONOTONIC, &ended);
  check(
      (ended.tv_sec - begun.tv_sec) * 1'000'000'000 + ended.tv_nsec - begun.tv_nsec >= wish.tv_nsec,
      "it slept too short");
}

/// Sums that are exact in floating point; the loop keeps them in vector registers and below the
/// stack pointer.
void computes() {
  double sums[8] = {};
  for (int i = 1; i <= 20'000; ++i)
    for (int lane = 0; lane < 8; ++lane)
      sums[lane] += i * (lane + 1);
  for (int lane = 0; lane < 8; ++lane)
    check(sums[lane] == 200'010'000.0 * (lane + 1), "a sum is wrong");
  check(errno == 4711, "errno was changed");
}

/// The dynamic linker ran on this stack: what it left of addresses looks, in a part that a frame
/// does not fill, as if it ran still, and such a thread is never taken.
__attribute__((noinline)) void clear_the_stack_below() {
  volatile char below[4096];
  for (volatile char& byte : below)
    byte = 0;
}

/// A sleep until a time, by libc's syscall(), which keeps all but rax, rcx and r11: vector
/// registers and the red zone below the stack pointer are then what they were.
void holds() {
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  if (__builtin_cpu_supports("avx2") == 0)
    return;
  alignas(32) static thread_local unsigned char wanted[32];
  static thread_local struct {
    unsigned char vectors[16 * 32];
    unsigned char zone[15 * 8];
  } after;  // one operand: unoptimized code has too few registers for two
  for (unsigned i = 0; i < sizeof wanted; ++i)
    wanted[i] = static_cast<unsigned char>(i * 7 + steps[10]);
  timespec until{};
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += 5'000'000;
  if (until.tv_nsec >= 1'000'000'000)
    ++until.tv_sec, until.tv_nsec -= 1'000'000'000;
  long answer = 0;
  void* const call = reinterpret_cast<void*>(&syscall);
  clear_the_stack_below();
  asm volatile(
      "mov %%rsp, %%rbx\n lea -1024(%%rsp), %%rsp\n and $-64, %%rsp\n"
      ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n vmovdqa (%[wanted]), %%ymm\\n\n .endr\n"
      "mov (%[wanted]), %%rax\n"
      ".irp n,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16\n mov %%rax, -8*\\n(%%rsp)\n .endr\n"
      "mov %[until], %%rcx\n mov $230, %%edi\n mov $1, %%esi\n mov $1, %%edx\n xor %%r8d, %%r8d\n"
      "call *%[call]\n"
      ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n vmovdqu %%ymm\\n, 32*\\n(%[after])\n .endr\n"
      ".irp n,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16\n mov -8*\\n(%%rsp), %%rcx\n mov %%rcx, "
      "8*\\n+496(%[after])\n "
      ".endr\n"
      "mov %%rbx, %%rsp\n"
      : "=&a"(answer)
      : [wanted] "r"(wanted), [until] "r"(&until), [call] "r"(call), [after] "r"(&after)
      : "rbx",
        "rcx",
        "rdx",
        "rsi",
        "rdi",
        "r8",
        "r9",
        "r10",
        "r11",
        "cc",
        "memory",
        "xmm0",
        "xmm1",
        "xmm2",
        "xmm3",
        "xmm4",
        "xmm5",
        "xmm6",
        "xmm7",
        "xmm8",
        "xmm9",
        "xmm10",
        "xmm11",
        "xmm12",
        "xmm13",
        "xmm14",
        "xmm15");
  check(answer == 0 && errno == 4711, "a sleep until a time was interrupted");
  for (unsigned i = 0; i < sizeof after.vectors; ++i)
    check(after.vectors[i] == wanted[i % 32], "a vector register was changed");
  for (unsigned i = 0; i < sizeof after.zone; ++i)
    check(after.zone[i] == wanted[i % 8], "the red zone was changed");
#endif
}

void allocates() {
  void* parts[64];
  for (unsigned i = 0; i < 64; ++i)
    parts[i] = std::malloc(16 + i * 97 % 4000);
  for (void* part : parts)
    std::free(part);
}

void loads() {
  void* library = dlopen("libresolv.so.2", RTLD_NOW);  // what the program itself has not loaded
  if (library != nullptr)
    check(dlclose(library) == 0, "a library could not be closed");
  timespec pause{0, 500'000};
  nanosleep(&pause, nullptr);
}

/// The one thread there is holds values in registers whenever it waits.
int hold_alone() {
  std::puts("ready");
  std::fflush(stdout);
  for (pollfd end{STDIN_FILENO, POLLIN, 0}; poll(&end, 1, 0) == 0; ++steps[10]) {
    errno = 4711;
    holds();
  }
  std::printf("%s %lu\n", wrong.load() == nullptr ? "ok" : wrong.load(), steps[10].load());
  return wrong.load() == nullptr ? 0 : 1;
}

/// Whether each thread takes a step and a signal of our own comes, from now on. Waits for it for
/// minutes.
bool all_advance() {
  unsigned long steps_before[std::size(steps)];
  for (std::size_t i = 0; i < std::size(steps); ++i)
    steps_before[i] = steps[i];
  const unsigned long ticks_before = ticks;
  const auto latest = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  const auto advanced = [&] {
    bool all = ticks > ticks_before;
    for (std::size_t i = 0; i < std::size(steps); ++i)
      all &= steps[i] > steps_before[i];
    return all;
  };
  while (!advanced()) {
    if (std::chrono::steady_clock::now() > latest)
      return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace

int main(int argc, char**) {
  if (argc > 1)
    return hold_alone();
  struct sigaction action {};
  action.sa_handler = [](int) { ++ticks; };
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  int pipes[2];
  if (pipe(pipes) != 0)
    return 1;
  std::mutex mutex;
  std::condition_variable changed;
  unsigned long given = 0, taken = 0;
  std::vector<std::thread> threads;
  threads.emplace_back(loop, 0, sleeps);
  threads.emplace_back(loop, 1, computes);
  threads.emplace_back(loop, 2, [&] {
    const unsigned long value = steps[2];
    check(write(pipes[1], &value, sizeof value) == sizeof value, "a write was cut");
    timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
  });
  threads.emplace_back(loop, 3, [&, expected = 0ul]() mutable {
    pollfd polled{pipes[0], POLLIN, 0};
    const int ready = poll(&polled, 1, 1000);
    check(ready >= 0, "poll was interrupted");
    unsigned long value = 0;
    if (ready == 1)
      check(read(pipes[0], &value, sizeof value) == sizeof value && value == expected++,
            "a read was cut");
  });
  threads.emplace_back(loop, 4, [&] {
    std::unique_lock lock(mutex);
    ++given;
    changed.notify_all();
    changed.wait_for(lock, std::chrono::seconds(1), [&] { return taken == given || over; });
  });
  threads.emplace_back(loop, 5, [&] {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::seconds(1), [&] { return taken < given || over; });
    taken = given;
    changed.notify_all();
  });
  threads.emplace_back(loop, 6, [] {
    std::thread([] {
      errno = 4711;
      computes();
    }).join();
    timespec pause{0, 2'000'000};
    nanosleep(&pause, nullptr);
  });
  threads.emplace_back(loop, 7, [] {
    const pid_t child = fork();
    if (child == 0)
      _exit(42);
    int status = 0;
    check(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42,
          "a child ended otherwise");
    timespec pause{0, 20'000'000};
    nanosleep(&pause, nullptr);
  });
  threads.emplace_back(loop, 8, allocates);
  threads.emplace_back(loop, 9, loads);
  threads.emplace_back(loop, 10, holds);
  const itimerval often{{0, 5000}, {0, 5000}};
  setitimer(ITIMER_REAL, &often, nullptr);
  check(all_advance(), "a thread did not begin");
  std::puts("ready");
  std::fflush(stdout);
  char byte = 0;
  check(read(STDIN_FILENO, &byte, 1) == 0, "read was interrupted");
  check(all_advance(), "a thread stands still, or no signal comes any more");
  over = true;
  changed.notify_all();
  for (std::thread& thread : threads)
    thread.join();
  std::printf("%s", wrong.load() == nullptr ? "ok" : wrong.load());
  for (const auto& each : steps)
    std::printf(" %lu", each.load());
  std::printf(" signals %lu\n", ticks.load());
  return wrong.load() == nullptr ? 0 : 1;
}
