// Which place in which parallel job this process has, by its launcher's environment.
//
//   torchrun   TORCHELASTIC_RUN_ID, TORCHELASTIC_RESTART_COUNT, MASTER_ADDR, MASTER_PORT
//   openmpi    OMPI_MCA_ess_base_jobid, OMPI_MCA_orte_hnp_uri
//   slurm      SLURM_JOB_ID, SLURM_STEP_ID, SLURM_RESTART_COUNT (in a step of srun: a batch script
//   is no rank) pmix       PMIX_NAMESPACE
//
// The innermost launcher counts, in that order. Others (Kubernetes) set RANK and WORLD_SIZE: then
// --job names the job.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace rangescope::runs::job {

struct Place {
  std::string launcher;  ///< "torchrun", "openmpi", "slurm", "pmix"; "" where only a rank is known,
                         ///< or nothing
  std::string name;      ///< the job's folder: "slurm-1234.0"; "" where the job is unknown
  /// Equal for the ranks of one start of the job; other starts have other keys where the launcher
  /// tells them apart.
  std::string key;
  std::optional<std::uint32_t> rank, local_rank;
  std::uint32_t world = 0;  ///< ranks of the job, 0 where unknown
};

/// `variable`: the value of an environment variable, "" where it is not set.
[[nodiscard]] Place place_of(const std::function<std::string(const char*)>& variable);
/// Of this process.
[[nodiscard]] Place place_here();

}  // namespace rangescope::runs::job
