#include "doctor/machine/checks.hpp"

#include <array>

namespace rangescope::doctor {

std::span<const Check> machine_checks() {
  static constexpr std::array kChecks{
      Check{"machine.driver", "Is there an NVIDIA driver, and does its library fit it?", check_driver},
      Check{"machine.gpus", "Which GPUs can a program of this shell see?", check_gpus},
      Check{"machine.mig", "Is a GPU cut into MIG instances?", check_mig},
      Check{"machine.counters", "May this user read the GPU's performance counters?", check_counter_access},
      Check{"machine.holders", "Does another process hold the performance counters?", check_counter_holders},
      Check{"machine.clocks", "Do the GPU's clocks run free?", check_clocks},
      Check{"machine.library", "Is rangescope's own library there?", check_library},
      Check{"machine.cupti", "Which CUPTI will rangescope use?", check_cupti},
      Check{"machine.mpi", "Can calls of MPI be recorded?", check_mpi},
      Check{"machine.duckdb", "Are Parquet and SQL over many ranks there?", check_duckdb},
      Check{"machine.nsys", "Which Nsight Systems is there, and does it know this driver's CUDA?", check_nsys},
      Check{"machine.importer", "Can nsys turn what it records into a report?", check_importer},
      Check{"machine.ncu", "Which Nsight Compute is there, and does it know this driver's CUDA?", check_ncu},
      Check{"machine.injection", "Does another tool's library get into programs started here?", check_injection},
      Check{"machine.stubs", "Does the library path lead to the real CUDA driver?", check_stubs},
      Check{"machine.perf_events", "May nsys sample the CPU?", check_perf_events},
      Check{"machine.cpu_sampling", "Can rangescope sample what programs do on the CPU?", check_cpu_sampling},
      Check{"machine.disk", "Is there room for runs?", check_disk},
      Check{"machine.limits", "Do this shell's limits let a capture grow?", check_limits},
  };
  return kChecks;
}

}  // namespace rangescope::doctor
