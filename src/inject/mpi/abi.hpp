// Which MPI a process runs, and the memory layout of its handles, statuses and constants. No mpi.h:
// one library serves Open MPI, and MPICH with its derivatives (Intel MPI, MVAPICH, Cray), in C and
// Fortran.
//
// Whatever a parameter's type, it takes one register or eight bytes of stack: a word. Words are
// passed on unchanged. The upper half of a shorter parameter is undefined.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rangescope::inject::mpi {

using Word = std::uintptr_t;

struct Abi {
  enum class Kind : std::uint8_t { kUnknown, kOpenMpi, kMpich };
  Kind kind = Kind::kUnknown;
  std::size_t handle_bytes = 0;
  std::size_t status_bytes = 0;
  std::size_t source_at = 0;  ///< offset in a status
  std::size_t tag_at = 0;     ///< offset in a status
  Word world = 0;             ///< MPI_COMM_WORLD
  Word self = 0;              ///< MPI_COMM_SELF
  Word no_comm = 0;           ///< MPI_COMM_NULL
  Word no_request = 0;        ///< MPI_REQUEST_NULL
  Word done_request = 0;      ///< Open MPI's handle of requests that were complete at once
  Word in_place = 0;          ///< MPI_IN_PLACE
  Word ignored = 0;           ///< MPI_STATUS_IGNORE
  int proc_null = 0;          ///< MPI_PROC_NULL

  /// A handle without the undefined part of its word.
  [[nodiscard]] Word handle(Word word) const {
    return handle_bytes == 4 ? word & 0xffffffffu : word;
  }
  /// A handle that several requests may have: of those that were complete at once, and of none.
  [[nodiscard]] bool is_shared(Word request) const;
  /// A rank in Open MPI's numbers: -1 any, -2 MPI_PROC_NULL.
  [[nodiscard]] int rank(int number) const;
  [[nodiscard]] int source(const void* status) const;  ///< -2 for MPI_PROC_NULL
  [[nodiscard]] int tag(const void* status) const;
  [[nodiscard]] bool is_cancelled(const void* status) const;
  [[nodiscard]] std::uint64_t bytes(const void* status) const;
};

/// `caller`: an address in the library or program that calls MPI. Only the first call uses it.
[[nodiscard]] const Abi& abi(const void* caller = nullptr);

/// A function of the MPI library: the next one after ours, or one that the caller's library depends
/// on (if that was opened with RTLD_LOCAL, as Python does). Null if there is none.
[[nodiscard]] void* symbol(const char* name, const void* caller);
/// A variable of the MPI library. The program's own copy, if it has one, is the valid one.
[[nodiscard]] Word variable(const char* name, const void* caller = nullptr);

/// A function of MPI, once the ABI is known.
template <typename Type>
Type* pmpi(const char* name) {
  return reinterpret_cast<Type*>(symbol(name, nullptr));
}

}  // namespace rangescope::inject::mpi
