#include "cli/present.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "analyze/tree.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/app.hpp"
#include "cli/counters.hpp"
#include "cli/destination.hpp"
#include "report/sink.hpp"
#include "runs/layout.hpp"
#include "runs/manifest.hpp"

namespace rangescope::cli {
namespace {

constexpr std::size_t kWidthElsewhere = 120;

// "native: rangescope 0.1.0, native-trace 1.0"
std::string source_text(const model::Source& source) {
  std::string text = source.format;
  if (!source.tool.empty()) text += ": " + source.tool;
  if (!source.schema.empty()) text += ", " + source.schema;
  return text;
}

void add_run_info(model::Report& report, const model::Session& session, const std::filesystem::path& input,
                  const std::filesystem::path& run) {
  model::RunInfo info = run.empty() ? report.run : runs::run_info(run);
  if (info.id.empty()) info.id = input.filename().string();
  if (info.tool.empty()) info.tool = tool_version();
  info.duration_ns = static_cast<double>(session.end_ns - session.begin_ns);
  if (info.start_unix_ns == 0 && session.clock.anchor_unix_ns != 0)
    info.start_unix_ns = session.clock.anchor_unix_ns + (session.begin_ns - session.clock.anchor_ns);
  for (const model::Source& source : session.sources) {
    const std::string text = source_text(source);
    if (std::find(info.sources.begin(), info.sources.end(), text) == info.sources.end()) info.sources.push_back(text);
  }
  report.run = std::move(info);
}

base::Error nothing(const std::filesystem::path& input, const model::Session& session) {
  base::Error error{base::Code::kNothingCaptured, {}, input.string(), {}};
  if (!session.sources.empty() && session.sources.front().format != "native") {
    error.what =
        "the file was read (" + source_text(session.sources.front()) + ") and holds no range, kernel or result";
    error.hint = "Check what the tool was told to record: nsys needs --trace=cuda,nvtx";
  } else {
    error.what = "nothing was captured: " + why_no_range(session);
    error.hint =
        !session.processes.empty() ? "Check that the part of the program that has ranges ran"
        : !session.losses.empty()
            ? "Let the program open and write files: ulimit -n and ulimit -f, free space, memory"
            : "Check that the program calls NVTX 3 (C and C++: nvtx3 headers; Python: the nvtx package or "
              "torch.cuda.nvtx), may open files, and is neither setuid nor run in a container of its own; if it went "
              "on in the background, report on the run when that has ended";
  }
  return error;
}

}  // namespace

std::string why_no_range(const model::Session& native) {
  if (!native.processes.empty()) return base::counted(native.processes.size(), "process") + ", and none opened a range";
  for (const model::Loss& loss : native.losses)
    if (loss.kind == "no_capture_file") return loss.detail;
  return "no process loaded rangescope's library, or none that did could write into the run directory";
}

// The folder for captures is there, and nothing is in it.
bool is_empty_folder(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error) && std::filesystem::is_empty(path, error);
}

namespace {

std::size_t terminal_width(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  if (const char* said = std::getenv("COLUMNS"))
    if (const auto columns = base::to_int(said); columns && *columns > 0) return static_cast<std::size_t>(*columns);
  return kWidthElsewhere;
}

bool wants_color(int fd, const std::string& choice) {
  if (choice != "auto") return choice == "always";
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return ::isatty(fd) != 0 && (no_color == nullptr || *no_color == '\0') && !dumb;
}

}  // namespace

base::Result<std::vector<std::filesystem::path>> find_inputs(const std::filesystem::path& root, const std::string& said,
                                                             std::filesystem::path& run) {
  std::filesystem::path input(said);
  std::error_code error;
  if (std::filesystem::exists(input, error) && !runs::is_run_dir(input)) {
    if (const auto inside = runs::list_runs(input); !inside.empty())
      return base::fail(base::Code::kUsage, "this is a folder of runs", said,
                        "Name one of them: " + base::shell_quote(inside.back().string()));
    return std::vector{input};
  }
  auto found = runs::find_run(root, said);
  if (!found) {
    base::Error failure = found.error();
    if (said.find('/') != std::string::npos || said.find('.') != std::string::npos)
      failure.what = "there is no such file or run: " + base::printable(said);
    return tl::make_unexpected(std::move(failure));
  }
  if (const auto repeats = runs::repeats_of(*found); !repeats.empty()) {
    const std::size_t count = repeats.size();
    *found = runs::median_repeat(repeats);
    base::info("the repetition of median duration, " + found->filename().string() + " of " + std::to_string(count) +
               "; the others are in " + found->parent_path().string());
  }
  if (run.empty()) run = *found;
  auto captures = captures_to_read(*found);
  if (captures.empty()) {
    return base::fail(base::Code::kNothingCaptured, "the run holds no capture", found->string(),
                      "See what happened: rangescope runs show " + base::shell_quote(said));
  }
  return captures;
}

