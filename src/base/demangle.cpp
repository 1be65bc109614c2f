#include "base/demangle.hpp"

#define HAVE_DECL_BASENAME 1  // libiberty declares its own otherwise
#include <libiberty/demangle.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <ctime>
#include <mutex>

namespace rangescope::base {
namespace {

// libiberty's demangler (2.40; libstdc++'s __cxa_demangle is the same code) has no bound, and needs
// one twice: each substitution can double what is printed, and a template argument behind `operator
// T_` is parsed twice
// ("_ZcvT_IT_I..."), nested 2^n times. It allocates nothing and takes no lock, so that it can be
// left in the middle.
constexpr std::size_t kMostBytes = std::size_t{64} << 10;
constexpr int kQuick = 12;  // references to earlier parts: with fewer, nothing takes long
constexpr long kPatience_ns = 100'000'000, kLeast_ns = 1'000'000;
constexpr int kMostInVain = 20;
constexpr int kSignal = SIGVTALRM;

struct Text {
  std::string plain;
  std::size_t limit;
  sigjmp_buf leave;
};
thread_local sigjmp_buf* volatile late = nullptr;
std::mutex g_one_at_a_time;

void append(const char* piece, std::size_t size, void* opaque) {
  Text& text = *static_cast<Text*>(opaque);
  if (text.plain.size() + size > text.limit)
    ::siglongjmp(text.leave, 1);
  text.plain.append(piece, size);  // within what was reserved
}

void on_time(int) {
  if (late != nullptr)
    ::siglongjmp(*late, 1);
}

/// Of this thread's own time: a busy machine does not shorten it. The signal is ours only while it
/// runs: base::Signals passes on what comes at other times.
class TimeLimit {
 public:
  explicit TimeLimit(long ns) : alone_(g_one_at_a_time) {
    struct sigaction action {};
    action.sa_handler = on_time;
    sigset_t mine;
    sigemptyset(&mine);
    sigaddset(&mine, kSignal);
    handled_ = ::sigaction(kSignal, &action, &old_) == 0;
    ::pthread_sigmask(SIG_UNBLOCK, &mine, &mask_);
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = kSignal;
    event._sigev_un._tid = static_cast<pid_t>(::syscall(SYS_gettid));
    made_ = handled_ && ::timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer_) == 0;
    const itimerspec time{{}, {0, ns}};
    running_ = made_ && ::timer_settime(timer_, 0, &time, nullptr) == 0;
  }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;
  ~TimeLimit() {
    if (made_)
      ::timer_delete(timer_);  // and what it has sent that did not arrive
    ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
    if (handled_)
      ::sigaction(kSignal, &old_, nullptr);
  }
  [[nodiscard]] bool running() const { return running_; }

 private:
  std::lock_guard<std::mutex> alone_;
  struct sigaction old_ {};
  sigset_t mask_{};
  timer_t timer_{};
  bool handled_ = false, made_ = false, running_ = false;
};

bool is_rust(const std::string& mangled) {
  return mangled.starts_with("_R");
}

bool print(const std::string& mangled, Text& text) {
  if (sigsetjmp(text.leave, 1) != 0)
    return false;
  // Rust's own (_R...), and its older ones, which are C++ names with a hash behind them.
  if (::rust_demangle_callback(mangled.c_str(), DMGL_PARAMS, append, &text) != 0)
    return true;
  text.plain.clear();
  return !is_rust(mangled) && ::cplus_demangle_v3_callback(
                                  mangled.c_str(), DMGL_PARAMS | DMGL_TYPES, append, &text) != 0;
}

bool print_in_time(const std::string& mangled, Text& text) {
  static std::atomic<int> in_vain = 0;
  sigjmp_buf too_late;
  const TimeLimit timer(in_vain < kMostInVain ? kPatience_ns : kLeast_ns);
  if (!timer.running())
    return false;
  if (sigsetjmp(too_late, 1) != 0) {
    late = nullptr;
    ++in_vain;
    return false;
  }
  late = &too_late;
  const bool done = print(mangled, text);
  late = nullptr;
  return done;
}

}  // namespace

std::string demangle(const std::string& mangled) {
  if (!mangled.starts_with("_Z") && !is_rust(mangled))
    return mangled;  // "f" is a type too
  Text text{{}, std::min(4096 + 32 * mangled.size(), kMostBytes), {}};
  text.plain.reserve(text.limit);
  const auto references = std::count(mangled.begin(), mangled.end(), 'S') +
                          std::count(mangled.begin(), mangled.end(), 'T');
  // Rust's demangler prints something at each step, so that its bound is one of time; and it
  // allocates.
  const bool is_quick = references <= kQuick || is_rust(mangled);
  const bool done = is_quick ? print(mangled, text) : print_in_time(mangled, text);
  if (!done)
    return mangled;
  text.plain.shrink_to_fit();
  return std::move(text.plain);
}

}  // namespace rangescope::base
