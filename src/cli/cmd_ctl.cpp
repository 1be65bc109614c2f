// `rangescope ctl`: opens and closes windows of a program that `profile` runs, by the socket of its
// run (profile/windows.hpp), and reports on one while the program goes on.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>

#include "base/fs.hpp"
#include "base/process_tree.hpp"
#include "base/server.hpp"
#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "cli/destination.hpp"
#include "cli/subcommand.hpp"
#include "profile/analyzed.hpp"
#include "runs/layout.hpp"
#include "wire/control.hpp"
#include "wire/names.hpp"

namespace rangescope::cli {
namespace {

namespace fs = std::filesystem;
namespace control = wire::control;

/// What another user's folder or process says is not followed, by root neither: the socket that it
/// names may be anybody's.
base::Result<void> check_owner(const fs::path& path, const std::string& what) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || status.st_uid == ::geteuid())
    return {};
  return base::fail(
      base::Code::kPermission,
      what + " belongs to another user",
      path.string(),
      "Run as that user: sudo -u '#" + std::to_string(status.st_uid) + "' rangescope ctl ...");
}

bool is_of_this_user(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == ::geteuid();
}

/// Each line with what a terminal would interpret escaped.
std::string printable_lines(std::string_view text) {
  std::string out;
  for (const std::string_view line : base::split(base::trim(text), '\n'))
    out += base::printable(line) + "\n";
  return out;
}

/// A run by its name or path, or by any process of its program, or by the `rangescope profile` that
/// runs that.
base::Result<fs::path> find_captures(const fs::path& root, const std::string& said) {
  if (const auto pid = base::to_uint(said); pid && *pid > 0 && *pid < 1u << 30) {
    TRY(check_owner("/proc/" + said, "process " + said));
    for (const base::TreeMember& member : base::process_tree(static_cast<pid_t>(*pid)))
      if (const auto found = base::value_in(base::environment_of(member.pid), wire::kDir);
          !found.empty())
        return found;
    return base::fail(base::Code::kNoInput,
                      "process " + said + " does not belong to a program under rangescope profile",
                      {},
                      "Name the run, or one of its processes: rangescope runs list");
  }
  auto run = TRY(runs::find_run(root, said));
  TRY(check_owner(run, "the run"));
  return run / "native";
}

base::Error closed(const fs::path& captures) {
  std::error_code error;
  const bool is_windowed = fs::exists(captures / control::kFile, error);
  if (is_windowed)
    return {base::Code::kNoInput,
            "the program has ended",
            captures.string(),
            "Its report: rangescope report " + captures.parent_path().string()};
  return {base::Code::kNoInput,
          "this run records its program from start to end",
          captures.string(),
          "To open windows, start with: rangescope profile --stopped -- PROGRAM"};
}

