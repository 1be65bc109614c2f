// CUDA's entry: during cuInit the driver loads the library that CUDA_INJECTION64_PATH names and
// calls InitializeInjection. In a program that never initializes CUDA this is not called, and CUPTI
// is not loaded.
//
// The stream is RANGESCOPE_DIR/<pid>.gpu; after an exec in the same process <pid>.1.gpu, and so on.
// Without RANGESCOPE_DIR nothing is recorded. RANGESCOPE_CHAIN_CUDA names another injection
// library, which is started afterwards.
//
// `rangescope attach` loads the library into a running program and makes one of its threads call
// rangescope_attach. A thread of ours then records until rangescope releases the lock of
// wire::kAttachLock, or dies.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "inject/cupti/threads.hpp"
#include "inject/cupti/trace.hpp"
#include "inject/nvtx/process.hpp"
#include "inject/nvtx/quiet.hpp"
#include "inject/nvtx/setting.hpp"
#include "inject/nvtx/writer.hpp"
#include "wire/names.hpp"

namespace {

namespace cupti = rangescope::inject::cupti;
namespace wire = rangescope::wire;
using rangescope::inject::setting;

bool free_path(const char* folder, char* path, std::size_t size) {
  for (int image = 0; image < 1000; ++image) {
    if (image == 0)
      std::snprintf(path, size, "%s/%d.gpu", folder, static_cast<int>(getpid()));
    else
      std::snprintf(path, size, "%s/%d.%d.gpu", folder, static_cast<int>(getpid()), image);
    if (access(path, F_OK) != 0)
      return true;
  }
  return false;
}

void trace_into(const char* folder, bool attached) {
  static char path[4096];
  static bool ends = false;
  if (!free_path(folder, path, sizeof path)) {
    return;
  }
  cupti::TraceSettings settings = cupti::settings_from_environment();
  settings.path = path;
  settings.attached = attached;
  if (const char* limit = setting(wire::kMaxCaptureSize); limit != nullptr) {
    settings.size_limit = std::strtoull(limit, nullptr, 10);
  }
  if (cupti::start_trace(settings) && !std::exchange(ends, true)) {
    std::atexit(cupti::finish_trace);
  }
}

void start() {
  const char* folder = std::getenv(wire::kDir);
  // The capture of the NVTX side lists the process, even if it never opens a range.
  if (folder != nullptr && folder[0] != '\0' && rangescope::inject::writer_start())
    trace_into(folder, false);
}

// Whether rangescope has released the lock. False if the file cannot be opened at the moment. No
// descriptor stays open.
bool is_released(const char* lock) {
  const int file = open(lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0)
    return errno == ENOENT;
  const bool is_free = flock(file, LOCK_EX | LOCK_NB) == 0;
  close(file);
  return is_free;
}

char attach_settings[wire::kMostSettings];
std::atomic<std::uint32_t> attached{0};  // the generation of the process whose thread records

void* record_attached(void*) {
  constexpr useconds_t kPoll_us = 20'000;
  rangescope::inject::given_settings = attach_settings;
  if (const char* folder = setting(wire::kDir); folder != nullptr) {
    char lock[4096];
    std::snprintf(
        lock, sizeof lock, "%s/%s%d", folder, wire::kAttachLock, static_cast<int>(getpid()));
    if (!is_released(lock))
      trace_into(folder, true);
    while (!is_released(lock))
      usleep(kPoll_us);
    cupti::end_trace();
    unlink(lock);
  }
  rangescope::inject::given_settings = nullptr;
  attached.store(0);
  return nullptr;
}

void start_chained() {
  const char* other = std::getenv(wire::kChainCuda);
  if (other == nullptr || other[0] == '\0')
    return;
  void* library = dlopen(other, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr)
    return;
  if (auto* initialize = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
      initialize != nullptr)
    initialize();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  const rangescope::inject::NoCancel no_cancel;
  start();
  start_chained();
  return 1;
}

/// 1 after the constructors have run: rangescope_attach may be called.
extern "C" __attribute__((visibility("default"))) int rangescope_loaded;
int rangescope_loaded = 0;
__attribute__((constructor)) static void loaded() {
  rangescope_loaded = 1;
}

/// Starts a thread of ours and returns. `settings` has the form of given_settings
/// (inject/nvtx/setting.hpp) and at most wire::kMostSettings bytes. Called on a thread of the
/// program that was waiting in a system call.
extern "C" __attribute__((visibility("default"))) void rangescope_attach(const char* settings) {
  using namespace rangescope::inject;
  const KeepErrno keep_errno;
  process_watch_forks();
  const std::uint32_t generation = process_generation();
  std::uint32_t previous = attached.load();
  if (previous == generation || !attached.compare_exchange_strong(previous, generation))
    return;
  std::size_t used = 0;
  while (settings[used] != '\0') {
    const std::size_t entry_bytes = std::strlen(settings + used) + 1;
    if (used + entry_bytes >= sizeof attach_settings)
      break;
    std::memcpy(attach_settings + used, settings + used, entry_bytes);
    used += entry_bytes;
  }
  attach_settings[used] = '\0';
  pthread_t thread;
  if (!cupti::start_thread(thread, record_attached, nullptr))
    attached.store(0);
  else
    pthread_detach(thread);
}
