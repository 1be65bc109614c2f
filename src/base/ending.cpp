#include "base/ending.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace rangescope::base {

Ending::Ending(const Command& command)
    : own_group_(command.own_group),
      to_group_(command.own_group && !command.signal_child_only),
      adopt_(command.forward_signals && command.mark.empty()),
      mark_(command.mark) {
  ::prctl(PR_GET_CHILD_SUBREAPER, &was_reaper_);
  if (!adopt_)
    return;
  before_ = process_tree(::getpid());
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Ending::~Ending() {
  if (adopt_)
    ::prctl(PR_SET_CHILD_SUBREAPER, was_reaper_);
}

void Ending::send(int signal, bool had_it) const {
  if (!had_it)
    ::kill(to_group_ ? -child_ : child_, signal);
}

bool Ending::sent_it(pid_t sender) const {
  if (sender <= 0)
    return false;
  const pid_t group = ::getpgid(sender);
  if (group < 0)
    return sender == child_;  // which is dead
  if (group != ::getpgrp())
    return false;
  for (pid_t ancestor = sender; ancestor > 1 && ancestor != ::getpid();) {
    if (ancestor == child_)
      return true;
    const auto process = process_at(ancestor);
    if (!process)
      break;
    ancestor = process->parent;
  }
  return !mark_.empty() && is_marked(sender, mark_);  // an orphan
}

void Ending::send_all(int signal) const {
  ::kill(child_or_group(), signal);
  if (!own_group_)
    send_others(signal);
}

void Ending::bury() const {
  siginfo_t dead{};
  while (adopt_ && ::waitid(P_ALL, 0, &dead, WEXITED | WNOHANG | WNOWAIT) == 0 && dead.si_pid > 0 &&
         dead.si_pid != child_) {
    ::waitpid(dead.si_pid, nullptr, WNOHANG);
    dead = {};
  }
}

void Ending::kill_all() const {
  ::kill(child_or_group(), SIGKILL);
  for (const TreeMember& member : others())
    ::kill(member.pid, SIGKILL);
}

void Ending::finish(std::chrono::nanoseconds grace) const {
  if (gone_within(std::chrono::milliseconds(200)))
    return;
  send_others(SIGTERM);
  if (gone_within(grace))
    return;
  send_others(SIGKILL);
}

bool Ending::ran_before(const TreeMember& member) const {
  return std::any_of(before_.begin(), before_.end(), [&](const TreeMember& old) {
    return old.pid == member.pid && old.start == member.start;
  });
}

std::vector<TreeMember> Ending::others() const {
  auto members = adopt_ ? process_tree(::getpid()) : marked_processes(mark_);
  std::erase_if(members, [&](const TreeMember& member) {
    return member.pid == child_ || member.pid == ::getpid() || ran_before(member);
  });
  return members;
}

void Ending::send_others(int signal) const {
  if (own_group_)
    ::kill(-child_, signal);
  for (const TreeMember& member : others())
    ::kill(member.pid, signal);
}

bool Ending::gone_within(std::chrono::nanoseconds time) const {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + time;
  for (bury(); !others().empty() || (own_group_ && group_alive(child_)); bury()) {
    if (Clock::now() >= until)
      return false;
    ::poll(nullptr, 0, 20);
  }
  return true;
}

}  // namespace rangescope::base
