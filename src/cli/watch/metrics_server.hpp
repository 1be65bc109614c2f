// A page of OpenMetrics over HTTP/1.1, for Prometheus: GET /metrics, and nothing else. Of a request
// at most 8 KiB are read; for the other limits see base/server.hpp.
#pragma once

#include <string>

#include "base/result.hpp"
#include "base/server.hpp"
#include "model/report.hpp"

namespace rangescope::cli {

class MetricsServer {
 public:
  /// "9400" (on 127.0.0.1), "0.0.0.0:9400", "[::1]:9400": addresses in numbers alone; port 0 is any
  /// that is free. kUsage or kIo with a hint.
  [[nodiscard]] base::Result<void> listen(const std::string& address);
  /// Where it listens: "http://127.0.0.1:9400/metrics".
  [[nodiscard]] std::string url() const;
  /// Answers what was asked since the last call with `page`.
  void serve(const std::string& page);

 private:
  base::Server server_;
};

/// The largest regions over all processes, so that a program that makes up names does not make up
/// series without end. "" where the page cannot be written.
[[nodiscard]] std::string metrics_page(model::Report report);

}  // namespace rangescope::cli
