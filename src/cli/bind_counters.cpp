#include "base/text.hpp"
#include "cli/bind.hpp"

namespace rangescope::cli {

base::Result<std::vector<std::string>> metric_names(const std::vector<std::string>& options) {
  std::vector<std::string> names;
  for (const std::string& option : options) {
    for (const std::string_view item : base::split(option, ',')) {
      const std::string_view name = base::trim(item);
      if (name.empty()) return base::fail(base::Code::kUsage, "an empty name in '" + option + "'", "--metrics");
      names.emplace_back(name);
    }
  }
  return names;
}

void bind_counters(const Arguments& app, collect::native::CounterRequest& request) {
  app.add_option("--per", request.per, "Counters of each range, each kernel in it, or both (range)")
      .one_of({"range", "kernel", "both"})
      .group("Counters");
  app.add_option("--rounds", request.rounds, "Complete sets for each range (5)")
      .type_name("N")
      .between(1, 1000)
      .group("Counters");
  app.add_option("--chip", request.chip, "Chip to plan the passes for (that of the first GPU)")
      .type_name("CHIP")
      .group("Counters");
  app.add_option("--passes", request.passes,
                 "Where passes come from: occurrences of one run; relaunch: the whole program again for ranges too "
                 "seldom; auto: occurrences, and say what relaunch would add (occurrence)")
      .one_of({"occurrence", "relaunch", "auto"})
      .group("Counters");
  app.add_flag(
         "--flush-caches", [&request] { request.cache = "flush"; },
         "Empty the caches before each measured occurrence or kernel, as ncu does")
      .group("Counters");
  app.add_option("--arm-wait", request.arm_wait_ms,
                 "Milliseconds that a range which lacks its first complete set waits for the hardware (100; 0: never)")
      .type_name("MS")
      .between(0, 60000)
      .group("Counters");
  app.add_option("--skip-first", request.skip_first,
                 "Occurrences left alone at the start (-1: until their duration has settled)")
      .type_name("N")
      .between(-1, 1000000)
      .group("Counters");
  app.add_option("--trace-first", request.trace_first,
                 "Occurrences that the timeline sees before counters begin (3; 0: no timeline)")
      .type_name("N")
      .between(0, 1000000)
      .group("Counters");
}

}  // namespace rangescope::cli
