#include "profile/windows.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <functional>
#include <new>
#include <set>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/fs.hpp"
#include "base/held_folder.hpp"
#include "base/log.hpp"
#include "base/server.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "collect/native/trim.hpp"
#include "profile/record.hpp"
#include "read/registry.hpp"
#include "runs/manifest.hpp"
#include "sample/blocks.hpp"
#include "wire/control.hpp"
#include "wire/cpu.hpp"
#include "wire/gpu.hpp"
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
  const int folder_fd = ::open(base::in_place(folder).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const sockaddr_un address = base::address_in(folder_fd, control::kSocket);
  const bool is_listening =
      folder_fd >= 0 && fd >= 0 && ::fchmod(fd, 0600) == 0 &&
      ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::listen(fd, base::Server::kMostClients) == 0;
  const std::string why = reason();
  if (folder_fd >= 0)
    ::close(folder_fd);
  if (is_listening)
    return fd;
  if (fd >= 0)
    ::close(fd);
  return base::fail(base::Code::kIo,
                    "no socket can be made: " + why,
                    (folder / control::kSocket).string(),
                    "Name a folder on a local disk: --runs DIR");
}

/// A process of the program that uses CUDA turns its timeline on within this time
/// (inject/cupti/trace.cpp).
constexpr auto kWaking = std::chrono::milliseconds(30);

bool records_gpu(const fs::path& captures) {
  std::error_code error;
  for (fs::directory_iterator entry(captures, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == wire::gpu::kSuffix)
      return true;
  return false;
}

/// What makes a folder of windows a run: the program is that of `run`.
void finish_mark(const fs::path& run, const fs::path& folder) {
  const auto manifest = runs::read_manifest(run);
  if (!manifest)
    return;
  auto record = RunRecord::begin_rank(folder, manifest->argv, manifest->arguments);
  if (!record)
    return;
  std::error_code error;
  for (const char* file : {"env.json", "cmd.txt"})
    fs::copy_file(run / file, base::in_place(folder / file), error);
  base::Ended left;
  left.left = true;
  left.start_unix_ns = manifest->start_unix_ns;
  (void)record->ended(left);
  (void)record->finish(0, "ok", "", {});
}

/// The program has ended: what it still had open when the mark was made has its length now.
void seal_mark(const fs::path& folder) {
  (void)collect::native::trim_captures(folder / "native");
  auto manifest = runs::read_manifest(base::in_place(folder));
  auto files = runs::prove_files(base::in_place(folder));
  if (!manifest || !files)
    return;
  manifest->files = std::move(*files);
  (void)runs::write_manifest(folder, *manifest);
}

bool is_of_this_user(int client) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == ::geteuid() || peer.uid == 0);
}

/// Lengths of the instances of `range` that ended in a closed window.
model::Distribution lengths_in(const fs::path& window, const std::string& range) {
  model::Distribution lengths_ns;
  read::Options options;
  options.kernels = false;
  options.listed = 0;
  options.keep_begins = true;
  const auto session = read::read_any(window, options);
  if (!session)
    return lengths_ns;
  for (const model::Range& instance : session->ranges) {
    // What was open at an edge may have been longer.
    const bool cut = instance.end_ns >= session->end_ns;
    if (cut || session->strings.view(instance.name) != range)
      continue;
    lengths_ns.add(std::max<std::int64_t>(1, instance.end_ns - instance.start_ns));
  }
  return lengths_ns;
}

/// A distribution as a child of ours sends it.
struct SentLengths {
  model::Moments moments;
  std::array<std::uint64_t, model::Sketch::kBins> bins;
};
static_assert(std::is_trivially_copyable_v<SentLengths>);
static_assert(sizeof(SentLengths) < 65536, "a pipe holds one");

