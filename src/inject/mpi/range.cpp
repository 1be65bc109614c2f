#include "inject/mpi/range.hpp"

#include "inject/mpi/communicators.hpp"

namespace rangescope::inject::mpi {
namespace {

// Ids of payload schemas: one for each combination of `Says`, and those of pops.
constexpr std::uint64_t kFirstSchema = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 1;
constexpr std::uint64_t kBytes = kFirstSchema + kSaysAll;
constexpr std::uint64_t kSender = kBytes + 1;
constexpr std::uint64_t kSenderOfExchange = kBytes + 2;
constexpr std::uint64_t kCompletion = kBytes + 3;
constexpr std::uint64_t kSize = NVTX_PAYLOAD_ENTRY_TYPE_UINT64;
constexpr std::uint64_t kNumber = NVTX_PAYLOAD_ENTRY_TYPE_INT32;

// An offset of 0 means "after the previous entry", except in the first entry. So the entry at
// offset 0 has to be the first.
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
  // Static, because NVTX may keep pointers to the entries.
  static Schema begun[kSaysAll];
  static Schema bytes;
  static Schema sender;
  static Schema sender_of_exchange;
  static Schema completion;
  for (std::uint8_t says = 0; says < kSaysAll; ++says) {
    Schema& schema = begun[says];
    schema.add("MPI communicator ID", kSize, offsetof(Begun, communicator));
    if ((says & kSaysRequest) != 0)
      schema.add("Request", kSize, offsetof(Begun, request));
    if ((says & kSaysPeer) != 0)
      schema.add("Peer rank", kNumber, offsetof(Begun, peer));
    if ((says & kSaysTag) != 0)
      schema.add("Tag", kNumber, offsetof(Begun, tag));
    schema.add("Rank", kNumber, offsetof(Begun, self));
    if ((says & kSaysSource) != 0)
      schema.add("Source rank", kNumber, offsetof(Begun, source));
    if ((says & kSaysSource) != 0)
      schema.add("Source tag", kNumber, offsetof(Begun, source_tag));
    schema.finish(domain, kFirstSchema + says, sizeof(Begun));
  }
  bytes.add("Message size [bytes]", kSize, 0);
  bytes.finish(domain, kBytes, 8);
  sender.add("Peer rank", kNumber, 0);
  sender.add("Tag", kNumber, 4);
  sender.finish(domain, kSender, 8);
  sender_of_exchange.add("Source rank", kNumber, 0);
  sender_of_exchange.add("Source tag", kNumber, 4);
  sender_of_exchange.finish(domain, kSenderOfExchange, 8);
  completion.add("Completed request", kSize, 0);
  completion.add("Message size [bytes]", kSize, offsetof(Completion, bytes));
  completion.add("Source rank", kNumber, offsetof(Completion, source));
  completion.add("Source tag", kNumber, offsetof(Completion, tag));
  completion.finish(domain, kCompletion, sizeof(Completion));
}

}  // namespace

nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t handle = [] {
    const nvtxDomainHandle_t created = nvtxDomainCreateA("MPI");
    add_schemas(created);
    return created;
  }();
  return handle;
}

nvtxPayloadData_t payload_of(const Completion& completion) {
  return {kCompletion, sizeof completion, &completion};
}

Range::Range(nvtxStringHandle_t name, Word comm, std::uint8_t says, Begun begun) {
  const Communicator communicator = communicator_of(comm);
  if (communicator.id == 0) {
    push(name, nullptr);
    return;
  }
  self_ = communicator.self;
  begun.communicator = communicator.id;
  begun.self = communicator.self;
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
  if (!is_followed() || bytes == kUnknownBytes)
    return;
  bytes_ = bytes;
  own_[count_++] = {kBytes, sizeof bytes_, &bytes_};
}

void Range::received_from(int source, int tag, bool exchange) {
  if (!is_followed())
    return;
  sender_ = {source, tag};
  own_[count_++] = {exchange ? kSenderOfExchange : kSender, sizeof sender_, &sender_};
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
