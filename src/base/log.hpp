// Talk to the person at the terminal: always stderr, never stdout (stdout is data).
//
// Each line is written with one write(2), so that lines of several threads and of the profiled
// program do not tear. The level is one process-wide integer, set once by the command line.
#pragma once

#include <string_view>

namespace rangescope::base {

struct Error;

enum class Level : int { kError = 0, kWarning = 1, kInfo = 2, kDetail = 3, kDebug = 4 };

/// Shows messages up to `level`; the default is kInfo. -q gives kWarning, -v kDetail, -vv kDebug.
void set_log_level(Level level) noexcept;
[[nodiscard]] Level log_level() noexcept;

/// Prints `rangescope: text` (errors and warnings carry the word) to stderr when `level` is shown.
void log(Level level, std::string_view text);

inline void info(std::string_view text) {
  log(Level::kInfo, text);
}
inline void warn(std::string_view text) {
  log(Level::kWarning, text);
}
inline void detail(std::string_view text) {
  log(Level::kDetail, text);
}

/// Prints an error with its place, and its hint on a line of its own.
void log(const Error& error);
/// The same for the error that ends a command; its exit code.
int say(const Error& error);

}  // namespace rangescope::base
