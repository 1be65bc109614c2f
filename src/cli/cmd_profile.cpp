#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

#include "analyze/samples/latest_samples.hpp"
#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/redact.hpp"
#include "base/server.hpp"
#include "base/signals.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "cli/bind_config.hpp"
#include "cli/destination.hpp"
#include "cli/subcommand.hpp"
#include "profile/analyzed.hpp"
#include "profile/engine.hpp"
#include "profile/settings.hpp"
#include "report/sink.hpp"
#include "runs/layout.hpp"
#include "runs/manifest.hpp"
#include "runs/status.hpp"

namespace rangescope::cli {
namespace {

// `profile --watch`: shows, while a program runs, the table of what was captured so far.
//
// The program's side is the same `rangescope profile` with -q, run as a child: watching adds no
// work in the program. What is shown is read from the growing capture, as one would read that of a
// program that died at this moment. Reading takes longer as the capture grows, so the pause between
// two pictures is at least ten times what the last one took.
//
// A picture replaces the one before only where nothing else is written to the terminal: where the
// program has both its output streams elsewhere. Otherwise pictures follow each other, and what the
// program printed stays.

constexpr int kPause = 10;  // at least, in units of the time that a picture took
constexpr std::size_t kServedRegions = 200, kServedHistograms = 50;

constexpr std::size_t kMostRequest = 8192;
constexpr std::string_view kPage = "application/openmetrics-text; version=1.0.0; charset=utf-8",
                           kWords = "text/plain";

std::string reply(std::string_view status, std::string_view type, std::string_view body) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nX-Content-Type-Options: "
      "nosniff\r\nConnection: "
      "close\r\n\r\n{}",
      status, type, body.size(), body);
}

/// What a request, whole up to its empty line, is answered with.
std::string answer_to(std::string_view request, const std::string& page) {
  const std::string_view line = request.substr(0, request.find("\r\n"));
  const auto words = base::split(line, ' ');
  if (words.size() != 3 || !words[2].starts_with("HTTP/1."))
    return reply("400 Bad Request", kWords, "no HTTP/1.1\n");
  if (words[0] != "GET") return reply("405 Method Not Allowed", kWords, "only GET\n");
  if (words[1].substr(0, words[1].find('?')) != "/metrics")
    return reply("404 Not Found", kWords, "only /metrics\n");
  return reply("200 OK", kPage, page);
}

