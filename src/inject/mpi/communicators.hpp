// Identifies communicators: by an id that is the same on all of its ranks, and takes no message.
//
// MPI_COMM_WORLD has id 1. Any other id is a hash of the parent's id, of the number of
// communicators made from that parent before, and of the first member's rank in the parent. All
// members know these three. A window takes the next id of its communicator.
#pragma once

#include <cstdint>

#include "inject/mpi/abi.hpp"

namespace rangescope::inject::mpi {

struct Communicator {
  std::uint64_t id = 0;  ///< 0: unknown, for example of an intercommunicator
  std::uint32_t children = 0;
  std::int32_t self = -2;  ///< own rank in it
};

/// Of a communicator or window.
[[nodiscard]] Communicator communicator_of(Word handle);

/// `child` was made by a call of all ranks of `parent`.
void note_communicator(Word parent, Word child);
/// `child` was made with this tag by the members of its group only.
void note_group(Word parent, Word child, int tag);
/// `child` is a copy, which may not be ready yet.
void note_copy(Word parent, Word child);
void note_window(Word parent, Word window);
void forget(Word handle);

}  // namespace rangescope::inject::mpi
