// Runs a program without and with the injected library, and reads what was captured: for the tests
// of this folder.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "../tools/sanitized.hpp"
#include "model/session.hpp"

namespace rangescope::victims {

namespace fs = std::filesystem;

/// ThreadSanitizer calls a handler out of one of its interceptors, as a function: there is no
/// signal frame by which the library tells a hook that is interrupted from one that was left. In a
/// program without the library 3,000 handlers of 3,000 stood less than 1,024 bytes below what they
/// interrupted; with AddressSanitizer, and bare, none did.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kHandlersAreCalls = true;
#else
inline constexpr bool kHandlersAreCalls = false;
#endif

struct Outcome {
  std::string out, err, ended;
  bool operator==(const Outcome&) const = default;
};
std::ostream& operator<<(std::ostream& stream, const Outcome& o);

/// A new folder, and all in it deleted in the end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] fs::path operator/(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

using Environment = std::map<std::string, std::string>;

/// That of this process, without what a profiler or a sanitizer takes from it, and `more`:
/// "name=value" each.
std::vector<std::string> environment(const Environment& more);

/// Runs it to its end; killed, and `ended` says "hung", after four minutes.
Outcome run(const std::vector<std::string>& argv, const Environment& more, const Folder& folder);

/// Paths with their occurrences, "process: domain:A > B count[, n open]"; processes are numbered by
/// their start.
std::string show(const model::Session& session);
bool has_loss(const model::Session& session, std::string_view kind);
std::size_t closed(const model::Session& session, std::string_view name);

class Victim : public ::testing::Test {
 protected:
  /// Runs a program of this folder both ways, and reads the capture of the second run.
  model::Session recorded_command(const std::vector<std::string>& argv, Environment env, bool same);
  /// Runs it with the library only; captures of earlier runs are deleted.
  model::Session recorded_alone(const std::vector<std::string>& argv, Environment env = {});
  [[nodiscard]] model::Session captured() const;
  Folder folder_;
  Outcome outcome_;
};

}  // namespace rangescope::victims
