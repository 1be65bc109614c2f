#include "cli/bind.hpp"

namespace rangescope::cli {

void bind_look(const Arguments& app, profile::LookRequest& request) {
  bind_ranges(app, request.ranges, "Program");
  app.add_duration(
         "--for", [&request](std::int64_t ns) { request.limit = std::chrono::nanoseconds(ns); }, 1, kLongest,
         "Longest time that the program is looked at; it ends earlier when all is known (30s)")
      .group("Program");
  app.add_flag("--chain-injection", request.chain_injection,
               "Load the injection library that the environment names as well: ours hands every call on to it")
      .group("Program");
}

}  // namespace rangescope::cli
