// What reads captures may run out of memory or crash: on gigabytes, or on a file that was made for
// it. From the end of the program on, a child goes on in this process's place; this process, which
// then holds little, waits for it, passes signals on, and has the last word where the child does
// not live to say it: status.json and the program's exit code.
#pragma once

#include <optional>

#include "base/process.hpp"
#include "base/result.hpp"

namespace rangescope::profile {

class Worker {
 public:
  Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  /// Where somebody stops to read our output, that ends neither of both from here on. Forks once;
  /// later calls answer as the first. The child returns, and so does this process where no child
  /// can be made. Else this process ends as the child does once that was done(), or returns how the
  /// child failed (kInternal).
  [[nodiscard]] base::Result<void> go_on_in_child();
  /// Gives the memory back that was kept for the last words: 4 MiB of the heap. Before the fork
  /// this process does it by itself where none is left, so that the end of the program is noted.
  static void out_of_memory();
  /// Whether there was memory for the reserve from which a run is concluded.
  [[nodiscard]] static bool has_reserve();
  /// status.json is written: whatever comes now is passed on as it is.
  void done();
  /// Where somebody ended the child by SIGINT, SIGTERM ...: what this process is to end by, too.
  [[nodiscard]] const std::optional<base::Ended>& stopped() const { return stopped_; }

 private:
  int* done_ = nullptr;  ///< shared by both
  bool forked_ = false;
  base::Result<void> failed_;
  std::optional<base::Ended> stopped_;
};

}  // namespace rangescope::profile
