// Spends its CPU time in known functions under known ranges, and prints how much each had by the
// thread's own CPU clock, as JSON: shares of three functions, one of which has its work inlined;
// sleeps, waits for a lock, and threads.
//
//   shares <mode> <milliseconds of CPU time>
#include <fcntl.h>
#include <nvtx3/nvToolsExt.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

double clock_ms(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}
double cpu_ms() {
  return clock_ms(CLOCK_THREAD_CPUTIME_ID);
}

volatile double g_sum;

}  // namespace

// The clock is asked rarely, so that nearly all time is the function's own.
#define SPEND(work)                   \
  const double until = cpu_ms() + ms; \
  double sum = 0;                     \
  while (cpu_ms() < until)            \
    for (int i = 1; i < 20000; ++i)   \
      sum += (work);                  \
  g_sum = sum

__attribute__((noinline)) void red(double ms) {
  SPEND(1.0 / i);
}
__attribute__((noinline)) void green(double ms) {
  SPEND(static_cast<double>(i) * 1e-9);
}
__attribute__((always_inline)) inline void inner_blue(double ms) {
  SPEND(static_cast<double>(i % 7));
}
__attribute__((noinline)) void blue(double ms) {
  inner_blue(ms);
  g_sum = g_sum + 1;
}
__attribute__((noinline)) void deep(int levels, double ms) {
  if (levels > 0)
    deep(levels - 1, ms);
  else
    red(ms);
  g_sum = g_sum + 1;
}
template <std::size_t kKiB>
__attribute__((noinline)) void wide(double ms) {
  volatile char
      local[kKiB << 10];  // touched: pages that are not there end the kernel's copy of a stack
  for (std::size_t i = 0; i < sizeof local; i += 1024)
    local[i] = 0;
  red(ms);
  g_sum = g_sum + local[0];
}
// A frame as compilers align it: the caller's registers lie where the frame pointer says, not the
// frame's address.
__attribute__((noinline)) void aligned(double ms) {
  alignas(64) volatile char local[256];
  auto* more =
      static_cast<volatile char*>(__builtin_alloca(static_cast<std::size_t>(g_sum) % 64 + 64));
  local[0] = 1;
  more[0] = 1;
  red(ms);
  g_sum = g_sum + local[0] + more[0];
}
// Its frame is found by the frame pointer that the one above saved.
__attribute__((noinline)) void moving(double ms) {
  auto* local =
      static_cast<volatile char*>(__builtin_alloca(static_cast<std::size_t>(g_sum) % 64 + 64));
  local[0] = 1;
  aligned(ms);
  g_sum = g_sum + local[0];
}

