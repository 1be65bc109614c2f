#include "inject/mpi/abi.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstring>

namespace rangescope::inject::mpi {
namespace {

template <typename Number>
Number read(const void* status, std::size_t at) {
  Number value;
  std::memcpy(&value, static_cast<const char*>(status) + at, sizeof value);
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
// are ints; of a status count_lo, count_hi_and_cancelled, source, tag, error.
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
  if (variable("ompi_mpi_comm_world", caller) != 0) return open_mpi(caller);
  const auto version =
      reinterpret_cast<int (*)(char*, int*)>(symbol("PMPI_Get_library_version", caller));
  static char text[8192 + 1];
  int length = 0;
  if (version == nullptr || version(text, &length) != 0) return {};
  for (const char* name : {"MPICH", "Intel(R) MPI", "MVAPICH"})
    if (std::strstr(text, name) != nullptr) return mpich();
  return {};
}

std::atomic<void*> local_library{nullptr};

}  // namespace

bool Abi::is_shared(Word request) const {
  if (request == no_request) return true;
  return kind == Kind::kOpenMpi ? request == done_request
                                : request >> 30 == 1;  // MPICH: a built-in one
}
int Abi::source(const void* status) const {
  const int said = read<int>(status, source_at);
  return said >= 0 ? said : -2;  // also of a status that is empty, as MPICH's of MPI_PROC_NULL
}
int Abi::tag(const void* status) const {
  return read<int>(status, tag_at);
}
bool Abi::is_cancelled(const void* status) const {
  return kind == Kind::kOpenMpi ? read<int>(status, 12) != 0 : (read<int>(status, 4) & 1) != 0;
}
std::uint64_t Abi::bytes(const void* status) const {
  if (kind == Kind::kOpenMpi) return read<std::uint64_t>(status, 16);
  return read<std::uint32_t>(status, 0) | std::uint64_t{read<std::uint32_t>(status, 4) >> 1} << 32;
}

const Abi& abi(const void* caller) {
  static const Abi found = find(caller);
  return found;
}

Word variable(const char* name, const void* caller) {
  void* const known = dlsym(RTLD_DEFAULT, name);
  return reinterpret_cast<Word>(known != nullptr ? known : symbol(name, caller));
}

void* symbol(const char* name, const void* caller) {
  if (void* const behind = dlsym(RTLD_NEXT, name)) return behind;
  void* library = local_library.load(std::memory_order_acquire);
  if (library == nullptr) {
    Dl_info info;
    if (caller == nullptr || dladdr(caller, &info) == 0 || info.dli_fname == nullptr)
      return nullptr;
    library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) return nullptr;
    void* const there = dlsym(library, name);
    if (there == nullptr)
      dlclose(library);
    else
      local_library.store(library, std::memory_order_release);  // held as long as the process lives
    return there;
  }
  return dlsym(library, name);
}

}  // namespace rangescope::inject::mpi
