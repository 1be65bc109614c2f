// The stand-in CUPTI's PC sampling: the order of calls that the real one wants (13.0 on an H200),
// and its refusals.
//
// Enable, SetConfigurationAttribute (mode, start/stop control, a buffer), Start, kernels, Stop,
// GetData into another buffer until nothing is left, Disable. A kernel with grid g gives, of its
// own correlation:
//   0x10  g long_scoreboard, of them half also as _not_issued     line 112 of /src/gemm.cu
//   0x20  2 wait and 3 selected                                   line 7 of it
// Kernels of graphs have the correlation of the graph's launch, and no instructions where the graph
// was instantiated before Enable. Line information is in the cubin that the context loads alone,
// whose bytes are gone behind the callback. STANDIN_FAULT: pc_denied (Enable), pc_start, pc_full
// (the first GetData). STANDIN_PCS: how many instructions are kept between two calls of GetData;
// more are lost without a word. It crashes where the real one hangs or does: a context or process
// ends while it is enabled; while it is started a stream is captured, or a kernel of NCCL is
// launched.
#include <cupti_pcsampling.h>
#include <elf.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "profiler.hpp"

namespace {

constexpr const char* kReasons[] = {"smsp__pcsamp_warps_issue_stalled_long_scoreboard",
                                    "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued",
                                    "smsp__pcsamp_warps_issue_stalled_wait",
                                    "smsp__pcsamp_warps_issue_stalled_selected"};
constexpr std::uint64_t kCrc = 0xff6ad81d;
constexpr std::uint32_t kFirst = 10;  // index of a reason is not its place

struct Instruction {
  std::string function;
  std::uint64_t offset;
  std::uint32_t correlation;
  std::vector<CUpti_PCSamplingStallReason> reasons;
};
std::mutex lock;
bool enabled = false, started = false, control = false, serialized = false;
const void* own = nullptr;
std::vector<std::uint32_t> wanted;
std::vector<Instruction> kept;
std::uint64_t total = 0, other = 0;
std::set<std::uint64_t> known_nodes;
int fetches = 0;

bool fault(const char* name) {
  const char* text = std::getenv("STANDIN_FAULT");
  return text && std::strcmp(text, name) == 0;
}

[[gnu::destructor]] void at_the_end() {
  if (enabled)
    std::abort();
}

// An ELF file of one section name, and what the code of line information begins with.
std::vector<unsigned char> cubin() {
  constexpr char kNames[] = "\0.debug_line";
  std::vector<unsigned char> bytes(sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Shdr) + sizeof kNames);
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_shoff = sizeof head;
  head.e_shentsize = sizeof(Elf64_Shdr);
  head.e_shnum = 2;
  Elf64_Shdr sections[2] = {};
  sections[0].sh_offset = sizeof head + sizeof sections;
  sections[0].sh_size = sizeof kNames;
  sections[1].sh_name = 1;
  std::memcpy(bytes.data(), &head, sizeof head);
  std::memcpy(bytes.data() + sizeof head, sections, sizeof sections);
  std::memcpy(bytes.data() + sizeof head + sizeof sections, kNames, sizeof kNames);
  return bytes;
}

bool is_cubin(const void* code, std::size_t bytes) {
  const auto own_code = cubin();
  return bytes == own_code.size() && std::memcmp(code, own_code.data(), bytes) == 0;
}

void keep(const char* function,
          std::uint64_t offset,
          std::uint32_t correlation,
          std::initializer_list<CUpti_PCSamplingStallReason> reasons) {
  const char* most = std::getenv("STANDIN_PCS");
  if (most != nullptr && kept.size() >= static_cast<std::size_t>(std::atoi(most)))
    return;
  Instruction made{function, offset, correlation, {}};
  for (const auto& reason : reasons) {
    const bool asked =
        std::find(wanted.begin(), wanted.end(), std::uint32_t{reason.pcSamplingStallReasonIndex}) !=
        wanted.end();
    if (asked && reason.samples > 0)
      made.reasons.push_back(reason);
  }
  kept.push_back(std::move(made));
}

}  // namespace