namespace {

std::map<std::string, double> g_truth;
double g_handled_ms;

__attribute__((noinline)) void handler(int) {
  red(g_handled_ms);
  g_sum = g_sum + 1;
}
__attribute__((noinline)) void raising(double ms) {
  g_handled_ms = ms;
  raise(SIGUSR1);
  g_sum = g_sum + 1;
}

void timed(const char* name, void (*call)(double), double ms) {
  const double before = cpu_ms();
  nvtxRangePushA(name);
  call(ms);
  nvtxRangePop();
  g_truth[name] += cpu_ms() - before;
}

void shares(double ms, double blue_share = 0.02) {
  nvtxRangePushA("work");
  for (int i = 0; i < 10; ++i) {
    timed("a", red, ms * 0.03);
    timed("b", green, ms * 0.05);
    timed("c", blue, ms * blue_share);
  }
  nvtxRangePop();
}

void nap(double ms) {
  const timespec time{static_cast<time_t>(ms / 1e3), static_cast<long>(ms * 1e6) % 1'000'000'000};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
}

template <class Work>
void walled(const char* name, const Work& work) {
  nvtxRangePushA(name);
  const double before = clock_ms(CLOCK_MONOTONIC);
  work();
  g_truth[name] = clock_ms(CLOCK_MONOTONIC) - before;
  nvtxRangePop();
}

// Each range waits in one way, `times` times for some milliseconds or less.
void short_waits(int times) {
  int ends[2];
  if (pipe(ends) != 0)
    std::exit(1);
  walled("naps", [&] {
    for (int i = 0; i < times; ++i)
      nap(10);
  });
  walled("raw", [&] {
    for (int i = 0; i < times; ++i) {
      const timespec time{0, 3'000'000};
      syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, nullptr);
    }
  });
  walled("polls", [&] {
    for (int i = 0; i < times; ++i) {
      pollfd polled{ends[0], POLLIN, 0};
      poll(&polled, 1, 2);
    }
  });
  std::thread writer([&] {
    for (int i = 0; i < times; ++i) {
      nap(2);
      (void)!write(ends[1], "x", 1);
    }
  });
  walled("reads", [&] {
    char byte;
    for (int i = 0; i < times; ++i)
      (void)!read(ends[0], &byte, 1);
  });
  writer.join();
  char name[] = "/tmp/rangescope-cpu-XXXXXX";
  const int file = mkstemp(name);
  unlink(name);
  walled("syncs", [&] {
    for (int i = 0; i < times; ++i) {
      (void)!pwrite(file, "x", 1, i * 4096);
      fsync(file);
    }
  });
}

// Waits of a millisecond, each after some milliseconds of computing, so that nothing else tells
// when they begin.
void brief_waits(int times) {
  const timespec millisecond{0, 1'000'000};
  const auto between = [&](const auto& wait) {
    return [times, wait] {
      for (int i = 0; i < times; ++i)
        red(7), wait();
    };
  };
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  std::mutex mutex;
  std::condition_variable never;
  walled("naps", between([&] { clock_nanosleep(CLOCK_MONOTONIC, 0, &millisecond, nullptr); }));
  walled("epolls", between([&] {
           epoll_event event{};
           epoll_wait(epoll, &event, 1, 1);
         }));
  walled("conditions", between([&] {
           std::unique_lock lock(mutex);
           never.wait_for(lock, std::chrono::milliseconds(1));
         }));
}

// Its time is the kernel's.
void in_kernel(double ms) {
  static char zeros[1 << 20];
  const int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  const double until = cpu_ms() + ms;
  while (cpu_ms() < until)
    (void)!read(zero, zeros, sizeof zeros);
  close(zero);
}

// One has the lock and computes, the other wants it.
void held(double ms) {
  std::mutex mutex;
  mutex.lock();
  std::thread waiter([&] {
    walled("wants", [&] { mutex.lock(); });
    mutex.unlock();
  });
  nvtxRangePushA("keeps");
  red(ms);
  nvtxRangePop();
  mutex.unlock();
  waiter.join();
}

// One keeps a lock for half a millisecond whenever the other is about to want it.
void short_locks(int times) {
  std::mutex mutex;
  std::atomic<bool> is_held{false}, is_over{false};
  std::thread keeper([&] {
    while (!is_over) {
      mutex.lock();
      is_held = true;
      const double until = clock_ms(CLOCK_MONOTONIC) + 0.5;
      while (clock_ms(CLOCK_MONOTONIC) < until)
        continue;
      mutex.unlock();
      while (is_held && !is_over)
        continue;
    }
  });
  double waited = 0;
  for (int i = 0; i < times; ++i) {
    while (!is_held)
      continue;
    const double before = clock_ms(CLOCK_MONOTONIC);
    mutex.lock();
    waited += clock_ms(CLOCK_MONOTONIC) - before;
    mutex.unlock();
    is_held = false;
  }
  is_over = true;
  keeper.join();
  g_truth["short locks"] = waited;
}

void ping_pong(double ms) {
  int there[2], back[2];
  if (pipe(there) != 0 || pipe(back) != 0)
    std::exit(1);
  std::thread other([&] {
    char byte;
    while (read(there[0], &byte, 1) == 1 && byte == 'x')
      (void)!write(back[1], "x", 1);
  });
  nvtxRangePushA("pings");
  const double before = clock_ms(CLOCK_MONOTONIC), cpu = cpu_ms();
  char byte = 'x';
  while (clock_ms(CLOCK_MONOTONIC) - before < ms)
    (void)!write(there[1], "x", 1), (void)!read(back[0], &byte, 1);
  g_truth["pings"] = clock_ms(CLOCK_MONOTONIC) - before;
  g_truth["pings cpu"] = cpu_ms() - cpu;
  nvtxRangePop();
  (void)!write(there[1], "e", 1);
  other.join();
}

#if defined(__x86_64__)
// Calls through code that was made at run time, without tables, in which the frame pointer is a
// register like others.
void by_made_code(double ms) {
  static const unsigned char kCode[] = {0x53,  // push %rbx
                                        0x55,  // push %rbp
                                        0x48,
                                        0x83,
                                        0xec,
                                        0x28,  // sub $40, %rsp
                                        0x31,
                                        0xed,  // xor %ebp, %ebp
                                        0xff,
                                        0xd7,  // call *%rdi
                                        0x48,
                                        0x83,
                                        0xc4,
                                        0x28,  // add $40, %rsp
                                        0x5d,
                                        0x5b,
                                        0xc3};  // pop, pop, ret
  void* code =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED)
    std::exit(77);
  std::memcpy(code, kCode, sizeof kCode);
  reinterpret_cast<void (*)(void (*)(double), double)>(code)(green, ms);
  g_sum = g_sum + 1;
}
#endif

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "shares";
  const double ms = argc > 2 ? std::atof(argv[2]) : 1000;
  if (mode == "shares") {
    shares(ms);
  } else if (mode == "slower") {  // one function takes twice as long
    shares(ms, 0.04);
  } else if (mode == "deep") {
    nvtxRangePushA("work");
    deep(60, ms);
    nvtxRangePop();
  } else if (mode == "wide") {
    timed("work", wide<40>, ms);
  } else if (mode == "wider") {
    timed("work", wide<100>, ms);
  } else if (mode == "aligned") {
    timed("work", moving, ms);
  } else if (mode == "signal") {
    std::signal(SIGUSR1, handler);
    timed("work", raising, ms);
  } else if (mode == "short") {
    short_waits(static_cast<int>(ms));
  } else if (mode == "brief") {
    brief_waits(static_cast<int>(ms));
  } else if (mode == "held") {
    held(ms);
  } else if (mode == "short_locks") {
    short_locks(static_cast<int>(ms));
  } else if (mode == "kernel") {
    timed("work", in_kernel, ms);
  } else if (mode == "pingpong") {
    ping_pong(ms);
#if defined(__x86_64__)
  } else if (mode == "made") {
    timed("work", by_made_code, ms);
#endif
  } else if (mode == "waits") {
    nvtxRangePushA("work");
    nvtxRangePushA("sleeps");
    double before = clock_ms(CLOCK_MONOTONIC);
    for (int i = 0; i < 10; ++i)
      usleep(static_cast<useconds_t>(ms * 30));
    g_truth["sleeps"] = clock_ms(CLOCK_MONOTONIC) - before;
    nvtxRangePop();
    std::mutex mutex;
    mutex.lock();
    std::thread holder([&] {
      usleep(static_cast<useconds_t>(ms * 300));
      mutex.unlock();
    });
    nvtxRangePushA("locks");
    before = clock_ms(CLOCK_MONOTONIC);
    mutex.lock();
    g_truth["locks"] = clock_ms(CLOCK_MONOTONIC) - before;
    nvtxRangePop();
    holder.join();
    int ends[2];
    if (pipe(ends) != 0)
      return 1;
    std::thread writer([&] {
      usleep(static_cast<useconds_t>(ms * 300));
      (void)!write(ends[1], "x", 1);
    });
    nvtxRangePushA("reads");
    before = clock_ms(CLOCK_MONOTONIC);
    char byte;
    (void)!read(ends[0], &byte, 1);
    g_truth["reads"] = clock_ms(CLOCK_MONOTONIC) - before;
    nvtxRangePop();
    writer.join();
    timed("runs", red, ms * 0.2);
    nvtxRangePop();
  } else if (mode == "threads") {  // a thousand, a few at a time running
    std::vector<std::thread> threads;
    const double each = ms / 1000;
    for (int i = 0; i < 1000; ++i)
      threads.emplace_back([each, i] {
        nvtxRangePushA("thread");
        (i % 2 == 0 ? red : green)(each);
        nvtxRangePop();
      });
    for (std::thread& thread : threads)
      thread.join();
    g_truth["thread"] = ms;
  } else if (mode ==
             "fork") {  // half here, half in a child that was forked and one that was started anew
    nvtxRangePushA("parent");
    red(ms * 0.25);
    nvtxRangePop();
    const pid_t child = fork();
    if (child == 0) {
      nvtxRangePushA("child");
      green(ms * 0.25);
      nvtxRangePop();
      _exit(0);
    }
    waitpid(child, nullptr, 0);
    const pid_t other = fork();
    if (other == 0) {
      execl(argv[0],
            argv[0],
            "shares",
            std::to_string(ms * 0.5).c_str(),
            static_cast<char*>(nullptr));
      _exit(1);
    }
    waitpid(other, nullptr, 0);
  } else if (mode == "faults") {  // what getrusage counts of this thread in each range
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE)),
                      bytes = page * static_cast<std::size_t>(ms);
    auto* memory = static_cast<char*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory == MAP_FAILED)
      return 1;
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    const auto counted = [](const char* name, const auto& work) {
      rusage before{}, after{};
      nvtxRangePushA(name);
      getrusage(RUSAGE_THREAD, &before);
      work();
      getrusage(RUSAGE_THREAD, &after);
      nvtxRangePop();
      g_truth[std::string(name) + " faults"] =
          static_cast<double>(after.ru_minflt - before.ru_minflt);
      g_truth[std::string(name) + " switches"] = static_cast<double>(
          after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw);
    };
    nvtxRangePushA("work");
    counted("touches", [&] {
      for (std::size_t i = 0; i < bytes; i += page)
        memory[i] = 1;
    });
    counted("sleeps", [] {
      for (int i = 0; i < 100; ++i)
        usleep(1000);
    });
    counted("runs", [] { red(300); });
    nvtxRangePop();
  } else if (mode == "killed") {
    nvtxRangePushA("work");
    timed("a", red, ms);
    kill(getpid(), SIGKILL);
  }
  std::printf("{");
  const char* between = "";
  for (const auto& [name, value] : g_truth) {
    std::printf("%s\"%s\": %.3f", between, name.c_str(), value);
    between = ", ";
  }
  std::printf("}\n");
  return 0;
}
