#include "inject/mpi/communicators.hpp"

#include <cstdlib>

#include "inject/mpi/next.hpp"

namespace rangescope::inject::mpi {
namespace {

int forget(MPI_Comm, int, void* value, void*) {
  std::free(value);
  return MPI_SUCCESS;
}
// A duplicate gets its own (note()).
int not_copied(MPI_Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}
int key() {
  static const int made = [] {
    int value = MPI_KEYVAL_INVALID;
    const auto create = next<decltype(&PMPI_Comm_create_keyval)>("PMPI_Comm_create_keyval");
    if (create == nullptr || create(not_copied, forget, &value, nullptr) != MPI_SUCCESS) return MPI_KEYVAL_INVALID;
    return value;
  }();
  return made;
}
void keep(MPI_Comm comm, std::uint64_t id) {
  static const auto set = next<decltype(&PMPI_Comm_set_attr)>("PMPI_Comm_set_attr");
  auto* known = static_cast<Communicator*>(std::malloc(sizeof(Communicator)));
  if (known == nullptr) return;
  static const auto rank_of = next<decltype(&PMPI_Comm_rank)>("PMPI_Comm_rank");
  int self = -2;
  *known = {id, 0, rank_of != nullptr && rank_of(comm, &self) == MPI_SUCCESS ? self : -2};
  if (set == nullptr || set(comm, key(), known) != MPI_SUCCESS) std::free(known);
}

}  // namespace

Communicator* communicator_of(MPI_Comm comm) {
  static const auto get = next<decltype(&PMPI_Comm_get_attr)>("PMPI_Comm_get_attr");
  if (world() == nullptr || comm == no_comm() || comm == nullptr || key() == MPI_KEYVAL_INVALID) return nullptr;
  void* value = nullptr;
  int found = 0;
  if (get == nullptr || get(comm, key(), &value, &found) != MPI_SUCCESS) return nullptr;
  if (found == 0 && comm == world()) {
    keep(comm, 1);
    if (get(comm, key(), &value, &found) != MPI_SUCCESS) return nullptr;
  }
  return found != 0 ? static_cast<Communicator*>(value) : nullptr;
}

int note(int result, MPI_Comm parent, MPI_Comm* made) {
  static const auto group_of = next<decltype(&PMPI_Comm_group)>("PMPI_Comm_group");
  static const auto free_group = next<decltype(&PMPI_Group_free)>("PMPI_Group_free");
  static const auto translate = next<decltype(&PMPI_Group_translate_ranks)>("PMPI_Group_translate_ranks");
  Communicator* above = result == MPI_SUCCESS ? communicator_of(parent) : nullptr;
  if (above == nullptr) return result;
  const std::uint32_t ordinal = ++above->children;
  if (made == nullptr || *made == no_comm() || group_of == nullptr || translate == nullptr || free_group == nullptr)
    return result;
  MPI_Group mine, all;
  if (group_of(*made, &mine) != MPI_SUCCESS) return result;
  if (group_of(parent, &all) == MPI_SUCCESS) {
    const int first = 0;
    int leader = 0;
    if (translate(mine, 1, &first, all, &leader) == MPI_SUCCESS)
      keep(*made, mix(mix(above->id, ordinal), static_cast<std::uint64_t>(leader)));
    free_group(&all);
  }
  free_group(&mine);
  return result;
}

}  // namespace rangescope::inject::mpi
