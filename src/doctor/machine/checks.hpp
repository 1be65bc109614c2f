// The checks of a machine, in their order. Each function is defined in the file that its comment
// names.
#pragma once

#include "doctor/check.hpp"
#include "doctor/machine/facts.hpp"

namespace rangescope::doctor {

using MachineCheck = Findings(const MachineFacts& facts);
MachineCheck check_driver, check_gpus, check_mig, check_clocks;                // driver.cpp
MachineCheck check_counter_access, check_counter_holders;                      // counters.cpp
MachineCheck check_library, check_cupti, check_mpi, check_duckdb;              // tools.cpp
MachineCheck check_nsys, check_importer, check_ncu;                            // tools.cpp
MachineCheck check_injection, check_stubs;                                     // environment.cpp
MachineCheck check_perf_events, check_cpu_sampling, check_disk, check_limits;  // limits.cpp

inline constexpr Check<MachineFacts> kMachineChecks[] = {
    {"machine.driver", "Is there an NVIDIA driver, and does its library fit it?", check_driver},
    {"machine.gpus", "Which GPUs can a program of this shell see?", check_gpus},
    {"machine.mig", "Is a GPU cut into MIG instances?", check_mig},
    {"machine.counters",
     "May this user read the GPU's performance counters?",
     check_counter_access},
    {"machine.holders",
     "Does another process hold the performance counters?",
     check_counter_holders},
    {"machine.clocks", "Do the GPU's clocks run free?", check_clocks},
    {"machine.library", "Is rangescope's own library there?", check_library},
    {"machine.cupti", "Which CUPTI will rangescope use?", check_cupti},
    {"machine.mpi", "Can calls of MPI be recorded?", check_mpi},
    {"machine.duckdb", "Are Parquet and SQL over many ranks there?", check_duckdb},
    {"machine.nsys",
     "Which Nsight Systems is there, and does it know this driver's CUDA?",
     check_nsys},
    {"machine.importer", "Can nsys turn what it records into a report?", check_importer},
    {"machine.ncu",
     "Which Nsight Compute is there, and does it know this driver's CUDA?",
     check_ncu},
    {"machine.injection",
     "Does another tool's library get into programs started here?",
     check_injection},
    {"machine.stubs", "Does the library path lead to the real CUDA driver?", check_stubs},
    {"machine.perf_events", "May nsys sample the CPU?", check_perf_events},
    {"machine.cpu_sampling",
     "Can rangescope sample what programs do on the CPU?",
     check_cpu_sampling},
    {"machine.disk", "Is there room for runs?", check_disk},
    {"machine.limits", "Do this shell's limits let a capture grow?", check_limits},
};

}  // namespace rangescope::doctor
