// The checks of a machine, in the order in which they are asked. Each function stands in the file named behind it.
#pragma once

#include <span>
#include <vector>

#include "doctor/check.hpp"

namespace rangescope::doctor {

[[nodiscard]] std::span<const Check> machine_checks();

using Findings = std::vector<model::Finding>;

[[nodiscard]] Findings check_driver(const Probe& probe);           // driver.cpp
[[nodiscard]] Findings check_gpus(const Probe& probe);             // driver.cpp
[[nodiscard]] Findings check_mig(const Probe& probe);              // driver.cpp
[[nodiscard]] Findings check_clocks(const Probe& probe);           // driver.cpp
[[nodiscard]] Findings check_counter_access(const Probe& probe);   // counters.cpp
[[nodiscard]] Findings check_counter_holders(const Probe& probe);  // counters.cpp
[[nodiscard]] Findings check_library(const Probe& probe);          // tools.cpp
[[nodiscard]] Findings check_cupti(const Probe& probe);            // tools.cpp
[[nodiscard]] Findings check_mpi(const Probe& probe);              // tools.cpp
[[nodiscard]] Findings check_duckdb(const Probe& probe);           // tools.cpp
[[nodiscard]] Findings check_nsys(const Probe& probe);             // tools.cpp
[[nodiscard]] Findings check_importer(const Probe& probe);         // tools.cpp
[[nodiscard]] Findings check_ncu(const Probe& probe);              // tools.cpp
[[nodiscard]] Findings check_injection(const Probe& probe);        // environment.cpp
[[nodiscard]] Findings check_stubs(const Probe& probe);            // environment.cpp
[[nodiscard]] Findings check_perf_events(const Probe& probe);      // limits.cpp
[[nodiscard]] Findings check_cpu_sampling(const Probe& probe);     // limits.cpp
[[nodiscard]] Findings check_disk(const Probe& probe);             // limits.cpp
[[nodiscard]] Findings check_limits(const Probe& probe);           // limits.cpp

}  // namespace rangescope::doctor
