#include "inject/mpi/communicators.hpp"

#include "inject/mpi/handles.hpp"

namespace rangescope::inject::mpi {
namespace {

Handles<Communicator> communicators;
Handles<std::uint32_t> groups_made;  // how often a group with this id was made

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ull + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccdull;
  return hash ^ hash >> 33;
}

int rank_in(Word comm) {
  static const auto rank_of = pmpi<int(Word, int*)>("PMPI_Comm_rank");
  int rank = -2;
  if (rank_of == nullptr || rank_of(comm, &rank) != 0)
    return -2;
  return rank;
}

/// The rank in `parent` of the first member of `child`; negative if there is none.
int leader_of(Word parent, Word child) {
  static const auto group_of = pmpi<int(Word, Word*)>("PMPI_Comm_group");
  static const auto free_group = pmpi<int(Word*)>("PMPI_Group_free");
  static const auto translate =
      pmpi<int(Word, int, const int*, Word, int*)>("PMPI_Group_translate_ranks");
  if (group_of == nullptr || translate == nullptr || free_group == nullptr)
    return -1;
  Word child_group = 0;
  Word parent_group = 0;
  if (group_of(child, &child_group) != 0)
    return -1;
  int leader = -1;
  if (group_of(parent, &parent_group) == 0) {
    const int first = 0;
    if (translate(child_group, 1, &first, parent_group, &leader) != 0)
      leader = -1;
    free_group(&parent_group);
  }
  free_group(&child_group);
  return leader;
}

/// The parent, with one child more.
Communicator add_child(Word handle) {
  Communicator parent = communicator_of(handle);
  if (parent.id != 0)
    communicators.with(handle, [&](Communicator& stored) { parent.children = ++stored.children; });
  return parent;
}

bool is_none(Word communicator) {
  return communicator == abi().no_comm || communicator == 0;
}

}  // namespace

Communicator communicator_of(Word handle) {
  Communicator communicator;
  const auto copy = [&](const Communicator& stored) { communicator = stored; };
  if (communicators.with(handle, copy))
    return communicator;
  const Abi& mpi = abi();
  if (handle != mpi.world && handle != mpi.self)
    return {};
  static const auto initialized = pmpi<int(int*)>("PMPI_Initialized");
  int is_initialized = 0;
  if (initialized == nullptr || initialized(&is_initialized) != 0 || is_initialized == 0)
    return {};
  const int rank = rank_in(mpi.world);
  if (handle == mpi.world)
    communicator = {1, 0, rank};
  else
    communicator = {mix(2, static_cast<std::uint64_t>(rank)), 0, 0};
  communicators.put(handle, communicator);
  return communicator;
}

void note_communicator(Word parent_handle, Word child) {
  const Communicator parent = add_child(parent_handle);
  if (parent.id == 0 || is_none(child))
    return;
  const int leader = leader_of(parent_handle, child);
  if (leader < 0)
    return;
  const std::uint64_t id = mix(mix(parent.id, parent.children), static_cast<std::uint64_t>(leader));
  communicators.put(child, {id, 0, rank_in(child)});
}

void note_group(Word parent_handle, Word child, int tag) {
  const Communicator parent = communicator_of(parent_handle);
  if (parent.id == 0 || is_none(child))
    return;
  const int leader = leader_of(parent_handle, child);
  if (leader < 0)
    return;
  const std::uint64_t id =
      mix(mix(~parent.id, static_cast<std::uint64_t>(tag)), static_cast<std::uint64_t>(leader));
  const std::uint32_t made_before = groups_made.take(id);
  groups_made.put(id, made_before + 1);
  communicators.put(child, {mix(id, made_before), 0, rank_in(child)});
}

void note_copy(Word parent_handle, Word child) {
  const Communicator parent = add_child(parent_handle);
  if (parent.id == 0 || is_none(child))
    return;
  communicators.put(child, {mix(mix(parent.id, parent.children), 0), 0, parent.self});
}

void note_window(Word parent_handle, Word window) {
  note_copy(parent_handle, window);
}

void forget(Word handle) {
  (void)communicators.take(handle);
}

}  // namespace rangescope::inject::mpi
