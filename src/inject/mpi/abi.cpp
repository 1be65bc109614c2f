#include "inject/mpi/abi.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstring>

namespace rangescope::inject::mpi {
namespace {

template <typename Number>
Number read(const void* status, std::size_t offset) {
  Number value;
  std::memcpy(&value, static_cast<const char*>(status) + offset, sizeof value);
  return value;
}

// ompi_status_public_t: source, tag, error, cancelled, size_t bytes. Handles are addresses of
// objects.
Abi open_mpi(const void* caller) {
  Abi abi{Abi::Kind::kOpenMpi, 8, 24, 0, 4};
  abi.world = variable("ompi_mpi_comm_world", caller);
  abi.self = variable("ompi_mpi_comm_self", caller);
  abi.no_comm = variable("ompi_mpi_comm_null", caller);
  abi.no_request = variable("ompi_request_null", caller);
  abi.done_request = variable("ompi_request_empty", caller);
  abi.in_place = 1;
  abi.proc_null = -2;
  return abi;
}
// The ABI that MPICH, Intel MPI, MVAPICH and Cray agreed on in 2013 (www.mpich.org/abi): handles
// are ints; a status has count_lo, count_hi_and_cancelled, source, tag, error.
Abi mpich() {
  Abi abi{Abi::Kind::kMpich, 4, 20, 8, 12};
  abi.world = 0x44000000;
  abi.self = 0x44000001;
  abi.no_comm = 0x04000000;
  abi.no_request = 0x2c000000;
  abi.in_place = ~Word{0};
  abi.ignored = 1;
  abi.proc_null = -1;
  return abi;
}

Abi find(const void* caller) {
  if (variable("ompi_mpi_comm_world", caller) != 0)
    return open_mpi(caller);
  const auto version =
      reinterpret_cast<int (*)(char*, int*)>(symbol("PMPI_Get_library_version", caller));
  static char text[8192 + 1];
  int length = 0;
  if (version == nullptr || version(text, &length) != 0)
    return {};
  for (const char* name : {"MPICH", "Intel(R) MPI", "MVAPICH"})
    if (std::strstr(text, name) != nullptr)
      return mpich();
  return {};
}

std::atomic<void*> local_library{nullptr};

}  // namespace

bool Abi::is_shared(Word request) const {
  if (request == no_request)
    return true;
  if (kind == Kind::kOpenMpi)
    return request == done_request;
  const bool is_built_in = request >> 30 == 1;  // of MPICH
  return is_built_in;
}
int Abi::rank(int number) const {
  if (number >= 0)
    return number;
  if (number == proc_null)
    return -2;
  return -1;
}
int Abi::source(const void* status) const {
  const int rank = read<int>(status, source_at);
  if (rank < 0)
    return -2;  // also of an empty status, as MPICH's for MPI_PROC_NULL
  return rank;
}
int Abi::tag(const void* status) const {
  return read<int>(status, tag_at);
}
bool Abi::is_cancelled(const void* status) const {
  if (kind == Kind::kOpenMpi)
    return read<int>(status, 12) != 0;
  return (read<int>(status, 4) & 1) != 0;
}
std::uint64_t Abi::bytes(const void* status) const {
  if (kind == Kind::kOpenMpi)
    return read<std::uint64_t>(status, 16);
  return read<std::uint32_t>(status, 0) | std::uint64_t{read<std::uint32_t>(status, 4) >> 1} << 32;
}

const Abi& abi(const void* caller) {
  static const Abi process_abi = find(caller);
  return process_abi;
}

Word variable(const char* name, const void* caller) {
  void* const address = dlsym(RTLD_DEFAULT, name);
  return reinterpret_cast<Word>(address != nullptr ? address : symbol(name, caller));
}

void* symbol(const char* name, const void* caller) {
  if (void* const next = dlsym(RTLD_NEXT, name))
    return next;
  void* library = local_library.load(std::memory_order_acquire);
  if (library != nullptr)
    return dlsym(library, name);
  Dl_info info;
  if (caller == nullptr || dladdr(caller, &info) == 0 || info.dli_fname == nullptr)
    return nullptr;
  library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr)
    return nullptr;
  void* const address = dlsym(library, name);
  if (address == nullptr)
    dlclose(library);
  else
    local_library.store(library, std::memory_order_release);  // never closed
  return address;
}

}  // namespace rangescope::inject::mpi
