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
//
// A call that begins a message gives its request a number; the call that completes it (MPI_Wait, MPI_Testsome, ...)
// says the number again when it ends, and of a receive the sender, the tag and the bytes. A test that completes nothing
// leaves no range. A persistent request begins a message each time it is started: a range `MPI_Start (MPI_Send_init)`
// and its like, inside that of MPI_Start or MPI_Startall.
#include <dlfcn.h>
#include <mpi.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <atomic>
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
  std::uint64_t request;
};
struct Completion {
  std::uint64_t request, bytes;
  std::int32_t source, tag;
};
constexpr std::uint64_t kCollective = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 1, kMessage = kCollective + 1,
                        kExchange = kCollective + 2, kRequest = kCollective + 3, kCompletion = kCollective + 4;

nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t handle = [] {
    const nvtxDomainHandle_t made = nvtxDomainCreateA("MPI");
    static const auto entry = [](const char* name, std::uint64_t type, std::size_t offset) {
      return nvtxPayloadSchemaEntry_t{0, type, name, nullptr, 0, offset, nullptr, nullptr};
    };
    constexpr std::uint64_t kSize = NVTX_PAYLOAD_ENTRY_TYPE_UINT64, kNumber = NVTX_PAYLOAD_ENTRY_TYPE_INT32;
    static const nvtxPayloadSchemaEntry_t entries[] = {entry("Request", kSize, offsetof(Payload, request)),
                                                       entry("MPI communicator ID", kSize, 0),
                                                       entry("Message size [bytes]", kSize, offsetof(Payload, bytes)),
                                                       entry("Peer rank", kNumber, offsetof(Payload, peer)),
                                                       entry("Tag", kNumber, offsetof(Payload, tag)),
                                                       entry("Rank", kNumber, offsetof(Payload, self)),
                                                       entry("Source rank", kNumber, offsetof(Payload, source)),
                                                       entry("Source tag", kNumber, offsetof(Payload, source_tag))};
    static const nvtxPayloadSchemaEntry_t completed[] = {
        entry("Completed request", kSize, 0), entry("Message size [bytes]", kSize, offsetof(Completion, bytes)),
        entry("Source rank", kNumber, offsetof(Completion, source)),
        entry("Source tag", kNumber, offsetof(Completion, tag))};
    const auto add = [made](std::uint64_t id, const nvtxPayloadSchemaEntry_t* first, std::size_t count,
                            std::size_t size) {
      nvtxPayloadSchemaAttr_t schema{};
      schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                         NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |
                         NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
      schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
      schema.entries = first;
      schema.numEntries = count;
      schema.payloadStaticSize = size;
      schema.schemaId = id;
      nvtxPayloadSchemaRegister(made, &schema);
    };
    add(kCollective, entries + 1, 3, sizeof(Payload));
    add(kMessage, entries + 1, 5, sizeof(Payload));
    add(kExchange, entries + 1, 7, sizeof(Payload));
    add(kRequest, entries, 6, sizeof(Payload));
    add(kCompletion, completed, 4, sizeof(Completion));
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

/// Of a message that was received; what `otherwise` says where the library does not.
std::uint64_t received_bytes(const MPI_Status& status, std::uint64_t otherwise) {
  static const auto elements = next<decltype(&PMPI_Get_elements_x)>("PMPI_Get_elements_x");
  static const auto byte = reinterpret_cast<MPI_Datatype>(dlsym(RTLD_DEFAULT, "ompi_mpi_byte"));
  MPI_Count bytes = 0;
  if (elements == nullptr || byte == nullptr || elements(&status, byte, &bytes) != MPI_SUCCESS || bytes < 0)
    return otherwise;
  return static_cast<std::uint64_t>(bytes);
}

class Range {
 public:
  Range(nvtxStringHandle_t name, MPI_Comm comm, std::uint64_t bytes, int peer = -1)
      : Range(name, comm, kCollective, {0, bytes, peer, 0, 0, 0, 0, 0, 0}) {}
  /// A message, one that is only begun under its request's number, and one from `source` where that is given.
  Range(nvtxStringHandle_t name, MPI_Comm comm, std::uint64_t bytes, int peer, int tag)
      : Range(name, comm, kMessage, {0, bytes, peer, tag, 0, 0, 0, 0, 0}) {}
  Range(nvtxStringHandle_t name, MPI_Comm comm, std::uint64_t bytes, int peer, int tag, std::uint64_t request)
      : Range(name, comm, kRequest, {0, bytes, peer, tag, 0, 0, 0, 0, request}) {}
  Range(nvtxStringHandle_t name, MPI_Comm comm, std::uint64_t bytes, int peer, int tag, int source, int source_tag)
      : Range(name, comm, kExchange, {0, bytes, peer, tag, 0, source, source_tag, 0, 0}) {}
  explicit Range(nvtxStringHandle_t name) { push(name, nullptr); }
  ~Range() {
    if (completed_count_ > 0) {
      nvtxRangePopPayload(domain(), completed_, completed_count_);
      return;
    }
    if (!more_) {
      nvtxDomainRangePop(domain());
      return;
    }
    const nvtxPayloadData_t data{schema_, sizeof payload_, &payload_};
    nvtxRangePopPayload(domain(), &data, 1);
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

  /// Where a message came from, which wildcards do not say before, and what came of what there was room for.
  void came(const MPI_Status& status) {
    if (schema_ == 0) return;
    std::int32_t& rank = schema_ == kExchange ? payload_.source : payload_.peer;
    std::int32_t& tag = schema_ == kExchange ? payload_.source_tag : payload_.tag;
    const std::uint64_t bytes = schema_ == kMessage ? received_bytes(status, payload_.bytes) : payload_.bytes;
    more_ = rank != status.MPI_SOURCE || tag != status.MPI_TAG || bytes != payload_.bytes;
    rank = status.MPI_SOURCE;
    tag = status.MPI_TAG;
    payload_.bytes = bytes;
  }
  /// `data` must outlive the range.
  void completed(const nvtxPayloadData_t* data, std::size_t count) {
    completed_ = data;
    completed_count_ = count;
  }
  [[nodiscard]] bool is_followed() const { return schema_ != 0; }

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
  const nvtxPayloadData_t* completed_ = nullptr;
  std::size_t completed_count_ = 0;
};
#define RANGE(name, ...)                                                                    \
  static const nvtxStringHandle_t text = nvtxDomainRegisterStringA(domain(), "MPI_" #name); \
  Range range(text __VA_OPT__(, ) __VA_ARGS__)

// ---- Requests ------------------------------------------------------------------------------------------------------

struct Posted {
  std::uint64_t number;  // 0: not followed
  std::uint64_t bytes;
  std::int32_t peer, tag;
  bool receives;
  nvtxStringHandle_t start;  // of a persistent one: the name of its ranges. Its number is 0 until it is started
  MPI_Comm comm;
};
std::atomic<std::uint64_t> posted_count{0};

/// Requests under way by their handles, without a lock: a request belongs to one call at a time. One that finds its few
/// places taken is not followed.
class Requests {
 public:
  void put(MPI_Request request, const Posted& posted) {
    static const auto done = reinterpret_cast<MPI_Request>(dlsym(RTLD_DEFAULT, "ompi_request_empty")),
                      none = reinterpret_cast<MPI_Request>(dlsym(RTLD_DEFAULT, "ompi_request_null"));
    if ((posted.number == 0 && posted.start == nullptr) || request == done || request == none)
      return;       // shared by all that are complete at once
    take(request);  // of one that was completed unseen
    for (Place *place = first(request), *end = place + kTried; place != end; ++place) {
      std::uintptr_t empty = 0;
      if (!place->request.compare_exchange_strong(empty, kBusy, std::memory_order_acquire)) continue;
      place->posted = posted;
      place->request.store(reinterpret_cast<std::uintptr_t>(request), std::memory_order_release);
      return;
    }
  }
  Posted take(MPI_Request request) {
    for (Place *place = first(request), *end = place + kTried; place != end && request != nullptr; ++place) {
      if (place->request.load(std::memory_order_acquire) != reinterpret_cast<std::uintptr_t>(request)) continue;
      const Posted posted = place->posted;
      place->request.store(0, std::memory_order_release);
      return posted;
    }
    return {};
  }

 private:
  struct Place {
    std::atomic<std::uintptr_t> request{0};
    Posted posted{};
  };
  static constexpr std::size_t kPlaces = 4096, kTried = 16;
  static constexpr std::uintptr_t kBusy = 1;
  Place* first(MPI_Request request) { return &places_[mix(1, reinterpret_cast<std::uintptr_t>(request)) % kPlaces]; }
  Place places_[kPlaces + kTried];
};
Requests requests_under_way;

/// A persistent request is about to be started.
void begin(MPI_Request request) {
  Posted posted = world() == nullptr ? Posted{} : requests_under_way.take(request);
  if (posted.start == nullptr) return requests_under_way.put(request, posted);
  const std::uint64_t number = ++posted_count;
  const Range range(posted.start, posted.comm, posted.bytes, posted.peer, posted.tag, number);
  posted.number = range.is_followed() ? number : 0;
  requests_under_way.put(request, posted);
}

/// The requests of a call that completes some. What began them is taken before the call, since a handle may be used
/// again as soon as its request is complete, and put back where it is not.
class Completing {
 public:
  Completing(int count, MPI_Request* requests, MPI_Status* statuses) : requests_(requests), statuses_(statuses) {
    if (world() == nullptr) return;
    const std::size_t all = count < 0 || requests == nullptr ? 0 : static_cast<std::size_t>(count);
    count_ = all < kMost ? all : kMost;
    if (count_ > kFew) {
      more_ = static_cast<Room*>(std::malloc(sizeof(Room) * count_));
      data_ = static_cast<nvtxPayloadData_t*>(std::malloc(sizeof *data_ * count_));
      if (more_ == nullptr || data_ == nullptr) count_ = 0;
    }
    for (std::size_t i = 0; i < count_; ++i) {
      room(i).handle = requests[i];
      room(i).posted = requests_under_way.take(requests[i]);
    }
    if (statuses != nullptr || all != count_) return;
    own_ = count_ > kFew ? static_cast<MPI_Status*>(std::malloc(sizeof *own_ * count_)) : few_statuses_;
    statuses_ = own_;
  }
  ~Completing() {
    if (own_ != few_statuses_) std::free(own_);
    if (data_ != few_data_) std::free(data_);
    std::free(more_);
  }
  Completing(const Completing&) = delete;
  Completing& operator=(const Completing&) = delete;

  /// What the call gets: the caller's, or room of its own where that is nowhere.
  [[nodiscard]] MPI_Status* statuses() const { return statuses_; }

  /// The n-th of `known` statuses is that of the request order[n], without `order` of the n-th. A request is complete
  /// when its handle is gone, a persistent one when it is among the known.
  void done(int result, const int* order, int known) {
    for (std::size_t i = 0; i < count_; ++i) {
      if (requests_[i] != room(i).handle || room(i).posted.start != nullptr) continue;
      requests_under_way.put(room(i).handle, room(i).posted);
      room(i).posted.number = 0;
    }
    for (int n = 0; n < known && result == MPI_SUCCESS; ++n) {
      const std::size_t at = static_cast<std::size_t>(order == nullptr ? n : order[n]);
      if (at < count_) add(room(at), statuses_ == nullptr ? nullptr : &statuses_[n]);
    }
    for (std::size_t i = 0; i < count_; ++i) {
      if (room(i).posted.start != nullptr)
        requests_under_way.put(room(i).handle, room(i).posted);
      else if (result == MPI_SUCCESS)
        add(room(i), nullptr);
    }
  }
  [[nodiscard]] bool any() const { return complete_ > 0; }
  void tell(Range& range) const { range.completed(data_, complete_); }

 private:
  static constexpr std::size_t kFew = 8, kMost = 1024;
  struct Room {
    MPI_Request handle;
    Posted posted;
    Completion completion;
  };

  void add(Room& one, const MPI_Status* status) {
    static const auto cancelled = next<decltype(&PMPI_Test_cancelled)>("PMPI_Test_cancelled");
    if (one.posted.number == 0) return;
    one.completion = {one.posted.number, one.posted.bytes, one.posted.peer, one.posted.tag};
    if (one.posted.receives && status != nullptr) {
      int gone = 0;
      if (cancelled != nullptr && cancelled(status, &gone) == MPI_SUCCESS && gone != 0)
        one.completion = {one.posted.number, 0, MPI_PROC_NULL, 0};
      else
        one.completion = {one.posted.number, received_bytes(*status, one.posted.bytes), status->MPI_SOURCE,
                          status->MPI_TAG};
    }
    one.posted.number = 0;
    data_[complete_++] = {kCompletion, sizeof(Completion), &one.completion};
  }
  Room& room(std::size_t i) { return more_ == nullptr ? few_[i] : more_[i]; }

  MPI_Request* requests_;
  MPI_Status* statuses_;
  std::size_t count_ = 0, complete_ = 0;
  Room few_[kFew];
  MPI_Status few_statuses_[kFew];
  nvtxPayloadData_t few_data_[kFew];
  Room* more_ = nullptr;
  nvtxPayloadData_t* data_ = few_data_;
  MPI_Status* own_ = few_statuses_;
};

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
#define SEND(name)                                                                                           \
  SHOWN int MPI_##name(const void* buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) { \
    NEXT(name);                                                                                              \
    RANGE(name, comm, bytes_of(count, type), peer, tag);                                                     \
    return real(buffer, count, type, peer, tag, comm);                                                       \
  }
SEND(Send)
SEND(Ssend)
SEND(Rsend)
SEND(Bsend)
#define BEGIN(name, buffer_type, receives)                                                                 \
  SHOWN int MPI_##name(buffer_type buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, \
                       MPI_Request* request) {                                                             \
    NEXT(name);                                                                                            \
    const Posted posted{++posted_count, bytes_of(count, type), peer, tag, receives, nullptr, nullptr};     \
    RANGE(name, comm, posted.bytes, peer, tag, posted.number);                                             \
    const int result = real(buffer, count, type, peer, tag, comm, request);                                \
    if (result == MPI_SUCCESS && range.is_followed()) requests_under_way.put(*request, posted);            \
    return result;                                                                                         \
  }
BEGIN(Isend, const void*, false)
BEGIN(Issend, const void*, false)
BEGIN(Irsend, const void*, false)
BEGIN(Ibsend, const void*, false)
BEGIN(Irecv, void*, true)
#define PREPARE(name, buffer_type, receives)                                                                 \
  SHOWN int MPI_##name(buffer_type buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,   \
                       MPI_Request* request) {                                                               \
    NEXT(name);                                                                                              \
    static const nvtxStringHandle_t text = nvtxDomainRegisterStringA(domain(), "MPI_Start (MPI_" #name ")"); \
    const int result = real(buffer, count, type, peer, tag, comm, request);                                  \
    if (result == MPI_SUCCESS)                                                                               \
      requests_under_way.put(*request, {0, bytes_of(count, type), peer, tag, receives, text, comm});         \
    return result;                                                                                           \
  }
PREPARE(Send_init, const void*, false)
PREPARE(Ssend_init, const void*, false)
PREPARE(Rsend_init, const void*, false)
PREPARE(Bsend_init, const void*, false)
PREPARE(Recv_init, void*, true)
SHOWN int MPI_Start(MPI_Request* request) {
  NEXT(Start);
  RANGE(Start);
  if (request != nullptr) begin(*request);
  return real(request);
}
SHOWN int MPI_Startall(int count, MPI_Request* requests) {
  NEXT(Startall);
  RANGE(Startall);
  for (int i = 0; i < count && requests != nullptr; ++i) begin(requests[i]);
  return real(count, requests);
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

// Requests. Those that wait:
SHOWN int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  NEXT(Wait);
  Completing completing(1, request, status);
  RANGE(Wait);
  const int result = real(request, completing.statuses());
  completing.done(result, nullptr, 1);
  completing.tell(range);
  return result;
}
SHOWN int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  NEXT(Waitall);
  Completing completing(count, requests, statuses);
  RANGE(Waitall);
  const int result = real(count, requests, completing.statuses());
  completing.done(result, nullptr, count);
  completing.tell(range);
  return result;
}
SHOWN int MPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  NEXT(Waitany);
  Completing completing(count, requests, status);
  RANGE(Waitany);
  const int result = real(count, requests, index, completing.statuses());
  completing.done(result, index, 1);
  completing.tell(range);
  return result;
}
SHOWN int MPI_Waitsome(int count, MPI_Request* requests, int* known, int* indexes, MPI_Status* statuses) {
  NEXT(Waitsome);
  Completing completing(count, requests, statuses);
  RANGE(Waitsome);
  const int result = real(count, requests, known, indexes, completing.statuses());
  completing.done(result, indexes, *known);
  completing.tell(range);
  return result;
}
// Those that look: a range where they found something.
#define FOUND(name)         \
  if (completing.any()) {   \
    RANGE(name);            \
    completing.tell(range); \
  }                         \
  return result
SHOWN int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  NEXT(Test);
  Completing completing(1, request, status);
  const int result = real(request, flag, completing.statuses());
  completing.done(result, nullptr, *flag);
  FOUND(Test);
}
SHOWN int MPI_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  NEXT(Testall);
  Completing completing(count, requests, statuses);
  const int result = real(count, requests, flag, completing.statuses());
  completing.done(result, nullptr, *flag == 0 ? 0 : count);
  FOUND(Testall);
}
SHOWN int MPI_Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  NEXT(Testany);
  Completing completing(count, requests, status);
  const int result = real(count, requests, index, flag, completing.statuses());
  completing.done(result, index, *flag);
  FOUND(Testany);
}
SHOWN int MPI_Testsome(int count, MPI_Request* requests, int* known, int* indexes, MPI_Status* statuses) {
  NEXT(Testsome);
  Completing completing(count, requests, statuses);
  const int result = real(count, requests, known, indexes, completing.statuses());
  completing.done(result, indexes, *known);
  FOUND(Testsome);
}
SHOWN int MPI_Request_free(MPI_Request* request) {
  NEXT(Request_free);
  if (request != nullptr) requests_under_way.take(*request);
  return real(request);
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
