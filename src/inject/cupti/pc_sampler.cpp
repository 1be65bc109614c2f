#include "inject/cupti/pc_sampler.hpp"

#include <elf.h>
#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "inject/cupti/trace.hpp"
#include "inject/hash.hpp"
#include "inject/nvtx/capture.hpp"
#include "wire/counters.hpp"
#include "wire/pc.hpp"

namespace rangescope::inject::cupti {
namespace wired = wire::pc;
namespace {

// These reasons count each sample once. Each has a second counter of the same samples, whose name
// ends in _not_issued.
constexpr char kReason[] = "smsp__pcsamp_warps_issue_stalled_";
constexpr char kSecondCounter[] = "_not_issued";
constexpr std::size_t kFetchedPcs = 8192;                // in one call
constexpr std::size_t kBufferedPcs = 65536;              // in CUPTI's own buffer
constexpr std::size_t kScratch = std::size_t{16} << 20;  // CUPTI's for decoding
// CUPTI scans the hardware buffer after each kernel: 2.7 ms with 32 MiB, 6.3 ms with its own choice
// of 512 (H200, CUDA 13.0).
constexpr std::size_t kSmallestHardwareBuffer = std::size_t{32} << 20;
constexpr std::size_t kLargestHardwareBuffer = std::size_t{512} << 20;
constexpr std::uint32_t kFirstVersion = 22;  // CUPTI of CUDA 12.4
constexpr int kFirstDriver = 12090;

static_assert(offsetof(CUpti_PCSamplingPCData, correlationId) == 56,
              "as CUPTI 12.4 and later have it");

// A copy of a module's code: the original belongs to the program, and a library may free it.
struct Module {
  void* code;
  std::size_t bytes;
  std::uint64_t crc;
  bool has_crc;
};
constexpr std::size_t kMostModules = 4096;
constexpr std::size_t kMostModuleBytes = std::size_t{512} << 20;
Module modules[kMostModules];
std::size_t module_count = 0;
std::size_t module_bytes = 0;
pthread_mutex_t modules_lock = PTHREAD_MUTEX_INITIALIZER;

// Whether an ELF file has a section of line information.
bool has_lines(const void* code, std::size_t bytes) {
  const auto* file = static_cast<const unsigned char*>(code);
  Elf64_Ehdr head;
  if (code == nullptr || bytes < sizeof head)
    return false;
  std::memcpy(&head, file, sizeof head);
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_shentsize != sizeof(Elf64_Shdr))
    return false;
  const auto read_section = [&](std::size_t i, Elf64_Shdr& out) {
    const std::size_t offset = head.e_shoff + i * sizeof out;
    if (head.e_shoff > bytes || offset > bytes - sizeof out)
      return false;
    std::memcpy(&out, file + offset, sizeof out);
    return true;
  };
  Elf64_Shdr names;
  if (!read_section(head.e_shstrndx, names))
    return false;
  if (names.sh_offset > bytes || names.sh_size > bytes - names.sh_offset)
    return false;
  constexpr char kLines[] = ".debug_line";
  Elf64_Shdr section;
  for (std::size_t i = 0; i < head.e_shnum && read_section(i, section); ++i) {
    const bool has_room =
        section.sh_name < names.sh_size && names.sh_size - section.sh_name >= sizeof kLines;
    if (!has_room)
      continue;
    if (std::memcmp(file + names.sh_offset + section.sh_name, kLines, sizeof kLines) == 0)
      return true;
  }
  return false;
}

// The stored module with this checksum, or null. Stored modules are never changed or freed.
const Module* module_of(const PcApi& api, std::uint64_t crc) {
  pthread_mutex_lock(&modules_lock);
  const std::size_t count = module_count;
  pthread_mutex_unlock(&modules_lock);
  for (std::size_t i = 0; i < count; ++i) {
    Module& module = modules[i];
    if (!module.has_crc) {
      CUpti_GetCubinCrcParams params = {CUpti_GetCubinCrcParamsSize, module.bytes, module.code, 0};
      if (api.cuptiGetCubinCrc(&params) == CUPTI_SUCCESS)
        module.crc = params.cubinCrc;
      module.has_crc = true;
    }
    if (module.crc == crc)
      return &module;
  }
  return nullptr;
}

struct Line {
  char file[1024] = {};
  std::uint32_t number = 0;
};

void find_line(const PcApi& api, const CUpti_PCSamplingPCData& pc, Line& line) {
  const Module* module = module_of(api, pc.cubinCrc);
  if (module == nullptr)
    return;
  CUpti_GetSassToSourceCorrelationParams params = {};
  params.size = CUpti_GetSassToSourceCorrelationParamsSize;
  params.cubin = module->code;
  params.cubinSize = module->bytes;
  params.functionName = pc.functionName;
  params.pcOffset = pc.pcOffset;
  const CUptiResult result = api.cuptiGetSassToSourceCorrelation(&params);
  if (result == CUPTI_SUCCESS && params.fileName != nullptr && params.lineNumber > 0) {
    const bool has_folder = params.dirName != nullptr && params.dirName[0] != '\0';
    if (has_folder && params.fileName[0] != '/')
      std::snprintf(line.file, sizeof line.file, "%s/%s", params.dirName, params.fileName);
    else
      std::snprintf(line.file, sizeof line.file, "%s", params.fileName);
    line.number = params.lineNumber;
  }
  std::free(params.fileName);
  std::free(params.dirName);
}

// The id of a text, defined once.
std::uint32_t text_of(PcDefined& defined, Encoder& encoder, const char* text) {
  const std::size_t bytes = std::strlen(text);
  const std::uint64_t hash = fnv1a(text, bytes);
  const PcDefined::Text key{
      {static_cast<std::uint32_t>(hash), static_cast<std::uint32_t>(hash >> 32)}};
  std::uint32_t id = defined.texts.find(key);
  if (id != 0)
    return id;
  id = encoder.text_id(text, bytes);
  defined.texts.add(key, id);
  return id;
}

// Notes where sampling begins and ends. It slows occurrences down; readers leave them out of times,
// as they do while the timeline is paused.
void note_slow(bool ends) {
  const wire::counters::Activity record{
      wire::gpu::head(wire::counters::Type::kActivity, 0, std::uint8_t{ends}), now_ns()};
  with_stream([&](Encoder&, GpuStream& stream) { stream.put(record); });
}

template <class Params>
Params for_context(std::size_t size, CUcontext context) {
  Params params = {};
  params.size = size;
  params.ctx = context;
  return params;
}

}  // namespace

