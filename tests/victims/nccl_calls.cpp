// Calls as NCCL makes them (src/include/nvtx.h and nvtx_payload_schemas.h of NCCL 2.28), with the
// release of the payload extension that NCCL carries: static schemas of the domain, a registered
// name, the payload given with the push; and a communicator's payload given with the pop.
#define NVTX_EXT_PAYLOAD_COMPATID 0x0103
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <cstddef>
#include <cstdint>

namespace {

struct AllReduce {
  std::uint64_t communicator;
  std::size_t bytes;
  int operation;
};
struct Init {
  std::uint64_t communicator;
  int ranks, rank, device;
};
constexpr std::uint64_t kInit = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 0;
constexpr std::uint64_t kAllReduce = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 5;
constexpr std::uint64_t kOperations = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 24;

nvtxPayloadSchemaEntry_t entry(std::uint64_t type, const char* name, std::size_t offset) {
  nvtxPayloadSchemaEntry_t made = {};
  made.type = type;
  made.name = name;
  made.offset = offset;
  return made;
}

void give_schema(nvtxDomainHandle_t domain,
                 std::uint64_t id,
                 const nvtxPayloadSchemaEntry_t* entries,
                 std::size_t count,
                 std::size_t bytes) {
  nvtxPayloadSchemaAttr_t schema = {};
  schema.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
  schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  schema.entries = entries;
  schema.numEntries = count;
  schema.payloadStaticSize = bytes;
  schema.schemaId = id;
  nvtxPayloadSchemaRegister(domain, &schema);
}

nvtxEventAttributes_t named(nvtxDomainHandle_t domain, const char* name) {
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = nvtxDomainRegisterStringA(domain, name);
  return attributes;
}

}  // namespace

int nccl_calls() {
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("NCCL");
  const nvtxPayloadSchemaEntry_t init[] = {
      entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "NCCL communicator ID", offsetof(Init, communicator)),
      entry(NVTX_PAYLOAD_ENTRY_TYPE_INT, "No. of ranks", offsetof(Init, ranks)),
      entry(NVTX_PAYLOAD_ENTRY_TYPE_INT, "Rank", offsetof(Init, rank)),
      entry(NVTX_PAYLOAD_ENTRY_TYPE_INT, "CUDA device", offsetof(Init, device))};
  const nvtxPayloadSchemaEntry_t all_reduce[] = {
      entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT64,
            "NCCL communicator ID",
            offsetof(AllReduce, communicator)),
      entry(NVTX_PAYLOAD_ENTRY_TYPE_SIZE, "Message size [bytes]", offsetof(AllReduce, bytes)),
      entry(kOperations, "Reduction operation", offsetof(AllReduce, operation))};

  nvtxEventAttributes_t attributes = named(domain, "ncclCommInitRank");
  nvtxDomainRangePushEx(domain, &attributes);
  give_schema(domain, kInit, init, 4, sizeof(Init));
  const Init made = {0xfeedbeef12345678, 2, 1, 1};
  const nvtxPayloadData_t of_init = {kInit, sizeof made, &made};
  nvtxRangePopPayload(domain, &of_init, 1);

  give_schema(domain, kAllReduce, all_reduce, 3, sizeof(AllReduce));
  attributes = named(domain, "ncclAllReduce");
  for (std::size_t bytes = 4096; bytes <= 8192; bytes *= 2) {
    const AllReduce call = {made.communicator, bytes, 0};
    const nvtxPayloadData_t of_call[] = {{kAllReduce, sizeof call, &call}};
    NVTX_PAYLOAD_EVTATTR_SET_MULTIPLE(attributes, of_call)
    nvtxDomainRangePushEx(domain, &attributes);
    nvtxDomainRangePop(domain);
  }
  return 0;
}
