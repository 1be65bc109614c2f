// A process and its descendants as /proc shows them at one moment: the processes that must end with
// it.
//
// Tools put what they start into groups and sessions of their own, so a process group alone does
// not hold them all.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rangescope::base {

struct TreeMember {
  pid_t pid = 0;
  std::uint64_t start =
      0;  ///< clock ticks since boot: tells a process from a later one of the same id
  pid_t parent = 0, group = 0;
  char state = '?';     ///< as ps has it: 'Z' for a zombie
  bool kernel = false;  ///< a thread of the kernel
  /// Has a program with arguments and an environment that this user may read. False during
  /// execve(), when /proc shows an environment without entries.
  bool has_program = false;

  /// Of a process this is its first thread, without which it may go on.
  [[nodiscard]] bool thread_has_ended() const { return state == 'Z' || state == 'X'; }
};

/// A process, a zombie too, or any thread by its own id; nothing when there is none.
[[nodiscard]] std::optional<TreeMember> process_at(pid_t pid);
/// The same of a thread of a process.
[[nodiscard]] std::optional<TreeMember> thread_at(pid_t pid, pid_t tid);
/// Ended ones too, in the order of /proc; none where there is no such process. Where memory runs
/// out it throws.
[[nodiscard]] std::vector<pid_t> threads_of(pid_t pid);
/// A thread of the process that has not ended: its first one, `pid`, or another one where that has
/// ended before the others. Of an ended thread /proc has no memory, files and environment. `pid`
/// where all have ended.
[[nodiscard]] pid_t living_thread(pid_t pid);
[[nodiscard]] inline std::uint32_t living_thread(std::uint32_t pid) {
  return static_cast<std::uint32_t>(living_thread(static_cast<pid_t>(pid)));
}
/// None of its threads is left, though it may not have been buried.
[[nodiscard]] bool process_has_ended(const TreeMember& process);
/// Clock ticks since boot at which the process began, a zombie's too; nothing when there is no such
/// process.
[[nodiscard]] std::optional<std::uint64_t> process_start(pid_t pid);
/// `root` and its descendants, zombies left out; empty when it is gone. One pass over /proc, a few
/// milliseconds.
[[nodiscard]] std::vector<TreeMember> process_tree(pid_t root);
/// The environment of a process at its start, as "NAME=value"; empty if this user may not read it.
[[nodiscard]] std::vector<std::string> environment_of(pid_t pid);
/// The value that such an entry gives to a variable; nothing if it sets another variable.
[[nodiscard]] std::optional<std::string_view> value_of(std::string_view entry,
                                                       std::string_view name);
/// The value of a variable in such a list; "" if it is not set.
[[nodiscard]] std::string value_in(const std::vector<std::string>& environment,
                                   std::string_view name);
/// Had the process `entry` ("NAME=value") in its environment at its start? False if this user may
/// not read it.
[[nodiscard]] bool is_marked(pid_t pid, std::string_view entry);
/// All processes that had `entry` ("NAME=value") in their environment at their start, as far as
/// this user may read it.
[[nodiscard]] std::vector<TreeMember> marked_processes(std::string_view entry);
/// Has the process group a member that is no zombie? The kernel counts zombies until their parent
/// reaps them.
[[nodiscard]] bool group_alive(pid_t group);

}  // namespace rangescope::base
