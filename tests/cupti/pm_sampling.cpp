// The stand-in CUPTI's PM sampling. One device, "sampled" every interval of CLOCK_REALTIME + 5 s:
// the GPU's timer is not the machine's clock. What ran comes from the file $STANDIN_RAN, to which
// the stand-in driver of the victim appends a line for each kernel: start_ns end_ns grid. In a
// sample
//   gr__cycles_active...     share of its time in which a kernel ran, in percent
//   dram__bytes_read.sum     1000 bytes for each block of a grid, spread over the kernel's time
//   any other                50 % of gr__cycles_active
// What does not fit the image is lost, as on GH100. STANDIN_FAULT: pm_late (Start takes 0.4 s),
// pm_busy and pm_denied (Enable), pm_old (SetConfig), pm_dies (the third Decode fails), pm_gaps
// (every other decoding loses its first half).
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "profiler.hpp"

namespace {

struct Sample {
  std::uint64_t start, end;
  double active, bytes;
};

// An image: how many, then the samples.
struct Head {
  std::uint64_t magic, room, used;
};
constexpr std::uint64_t kMagic = 0x504d494d41474531;

std::size_t asked = 0;  // the size that was asked for last
std::uint64_t interval = 0, begun = 0, done = 0, stopped = 0;
int decodings = 0;

bool fault(const char* name) {
  const char* text = std::getenv("STANDIN_FAULT");
  return text && std::strcmp(text, name) == 0;
}

std::uint64_t clock_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1000000000u +
         static_cast<std::uint64_t>(time.tv_nsec);
}
// From CLOCK_MONOTONIC, in which the driver writes, to the timer in which samples are.
std::uint64_t to_timer() {
  static const std::uint64_t offset =
      clock_of(CLOCK_REALTIME) - clock_of(CLOCK_MONOTONIC) + 5000000000u;
  return offset;
}
std::uint64_t timer() {
  return clock_of(CLOCK_MONOTONIC) + to_timer();
}

struct Ran {
  std::uint64_t start, end;
  double blocks;
};
/// What ran until `now`, which is read while the driver starts nothing.
std::vector<Ran> what_ran(std::uint64_t& now) {
  std::vector<Ran> ran;
  const char* path = std::getenv("STANDIN_RAN");
  FILE* file = path ? std::fopen(path, "r") : nullptr;
  if (file != nullptr)
    flock(fileno(file), LOCK_EX);
  now = timer();
  if (!file)
    return ran;
  unsigned long long start = 0, end = 0;
  unsigned grid = 0;
  while (std::fscanf(file, "%llu %llu %u", &start, &end, &grid) == 3)
    ran.push_back({start + to_timer(), end + to_timer(), static_cast<double>(grid)});
  std::fclose(file);
  return ran;
}

}  // namespace

bool standin::is_sample_image(const std::uint8_t* image) {
  std::uint64_t magic = 0;
  std::memcpy(&magic, image, sizeof magic);
  return magic == kMagic;
}

double standin::sampled(const std::uint8_t* image, std::size_t index, const std::string& metric) {
  Sample sample{};
  std::memcpy(&sample, image + sizeof(Head) + index * sizeof sample, sizeof sample);
  if (metric == "gr__cycles_active.avg.pct_of_peak_sustained_elapsed")
    return sample.active * 100;
  if (metric == "dram__bytes_read.sum")
    return sample.bytes;
  return sample.active * 50;
}

