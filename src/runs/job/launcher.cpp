#include "runs/job/launcher.hpp"

#include <cstdlib>
#include <filesystem>

#include "wire/launchers.hpp"

namespace rangescope::runs::job {
namespace {

using Variable = std::function<std::string(const char*)>;

template <std::size_t n>
std::optional<std::uint32_t> first_of(const char* const (&names)[n], const Variable& variable) {
  unsigned value = 0;
  for (const char* name : names)
    if (wire::parse_rank(variable(name).c_str(), value))
      return value;
  return std::nullopt;
}

// The static rendezvous calls every job "none". On one machine the agent's own folder tells starts
// apart: /tmp/torchelastic_k6q1w8c1/none_8xq5s1dk/attempt_0/1/error.json
void torchrun(const Variable& variable, const std::string& id, Place& place) {
  place.launcher = "torchrun";
  std::string name = id;
  if (id == "none")
    name = variable("MASTER_PORT");
  place.name = "torchrun-" + name;
  place.key = id + " " + variable("MASTER_ADDR") + ":" + variable("MASTER_PORT") + " restart " +
              variable("TORCHELASTIC_RESTART_COUNT");
  if (const std::string size = variable("WORLD_SIZE");
      !size.empty() && size == variable("LOCAL_WORLD_SIZE"))
    place.key += " " + std::filesystem::path(variable("TORCHELASTIC_ERROR_FILE"))
                           .parent_path()
                           .parent_path()
                           .parent_path()
                           .string();
}

}  // namespace

Place place_of(const Variable& variable) {
  Place place;
  place.rank = first_of(wire::kRankVariables, variable);
  place.local_rank = first_of(wire::kLocalRankVariables, variable);
  place.world = first_of(wire::kWorldVariables, variable).value_or(0);
  const auto set = [&](const char* launcher, const std::string& id, const std::string& more) {
    place.launcher = launcher;
    place.name = place.launcher + "-" + id;
    place.key = id + " " + more;
  };
  const std::string torchrun_id = variable("TORCHELASTIC_RUN_ID");
  const std::string openmpi_job = variable("OMPI_MCA_ess_base_jobid");
  const std::string slurm_step = variable("SLURM_STEP_ID");
  const std::string pmix_namespace = variable("PMIX_NAMESPACE");
  const bool is_slurm_step = !slurm_step.empty() && !variable("SLURM_PROCID").empty();
  if (!torchrun_id.empty()) {
    torchrun(variable, torchrun_id, place);
  } else if (!openmpi_job.empty()) {
    set("openmpi", openmpi_job, variable("OMPI_MCA_orte_hnp_uri"));
  } else if (is_slurm_step) {
    const std::string start =
        variable("SLURM_CLUSTER_NAME") + " restart " + variable("SLURM_RESTART_COUNT");
    set("slurm", variable("SLURM_JOB_ID") + "." + slurm_step, start);
  } else if (!pmix_namespace.empty() && place.rank) {
    set("pmix", pmix_namespace, "");
  }
  return place;
}

Place place_here() {
  return place_of([](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  });
}

}  // namespace rangescope::runs::job
