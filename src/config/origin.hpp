// Where a value of the configuration was written, as a type: whether the user asked for it, whether
// on the command line, and which place a message shows.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace rangescope::config {

enum class Source : std::uint8_t {
  kNone,  ///< set nowhere
  kShippedFile,
  kUserFile,
  kEnvironment,
  kOverride,  ///< an argument `run.keep=5`
  kFlag,      ///< an argument `--keep`
  kProgram,   ///< the words after `--`
  kImplied,   ///< it follows from another key
};

struct Origin {
  Source source = Source::kNone;
  std::string name;  ///< the file, the variable, the argument, or the key that implies it
  int line = 0;      ///< of a file, from 1; 0: the file as a whole
  int column = 0;    ///< likewise
  int argument = 0;  ///< its position on the command line, from 1

  [[nodiscard]] bool on_command_line() const;
  [[nodiscard]] bool by_user() const;
};

/// "conf/config.yaml:12:3", "environment RANGESCOPE__RUN__KEEP", "argument 2: run.keep=5"; "" of
/// kNone.
[[nodiscard]] std::string to_string(const Origin& origin);

/// kConfig at the place of a value.
[[nodiscard]] tl::unexpected<base::Error> refused(std::string what,
                                                  const Origin& origin,
                                                  std::string hint = {});

}  // namespace rangescope::config
