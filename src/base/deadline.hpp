// Ends what takes too long, from a thread of its own.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace rangescope::base {

class Deadline {
 public:
  using Spent = std::function<std::chrono::nanoseconds()>;
  /// Processor time of the thread that asks for it: waiting for a reader of our output is none.
  [[nodiscard]] static Spent thread_time();
  /// Time by the clock, from now on.
  [[nodiscard]] static Spent wall_time();

  /// Once `spent` exceeds `most`: `interrupt`, again and again, because the first may come before
  /// there is anything to interrupt; and five seconds later `give_up`, where what is interrupted
  /// does not listen. Both on another thread.
  Deadline(std::chrono::nanoseconds most,
           Spent spent,
           std::function<void()> interrupt,
           std::function<void()> give_up);
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
  ~Deadline() { (void)over(); }
  /// Ends it. Was the time over?
  bool over();

 private:
  void watch(std::chrono::nanoseconds most,
             const Spent& spent,
             const std::function<void()>& interrupt,
             const std::function<void()>& give_up);
  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ = false, over_ = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace rangescope::base
