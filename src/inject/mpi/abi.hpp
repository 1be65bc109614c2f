// Which MPI a process runs, and how its handles, statuses and constants lie in memory. No mpi.h:
// one library serves Open MPI and MPICH with its kin (Intel MPI, MVAPICH, Cray), in C and Fortran.
//
// Whatever a parameter's type, it takes one register or eight bytes of stack: a word. A word is
// handed on as it came, of what is shorter the upper half means nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rangescope::inject::mpi {

using Word = std::uintptr_t;

struct Abi {
  enum class Kind : std::uint8_t { kUnknown, kOpenMpi, kMpich };
  Kind kind = Kind::kUnknown;
  std::size_t handle_bytes = 0, status_bytes = 0;
  std::size_t source_at = 0, tag_at = 0;  ///< in a status
  Word world = 0, self = 0, no_comm = 0, no_request = 0, done_request = 0, in_place = 0,
       ignored = 0;
  int proc_null = 0;

  /// A handle without what a register holds beside it.
  [[nodiscard]] Word handle(Word word) const {
    return handle_bytes == 4 ? word & 0xffffffffu : word;
  }
  /// A request that stands for all that were complete at once.
  [[nodiscard]] bool is_shared(Word request) const;
  /// As Open MPI counts: -1 any, -2 nobody.
  [[nodiscard]] int rank(int said) const { return said >= 0 ? said : said == proc_null ? -2 : -1; }
  [[nodiscard]] int source(const void* status) const;  ///< -2 for nobody
  [[nodiscard]] int tag(const void* status) const;
  [[nodiscard]] bool is_cancelled(const void* status) const;
  [[nodiscard]] std::uint64_t bytes(const void* status) const;
};

/// `caller`: an address in what called first.
[[nodiscard]] const Abi& abi(const void* caller = nullptr);

/// A function of the MPI library: behind ours, or among what the caller's own library depends on
/// (one that was opened with RTLD_LOCAL, as Python does). Null where there is none.
[[nodiscard]] void* symbol(const char* name, const void* caller);
/// A variable of it: a program may hold the only copy that counts.
[[nodiscard]] Word variable(const char* name, const void* caller = nullptr);

/// A function of MPI, once the ABI is known.
template <typename Type>
Type* pmpi(const char* name) {
  return reinterpret_cast<Type*>(symbol(name, nullptr));
}

}  // namespace rangescope::inject::mpi
