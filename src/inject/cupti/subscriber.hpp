// The one subscription that CUPTI gives to a process, and who else has it. Timeline and counters share it.
#pragma once

#include <cstddef>

#include "inject/cupti/api.hpp"

namespace rangescope::inject::cupti {

struct Subscription {
  CUpti_SubscriberHandle handle = nullptr;
};

/// Subscribes `callback`. On failure writes one sentence that says who holds CUPTI, as far as can be told, and what to
/// do.
[[nodiscard]] bool subscribe(const Api& api, CUpti_CallbackFunc callback, void* user, Subscription& subscription,
                             char* why, std::size_t why_size);

/// Another tool that is inside this process, judging by what is mapped and set: "Nsight Systems", "Nsight Compute",
/// "PyTorch's profiler (Kineto)", or null.
[[nodiscard]] const char* other_tool();

}  // namespace rangescope::inject::cupti
