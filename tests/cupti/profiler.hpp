// Between the activity half and the range profiler half of the stand-in CUPTI.
#pragma once

#include "hooks.hpp"

namespace standin {

/// A kernel runs: counted where a range is being profiled.
void profile(const Work& work);
void context_ends();
/// CUPTI cannot record kernels and count at once.
bool activity_records_kernels();

}  // namespace standin
