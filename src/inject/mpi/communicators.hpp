// Which communicator is which: an id that is the same on all of its ranks, found without a message.
//
// That of MPI_COMM_WORLD is 1, that of another one a hash of its parent's, of how many were made from the parent before
// it, and of the parent's rank of its first member. All members know these three.
#pragma once

#include <mpi.h>

#include <cstdint>

namespace rangescope::inject::mpi {

struct Communicator {
  std::uint64_t id;
  std::uint32_t children;  // made of it so far
  std::int32_t self;       // own rank in it
};

/// Null for one that nobody saw made, and under another MPI than Open MPI.
[[nodiscard]] Communicator* communicator_of(MPI_Comm comm);

/// `made` came of a call that all of `parent` made. Answers `result`, the call's own.
int note(int result, MPI_Comm parent, MPI_Comm* made);

inline std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ull + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccdull;
  return hash ^ hash >> 33;
}

}  // namespace rangescope::inject::mpi