bool PcApi::load(const Api& cupti, char* why, std::size_t why_bytes) {
  api = &cupti;
  const int driver = driver_version();
  char name[32];
  if (cupti.version < kFirstVersion) {
    std::snprintf(
        why,
        why_bytes,
        "no program-counter samples: CUPTI %s does not name the kernel of a sample; take that of "
        "CUDA 12.4 or newer (RANGESCOPE_CUPTI)",
        version_name(cupti.version, name, sizeof name));
    return false;
  }
  if (driver < kFirstDriver) {
    std::snprintf(
        why,
        why_bytes,
        "no samples of the program counter: the driver is of CUDA %d.%d, and that takes 12.9",
        driver / 1000,
        driver % 1000 / 10);
    return false;
  }
  return RANGESCOPE_CUPTI_PC(RANGESCOPE_CUPTI_NEED) true;
}

void keep_module(const CUpti_ModuleResourceData& module) {
  if (!has_lines(module.pCubin, module.cubinSize))
    return;
  pthread_mutex_lock(&modules_lock);
  if (module_count < kMostModules && module_bytes + module.cubinSize <= kMostModuleBytes) {
    if (void* copy = std::malloc(module.cubinSize); copy != nullptr) {
      std::memcpy(copy, module.pCubin, module.cubinSize);
      modules[module_count++] = {copy, module.cubinSize, 0, false};
      module_bytes += module.cubinSize;
    }
  }
  pthread_mutex_unlock(&modules_lock);
}

bool PcSampler::check(CUptiResult result, const char* call) {
  if (result == CUPTI_SUCCESS)
    return true;
  std::snprintf(
      error_, sizeof error_, "%s: %s%s", call, api_->api->text(result), advice_of(result));
  return false;
}

void PcSampler::define_reason(std::uint32_t id, const char* name) {
  if (id >= std::size(defined_->reasons) || defined_->reasons[id])
    return;
  defined_->reasons[id] = true;
  const auto length = static_cast<std::uint32_t>(std::strlen(name));
  const wire::gpu::Name definition{wire::gpu::head(wired::Type::kReason, id), length, 0};
  with_stream([&](Encoder&, GpuStream& stream) { stream.put_with(definition, name, length); });
}

