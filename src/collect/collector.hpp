// How a command is run so that it is measured: native::plan(), nsys::plan() and ncu::plan() make a
// Plan of a Request. They are pure: they read only the probed abilities of the tools, start nothing
// and write nothing, so that --dry-run and golden tests of command lines need no more. launch.hpp
// runs a plan. Collectors do not depend on each other.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/selection.hpp"

namespace rangescope::collect {

/// What the user wants measured. Paths are absolute.
struct Request {
  std::vector<std::string> command;  ///< the program and its arguments, no shell
  std::filesystem::path cwd;
  std::map<std::string, std::string> env;  ///< additions to the environment
  std::filesystem::path run_dir;  ///< exists; the collector's files go into its own sub-folder
  model::RangeSelection ranges;
  model::KernelSelection kernels;
  std::uint32_t every =
      1;  ///< count instances (ncu: launches) 1, 1 + every, 1 + 2 * every ... only
  std::optional<std::chrono::nanoseconds> timeout;
};

/// A complete command: it can be run by hand.
struct Plan {
  std::string collector;  ///< "native"
  std::vector<std::string> argv;
  std::map<std::string, std::string> set_env;  ///< set in the child
  std::vector<std::string> unset_env;
  std::filesystem::path cwd;
  std::vector<std::filesystem::path> folders;  ///< made before it runs
  std::vector<std::string> notes;              ///< translations and choices made, for the person
  std::optional<std::chrono::nanoseconds> timeout;
};

}  // namespace rangescope::collect
