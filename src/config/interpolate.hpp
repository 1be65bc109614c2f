// ${interpolation} in values, after everything was merged, as OmegaConf does it.
//
//   ${a.b}  ${list.0}  ${list[0]}      the value at that path, with its type when it is all of the
//   text
//   ${.b}  ${..b}                      relative: .b is a sibling, ..b a sibling of the parent
//   ${env:VAR}  ${env:VAR,default}     environment variable (also oc.env)
//   ${now:%Y%m%d-%H%M%S}               the moment the program started, local time
//   ${a.${b}}                          nested;  \${...} is the text ${...}
//
// Cycles, paths that do not exist, variables that are not set and have no default are refused with
// the place.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "base/result.hpp"
#include "config/value.hpp"

namespace rangescope::config {

struct Surroundings {
  std::map<std::string, std::string> environment;
  std::chrono::system_clock::time_point now;
};

[[nodiscard]] base::Result<void> interpolate(Value& root, const Surroundings& around);

}  // namespace rangescope::config
