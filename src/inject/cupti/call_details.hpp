// What calls allocate, free, record and wait for, read from the parameters of driver functions when
// they return.
//
// CUPTI's own records of memory and events are not used: memory records contain neither the thread
// nor failed calls, and with synchronization records CUPTI 12.8 and 13.0 lost launches (trace.cpp).
// A callback costs no more than such a record. Event queries are left out, because programs that
// poll make millions of them.
#pragma once

#include <cstdint>

#include "inject/cupti/api.hpp"
#include "inject/cupti/launches.hpp"

namespace rangescope::inject::cupti {

/// A driver function whose calls have details, and are noted by callback; 0 for all others.
using DetailedFunction = std::uint8_t;
[[nodiscard]] DetailedFunction detailed_function(CUpti_CallbackId id);

/// Whether its calls are looked up in Python's modules: those that allocate and those that wait.
/// Calls that record events, or make a stream wait for one, come with every other launch.
[[nodiscard]] bool is_in_modules(DetailedFunction function);

/// Sets the details of a call that has returned; false if there is nothing to record, such as a
/// free that failed. Only reads the call's parameters, and asks CUPTI for the number of a stream.
[[nodiscard]] bool details_of(const Api& api,
                              DetailedFunction function,
                              const CUpti_CallbackData& call,
                              CallDetails& details);

}  // namespace rangescope::inject::cupti