SentLengths sent_lengths(const model::Distribution& lengths_ns) {
  SentLengths sent{lengths_ns.moments, {}};
  const model::Sketch& sketch = lengths_ns.sketch;
  const auto first = sent.bins.begin() + static_cast<std::ptrdiff_t>(sketch.first());
  std::ranges::copy(sketch.counts(), first);
  return sent;
}

model::Distribution received_lengths(const SentLengths& sent) {
  model::Distribution lengths_ns;
  lengths_ns.moments = sent.moments;
  for (std::size_t bin = 0; bin < sent.bins.size(); ++bin)
    if (sent.bins[bin] > 0)
      lengths_ns.sketch.at(bin) = sent.bins[bin];
  return lengths_ns;
}

}  // namespace

struct Windows::State {
  fs::path captures;
  WindowChoice choice;
  SampleChoice sampling;
  int page_file = -1, wake = -1, looking = -1;
  base::Server server;
  std::atomic<pid_t> program{0};
  std::atomic<bool> over{false};
  std::atomic<std::uint32_t> windows{0};  ///< that were opened
  std::thread thread;

  // of the thread
  control::Page page{};
  std::int64_t program_ns = 0;  ///< when the program started
  std::optional<Clock::time_point> opens, closes;
  std::optional<sample::cpu::Recorder> recorder;  ///< of the window that is open
  struct Closed {
    std::uint32_t window;
    std::int64_t end_ns;
    std::optional<sample::cpu::Recorder> recorder;
  };
  std::deque<Closed> ring;      ///< of --keep-last
  model::Distribution seen_ns;  ///< of --when: lengths of the range in the windows so far
  std::uint32_t own_marks = 0;
  std::vector<fs::path> marks;    ///< their folders
  wire::launched::Launched open;  ///< start_ns 0: none is
  std::set<std::pair<pid_t, std::uint32_t>>
      naming;  ///< processes that name what was sampled in a window

  ~State();
  [[nodiscard]] base::Result<void> make_page(bool opens_with_program);
  [[nodiscard]] base::Result<void> start_thread();
  void wake_up() const;
  [[nodiscard]] base::Result<void> open_with_program();
  void run();
  void wait_for_program();
  void turn();
  [[nodiscard]] std::string sample_cpu(std::uint32_t window);
  void opened(std::int64_t start_ns);
  /// Decides when the window that has just opened closes by itself, if its length is limited.
  void plan_close();
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
    (void)base::write_file(folder_of(window) / wire::launched::kFile,
                           wire::launched::text_of(open));
  }
  /// `work` in a child of ours; here where none can be made.
  void in_child(std::uint32_t window, const std::function<void()>& work);
  void bury(bool wait);
  void rotate();
  void look(std::uint32_t window);
  /// What the last look saw, once its child was buried.
  [[nodiscard]] std::optional<model::Distribution> looked();
  void tell_unseen(std::uint32_t last);
  [[nodiscard]] std::string mark(const std::string& name);
};

Windows::State::~State() {
  for (const int fd : {page_file, wake, looking})
    if (fd >= 0)
      ::close(fd);
}

/// Written, not stored through a map: a process that cuts the file must not end us.
bool Windows::State::publish() const {
  constexpr std::size_t kOurs = offsetof(control::Page, counts);  // what follows the program writes
  return ::pwrite(page_file, &page, kOurs, 0) == static_cast<ssize_t>(kOurs);
}

void Windows::State::in_child(std::uint32_t window, const std::function<void()>& work) {
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent)
      ::_exit(1);
    std::set_new_handler(nullptr);
    work();
    ::_exit(0);
  }
  if (child > 0)
    naming.emplace(child, window);
  else
    work();
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

