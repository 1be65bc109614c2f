#include "inject/mpi/range.hpp"

#include "inject/mpi/communicators.hpp"
#include "inject/mpi/next.hpp"

namespace rangescope::inject::mpi {

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

std::uint64_t bytes_of(std::int64_t count, MPI_Datatype type) {
  static const auto size_of = next<decltype(&PMPI_Type_size)>("PMPI_Type_size");
  int bytes = 0;
  if (world() == nullptr || count <= 0 || size_of == nullptr || size_of(type, &bytes) != MPI_SUCCESS || bytes < 0)
    return 0;
  return static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(bytes);
}

std::uint64_t received_bytes(const MPI_Status& status, std::uint64_t otherwise) {
  static const auto elements = next<decltype(&PMPI_Get_elements_x)>("PMPI_Get_elements_x");
  static const auto byte = reinterpret_cast<MPI_Datatype>(dlsym(RTLD_DEFAULT, "ompi_mpi_byte"));
  MPI_Count bytes = 0;
  if (elements == nullptr || byte == nullptr || elements(&status, byte, &bytes) != MPI_SUCCESS || bytes < 0)
    return otherwise;
  return static_cast<std::uint64_t>(bytes);
}

Range::Range(nvtxStringHandle_t name, MPI_Comm comm, std::uint64_t schema, Payload payload) : payload_(payload) {
  const Communicator* found = world() == nullptr ? nullptr : communicator_of(comm);
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

Range::~Range() {
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

void Range::came(const MPI_Status& status) {
  if (schema_ == 0) return;
  std::int32_t& rank = schema_ == kExchange ? payload_.source : payload_.peer;
  std::int32_t& tag = schema_ == kExchange ? payload_.source_tag : payload_.tag;
  const std::uint64_t bytes = schema_ == kMessage ? received_bytes(status, payload_.bytes) : payload_.bytes;
  more_ = rank != status.MPI_SOURCE || tag != status.MPI_TAG || bytes != payload_.bytes;
  rank = status.MPI_SOURCE;
  tag = status.MPI_TAG;
  payload_.bytes = bytes;
}

void Range::push(nvtxStringHandle_t name, const nvtxPayloadData_t* data) {
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

}  // namespace rangescope::inject::mpi
