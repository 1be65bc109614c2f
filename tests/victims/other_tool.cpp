// Another NVTX tool, as somebody else's injection library: writes each call, with the handles that
// it gave itself, as a line to $OTHER_TOOL_LOG. A handle that is not its own shows as "?".
#define NVTX_NO_IMPL
#include <fcntl.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct Handle {
  char name[64];
};
Handle domains[16], strings[16];
int domain_count = 0, string_count = 0;
nvtxRangeId_t next_id = 7000;

const char* name_of(const Handle* table, int count, const void* handle) {
  if (handle == nullptr)
    return "-";
  for (int i = 0; i < count; ++i) {
    if (handle == table + i)
      return table[i].name;
  }
  return "?";
}

void say(const char* format, ...) __attribute__((format(printf, 1, 2)));
void say(const char* format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  const int file =
      open(std::getenv("OTHER_TOOL_LOG"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0 || write(file, line, static_cast<std::size_t>(length)) != length)
    std::abort();
  close(file);
}

const char* text(const nvtxEventAttributes_t* a) {
  if (a->messageType == NVTX_MESSAGE_TYPE_REGISTERED)
    return name_of(strings, string_count, a->message.registered);
  return a->message.ascii != nullptr ? a->message.ascii : "";
}
Handle* add(Handle* table, int& count, const char* name) {
  std::snprintf(table[count].name, sizeof table[count].name, "%s", name);
  return table + count++;
}

int push_a(const char* name) {
  say("push %s\n", name);
  return 0;
}
int push_ex(const nvtxEventAttributes_t* a) {
  say("push %s\n", text(a));
  return 0;
}
int pop() {
  say("pop\n");
  return 0;
}
nvtxRangeId_t start_a(const char* name) {
  say("start %s %d\n", name, static_cast<int>(next_id));
  return next_id++;
}
void end(nvtxRangeId_t id) {
  say("end %d\n", static_cast<int>(id));
}
int domain_push(nvtxDomainHandle_t d, const nvtxEventAttributes_t* a) {
  say("push %s in %s\n", text(a), name_of(domains, domain_count, d));
  return 0;
}
int domain_pop(nvtxDomainHandle_t d) {
  say("pop in %s\n", name_of(domains, domain_count, d));
  return 0;
}
nvtxDomainHandle_t create(const char* name) {
  say("domain %s\n", name);
  return reinterpret_cast<nvtxDomainHandle_t>(add(domains, domain_count, name));
}
nvtxStringHandle_t intern(nvtxDomainHandle_t d, const char* name) {
  say("string %s in %s\n", name, name_of(domains, domain_count, d));
  return reinterpret_cast<nvtxStringHandle_t>(add(strings, string_count, name));
}

template <typename Function>
void set(const NvtxExportTableCallbacks* callbacks,
         NvtxCallbackModule module,
         int index,
         Function* function) {
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks->GetModuleFunctionTable(module, &table, &size) != 0 &&
      static_cast<unsigned>(index) < size) {
    *table[index] = reinterpret_cast<NvtxFunctionPointer>(function);
  }
}

int push_payload(nvtxDomainHandle_t d, const nvtxPayloadData_t* data, size_t) {
  say("push payload %d in %s\n",
      static_cast<int>(data->schemaId),
      name_of(domains, domain_count, d));
  return 0;
}
int pop_payload(nvtxDomainHandle_t d, const nvtxPayloadData_t*, size_t) {
  say("pop payload in %s\n", name_of(domains, domain_count, d));
  return 0;
}
uint64_t register_schema(nvtxDomainHandle_t d, const nvtxPayloadSchemaAttr_t*) {
  say("schema in %s\n", name_of(domains, domain_count, d));
  return 77;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(
    nvtxExtModuleInfo_t* module) {
  std::intptr_t* slots = module->segments[0].functionSlots;
  slots[NVTX3EXT_CBID_nvtxRangePushPayload] = reinterpret_cast<std::intptr_t>(push_payload);
  slots[NVTX3EXT_CBID_nvtxRangePopPayload] = reinterpret_cast<std::intptr_t>(pop_payload);
  slots[NVTX3EXT_CBID_nvtxPayloadSchemaRegister] = reinterpret_cast<std::intptr_t>(register_schema);
  return 1;
}

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_table) {
  const auto* c = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  set(c, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushA, push_a);
  set(c, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushEx, push_ex);
  set(c, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePop, pop);
  set(c, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeStartA, start_a);
  set(c, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeEnd, end);
  set(c, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePushEx, domain_push);
  set(c, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePop, domain_pop);
  set(c, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainCreateA, create);
  set(c, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRegisterStringA, intern);
  return 1;
}
