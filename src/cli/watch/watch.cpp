#include "cli/watch/watch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "analyze/samples/latest_samples.hpp"
#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/signals.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/destination.hpp"
#include "profile/analyzed.hpp"
#include "report/exporter.hpp"
#include "report/sink.hpp"
#include "runs/layout.hpp"
#include "runs/manifest.hpp"
#include "runs/status.hpp"

namespace rangescope::cli {
namespace {

constexpr int kPause = 10;  // at least, in units of the time that a picture took

// "last second: GPU 0 DRAM 62.0 %, SM 80.1 %, tensor 12.0 %, 512 W"; empty where nothing is
// sampled.
std::string last_second(const model::Session& session) {
  std::vector<std::string> gpus;
  for (const analyze::LatestSamples& gpu : analyze::latest_samples(session)) {
    std::vector<std::string> values;
    for (const auto& [name, share] :
         {std::pair{"DRAM", gpu.dram}, {"SM", gpu.sm}, {"tensor", gpu.tensor}})
      if (share)
        values.push_back(fmt::format("{} {}", name, base::format_share(*share)));
    if (gpu.watts)
      values.push_back(base::format_si(*gpu.watts, "W"));
    gpus.push_back(gpu.gpu + " " + base::join(values, ", "));
  }
  if (gpus.empty())
    return {};
  return "last second: " + base::join(gpus, "; ") + "\n";
}

}  // namespace

std::vector<std::string> recording_of(const std::vector<std::string>& words,
                                      const std::string& tag,
                                      bool is_of_running) {
  constexpr std::string_view kWithValue[] = {"--watch-every", "--openmetrics"};
  constexpr std::string_view kSwitch = "--watch";
  std::vector<std::string> argv{base::self_path().string(), words.front(), "-q"};
  // In front of a program, whose arguments may follow without "--"; behind a process id.
  if (!is_of_running)
    argv.push_back(tag);
  const auto program = std::ranges::find(words, "--");
  for (auto word = words.begin() + 1; word != words.end(); ++word) {
    const bool is_ours = word < program;
    const bool takes_value = std::ranges::find(kWithValue, *word) != std::end(kWithValue);
    const std::string option = word->substr(0, word->find('='));
    const bool is_of_watching =
        option == kSwitch || std::ranges::find(kWithValue, option) != std::end(kWithValue);
    if (!is_ours || !is_of_watching)
      argv.push_back(*word);
    else if (takes_value && word + 1 != words.end())
      ++word;
  }
  if (is_of_running)
    argv.push_back(tag);
  return argv;
}

Watch::Watch(std::string root, WatchChoice wanted, ReportChoice choice, analyze::Options analysis)
    : root_(std::move(root)),
      wanted_(std::move(wanted)),
      choice_(std::move(choice)),
      analysis_(std::move(analysis)) {
  analysis_.histograms = !wanted_.openmetrics.empty();
}

base::Result<int> Watch::run(const std::vector<std::string>& words) {
  if (!wanted_.openmetrics.empty()) {
    TRY(server_.listen(wanted_.openmetrics));
    base::info("serving " + server_.url());
  }
  const int report_fd =
      wanted_.is_of_running ? STDOUT_FILENO : descriptor_beside_a_program(choice_);
  const bool writes_elsewhere = ::isatty(STDOUT_FILENO) == 0 && ::isatty(STDERR_FILENO) == 0;
  if (wanted_.is_of_running && ::isatty(STDERR_FILENO) != 0)
    terminal_ = STDERR_FILENO;
  else if (!wanted_.is_of_running && writes_elsewhere)
    terminal_ = ::open("/dev/tty", O_WRONLY | O_CLOEXEC | O_NOCTTY);
  if (!wanted_.every)
    wanted_.every = std::chrono::seconds(terminal_ >= 0 ? 1 : 5);
  tag_ = fmt::format("+vars.watched_by={}-{}",
                     ::getpid(),
                     std::chrono::steady_clock::now().time_since_epoch().count());

  base::Command command;
  command.argv = recording_of(words, tag_, wanted_.is_of_running);
  command.forward_signals = true;
  command.tick_every = std::chrono::milliseconds(50);
  command.tick = [this](std::chrono::nanoseconds elapsed) { tick(elapsed); };
  const auto ended = base::run(command);
  clear();
  if (!ended)
    return tl::make_unexpected(ended.error());
  if (const auto run = find(); !run.empty())
    TRY(show_last(run, report_fd));
  if (ended->exit_code)
    return *ended->exit_code;
  base::die_by(*ended->signal);
}

/// The table of the whole run, unless the child wrote the document that was asked for, and where
/// the run is.
base::Result<void> Watch::show_last(const std::filesystem::path& run, int report_fd) const {
  const auto captures = runs::captures_of(run);
  const bool is_table = choice_.to.empty() && choice_.format == report::kDefaultFormat;
  if (!captures.empty() && is_table) {
    const auto last = profile::analyze_input(captures.front(), run, analysis_);
    // The child has said it already where nothing was captured.
    if (last)
      TRY(write_report(*last, choice_, report_fd));
  }
  // Nothing is there to be seen again where the program never ran.
  if (const auto status = runs::read_status(run); !status || status->outcome != "error")
    say_kept(run, root_ == runs::kDefaultRoot);
  return {};
}

/// The run that our child made. Others may start in the same root: its manifest has the word that
/// only we gave.
std::filesystem::path Watch::find() {
  if (!run_.empty())
    return run_;
  for (const auto& run : runs::list_runs(root_)) {
    const auto manifest = runs::read_manifest(run);
    if (manifest && std::ranges::find(manifest->arguments, tag_) != manifest->arguments.end())
      run_ = run;
  }
  return run_;
}

void Watch::tick(std::chrono::nanoseconds elapsed) {
  if (!wanted_.openmetrics.empty())
    server_.serve(page_);
  if (elapsed < next_)
    return;
  const auto begin = std::chrono::steady_clock::now();
  draw(elapsed);
  const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begin;
  next_ = elapsed + std::max<std::chrono::nanoseconds>(*wanted_.every, kPause * took);
}

/// Nothing to draw yet is no error here: the child says at the end what was wrong.
void Watch::draw(std::chrono::nanoseconds elapsed) {
  const auto run = find();
  if (run.empty())
    return;
  const auto captures = runs::captures_of(run);
  if (captures.empty())
    return;
  auto now = profile::analyze_input(captures.front(), run, analysis_);
  if (!now)
    return;
  // A capture that grows is torn and its ranges are open: no loss, while it runs.
  now->report.losses.clear();
  now->report.findings.clear();
  if (!wanted_.openmetrics.empty())
    page_ = metrics_page(now->report);
  const auto table = report::find_exporter(report::kDefaultFormat);
  report::StringSink text;
  if (!table || !(*table)->write(now->report, nullptr, style_on(screen(), choice_), text))
    return;
  clear();
  std::string shown =
      fmt::format("after {:.1f} s\n", std::chrono::duration<double>(elapsed).count());
  shown += last_second(now->session) + text.text();
  const bool is_replaced = terminal_ >= 0;
  if (is_replaced)
    put(shown);
  else
    put(shown + "\n");
  lines_ = std::count(shown.begin(), shown.end(), '\n');
}

/// Takes the last picture off the terminal that is ours alone.
void Watch::clear() {
  if (lines_ > 0 && terminal_ >= 0)
    put(fmt::format("\x1b[{}A\x1b[J", lines_));
  lines_ = 0;
}

int Watch::screen() const {
  return terminal_ >= 0 ? terminal_ : STDERR_FILENO;
}

void Watch::put(const std::string& text) const {
  report::DescriptorSink sink(screen(), "standard error");
  sink.write(text);
  (void)sink.finish();  // there is no other place to complain to
}

}  // namespace rangescope::cli
