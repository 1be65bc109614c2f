#include "profile/tool_run.hpp"

#include <csignal>
#include <fstream>
#include <utility>

#include "base/fs.hpp"
#include "base/held_folder.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "collect/launch.hpp"

namespace rangescope::profile {
namespace {

/// The last MiB of a file, "" where there is none.
std::string tail(const std::filesystem::path& path) {
  constexpr std::streamoff kMost = 1 << 20;
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return {};
  file.seekg(0, std::ios::end);
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(0, size - kMost));
  std::string text(static_cast<std::size_t>(std::min(size, kMost)), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  return text;
}

/// Shows the complete lines that were added to a log since the last look.
class LogTail {
 public:
  explicit LogTail(std::filesystem::path path) : path_(std::move(path)) {}
  void show() {
    if (path_.empty() || base::log_level() < base::Level::kInfo)
      return;
    std::ifstream file(path_, std::ios::binary);
    if (!file)
      return;
    file.seekg(at_);
    std::string line;
    while (std::getline(file, line) && !file.eof()) {
      at_ += static_cast<std::streamoff>(line.size()) + 1;
      if (!line.empty())
        base::log(base::Level::kInfo, "ncu: " + base::printable(line));
    }
  }

 private:
  std::filesystem::path path_;
  std::streamoff at_ = 0;
};

}  // namespace

base::Result<ToolRun> StageRunner::run(const collect::Plan& plan,
                                       const std::string& label,
                                       const std::filesystem::path& log,
                                       bool quiet,
                                       std::function<void(pid_t)> started) {
  TRY(base::still_in_place(run_));
  std::error_code error;
  collect::LaunchOptions options;
  // The program's output is that of its first run, and so is its input. rangescope's own collector
  // says nothing there, so that the program has the very descriptors that we have; a tool talks on
  // its program's, and is judged by that.
  const bool first = !quiet && !std::exchange(ran_, true);
  const bool is_program_alone = plan.collector == "native";
  options.null_stdin = !first && !is_program_alone;
  std::filesystem::path folder = run_ / plan.collector;
  if (!is_program_alone) {
    std::filesystem::create_directories(base::in_place(folder), error);
    if (error)
      return base::fail(
          base::Code::kIo, "cannot make the folder: " + error.message(), folder.string());
    const std::filesystem::path commands = folder / "cmd.txt";
    std::string text;
    if (auto before = base::read_file(commands))
      text = *before;
    text += "# " + label + "\n" + collect::recorded_command(plan) + "\n";
    TRY(base::write_file(commands, text));
    options.out = {.pass = first, .keep = false, .file = folder / (label + ".stdout")};
    options.err = {.pass = first, .keep = false, .file = folder / (label + ".stderr")};
  }
  base::detail("running " + collect::shell_command(plan));

  std::filesystem::remove(base::in_place(log), error);
  LogTail talk(log);
  options.started = std::move(started);
  options.tick = [&](std::chrono::nanoseconds) { talk.show(); };
  auto ended = collect::launch(plan, options);
  talk.show();
  if (!ended)
    return base::fail(std::move(ended));
  const auto stops = [](int signal) {
    return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
  };
  if (!ended->timed_out) {
    if (ended->forwarded && stops(*ended->forwarded))
      interrupted_ = *ended->forwarded;
    if (ended->signal && stops(*ended->signal) && interrupted_ == 0 && ended->forwarded)
      interrupted_ = *ended->signal;
    if (ended->signal && *ended->signal == SIGINT)
      interrupted_ = SIGINT;  // Ctrl-C went to the foreground group
  }
  ToolRun result;
  result.ended = std::move(*ended);
  if (!log.empty())
    result.text = tail(log) + "\n";
  result.text += tail(options.out.file) + "\n" + tail(options.err.file);
  return result;
}

void StageRunner::record(runs::Stage stage) {
  stages_.push_back(std::move(stage));
  if (auto written = runs::write_stages(run_, stages_); !written && recorded_)
    recorded_ = std::move(written);
}

runs::Stage StageRunner::stage_of(const std::string& stage,
                                  const std::string& tool,
                                  const std::string& step,
                                  const collect::Outcome& outcome,
                                  const ToolRun& run) {
  runs::Stage out{.stage = stage,
                  .tool = tool,
                  .step = step,
                  .outcome = std::string(collect::result_name(outcome.result)),
                  .message = outcome.message,
                  .wall_ns = run.ended.wall_ns,
                  .exit_code = run.ended.exit_code};
  if (outcome.result != collect::Result::kOk) {
    out.why = outcome.why();
    if (!outcome.complaints.empty()) {
      out.evidence = outcome.complaints.front().evidence;
      out.cure = outcome.complaints.front().cure;
    }
  }
  return out;
}

collect::Observed observed(const ToolRun& run, bool interrupted) {
  return {run.text, run.ended.exit_code, run.ended.signal, run.ended.timed_out, interrupted};
}

}  // namespace rangescope::profile
