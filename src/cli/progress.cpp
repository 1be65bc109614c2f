#include "cli/progress.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "base/units.hpp"

namespace rangescope::cli {
namespace {

constexpr std::uint64_t kBytesPerEvent = 16;  // a push and a pop without attributes are two events of 16 bytes

void draw(std::string_view text) {
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;  // nobody looks
}

}  // namespace

bool Progress::wanted() {
  const char* terminal = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) != 0 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

void Progress::show(std::chrono::nanoseconds elapsed, const std::filesystem::path& captures) {
  draw("\r\x1b[K\x1b[2mrangescope: " + progress_text(elapsed, stored_bytes(captures)) + "\x1b[0m\r");
  shown_ = true;
}

void Progress::clear() {
  if (shown_) draw("\r\x1b[K");
  shown_ = false;
}

std::string progress_text(std::chrono::nanoseconds elapsed, std::uint64_t bytes) {
  const std::chrono::nanoseconds shown = std::chrono::floor<std::chrono::milliseconds>(elapsed);
  return base::format_ns(static_cast<double>(shown.count())) + ", " + base::format_bytes(static_cast<double>(bytes)) +
         " captured, about " + base::counted(bytes / kBytesPerEvent, "event");
}

std::uint64_t stored_bytes(const std::filesystem::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    struct stat status {};
    if (::stat(entry.path().c_str(), &status) == 0 && S_ISREG(status.st_mode))
      bytes += static_cast<std::uint64_t>(status.st_blocks) * 512;
  }
  return bytes;
}

}  // namespace rangescope::cli
