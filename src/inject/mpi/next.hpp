// The functions behind the ones that stand before them, and Open MPI's own objects. It links no MPI: what is not there
// is null.
#pragma once

#include <dlfcn.h>
#include <mpi.h>

namespace rangescope::inject::mpi {

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}
// The PMPI_ function of an MPI_ one, found at its first call.
#define NEXT(name)                                                      \
  static const auto real = next<decltype(&PMPI_##name)>("PMPI_" #name); \
  if (real == nullptr) return MPI_ERR_UNSUPPORTED_OPERATION

/// Null under another MPI than Open MPI.
[[nodiscard]] MPI_Comm world();
[[nodiscard]] MPI_Comm no_comm();

}  // namespace rangescope::inject::mpi
