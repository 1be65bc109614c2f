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

// Where the program stands among groups, as without us:
// - in the foreground of a terminal it stays in our group: it may read the terminal, and Ctrl-C and
// Ctrl-Z reach both;
// - where we lead a group it leads one, and what is sent to our group reaches us and goes on to it;
// - else, in a script, it stays in the script's group and we leave that while it runs: what is sent
// to the group
//   reaches it once.
// A tool with a time limit gets a group of its own, so that its children end with it; without a
// tool they are found by the mark in their environment.
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
      return base::fail(base::Code::kIo, "cannot make the folder: " + error.message(),
                        folder.string());
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
  const bool tool = captures == plan.set_env.end() || options.enough;
  if (!tool) command.mark = captures->first + "=" + captures->second;
  const bool leads = ::getpgrp() == ::getpid();
  command.own_group =
      (tool && plan.timeout) || options.enough || (!in_foreground() && (tool || leads));
  command.signal_child_only = !tool;
  command.leave_group = !command.own_group && !in_foreground();
  command.forward_signals = true;
  command.started = options.started;
  command.tick_every = options.tick_every;
  command.tick = options.tick;
  command.enough = options.enough;
  if (plan.collector != "native" || captures == plan.set_env.end()) return base::run(command);
  using namespace std::chrono;
  const auto since = [](auto clock) {
    return duration_cast<nanoseconds>(clock.now().time_since_epoch()).count();
  };
  // A report without it begins at the first record, and ends at the last.
  const std::filesystem::path file =
      std::filesystem::path(captures->second) / wire::launched::kFile;
  (void)base::write_file(
      file, wire::launched::text_of({since(system_clock()), since(steady_clock()), 0}));
  // Held, since samplers may leave no descriptor for the end (ulimit -n 14).
  const int held = ::open(base::in_place(file).c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  auto ended = base::run(command);
  if (ended) {
    const std::int64_t start_ns =
        since(steady_clock()) - (since(system_clock()) - ended->start_unix_ns);
    const std::string text =
        wire::launched::text_of({ended->start_unix_ns, start_ns, start_ns + ended->wall_ns});
    if (!base::write_file(file, text) && held >= 0)
      (void)!::pwrite(held, text.data(), text.size(), 0);
  }
  if (held >= 0) ::close(held);
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
  if (!plan.cwd.empty()) line += "cd " + base::shell_quote(plan.cwd.string()) + " && ";
  if (!plan.set_env.empty() || !plan.unset_env.empty()) {
    line += "env";
    for (const std::string& name : plan.unset_env) line += " -u " + base::shell_quote(name);
    for (const auto& [name, value] : plan.set_env)
      line += " " + base::shell_quote(name + "=" + value);
    line += ' ';
  }
  return line + base::shell_quote(plan.argv);
}

std::string recorded_command(const Plan& plan) {
  base::Redactor redactor;
  for (const auto& [name, value] : plan.set_env) redactor.learn(name, value);
  Plan recorded = plan;
  recorded.cwd = redactor.text(plan.cwd.string());
  recorded.argv = redactor.arguments(plan.argv);
  for (auto& [name, value] : recorded.set_env) value = redactor.variable(name, value);
  return shell_command(recorded);
}

}  // namespace rangescope::collect
