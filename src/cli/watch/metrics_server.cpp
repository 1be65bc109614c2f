#include "cli/watch/metrics_server.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/text.hpp"
#include "report/exporter.hpp"
#include "report/sink.hpp"

namespace rangescope::cli {
namespace {

constexpr std::size_t kServedRegions = 200, kServedHistograms = 50;

constexpr std::size_t kMostRequest = 8192;
constexpr std::string_view kPage = "application/openmetrics-text; version=1.0.0; charset=utf-8",
                           kWords = "text/plain";

std::string reply(std::string_view status, std::string_view type, std::string_view body) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nX-Content-Type-Options: "
      "nosniff\r\nConnection: "
      "close\r\n\r\n{}",
      status,
      type,
      body.size(),
      body);
}

/// What a request, whole up to its empty line, is answered with.
std::string answer_to(std::string_view request, const std::string& page) {
  const std::string_view line = request.substr(0, request.find("\r\n"));
  const auto words = base::split(line, ' ');
  if (words.size() != 3 || !words[2].starts_with("HTTP/1."))
    return reply("400 Bad Request", kWords, "no HTTP/1.1\n");
  if (words[0] != "GET")
    return reply("405 Method Not Allowed", kWords, "only GET\n");
  if (words[1].substr(0, words[1].find('?')) != "/metrics")
    return reply("404 Not Found", kWords, "only /metrics\n");
  return reply("200 OK", kPage, page);
}

}  // namespace

base::Result<void> MetricsServer::listen(const std::string& address) {
  std::string host = "127.0.0.1", port = address;
  if (const auto colon = address.rfind(':'); colon != std::string::npos) {
    host = address.substr(0, colon);
    port = address.substr(colon + 1);
  }
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  constexpr std::int64_t kLastPort = 65535;
  const auto number = base::to_int(port);
  if (!number || *number < 0 || *number > kLastPort || host.empty() ||
      ::getaddrinfo(host.c_str(), port.c_str(), &hints, &list) != 0)
    return base::fail(base::Code::kUsage,
                      "'" + base::printable(address) + "' is not a numeric address",
                      "--openmetrics",
                      "Write a port (9400), or an address and a port (127.0.0.1:9400)");
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> found(list, ::freeaddrinfo);
  const int fd = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0)
    server_.take(fd, "\r\n\r\n", kMostRequest);
  const int on = 1;
  if (fd < 0 || ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(fd, found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(fd, base::Server::kMostClients) != 0)
    return base::fail(base::Code::kIo,
                      std::string("cannot listen there: ") + std::strerror(errno),
                      address,
                      "Name another port");
  return {};
}

std::string MetricsServer::url() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getsockname(server_.fd(), reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&address),
                    size,
                    host.data(),
                    host.size(),
                    port.data(),
                    port.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return {};
  std::string name = host.data();
  if (address.ss_family == AF_INET6)
    name = "[" + name + "]";
  return "http://" + name + ":" + port.data() + "/metrics";
}

void MetricsServer::serve(const std::string& page) {
  server_.serve([&](std::string_view request, bool whole) {
    if (!whole)
      return reply("431 Request Header Fields Too Large", kWords, "too long\n");
    return answer_to(request, page);
  });
}

std::string metrics_page(model::Report report) {
  std::erase_if(report.regions,
                [](const model::Region& region) { return region.process || region.thread; });
  const std::size_t region_count = report.regions.size();
  std::stable_sort(report.regions.begin(), report.regions.end(), [](const auto& a, const auto& b) {
    return a.wall.inclusive_ns > b.wall.inclusive_ns;
  });
  report.regions.resize(std::min(region_count, kServedRegions));
  for (std::size_t i = kServedHistograms; i < report.regions.size(); ++i)
    report.regions[i].wall.histogram.clear();
  report.verdict.clear();
  report::StringSink text;
  const auto exporter = report::find_exporter("openmetrics");
  if (!exporter || !(*exporter)->write(report, nullptr, {}, text))
    return {};
  return fmt::format(
      "# TYPE rangescope_regions gauge\n# HELP rangescope_regions range paths, of which the {} "
      "largest "
      "are here\nrangescope_regions {}\n{}",
      report.regions.size(),
      region_count,
      text.text());
}

}  // namespace rangescope::cli
