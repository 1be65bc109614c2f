// CUPTI has one subscription for a process. A profiler inside the program (PyTorch's Kineto) asks
// for it when it is first used; refused, it records no GPU work for the rest of the process. So
// ours is given up before its request.
//
// The request is seen through the libraries that are linked with CUPTI: in the global offset table
// of each the pointer to cuptiSubscribe leads to a function of ours. Who looks CUPTI's functions up
// by dlsym (JAX) is not seen, nor is a library that is loaded later. Cost: a walk over the imports
// of those libraries, once.
#pragma once

#include "inject/cupti/api.hpp"

namespace rangescope::inject::cupti {

/// Calls `let_go`, with the path of the library that asks, before each request of others, unless
/// both sides share CUPTI. `api` outlives it.
void give_way(const Api& api, bool shared, void (*let_go)(const char* library));
/// Puts the pointers back.
void keep_way();

}  // namespace rangescope::inject::cupti