bool PcSampler::find_reasons() {
  std::size_t count = 0;
  auto number = for_context<CUpti_PCSamplingGetNumStallReasonsParams>(
      CUpti_PCSamplingGetNumStallReasonsParamsSize, context_);
  number.numStallReasons = &count;
  if (!check(api_->cuptiPCSamplingGetNumStallReasons(&number), "cuptiPCSamplingGetNumStallReasons"))
    return false;
  if (count > kMostReasons)
    count = kMostReasons;
  static char text[kMostReasons][CUPTI_STALL_REASON_STRING_SIZE];  // of the worker
  char* names[kMostReasons];
  std::uint32_t ids[kMostReasons] = {};
  for (std::size_t i = 0; i < count; ++i)
    names[i] = text[i];
  auto get = for_context<CUpti_PCSamplingGetStallReasonsParams>(
      CUpti_PCSamplingGetStallReasonsParamsSize, context_);
  get.numStallReasons = count;
  get.stallReasonIndex = ids;
  get.stallReasons = names;
  if (!check(api_->cuptiPCSamplingGetStallReasons(&get), "cuptiPCSamplingGetStallReasons"))
    return false;
  reason_count_ = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t bytes = std::strlen(names[i]);
    constexpr std::size_t kSuffix = sizeof kSecondCounter - 1;
    const bool is_second_counter =
        bytes > kSuffix && std::strcmp(names[i] + bytes - kSuffix, kSecondCounter) == 0;
    if (is_second_counter || std::strncmp(names[i], kReason, sizeof kReason - 1) != 0)
      continue;
    reasons_[reason_count_++] = ids[i];
    define_reason(ids[i], names[i] + sizeof kReason - 1);
  }
  if (reason_count_ == 0)
    std::snprintf(error_, sizeof error_, "CUPTI names no stall reason that is known here");
  return reason_count_ > 0;
}

bool PcSampler::make_buffer(CUpti_PCSamplingData& data, Bytes& room, std::size_t pcs) const {
  const std::size_t reasons = reason_count_ * sizeof(CUpti_PCSamplingStallReason);
  if (!room.resize(pcs * (sizeof(CUpti_PCSamplingPCData) + reasons)))
    return false;
  data = {};
  data.size = sizeof data;
  data.collectNumPcs = pcs;
  data.pPcData = reinterpret_cast<CUpti_PCSamplingPCData*>(room.data());
  for (std::size_t i = 0; i < pcs; ++i) {
    data.pPcData[i].size = sizeof(CUpti_PCSamplingPCData);
    data.pPcData[i].stallReason = reinterpret_cast<CUpti_PCSamplingStallReason*>(
        room.data() + pcs * sizeof(CUpti_PCSamplingPCData) + i * reasons);
  }
  return true;
}

bool PcSampler::configure() {
  const bool has_buffers =
      our_room_.size() != 0 || (make_buffer(ours_, our_room_, kFetchedPcs) &&
                                make_buffer(theirs_, their_room_, kBufferedPcs));
  if (!has_buffers) {
    std::snprintf(error_, sizeof error_, "no memory for samples");
    return false;
  }
  CUpti_PCSamplingConfigurationInfo set[6] = {};
  set[0].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_STALL_REASON;
  set[0].attributeData.stallReasonData = {reason_count_, reasons_};
  set[1].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE;
  set[1].attributeData.collectionModeData.collectionMode =
      CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED;
  set[2].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_ENABLE_START_STOP_CONTROL;
  set[2].attributeData.enableStartStopControlData.enableStartStopControl = 1;
  set[3].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER;
  set[3].attributeData.samplingDataBufferData.samplingDataBuffer = &theirs_;
  set[4].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE;
  set[4].attributeData.scratchBufferSizeData.scratchBufferSize = kScratch;
  set[5].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE;
  set[5].attributeData.hardwareBufferSizeData.hardwareBufferSize = hardware_bytes_;
  auto params = for_context<CUpti_PCSamplingConfigurationInfoParams>(
      CUpti_PCSamplingConfigurationInfoParamsSize, context_);
  params.numAttributes = std::size(set);
  params.pPCSamplingConfigurationInfo = set;
  return check(api_->cuptiPCSamplingSetConfigurationAttribute(&params),
               "cuptiPCSamplingSetConfigurationAttribute");
}

