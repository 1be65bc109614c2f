#include "sample/cpu/target.hpp"

#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/fs.hpp"
#include "base/process_memory.hpp"
#include "base/process_tree.hpp"
#include "base/text.hpp"

namespace rangescope::sample::cpu {
namespace {

using base::Code;

/// The initial namespace of processes: PROC_PID_INIT_INO of Linux.
constexpr const char* kOuterNamespace = "pid:[4026531836]";

std::string folder_of(std::uint32_t pid) {
  return "/proc/" + std::to_string(pid);
}

/// The same with what belongs to all threads of the process: memory, files, environment.
std::string living_folder_of(std::uint32_t pid) {
  return "/proc/" + std::to_string(base::living_thread(pid));
}

/// "a\0b\0" as a list.
std::vector<std::string> strings_of(const std::string& file) {
  std::vector<std::string> out;
  const auto text = base::read_file(file);
  if (!text)
    return out;
  for (const std::string_view part : base::split(*text, '\0'))
    out.emplace_back(part);
  while (!out.empty() && out.back().empty())
    out.pop_back();
  return out;
}

/// The words behind "Uid:" in /proc/N/status.
std::vector<std::uint64_t> numbers_of(const std::string& status, std::string_view key) {
  std::vector<std::uint64_t> out;
  for (const std::string_view line : base::split(status, '\n')) {
    if (!line.starts_with(key))
      continue;
    for (const std::string_view word : base::split(line.substr(key.size()), '\t'))
      if (const auto number = base::to_uint(word))
        out.push_back(*number);
  }
  return out;
}

bool can_open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd >= 0)
    ::close(fd);
  return fd >= 0;
}

base::Error no_such(std::uint32_t pid) {
  const std::string process = "process " + std::to_string(pid);
  if (::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM)
    return {
        Code::kPermission, "/proc does not show " + process + " (hidepid)", {}, "Attach as root"};
  std::error_code error;
  const bool in_container =
      std::filesystem::read_symlink("/proc/self/ns/pid", error) != kOuterNamespace && !error;
  std::string hint = "Find it: ps -e, or pgrep NAME";
  if (in_container)
    hint = "In a container, name it by the id that ps shows there, or attach from the host";
  return {Code::kNoInput, "there is no " + process, {}, std::move(hint)};
}

base::Error refused(std::uint32_t pid, const std::vector<std::uint64_t>& users) {
  const std::string process = "process " + std::to_string(pid),
                    cure = "As root: sudo rangescope attach " + process.substr(8);
  const auto other_user =
      std::ranges::find_if(users, [](std::uint64_t user) { return user != ::geteuid(); });
  if (other_user == users.end())
    return {Code::kPermission,
            process +
                " cannot be inspected: it has privileges that this user lacks (set-user-id, "
                "capabilities), or called "
                "prctl(PR_SET_DUMPABLE)",
            {},
            cure};
  const passwd* owner = ::getpwuid(static_cast<uid_t>(*other_user));
  const std::string name = owner != nullptr ? owner->pw_name : std::to_string(*other_user);
  return {Code::kPermission, process + " belongs to another user (" + name + ")", {}, cure};
}

/// Reading another's memory takes more than looking at it.
std::string unread_reason(std::uint32_t pid) {
  if (can_open(living_folder_of(pid) + "/mem"))
    return {};
  const std::string why = std::strerror(errno);
  const auto scope = base::read_file("/proc/sys/kernel/yama/ptrace_scope");
  if (!scope || base::trim(*scope) == "0")
    return "the memory of process " + std::to_string(pid) + " is closed: " + why;
  return "kernel.yama.ptrace_scope is " + std::string(base::trim(*scope)) +
         ", so its memory cannot be read (as root it can; sysctl kernel.yama.ptrace_scope=0)";
}

}  // namespace

