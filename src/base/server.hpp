// Short requests on a listening socket, each answered at once: for clients that are not trusted to
// be quick, or to end.
//
// It runs in the thread that calls it and waits for no client: serve() takes what has come and
// sends what fits. At most kMostClients at once: one more and the one that came first is dropped. A
// request has a largest size, a client some seconds.
#pragma once

#include <poll.h>
#include <sys/un.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rangescope::base {

/// Of the socket `name` in the folder that the handle `folder` is of: its path may be longer than
/// an address.
[[nodiscard]] sockaddr_un address_in(int folder, std::string_view name);

class Server {
 public:
  static constexpr std::size_t kMostClients = 16;
  /// Of a request up to its end; `whole` is false where it is longer than it may be.
  using Answer = std::function<std::string(std::string_view request, bool whole)>;

  Server() = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();
  /// `fd` is a listening socket that does not block, ours from now on; requests end with `end`.
  void take(int fd, std::string_view end, std::size_t most_bytes);
  [[nodiscard]] int fd() const { return fd_; }
  /// Answers what was asked since the last call; clients whom `may` refuses are closed unheard.
  void serve(const Answer& answer, const std::function<bool(int fd)>& may = {});
  /// What to wait for until serve() has something to do.
  void wait_for(std::vector<pollfd>& list) const;

 private:
  struct Client {
    int fd = -1;
    std::chrono::steady_clock::time_point until;
    std::string request, answer;
    bool answered = false;
  };
  [[nodiscard]] bool go_on(Client& client, const Answer& answer) const;

  int fd_ = -1;
  std::string end_;
  std::size_t most_ = 0;
  std::vector<Client> clients_;
};

}  // namespace rangescope::base
