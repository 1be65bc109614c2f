// CUPTI allows one subscription per process. A profiler inside the program (PyTorch's Kineto)
// requests it at its first use; if refused, it records no GPU work for the rest of the process. So
// ours is given up before that request.
//
// The request is seen in libraries that are linked with CUPTI: in the global offset table of each,
// the pointer to cuptiSubscribe is replaced by a function of ours. A library that finds CUPTI's
// functions with dlsym (JAX), or is loaded later, is not seen. Cost: one walk over the imports of
// those libraries.
#pragma once

#include "inject/cupti/api.hpp"

namespace rangescope::inject::cupti {

/// Calls `let_go`, with the path of the requesting library, before each request of another tool,
/// unless both sides share CUPTI. Keeps a reference to `api`.
void give_way(const Api& api, bool shared, void (*let_go)(const char* library));
/// Restores the pointers.
void keep_way();

}  // namespace rangescope::inject::cupti
