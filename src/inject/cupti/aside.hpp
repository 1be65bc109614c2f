// The hardware's counters serve one at a time: while this process counts, the sampler of the same
// run steps aside.
//
// The sampler (sample/gpu/helper.cpp) makes the file `samples/aside` in the folder of captures.
// Whoever counts holds a read lock on it, which ends with the process at the latest; the sampler
// writes `1` when it has let go of the device.
#pragma once

namespace rangescope::inject::cupti {

/// Looks where the file would be; before the program can change its environment.
void find_sampler();

/// Asks the sampler to step aside and waits until it has, at most a second; at once where nobody
/// samples. Calls nest; on the worker thread only.
void claim_device();
void release_device();

}  // namespace rangescope::inject::cupti