/// The program opens and closes the window that --window asks for: its CPU is sampled from the
/// occurrence before on.
void Windows::State::follow_count() {
  if (page.first == 0)
    return;
  control::Page now{};
  if (::pread(page_file, &now, sizeof now, 0) != static_cast<ssize_t>(sizeof now))
    return;
  if (open.start_ns == 0 && !recorder && now.dormant != control::kDormant)
    (void)sample_cpu(1);
  if (open.start_ns == 0 && now.start_ns != 0 && now.pushed >= page.first) {
    page.start_ns = now.start_ns;
    page.dormant = 0;
    opened(now.start_ns);
  }
  if (open.start_ns == 0 || now.first != 0)
    return;
  page.first = 0;
  page.dormant = control::kDormant;
  open.end_ns = now.end_ns;
  (void)stop();
}

std::string Windows::State::sample_cpu(std::uint32_t window) {
  const sample::cpu::Running running{static_cast<std::uint32_t>(program), true, true};
  auto cpu = begin_cpu(sampling, folder_of(window), &running);
  if (cpu && *cpu)
    recorder.emplace(std::move(**cpu));
  if (cpu)
    return {};
  return "; the CPU is not sampled: " + base::to_string(cpu.error());
}

void Windows::State::opened(std::int64_t start_ns) {
  windows = page.window;
  open = {};
  open.start_ns = start_ns;
  open.start_unix_ns = runs::unix_now_ns() - (sample::now_ns() - start_ns);
  open.attached_pid = static_cast<std::uint32_t>(program);
  open.ran_ns = std::max<std::int64_t>(0, start_ns - program_ns);
  open.window = page.window;
  note(page.window);
}

void Windows::State::plan_close() {
  if (choice.length)
    closes = Clock::now() + *choice.length;
  // Windows of half the length: the last two hold all that is kept.
  if (choice.keep_last)
    closes = Clock::now() + *choice.keep_last / 2;
}

std::string Windows::State::start() {
  if (open.start_ns != 0)
    return fmt::format("error window {} is open already\n", open.window);
  const pid_t pid = program;
  if (pid == 0 || over)
    return "error the program is not running\n";
  if (page.first != 0)
    return "error the window of --window has not started\n";
  const std::uint32_t window = windows + 1;
  const fs::path folder = folder_of(window);
  std::error_code error;
  fs::create_directories(base::in_place(folder), error);
  if (error)
    return "error cannot make the window's folder: " + error.message() + "\n";
  page.dormant = control::kWaking;
  (void)publish();
  const auto woken = Clock::now();
  const std::string unsampled = sample_cpu(window);
  if (records_gpu(captures))
    std::this_thread::sleep_until(woken + kWaking);
  page.window = window;
  page.since = window;
  page.start_ns = sample::now_ns();
  if (publish()) {
    page.dormant = 0;
    (void)publish();
  }
  opened(page.start_ns);
  plan_close();
  return fmt::format("ok window {} is open{}\n", window, unsampled);
}

std::string Windows::State::stop() {
  if (open.start_ns == 0)
    return "error no window is open\n";
  page.dormant = control::kDormant;
  (void)publish();
  if (open.end_ns == 0)
    open.end_ns = sample::now_ns();
  if (recorder)
    recorder->stop();
  note(open.window);
  // What was sampled gets its names in a child: that may take seconds and much memory.
  if (recorder)
    in_child(open.window, [this] { recorder->finish(); });
  recorder.reset();
  const std::string text = fmt::format("ok window {} is over\n", open.window);
  open = {};
  closes.reset();
  return text;
}

std::string Windows::State::status() {
  bury(false);
  std::uint32_t ready = windows - (open.start_ns != 0 ? 1 : 0);
  for (const auto& [child, window] : naming)
    ready = std::min(ready, window - 1);
  return fmt::format("ok {}\nwindow {}\nready {}\nprogram {}\n",
                     open.start_ns != 0 ? "recording" : "dormant",
                     windows.load(),
                     ready,
                     program.load());
}