/// A page of OpenMetrics over HTTP/1.1, for Prometheus: GET /metrics, and nothing else. Of a
/// request at most 8 KiB; for the rest see base/server.hpp. Only addresses in numbers are bound.
class MetricsServer {
 public:
  /// "9400" (on 127.0.0.1), "0.0.0.0:9400", "[::1]:9400"; port 0 is any that is free. kUsage or kIo
  /// with a hint.
  [[nodiscard]] base::Result<void> listen(const std::string& address) {
    const auto colon = address.rfind(':');
    std::string host = colon == std::string::npos ? "127.0.0.1" : address.substr(0, colon);
    const std::string port = colon == std::string::npos ? address : address.substr(colon + 1);
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
      return base::fail(
          base::Code::kUsage, "'" + base::printable(address) + "' is not a numeric address",
          "--openmetrics", "Write a port (9400), or an address and a port (127.0.0.1:9400)");
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> found(list, ::freeaddrinfo);
    const int fd = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) server_.take(fd, "\r\n\r\n", kMostRequest);
    const int on = 1;
    if (fd < 0 || ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        ::bind(fd, found->ai_addr, found->ai_addrlen) != 0 ||
        ::listen(fd, base::Server::kMostClients) != 0)
      return base::fail(base::Code::kIo,
                        std::string("cannot listen there: ") + std::strerror(errno), address,
                        "Name another port");
    return {};
  }
  /// Where it listens: "http://127.0.0.1:9400/metrics".
  [[nodiscard]] std::string url() const {
    sockaddr_storage at{};
    socklen_t size = sizeof at;
    std::array<char, NI_MAXHOST> host{};
    std::array<char, NI_MAXSERV> port{};
    if (::getsockname(server_.fd(), reinterpret_cast<sockaddr*>(&at), &size) != 0 ||
        ::getnameinfo(reinterpret_cast<sockaddr*>(&at), size, host.data(), host.size(), port.data(),
                      port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
      return {};
    const std::string name =
        at.ss_family == AF_INET6 ? "[" + std::string(host.data()) + "]" : std::string(host.data());
    return "http://" + name + ":" + port.data() + "/metrics";
  }
  /// Answers what was asked since the last call with `page`.
  void serve(const std::string& page) {
    server_.serve([&](std::string_view request, bool whole) {
      return whole ? answer_to(request, page)
                   : reply("431 Request Header Fields Too Large", kWords, "too long\n");
    });
  }

 private:
  base::Server server_;
};

/// The largest regions over all processes, so that a program that makes up names does not make up
/// series without end.
std::string metrics_page(model::Report report) {
  std::erase_if(report.regions,
                [](const model::Region& region) { return region.process || region.thread; });
  const std::size_t all = report.regions.size();
  std::stable_sort(report.regions.begin(), report.regions.end(), [](const auto& a, const auto& b) {
    return a.wall.inclusive_ns > b.wall.inclusive_ns;
  });
  report.regions.resize(std::min(all, kServedRegions));
  for (std::size_t i = kServedHistograms; i < report.regions.size(); ++i)
    report.regions[i].wall.histogram.clear();
  report.verdict.clear();
  report::StringSink text;
  const auto exporter = report::find_exporter("openmetrics");
  if (!exporter || !(*exporter)->write(report, nullptr, {}, text)) return {};
  return fmt::format(
      "# TYPE rangescope_regions gauge\n# HELP rangescope_regions range paths, of which the {} "
      "largest "
      "are here\nrangescope_regions {}\n{}",
      report.regions.size(), all, text.text());
}

class Watch {
 public:
  /// `root`: of the runs. `openmetrics`: address that serves the numbers of the table too; "" for
  /// none.
  Watch(std::string root, std::optional<std::chrono::nanoseconds> every, std::string openmetrics,
        ReportChoice choice, analyze::Options analysis)
      : root_(std::move(root)),
        every_(every),
        openmetrics_(std::move(openmetrics)),
        choice_(std::move(choice)),
        analysis_(std::move(analysis)) {
    analysis_.histograms = !openmetrics_.empty();
  }

  /// Runs `words`, the arguments of this rangescope, without what asks for watching, and draws
  /// beside it. The exit code is the program's.
  [[nodiscard]] base::Result<int> run(const std::vector<std::string>& words) {
    if (!openmetrics_.empty()) {
      TRY(server_.listen(openmetrics_));
      base::info("serving " + server_.url());
    }
    const int to = descriptor_beside_a_program(choice_);
    if (::isatty(STDOUT_FILENO) == 0 && ::isatty(STDERR_FILENO) == 0)
      terminal_ = ::open("/dev/tty", O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (!every_) every_ = std::chrono::seconds(terminal_ >= 0 ? 1 : 5);
    tag_ = fmt::format("+vars.watched_by={}-{}", ::getpid(),
                       std::chrono::steady_clock::now().time_since_epoch().count());

    std::error_code error;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
    if (error)
      return base::fail(base::Code::kInternal, "rangescope cannot find its own executable",
                        "/proc/self/exe", {});
    base::Command command;
    command.argv = {self.string(), "profile", "-q", tag_};
    for (std::size_t i = 1; i < words.size(); ++i) {
      const bool ours = std::find(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(i),
                                  "--") == words.begin() + static_cast<std::ptrdiff_t>(i);
      if (ours && (words[i] == "--watch" || words[i].starts_with("--watch-every=") ||
                   words[i].starts_with("--openmetrics=")))
        continue;
      if (ours && (words[i] == "--watch-every" || words[i] == "--openmetrics") &&
          ++i < words.size())
        continue;
      command.argv.push_back(words[i]);
    }
    command.forward_signals = true;
    command.tick_every = std::chrono::milliseconds(50);
    command.tick = [this](std::chrono::nanoseconds elapsed) { tick(elapsed); };
    const auto ended = base::run(command);
    clear();
    if (!ended) return tl::make_unexpected(ended.error());
    const bool table =
        choice_.to.empty() && choice_.format == report::kDefaultFormat;  // else the child writes it
    if (const auto run = find(); !run.empty()) {
      const auto captures = runs::captures_of(run);
      if (!captures.empty() && table) {
        const auto last = profile::analyze_input(captures.front(), run, analysis_);
        // profile has said it already where nothing was captured.
        if (last) TRY(write_report(*last, choice_, to));
      }
      // Nothing is there to be seen again where the program never ran.
      if (const auto status = runs::read_status(run); !status || status->outcome != "error")
        say_kept(run, root_ == runs::kDefaultRoot);
    }
    if (ended->exit_code) return *ended->exit_code;
    base::die_by(*ended->signal);
  }

 private:
  // The run that our profile made. Others may start in the same root: its manifest has the word
  // that only we gave.
  [[nodiscard]] std::filesystem::path find() {
    if (!run_.empty()) return run_;
    for (const auto& run : runs::list_runs(root_)) {
      const auto manifest = runs::read_manifest(run);
      if (manifest && std::find(manifest->arguments.begin(), manifest->arguments.end(), tag_) !=
                          manifest->arguments.end())
        run_ = run;
    }
    return run_;
  }

  void tick(std::chrono::nanoseconds elapsed) {
    if (!openmetrics_.empty()) server_.serve(page_);
    if (elapsed < next_) return;
    const auto begin = std::chrono::steady_clock::now();
    draw(elapsed);
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begin;
    next_ = elapsed + std::max<std::chrono::nanoseconds>(*every_, kPause * took);
  }

  // Nothing to draw yet is no error here: profile says at the end what was wrong.
  void draw(std::chrono::nanoseconds elapsed) {
    const auto run = find();
    if (run.empty()) return;
    const auto captures = runs::captures_of(run);
    if (captures.empty()) return;
    auto now = profile::analyze_input(captures.front(), run, analysis_);
    if (!now) return;
    // A capture that grows is torn and its ranges are open: no loss, while it runs.
    now->report.losses.clear();
    now->report.findings.clear();
    if (!openmetrics_.empty()) page_ = metrics_page(now->report);
    const auto table = report::find_exporter(report::kDefaultFormat);
    report::StringSink text;
    if (!table || !(*table)->write(now->report, nullptr, style_on(screen(), choice_), text)) return;
    clear();
    std::string shown =
        fmt::format("after {:.1f} s\n", std::chrono::duration<double>(elapsed).count());
    shown += last_second(now->session) + text.text();
    put(shown + (terminal_ >= 0 ? "" : "\n"));
    lines_ = std::count(shown.begin(), shown.end(), '\n');
  }

  // "last second: GPU 0 DRAM 62.0 %, SM 80.1 %, tensor 12.0 %, 512 W"; empty where nothing is
  // sampled.
  [[nodiscard]] static std::string last_second(const model::Session& session) {
    std::string line;
    for (const analyze::LatestSamples& gpu : analyze::latest_samples(session)) {
      std::vector<std::string> values;
      for (const auto& [name, share] :
           {std::pair{"DRAM", gpu.dram}, {"SM", gpu.sm}, {"tensor", gpu.tensor}})
        if (share) values.push_back(fmt::format("{} {}", name, base::format_share(*share)));
      if (gpu.watts) values.push_back(base::format_si(*gpu.watts, "W"));
      line += (line.empty() ? "last second: " : "; ") + gpu.gpu + " " + base::join(values, ", ");
    }
    return line.empty() ? line : line + "\n";
  }

  // Takes the last picture off the terminal that is ours alone.
  void clear() {
    if (lines_ > 0 && terminal_ >= 0) put(fmt::format("\x1b[{}A\x1b[J", lines_));
    lines_ = 0;
  }

  [[nodiscard]] int screen() const { return terminal_ >= 0 ? terminal_ : STDERR_FILENO; }

  void put(const std::string& text) const {
    report::DescriptorSink sink(screen(), "standard error");
    sink.write(text);
    (void)sink.finish();  // there is no other place to complain to
  }

  std::string root_;
  std::string tag_;  ///< a word of the command line that nobody else gives
  std::optional<std::chrono::nanoseconds> every_;
  std::string openmetrics_, page_ = "# EOF\n";
  MetricsServer server_;
  int terminal_ = -1;  ///< where pictures replace each other; -1: nowhere
  ReportChoice choice_;
  analyze::Options analysis_;
  std::filesystem::path run_;
  std::chrono::nanoseconds next_{0};
  std::ptrdiff_t lines_ = 0;
};

// The program's end is ours: its code, or its signal.
int end_like(const base::Ended& ended) {
  if (ended.exit_code) return *ended.exit_code;
  base::die_by(*ended.signal);
}

/// A script of Python that is no program by itself is run by the Python that asked for it
/// (`python -m rangescope`), else by python3.
std::vector<std::string> with_interpreter(std::vector<std::string> program) {
  std::error_code ignored;
  if (program.empty() || !program.front().ends_with(".py") || base::find_on_path(program.front()) ||
      !std::filesystem::is_regular_file(program.front(), ignored))
    return program;
  const char* python = std::getenv("RANGESCOPE_PYTHON");
  program.insert(program.begin(), python == nullptr ? "python3" : python);
  return program;
}

class Profile final : public Subcommand {
 public:
  Profile() : Subcommand("profile", true) {}

  void options(const Arguments& app) override {
    const Arguments run = app.under("Run"), windows = app.under("Windows");
    run.add_flag("--dry-run", dry_run_);
    run.add_option("--repeat", repeat_);
    run.add_flag("--strict", strict_);
    run.add_flag("--watch", watch_);
    run.add_duration("--watch-every", every_, 100'000'000, kLongest);
    run.add_option("--openmetrics", openmetrics_);
    windows.add_duration("--after", windows_.after, 0, kLongest);
    windows.add_duration("--for", windows_.length, 0, kLongest);
    windows.add_option("--window", window_);
    windows.add_duration("--keep-last", windows_.keep_last, 1'000'000'000, kLongest);
    windows.add_option("--when", when_);
    windows.add_flag("--stopped", windows_.stopped);
    bind_native(app, native_);
    bind_sampling(app, sampling_);
    bind_report(app, choice_);
    bind_regions(app, analysis_);
    bind_counters(app, counters_);
    configuration_.options(app);
  }

  [[nodiscard]] base::Result<int> run() override {
    const auto composed = TRY(configuration_.compose(with_interpreter(program_)));
    const config::Config& config = composed;
    TRY(configuration_.apply(config));
    base::set_record_arguments(config.flag("run.record_args"));
    program_ = config.list("workload.command");
    if (program_.empty())
      return base::fail(base::Code::kUsage, "there is no program to run", {},
                        "Put it after --: rangescope profile -- python3 train.py");
    TRY(report::find_exporter(choice_.format));
    TRY(check_values(choice_.style));
    if ((watch_ || every_ || !openmetrics_.empty()) && !dry_run_) {
      analysis_.ranges = TRY(profile::ranges_of(config));
      analysis_.kernels = TRY(profile::kernels_of(config));
      TRY(check_analysis(analysis_));
      return Watch(config.text("run.root").value_or(std::string(runs::kDefaultRoot)), every_,
                   openmetrics_, choice_, analysis_)
          .run(arguments());
    }
    to_ = dry_run_ ? beside_a_program() : descriptor_beside_a_program(choice_);
    TRY(check_destination(choice_, to_));
    analysis_.fold_names.reset();  // the run's configuration has it
    TRY(check_analysis(analysis_));
    counters_.by_payload = analysis_.by_payload;
    constexpr std::int64_t kMost = 1000;
    const auto repeat = repeat_ == "auto" ? std::optional<std::int64_t>(profile::kAutoRepeat)
                                          : base::to_int(repeat_);
    if (!repeat || *repeat > kMost || (*repeat < 1 && repeat_ != "auto"))
      return base::fail(base::Code::kUsage,
                        "'" + base::printable(repeat_) + "' is not a number of runs", "--repeat",
                        "Write 1 to 1000, or auto");
    if (!window_.empty()) {
      windows_.counted = TRY(profile::parse_counted(window_));
    }
    if (!when_.empty()) {
      auto when = TRY(profile::parse_when(when_));
      windows_.when = std::move(when);
    }
    profile::warn_of_idle_keys(config);
    TRY(profile::wanted_events(sampling_));
    const profile::Done done = profile::run(config, {.analysis = analysis_,
                                                     .native = native_,
                                                     .sampling = sampling_,
                                                     .windows = windows_,
                                                     .counters = counters_,
                                                     .arguments = arguments(),
                                                     .talk = talk_of(choice_, to_),
                                                     .repeat = static_cast<int>(*repeat),
                                                     .dry_run = dry_run_,
                                                     .strict = strict_});
    if (!done.directory.empty())
      say_kept(done.directory,
               config.text("run.root") == runs::kDefaultRoot && !config.get("run.dir"));
    return done.end ? end_like(*done.end) : done.code;
  }

 private:
  ConfigArguments configuration_;
  bool dry_run_ = false, strict_ = false, watch_ = false;
  std::optional<std::chrono::nanoseconds> every_;
  std::string repeat_ = "1", openmetrics_, window_, when_;
  int to_ = STDERR_FILENO;
  collect::native::Options native_;
  profile::SampleChoice sampling_;
  profile::WindowChoice windows_;
  collect::native::CounterRequest counters_;
  ReportChoice choice_;
  analyze::Options analysis_;
};

}  // namespace

std::unique_ptr<Subcommand> make_profile() {
  return std::make_unique<Profile>();
}

}  // namespace rangescope::cli
