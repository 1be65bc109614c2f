#include "base/process_tree.hpp"

#include <algorithm>
#include <filesystem>
#include <string>

#include "base/fs.hpp"
#include "base/text.hpp"

namespace rangescope::base {
namespace {

struct Stat {
  TreeMember member;
  pid_t parent = 0, group = 0;
  char state = '?';
};

// "pid (name) state ppid pgrp ...": the name may hold blanks and brackets, so fields are counted from the last bracket.
std::optional<Stat> stat_of(pid_t pid) {
  const auto text = read_file("/proc/" + std::to_string(pid) + "/stat");
  if (!text) return std::nullopt;
  const auto bracket = text->rfind(')');
  if (bracket == std::string::npos || bracket + 2 >= text->size()) return std::nullopt;
  const auto fields = split(std::string_view(*text).substr(bracket + 2), ' ');
  if (fields.size() < 20 || fields[0].size() != 1) return std::nullopt;
  const auto parent = to_uint(fields[1]), group = to_uint(fields[2]), start = to_uint(fields[19]);
  if (!parent || !group || !start) return std::nullopt;
  return Stat{{pid, *start}, static_cast<pid_t>(*parent), static_cast<pid_t>(*group), fields[0][0]};
}

/// Everybody in /proc who is no zombie.
std::vector<Stat> everybody() {
  std::vector<Stat> all;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto pid = to_uint(entry.path().filename().string());
    if (!pid) continue;
    if (auto stat = stat_of(static_cast<pid_t>(*pid)); stat && stat->state != 'Z') all.push_back(*stat);
  }
  return all;
}

}  // namespace

std::optional<std::uint64_t> process_start(pid_t pid) {
  const auto stat = stat_of(pid);
  return stat ? std::optional(stat->member.start) : std::nullopt;
}

std::vector<TreeMember> process_tree(pid_t root) {
  const std::vector<Stat> all = everybody();
  std::vector<TreeMember> out;
  for (const Stat& one : all)
    if (one.member.pid == root) out.push_back(one.member);
  for (std::size_t at = 0; at < out.size(); ++at)  // breadth first; each process has one parent, so none comes twice
    for (const Stat& one : all)
      if (one.parent == out[at].pid && one.member.pid != root) out.push_back(one.member);
  return out;
}

std::vector<TreeMember> marked_processes(std::string_view entry) {
  std::vector<TreeMember> out;
  if (entry.empty()) return out;
  for (const Stat& one : everybody()) {
    const auto environment = read_file("/proc/" + std::to_string(one.member.pid) + "/environ");
    if (!environment) continue;
    const auto entries = split(*environment, '\0');
    if (std::find(entries.begin(), entries.end(), entry) != entries.end()) out.push_back(one.member);
  }
  return out;
}

bool group_alive(pid_t group) {
  const std::vector<Stat> all = everybody();
  return std::any_of(all.begin(), all.end(), [group](const Stat& one) { return one.group == group; });
}

}  // namespace rangescope::base
