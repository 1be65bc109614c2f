// The checks of a program, one function a question. program.cpp lists them in the order in which causes decide.
#pragma once

#include <vector>

#include "doctor/causes.hpp"
#include "doctor/check.hpp"
#include "doctor/program/program.hpp"

namespace rangescope::doctor {

// names.cpp
[[nodiscard]] std::vector<model::Finding> check_names(const Probe& probe);
[[nodiscard]] std::vector<model::Finding> check_ends(const Probe& probe);

// work.cpp
[[nodiscard]] std::vector<model::Finding> check_cuda(const Probe& probe);
[[nodiscard]] std::vector<model::Finding> check_work(const Probe& probe);
[[nodiscard]] std::vector<model::Finding> check_processes(const Probe& probe);
[[nodiscard]] std::vector<model::Finding> check_replay(const Probe& probe);
[[nodiscard]] std::vector<model::Finding> check_alike(const Probe& probe);
[[nodiscard]] std::vector<model::Finding> check_late(const Probe& probe);

}  // namespace rangescope::doctor
