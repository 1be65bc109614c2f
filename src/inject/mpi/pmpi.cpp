// librangescope_mpi.so: MPI's calls as NVTX ranges of domain `MPI`, through the standard's profiling interface.
//
// Preloaded into an MPI program it stands before the MPI library: each call below opens a range with a payload
// (communicator, bytes, peer), calls the PMPI_ function and closes it. It links no MPI: a program without MPI that
// inherits LD_PRELOAD loads it and nothing happens. Built for Open MPI's binary interface; under another MPI the ranges
// have no payload. The Fortran bindings of Open MPI call PMPI_ functions themselves and are not seen.
//
// A communicator's id is the same on all of its ranks without a message: that of MPI_COMM_WORLD is 1, that of another
// one a hash of its parent's, of how many were made from the parent before it, and of the parent's rank of its first
// member. All members know these three.
#include <dlfcn.h>
#include <mpi.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <cstdint>
#include <cstdlib>

#define SHOWN extern "C" __attribute__((visibility("default")))

namespace {

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}
// The PMPI_ function of an MPI_ one, found at its first call.
#define NEXT(name)                                                      \
  static const auto real = next<decltype(&PMPI_##name)>("PMPI_" #name); \
  if (real == nullptr) return MPI_ERR_UNSUPPORTED_OPERATION

// Null under another MPI than Open MPI.
MPI_Comm world() {
  static const auto comm = reinterpret_cast<MPI_Comm>(dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world"));
  return comm;
}
MPI_Comm no_comm() {
  static const auto comm = reinterpret_cast<MPI_Comm>(dlsym(RTLD_DEFAULT, "ompi_mpi_comm_null"));
  return comm;
}

struct Payload {
  std::uint64_t communicator, bytes;
  std::int32_t peer, tag, self, source, source_tag, unused;
};
// Collectives give the first three, messages five, exchanges all.
constexpr std::uint64_t kCollective = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 1, kMessage = kCollective + 1,
                        kExchange = kCollective + 2;
constexpr std::size_t kFields[] = {3, 5, 7};

nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t handle = [] {
    const nvtxDomainHandle_t made = nvtxDomainCreateA("MPI");
    static const auto number = [](const char* name, std::size_t offset) {
      return nvtxPayloadSchemaEntry_t{0, NVTX_PAYLOAD_ENTRY_TYPE_INT32, name, nullptr, 0, offset, nullptr, nullptr};
    };
    static const nvtxPayloadSchemaEntry_t entries[] = {
        {0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "MPI communicator ID", nullptr, 0, 0, nullptr, nullptr},
        {0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "Message size [bytes]", nullptr, 0, offsetof(Payload, bytes), nullptr,
         nullptr},
        number("Peer rank", offsetof(Payload, peer)),
        number("Tag", offsetof(Payload, tag)),
        number("Rank", offsetof(Payload, self)),
        number("Source rank", offsetof(Payload, source)),
        number("Source tag", offsetof(Payload, source_tag))};
    for (std::uint64_t kind = 0; kind < 3; ++kind) {
      nvtxPayloadSchemaAttr_t schema{};
      schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                         NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |
                         NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
      schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
      schema.entries = entries;
      schema.numEntries = kFields[kind];
      schema.payloadStaticSize = sizeof(Payload);
      schema.schemaId = kCollective + kind;
      nvtxPayloadSchemaRegister(made, &schema);
    }
    return made;
  }();
  return handle;
}

// ---- Communicators -------------------------------------------------------------------------------------------------

struct Known {
  std::uint64_t id;
  std::uint32_t children;  // made of it so far
  std::int32_t self;       // own rank in it
};
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
  auto* known = static_cast<Known*>(std::malloc(sizeof(Known)));
  if (known == nullptr) return;
  static const auto rank_of = next<decltype(&PMPI_Comm_rank)>("PMPI_Comm_rank");
  int self = -2;
  *known = {id, 0, rank_of != nullptr && rank_of(comm, &self) == MPI_SUCCESS ? self : -2};
  if (set == nullptr || set(comm, key(), known) != MPI_SUCCESS) std::free(known);
}
Known* known(MPI_Comm comm) {
  static const auto get = next<decltype(&PMPI_Comm_get_attr)>("PMPI_Comm_get_attr");
  if (world() == nullptr || comm == no_comm() || comm == nullptr || key() == MPI_KEYVAL_INVALID) return nullptr;
  void* value = nullptr;
  int found = 0;
  if (get == nullptr || get(comm, key(), &value, &found) != MPI_SUCCESS) return nullptr;
  if (found == 0 && comm == world()) {
    keep(comm, 1);
    if (get(comm, key(), &value, &found) != MPI_SUCCESS) return nullptr;
  }
  return found != 0 ? static_cast<Known*>(value) : nullptr;
}
std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ull + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccdull;
  return hash ^ hash >> 33;
}
// `made` came of a call that all of `parent` made.
int note(int result, MPI_Comm parent, MPI_Comm* made) {
  static const auto group_of = next<decltype(&PMPI_Comm_group)>("PMPI_Comm_group");
  static const auto free_group = next<decltype(&PMPI_Group_free)>("PMPI_Group_free");
  static const auto translate = next<decltype(&PMPI_Group_translate_ranks)>("PMPI_Group_translate_ranks");
  Known* above = result == MPI_SUCCESS ? known(parent) : nullptr;
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

// ---- Ranges --------------------------------------------------------------------------------------------------------

std::uint64_t bytes_of(std::int64_t count, MPI_Datatype type) {
  static const auto size_of = next<decltype(&PMPI_Type_size)>("PMPI_Type_size");
  int bytes = 0;
  if (world() == nullptr || count <= 0 || size_of == nullptr || size_of(type, &bytes) != MPI_SUCCESS || bytes < 0)
    return 0;
  return static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(bytes);
}

class Range {
 public:
  Range(nvtxStringHandle_t name, MPI_Comm comm, std::uint64_t bytes, int peer = -1)
      : Range(name, comm, kCollective, {0, bytes, peer, 0, 0, 0, 0, 0}) {}
  /// A message, and one from `source` where that is given.
  Range(nvtxStringHandle_t name, MPI_Comm comm, std::uint64_t bytes, int peer, int tag)
      : Range(name, comm, kMessage, {0, bytes, peer, tag, 0, 0, 0, 0}) {}
  Range(nvtxStringHandle_t name, MPI_Comm comm, std::uint64_t bytes, int peer, int tag, int source, int source_tag)
      : Range(name, comm, kExchange, {0, bytes, peer, tag, 0, source, source_tag, 0}) {}
  explicit Range(nvtxStringHandle_t name) { push(name, nullptr); }
  ~Range() {
    if (!more_) {
      nvtxDomainRangePop(domain());
      return;
    }
    const nvtxPayloadData_t data{schema_, sizeof payload_, &payload_};
    nvtxRangePopPayload(domain(), &data, 1);
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

  /// Where a message came from, which wildcards do not say before.
  void came(const MPI_Status& status) {
    std::int32_t& rank = schema_ == kExchange ? payload_.source : payload_.peer;
    std::int32_t& tag = schema_ == kExchange ? payload_.source_tag : payload_.tag;
    more_ = schema_ != 0 && (rank != status.MPI_SOURCE || tag != status.MPI_TAG);
    rank = status.MPI_SOURCE;
    tag = status.MPI_TAG;
  }

 private:
  Range(nvtxStringHandle_t name, MPI_Comm comm, std::uint64_t schema, Payload payload) : payload_(payload) {
    const Known* found = world() == nullptr ? nullptr : known(comm);
    if (found == nullptr) {
      push(name, nullptr);
      return;
    }
    schema_ = schema;
    payload_.communicator = found->id;
    payload_.self = found->self;
    const nvtxPayloadData_t data{schema_, sizeof payload_, &payload_};
    push(name, &data);
  }
  static void push(nvtxStringHandle_t name, const nvtxPayloadData_t* data) {
    nvtxEventAttributes_t event{};
    event.version = NVTX_VERSION;
    event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    event.message.registered = name;
    if (data != nullptr) {
      event.payloadType = NVTX_PAYLOAD_TYPE_EXT;
      event.payload.ullValue = reinterpret_cast<std::uintptr_t>(data);
      event.reserved0 = 1;
    }
    nvtxDomainRangePushEx(domain(), &event);
  }
  std::uint64_t schema_ = 0;
  Payload payload_{};
  bool more_ = false;  ///< the pop says more than the push did
};
#define RANGE(name, ...)                                                                    \
  static const nvtxStringHandle_t text = nvtxDomainRegisterStringA(domain(), "MPI_" #name); \
  Range range(text __VA_OPT__(, ) __VA_ARGS__)

}  // namespace

// Collectives. The bytes are those of one rank's message, as nccl-tests counts them for each operation.
SHOWN int MPI_Barrier(MPI_Comm comm) {
  NEXT(Barrier);
  RANGE(Barrier, comm, 0);
  return real(comm);
}
SHOWN int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  NEXT(Bcast);
  RANGE(Bcast, comm, bytes_of(count, type), root);
  return real(buffer, count, type, root, comm);
}
SHOWN int MPI_Reduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
  NEXT(Reduce);
  RANGE(Reduce, comm, bytes_of(count, type), root);
  return real(in, out, count, type, op, root, comm);
}
SHOWN int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  NEXT(Allreduce);
  RANGE(Allreduce, comm, bytes_of(count, type));
  return real(in, out, count, type, op, comm);
}
SHOWN int MPI_Reduce_scatter_block(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  NEXT(Reduce_scatter_block);
  RANGE(Reduce_scatter_block, comm, bytes_of(count, type));
  return real(in, out, count, type, op, comm);
}
SHOWN int MPI_Reduce_scatter(const void* in, void* out, const int* counts, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm) {
  NEXT(Reduce_scatter);
  RANGE(Reduce_scatter, comm, 0);
  return real(in, out, counts, type, op, comm);
}
SHOWN int MPI_Scan(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  NEXT(Scan);
  RANGE(Scan, comm, bytes_of(count, type));
  return real(in, out, count, type, op, comm);
}
SHOWN int MPI_Exscan(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  NEXT(Exscan);
  RANGE(Exscan, comm, bytes_of(count, type));
  return real(in, out, count, type, op, comm);
}
#define EXCHANGE(name, count, type)                                                                  \
  SHOWN int MPI_##name(const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count, \
                       MPI_Datatype out_type, MPI_Comm comm) {                                       \
    NEXT(name);                                                                                      \
    RANGE(name, comm, bytes_of(count, type));                                                        \
    return real(in, in_count, in_type, out, out_count, out_type, comm);                              \
  }
