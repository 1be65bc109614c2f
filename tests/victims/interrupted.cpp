// Programs that fork, cancel, jump and die while hooks are under way: `interrupted SCENARIO TRUTH
// [SEED]`. In the file TRUTH they count what they did, in shared memory, so that it survives
// whatever ends them.
//
// None prints anything that depends on whether a tool is there.
#include <fcntl.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "truth.hpp"

// AddressSanitizer's runtime takes down its own alternate stack as a thread ends, and calls it an
// overflow where the thread was cancelled, also without the library. Other runtimes do not ask.
extern "C" const char* __asan_default_options() {
  return "use_sigaltstack=0";
}

namespace {

// The allocator of AddressSanitizer's runtime stays locked in a child that was forked while another
// thread allocated, also without the library: such a child can start no thread.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kForkedChildrenAllocate = false;
#else
constexpr bool kForkedChildrenAllocate = true;
#endif

Truth* truth = nullptr;
std::uint32_t seed = 1;

// Ends a child that hangs, by the signal's default action; on a busy machine it takes its time.
constexpr unsigned kPatienceS = 120;

void pair(const char* name = "pair") {
  truth->begun.fetch_add(1);
  nvtxRangePushA(name);
  nvtxRangePop();
  truth->done.fetch_add(1);
}

void leaf(const char* name) {
  nvtxRangePushA(name);
  nvtxRangePop();
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// Everything that is made once and found again.
void make_all(unsigned number) {
  char name[32];
  std::snprintf(name, sizeof name, "D%u", number % 64);
  const nvtxDomainHandle_t domain = nvtxDomainCreateA(name);
  std::snprintf(name, sizeof name, "S%u", number % 1024);
  nvtxEventAttributes_t a = {};
  a.version = NVTX_VERSION;
  a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  a.message.registered = nvtxDomainRegisterStringA(domain, name);
  nvtxDomainRangePushEx(domain, &a);
  nvtxDomainRangePop(domain);
}

void on_signal(int signal, void (*handler)(int), int flags = SA_RESTART) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(signal, &action, nullptr);
}

void alarms(int every_us) {
  const itimerval often = {{0, every_us}, {0, every_us}};
  setitimer(ITIMER_REAL, &often, nullptr);
}

// ---- fork
// ----------------------------------------------------------------------------------------------------------
// One thread makes domains and strings while another forks.
int fork_while_registering() {
  nvtxInitialize(nullptr);
  std::atomic<bool> stop{false};
  std::vector<std::thread> makers;
  for (int i = 0; i < 2; ++i) {
    makers.emplace_back([&stop] {
      for (unsigned n = 0; !stop; ++n)
        make_all(n);
    });
  }
  int hung = 0;
  for (int i = 0; i < 100; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(kPatienceS);
      for (unsigned n = 0; n < 4; ++n)
        make_all(n);
      pair();
      _exit(0);
    }
    if (wait_for(child) != 0)
      ++hung;
  }
  stop = true;
  for (std::thread& maker : makers)
    maker.join();
  std::printf("hung %d\n", hung);
  return 0;
}

// In the child another thread than the one that forked comes first.
int fork_then_thread() {
  leaf("parent");
  const pid_t child = fork();
  if (child == 0) {
    std::thread([] { leaf("thread of child"); }).join();
    const nvtxRangeId_t id = nvtxRangeStartA("span of child");
    leaf("child");
    nvtxRangeEnd(id);
    _exit(0);
  }
  wait_for(child);
  leaf("parent");
  return 0;
}

