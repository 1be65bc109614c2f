// The hardware's counters serve one user at a time: while this process counts, the sampler of the
// same run releases the device.
//
// The sampler (sample/gpu/helper.cpp) makes the file `samples/aside` in the folder of captures. A
// process that counts holds a read lock on it, which ends with the process at the latest. The
// sampler writes `1` when it has released the device.
#pragma once

namespace rangescope::inject::cupti {

/// Sets the path of the file. Call it before the program can change its environment.
void find_sampler();

/// Asks the sampler to release the device and waits for that, at most a second; returns at once if
/// there is no sampler. Calls nest. Only on the worker thread.
void claim_device();
void release_device();

}  // namespace rangescope::inject::cupti
