#include "inject/nvtx/process.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <cstring>

namespace rangescope::inject {
namespace {

std::atomic<std::uint32_t> last_generation{0};  // of this process and its ancestors

}  // namespace

Process process;
std::atomic<std::uint64_t> next_range_id{1};

void process_watch_forks() {
  if (madvise(&process, sizeof process, MADV_WIPEONFORK) == 0)
    return;
  // Linux before 4.14: fork(3) only.
  pthread_atfork(
      nullptr, nullptr, [] { std::memset(static_cast<void*>(&process), 0, sizeof process); });
}

std::uint32_t process_generation() {
  std::uint32_t generation = process.generation.load(std::memory_order_acquire);
  if (generation != 0)
    return generation;
  std::uint64_t none = 0;
  process.first_range_id.compare_exchange_strong(none,
                                                 next_range_id.load(std::memory_order_relaxed));
  // Counted before it is published, so that a descendant never gets the same number.
  const std::uint32_t next = last_generation.fetch_add(1, std::memory_order_acq_rel) + 1;
  if (!process.generation.compare_exchange_strong(generation, next))
    return generation;
  return next;
}

}  // namespace rangescope::inject
