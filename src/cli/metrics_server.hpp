// A page of OpenMetrics over HTTP/1.1, for Prometheus: GET /metrics, and nothing else.
//
// It runs in the thread that calls it and waits for nobody: serve() takes what has come and sends what fits. At most
// 16 clients at once, of a request of at most 8 KiB, each for at most 10 seconds. Only addresses in numbers are bound.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace rangescope::cli {

class MetricsServer {
 public:
  MetricsServer() = default;
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;
  ~MetricsServer();

  /// "9400" (on 127.0.0.1), "0.0.0.0:9400", "[::1]:9400"; port 0 is any that is free. kUsage or kIo with a hint.
  [[nodiscard]] base::Result<void> listen(const std::string& address);
  /// Where it listens: "http://127.0.0.1:9400/metrics".
  [[nodiscard]] std::string url() const;
  /// Answers what was asked since the last call with `page`.
  void serve(const std::string& page);

 private:
  struct Client {
    int fd = -1;
    std::chrono::steady_clock::time_point until;
    std::string request, answer;
    bool answered = false;
  };
  [[nodiscard]] static bool go_on(Client& client, const std::string& page);

  int fd_ = -1;
  std::vector<Client> clients_;
};

}  // namespace rangescope::cli
