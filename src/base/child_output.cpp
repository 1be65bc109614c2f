#include "base/child_output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/held_folder.hpp"

namespace rangescope::base {
namespace {

constexpr std::size_t kBlock = 65536;

}  // namespace

ChildOutput::~ChildOutput() {
  shut(read_);
  shut(write_);
  shut(file_);
}

void ChildOutput::shut(int& fd) {
  if (fd >= 0) ::close(std::exchange(fd, -1));
}

Result<void> ChildOutput::open() {
  if (how_.pass && !how_.keep && how_.file.empty()) return {};
  if (!how_.file.empty()) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC;
    const int file = ::open(in_place(how_.file).c_str(), kFlags, 0666);
    if (file < 0)
      return fail(Code::kIo, std::string("cannot create the file: ") + std::strerror(errno), how_.file.string());
    const bool alone = !how_.pass && !how_.keep;  // the child writes there itself, as long as it or its children live
    (alone ? write_ : file_) = file;
    if (alone) return {};
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(Code::kIo, std::string("cannot make a pipe: ") + std::strerror(errno));
  read_ = ends[0];
  write_ = ends[1];
  return {};
}

bool ChildOutput::take(std::string& kept) {
  std::array<char, kBlock> buffer;
  const ssize_t n = ::read(read_, buffer.data(), buffer.size());
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (n <= 0) {
    shut(read_);
    return false;
  }
  const std::string_view bytes(buffer.data(), static_cast<std::size_t>(n));
  if (file_ >= 0) put(file_, bytes);
  if (how_.keep) kept += bytes;
  // Whoever read our output went away: then the program's next write says so to it, as without us.
  if (how_.pass && !put(target_, bytes)) {
    shut(read_);
    return false;
  }
  return true;
}

bool ChildOutput::pass_on(int from, int to) {
  std::array<char, kBlock> buffer;
  const ssize_t n = ::read(from, buffer.data(), buffer.size());
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  return n > 0 && put(to, {buffer.data(), static_cast<std::size_t>(n)});
}

// False where nobody reads any more. A full disk must not stop the program: we go on taking its bytes.
bool ChildOutput::put(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return errno != EPIPE;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

void hand_over(const ChildOutput& out, const ChildOutput& err) {
  if (!out.shows() && !err.shows()) return;
  const pid_t first = ::fork();
  if (first > 0) ::waitpid(first, nullptr, 0);
  if (first != 0) return;
  if (::fork() != 0) ::_exit(0);  // not our child
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
  std::array<pollfd, 2> from = {{{out.shows() ? out.fd() : -1, POLLIN, 0}, {err.shows() ? err.fd() : -1, POLLIN, 0}}};
  const int low = std::min(from[0].fd < 0 ? from[1].fd : from[0].fd, from[1].fd < 0 ? from[0].fd : from[1].fd);
  const int high = std::max(from[0].fd, from[1].fd);
  if (low > 3) ::syscall(SYS_close_range, 3u, static_cast<unsigned>(low - 1), 0u);
  if (low + 1 < high) ::syscall(SYS_close_range, static_cast<unsigned>(low + 1), static_cast<unsigned>(high - 1), 0u);
  ::syscall(SYS_close_range, static_cast<unsigned>(high + 1), ~0u, 0u);
  while (from[0].fd >= 0 || from[1].fd >= 0) {
    if (::poll(from.data(), from.size(), -1) < 0) continue;
    for (int target : {STDOUT_FILENO, STDERR_FILENO}) {
      pollfd& stream = from[static_cast<std::size_t>(target - STDOUT_FILENO)];
      if (stream.fd >= 0 && stream.revents != 0 && !ChildOutput::pass_on(stream.fd, target))
        ::close(std::exchange(stream.fd, -1));
    }
  }
  ::_exit(0);
}

}  // namespace rangescope::base