// ---- cancellation
// --------------------------------------------------------------------------------------------------
// NVTX is called with a mutex held, which is right as long as no call of NVTX is a cancellation
// point.
int cancel_with_lock() {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static std::atomic<int> step;
  nvtxInitialize(nullptr);
  int locked = 0;
  for (int i = 0; i < 50; ++i) {
    step = 0;
    pthread_t thread;
    const auto body = [](void*) -> void* {
      pthread_mutex_lock(&lock);
      step = 1;
      while (step < 2)
        sched_yield();
      pair();  // the first of its thread: opens the file
      for (int n = 0; n < 2000; ++n)
        pair();  // and again
      pthread_mutex_unlock(&lock);
      pthread_testcancel();
      return nullptr;
    };
    if (pthread_create(&thread, nullptr, body, nullptr) != 0)
      return 1;
    while (step < 1)
      sched_yield();
    pthread_cancel(thread);
    step = 2;
    void* result = nullptr;
    pthread_join(thread, &result);
    if (result != PTHREAD_CANCELED)
      return 2;
    if (pthread_mutex_trylock(&lock) != 0) {
      ++locked;
      pthread_mutex_init(&lock, nullptr);
    } else {
      pthread_mutex_unlock(&lock);
    }
  }
  std::printf("locked %d\n", locked);
  return 0;
}

// ---- signal handlers
// -----------------------------------------------------------------------------------------------
volatile sig_atomic_t alarmed = 0;

int handler_registers() {
  nvtxInitialize(nullptr);
  on_signal(SIGALRM, [](int) {
    alarmed = alarmed + 1;
    make_all(static_cast<unsigned>(alarmed));
  });
  alarms(50);
  for (unsigned n = 0; alarmed < 3000; ++n)
    make_all(n);
  alarms(0);
  for (int i = 0; i < 5; ++i)
    leaf("calm");
  return 0;
}

sigjmp_buf back;

void jump(int) {
  siglongjmp(back, 1);
}

__attribute__((noinline)) void deeper(int depth) {
  char room[300];
  std::snprintf(room, sizeof room, "%d", depth);
  if (depth > 0)
    deeper(depth - 1);
  else
    pair();
  truth->others.fetch_add(room[0] == 'x' ? 1 : 0);
}

// A handler never comes back to what it interrupted, mostly a hook.
int handler_jumps(bool own_stack, int depth) {
  nvtxInitialize(nullptr);
  static char memory[256 * 1024];
  if (own_stack) {
    stack_t stack = {};
    stack.ss_sp = memory;
    stack.ss_size = sizeof memory;
    sigaltstack(&stack, nullptr);
  }
  on_signal(SIGALRM, jump, own_stack ? SA_ONSTACK : 0);
  static volatile int jumps;
  jumps = 0;
  char name[32];
  static volatile unsigned number;
  number = 0;
  if (sigsetjmp(back, 1) != 0)
    jumps = jumps + 1;
  alarms(100);
  while (jumps < 1000) {
    if (depth > 0) {
      pair();
      for (int i = 0; i < 20; ++i)
        deeper(depth + i % 3);
    } else {
      pair();
      number = number + 1;
      std::snprintf(name,
                    sizeof name,
                    "name %u",
                    number);  // ever new ones: definitions are left behind as well
      pair(name);
    }
  }
  alarms(0);
  on_signal(SIGALRM, SIG_IGN);
  for (int i = 0; i < 5; ++i)
    leaf("calm");
  return 0;
}

