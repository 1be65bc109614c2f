// Built instead of the other files of this folder if the CUPTI headers are missing: CUDA's
// injection entry exists, so that a program started with CUDA_INJECTION64_PATH runs normally, and
// the capture says why it has no GPU activity.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "inject/cupti/gpu_stream.hpp"
#include "wire/names.hpp"

namespace gpu = rangescope::wire::gpu;

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  const char* folder = std::getenv(rangescope::wire::kDir);
  if (folder == nullptr || folder[0] == '\0')
    return 1;
  char path[4096];
  std::snprintf(path, sizeof path, "%s/%d.gpu", folder, static_cast<int>(getpid()));
  timespec now{}, wall{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  clock_gettime(CLOCK_REALTIME, &wall);
  gpu::FileHeader header{};
  std::memcpy(header.magic, gpu::kMagic, sizeof header.magic);
  header.version = gpu::kVersion;
  header.header_bytes = sizeof header;
  header.pid = static_cast<std::uint32_t>(getpid());
  header.start_ns = std::int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
  header.start_unix_ns = std::int64_t{wall.tv_sec} * 1000000000 + wall.tv_nsec;
  static rangescope::inject::cupti::GpuStream stream;
  if (stream.open(path, header, 0)) {
    static constexpr char kWhy[] =
        "this rangescope was built without CUPTI's headers; build it where the CUDA toolkit is";
    stream.put_with(
        gpu::Loss{{gpu::Type::kLoss, 0, 0, static_cast<std::uint32_t>(gpu::LossKind::kUnavailable)},
                  0,
                  sizeof kWhy - 1,
                  0},
        kWhy,
        sizeof kWhy - 1);
    stream.close();
  }
  return 1;
}
