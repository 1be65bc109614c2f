#include "collect/launch.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/fs.hpp"
#include "base/held_folder.hpp"
#include "base/redact.hpp"
#include "base/text.hpp"
#include "wire/launched.hpp"

namespace rangescope::collect {
namespace {

// The process group of the program, as if it ran without us:
// - in the foreground of a terminal it stays in our group: it may read the terminal, and Ctrl-C and
//   Ctrl-Z reach both;
// - if we lead a group it leads a new one, and signals to our group reach us and are passed on;
// - else, in a script, it stays in the script's group, which we leave while it runs: signals to the
//   group reach it once.
// A tool with a time limit gets a new group, so that its children end with it; without a tool they
// are found by the mark in their environment.
bool in_foreground() {
  const int terminal = ::isatty(STDIN_FILENO) != 0 ? STDIN_FILENO : STDERR_FILENO;
  return ::isatty(terminal) != 0 && ::tcgetpgrp(terminal) == ::getpgrp();
}

}  // namespace

base::Result<base::Ended> launch(const Plan& plan, const LaunchOptions& options) {
  for (const auto& folder : plan.folders) {
    std::error_code error;
    std::filesystem::create_directories(base::in_place(folder), error);
    if (error)
      return base::fail(
          base::Code::kIo, "cannot make the folder: " + error.message(), folder.string());
  }
  base::Command command;
  command.argv = plan.argv;
  command.set_env = plan.set_env;
  command.unset_env = plan.unset_env;
  command.cwd = plan.cwd;
  command.out = options.out;
  command.err = options.err;
  command.null_stdin = options.null_stdin;
  command.timeout = plan.timeout;
  const auto captures = plan.set_env.find("RANGESCOPE_DIR");
  const bool has_captures = captures != plan.set_env.end();
  const bool runs_tool = !has_captures || options.enough;
  if (!runs_tool)
    command.mark = captures->first + "=" + captures->second;
  const bool leads_group = ::getpgrp() == ::getpid();
  const bool ends_children = options.enough || (runs_tool && plan.timeout);
  const bool is_background_group = !in_foreground() && (runs_tool || leads_group);
  command.own_group = ends_children || is_background_group;
  command.signal_child_only = !runs_tool;
  command.leave_group = !command.own_group && !in_foreground();
  command.forward_signals = true;
  command.started = options.started;
  command.tick_every = options.tick_every;
  command.tick = options.tick;
  command.enough = options.enough;
  if (plan.collector != "native" || !has_captures)
    return base::run(command);
  using namespace std::chrono;
  const auto now_ns = [](auto clock) {
    return duration_cast<nanoseconds>(clock.now().time_since_epoch()).count();
  };
  // Without this file a report starts at the first record and ends at the last one.
  const std::filesystem::path file =
      std::filesystem::path(captures->second) / wire::launched::kFile;
  (void)base::write_file(
      file, wire::launched::text_of({now_ns(system_clock()), now_ns(steady_clock()), 0}));
  // Kept open, since samplers may leave no descriptor for the end (ulimit -n 14).
  const int descriptor = ::open(base::in_place(file).c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  auto ended = base::run(command);
  if (ended) {
    const std::int64_t start_ns =
        now_ns(steady_clock()) - (now_ns(system_clock()) - ended->start_unix_ns);
    const std::string text =
        wire::launched::text_of({ended->start_unix_ns, start_ns, start_ns + ended->wall_ns});
    if (!base::write_file(file, text) && descriptor >= 0)
      (void)!::pwrite(descriptor, text.data(), text.size(), 0);
  }
  if (descriptor >= 0)
    ::close(descriptor);
  return ended;
}

std::string script_command(const Plan& plan) {
  std::string line;
  for (const auto& folder : plan.folders)
    line += "mkdir -p " + base::shell_quote(folder.string()) + " && ";
  return line + shell_command(plan);
}

std::string shell_command(const Plan& plan) {
  std::string line;
  if (!plan.cwd.empty())
    line += "cd " + base::shell_quote(plan.cwd.string()) + " && ";
  if (!plan.set_env.empty() || !plan.unset_env.empty()) {
    line += "env";
    for (const std::string& name : plan.unset_env)
      line += " -u " + base::shell_quote(name);
    for (const auto& [name, value] : plan.set_env)
      line += " " + base::shell_quote(name + "=" + value);
    line += ' ';
  }
  return line + base::shell_quote(plan.argv);
}

std::string recorded_command(const Plan& plan) {
  base::Redactor redactor;
  for (const auto& [name, value] : plan.set_env)
    redactor.learn(name, value);
  Plan recorded = plan;
  recorded.cwd = redactor.text(plan.cwd.string());
  recorded.argv = redactor.arguments(plan.argv);
  for (auto& [name, value] : recorded.set_env)
    value = redactor.variable(name, value);
  return shell_command(recorded);
}

}  // namespace rangescope::collect
