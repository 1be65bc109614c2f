#include "base/text.hpp"
#include "cli/bind.hpp"
#include "config/schema.hpp"

namespace rangescope::cli {

void bind_look(const Arguments& app, profile::LookRequest& request) {
  bind_ranges(app, request.ranges, "Program");
  app.add_option(
         "--for",
         [&request](const std::string& said) {
           const auto ns = config::parse_duration(said);
           if (!ns || *ns <= 0)
             refuse("--for", "'" + base::printable(said) + "' is no time", "Write a number and a unit: 30s, 5m");
           request.limit = std::chrono::nanoseconds(*ns);
         },
         "Longest time that the program is looked at; it ends earlier when all is known (30s)")
      .type_name("TIME")
      .group("Program");
  app.add_flag("--chain-injection", request.chain_injection,
               "Load the injection library that the environment names as well: ours hands every call on to it")
      .group("Program");
}

}  // namespace rangescope::cli
