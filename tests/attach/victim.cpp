// Checks itself while somebody attaches to it: system calls that are not interrupted, values in registers, errno,
// signals of its own, threads and children that come and go. Prints "ready", runs until its standard input ends, then
// prints "ok" and what it did, or what went wrong, and ends by 0 or 1.
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace {

std::atomic<bool> over{false};
std::atomic<unsigned long> ticks{0};
std::atomic<const char*> wrong{nullptr};
std::atomic<unsigned long> steps[8];

void check(bool good, const char* what) {
  if (!good) wrong = what;
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
  check((ended.tv_sec - begun.tv_sec) * 1'000'000'000 + ended.tv_nsec - begun.tv_nsec >= wish.tv_nsec,
        "it slept too short");
}

/// Sums that are exact in floating point; the loop keeps them in vector registers and below the stack pointer.
void computes() {
  double sums[8] = {};
  for (int i = 1; i <= 20'000; ++i)
    for (int lane = 0; lane < 8; ++lane) sums[lane] += i * (lane + 1);
  for (int lane = 0; lane < 8; ++lane) check(sums[lane] == 200'010'000.0 * (lane + 1), "a sum is wrong");
  check(errno == 4711, "errno was changed");
}

}  // namespace

int main() {
  struct sigaction action {};
  action.sa_handler = [](int) { ++ticks; };
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  int pipes[2];
  if (pipe(pipes) != 0) return 1;
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
      check(read(pipes[0], &value, sizeof value) == sizeof value && value == expected++, "a read was cut");
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
    if (child == 0) _exit(42);
    int status = 0;
    check(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42,
          "a child ended otherwise");
    timespec pause{0, 20'000'000};
    nanosleep(&pause, nullptr);
  });
  const itimerval often{{0, 5000}, {0, 5000}};
  setitimer(ITIMER_REAL, &often, nullptr);
  std::puts("ready");
  std::fflush(stdout);
  char byte = 0;
  check(read(STDIN_FILENO, &byte, 1) == 0, "read was interrupted");
  over = true;
  changed.notify_all();
  for (std::thread& thread : threads) thread.join();
  check(ticks > 0, "no signal of its own came");
  for (const auto& each : steps) check(each > 0, "a thread stood still");
  std::printf("%s", wrong.load() == nullptr ? "ok" : wrong.load());
  for (const auto& each : steps) std::printf(" %lu", each.load());
  std::printf(" signals %lu\n", ticks.load());
  return wrong.load() == nullptr ? 0 : 1;
}
