// One line on the terminal while the program runs: elapsed time, bytes captured and about how many events they are.
//
// Only where standard error is a terminal. The line ends in a carriage return, so that what the program prints next
// overwrites it. Costs one look at each capture file a quarter of a second.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

namespace rangescope::cli {

class Progress {
 public:
  /// Is there a terminal to show it on?
  [[nodiscard]] static bool wanted();
  void show(std::chrono::nanoseconds elapsed, const std::filesystem::path& captures);
  /// Takes the line away.
  void clear();

 private:
  bool shown_ = false;
};

/// "3.2 s, 12.3 MiB captured, about 800,000 events"
[[nodiscard]] std::string progress_text(std::chrono::nanoseconds elapsed, std::uint64_t bytes);

/// Bytes on disk (holes do not count) of the files in a folder.
[[nodiscard]] std::uint64_t stored_bytes(const std::filesystem::path& folder);

}  // namespace rangescope::cli
