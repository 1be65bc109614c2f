#include "inject/mpi/communicators.hpp"

#include "inject/mpi/handles.hpp"

namespace rangescope::inject::mpi {
namespace {

Handles<Communicator> known;
Handles<std::uint32_t> groups_made;  // by id: how often

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ull + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccdull;
  return hash ^ hash >> 33;
}

int rank_in(Word comm) {
  static const auto rank_of = pmpi<int(Word, int*)>("PMPI_Comm_rank");
  int rank = -2;
  return rank_of != nullptr && rank_of(comm, &rank) == 0 ? rank : -2;
}

/// The rank in `parent` of the first member of `made`; negative for none.
int leader_of(Word parent, Word made) {
  static const auto group_of = pmpi<int(Word, Word*)>("PMPI_Comm_group");
  static const auto free_group = pmpi<int(Word*)>("PMPI_Group_free");
  static const auto translate =
      pmpi<int(Word, int, const int*, Word, int*)>("PMPI_Group_translate_ranks");
  if (group_of == nullptr || translate == nullptr || free_group == nullptr) return -1;
  Word mine = 0, all = 0;
  if (group_of(made, &mine) != 0) return -1;
  int leader = -1;
  if (group_of(parent, &all) == 0) {
    const int first = 0;
    if (translate(mine, 1, &first, all, &leader) != 0) leader = -1;
    free_group(&all);
  }
  free_group(&mine);
  return leader;
}

/// The parent as it is after it has had one more child.
Communicator parent_of(Word handle) {
  Communicator out = communicator_of(handle);
  if (out.id != 0)
    known.with(handle, [&](Communicator& there) { out.children = ++there.children; });
  return out;
}

}  // namespace

Communicator communicator_of(Word handle) {
  Communicator found;
  if (known.with(handle, [&](const Communicator& there) { found = there; })) return found;
  const Abi& mpi = abi();
  if (handle != mpi.world && handle != mpi.self) return found;
  static const auto initialized = pmpi<int(int*)>("PMPI_Initialized");
  int begun = 0;
  if (initialized == nullptr || initialized(&begun) != 0 || begun == 0) return found;
  const int self = rank_in(mpi.world);
  found = handle == mpi.world ? Communicator{1, 0, self}
                              : Communicator{mix(2, static_cast<std::uint64_t>(self)), 0, 0};
  known.put(handle, found);
  return found;
}

void note_communicator(Word parent, Word made) {
  const Communicator above = parent_of(parent);
  if (above.id == 0 || made == abi().no_comm || made == 0) return;
  if (const int leader = leader_of(parent, made); leader >= 0)
    known.put(made, {mix(mix(above.id, above.children), static_cast<std::uint64_t>(leader)), 0,
                     rank_in(made)});
}

void note_group(Word parent, Word made, int tag) {
  const Communicator above = communicator_of(parent);
  if (above.id == 0 || made == abi().no_comm || made == 0) return;
  const int leader = leader_of(parent, made);
  if (leader < 0) return;
  const std::uint64_t id =
      mix(mix(~above.id, static_cast<std::uint64_t>(tag)), static_cast<std::uint64_t>(leader));
  const std::uint32_t before = groups_made.take(id);
  groups_made.put(id, before + 1);
  known.put(made, {mix(id, before), 0, rank_in(made)});
}

void note_copy(Word parent, Word made) {
  const Communicator above = parent_of(parent);
  if (above.id != 0 && made != abi().no_comm && made != 0)
    known.put(made, {mix(mix(above.id, above.children), 0), 0, above.self});
}

void note_window(Word parent, Word made) {
  note_copy(parent, made);
}

void forget(Word handle) {
  (void)known.take(handle);
}

}  // namespace rangescope::inject::mpi