// What arrives from each rank: the sender's count may be MPI_IN_PLACE's.
EXCHANGE(Allgather, out_count, out_type)
EXCHANGE(Alltoall, out_count, out_type)
#define ROOTED(name, count, type)                                                                    \
  SHOWN int MPI_##name(const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count, \
                       MPI_Datatype out_type, int root, MPI_Comm comm) {                             \
    NEXT(name);                                                                                      \
    RANGE(name, comm, bytes_of(count, type), root);                                                  \
    return real(in, in_count, in_type, out, out_count, out_type, root, comm);                        \
  }
ROOTED(Gather, in_count, in_type)
ROOTED(Scatter, out_count, out_type)
SHOWN int MPI_Allgatherv(const void* in, int in_count, MPI_Datatype in_type, void* out, const int* out_counts,
                         const int* places, MPI_Datatype out_type, MPI_Comm comm) {
  NEXT(Allgatherv);
  RANGE(Allgatherv, comm, bytes_of(in_count, in_type));
  return real(in, in_count, in_type, out, out_counts, places, out_type, comm);
}
SHOWN int MPI_Gatherv(const void* in, int in_count, MPI_Datatype in_type, void* out, const int* out_counts,
                      const int* places, MPI_Datatype out_type, int root, MPI_Comm comm) {
  NEXT(Gatherv);
  RANGE(Gatherv, comm, bytes_of(in_count, in_type), root);
  return real(in, in_count, in_type, out, out_counts, places, out_type, root, comm);
}
SHOWN int MPI_Scatterv(const void* in, const int* in_counts, const int* places, MPI_Datatype in_type, void* out,
                       int out_count, MPI_Datatype out_type, int root, MPI_Comm comm) {
  NEXT(Scatterv);
  RANGE(Scatterv, comm, bytes_of(out_count, out_type), root);
  return real(in, in_counts, places, in_type, out, out_count, out_type, root, comm);
}
SHOWN int MPI_Alltoallv(const void* in, const int* in_counts, const int* in_places, MPI_Datatype in_type, void* out,
                        const int* out_counts, const int* out_places, MPI_Datatype out_type, MPI_Comm comm) {
  NEXT(Alltoallv);
  RANGE(Alltoallv, comm, 0);
  return real(in, in_counts, in_places, in_type, out, out_counts, out_places, out_type, comm);
}

