#include <unistd.h>

#include <optional>

#include "base/log.hpp"
#include "base/redact.hpp"
#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "cli/bind_config.hpp"
#include "cli/destination.hpp"
#include "cli/subcommand.hpp"
#include "collect/native/native.hpp"
#include "profile/engine.hpp"
#include "profile/load_library.hpp"
#include "runs/layout.hpp"

namespace rangescope::cli {
namespace {

class AttachTo final : public Subcommand {
 public:
  AttachTo() : Subcommand("attach") {}

  void options(const Arguments& app) override {
    app.add_option("pid", pid_).required();
    app.add_duration("--for", length_, 1'000'000, kLongest);
    app.add_flag("--tree", tree_);
    app.add_option("--gpu", gpu_).one_of({"auto", "on", "off"});
    bind_cpu(app, sampling_);
    bind_report(app, choice_);
    configuration_.options(app, true, {"--runs", "--run-dir", "--keep", "--compress", "--record-args"});
  }

  [[nodiscard]] base::Result<int> run() override {
    const auto pid = base::to_uint(pid_);
    if (!pid || *pid == 0 || *pid > 1u << 30)
      return base::fail(base::Code::kUsage, "'" + base::printable(pid_) + "' is not a process id", "PID",
                        "Write a number; find it: pgrep NAME");
    if (sampling_.cpu_off)
      return base::fail(base::Code::kUsage, "attach only samples the CPU", "--cpu", "Leave out --cpu off");
    auto target = TRY(sample::cpu::find_target(static_cast<std::uint32_t>(*pid)));
    const auto config = TRY(configuration_.compose(target.argv));
    TRY(configuration_.apply(config));
    base::set_record_arguments(config.flag("run.record_args"));
    TRY(report::find_exporter(choice_.format));
    TRY(check_destination(choice_, STDOUT_FILENO));
    if (sampling_.cpu_hz) TRY(sample::cpu::allowed());
    if (!target.unread.empty()) base::warn(target.unread + ": Python functions are missing");
    profile::Attach to{std::move(target), length_, tree_, {}, gpu_ == "on"};
    if (gpu_ == "on" || (gpu_ == "auto" && profile::uses_cuda(to.target.pid))) TRY(choose_library(to));
    const profile::Done done = profile::run(config, {.attach = std::move(to),
                                                     .sampling = sampling_,
                                                     .arguments = arguments(),
                                                     .talk = talk_of(choice_, STDOUT_FILENO)});
    if (!done.directory.empty())
      say_kept(done.directory, config.text("run.root") == runs::kDefaultRoot && !config.get("run.dir"));
    return done.code;
  }

 private:
  /// Where it may be loaded; else that is said, and an error if the GPU was asked for.
  static base::Result<void> choose_library(profile::Attach& to) {
    auto library = collect::native::find_library();
    auto may = library ? profile::may_load(to.target, *library) : base::fail(std::move(library));
    if (may)
      to.library = *library;
    else if (to.gpu_or_fail)
      return may;
    else
      base::warn(base::to_string(may.error()));
    return {};
  }

  std::string pid_, gpu_ = "off";
  std::optional<std::chrono::nanoseconds> length_;
  bool tree_ = false;
  profile::SampleChoice sampling_;
  ReportChoice choice_;
  ConfigArguments configuration_;
};

}  // namespace

std::unique_ptr<Subcommand> make_attach() {
  return std::make_unique<AttachTo>();
}

}  // namespace rangescope::cli
