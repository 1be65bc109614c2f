#include "harness.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "base/fs.hpp"
#include "read/native/reader.hpp"

extern char** environ;

namespace rangescope::victims {
namespace {

constexpr int kPatienceMs = 240000;  // on a machine that others keep busy

// How it ended, or that it did not.
std::string wait_for(pid_t child) {
  pollfd ended{static_cast<int>(syscall(SYS_pidfd_open, child, 0)), POLLIN, 0};
  const bool hung = ended.fd >= 0 && poll(&ended, 1, kPatienceMs) == 0;
  if (hung)
    kill(child, SIGKILL);
  if (ended.fd >= 0)
    close(ended.fd);
  int status = 0;
  waitpid(child, &status, 0);
  if (hung)
    return "hung";
  return WIFEXITED(status) ? "exit " + std::to_string(WEXITSTATUS(status))
                           : "signal " + std::to_string(WTERMSIG(status));
}

}  // namespace

std::ostream& operator<<(std::ostream& stream, const Outcome& o) {
  return stream << o.ended << "\n" << o.out << o.err;
}

Folder::Folder() {
  std::string name = (fs::temp_directory_path() / "rangescope-victim-XXXXXX").string();
  path_ = mkdtemp(name.data()) != nullptr ? name : "";
}

Folder::~Folder() {
  std::error_code error;
  fs::permissions(path_ / "captures", fs::perms::owner_all, error);
  fs::remove_all(path_, error);
}

std::vector<std::string> environment(const Environment& more) {
  std::vector<std::string> env{
      "ASAN_OPTIONS=handle_segv=0:handle_abort=0:detect_leaks=0:use_sigaltstack=0",
      "TSAN_OPTIONS=handle_segv=0:handle_abort=0:die_after_fork=0"};
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string_view one(*e);
    if (!one.starts_with("NVTX_INJECTION") && !one.starts_with("RANGESCOPE_") &&
        !one.starts_with("ASAN_OPTIONS") && !one.starts_with("TSAN_OPTIONS") &&
        !one.starts_with("CUDA_INJECTION")) {
      env.emplace_back(one);
    }
  }
  for (const auto& [name, value] : more)
    env.push_back(name + "=" + value);
  return env;
}

Outcome run(const std::vector<std::string>& argv, const Environment& more, const Folder& folder) {
  const std::vector<std::string> env = environment(more);
  std::vector<char*> args, envs;
  for (const std::string& a : argv)
    args.push_back(const_cast<char*>(a.c_str()));
  for (const std::string& e : env)
    envs.push_back(const_cast<char*>(e.c_str()));
  args.push_back(nullptr);
  envs.push_back(nullptr);
  const fs::path out = folder / "out", err = folder / "err";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  pid_t child = 0;
  Outcome outcome;
  if (posix_spawn(&child, args[0], &actions, nullptr, args.data(), envs.data()) != 0) {
    outcome.ended = "not started";
  } else {
    outcome.ended = wait_for(child);
  }
  posix_spawn_file_actions_destroy(&actions);
  outcome.out = base::read_file(out).value_or("");
  outcome.err = base::read_file(err).value_or("");
  return outcome;
}

std::string show(const model::Session& session) {
  struct Count {
    int closed = 0, open = 0;
  };
  std::map<std::string, Count> counts;
  std::vector<std::string> order;
  std::map<std::pair<std::uint32_t, std::uint32_t>,
           std::vector<std::pair<std::int64_t, std::string>>>
      stacks;
  for (const model::Range& range : session.ranges) {
    std::string label = "p" + std::to_string(session.threads[range.thread].process) + ": ";
    if (range.domain != 0)
      label += std::string(session.strings.view(session.domains[range.domain].name)) + ":";
    std::string name(session.strings.view(range.name));
    if (name.size() > 100)
      name = name.substr(0, 3) + "*" + std::to_string(name.size());
    if (range.kind == model::RangeKind::kStartEnd) {
      label += "<" + name + (range.end_thread != model::kNone ? " across" : "") + ">";
    } else {
      auto& stack = stacks[{range.thread, range.domain}];
      while (!stack.empty() && stack.back().first < range.end_ns)
        stack.pop_back();
      const std::string path = stack.empty() ? name : stack.back().second + " > " + name;
      stack.emplace_back(range.end_ns, path);
      label += path;
    }
    const auto [known, fresh] = counts.try_emplace(label);
    if (fresh)
      order.push_back(label);
    range.end_ns == model::kOpen ? ++known->second.open : ++known->second.closed;
  }
  std::string text;
  for (const std::string& label : order) {
    const Count& count = counts[label];
    text += label + " " + std::to_string(count.closed);
    if (count.open > 0)
      text += ", " + std::to_string(count.open) + " open";
    text += "\n";
  }
  for (const model::Mark& mark : session.marks) {
    text += "mark " + std::string(session.strings.view(mark.name)) + "\n";
  }
  for (const model::Loss& loss : session.losses)
    text += "! " + std::string(loss.kind.id()) + " " + std::to_string(loss.count) + "\n";
  return text;
}

model::Session Victim::captured() const {
  auto session = read::native::kReader.read(folder_ / "captures", {.listed = 0});
  return session ? std::move(*session) : model::Session{};
}

model::Session Victim::recorded_alone(const std::vector<std::string>& argv, Environment env) {
  std::error_code error;
  fs::remove_all(folder_ / "captures", error);
  env.emplace("NVTX_INJECTION64_PATH", RANGESCOPE_LIBRARY);
  env.emplace("RANGESCOPE_DIR", (folder_ / "captures").string());
  outcome_ = run(argv, env, folder_);
  return captured();
}

model::Session Victim::recorded_command(const std::vector<std::string>& argv,
                                        Environment env,
                                        bool same) {
  const Outcome plain = run(argv, env, folder_);
  env.emplace("NVTX_INJECTION64_PATH", RANGESCOPE_LIBRARY);
  env.emplace("RANGESCOPE_DIR", (folder_ / "captures").string());
  outcome_ = run(argv, env, folder_);
  if (same) {
    EXPECT_EQ(outcome_, plain);
  }
  return captured();
}

bool has_loss(const model::Session& session, std::string_view kind) {
  for (const model::Loss& loss : session.losses) {
    if (loss.kind.id() == kind)
      return true;
  }
  return false;
}

std::size_t closed(const model::Session& session, std::string_view name) {
  std::size_t count = 0;
  for (const model::Range& r : session.ranges)
    count += session.strings.view(r.name) == name && r.end_ns != model::kOpen;
  return count;
}

}  // namespace rangescope::victims