void standin::sample_pc(const Work& work) {
  const std::lock_guard<std::mutex> guard(lock);
  if (!started)
    return;
  total += work.grid + 5;
  if (work.node != 0 && known_nodes.count(work.node) == 0) {
    other += work.grid + 5;
    return;
  }
  if (std::strstr(work.name, "nccl") != nullptr)
    std::abort();
  keep(work.name, 0x10, work.correlation, {{kFirst, work.grid}, {kFirst + 1, work.grid / 2}});
  keep(work.name, 0x20, work.correlation, {{kFirst + 2, 2}, {kFirst + 3, 3}});
}

void standin::pc_node_made(std::uint64_t node) {
  const std::lock_guard<std::mutex> guard(lock);
  if (started)
    std::abort();
  if (enabled)
    known_nodes.insert(node);
}

void standin::pc_context_ends() {
  if (enabled)
    std::abort();
}

void standin::load_module(void (*tell)(const CUpti_ModuleResourceData&)) {
  auto code = cubin();
  CUpti_ModuleResourceData module{};
  module.moduleId = 1;
  module.cubinSize = code.size();
  module.pCubin = reinterpret_cast<const char*>(code.data());
  tell(module);
  std::fill(code.begin(), code.end(), 0xee);
}

#pragma GCC visibility push(default)
extern "C" {

CUptiResult cuptiPCSamplingEnable(CUpti_PCSamplingEnableParams* params) {
  if (params->size != CUpti_PCSamplingEnableParamsSize || params->ctx == nullptr)
    return CUPTI_ERROR_INVALID_PARAMETER;
  if (fault("pc_denied"))
    return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  const std::lock_guard<std::mutex> guard(lock);
  if (enabled)
    return CUPTI_ERROR_INVALID_OPERATION;
  enabled = true;
  control = serialized = false;
  own = nullptr;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiPCSamplingDisable(CUpti_PCSamplingDisableParams* params) {
  if (params->size != CUpti_PCSamplingDisableParamsSize)
    return CUPTI_ERROR_INVALID_PARAMETER;
  const std::lock_guard<std::mutex> guard(lock);
  if (!enabled)
    return CUPTI_ERROR_INVALID_OPERATION;
  enabled = started = false;
  kept.clear();
  return CUPTI_SUCCESS;
}
CUptiResult cuptiPCSamplingGetNumStallReasons(CUpti_PCSamplingGetNumStallReasonsParams* params) {
  if (params->size != CUpti_PCSamplingGetNumStallReasonsParamsSize)
    return CUPTI_ERROR_INVALID_PARAMETER;
  *params->numStallReasons = std::size(kReasons);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiPCSamplingGetStallReasons(CUpti_PCSamplingGetStallReasonsParams* params) {
  if (params->size != CUpti_PCSamplingGetStallReasonsParamsSize ||
      params->numStallReasons != std::size(kReasons))
    return CUPTI_ERROR_INVALID_PARAMETER;
  for (std::uint32_t i = 0; i < std::size(kReasons); ++i) {
    params->stallReasonIndex[i] = kFirst + i;
    std::strcpy(params->stallReasons[i], kReasons[i]);
  }
  return CUPTI_SUCCESS;
}
CUptiResult cuptiPCSamplingSetConfigurationAttribute(
    CUpti_PCSamplingConfigurationInfoParams* params) {
  if (params->size != CUpti_PCSamplingConfigurationInfoParamsSize)
    return CUPTI_ERROR_INVALID_PARAMETER;
  const std::lock_guard<std::mutex> guard(lock);
  if (!enabled || started)
    return CUPTI_ERROR_INVALID_OPERATION;
  for (std::size_t i = 0; i < params->numAttributes; ++i) {
    const auto& attribute = params->pPCSamplingConfigurationInfo[i];
    const auto& data = attribute.attributeData;
    switch (attribute.attributeType) {
      case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_STALL_REASON:
        wanted.assign(
            data.stallReasonData.pStallReasonIndex,
            data.stallReasonData.pStallReasonIndex + data.stallReasonData.stallReasonCount);
        break;
      case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE:
        serialized = data.collectionModeData.collectionMode ==
                     CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED;
        break;
      case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL:
        control = data.enableStartStopControlData.enableStartStopControl != 0;
        break;
      case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER:
        own = data.samplingDataBufferData.samplingDataBuffer;
        break;
      case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE:
      case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE: break;
      default: return CUPTI_ERROR_INVALID_PARAMETER;
    }
  }
  return CUPTI_SUCCESS;
}
CUptiResult cuptiPCSamplingStart(CUpti_PCSamplingStartParams* params) {
  if (params->size != CUpti_PCSamplingStartParamsSize || fault("pc_start"))
    return CUPTI_ERROR_INVALID_PARAMETER;
  const std::lock_guard<std::mutex> guard(lock);
  if (!enabled || started || !control || !serialized || own == nullptr)
    return CUPTI_ERROR_INVALID_OPERATION;
  started = true;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiPCSamplingStop(CUpti_PCSamplingStopParams* params) {
  if (params->size != CUpti_PCSamplingStopParamsSize)
    return CUPTI_ERROR_INVALID_PARAMETER;
  const std::lock_guard<std::mutex> guard(lock);
  if (!started)
    return CUPTI_ERROR_INVALID_OPERATION;
  started = false;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiPCSamplingGetData(CUpti_PCSamplingGetDataParams* params) {
  if (params->size != CUpti_PCSamplingGetDataParamsSize || params->pcSamplingData == own)
    return CUPTI_ERROR_INVALID_PARAMETER;
  const std::lock_guard<std::mutex> guard(lock);
  if (!enabled)
    return CUPTI_ERROR_INVALID_OPERATION;
  auto& data = *static_cast<CUpti_PCSamplingData*>(params->pcSamplingData);
  if (fetches++ == 0 && fault("pc_full")) {
    kept.clear();
    data.hardwareBufferFull = 1;
    data.totalNumPcs = 0;
    return CUPTI_ERROR_OUT_OF_MEMORY;
  }
  data.hardwareBufferFull = 0;
  data.totalSamples = std::exchange(total, 0);
  data.nonUsrKernelsTotalSamples = std::exchange(other, 0);
  data.droppedSamples = 0;
  data.totalNumPcs =
      std::min<std::size_t>(kept.size(), std::min<std::size_t>(data.collectNumPcs, 3));
  static std::map<std::string, char*> names;  // each function's is the same for all its records
  for (std::size_t i = 0; i < data.totalNumPcs; ++i) {
    char*& name = names[kept[i].function];
    if (name == nullptr)
      name = strdup(kept[i].function.c_str());
    CUpti_PCSamplingPCData& pc = data.pPcData[i];
    if (pc.size != sizeof pc || pc.stallReason == nullptr)
      return CUPTI_ERROR_INVALID_PARAMETER;
    pc.cubinCrc = kCrc;
    pc.pcOffset = kept[i].offset;
    pc.functionIndex =
        static_cast<std::uint32_t>(std::distance(names.begin(), names.find(kept[i].function)));
    pc.functionName = name;
    pc.correlationId = kept[i].correlation;
    pc.stallReasonCount = kept[i].reasons.size();
    std::copy(kept[i].reasons.begin(),
              kept[i].reasons.end(),
              static_cast<CUpti_PCSamplingStallReason*>(pc.stallReason));
  }
  kept.erase(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(data.totalNumPcs));
  data.remainingNumPcs = kept.size();
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetDeviceId(CUcontext, uint32_t* device) {
  *device = 0;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetCubinCrc(CUpti_GetCubinCrcParams* params) {
  if (params->size != CUpti_GetCubinCrcParamsSize)
    return CUPTI_ERROR_INVALID_PARAMETER;
  params->cubinCrc = is_cubin(params->cubin, params->cubinSize) ? kCrc : 1;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetSassToSourceCorrelation(CUpti_GetSassToSourceCorrelationParams* params) {
  if (params->size != CUpti_GetSassToSourceCorrelationParamsSize)
    return CUPTI_ERROR_INVALID_PARAMETER;
  if (!is_cubin(params->cubin, params->cubinSize))
    return CUPTI_ERROR_INVALID_MODULE;
  if (std::strstr(params->functionName, "gemm") == nullptr)
    return CUPTI_ERROR_UNKNOWN;
  params->lineNumber = params->pcOffset == 0x10 ? 112 : 7;
  params->fileName = strdup("gemm.cu");
  params->dirName = strdup("/src");
  return CUPTI_SUCCESS;
}

}  // extern "C"
#pragma GCC visibility pop
