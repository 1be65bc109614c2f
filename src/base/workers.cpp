#include "base/workers.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace rangescope::base {

int worker_count(int asked, std::size_t tasks) {
  constexpr std::size_t kMostUnasked = 16;
  std::size_t workers = std::min<std::size_t>(std::thread::hardware_concurrency(), kMostUnasked);
  if (asked > 0)
    workers = static_cast<std::size_t>(asked);
  workers = std::min(workers, tasks);
  return static_cast<int>(std::max<std::size_t>(workers, 1));
}

void parallel_for(std::size_t tasks, int asked, const std::function<void(std::size_t)>& fn) {
  const int workers = worker_count(asked, tasks);
  std::atomic<std::size_t> next{0};
  std::atomic_flag failed;
  std::exception_ptr failure;
  const auto work = [&]() noexcept {
    try {
      for (std::size_t i = next.fetch_add(1); i < tasks; i = next.fetch_add(1))
        fn(i);
    } catch (...) {
      next = tasks;
      if (!failed.test_and_set())
        failure = std::current_exception();
    }
  };
  std::vector<std::thread> helpers;
  helpers.reserve(static_cast<std::size_t>(workers));
  try {
    for (int i = 1; i < workers; ++i)
      helpers.emplace_back(work);
  } catch (const std::system_error&) {
    // the system gives no more threads: those that run do the work
  }
  work();
  for (std::thread& helper : helpers)
    helper.join();
  if (failure)
    std::rethrow_exception(failure);
}

}  // namespace rangescope::base