// ---- killed from outside
// -------------------------------------------------------------------------------------------
int work_for_ever() {
  nvtxInitialize(nullptr);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([] {
      for (;;)
        pair();
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  return 0;
}

// ---- all at once
// ---------------------------------------------------------------------------------------------------
// Threads that work and are cancelled, forks, handlers that record, jump and end the program: by
// the seed.
class Schedule {
 public:
  int run() {
    nvtxInitialize(nullptr);
    on_signal(SIGUSR1, [](int) { make_all(7); });
    on_signal(SIGUSR2, [](int) {
      pair();
      leaf("handler");
    });
    on_signal(SIGALRM, [](int) { leaf("tick"); });
    if (seed % 2 == 0)
      alarms(200 + static_cast<int>(seed % 7) * 100);
    for (int i = 0; i < 3; ++i)
      begin_worker();
    for (int step = 0; step < 60; ++step)
      one_step();
    return finish();
  }

 private:
  std::mt19937 random_{seed};
  std::vector<pthread_t> workers_;

  unsigned pick(unsigned below) { return static_cast<unsigned>(random_() % below); }

  void begin_worker() {
    pthread_t thread;
    const auto body = [](void* own) -> void* {
      std::mt19937 random(static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(own)));
      for (;;) {
        const auto what = random() % 16;
        if (what == 0)
          make_all(static_cast<unsigned>(random()));
        else if (what == 1)
          pthread_testcancel();
        else
          pair();
      }
    };
    if (pthread_create(&thread,
                       nullptr,
                       body,
                       reinterpret_cast<void*>(static_cast<std::uintptr_t>(random_()))) == 0)
      workers_.push_back(thread);
  }

  void end_worker() {
    const std::size_t at = pick(static_cast<unsigned>(workers_.size()));
    pthread_cancel(workers_[at]);
    pthread_join(workers_[at], nullptr);
    workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  // The child of a program with threads does little and ends.
  void fork_one() {
    const unsigned how = pick(5);
    const pid_t child = fork();
    if (child == 0) {
      on_signal(SIGALRM, SIG_DFL);
      alarm(kPatienceS);
      for (int i = 0; i < 20; ++i)
        pair();
      make_all(how);
      if (how == 0 && kForkedChildrenAllocate)
        std::thread([] { pair(); }).join();
      if (how == 1)
        kill(getpid(), SIGKILL);
      if (how == 2) {
        const pid_t grandchild = fork();
        if (grandchild == 0) {
          pair();
          _exit(0);
        }
        wait_for(grandchild);
      }
      _exit(static_cast<int>(how));
    }
    const int status = wait_for(child);
    const bool expected = how == 1
                              ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                              : WIFEXITED(status) && WEXITSTATUS(status) == static_cast<int>(how);
    if (!expected)
      truth->others.fetch_add(1);
  }

  void one_step() {
    switch (pick(8)) {
      case 0: fork_one(); break;
      case 1:
        if (workers_.size() < 6)
          begin_worker();
        break;
      case 2:
        if (workers_.size() > 1)
          end_worker();
        break;
      case 3: pthread_kill(workers_[pick(static_cast<unsigned>(workers_.size()))], SIGUSR1); break;
      case 4: pthread_kill(workers_[pick(static_cast<unsigned>(workers_.size()))], SIGUSR2); break;
      case 5: make_all(pick(1000)); break;
      default:
        for (int i = 0; i < 50; ++i)
          pair();
    }
  }

  int finish() {
    alarms(0);
    const unsigned how = pick(6);
    std::printf("seed %u ends by %u\n", seed, how);
    std::fflush(stdout);
    switch (how) {
      case 0: kill(getpid(), SIGKILL); break;
      case 1: _exit(11);
      case 2: std::abort();
      case 3:
        on_signal(SIGTERM, [](int) { _exit(12); });
        pthread_kill(workers_.front(), SIGTERM);
        for (;;)
          pair();
      case 4:
        while (!workers_.empty())
          end_worker();
        return 13;
      default: break;
    }
    std::fflush(stdout);
    _exit(14);
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3)
    return 64;
  truth = Truth::open(argv[2]);
  if (truth == nullptr)
    return 74;
  if (argc > 3)
    seed = static_cast<std::uint32_t>(std::strtoul(argv[3], nullptr, 10));
  const std::map<std::string, std::function<int()>> scenarios = {
      {"fork_while_registering", fork_while_registering},
      {"fork_then_thread", fork_then_thread},
      {"cancel_with_lock", cancel_with_lock},
      {"handler_registers", handler_registers},
      {"handler_jumps", [] { return handler_jumps(false, 0); }},
      {"handler_jumps_from_own_stack", [] { return handler_jumps(true, 0); }},
      {"handler_jumps_and_calls_go_deeper", [] { return handler_jumps(false, 3); }},
      {"work_for_ever", work_for_ever},
      {"schedule", [] { return Schedule().run(); }}};
  const auto scenario = scenarios.find(argv[1]);
  return scenario == scenarios.end() ? 64 : scenario->second();
}
