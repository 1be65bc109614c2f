// Which ways of measuring can work for this program, which cannot and why, each with its command
// line.
//
// The command lines come from the planners that `rangescope profile` itself uses. Where nsys or ncu
// is not installed they are written for a version that every later one understands, and say so.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collect/nsight/abilities.hpp"
#include "doctor/program/program.hpp"

namespace rangescope::doctor {

struct Way {
  std::string name;  ///< "ranges", "counters", "nsys", "nsys gated", "ncu range", "ncu app-range",
                     ///< "ncu kernel"
  bool works = false;
  std::string reason;   ///< why it works, or why not
  std::string command;  ///< runs as it stands; empty where it cannot work
  std::vector<std::string> notes;
};

struct Tools {
  std::optional<collect::Abilities> ncu, nsys;  ///< of this machine
  bool native_counters = false;                 ///< the native collector can collect counters here
  std::string counters_reason;                  ///< why not
};

/// Every way, the cheapest first. None works when no range that was meant was seen.
[[nodiscard]] std::vector<Way> ways(const ProgramLook& look, const Tools& tools);

}  // namespace rangescope::doctor
