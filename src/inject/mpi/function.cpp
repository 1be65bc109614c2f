#include "inject/mpi/function.hpp"

#include <cstdio>
#include <cstring>

#include "inject/mpi/range.hpp"

namespace rangescope::inject::mpi {
namespace {

/// Is it one of Open MPI's Fortran constants, which are variables known by their addresses? mpif.h
/// and mpi_f08 name them otherwise.
template <std::size_t n>
bool is_constant(Word address, const char* const (&names)[n], std::atomic<Word> (&known)[n]) {
  for (std::size_t i = 0; i < n; ++i) {
    Word at = known[i].load(std::memory_order_relaxed);
    if (at == 0) {
      at = variable(names[i]);
      known[i].store(at == 0 ? 1 : at, std::memory_order_relaxed);
    }
    if (at == address) return true;
  }
  return false;
}

bool is_in_place(Word address) {
  static std::atomic<Word> known[3];
  return is_constant(
      address, {"mpi_fortran_in_place_", "mpi_fortran_in_place", "MPI_FORTRAN_IN_PLACE"}, known);
}
bool is_status_ignore(Word address) {
  static std::atomic<Word> known[6];
  return is_constant(address,
                     {"mpi_fortran_status_ignore_", "mpi_fortran_statuses_ignore_",
                      "mpi_fortran_status_ignore", "mpi_fortran_statuses_ignore",
                      "MPIR_F08_MPI_STATUS_IGNORE_OBJ", "MPIR_F08_MPI_STATUSES_IGNORE_OBJ"},
                     known);
}

}  // namespace

void* Function::behind(Language language, const void* caller) {
  std::atomic<void*>& known = real[static_cast<int>(language)];
  void* found = known.load(std::memory_order_acquire);
  if (found != nullptr) return found;
  char text[64];
  std::snprintf(text, sizeof text,
                language == Language::kFortran     ? "%s_"
                : language == Language::kFortran08 ? "%s_f08_"
                : language == Language::kLarge     ? "P%s_c"
                                                   : "P%s",
                name);
  if (language >= Language::kFortran)
    for (char* c = text; *c != '\0'; ++c)
      *c = static_cast<char>(*c >= 'A' && *c <= 'Z' ? *c + ('a' - 'A') : *c);
  found = symbol(text, caller);
  known.store(found, std::memory_order_release);
  return found;
}

nvtxStringHandle_t Function::text() {
  nvtxStringHandle_t known = texts[0].load(std::memory_order_acquire);
  if (known != nullptr) return known;
  known = nvtxDomainRegisterStringA(domain(), name);
  texts[0].store(known, std::memory_order_release);
  return known;
}

nvtxStringHandle_t Function::start_text() {
  nvtxStringHandle_t known = texts[1].load(std::memory_order_acquire);
  if (known != nullptr) return known;
  char text[64];
  std::snprintf(text, sizeof text, "MPI_Start (%s)", name);
  known = nvtxDomainRegisterStringA(domain(), text);
  texts[1].store(known, std::memory_order_release);
  return known;
}

Word Arguments::from_fortran(char role, int handle) const {
  if (mpi_.kind != Abi::Kind::kOpenMpi) return static_cast<unsigned>(handle);
  using Convert = Word(int);
  static Convert* const comm = pmpi<Convert>("PMPI_Comm_f2c");
  static Convert* const type = pmpi<Convert>("PMPI_Type_f2c");
  static Convert* const window = pmpi<Convert>("PMPI_Win_f2c");
  static Convert* const request = pmpi<Convert>("PMPI_Request_f2c");
  static Convert* const message = pmpi<Convert>("PMPI_Message_f2c");
  Convert* const convert = role == 'c' || role == 'C'   ? comm
                           : role == 't' || role == 'T' ? type
                           : role == 'R'                ? request
                           : role == 'M'                ? message
                                                        : window;
  return convert == nullptr ? 0 : convert(handle);
}

Word Arguments::handle(char role) const {
  return fortran() ? from_fortran(role, *reinterpret_cast<int*>(word(role)))
                   : mpi_.handle(word(role));
}

Word Arguments::handle_at(char role, std::size_t place) const {
  const char* const first = pointer<char>(role);
  Word value = 0;
  if (first == nullptr) return 0;
  std::memcpy(&value, first + place * handle_bytes(), handle_bytes());
  return fortran() ? from_fortran(role, static_cast<int>(value)) : value;
}

std::int64_t Arguments::count(char role) const {
  return language_ == Language::kLarge ? static_cast<std::int64_t>(word(role)) : number(role);
}

std::uint64_t Arguments::bytes(int self) const {
  const bool in_place =
      has('I') && (fortran() ? is_in_place(word('I')) : word('I') == mpi_.in_place);
  const char counts = in_place ? 'N' : 'n', type = in_place ? 'T' : 't';
  if (!has(type)) return kUnknownBytes;
  std::int64_t items = (has(counts) ? count(counts) : 1) * number('m', 1);
  if (in_place && has('A'))
    items = self < 0                        ? -1
            : language_ == Language::kLarge ? pointer<std::int64_t>('A')[self]
                                            : pointer<int>('A')[self];
  if (items <= 0) return items == 0 ? 0 : kUnknownBytes;
  static const auto size_of = pmpi<int(Word, long long*)>("PMPI_Type_size_x");
  long long bytes = -1;
  if (size_of == nullptr || size_of(handle(type), &bytes) != 0 || bytes < 0) return kUnknownBytes;
  return static_cast<std::uint64_t>(items) * static_cast<std::uint64_t>(bytes);
}

bool Arguments::is_ignored(char role) const {
  return fortran() ? is_status_ignore(word(role)) : word(role) == mpi_.ignored;
}

}  // namespace rangescope::inject::mpi
