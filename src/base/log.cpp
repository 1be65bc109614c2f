#include "base/log.hpp"

#include <unistd.h>
#include <atomic>
#include <string>
#include <utility>

#include "base/fs.hpp"
#include "base/progress.hpp"
#include "base/result.hpp"
#include "base/text.hpp"

namespace rangescope::base {
namespace {

/// Columns of a line: a value of any length may be quoted.
constexpr std::size_t kWidest = 4000;

std::atomic<int> g_level{static_cast<int>(Level::kInfo)};

std::string_view prefix(Level level) {
  switch (level) {
    case Level::kError: return "rangescope: error: ";
    case Level::kWarning: return "rangescope: warning: ";
    default: return "rangescope: ";
  }
}

}  // namespace

void set_log_level(Level level) noexcept {
  g_level = static_cast<int>(level);
}
Level log_level() noexcept {
  return static_cast<Level>(g_level.load());
}

void log(Level level, std::string_view text) {
  if (static_cast<int>(level) > g_level.load())
    return;
  // Messages quote names and files of strangers: nothing but line ends may steer the terminal.
  std::string line(prefix(level));
  for (bool first = true; const std::string_view part : split(text, '\n')) {
    if (!std::exchange(first, false))
      line += '\n';
    line += elide(printable(part), kWidest);
  }
  line += '\n';
  Work::clear_line();
  (void)write_all(STDERR_FILENO, line);  // a failure could be reported nowhere
}

void log(const Error& error) {
  std::string text = error.what;
  if (!error.where.empty())
    text = error.where + ": " + text;
  if (!error.hint.empty())
    text += "\nrangescope: hint: " + error.hint;
  log(Level::kError, text);
}

int say(const Error& error) {
  log(error);
  return exit_code(error.code);
}

}  // namespace rangescope::base
