#include <optional>
#include <string_view>

#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "config/schema.hpp"

namespace rangescope::cli {

void bind_sampling(const Arguments& app, profile::SampleChoice& choice) {
  app.add_option(
         "--sample",
         [&choice](const std::string& said) {
           choice.off = said == "off";
           choice.interval_ns.reset();
           if (said == "off" || said == "auto") return;
           const auto ns = config::parse_duration(said);
           if (!ns || *ns < 10'000 || *ns > 1'000'000'000)
             refuse("--sample", "'" + base::printable(said) + "' is no time between 10us and 1s",
                    "Write auto, off, or a number and a unit: 1ms, 100us");
           choice.interval_ns = *ns;
         },
         "Sample the GPU's counters and energy while the program runs: auto, off, or every so often (auto: 200us)")
      .type_name("auto|off|TIME")
      .group("Capture");
  app.add_option(
         "--cpu",
         [&choice](const std::string& said) {
           choice.cpu_off = said == "off";
           choice.cpu_hz = said.empty() ? std::optional(profile::kAutoCpu_hz) : std::nullopt;
           if (said.empty() || said == "off" || said == "auto") return;
           std::string_view number = said;
           if (number.ends_with("Hz")) number.remove_suffix(2);
           const auto hz = base::to_int(number);
           if (!hz || *hz < 1 || *hz > 10'000)
             refuse("--cpu", "'" + base::printable(said) + "' is no rate between 1Hz and 10000Hz",
                    "Write auto, off, or samples a second: 199Hz");
           choice.cpu_hz = *hz;
         },
         "Sample what the program's threads do on the CPU: auto, off, or how often a second (auto: 199Hz where the "
         "system allows it)")
      .type_name("auto|off|RATE")
      .expected(0, 1)
      .group("Capture");
  app.add_option("--sample-metrics", choice.metrics,
                 "Counters to sample instead of the shipped ones; one pass holds few")
      .type_name("NAME,...")
      .group("Capture");
}

}  // namespace rangescope::cli