std::vector<std::filesystem::path> captures_to_read(const std::filesystem::path& run) {
  auto captures = runs::captures_of(run);
  if (captures.size() > 1) std::erase_if(captures, is_empty_folder);
  return captures;
}

base::Result<Analyzed> analyze_inputs(std::span<const std::filesystem::path> inputs, const std::filesystem::path& run,
                                      const analyze::Options& options, read::Options reading) {
  for (const auto& input : inputs) {
    if (is_empty_folder(input) && (!run.empty() || !runs::run_of(input).empty()))
      return tl::make_unexpected(nothing(input, {}));
  }
  reading.threads = options.threads;
  const analyze::FoldNames how = options.fold_names.value_or(fold_names_of(run));
  const auto names = analyze::NameFolder::make(how, options);
  if (!names) return tl::make_unexpected(names.error());
  auto captured = read_captures(inputs, reading, *names);
  if (!captured) return base::fail(std::move(captured));
  model::Session& session = captured->session;
  if (session.ranges.empty() && session.kernels.empty() && session.measurements.empty() && session.summary.empty())
    return tl::make_unexpected(nothing(inputs.front(), session));
  if (options.by_payload || counted_by_payload(run)) analyze::name_by_payload(session);
  auto metric_columns = derive_metrics(session, run);
  auto report = analyze::analyze(session, options);
  if (!report) return base::fail(std::move(report));
  report->metric_columns = std::move(metric_columns);
  report->notes.insert(report->notes.end(), captured->notes.begin(), captured->notes.end());
  if (std::string hint = how == analyze::FoldNames::kAuto ? analyze::number_hint(*report) : ""; !hint.empty())
    report->notes.push_back(std::move(hint));
  judge_regions(*report);
  add_run_info(*report, session, inputs.front(), run);
  return Analyzed{std::move(session), std::move(*report), std::move(captured->parts)};
}

base::Result<Analyzed> analyze_input(const std::filesystem::path& input, const std::filesystem::path& run,
                                     const analyze::Options& options) {
  return analyze_inputs(std::span(&input, 1), run, options);
}

report::Style style_on(int fd, const ReportChoice& choice) {
  report::Style style = choice.style;
  style.width = choice.width ? *choice.width : terminal_width(fd);
  style.color = wants_color(fd, choice.color);
  return style;
}

int beside_a_program() {
  return ::isatty(STDOUT_FILENO) != 0 ? STDOUT_FILENO : STDERR_FILENO;
}

base::Result<void> check_destination(const ReportChoice& choice, int fd) {
  if (choice.to.empty() && choice.format == "perfetto" && (fd == STDERR_FILENO || ::isatty(fd) != 0))
    return base::fail(base::Code::kUsage, "perfetto is no text", "--format", "Name a file: -o trace.pftrace");
  if (choice.to.empty() || choice.to == "-") return {};
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::absolute(choice.to, ignored).parent_path();
  if (std::filesystem::is_directory(choice.to, ignored))
    return base::fail(base::Code::kIo, "cannot write the file: it is a folder", choice.to, "Name a file in it");
  if (!std::filesystem::is_directory(folder, ignored))
    return base::fail(base::Code::kIo, "cannot write the file: its folder does not exist", choice.to,
                      "Make the folder first: mkdir -p " + base::shell_quote(folder.string()));
  if (::access(folder.c_str(), W_OK) != 0 && ::access(choice.to.c_str(), W_OK) != 0)
    return base::fail(base::Code::kIo, std::string("cannot write the file: ") + std::strerror(errno), choice.to);
  return {};
}

base::Result<void> write_to(const ReportChoice& choice, int default_fd,
                            const std::function<base::Result<void>(report::Sink&, const report::Style&)>& write) {
  const auto whole = [&](report::Sink& sink, const report::Style& style) -> base::Result<void> {
    if (auto written = write(sink, style); !written) return written;
    return sink.finish();
  };
  if (choice.to.empty() || choice.to == "-") {
    const int fd = choice.to == "-" ? STDOUT_FILENO : default_fd;
    report::DescriptorSink sink(fd, fd == STDOUT_FILENO ? "standard output" : "standard error");
    return whole(sink, style_on(fd, choice));
  }
  report::FileSink sink(choice.to);
  return whole(sink, style_on(-1, choice));
}

base::Result<void> write_report(const Analyzed& analyzed, const ReportChoice& choice, int default_fd) {
  auto exporter = report::find_exporter(choice.format);
  if (!exporter) return base::fail(std::move(exporter));
  return write_to(choice, default_fd, [&](report::Sink& sink, const report::Style& style) {
    return (*exporter)->write(analyzed.report, &analyzed.session, style, sink);
  });
}

bool has_loss(const model::Report& report) {
  return std::any_of(report.losses.begin(), report.losses.end(),
                     [](const model::Loss& loss) { return loss.severity != model::Severity::kInfo; });
}

}  // namespace rangescope::cli