base::Result<Target> find_target(std::uint32_t pid) {
  const std::string folder = folder_of(pid), number = std::to_string(pid);
  const auto found = base::process_at(static_cast<pid_t>(pid));
  if (!found)
    return tl::make_unexpected(no_such(pid));
  if (found->kernel)
    return base::fail(
        Code::kUsage, number + " is a thread of the kernel", {}, "Name a program's process");
  if (base::process_has_ended(*found))
    return base::fail(Code::kNoInput,
                      "process " + number + " has ended (a zombie)",
                      {},
                      "Name a process that runs");
  const std::string status = base::read_file(folder + "/status").value_or("");
  const std::vector<std::uint64_t> process_ids = numbers_of(status, "Tgid:\t");
  if (!process_ids.empty() && process_ids.front() != pid) {
    const std::string process_id = std::to_string(process_ids.front());
    return base::fail(Code::kUsage,
                      number + " is a thread of process " + process_id,
                      {},
                      "Write: rangescope attach " + process_id);
  }
  if (pid == static_cast<std::uint32_t>(::getpid()))
    return base::fail(
        Code::kUsage, "process " + number + " is rangescope itself", {}, "Name another process");
  const std::string living = living_folder_of(pid);
  if (!can_open(living + "/maps"))
    return tl::make_unexpected(refused(pid, numbers_of(status, "Uid:\t")));

  Target target;
  target.pid = pid;
  target.start = found->start;
  timespec up{};
  ::clock_gettime(CLOCK_BOOTTIME, &up);
  const double begun_s =
      static_cast<double>(found->start) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  const double age_s =
      static_cast<double>(up.tv_sec) + static_cast<double>(up.tv_nsec) * 1e-9 - begun_s;
  target.age_ns = static_cast<std::int64_t>(std::max(0.0, age_s) * 1e9);
  target.argv = strings_of(living + "/cmdline");
  if (target.argv.empty())
    target.argv = {name_of_thread(pid, pid)};
  target.environment = base::environment_of(static_cast<pid_t>(pid));
  std::error_code error;
  target.cwd = std::filesystem::read_symlink(living + "/cwd", error);
  target.unread = unread_reason(pid);
  return target;
}

bool still_runs(const Target& target) {
  const auto now = base::process_at(static_cast<pid_t>(target.pid));
  if (!now || now->start != target.start)
    return false;
  return !base::process_has_ended(*now);
}

std::vector<Member> members_of(std::uint32_t pid, bool tree) {
  std::vector<Member> out;
  if (tree)
    for (const base::TreeMember& member : base::process_tree(static_cast<pid_t>(pid)))
      out.push_back(
          {static_cast<std::uint32_t>(member.pid), static_cast<std::uint32_t>(member.parent)});
  else if (const auto process = base::process_at(static_cast<pid_t>(pid)))
    out.push_back({pid, static_cast<std::uint32_t>(process->parent)});
  return out;
}

std::vector<std::uint32_t> threads_of(std::uint32_t pid) {
  std::vector<std::uint32_t> out;
  for (const pid_t tid : base::threads_of(static_cast<pid_t>(pid)))
    out.push_back(static_cast<std::uint32_t>(tid));
  std::stable_partition(out.begin(), out.end(), [pid](std::uint32_t tid) { return tid == pid; });
  return out;
}

std::string name_of_thread(std::uint32_t pid, std::uint32_t tid) {
  const auto name = base::read_file(folder_of(pid) + "/task/" + std::to_string(tid) + "/comm");
  if (!name)
    return {};
  return std::string(base::trim(*name));
}

bool sleeps(std::uint32_t pid, std::uint32_t tid) {
  const auto thread = base::thread_at(static_cast<pid_t>(pid), static_cast<pid_t>(tid));
  return thread && (thread->state == 'S' || thread->state == 'D');
}

void maps_of(std::uint32_t pid, const std::function<void(const Mapped&)>& each) {
  const auto text = base::read_file(living_folder_of(pid) + "/maps");
  for (const base::MemoryArea& area : base::areas_of(text.value_or(""))) {
    if (!area.is_executable)
      continue;
    // Memory without a file has this name in the kernel's records.
    std::string_view path = "//anon";
    if (area.name.starts_with('/') || area.name == "[vdso]")
      path = area.name;
    each({pid, area.begin, area.end - area.begin, area.offset, path, true});
  }
}

}  // namespace rangescope::sample::cpu
