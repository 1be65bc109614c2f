#include "profile/windows.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/fs.hpp"
#include "base/held_folder.hpp"
#include "base/log.hpp"
#include "base/server.hpp"
#include "base/text.hpp"
#include "sample/blocks.hpp"
#include "wire/control.hpp"
#include "wire/cpu.hpp"
#include "wire/launched.hpp"

namespace rangescope::profile {
namespace {

namespace fs = std::filesystem;
namespace control = wire::control;
using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

std::string reason() {
  return std::strerror(errno);
}

/// Mode 0600 from its first moment on: Linux gives a socket's file the mode of the socket.
base::Result<int> listen_in(const fs::path& folder) {
  const int at = ::open(base::in_place(folder).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // A path of the run may be longer than an address may be.
  const std::string path = fmt::format("/proc/self/fd/{}/{}", at, control::kSocket);
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const bool good = at >= 0 && fd >= 0 && ::fchmod(fd, 0600) == 0 &&
                    ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                    ::listen(fd, base::Server::kMostClients) == 0;
  const std::string why = reason();
  if (at >= 0) ::close(at);
  if (good) return fd;
  if (fd >= 0) ::close(fd);
  return base::fail(base::Code::kIo, "no socket can be made: " + why, (folder / control::kSocket).string(),
                    "Name a folder on a local disk: --runs DIR");
}

/// A process of the program that uses CUDA turns its timeline on within this time (inject/cupti/trace.cpp).
constexpr auto kWaking = std::chrono::milliseconds(30);

bool records_gpu(const fs::path& captures) {
  std::error_code error;
  for (fs::directory_iterator entry(captures, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == ".gpu") return true;
  return false;
}

bool is_of_this_user(int client) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && (peer.uid == ::geteuid() || peer.uid == 0);
}

}  // namespace

base::Result<WindowChoice::Counted> parse_counted(const std::string& text) {
  const auto colon = text.rfind(':');
  const std::string numbers = colon == std::string::npos ? "" : text.substr(colon + 1);
  const auto dash = numbers.find('-');
  const auto first = base::to_uint(numbers.substr(0, dash));
  const auto last = dash == std::string::npos ? first : base::to_uint(numbers.substr(dash + 1));
  constexpr std::uint64_t kMost = 1u << 31;
  if (!first || !last || *first == 0 || *last < *first || *last > kMost || colon == 0 ||
      colon >= sizeof control::Page::name)
    return base::fail(base::Code::kUsage, "'" + base::printable(text) + "' names no occurrences of a range", "--window",
                      "Write a range, the first and the last one: --window step:100-110");
  return WindowChoice::Counted{text.substr(0, colon), static_cast<std::uint32_t>(*first),
                               static_cast<std::uint32_t>(*last)};
}

struct Windows::State {
  fs::path captures;
  WindowChoice choice;
  SampleChoice sampling;
  int page_file = -1, wake = -1;
  base::Server server;
  std::atomic<pid_t> program{0};
  std::atomic<bool> over{false};
  std::atomic<std::uint32_t> windows{0};  ///< so many were opened
  std::thread thread;

  // of the thread
  control::Page page{};
  bool begun = false;  ///< the program was seen
  std::int64_t program_ns = 0;
  std::optional<Clock::time_point> opens, closes;
  std::optional<sample::cpu::Recorder> recorder;
  wire::launched::Launched open;                     ///< start_ns 0: none is
  std::set<std::pair<pid_t, std::uint32_t>> naming;  ///< processes that name what was sampled in a window

