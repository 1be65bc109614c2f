// A clock of a program's own, which the injected library reads in place of the C library's: how
// busy the machine is shows in none of its recordings. Linked with, or preloaded and called through
// ctypes.
#pragma once

extern "C" {

/// The work of `ns` is done. From the first call on CLOCK_MONOTONIC goes on by these calls alone;
/// it never runs ahead of the kernel's, for which the call waits.
void worked(long long ns);
}
