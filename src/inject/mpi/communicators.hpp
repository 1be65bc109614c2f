// Which communicator is which: an id that is the same on all of its ranks, found without a message.
//
// That of MPI_COMM_WORLD is 1, that of another one a hash of its parent's, of how many were made
// from the parent before it, and of the parent's rank of its first member. All members know these
// three. A window has the next id of its communicator.
#pragma once

#include <cstdint>

#include "inject/mpi/abi.hpp"

namespace rangescope::inject::mpi {

struct Communicator {
  std::uint64_t id = 0;  ///< 0: unknown, as of one between two groups
  std::uint32_t children = 0;
  std::int32_t self = -2;  ///< own rank in it
};

/// Of a communicator or window.
[[nodiscard]] Communicator communicator_of(Word handle);

/// `made` came of a call that all of `parent` made.
void note_communicator(Word parent, Word made);
/// By its group's members alone, under this tag.
void note_group(Word parent, Word made, int tag);
/// A copy, which may not be ready yet.
void note_copy(Word parent, Word made);
void note_window(Word parent, Word made);
void forget(Word handle);

}  // namespace rangescope::inject::mpi
