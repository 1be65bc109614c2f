#include "inject/mpi/next.hpp"

namespace rangescope::inject::mpi {

MPI_Comm world() {
  static const auto comm = reinterpret_cast<MPI_Comm>(dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world"));
  return comm;
}

MPI_Comm no_comm() {
  static const auto comm = reinterpret_cast<MPI_Comm>(dlsym(RTLD_DEFAULT, "ompi_mpi_comm_null"));
  return comm;
}

}  // namespace rangescope::inject::mpi
