// The native stage of a process that runs already (`attach`): its threads are sampled for a window,
// and where it uses GPUs our library records their work. It goes on, whatever becomes of us: the
// kernel ends the sampling with the last descriptor, and the library its recording with the lock
// that we hold.
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <list>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/fs.hpp"
#include "base/held_folder.hpp"
#include "base/log.hpp"
#include "base/redact.hpp"
#include "base/signals.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "profile/load_library.hpp"
#include "profile/other_user.hpp"
#include "profile/sampling.hpp"
#include "profile/stage.hpp"
#include "sample/blocks.hpp"
#include "wire/gpu.hpp"
#include "wire/launched.hpp"
#include "wire/names.hpp"

namespace rangescope::profile {
namespace {

namespace fs = std::filesystem;
using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

/// Until the window is over, the process has ended, or a signal comes that would end us: what ended
/// it, for a note. `look` is called some times a second.
template <class Look>
std::string wait_for_end(const Attach& to, const base::Signals& signals, const Look& look) {
  constexpr nanoseconds kLook =
      std::chrono::milliseconds(200);  // where no descriptor tells of its end
  const auto begun = Clock::now();
#if defined(SYS_pidfd_open)
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, to.target.pid, 0u));
#else
  const int process = -1;
#endif
  std::string ended_by;
  while (ended_by.empty()) {
    nanoseconds wait = kLook;
    if (to.length)
      wait = std::min(wait, *to.length - (Clock::now() - begun));
    if (wait.count() <= 0)
      break;
    pollfd polled{process, POLLIN, 0};
    const timespec most{wait.count() / 1'000'000'000, wait.count() % 1'000'000'000};
    ::ppoll(&polled, 1, &most, &signals.before());
    look();
    signals.drain([&](const base::Arrived& arrived) {
      ended_by = base::signal_name(arrived.signal) + " ended the window";
    });
    if (ended_by.empty() && !sample::cpu::still_runs(to.target))
      ended_by = "process " + std::to_string(to.target.pid) + " ended before the window did";
  }
  if (process >= 0)
    ::close(process);
  return ended_by;
}

constexpr auto kPatience = std::chrono::seconds(10);

/// Recording of GPU work by the library in a process, as long as this lives.
class GpuSide {
 public:
  GpuSide(sample::cpu::Target target, const fs::path& captures, std::uint64_t most_bytes)
      : target_(std::move(target)), captures_(captures), most_bytes_(most_bytes) {}
  GpuSide(const GpuSide&) = delete;
  GpuSide& operator=(const GpuSide&) = delete;
  ~GpuSide() { end(); }

