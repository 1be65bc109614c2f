#include "inject/mpi/range.hpp"

#include "inject/mpi/communicators.hpp"

namespace rangescope::inject::mpi {
namespace {

constexpr std::uint64_t kFirstSchema = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 1,
                        kBytes = kFirstSchema + kSaysAll, kCame = kBytes + 1, kCameToo = kBytes + 2,
                        kCompletion = kBytes + 3;
constexpr std::uint64_t kSize = NVTX_PAYLOAD_ENTRY_TYPE_UINT64,
                        kNumber = NVTX_PAYLOAD_ENTRY_TYPE_INT32;

// An entry's offset of 0 means "behind the entry before" but for the first: what lies at 0 comes
// first.
class Schema {
 public:
  void add(const char* name, std::uint64_t type, std::size_t offset) {
    entries_[count_++] = {0, type, name, nullptr, 0, offset, nullptr, nullptr};
  }
  void finish(nvtxDomainHandle_t domain, std::uint64_t id, std::size_t size) const {
    nvtxPayloadSchemaAttr_t schema{};
    schema.fieldMask =
        NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
        NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |
        NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
    schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
    schema.entries = entries_;
    schema.numEntries = count_;
    schema.payloadStaticSize = size;
    schema.schemaId = id;
    nvtxPayloadSchemaRegister(domain, &schema);
  }

 private:
  nvtxPayloadSchemaEntry_t entries_[8];
  std::size_t count_ = 0;
};

void add_schemas(nvtxDomainHandle_t domain) {
  static Schema begun[kSaysAll], bytes, came, came_too,
      completion;  // NVTX may keep what it is given
  for (std::uint8_t says = 0; says < kSaysAll; ++says) {
    Schema& schema = begun[says];
    schema.add("MPI communicator ID", kSize, offsetof(Begun, communicator));
    if ((says & kSaysRequest) != 0) schema.add("Request", kSize, offsetof(Begun, request));
    if ((says & kSaysPeer) != 0) schema.add("Peer rank", kNumber, offsetof(Begun, peer));
    if ((says & kSaysTag) != 0) schema.add("Tag", kNumber, offsetof(Begun, tag));
    schema.add("Rank", kNumber, offsetof(Begun, self));
    if ((says & kSaysSource) != 0) schema.add("Source rank", kNumber, offsetof(Begun, source));
    if ((says & kSaysSource) != 0) schema.add("Source tag", kNumber, offsetof(Begun, source_tag));
    schema.finish(domain, kFirstSchema + says, sizeof(Begun));
  }
  bytes.add("Message size [bytes]", kSize, 0);
  bytes.finish(domain, kBytes, 8);
  came.add("Peer rank", kNumber, 0);
  came.add("Tag", kNumber, 4);
  came.finish(domain, kCame, 8);
  came_too.add("Source rank", kNumber, 0);
  came_too.add("Source tag", kNumber, 4);
  came_too.finish(domain, kCameToo, 8);
  completion.add("Completed request", kSize, 0);
  completion.add("Message size [bytes]", kSize, offsetof(Completion, bytes));
  completion.add("Source rank", kNumber, offsetof(Completion, source));
  completion.add("Source tag", kNumber, offsetof(Completion, tag));
  completion.finish(domain, kCompletion, sizeof(Completion));
}

}  // namespace

nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t handle = [] {
    const nvtxDomainHandle_t made = nvtxDomainCreateA("MPI");
    add_schemas(made);
    return made;
  }();
  return handle;
}

nvtxPayloadData_t payload_of(const Completion& completion) {
  return {kCompletion, sizeof completion, &completion};
}

Range::Range(nvtxStringHandle_t name, Word comm, std::uint8_t says, Begun begun) {
  const Communicator known = communicator_of(comm);
  if (known.id == 0) {
    push(name, nullptr);
    return;
  }
  begun.communicator = known.id;
  begun.self = self_ = known.self;
  const nvtxPayloadData_t data{kFirstSchema + says, sizeof begun, &begun};
  push(name, &data);
}

Range::~Range() {
  if (count_ == 0)
    nvtxDomainRangePop(domain());
  else
    nvtxRangePopPayload(domain(), data_, count_);
}

void Range::bytes(std::uint64_t bytes) {
  if (!is_followed() || bytes == kUnknownBytes) return;
  bytes_ = bytes;
  own_[count_++] = {kBytes, sizeof bytes_, &bytes_};
}

void Range::came(int source, int tag, bool exchange) {
  if (!is_followed()) return;
  came_ = {source, tag};
  own_[count_++] = {exchange ? kCameToo : kCame, sizeof came_, &came_};
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
