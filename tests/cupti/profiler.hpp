// Between the activity half and the range profiler half of the stand-in CUPTI.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <string>

#include "hooks.hpp"

namespace standin {

/// A kernel runs: counted where a range is being profiled.
void profile(const Work& work);
void context_ends();
/// CUPTI cannot record kernels and count at once.
bool activity_records_kernels();

/// pc_sampling.cpp: a kernel runs; a node of a graph is made; the context ends; the context's
/// module is loaded.
void sample_pc(const Work& work);
void pc_node_made(std::uint64_t node);
void pc_context_ends();
void load_module(void (*tell)(const CUpti_ModuleResourceData&));

/// Counter data of PM sampling, and a value of it.
bool is_sample_image(const std::uint8_t* image);
double sampled(const std::uint8_t* image, std::size_t index, const std::string& metric);

}  // namespace standin