std::string Windows::State::answer(std::string_view request) {
  if (request == "start")
    return start();
  if (request == "stop" && choice.keep_last)
    return "error --keep-last records all the time; keep its last stretch with: rangescope ctl RUN "
           "mark NAME\n";
  if (request == "stop")
    return stop();
  if (request == "status")
    return status();
  if (request.starts_with("mark "))
    return mark(std::string(request.substr(sizeof "mark " - 1)));
  return "error unknown request\n";
}

/// The open window closes and the next one opens, without a gap; windows older than what
/// is to be kept are removed.
void Windows::State::rotate() {
  const std::uint32_t window = windows + 1;
  std::error_code error;
  fs::create_directories(base::in_place(folder_of(window)), error);
  std::optional<sample::cpu::Recorder> before;
  if (recorder)
    before.emplace(std::move(*recorder));
  recorder.reset();
  (void)sample_cpu(window);
  page.window = window;
  page.start_ns = open.end_ns = sample::now_ns();
  (void)publish();
  note(open.window);
  if (before)
    before->stop();
  ring.push_back({open.window, open.end_ns, {}});
  if (before)
    ring.back().recorder.emplace(std::move(*before));
  opened(page.start_ns);
  plan_close();
  if (choice.when)
    look(ring.back().window);
  // By when windows ended, not by when this thread ran: the others last as long as is promised.
  const std::int64_t kept_ns = std::chrono::nanoseconds(*choice.keep_last).count();
  while (ring.back().end_ns - ring.front().end_ns >= kept_ns) {
    fs::remove_all(base::in_place(folder_of(ring.front().window)), error);
    ring.pop_front();
  }
}

/// How long the range took in a window that was closed, read by a child.
void Windows::State::look(std::uint32_t window) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    return;
  in_child(0, [&] {
    const SentLengths sent = sent_lengths(lengths_in(folder_of(window), choice.when->range));
    (void)!::write(ends[1], &sent, sizeof sent);
  });
  ::close(ends[1]);
  // A pipe holds it all. It is read when the child was buried.
  if (looking >= 0)
    ::close(looking);
  looking = ends[0];
}

std::optional<model::Distribution> Windows::State::looked() {
  SentLengths sent;
  if (looking < 0 || ::read(looking, &sent, sizeof sent) != ssize_t{sizeof sent})
    return std::nullopt;
  ::close(std::exchange(looking, -1));
  return received_lengths(sent);
}

/// A condition that nothing could meet, once all is over. `last`: the window in which the program
/// ended, 0: none.
void Windows::State::tell_unseen(std::uint32_t last) {
  if (!choice.when)
    return;
  if (const auto lengths_ns = looked())
    seen_ns.add(*lengths_ns);
  if (seen_ns.moments.n == 0 && last != 0) {
    look(last);
    bury(true);
    if (const auto lengths_ns = looked())
      seen_ns.add(*lengths_ns);
  }
  if (seen_ns.moments.n > 0)
    return;
  const std::string& range = choice.when->range;
  const auto above = range.rfind('>');
  std::string warning =
      "--when: no range '" + base::printable(range) + "' ended while the program ran";
  if (above == std::string::npos)
    warning += "; it is a name, not a pattern";
  else
    warning += "; name the range alone: " +
               base::printable(base::trim(std::string_view(range).substr(above + 1)));
  base::warn(warning);
}

