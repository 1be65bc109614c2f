#include "profile/record.hpp"

#include <algorithm>
#include <ctime>

#include "base/fs.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "collect/launch.hpp"
#include "config/record.hpp"
#include "runs/layout.hpp"
#include "runs/provenance.hpp"
#include "runs/status.hpp"

namespace rangescope::profile {
namespace {

std::int64_t own_cpu_ns() {
  timespec used{};
  if (::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) != 0)
    return 0;
  return used.tv_sec * 1'000'000'000 + used.tv_nsec;
}

}  // namespace

base::Result<RunRecord> RunRecord::begin(const std::filesystem::path& root,
                                         const std::vector<std::string>& program,
                                         const std::vector<std::string>& arguments) {
  auto path = TRY(runs::make_run_dir(root));
  return begin_at(std::move(path), program, arguments);
}

base::Result<RunRecord> RunRecord::begin_in(const std::filesystem::path& dir,
                                            const std::vector<std::string>& program,
                                            const std::vector<std::string>& arguments) {
  std::error_code error;
  const bool is_new = std::filesystem::create_directories(base::in_place(dir), error);
  if (is_new)
    std::filesystem::permissions(base::in_place(dir), std::filesystem::perms::owner_all, error);
  if (error)
    return base::fail(base::Code::kIo, "cannot make the folder: " + error.message(), dir.string());
  if (!std::filesystem::is_empty(dir, error) || error)
    return base::fail(base::Code::kConfig,
                      "run.dir holds something already",
                      dir.string(),
                      "Name a new or empty folder.");
  return begin_at(dir, program, arguments);
}

base::Result<RunRecord> RunRecord::begin_at(std::filesystem::path dir,
                                            const std::vector<std::string>& program,
                                            const std::vector<std::string>& arguments) {
  RunRecord record;
  record.path_ = std::move(dir);
  record.folder_ = TRY(base::HeldFolder::take(record.path_));
  record.hold_ = TRY(runs::Hold::take(record.path_));
  TRY(runs::write_running(record.path_));
  std::error_code error;
  record.manifest_ = {.id = record.path_.filename().string(),
                      .tool = base::tool_version(),
                      .argv = program,
                      .arguments = arguments,
                      .cwd = std::filesystem::current_path(error).string(),
                      .start_unix_ns = runs::unix_now_ns()};
  TRY(runs::write_manifest(record.path_, record.manifest_));
  return record;
}

base::Result<void> RunRecord::about_to_run(const collect::Plan& plan,
                                           const std::vector<std::string>* environment) {
  TRY(base::write_file(path_ / "cmd.txt", collect::recorded_command(plan) + "\n"));
  runs::Provenance seen = runs::look(plan.cwd, manifest_.argv, environment);
  seen.facts.insert(inputs_.begin(), inputs_.end());
  TRY(runs::write_provenance(path_, seen));
  manifest_.start_unix_ns = runs::unix_now_ns();
  TRY(runs::write_manifest(path_, manifest_));
  cpus_before_ = base::read_busy_cpus();
  own_cpu_before_ns_ = own_cpu_ns();
  return {};
}

std::optional<model::ProcessUsage::Machine> RunRecord::machine_use(double program_ns) const {
  const auto cpus_after = base::read_busy_cpus();
  if (!cpus_before_ || !cpus_after || cpus_after->cpus != cpus_before_->cpus)
    return std::nullopt;
  const auto span_ns = static_cast<double>(cpus_after->at_ns - cpus_before_->at_ns);
  // The kernel counts in ticks of 10 ms on every CPU.
  constexpr double kShortest_ns = 500e6;
  if (span_ns < kShortest_ns)
    return std::nullopt;
  const auto busy_ns = static_cast<double>(cpus_after->busy_ns - cpus_before_->busy_ns);
  const auto profiler_ns = static_cast<double>(own_cpu_ns() - own_cpu_before_ns_);
  const double busy_with_others = (busy_ns - program_ns - profiler_ns) / span_ns;
  return model::ProcessUsage::Machine{cpus_after->cpus, std::max(0.0, busy_with_others)};
}

base::Result<void> RunRecord::ended(const base::Ended& ended) {
  manifest_.start_unix_ns = ended.start_unix_ns;
  manifest_.end_unix_ns = ended.start_unix_ns + ended.wall_ns;
  manifest_.exit_code = ended.exit_code;
  manifest_.signal = ended.signal;
  if (ended.usage) {
    model::ProcessUsage& usage = manifest_.usage.emplace();
    usage.user_ns = static_cast<double>(ended.usage->user_ns);
    usage.system_ns = static_cast<double>(ended.usage->system_ns);
    const auto peak_bytes = static_cast<double>(ended.usage->peak_rss_bytes);
    if (peak_bytes > 0)
      usage.peak_rss_bytes = peak_bytes;
    usage.machine = machine_use(usage.cpu_ns());
  }
  program_.clear();
  if (!ended.left)
    program_ = base::describe(ended);
  // The end is written only together with the hashes (finish): a manifest with an end is complete.
  runs::Manifest unfinished = manifest_;
  unfinished.end_unix_ns = 0;
  return runs::write_manifest(path_, unfinished);
}

base::Result<void> RunRecord::finish(int exit_code,
                                     const std::string& outcome,
                                     const std::string& message,
                                     const std::vector<model::Loss>& losses,
                                     const std::vector<model::Finding>& findings) {
  runs::seal(path_);
  // The status is written whatever became of the rest: it reports what failed.
  base::Result<void> first;
  const auto note = [&first](base::Result<void> done) {
    if (first && !done)
      first = std::move(done);
  };
  auto files = runs::prove_files(base::in_place(path_));
  if (files) {
    manifest_.files = std::move(*files);
    if (manifest_.end_unix_ns == 0)
      manifest_.end_unix_ns = runs::unix_now_ns();
    note(runs::write_manifest(path_, manifest_));
  } else {
    note(base::fail(std::move(files)));
  }
  runs::Status status{.state = runs::RunState::kDone,
                      .exit_code = exit_code,
                      .outcome = outcome,
                      .message = base::replace_all(message, "\nhint: ", ". "),
                      .program = program_,
                      .losses = losses,
                      .findings = findings};
  if (!first) {
    if (status.outcome == "ok")
      status.outcome = "error";
    if (!message.empty())
      status.message += "; ";
    status.message += base::to_string(first.error());
  }
  note(runs::write_done(path_, status));
  return first;
}

base::Result<void> write_config(const std::filesystem::path& run, const config::Config& config) {
  if (config.flag("run.share"))
    TRY(runs::share(run));
  TRY(base::write_file(run / "config.yaml", config::recorded_values(config)));
  return base::write_file(run / "inputs.yaml", config::recorded_inputs(config));
}

}  // namespace rangescope::profile