#pragma GCC visibility push(default)
extern "C" {

CUptiResult cuptiPmSamplingGetCounterAvailability(
    CUpti_PmSampling_GetCounterAvailability_Params* params) {
  params->counterAvailabilityImageSize = 8;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiPmSamplingEnable(CUpti_PmSampling_Enable_Params* params) {
  if (fault("pm_busy"))
    return CUPTI_ERROR_HARDWARE_BUSY;
  if (fault("pm_denied"))
    return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  params->pPmSamplingObject = reinterpret_cast<CUpti_PmSampling_Object*>(&interval);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiPmSamplingDisable(CUpti_PmSampling_Disable_Params*) {
  return CUPTI_SUCCESS;
}
CUptiResult cuptiPmSamplingSetConfig(CUpti_PmSampling_SetConfig_Params* params) {
  if (fault("pm_old"))
    return CUPTI_ERROR_NOT_SUPPORTED;
  interval = params->samplingInterval;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiPmSamplingGetCounterDataSize(CUpti_PmSampling_GetCounterDataSize_Params* params) {
  params->counterDataSize = asked = sizeof(Head) + params->maxSamples * sizeof(Sample);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiPmSamplingCounterDataImageInitialize(
    CUpti_PmSampling_CounterDataImage_Initialize_Params* params) {
  if (params->counterDataSize < asked)
    return CUPTI_ERROR_UNKNOWN;
  const Head head{kMagic, (params->counterDataSize - sizeof(Head)) / sizeof(Sample), 0};
  std::memcpy(params->pCounterData, &head, sizeof head);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiPmSamplingStart(CUpti_PmSampling_Start_Params*) {
  begun = done = timer();
  if (fault("pm_late"))
    usleep(400'000);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiPmSamplingStop(CUpti_PmSampling_Stop_Params*) {
  stopped = timer();
  return CUPTI_SUCCESS;
}
CUptiResult cuptiPmSamplingDecodeData(CUpti_PmSampling_DecodeData_Params* params) {
  if (++decodings == 3 && fault("pm_dies"))
    return CUPTI_ERROR_UNKNOWN;
  Head head{};
  std::memcpy(&head, params->pCounterDataImage, sizeof head);
  if (head.magic != kMagic || head.used != 0)
    return CUPTI_ERROR_INVALID_PARAMETER;  // not cleared
  std::uint64_t now = 0;
  const std::vector<Ran> all_ran = what_ran(now);
  const std::uint64_t until = stopped != 0 ? stopped : now;
  std::vector<Sample> samples;
  while (done + interval <= until && samples.size() < head.room) {
    samples.push_back({done, done + interval, 0, 0});
    done += interval;
  }
  params->decodeStopReason = done + interval <= until
                                 ? CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL
                                 : CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS;
  if (done + interval <= until)
    done += (until - done) / interval * interval;
  params->overflow = 0;
  if (fault("pm_gaps") && decodings % 2 == 0)
    samples.erase(samples.begin(),
                  samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2));
  for (const Ran& ran : all_ran) {
    for (Sample& sample : samples) {
      const std::uint64_t from = std::max(sample.start, ran.start),
                          to = std::min(sample.end, ran.end);
      if (from >= to)
        continue;
      sample.active += static_cast<double>(to - from) / static_cast<double>(interval);
      sample.bytes += ran.blocks * 1000 * static_cast<double>(to - from) /
                      static_cast<double>(ran.end - ran.start);
    }
  }
  head.used = samples.size();
  std::memcpy(params->pCounterDataImage, &head, sizeof head);
  if (!samples.empty())
    std::memcpy(
        params->pCounterDataImage + sizeof head, samples.data(), samples.size() * sizeof(Sample));
  return CUPTI_SUCCESS;
}
CUptiResult cuptiPmSamplingGetCounterDataInfo(CUpti_PmSampling_GetCounterDataInfo_Params* params) {
  Head head{};
  std::memcpy(&head, params->pCounterDataImage, sizeof head);
  params->numCompletedSamples = head.used;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiPmSamplingCounterDataGetSampleInfo(
    CUpti_PmSampling_CounterData_GetSampleInfo_Params* params) {
  Sample sample{};
  std::memcpy(&sample,
              params->pCounterDataImage + sizeof(Head) + params->sampleIndex * sizeof sample,
              sizeof sample);
  params->startTimestamp = sample.start;
  params->endTimestamp = sample.end;
  return CUPTI_SUCCESS;
}

}  // extern "C"
#pragma GCC visibility pop