  /// Returns when it records.
  base::Result<void> begin(const fs::path& library) {
    TRY(may_load(target_, library));
    std::error_code error;
    fs::create_directories(base::in_place(captures_), error);
    lock_ =
        ::open(base::in_place(lock_path()).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    made_ = lock_ >= 0;
    struct stat owner {};
    const std::string process = "/proc/" + std::to_string(target_.pid);
    const bool is_locked = lock_ >= 0 && ::flock(lock_, LOCK_EX | LOCK_NB) == 0 &&
                           ::stat(process.c_str(), &owner) == 0;
    const bool is_another_users = is_locked && owner.st_uid != ::geteuid();
    if (!is_locked || (is_another_users && !give_to(owner)))
      return base::fail(
          base::Code::kIo, std::string("cannot be made: ") + std::strerror(errno), lock_path());
    if (is_another_users) {
      auto checked = check_access(library);
      if (!checked)
        remove_lock();
      TRY(std::move(checked));
    }
    TRY(begin_in(target_, library, settings()));
    for (const auto until = Clock::now() + kPatience;
         Clock::now() < until && sample::cpu::still_runs(target_);) {
      for (fs::directory_iterator entry(captures_, error), end; !error && entry != end;
           entry.increment(error))
        if (const std::string name = entry->path().filename().string();
            name.starts_with(std::to_string(target_.pid) + ".") &&
            name.ends_with(wire::gpu::kSuffix) &&
            entry->file_size(error) > sizeof(wire::gpu::FileHeader))
          return {};
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return base::fail(
        base::Code::kPermission,
        "the library does not record: it may not write there, or another rangescope is attached",
        captures_.string(),
        "Name a folder that its user can write: --runs DIR");
  }
  void let_go() {
    if (lock_ < 0)
      return;
    ::flock(lock_, LOCK_UN);
    ::close(std::exchange(lock_, -1));
  }
  /// Returns when all is written.
  void end() {
    if (!made_)
      return;
    let_go();
    std::error_code error;
    for (const auto until = Clock::now() + kPatience; Clock::now() < until &&
                                                      fs::exists(lock_path(), error) &&
                                                      sample::cpu::still_runs(target_);)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    remove_lock();
  }

 private:
  void remove_lock() {
    let_go();
    std::error_code error;
    fs::remove(base::in_place(lock_path()), error);
    if (opened_)
      fs::permissions(run_folder(), *opened_, error);
    opened_.reset();
    made_ = false;
  }
  /// Of root the captures are the program's user's, who writes them, and gets to them through the
  /// private folder of the run.
  bool give_to(const struct stat& owner) {
    if (::fchown(lock_, owner.st_uid, owner.st_gid) != 0 ||
        ::chown(base::in_place(captures_).c_str(), owner.st_uid, owner.st_gid) != 0)
      return false;
    std::error_code error;
    const fs::perms before = fs::status(run_folder(), error).permissions();
    const auto enters = fs::perms::group_exec | fs::perms::others_exec;
    if (error || (before & enters) == enters)
      return !error;
    fs::permissions(run_folder(), enters, fs::perm_options::add, error);
    if (!error)
      opened_ = before;
    return !error;
  }
  /// Before anything is loaded: the library that cannot be read or cannot write is of no use there.
  [[nodiscard]] base::Result<void> check_access(const fs::path& library) const {
    if (!its_user_can(target_.pid, library, R_OK))
      return base::fail(base::Code::kPermission,
                        "the user of process " + std::to_string(target_.pid) + " may not read it",
                        library.string(),
                        "Install rangescope where every user can read it");
    if (!its_user_can(target_.pid, captures_, W_OK | X_OK))
      return base::fail(base::Code::kPermission,
                        "the user of process " + std::to_string(target_.pid) +
                            " cannot get to this folder, where the library writes",
                        captures_.string(),
                        "Name a folder in one that every user can enter: --runs /tmp/runs");
    return {};
  }
  [[nodiscard]] fs::path run_folder() const { return base::in_place(captures_.parent_path()); }
  [[nodiscard]] fs::path lock_path() const {
    return captures_ / (wire::kAttachLock + std::to_string(target_.pid));
  }
  /// As inject/nvtx/setting.hpp reads them: ours, and those of our own environment that say how.
  [[nodiscard]] std::string settings() const {
    std::string text;
    const auto add = [&text](std::string_view name, std::string_view value) {
      text.append(name).append("=").append(value).push_back('\0');
    };
    add(wire::kDir, captures_.string());
    add(wire::kMaxCaptureSize, std::to_string(most_bytes_));
    for (const char* name : {wire::kCupti,
                             wire::kCudaGraphs,
                             wire::kFlushInterval,
                             wire::kModules,
                             wire::kFunctions,
                             wire::kPhases})
      if (const char* value = std::getenv(name); value != nullptr && value[0] != '\0')
        add(name, value);
    return text;
  }

  sample::cpu::Target target_;
  fs::path captures_;
  std::uint64_t most_bytes_;
  int lock_ = -1;
  bool made_ = false;
  std::optional<fs::perms> opened_;  ///< what the run's folder had before others could enter it
};

/// Those of the process and, with `tree`, of its descendants that use CUDA.
class GpuSides {
 public:
  GpuSides(const Attach& to,
           fs::path captures,
           std::uint64_t most_bytes,
           std::vector<model::Loss>& losses)
      : to_(to), captures_(std::move(captures)), most_bytes_(most_bytes), losses_(losses) {}
  GpuSides(const GpuSides&) = delete;
  GpuSides& operator=(const GpuSides&) = delete;
  ~GpuSides() {
    for (GpuSide& side : sides_)
      side.let_go();
  }

  /// Those who use it now and did not when this was called before. An error where the one that was
  /// named must.
  base::Result<void> look() {
    if (to_.library.empty())
      return {};
    for (const sample::cpu::Member& member : sample::cpu::members_of(to_.target.pid, to_.tree)) {
      const bool must = to_.gpu_or_fail && member.pid == to_.target.pid;
      if (known_.contains(member.pid) || (!must && !uses_cuda(member.pid)))
        continue;
      known_.insert(member.pid);
      auto target = sample::cpu::find_target(member.pid);
      if (!target)
        continue;  // it has ended
      sides_.emplace_back(std::move(*target), captures_, most_bytes_);
      auto begun = sides_.back().begin(to_.library);
      if (begun)
        continue;
      sides_.pop_back();
      if (must)
        return begun;
      const std::string why =
          "process " + std::to_string(member.pid) + ": " + base::to_string(begun.error());
      base::warn(why);
      losses_.push_back({"gpu_unavailable", 0, why});
    }
    return {};
  }
  /// Descendants that came or loaded CUDA since: once a second.
  void look_again() {
    constexpr auto kPause = std::chrono::seconds(1);
    if (!to_.tree || Clock::now() - looked_ < kPause)
      return;
    (void)look();
    looked_ = Clock::now();
  }

 private:
  const Attach& to_;
  fs::path captures_;
  std::uint64_t most_bytes_;
  std::vector<model::Loss>& losses_;
  std::set<std::uint32_t> known_;
  std::list<GpuSide> sides_;
  Clock::time_point looked_ = Clock::now();
};

class Attached : public Stage {
 public:
  using Stage::Stage;
  base::Result<void> run() override {
    run_.wanted.emplace_back("native");
    const Attach& attach = *run_.args.attach;
    const fs::path captures = run_.folder / "native";
    TRY(run_.record->about_to_run(
        {.collector = "native", .argv = attach.target.argv, .cwd = attach.target.cwd},
        &attach.target.environment));
    std::optional<GpuSides> gpu(
        std::in_place, attach, captures, run_.args.native.max_capture_bytes, run_.cut);
    TRY(gpu->look());
    const sample::cpu::Running process{attach.target.pid, attach.tree};
    auto cpu = TRY(begin_cpu(run_.args.sampling, captures, &process));

    std::optional<base::Signals> signals(
        std::in_place, true);  // one that comes after this message ends the window
    const auto command = base::Redactor().arguments(run_.config.list("workload.command"));
    std::string attached = "attached to process " + std::to_string(attach.target.pid) + " (" +
                           base::printable(base::shell_quote(command)) + ")";
    if (attach.length)
      attached += " for " + base::format_ns(static_cast<double>(attach.length->count()));
    base::info(attached + "; Ctrl-C ends the window");
    wire::launched::Launched window;
    window.start_ns = cpu ? cpu->from_ns() : sample::now_ns();
    window.start_unix_ns = runs::unix_now_ns() - (sample::now_ns() - window.start_ns);
    window.attached_pid = attach.target.pid;
    window.ran_ns = attach.target.age_ns;
    const auto note_window = [&] {
      return base::write_file(captures / wire::launched::kFile, wire::launched::text_of(window));
    };
    TRY(note_window());
    // A reader of the unfinished run has the window up to this moment.
    constexpr std::int64_t kNoteAgain_ns = 500'000'000;
    const auto note_so_far = [&] {
      const std::int64_t now_ns = sample::now_ns();
      if (now_ns - std::max(window.start_ns, window.end_ns) < kNoteAgain_ns)
        return;
      window.end_ns = now_ns;
      (void)note_window();
    };
    const std::string early = wait_for_end(attach, *signals, [&] {
      gpu->look_again();
      note_so_far();
    });
    signals.reset();
    if (!early.empty())
      run_.note(early);
    if (cpu)
      cpu->stop();
    window.end_ns = cpu ? cpu->until_ns() : sample::now_ns();
    gpu.reset();
    TRY(note_window());
    ToolRun ran;
    ran.ended.left = true;
    ran.ended.start_unix_ns = window.start_unix_ns;
    ran.ended.wall_ns = window.end_ns - window.start_ns;
    return read_native(run_, "native", captures, cpu, ran);
  }
};

}  // namespace

std::unique_ptr<Stage> attach_stage(Run& run) {
  return std::make_unique<Attached>(run);
}

}  // namespace rangescope::profile
