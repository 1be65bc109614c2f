#include "base/process_tree.hpp"

#include <dirent.h>

#include <algorithm>
#include <memory>
#include <string>

#include "base/fs.hpp"
#include "base/text.hpp"

namespace rangescope::base {
namespace {

constexpr std::uint64_t kKernelThread = 0x200000;  // PF_KTHREAD
constexpr std::uint64_t kHiddenAddress = 1;        // of a process that may not be looked at by us

// "pid (name) state ppid pgrp ...": the name may hold blanks and brackets, so fields are counted
// from the last bracket.
std::optional<TreeMember> stat_of(pid_t pid, const std::string& folder) {
  const auto text = read_file(folder + "/stat");
  if (!text)
    return std::nullopt;
  const auto bracket = text->rfind(')');
  if (bracket == std::string::npos || bracket + 2 >= text->size())
    return std::nullopt;
  const auto fields = split(std::string_view(*text).substr(bracket + 2), ' ');
  if (fields.size() < 24 || fields[0].size() != 1)
    return std::nullopt;
  const auto parent = to_uint(fields[1]);
  const auto group = to_uint(fields[2]);
  const auto flags = to_uint(fields[6]);
  const auto start = to_uint(fields[19]);
  const auto code_address = to_uint(fields[23]);
  if (!parent || !group || !flags || !start || !code_address)
    return std::nullopt;
  TreeMember member;
  member.pid = pid;
  member.start = *start;
  member.parent = static_cast<pid_t>(*parent);
  member.group = static_cast<pid_t>(*group);
  member.state = fields[0][0];
  member.kernel = (*flags & kKernelThread) != 0;
  member.has_program = *code_address > kHiddenAddress;
  return member;
}

/// The entries of a folder of /proc that are numbers. With readdir(): std::filesystem's iterator
/// takes memory where it must not throw, and ends the process where there is none.
std::vector<pid_t> ids_in(const std::string& folder) {
  std::vector<pid_t> ids;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(folder.c_str()), ::closedir);
  while (const dirent* entry = stream ? ::readdir(stream.get()) : nullptr) {
    if (const auto id = to_uint(entry->d_name))
      ids.push_back(static_cast<pid_t>(*id));
  }
  return ids;
}

/// Everybody in /proc who is alive.
std::vector<TreeMember> everybody() {
  std::vector<TreeMember> all;
  for (const pid_t pid : ids_in("/proc")) {
    if (auto stat = process_at(pid); stat && !process_has_ended(*stat))
      all.push_back(*stat);
  }
  return all;
}

}  // namespace

std::vector<pid_t> threads_of(pid_t pid) {
  return ids_in("/proc/" + std::to_string(pid) + "/task");
}

std::optional<TreeMember> process_at(pid_t pid) {
  return stat_of(pid, "/proc/" + std::to_string(pid));
}

std::optional<TreeMember> thread_at(pid_t pid, pid_t tid) {
  return stat_of(tid, "/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid));
}

pid_t living_thread(pid_t pid) {
  const auto first = process_at(pid);
  if (!first || !first->thread_has_ended())
    return pid;
  for (const pid_t tid : threads_of(pid)) {
    const auto thread = thread_at(pid, tid);
    if (thread && !thread->thread_has_ended())
      return thread->pid;
  }
  return pid;
}

bool process_has_ended(const TreeMember& process) {
  return process.thread_has_ended() && living_thread(process.pid) == process.pid;
}

std::optional<std::uint64_t> process_start(pid_t pid) {
  const auto stat = process_at(pid);
  if (!stat)
    return std::nullopt;
  return stat->start;
}

std::vector<TreeMember> process_tree(pid_t root) {
  const std::vector<TreeMember> processes = everybody();
  std::vector<TreeMember> tree;
  for (const TreeMember& process : processes)
    if (process.pid == root)
      tree.push_back(process);
  // Breadth first; each process has one parent, so none comes twice.
  for (std::size_t i = 0; i < tree.size(); ++i)
    for (const TreeMember& process : processes)
      if (process.parent == tree[i].pid && process.pid != root)
        tree.push_back(process);
  return tree;
}

std::vector<std::string> environment_of(pid_t pid) {
  const auto text = read_file("/proc/" + std::to_string(living_thread(pid)) + "/environ");
  if (!text)
    return {};
  std::vector<std::string> variables;
  for (const std::string_view variable : split(*text, '\0'))
    if (!variable.empty())
      variables.emplace_back(variable);
  return variables;
}

std::optional<std::string_view> value_of(std::string_view entry, std::string_view name) {
  const bool is_of_name =
      entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=';
  if (!is_of_name)
    return std::nullopt;
  return entry.substr(name.size() + 1);
}

std::string value_in(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& entry : environment)
    if (const auto value = value_of(entry, name))
      return std::string(*value);
  return {};
}

bool is_marked(pid_t pid, std::string_view entry) {
  const auto entries = environment_of(pid);
  return std::find(entries.begin(), entries.end(), entry) != entries.end();
}

std::vector<TreeMember> marked_processes(std::string_view entry) {
  std::vector<TreeMember> out;
  if (entry.empty())
    return out;
  for (const TreeMember& process : everybody())
    if (is_marked(process.pid, entry))
      out.push_back(process);
  return out;
}

bool group_alive(pid_t group) {
  const std::vector<TreeMember> processes = everybody();
  return std::any_of(processes.begin(), processes.end(), [group](const TreeMember& process) {
    return process.group == group;
  });
}

}  // namespace rangescope::base
