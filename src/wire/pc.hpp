// Samples of the program counter, in the GPU stream of a native capture (wire/gpu.hpp, types 96 to
// 127): the instructions at which warps were, and why. Written by inject/cupti/pc_sampler, read by
// read/native/pc.
//
// Reasons and places are defined before they are used. A Window ends the Samples of a sampled
// occurrence of a target (wire/counters.hpp). Samples have the correlation of their launch; all
// nodes of a CUDA graph have that of the graph's launch.
#pragma once

#include <cstdint>

#include "wire/gpu.hpp"

namespace rangescope::wire::pc {

enum class Type : std::uint8_t {
  kReason = 96,   ///< gpu::Name: the id of a stall reason, as CUPTI has it
  kPlace = 97,    ///< Place
  kSamples = 98,  ///< Samples, then `count` pairs of 32 bit: reason, samples
  kWindow = 99,   ///< Window
};

struct Place {
  gpu::RecordHeader head;  ///< id: the place
  std::uint64_t offset;    ///< in the function's code, bytes
  std::uint32_t function;  ///< a Name, mangled
  std::uint32_t file;      ///< a Name, 0: no line information
  std::uint32_t line;
  std::uint32_t reserved;
};

struct Samples {
  gpu::RecordHeader head;  ///< id: correlation
  std::uint32_t place;
  std::uint32_t count;
};

/// Of the whole device context, as CUPTI counts.
struct Window {
  gpu::RecordHeader head;  ///< id: target; small: 1 when the hardware's buffer was full
  std::uint64_t samples;   ///< including dropped ones, and those without an instruction
  std::uint64_t dropped;   ///< by the hardware
};

static_assert(sizeof(Place) == 32 && sizeof(Samples) == 16 && sizeof(Window) == 24);

}  // namespace rangescope::wire::pc
