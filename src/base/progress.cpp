#include "base/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <thread>

#include "base/units.hpp"

namespace rangescope::base {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<bool> g_wanted{false}, g_busy{false};
std::atomic<std::uint64_t> g_bytes{0};
std::mutex g_terminal;  ///< held while drawing
bool g_drawn = false;

void draw(std::string_view text) {
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0)
    return;  // no terminal any more
}

}  // namespace

void show_progress(bool wanted) {
  const char* terminal = std::getenv("TERM");
  g_wanted = wanted && ::isatty(STDERR_FILENO) != 0 && terminal != nullptr &&
             std::string_view(terminal) != "dumb";
}

struct Work::Line {
  std::string activity;
  std::uint64_t total = 0;
  Clock::time_point begun = Clock::now();
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
  std::thread thread;

  void run() {
    std::unique_lock lock(mutex);
    for (auto patience = std::chrono::milliseconds(2000);;
         patience = std::chrono::milliseconds(200)) {
      if (changed.wait_for(lock, patience, [&] { return ended; }))
        return;
      const std::chrono::duration<double> took = Clock::now() - begun;
      const std::scoped_lock drawing(g_terminal);
      draw("\r\x1b[K\x1b[2mrangescope: " + progress_text(activity, g_bytes, total, took.count()) +
           "\x1b[0m");
      g_drawn = true;
    }
  }
};

Work::Work(std::string activity, std::uint64_t total) {
  if (!g_wanted || g_busy.exchange(true))
    return;
  g_bytes = 0;
  line_ = std::make_unique<Line>();
  line_->activity = std::move(activity);
  line_->total = total;
  line_->thread = std::thread([line = line_.get()] { line->run(); });
}

Work::~Work() {
  if (!line_)
    return;
  {
    const std::scoped_lock lock(line_->mutex);
    line_->ended = true;
  }
  line_->changed.notify_one();
  line_->thread.join();
  clear_line();
  g_busy = false;
}

void Work::done(std::uint64_t bytes) noexcept {
  g_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void Work::clear_line() noexcept {
  if (!g_busy)
    return;
  const std::scoped_lock drawing(g_terminal);
  if (g_drawn)
    draw("\r\x1b[K");
  g_drawn = false;
}

std::string progress_text(const std::string& activity,
                          std::uint64_t bytes,
                          std::uint64_t total,
                          double seconds) {
  std::string text = activity;
  const std::string elapsed = ", " + format_ns(std::floor(seconds) * 1e9);
  // What was read is then sorted and joined, for about as long again.
  if (total > 0 && bytes >= total)
    return text + ": " + format_bytes(static_cast<double>(total)) + " read, joining them" + elapsed;
  if (total > 0 && bytes > 0)
    text += " " + format_share(static_cast<double>(bytes) / static_cast<double>(total));
  if (bytes > 0 && seconds > 0)
    text += ", " + format_bytes(static_cast<double>(bytes) / seconds) + "/s";
  if (bytes == 0)
    text += elapsed;
  return text;
}

}  // namespace rangescope::base
