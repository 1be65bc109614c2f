// What calls allocate, free, record and wait for: read from the parameters of driver functions
// when they return.
//
// CUPTI's own records of memory and events are not asked for: those of memory name neither the
// thread nor calls that failed, and next to those of synchronizations CUPTI 12.8 and 13.0 lost
// launches (trace.cpp). A callback costs no more than such a record. Queries of events are left
// out: programs that poll make millions of them.
#pragma once

#include <cstdint>

#include "inject/cupti/api.hpp"
#include "inject/cupti/launches.hpp"

namespace rangescope::inject::cupti {

/// A driver function whose calls have details; 0 of all others. They are noted by callback.
using DetailedFunction = std::uint8_t;
[[nodiscard]] DetailedFunction detailed_function(CUpti_CallbackId id);

/// Whether its calls are looked up in modules of Python: those that allocate, and those that wait.
/// Calls that record events, or let a stream wait for one, come with every other launch.
[[nodiscard]] bool is_in_modules(DetailedFunction function);

/// Of a call that has returned; false where there is nothing to record, such as a free that failed.
/// Asks CUPTI for the number of a stream, else reads the call's parameters alone.
[[nodiscard]] bool details_of(const Api& api, DetailedFunction function,
                              const CUpti_CallbackData& call, CallDetails& details);

}  // namespace rangescope::inject::cupti
