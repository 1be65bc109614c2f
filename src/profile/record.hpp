// The run directory of one `profile`, from its first moment to its last: whatever happens,
// status.json reports it.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/busy_cpus.hpp"
#include "base/held_folder.hpp"
#include "base/process.hpp"
#include "base/result.hpp"
#include "collect/collector.hpp"
#include "config/compose.hpp"
#include "runs/hold.hpp"
#include "runs/manifest.hpp"

namespace rangescope::profile {

class RunRecord {
 public:
  /// Makes the directory and marks it as running.
  [[nodiscard]] static base::Result<RunRecord> begin(const std::filesystem::path& root,
                                                     const std::vector<std::string>& program,
                                                     const std::vector<std::string>& arguments);

  /// The same in the directory of a rank (runs/job/folder.hpp), which was just made.
  [[nodiscard]] static base::Result<RunRecord> begin_rank(
      const std::filesystem::path& dir,
      const std::vector<std::string>& program,
      const std::vector<std::string>& arguments) {
    return begin_at(dir, program, arguments);
  }

  /// The same in a directory that the user named: made, or empty. kConfig when it holds something.
  [[nodiscard]] static base::Result<RunRecord> begin_in(const std::filesystem::path& dir,
                                                        const std::vector<std::string>& program,
                                                        const std::vector<std::string>& arguments);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// What the program reads (runs::look_at_inputs), for env.json.
  void saw(std::map<std::string, std::string> inputs) { inputs_ = std::move(inputs); }
  /// The command that is about to run, before it runs; `environment` of one that runs already.
  [[nodiscard]] base::Result<void> about_to_run(
      const collect::Plan& plan, const std::vector<std::string>* environment = nullptr);
  /// How the program ended.
  [[nodiscard]] base::Result<void> ended(const base::Ended& ended);
  /// Everything is written: hashes, manifest, status.
  [[nodiscard]] base::Result<void> finish(int exit_code,
                                          const std::string& outcome,
                                          const std::string& message,
                                          const std::vector<model::Loss>& losses,
                                          const std::vector<model::Finding>& findings = {});

 private:
  [[nodiscard]] static base::Result<RunRecord> begin_at(std::filesystem::path dir,
                                                        const std::vector<std::string>& program,
                                                        const std::vector<std::string>& arguments);

  std::filesystem::path path_;
  base::HeldFolder folder_;
  runs::Hold hold_;
  runs::Manifest manifest_;
  std::string program_;
  std::map<std::string, std::string> inputs_;

  /// Who kept the CPUs busy since the program was about to run; `program_ns` of that was itself.
  /// Nothing for a time too short for the kernel's ticks.
  [[nodiscard]] std::optional<model::ProcessUsage::Machine> machine_use(double program_ns) const;
  std::optional<base::BusyCpus> cpus_before_;
  std::int64_t own_cpu_before_ns_ = 0;  ///< what rangescope itself had used by then
};

/// config.yaml (the resolved configuration, secrets redacted) and inputs.yaml (what it was made of:
/// files, groups, arguments, environment names, and who set each key) into a run directory.
[[nodiscard]] base::Result<void> write_config(const std::filesystem::path& run,
                                              const config::Config& config);

}  // namespace rangescope::profile
