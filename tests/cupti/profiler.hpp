// Between the activity half and the range profiler half of the stand-in CUPTI.
#pragma once

#include <cstddef>
#include <string>

#include "hooks.hpp"

namespace standin {

/// A kernel runs: counted where a range is being profiled.
void profile(const Work& work);
void context_ends();
/// CUPTI cannot record kernels and count at once.
bool activity_records_kernels();

/// Counter data of PM sampling, and a value of it.
bool is_sample_image(const std::uint8_t* image);
double sampled(const std::uint8_t* image, std::size_t index, const std::string& metric);

}  // namespace standin