/// The windows of the last seconds become a run of their own.
std::string Windows::State::mark(const std::string& name) {
  if (!choice.keep_last)
    return "error nothing is kept to mark: start with profile --keep-last 60s\n";
  if (name.empty() || name != base::sanitize_component(name))
    return "error a mark's name must be a plain word\n";
  if (open.start_ns == 0)
    return "error the program is not running\n";
  const fs::path run = captures.parent_path(), folder = run / "marks" / name;
  std::error_code error;
  fs::create_directories(base::in_place(folder.parent_path()), error);
  if (!fs::create_directory(base::in_place(folder), error))
    return "error a mark of that name exists\n";
  rotate();
  fs::create_directory(base::in_place(folder / "native"), error);
  for (const Closed& closed : ring)
    fs::rename(base::in_place(folder_of(closed.window)),
               base::in_place(folder / "native" / folder_of(closed.window).filename()),
               error);
  for (fs::directory_iterator entry(captures, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == wire::gpu::kSuffix)  // one file for all windows
      fs::create_hard_link(
          entry->path(), base::in_place(folder / "native" / entry->path().filename()), error);
  in_child(ring.back().window, [&] {
    for (Closed& closed : ring)
      if (closed.recorder)
        closed.recorder->finish();
    finish_mark(run, folder);
  });
  ring.clear();
  marks.push_back(folder);
  return "ok " + folder.string() + "\n";
}

/// Opens the first window before the program starts, so that the window holds all that the program
/// does, however late our thread runs. Called by the thread that starts the program next.
base::Result<void> Windows::State::open_with_program() {
  auto cpu_recorder = TRY(begin_cpu(sampling, folder_of(1)));
  if (cpu_recorder)
    recorder.emplace(std::move(*cpu_recorder));
  page.start_ns = program_ns = sample::now_ns();
  (void)publish();
  opened(program_ns);
  return {};
}

/// Returns when the program runs, or when it could not be started. No client is served before.
void Windows::State::wait_for_program() {
  pollfd started{wake, POLLIN, 0};
  while (::poll(&started, 1, -1) < 0 && errno == EINTR)
    continue;
  if (program == 0)
    return;
  if (open.start_ns != 0) {
    open.attached_pid = static_cast<std::uint32_t>(program);
    note(1);
    plan_close();
    return;
  }
  program_ns = sample::now_ns();
  if (choice.after)
    opens = Clock::now() + *choice.after;
}

/// All that is due.
void Windows::State::turn() {
  follow_count();
  if (const auto lengths_ns = looked()) {
    const auto longest_ns = static_cast<double>(lengths_ns->moments.max);
    const std::optional<double> most_ns = limit_ns(*choice.when, seen_ns);
    seen_ns.add(*lengths_ns);
    if (most_ns && longest_ns > *most_ns) {
      const std::string answer_of_mark = mark(fmt::format("when-{}", ++own_marks));
      base::info(fmt::format("--when: {} took {} (more than {}): {}",
                             base::printable(choice.when->range),
                             base::format_ns(longest_ns),
                             base::format_ns(*most_ns),
                             base::trim(answer_of_mark)));
    }
  }
  const auto now = Clock::now();
  if (opens && now >= *opens) {
    opens.reset();
    if (const std::string problem = start(); !problem.starts_with("ok"))
      base::warn(problem);
  }
  if (closes && now >= *closes && choice.keep_last && open.start_ns != 0) {
    rotate();
  } else if (closes && now >= *closes && open.start_ns != 0) {
    const std::uint32_t window = open.window;
    (void)stop();
    base::info(fmt::format(
        "window {} is over; the program continues. Its report: rangescope ctl {} report",
        window,
        program.load()));
  }
  bury(false);
  server.serve(
      [this](std::string_view request, bool whole) {
        return whole ? answer(request) : std::string("error too long\n");
      },
      is_of_this_user);
}

void Windows::State::run() {
  try {
    wait_for_program();
    while (!over) {
      std::vector<pollfd> list{{wake, POLLIN, 0}, {looking, POLLIN, 0}};  // -1: passed over
      server.wait_for(list);
      const bool is_busy = list.size() > 3 || !naming.empty();
      auto until = Clock::now() + std::chrono::seconds(is_busy ? 1 : 3600);
      constexpr auto kLook = std::chrono::milliseconds(5);  // at what the program counts
      if (page.first != 0)
        until = std::min(until, Clock::now() + kLook);
      for (const auto& due : {opens, closes})
        if (due)
          until = std::min(until, *due);
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
  const std::uint32_t last = open.start_ns != 0 ? open.window : 0;
  if (last != 0)
    (void)stop();
  for (Closed& closed : ring)
    if (closed.recorder)
      in_child(closed.window, [&] { closed.recorder->finish(); });
  ring.clear();
  bury(true);  // they end with this thread
  tell_unseen(last);
}

/// Creates the page that the program reads, and the folder of a window that opens with it.
base::Result<void> Windows::State::make_page(bool opens_with_program) {
  std::error_code error;
  fs::create_directories(base::in_place(captures), error);
  const fs::path path = captures / control::kFile;
  page_file = ::open(base::in_place(path).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  std::memcpy(page.magic, control::kMagic, sizeof page.magic);
  page.dormant = control::kDormant;
  if (opens_with_program) {
    page.dormant = 0;
    page.window = page.since = 1;
    fs::create_directories(base::in_place(folder_of(1)), error);
  }
  if (choice.counted) {
    page.first = choice.counted->first;
    page.last = choice.counted->last;
    choice.counted->range.copy(page.name, sizeof page.name - 1);
    page.window = 1;
    fs::create_directories(base::in_place(folder_of(1)), error);
    if (page.first == 1 && !choice.counted->range.empty())
      page.dormant = control::kWaking;
  }
  if (page_file < 0 || ::pwrite(page_file, &page, sizeof page, 0) != control::kBytes)
    return base::fail(base::Code::kIo, "cannot be written: " + reason(), path.string());
  if (error)
    return base::fail(
        base::Code::kIo, "cannot make the folder: " + error.message(), folder_of(1).string());
  return {};
}

/// Signals are for the thread that runs the program.
base::Result<void> Windows::State::start_thread() {
  std::error_code error;
  sigset_t every_signal, before;
  sigfillset(&every_signal);
  ::pthread_sigmask(SIG_SETMASK, &every_signal, &before);
  try {
    thread = std::thread([this] { run(); });
  } catch (const std::system_error& none) {
    error = none.code();
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error)
    return base::fail(base::Code::kPermission,
                      "no thread can be started: " + error.message(),
                      {},
                      "Raise ulimit -u");
  return {};
}

void Windows::State::wake_up() const {
  const std::uint64_t times = 1;
  (void)!::write(wake, &times, sizeof times);
}

base::Result<std::unique_ptr<Windows>> Windows::begin(const fs::path& captures,
                                                      const WindowChoice& choice,
                                                      const SampleChoice& sampling) {
  auto state = std::make_unique<State>();
  state->captures = captures;
  state->choice = choice;
  state->sampling = sampling;
  const bool opens_with_program = !choice.counted && !choice.stopped && !choice.after;
  TRY(state->make_page(opens_with_program));
  state->wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (state->wake < 0)
    return base::fail(base::Code::kIo, "no descriptor is left: " + reason());
  auto listening = TRY(listen_in(captures));
  constexpr std::size_t kMostRequest = 256;
  state->server.take(listening, "\n", kMostRequest);
  TRY(state->start_thread());
  std::unique_ptr<Windows> windows(new Windows(std::move(state)));
  if (opens_with_program)
    TRY(windows->state_->open_with_program());
  return windows;
}

Windows::Windows(std::unique_ptr<State> state) : state_(std::move(state)) {}

Windows::~Windows() {
  ended();
}

void Windows::started(pid_t program) {
  state_->program = program;
  state_->wake_up();
}

void Windows::ended() {
  if (!state_->thread.joinable())
    return;
  state_->over = true;
  state_->wake_up();
  state_->thread.join();
  for (const fs::path& mark : state_->marks)
    seal_mark(mark);
  std::error_code ignored;
  fs::remove(base::in_place(state_->captures / control::kSocket), ignored);
  if (state_->windows == 0)
    fs::remove_all(base::in_place(state_->folder_of(1)), ignored);  // made before it was opened
}

std::uint32_t Windows::count() const {
  return state_->windows;
}

}  // namespace rangescope::profile
