// One output stream of a child: passed on to ours, kept, written to a file, or all of these.
#pragma once

#include <string>
#include <string_view>

#include "base/process.hpp"

namespace rangescope::base {

class ChildOutput {
 public:
  /// `target`: our own descriptor for it.
  ChildOutput(const Output& how, int target) : how_(how), target_(target) {}
  ChildOutput(const ChildOutput&) = delete;
  ChildOutput& operator=(const ChildOutput&) = delete;
  ~ChildOutput();
  /// kIo where there is no pipe or file.
  [[nodiscard]] Result<void> open();
  [[nodiscard]] int fd() const { return read_; }
  [[nodiscard]] int child_end() const { return write_; }
  void spawned() { shut(write_); }
  /// Whether somebody may still write what is to be shown.
  [[nodiscard]] bool shows() const { return read_ >= 0 && how_.pass; }
  /// Takes what is there. False at the end of the stream.
  bool take(std::string& kept);
  /// The next bytes of one descriptor to another; false at the end of either.
  static bool pass_on(int from, int to);

 private:
  static void shut(int& fd);
  static bool put(int fd, std::string_view bytes);
  Output how_;
  int target_;
  int read_ = -1, write_ = -1, file_ = -1;
};

/// What children of the program that outlive it still write is shown, as without us: by a process that ends with them.
/// It holds nothing of ours but its streams (the lock of a run, for one), and no signal ends it before.
void hand_over(const ChildOutput& out, const ChildOutput& err);

}  // namespace rangescope::base
