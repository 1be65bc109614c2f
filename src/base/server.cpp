#include "base/server.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace rangescope::base {

namespace {

constexpr auto kPatience = std::chrono::seconds(10);

}  // namespace

sockaddr_un address_in(int folder, std::string_view name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  fmt::format_to_n(
      address.sun_path, sizeof address.sun_path - 1, "/proc/self/fd/{}/{}", folder, name);
  return address;
}

Server::~Server() {
  for (const Client& client : clients_)
    ::close(client.fd);
  if (fd_ >= 0)
    ::close(fd_);
}

void Server::take(int fd, std::string_view end, std::size_t most_bytes) {
  fd_ = fd;
  end_ = end;
  most_ = most_bytes;
}

/// False when the client is done with.
bool Server::go_on(Client& client, const Answer& answer) const {
  std::array<char, 2048> buffer{};
  while (!client.answered) {
    const ssize_t got = ::recv(client.fd, buffer.data(), buffer.size(), 0);
    if (got < 0)
      return errno == EAGAIN || errno == EINTR;
    if (got == 0)
      return false;
    client.request.append(buffer.data(), static_cast<std::size_t>(got));
    const auto end = client.request.find(end_);
    if (end == std::string::npos && client.request.size() <= most_)
      continue;
    client.answered = true;
    client.answer =
        answer(std::string_view(client.request).substr(0, end), end != std::string::npos);
  }
  while (!client.answer.empty()) {
    const ssize_t sent =
        ::send(client.fd, client.answer.data(), client.answer.size(), MSG_NOSIGNAL);
    if (sent < 0)
      return errno == EAGAIN || errno == EINTR;
    client.answer.erase(0, static_cast<std::size_t>(sent));
  }
  ::shutdown(client.fd, SHUT_WR);
  return false;
}

void Server::serve(const Answer& answer, const std::function<bool(int fd)>& may) {
  const auto now = std::chrono::steady_clock::now();
  for (;;) {
    std::erase_if(clients_, [&](Client& client) {
      if (now < client.until && go_on(client, answer))
        return false;
      ::close(client.fd);
      return true;
    });
    const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
      return;
    if (may && !may(fd)) {
      ::close(fd);
      continue;
    }
    if (clients_.size() >= kMostClients) {
      ::close(clients_.front().fd);
      clients_.erase(clients_.begin());
    }
    clients_.push_back({fd, now + kPatience, {}, {}, false});
  }
}

void Server::wait_for(std::vector<pollfd>& list) const {
  list.push_back({fd_, POLLIN, 0});
  for (const Client& client : clients_)
    list.push_back({client.fd, static_cast<short>(client.answered ? POLLOUT : POLLIN), 0});
}

}  // namespace rangescope::base