  ~State();
  void run();
  void turn();
  [[nodiscard]] std::string sample_cpu(std::uint32_t window);
  void opened(std::int64_t start_ns);
  [[nodiscard]] std::string start();
  [[nodiscard]] std::string stop();
  [[nodiscard]] std::string status();
  [[nodiscard]] std::string answer(std::string_view request);
  [[nodiscard]] fs::path folder_of(std::uint32_t window) const {
    return captures / (control::kWindow + std::to_string(window));
  }
  [[nodiscard]] bool publish() const;
  void follow_count();
  void note(std::uint32_t window) const {
    (void)base::write_file(folder_of(window) / wire::launched::kFile, wire::launched::text_of(open));
  }
  void name_in_child(std::uint32_t window);
  void bury(bool wait);
};

Windows::State::~State() {
  for (const int fd : {page_file, wake})
    if (fd >= 0) ::close(fd);
}

/// Written, not stored through a map: whoever cuts the file must not end us.
bool Windows::State::publish() const {
  constexpr std::size_t kOurs = offsetof(control::Page, counts);  // what follows the program writes
  return ::pwrite(page_file, &page, kOurs, 0) == static_cast<ssize_t>(kOurs);
}

/// What was sampled gets its names in a child, which may take seconds and much memory for them.
void Windows::State::name_in_child(std::uint32_t window) {
  if (!recorder) return;
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    std::set_new_handler(nullptr);
    recorder->finish();
    ::_exit(0);
  }
  if (child > 0)
    naming.emplace(child, window);
  else
    recorder->finish();
  recorder.reset();
}

void Windows::State::bury(bool wait) {
  std::erase_if(naming, [&](const auto& one) {
    pid_t got = 0;
    do {
      got = ::waitpid(one.first, nullptr, wait ? 0 : WNOHANG);
    } while (got < 0 && errno == EINTR);
    return got != 0;
  });
}

/// The program opens and closes the window that --window asks for: its CPU is sampled from the occurrence before on.
void Windows::State::follow_count() {
  if (page.first == 0 || !begun) return;
  control::Page now{};
  if (::pread(page_file, &now, sizeof now, 0) != static_cast<ssize_t>(sizeof now)) return;
  if (open.start_ns == 0 && !recorder && now.dormant != control::kDormant) (void)sample_cpu(1);
  if (open.start_ns == 0 && now.start_ns != 0 && now.pushed >= page.first) {
    page.start_ns = now.start_ns;
    page.dormant = 0;
    opened(now.start_ns);
  }
  if (open.start_ns == 0 || now.first != 0) return;
  page.first = 0;
  page.dormant = control::kDormant;
  open.end_ns = now.end_ns;
  (void)stop();
}

std::string Windows::State::sample_cpu(std::uint32_t window) {
  const sample::cpu::Running which{static_cast<std::uint32_t>(program), true, true};
  auto cpu = begin_cpu(sampling, folder_of(window), &which);
  if (cpu && *cpu) recorder.emplace(std::move(**cpu));
  return cpu ? "" : "; the CPU is not sampled: " + base::to_string(cpu.error());
}

void Windows::State::opened(std::int64_t start_ns) {
  windows = page.window;
  open = {};
  open.start_ns = start_ns;
  open.start_unix_ns =
      std::chrono::duration_cast<nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count() -
      (sample::now_ns() - start_ns);
  open.attached_pid = static_cast<std::uint32_t>(program);
  open.ran_ns = std::max<std::int64_t>(0, start_ns - program_ns);
  open.window = page.window;
  note(page.window);
}

std::string Windows::State::start() {
  if (open.start_ns != 0) return fmt::format("error window {} is open already\n", open.window);
  const pid_t pid = program;
  if (pid == 0 || over) return "error the program does not run\n";
  if (page.first != 0) return "error the window of --window is to come\n";
  const std::uint32_t window = windows + 1;
  const fs::path folder = folder_of(window);
  std::error_code error;
  fs::create_directories(base::in_place(folder), error);
  if (error) return "error cannot make the window's folder: " + error.message() + "\n";
  page.dormant = control::kWaking;
  (void)publish();
  const auto woken = Clock::now();
  const std::string unsampled = sample_cpu(window);
  if (records_gpu(captures)) std::this_thread::sleep_until(woken + kWaking);
  page.window = window;
  page.start_ns = sample::now_ns();
  if (publish()) {
    page.dormant = 0;
    (void)publish();
  }
  opened(page.start_ns);
  if (choice.length) closes = Clock::now() + *choice.length;
  return fmt::format("ok window {} is open{}\n", window, unsampled);
}

std::string Windows::State::stop() {
  if (open.start_ns == 0) return "error no window is open\n";
  page.dormant = control::kDormant;
  (void)publish();
  if (open.end_ns == 0) open.end_ns = sample::now_ns();
  if (recorder) recorder->stop();
  note(open.window);
  name_in_child(open.window);
  const std::string text = fmt::format("ok window {} is over\n", open.window);
  open = {};
  closes.reset();
  return text;
}

std::string Windows::State::status() {
  bury(false);
  std::uint32_t ready = windows - (open.start_ns != 0 ? 1 : 0);
  for (const auto& [child, window] : naming) ready = std::min(ready, window - 1);
  return fmt::format("ok {}\nwindow {}\nready {}\nprogram {}\n", open.start_ns != 0 ? "recording" : "dormant",
                     windows.load(), ready, program.load());
}

std::string Windows::State::answer(std::string_view request) {
  if (request == "start") return start();
  if (request == "stop") return stop();
  if (request == "status") return status();
  return "error unknown request\n";
}

/// All that is due.
void Windows::State::turn() {
  if (!begun && program != 0) {
    begun = true;
    program_ns = sample::now_ns();
    if (!choice.stopped && !choice.counted) opens = Clock::now() + choice.after.value_or(nanoseconds(0));
  }
  follow_count();
  const auto now = Clock::now();
  if (opens && now >= *opens) {
    opens.reset();
    if (const std::string said = start(); !said.starts_with("ok")) base::warn(said);
  }
  if (closes && now >= *closes && open.start_ns != 0) {
    const std::uint32_t window = open.window;
    (void)stop();
    base::info(fmt::format("window {} is over; the program goes on. Its report: rangescope ctl {} report", window,
                           program.load()));
  }
  bury(false);
  constexpr std::size_t kMost = 4096;
  server.serve(
      [this](std::string_view request, bool whole) {
        return whole && request.size() < kMost ? answer(request) : std::string("error too long\n");
      },
      is_of_this_user);
}

void Windows::State::run() {
  try {
    while (!over) {
      std::vector<pollfd> list{{wake, POLLIN, 0}};
      server.wait_for(list);
      auto until = Clock::now() + std::chrono::seconds(list.size() > 2 || !naming.empty() ? 1 : 3600);
      constexpr auto kLook = std::chrono::milliseconds(5);  // at what the program counts
      if (page.first != 0) until = std::min(until, Clock::now() + kLook);
      for (const auto& due : {opens, closes})
        if (due) until = std::min(until, *due);
      const auto wait = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
      (void)::poll(list.data(), list.size(), static_cast<int>(std::max<std::int64_t>(wait, 0)));
      std::uint64_t times = 0;
      (void)!::read(wake, &times, sizeof times);
      turn();
    }
  } catch (const std::exception& error) {
    base::warn(std::string("windows can no longer be opened or closed: ") + error.what());
  }
  follow_count();
  if (open.start_ns != 0) (void)stop();
  bury(true);  // they end with this thread
}

base::Result<std::unique_ptr<Windows>> Windows::begin(const fs::path& captures, const WindowChoice& choice,
                                                      const SampleChoice& sampling) {
  auto state = std::make_unique<State>();
  state->captures = captures;
  state->choice = choice;
  state->sampling = sampling;
  std::error_code error;
  fs::create_directories(base::in_place(captures), error);
  const fs::path page = captures / control::kFile;
  state->page_file = ::open(base::in_place(page).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  std::memcpy(state->page.magic, control::kMagic, sizeof state->page.magic);
  state->page.dormant = control::kDormant;
  if (choice.counted) {
    state->page.first = choice.counted->first;
    state->page.last = choice.counted->last;
    choice.counted->range.copy(state->page.name, sizeof state->page.name - 1);
    state->page.window = 1;
    fs::create_directories(base::in_place(state->folder_of(1)), error);
    if (state->page.first == 1) state->page.dormant = control::kWaking;
  }
  if (state->page_file < 0 || ::pwrite(state->page_file, &state->page, sizeof state->page, 0) != control::kBytes)
    return base::fail(base::Code::kIo, "cannot be written: " + reason(), page.string());
  state->wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (state->wake < 0) return base::fail(base::Code::kIo, "no descriptor is left: " + reason());
  auto listening = listen_in(captures);
  if (!listening) return base::fail(std::move(listening));
  constexpr std::size_t kMostRequest = 256;
  state->server.take(*listening, "\n", kMostRequest);
  sigset_t all, before;  // signals are for the thread that runs the program
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    state->thread = std::thread([own = state.get()] { own->run(); });
  } catch (const std::system_error& none) {
    error = none.code();
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error)
    return base::fail(base::Code::kPermission, "no thread can be started: " + error.message(), {}, "Raise ulimit -u");
  return std::unique_ptr<Windows>(new Windows(std::move(state)));
}

Windows::Windows(std::unique_ptr<State> state) : state_(std::move(state)) {}

Windows::~Windows() {
  ended();
}

void Windows::started(pid_t program) {
  state_->program = program;
  const std::uint64_t one = 1;
  (void)!::write(state_->wake, &one, sizeof one);
}

void Windows::ended() {
  if (!state_->thread.joinable()) return;
  state_->over = true;
  const std::uint64_t one = 1;
  (void)!::write(state_->wake, &one, sizeof one);
  state_->thread.join();
  std::error_code ignored;
  fs::remove(base::in_place(state_->captures / control::kSocket), ignored);
  if (state_->windows == 0) fs::remove_all(base::in_place(state_->folder_of(1)), ignored);  // made before it was opened
}

std::uint32_t Windows::count() const {
  return state_->windows;
}

}  // namespace rangescope::profile