// Point to point.
SHOWN int MPI_Send(const void* buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) {
  NEXT(Send);
  RANGE(Send, comm, bytes_of(count, type), peer, tag);
  return real(buffer, count, type, peer, tag, comm);
}
SHOWN int MPI_Ssend(const void* buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) {
  NEXT(Ssend);
  RANGE(Ssend, comm, bytes_of(count, type), peer, tag);
  return real(buffer, count, type, peer, tag, comm);
}
SHOWN int MPI_Recv(void* buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Status* status) {
  NEXT(Recv);
  RANGE(Recv, comm, bytes_of(count, type), peer, tag);
  MPI_Status mine;
  MPI_Status* const known_status = status == MPI_STATUS_IGNORE ? &mine : status;
  const int result = real(buffer, count, type, peer, tag, comm, known_status);
  if (result == MPI_SUCCESS) range.came(*known_status);
  return result;
}
SHOWN int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
                    MPI_Request* request) {
  NEXT(Isend);
  RANGE(Isend, comm, bytes_of(count, type), peer, tag);
  return real(buffer, count, type, peer, tag, comm, request);
}
SHOWN int MPI_Irecv(void* buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
                    MPI_Request* request) {
  NEXT(Irecv);
  RANGE(Irecv, comm, bytes_of(count, type), peer, tag);
  return real(buffer, count, type, peer, tag, comm, request);
}
SHOWN int MPI_Sendrecv(const void* in, int in_count, MPI_Datatype in_type, int to, int in_tag, void* out, int out_count,
                       MPI_Datatype out_type, int from, int out_tag, MPI_Comm comm, MPI_Status* status) {
  NEXT(Sendrecv);
  RANGE(Sendrecv, comm, bytes_of(in_count, in_type), to, in_tag, from, out_tag);
  MPI_Status mine;
  MPI_Status* const known_status = status == MPI_STATUS_IGNORE ? &mine : status;
  const int result =
      real(in, in_count, in_type, to, in_tag, out, out_count, out_type, from, out_tag, comm, known_status);
  if (result == MPI_SUCCESS) range.came(*known_status);
  return result;
}
SHOWN int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  NEXT(Wait);
  RANGE(Wait);
  return real(request, status);
}
SHOWN int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  NEXT(Waitall);
  RANGE(Waitall);
  return real(count, requests, statuses);
}
SHOWN int MPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  NEXT(Waitany);
  RANGE(Waitany);
  return real(count, requests, index, status);
}

// Communicators that come of others.
SHOWN int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
  NEXT(Comm_dup);
  return note(real(comm, made), comm, made);
}
SHOWN int MPI_Comm_split(MPI_Comm comm, int color, int order, MPI_Comm* made) {
  NEXT(Comm_split);
  return note(real(comm, color, order, made), comm, made);
}
SHOWN int MPI_Comm_split_type(MPI_Comm comm, int type, int order, MPI_Info info, MPI_Comm* made) {
  NEXT(Comm_split_type);
  return note(real(comm, type, order, info, made), comm, made);
}
SHOWN int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* made) {
  NEXT(Comm_create);
  return note(real(comm, group, made), comm, made);
}
SHOWN int MPI_Cart_create(MPI_Comm comm, int dimensions, const int* sizes, const int* periods, int reorder,
                          MPI_Comm* made) {
  NEXT(Cart_create);
  return note(real(comm, dimensions, sizes, periods, reorder, made), comm, made);
}
