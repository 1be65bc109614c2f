#include "inject/mpi/function.hpp"

#include <cstdio>
#include <cstring>

#include "inject/mpi/range.hpp"

namespace rangescope::inject::mpi {
namespace {

/// Whether the address is that of an MPI constant of Fortran, which is a variable. mpif.h and
/// mpi_f08 have different names for it. `addresses`: those found so far; 1: there is none.
template <std::size_t n>
bool is_constant(Word address, const char* const (&names)[n], std::atomic<Word> (&addresses)[n]) {
  for (std::size_t i = 0; i < n; ++i) {
    Word constant = addresses[i].load(std::memory_order_relaxed);
    if (constant == 0) {
      constant = variable(names[i]);
      addresses[i].store(constant == 0 ? 1 : constant, std::memory_order_relaxed);
    }
    if (constant == address)
      return true;
  }
  return false;
}

bool is_in_place(Word address) {
  static std::atomic<Word> addresses[3];
  return is_constant(address,
                     {"mpi_fortran_in_place_", "mpi_fortran_in_place", "MPI_FORTRAN_IN_PLACE"},
                     addresses);
}
bool is_status_ignore(Word address) {
  static std::atomic<Word> addresses[6];
  return is_constant(address,
                     {"mpi_fortran_status_ignore_",
                      "mpi_fortran_statuses_ignore_",
                      "mpi_fortran_status_ignore",
                      "mpi_fortran_statuses_ignore",
                      "MPIR_F08_MPI_STATUS_IGNORE_OBJ",
                      "MPIR_F08_MPI_STATUSES_IGNORE_OBJ"},
                     addresses);
}

void to_lower_case(char* text) {
  for (char* c = text; *c != '\0'; ++c)
    if (*c >= 'A' && *c <= 'Z')
      *c = static_cast<char>(*c + ('a' - 'A'));
}

}  // namespace

void* Function::real_function(Language language, const void* caller) {
  std::atomic<void*>& cached = real[static_cast<int>(language)];
  void* function = cached.load(std::memory_order_acquire);
  if (function != nullptr)
    return function;
  constexpr const char* kPrefixes[] = {"P", "P", "", ""};
  constexpr const char* kSuffixes[] = {"", "_c", "_", "_f08_"};
  static_assert(static_cast<int>(Language::kFortran08) == 3);
  const auto index = static_cast<std::size_t>(language);
  char symbol_name[64];
  std::snprintf(
      symbol_name, sizeof symbol_name, "%s%s%s", kPrefixes[index], name, kSuffixes[index]);
  if (language >= Language::kFortran)
    to_lower_case(symbol_name);
  function = symbol(symbol_name, caller);
  cached.store(function, std::memory_order_release);
  return function;
}

nvtxStringHandle_t Function::range_name() {
  nvtxStringHandle_t handle = texts[0].load(std::memory_order_acquire);
  if (handle != nullptr)
    return handle;
  handle = nvtxDomainRegisterStringA(domain(), name);
  texts[0].store(handle, std::memory_order_release);
  return handle;
}

nvtxStringHandle_t Function::start_name() {
  nvtxStringHandle_t handle = texts[1].load(std::memory_order_acquire);
  if (handle != nullptr)
    return handle;
  char text[64];
  std::snprintf(text, sizeof text, "MPI_Start (%s)", name);
  handle = nvtxDomainRegisterStringA(domain(), text);
  texts[1].store(handle, std::memory_order_release);
  return handle;
}

Word Arguments::from_fortran(char role, int handle) const {
  if (mpi_.kind != Abi::Kind::kOpenMpi)
    return static_cast<unsigned>(handle);
  using Convert = Word(int);
  static Convert* const comm = pmpi<Convert>("PMPI_Comm_f2c");
  static Convert* const type = pmpi<Convert>("PMPI_Type_f2c");
  static Convert* const window = pmpi<Convert>("PMPI_Win_f2c");
  static Convert* const request = pmpi<Convert>("PMPI_Request_f2c");
  static Convert* const message = pmpi<Convert>("PMPI_Message_f2c");
  Convert* convert = window;
  switch (role) {
    case 'c':
    case 'C': convert = comm; break;
    case 't':
    case 'T': convert = type; break;
    case 'R': convert = request; break;
    case 'M': convert = message; break;
    default: break;
  }
  if (convert == nullptr)
    return 0;
  return convert(handle);
}

Word Arguments::handle(char role) const {
  if (!fortran())
    return mpi_.handle(word(role));
  return from_fortran(role, *reinterpret_cast<int*>(word(role)));
}

Word Arguments::handle_at(char role, std::size_t index) const {
  const char* const first = pointer<char>(role);
  Word value = 0;
  if (first == nullptr)
    return 0;
  std::memcpy(&value, first + index * handle_bytes(), handle_bytes());
  if (!fortran())
    return value;
  return from_fortran(role, static_cast<int>(value));
}

bool Arguments::is_in_place_buffer() const {
  if (!has('I'))
    return false;
  if (fortran())
    return is_in_place(word('I'));
  return word('I') == mpi_.in_place;
}

std::int64_t Arguments::count_of_rank(int rank) const {
  if (language_ == Language::kLarge)
    return pointer<std::int64_t>('A')[rank];
  return pointer<int>('A')[rank];
}

std::int64_t Arguments::count(char role) const {
  if (language_ == Language::kLarge)
    return static_cast<std::int64_t>(word(role));
  return number(role);
}

std::uint64_t Arguments::bytes(int self) const {
  const bool in_place = is_in_place_buffer();
  const char count_role = in_place ? 'N' : 'n';
  const char type = in_place ? 'T' : 't';
  if (!has(type))
    return kUnknownBytes;
  std::int64_t items = number('m', 1);
  if (has(count_role))
    items *= count(count_role);
  if (in_place && has('A')) {
    if (self < 0)
      return kUnknownBytes;
    items = count_of_rank(self);
  }
  if (items < 0)
    return kUnknownBytes;
  if (items == 0)
    return 0;
  static const auto size_of = pmpi<int(Word, long long*)>("PMPI_Type_size_x");
  long long bytes = -1;
  if (size_of == nullptr || size_of(handle(type), &bytes) != 0 || bytes < 0)
    return kUnknownBytes;
  return static_cast<std::uint64_t>(items) * static_cast<std::uint64_t>(bytes);
}

bool Arguments::is_ignored(char role) const {
  if (fortran())
    return is_status_ignore(word(role));
  return word(role) == mpi_.ignored;
}

}  // namespace rangescope::inject::mpi
