#include <unistd.h>

#include <optional>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/process_tree.hpp"
#include "base/redact.hpp"
#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "cli/bind_config.hpp"
#include "cli/destination.hpp"
#include "cli/dump/dump.hpp"
#include "cli/subcommand.hpp"
#include "cli/watch/watch.hpp"
#include "collect/native/native.hpp"
#include "profile/engine.hpp"
#include "profile/load_library.hpp"
#include "profile/sampling.hpp"
#include "runs/job/launcher.hpp"
#include "runs/layout.hpp"
#include "sample/cpu/dump/dump.hpp"

namespace rangescope::cli {
namespace {

/// Arguments and paths as a run would keep them.
void hide_secrets(sample::cpu::Dump& dump) {
  const base::Redactor redactor;
  dump.target.argv = redactor.arguments(dump.target.argv);
  dump.executable = redactor.text(dump.executable);
  for (sample::cpu::DumpedThread& thread : dump.threads)
    for (auto* frames : {&thread.native, &thread.python})
      for (sample::cpu::DumpedFrame& frame : *frames) {
        frame.file = redactor.text(frame.file);
        frame.module = redactor.text(frame.module);
      }
}

class AttachTo final : public Subcommand {
 public:
  AttachTo() : Subcommand("attach") {}

  void options(const Arguments& app) override {
    app.add_option("pid", pid_).required();
    app.add_duration("--for", length_, 1'000'000, kLongest);
    app.add_flag("--tree", tree_);
    app.add_flag("--dump", dump_);
    app.add_flag("--watch", watch_.is_on);
    app.add_duration("--watch-every", watch_.every, 100'000'000, kLongest);
    app.add_count("--rank", rank_);
    app.add_option("--gpu", gpu_).one_of({"auto", "on", "off"});
    bind_cpu(app, sampling_);
    bind_report(app, choice_);
    configuration_.options(
        app, true, {"--runs", "--run-dir", "--keep", "--compress", "--record-args"});
  }

  [[nodiscard]] base::Result<int> run() override {
    const auto pid = base::to_uint(pid_);
    if (!pid || *pid == 0 || *pid > 1u << 30)
      return base::fail(base::Code::kUsage,
                        "'" + base::printable(pid_) + "' is not a process id",
                        "PID",
                        "Write a number; find it: pgrep NAME");
    if (sampling_.cpu_off && gpu_ != "on")
      return base::fail(base::Code::kUsage,
                        "without --gpu on, attach only samples the CPU",
                        "--cpu",
                        "Leave out --cpu off, or add --gpu on");
    auto process = static_cast<std::uint32_t>(*pid);
    if (rank_)
      process = TRY(find_rank(process, *rank_));
    auto target = TRY(sample::cpu::find_target(process));
    base::set_attached_environment(target.environment);
    if (dump_)
      return dump(std::move(target));
    const auto config = TRY(configuration_.compose(target.argv));
    TRY(configuration_.apply(config));
    base::set_record_arguments(config.flag("run.record_args"));
    TRY(report::find_exporter(choice_.format));
    TRY(check_values(choice_.style));
    TRY(check_destination(choice_, STDOUT_FILENO));
    if (sampling_.cpu_hz)
      TRY(sample::cpu::allowed());
    if (!target.unread.empty())
      base::warn(target.unread + ": Python functions are missing");
    if (watch_.is_asked_for()) {
      std::string root = config.text("run.root").value_or(std::string(runs::kDefaultRoot));
      watch_.is_of_running = true;
      return Watch(std::move(root), watch_, choice_, {}).run(arguments());
    }
    profile::Attach to{std::move(target), length_, tree_ || rank_.has_value(), {}, gpu_ == "on"};
    if (gpu_.empty() && profile::uses_cuda(to.target.pid))
      base::info("process " + std::to_string(process) +
                 " uses CUDA: --gpu on records its GPU work too (CUPTI then slows its launches "
                 "until it ends)");
    if (!gpu_.empty() && gpu_ != "off") {
      auto library = collect::native::find_library();
      if (!library && to.gpu_or_fail)
        return base::fail(std::move(library));
      if (library && to.gpu_or_fail)
        TRY(profile::may_load(to.target, *library));
      to.library = library.value_or("");
    }
    const profile::Done done = profile::run(config,
                                            {.attach = std::move(to),
                                             .sampling = sampling_,
                                             .arguments = arguments(),
                                             .talk = talk_of(choice_, STDOUT_FILENO)});
    if (!done.directory.empty())
      say_kept(done.directory,
               config.text("run.root") == runs::kDefaultRoot && !config.get("run.dir"));
    return done.code;
  }

