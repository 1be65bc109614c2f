// The checks of a program, one function a question. program.cpp lists them in the order in which
// causes decide.
#pragma once

#include "doctor/causes.hpp"
#include "doctor/check.hpp"
#include "doctor/program/program.hpp"

namespace rangescope::doctor {

using ProgramCheck = Findings(const ProgramLook& look);
ProgramCheck check_names, check_ends;  // names.cpp
ProgramCheck check_cuda, check_work, check_processes, check_replay, check_alike,
    check_late;  // work.cpp

}  // namespace rangescope::doctor