bool PcSampler::enable(const PcApi& api, PcDefined& defined, CUcontext context) {
  api_ = &api;
  defined_ = &defined;
  if (hardware_bytes_ == 0)
    hardware_bytes_ = kSmallestHardwareBuffer;
  auto params =
      for_context<CUpti_PCSamplingEnableParams>(CUpti_PCSamplingEnableParamsSize, context);
  if (!check(api.cuptiPCSamplingEnable(&params), "cuptiPCSamplingEnable"))
    return false;
  context_ = context;
  if (find_reasons() && configure())
    return true;
  disable();
  return false;
}

bool PcSampler::start() {
  note_slow(false);
  auto params = for_context<CUpti_PCSamplingStartParams>(CUpti_PCSamplingStartParamsSize, context_);
  started_ = check(api_->cuptiPCSamplingStart(&params), "cuptiPCSamplingStart");
  if (!started_)
    note_slow(true);
  return started_;
}

bool PcSampler::stop() {
  if (!started_.exchange(false))
    return true;
  auto params = for_context<CUpti_PCSamplingStopParams>(CUpti_PCSamplingStopParamsSize, context_);
  const bool is_stopped = check(api_->cuptiPCSamplingStop(&params), "cuptiPCSamplingStop");
  note_slow(true);
  return is_stopped;
}

void PcSampler::write(const CUpti_PCSamplingPCData& pc) {
  const PcDefined::Place key{
      {static_cast<std::uint32_t>(pc.cubinCrc), static_cast<std::uint32_t>(pc.cubinCrc >> 32)},
      pc.functionIndex,
      static_cast<std::uint32_t>(pc.pcOffset)};
  wired::Samples samples{};
  samples.head = wire::gpu::head(wired::Type::kSamples, pc.correlationId);
  samples.place = defined_->places.find(key);
  samples.count = static_cast<std::uint32_t>(pc.stallReasonCount);
  const bool is_new_place = samples.place == 0;
  Line line;
  if (is_new_place) {
    samples.place = ++defined_->place_count;
    defined_->places.add(key, samples.place);
    find_line(*api_, pc, line);  // without the stream's lock
  }
  with_stream([&](Encoder& encoder, GpuStream& stream) {
    if (is_new_place) {
      wired::Place place{};
      place.head = wire::gpu::head(wired::Type::kPlace, samples.place);
      place.offset = pc.pcOffset;
      place.function = text_of(*defined_, encoder, pc.functionName);
      if (line.number > 0)
        place.file = text_of(*defined_, encoder, line.file);
      place.line = line.number;
      stream.put(place);
    }
    stream.put_with(samples, pc.stallReason, pc.stallReasonCount * sizeof *pc.stallReason);
  });
}

bool PcSampler::fetch(std::uint32_t target) {
  wired::Window window{};
  window.head = wire::gpu::head(wired::Type::kWindow, target);
  do {
    ours_.totalNumPcs = ours_.remainingNumPcs = 0;
    auto params =
        for_context<CUpti_PCSamplingGetDataParams>(CUpti_PCSamplingGetDataParamsSize, context_);
    params.pcSamplingData = &ours_;
    const CUptiResult result = api_->cuptiPCSamplingGetData(&params);
    const bool is_full = result == CUPTI_ERROR_OUT_OF_MEMORY && ours_.hardwareBufferFull != 0;
    if (is_full) {
      window.head.small = 1;
      if (hardware_bytes_ < kLargestHardwareBuffer)
        hardware_bytes_ *= 4;  // for the next time
      break;
    }
    if (!check(result, "cuptiPCSamplingGetData"))
      return false;
    window.samples += ours_.totalSamples;
    window.dropped += ours_.droppedSamples;
    for (std::size_t i = 0; i < ours_.totalNumPcs; ++i) {
      const CUpti_PCSamplingPCData& pc = ours_.pPcData[i];
      if (pc.functionName != nullptr && pc.stallReasonCount > 0)
        write(pc);
    }
  } while (ours_.totalNumPcs > 0);
  with_stream([&](Encoder&, GpuStream& stream) {
    stream.put(window);
    stream.flush();
  });
  return true;
}

void PcSampler::disable() {
  if (!enabled())
    return;
  (void)stop();
  auto params =
      for_context<CUpti_PCSamplingDisableParams>(CUpti_PCSamplingDisableParamsSize, context_);
  (void)api_->cuptiPCSamplingDisable(&params);
  context_ = nullptr;
}

}  // namespace rangescope::inject::cupti