 private:
  /// What the process does at this moment, and with --tree its descendants.
  [[nodiscard]] base::Result<int> dump(sample::cpu::Target target) const {
    const bool is_json = choice_.format == "json";
    if (!is_json && choice_.format != report::kDefaultFormat)
      return base::fail(
          base::Code::kUsage, "--dump is written as text or JSON", "--format", "Write -f json");
    TRY(check_destination(choice_, STDOUT_FILENO));
    const std::filesystem::path cache = profile::names_cache();
    std::vector<DumpedProcess> processes;
    const std::uint32_t pid = target.pid;
    processes.push_back({sample::cpu::dump(std::move(target), cache), rank_of(pid)});
    if (tree_ || rank_) {
      for (const sample::cpu::Member& member : sample::cpu::members_of(pid, true)) {
        if (member.pid == pid)
          continue;
        auto descendant = sample::cpu::find_target(member.pid);
        if (!descendant)
          continue;
        auto its_dump = sample::cpu::dump(std::move(*descendant), cache);
        processes.push_back({std::move(its_dump), rank_of(member.pid)});
      }
    }
    for (DumpedProcess& process : processes)
      hide_secrets(process.dump);
    put_odd_first(processes);
    using Write = std::function<base::Result<void>(report::Sink&, const report::Style&)>;
    const Write write = [&](report::Sink& sink, const report::Style&) -> base::Result<void> {
      if (is_json)
        write_dump_json(processes, sink);
      else
        write_dump_text(processes, sink);
      return {};
    };
    TRY(write_to(choice_, STDOUT_FILENO, write));
    return 0;
  }

  static std::optional<std::uint32_t> rank_of(std::uint32_t pid) {
    const auto environment = base::environment_of(static_cast<pid_t>(pid));
    const auto value_of = [&](const char* name) { return base::value_in(environment, name); };
    return runs::job::place_of(value_of).rank;
  }

  /// Below a job's launcher, the outermost process that has this rank.
  static base::Result<std::uint32_t> find_rank(std::uint32_t launcher, std::size_t wanted) {
    std::vector<std::string> ranks;
    for (const sample::cpu::Member& member : sample::cpu::members_of(launcher, true)) {
      const auto rank = rank_of(member.pid);
      if (rank == wanted)
        return member.pid;
      if (rank)
        ranks.push_back(std::to_string(*rank));
    }
    std::string hint = "Name the launcher of a job on this host: pgrep torchrun, pgrep mpirun";
    if (!ranks.empty())
      hint = "Ranks of these processes: " + base::join(ranks, ", ");
    return base::fail(
        base::Code::kNoInput,
        "no process below " + std::to_string(launcher) + " is rank " + std::to_string(wanted),
        "--rank",
        std::move(hint));
  }

  std::string pid_, gpu_;
  std::optional<std::chrono::nanoseconds> length_;
  bool tree_ = false, dump_ = false;
  WatchChoice watch_;
  std::optional<std::size_t> rank_;
  profile::SampleChoice sampling_;
  ReportChoice choice_;
  ConfigArguments configuration_;
};

}  // namespace

std::unique_ptr<Subcommand> make_attach() {
  return std::make_unique<AttachTo>();
}

}  // namespace rangescope::cli
