#include "cli/destination.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/progress.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/app.hpp"
#include "config/metric_groups.hpp"
#include "profile/captures.hpp"
#include "profile/engine.hpp"
#include "report/document/csv_text.hpp"
#include "report/document/findings.hpp"
#include "report/document/view.hpp"
#include "report/sink.hpp"
#include "runs/job/launcher.hpp"
#include "runs/layout.hpp"

namespace rangescope::cli {
namespace {

constexpr std::size_t kWidthElsewhere = 120;

std::size_t terminal_width(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return size.ws_col;
  if (const char* value = std::getenv("COLUMNS"))
    if (const auto columns = base::to_int(value); columns && *columns > 0)
      return static_cast<std::size_t>(*columns);
  return kWidthElsewhere;
}

/// A launcher gives each rank a terminal of its own; what is behind the launcher is another matter.
bool is_terminal(int fd) {
  return ::isatty(fd) != 0 && !runs::job::place_here().rank;
}

bool wants_color(int fd, const std::string& choice) {
  if (choice != "auto")
    return choice == "always";
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return is_terminal(fd) && (no_color == nullptr || *no_color == '\0') && !dumb;
}

/// Does this option take an output, and is `value` one? --json takes a file in `gate` only, where
/// a word that does not end so is the run.
bool takes_output(std::string_view option, std::string_view value) {
  static constexpr std::string_view kOutputs[] = {"-o", "--output", "--junit", "--markdown"};
  if (option == "--json")
    return arguments().front() == "gate" && value.ends_with(".json");
  return std::ranges::find(kOutputs, option) != std::end(kOutputs);
}

/// Does another word of the command line, the program's among them, name this file? What stands
/// behind an option of ours for outputs is the output itself.
bool is_input(const std::filesystem::path& to) {
  const auto& words = arguments();
  const auto program = std::ranges::find(words, "--");
  std::error_code error;
  for (auto word = words.begin(); word != words.end(); ++word) {
    const auto equals = word->find('=');
    std::string value;
    if (equals != std::string::npos)
      value = word->substr(equals + 1);
    const bool is_value = word != words.begin() && takes_output(*std::prev(word), *word);
    const bool has_value = !value.empty() && takes_output(word->substr(0, equals), value);
    const bool is_output = is_value || has_value || word->starts_with("-o");
    if (is_output && word < program)
      continue;
    for (const std::string& file : {*word, value})
      if (!file.empty() && std::filesystem::equivalent(file, to, error))
        return true;
  }
  return false;
}

}  // namespace

// base::Replacement refuses what is no plain file; here is what a plain file may not be.
base::Result<void> check_output(const std::filesystem::path& to) {
  std::error_code error;
  const auto status = std::filesystem::symlink_status(to, error);
  if (!std::filesystem::exists(status))
    return {};
  if (!std::filesystem::is_regular_file(status)) {
    auto refused = base::Replacement::begin(to);  // its error names it
    if (!refused)
      return base::fail(std::move(refused));
    return {};
  }
  if (is_input(to))
    return base::fail(
        base::Code::kUsage, "the output is an input", to.string(), "Name another file.");
  if (const std::string description = profile::kept_file(to); !description.empty())
    return base::fail(base::Code::kUsage,
                      "it is " + description + ", which is not overwritten",
                      to.string(),
                      "Name another file, or remove this one first.");
  return {};
}

report::Style style_on(int fd, const ReportChoice& choice) {
  report::Style style = choice.style;
  if (choice.width)
    style.width = *choice.width;
  else
    style.width = terminal_width(fd);
  style.color = wants_color(fd, choice.color);
  style.wrap = is_terminal(fd);
  return style;
}

base::Result<int> put(report::Grid list) {
  report::Style style = style_on(STDOUT_FILENO, {});
  if (!is_terminal(STDOUT_FILENO))
    style.width = 0;
  report::Document page;
  page.begin("").add(std::move(list));
  return put(report::terminal_text(page, style));
}

int beside_a_program() {
  return is_terminal(STDOUT_FILENO) ? STDOUT_FILENO : STDERR_FILENO;
}

int descriptor_beside_a_program(const ReportChoice& choice) {
  if (!choice.to.empty() || choice.format == report::kDefaultFormat)
    return beside_a_program();
  const int copy = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (copy >= 0 && ::dup2(STDERR_FILENO, STDOUT_FILENO) >= 0)
    return copy;
  return STDERR_FILENO;
}

profile::Talk talk_of(const ReportChoice& choice, int fd) {
  profile::Talk talk;
  talk.quiet = is_quiet();
  if (!is_quiet() || !choice.to.empty() || choice.format != report::kDefaultFormat)
    talk.report = [&choice, fd](const profile::Analyzed& analyzed) {
      ReportChoice shown = choice;
      for (const std::string& name : report::remove_absent_metrics(analyzed.report, shown.style))
        base::warn("no region has a value named '" + base::printable(name) +
                   "': the table is without it");
      return write_report(analyzed, shown, fd, true);
    };
  talk.report_shows_findings = choice.to.empty();
  talk.finding = [&choice](const model::Finding& finding) {
    if (!is_quiet())
      std::fputs(report::finding_text(finding, style_on(STDERR_FILENO, choice).color).c_str(),
                 stderr);
  };
  return talk;
}

void say_kept(const std::filesystem::path& run, bool in_default_root) {
  std::error_code error;
  if (!std::filesystem::exists(run, error))
    return;  // the program may have removed it, which was reported
  // Not relative(run, error): that throws where the working directory was removed.
  const auto working_directory = std::filesystem::current_path(error);
  const auto below = [&](const std::filesystem::path& folder) -> std::string {
    if (error)
      return {};
    std::string path = std::filesystem::relative(run, folder, error).string();
    if (error || path.starts_with(".."))
      return {};
    return path;
  };
  std::string shown = below(working_directory);
  if (shown.empty())
    shown = run.string();
  // Where this folder cannot be written the run is elsewhere, and `latest` would not find it.
  in_default_root = in_default_root && !below(working_directory / runs::kDefaultRoot).empty();
  // The head of the report has its name already.
  std::string kept_in = shown, name = shown;
  if (in_default_root) {
    kept_in = runs::kDefaultRoot;
    name = "latest";
  }
  base::info("run kept in " + kept_in + "; see it again: rangescope report " +
             base::shell_quote(name));
}

base::Result<void> check_values(const report::Style& style) {
  std::vector<std::string> metrics;
  const auto groups = TRY(config::shipped_groups());
  for (const model::MetricGroup& group : groups)
    for (const model::GroupMetric& metric : group.metrics)
      metrics.push_back(metric.name);
  return report::check_values(style, metrics);
}

base::Result<void> check_destination(const ReportChoice& choice, int fd) {
  const auto exporter = report::find_exporter(choice.format);
  if (choice.to.empty() && exporter && (*exporter)->kind == report::Exporter::Kind::kFile &&
      (fd == STDERR_FILENO || is_terminal(fd)))
    return base::fail(base::Code::kUsage,
                      choice.format + " is not readable on a terminal",
                      "--format",
                      "Name a file: -o report." + std::string((*exporter)->extension));
  if (choice.to.empty() || choice.to == "-")
    return {};
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::absolute(choice.to, ignored).parent_path();
  if (std::filesystem::is_directory(choice.to, ignored))
    return base::fail(
        base::Code::kIo, "cannot write the file: it is a folder", choice.to, "Name a file in it");
  if (!std::filesystem::is_directory(folder, ignored))
    return base::fail(base::Code::kIo,
                      "cannot write the file: its folder does not exist",
                      choice.to,
                      "Make the folder first: mkdir -p " + base::shell_quote(folder.string()));
  TRY(check_output(choice.to));
  if (::access(folder.c_str(), W_OK) != 0 && ::access(choice.to.c_str(), W_OK) != 0)
    return base::fail(
        base::Code::kIo, std::string("cannot write the file: ") + std::strerror(errno), choice.to);
  return {};
}

base::Result<void> write_to(
    const ReportChoice& choice,
    int default_fd,
    const std::function<base::Result<void>(report::Sink&, const report::Style&)>& write,
    bool may_leave) {
  const auto write_and_finish = [&](report::Sink& sink,
                                    const report::Style& style) -> base::Result<void> {
    TRY(write(sink, style));
    return sink.finish();
  };
  if (choice.to.empty() || choice.to == "-") {
    int fd = default_fd;
    if (choice.to == "-")
      fd = STDOUT_FILENO;
    std::string name = "standard output";
    if (fd == STDERR_FILENO)
      name = "standard error";
    report::DescriptorSink sink(fd, name, may_leave);
    return write_and_finish(sink, style_on(fd, choice));
  }
  TRY(check_output(choice.to));
  const base::Work writing("writing " + base::printable(choice.to));
  report::FileSink sink(choice.to);
  report::FormulaGuard guarded(sink);
  const auto exporter = report::find_exporter(choice.format);
  const bool guard =
      exporter && (*exporter)->kind == report::Exporter::Kind::kSheet && !choice.raw_cells;
  if (guard)
    TRY(write_and_finish(guarded, style_on(-1, choice)));
  else
    TRY(write_and_finish(sink, style_on(-1, choice)));
  std::error_code error;
  const auto size = std::filesystem::file_size(choice.to, error);
  std::string message = "wrote " + base::printable(choice.to);
  if (!error)
    message += " (" + base::format_bytes(size) + ")";
  base::info(message);
  return {};
}

base::Result<void> write_report(const profile::Analyzed& analyzed,
                                const ReportChoice& choice,
                                int default_fd,
                                bool may_leave) {
  auto exporter = TRY(report::find_exporter(choice.format));
  const auto write = [&](report::Sink& sink, const report::Style& style) {
    return exporter->write(analyzed.report, &analyzed.session, style, sink);
  };
  return write_to(choice, default_fd, write, may_leave);
}

}  // namespace rangescope::cli