/// What the run answers; of a first line that begins with "error", the error.
base::Result<std::string> ask(const fs::path& captures, const std::string& request) {
  constexpr int kPatience_ms = 30'000;
  constexpr std::size_t kMostAnswer = 64u << 20;
  const int folder = ::open(captures.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un address = base::address_in(folder, control::kSocket);
  const std::string line = request + "\n";
  const timeval patience{kPatience_ms / 1000, 0};
  if (fd >= 0)
    ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const bool is_connected =
      fd >= 0 && ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const bool is_trusted = is_connected && is_of_this_user(fd);
  const bool sent = is_trusted && ::send(fd, line.data(), line.size(), MSG_NOSIGNAL) ==
                                      static_cast<ssize_t>(line.size());
  const int error = errno;
  std::string text;
  char buffer[1024];
  pollfd polled{fd, POLLIN, 0};
  for (ssize_t got = 1; sent && got > 0 && ::poll(&polled, 1, kPatience_ms) == 1;)
    if (got = ::recv(fd, buffer, sizeof buffer, 0); got > 0 && text.size() < kMostAnswer)
      text.append(buffer, static_cast<std::size_t>(got));
    else
      break;
  for (const int descriptor : {folder, fd})
    if (descriptor >= 0)
      ::close(descriptor);
  if (is_connected && !is_trusted)
    return base::fail(base::Code::kPermission,
                      "another user's process answers for this run",
                      (captures / control::kSocket).string());
  if (!sent && (error == ENOENT || error == ECONNREFUSED))
    return tl::make_unexpected(closed(captures));
  if (!sent || text.empty()) {
    std::string reason = "it may belong to another user";
    if (!sent)
      reason = std::strerror(error);
    return base::fail(base::Code::kPermission,
                      "the run does not answer: " + reason,
                      (captures / control::kSocket).string());
  }
  if (text.starts_with("error "))
    return base::fail(base::Code::kUsage,
                      base::printable(base::trim(std::string_view(text).substr(6))),
                      captures.string());
  return text;
}

std::uint32_t number_after(const std::string& text, const std::string& word) {
  const auto line = text.find("\n" + word + " ");
  if (line == std::string::npos)
    return 0;
  const std::string_view rest = std::string_view(text).substr(line + word.size() + 2);
  return static_cast<std::uint32_t>(base::to_uint(rest.substr(0, rest.find('\n'))).value_or(0));
}

class Control final : public Subcommand {
 public:
  Control() : Subcommand("ctl") {}

  void options(const Arguments& app) override {
    app.add_option("run", run_).required();
    app.add_option("verb", verb_).required().one_of({"start", "stop", "status", "mark", "report"});
    app.add_option("window", window_);
    app.add_option("--runs", root_);
    bind_report(app, choice_);
  }

  [[nodiscard]] base::Result<int> run() override {
    const auto captures = TRY(find_captures(root_, run_));
    if (verb_ == "report")
      return report(captures);
    if (verb_ == "mark") {
      std::string name = "mark";
      if (!window_.empty())
        name = window_;
      const auto answer = TRY(ask(captures, "mark " + name));
      return put(printable_lines(std::string_view(answer).substr(3)));
    }
    if (!window_.empty())
      return base::fail(
          base::Code::kUsage, "one word too many: " + base::printable(window_), verb_);
    const auto answer = TRY(ask(captures, verb_));
    std::string_view lines = answer;
    if (lines.starts_with("ok "))
      lines.remove_prefix(3);
    return put(printable_lines(lines));
  }

 private:
  /// Of a window that is over: the last one, unless its number was said.
  [[nodiscard]] base::Result<int> report(const fs::path& captures) {
    TRY(report::find_exporter(choice_.format));
    TRY(check_destination(choice_, STDOUT_FILENO));
    const auto wanted = base::to_uint(window_);
    if (!window_.empty() && (!wanted || *wanted > UINT32_MAX))
      return base::fail(base::Code::kUsage,
                        "'" + base::printable(window_) + "' is not a window number",
                        "report");
    std::uint32_t window = 0;
    constexpr auto kPatience = std::chrono::minutes(2);
    for (const auto until = std::chrono::steady_clock::now() + kPatience;;) {
      const auto answer = TRY(ask(captures, "status"));
      std::uint32_t last_ended = number_after(answer, "window");
      if (answer.starts_with("ok recording"))
        --last_ended;
      if (window == 0)
        window = static_cast<std::uint32_t>(wanted.value_or(last_ended));
      if (window == 0 || window > last_ended) {
        std::string problem = "no window has ended";
        if (wanted)
          problem = "that window has not ended";
        return base::fail(base::Code::kNothingCaptured,
                          std::move(problem),
                          run_,
                          "End it: rangescope ctl " + run_ + " stop");
      }
      if (number_after(answer, "ready") >= window)
        break;
      if (std::chrono::steady_clock::now() > until)
        return base::fail(base::Code::kIo,
                          "the window was not ready within two minutes",
                          run_,
                          "Ask again, or report on the run when its program has ended");
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    const fs::path folder = captures / (control::kWindow + std::to_string(window));
    const auto analyzed = TRY(profile::analyze_input(folder, captures.parent_path(), {}));
    TRY(write_report(analyzed, choice_, STDOUT_FILENO));
    return 0;
  }

  std::string run_, verb_, window_;
  std::string root_{runs::kDefaultRoot};
  ReportChoice choice_;
};

}  // namespace

std::unique_ptr<Subcommand> make_ctl() {
  return std::make_unique<Control>();
}

}  // namespace rangescope::cli
