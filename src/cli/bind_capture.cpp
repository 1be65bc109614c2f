// How a program is captured: the native library, sampling, counters, and the doctor's look.
#include <optional>
#include <string_view>

#include "base/text.hpp"
#include "cli/bind.hpp"
#include "config/schema.hpp"
#include "wire/names.hpp"

namespace rangescope::cli {
namespace {

void bind_chaining(const Arguments& app, bool& into) {
  app.add_flag("--chain-injection", into,
               "Load the injection library that the environment names as well: ours hands every call on to it");
}

}  // namespace

void bind_native(const Arguments& command, collect::native::Options& options) {
  const Arguments app = command.under("Capture");
  app.add_option(
         "--max-capture-size",
         [&options](const std::string& text) {
           const auto bytes = config::parse_size(text);
           if (!bytes || *bytes < (1u << 20))
             refuse("--max-capture-size", "'" + base::printable(text) + "' is no size of at least 1 MiB",
                    "Write a number and a unit: 512M, 4GiB");
           options.max_capture_bytes = *bytes;
         },
         "Largest capture of one process; later events are dropped, counted and reported (4GiB)")
      .type_name("SIZE");
  app.add_option(
         "--cuda-graphs",
         [&options](const std::string& text) {
           if (text != "node" && text != "graph")
             refuse("--cuda-graphs", "'" + base::printable(text) + "' is no way to trace graphs",
                    "Write node (each kernel of a graph) or graph (each launch as a whole, cheaper)");
           options.extra_env[wire::kCudaGraphs] = text;
         },
         "CUDA graphs: each kernel with the ranges it was captured in (node), or each launch as a whole (graph)")
      .type_name("node|graph");
  app.add_duration(
      "--flush-interval",
      [&options](std::int64_t ns) { options.extra_env[wire::kFlushInterval] = std::to_string(ns / 1000000) + "ms"; }, 0,
      kLongest, "How often GPU activity is written out: what a killed process may lose of it (1s)");
  app.add_flag(
      "--light", [&options] { options.extra_env[wire::kLight] = "1"; },
      "Record ranges and samples alone, no CUPTI in the program: GPU values of a range are of its wall time, "
      "kernels "
      "are unknown");
  app.add_option(
         "--overhead",
         [&options](const std::string& text) {
           const bool percent = text.ends_with("%");
           const auto number =
               base::to_double(base::trim(std::string_view(text).substr(0, text.size() - (percent ? 1 : 0))));
           const double share = number.value_or(0) * (percent ? 0.01 : 1);
           if (!(share >= 0.0001 && share <= 0.5))
             refuse("--overhead", "'" + base::printable(text) + "' is no share between 0.01% and 50%",
                    "Write --overhead 1%");
           options.extra_env[wire::kOverhead] = std::to_string(share);
         },
         "Trace only so many occurrences of ranges, over the whole run, that tracing takes at most this share of the "
         "program's time; totals are estimated")
      .type_name("SHARE");
  bind_chaining(app, options.chain_injection);
}

void bind_sampling(const Arguments& command, profile::SampleChoice& choice) {
  const Arguments app = command.under("Capture");
  app.add_option(
         "--sample",
         [&choice](const std::string& text) {
           choice.off = text == "off";
           choice.interval_ns.reset();
           if (text == "off" || text == "auto") return;
           const auto ns = config::parse_duration(text);
           if (!ns || *ns < 10'000 || *ns > 1'000'000'000)
             refuse("--sample", "'" + base::printable(text) + "' is no time between 10us and 1s",
                    "Write auto, off, or a number and a unit: 1ms, 100us");
           choice.interval_ns = *ns;
         },
         "Sample the GPU's counters and energy while the program runs: auto, off, or every so often (auto: 1ms)")
      .type_name("auto|off|TIME");
  app.add_option(
         "--cpu",
         [&choice](const std::string& text) {
           choice.cpu_off = text == "off";
           choice.cpu_hz = text.empty() ? std::optional(profile::kAutoCpu_hz) : std::nullopt;
           if (text.empty() || text == "off" || text == "auto") return;
           std::string_view number = text;
           if (number.ends_with("Hz")) number.remove_suffix(2);
           const auto hz = base::to_int(number);
           if (!hz || *hz < 1 || *hz > 10'000)
             refuse("--cpu", "'" + base::printable(text) + "' is no rate between 1Hz and 10000Hz",
                    "Write auto, off, or samples a second: 199Hz");
           choice.cpu_hz = *hz;
         },
         "Sample what the program's threads do on the CPU: auto, off, or how often a second (auto: 199Hz where the "
         "system allows it)")
      .type_name("auto|off|RATE")
      .expected(0, 1);
  app.add_option("--cpu-counters", choice.cpu_counters,
                 "Count events of the CPU in every range: clock, cache, branch, software, or perf's names of events")
      .type_name("GROUP,...");
  app.add_option("--sample-metrics", choice.metrics,
                 "Counters to sample instead of the shipped ones; one pass holds few")
      .type_name("NAME,...");
}

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

void bind_counters(const Arguments& command, collect::native::CounterRequest& request) {
  const Arguments app = command.under("Counters");
  app.add_option("--per", request.per, "Counters of each range, each kernel in it, or both (range)")
      .one_of({"range", "kernel", "both"});
  app.add_option("--rounds", request.rounds, "Complete sets for each range (5)").type_name("N").between(1, 1000);
  app.add_option("--chip", request.chip, "Chip to plan the passes for (that of the first GPU)").type_name("CHIP");
  app.add_option("--passes", request.passes,
                 "Where passes come from: occurrences of one run; relaunch: the whole program again for ranges too "
                 "seldom; auto: occurrences, and say what relaunch would add (occurrence)")
      .one_of({"occurrence", "relaunch", "auto"});
  app.add_flag(
      "--flush-caches", [&request] { request.cache = "flush"; },
      "Empty the caches before each measured occurrence or kernel, as ncu does");
  app.add_duration(
      "--arm-wait", [&request](std::int64_t ns) { request.arm_wait_ms = static_cast<std::uint32_t>(ns / 1'000'000); },
      0, 60'000'000'000,
      "How long a range which lacks its first complete set waits for the hardware (100ms; 0: not at all)");
  app.add_option("--skip-first", request.skip_first,
                 "Occurrences left alone at the start (-1: until their duration has settled)")
      .type_name("N")
      .between(-1, 1000000);
  app.add_option("--trace-first", request.trace_first,
                 "Occurrences that the timeline sees before counters begin (3; 0: no timeline)")
      .type_name("N")
      .between(0, 1000000);
}

void bind_look(const Arguments& command, profile::LookRequest& request) {
  const Arguments app = command.under("Program");
  bind_ranges(app, request.ranges);
  app.add_duration(
      "--for", [&request](std::int64_t ns) { request.limit = std::chrono::nanoseconds(ns); }, 1, kLongest,
      "Longest time that the program is looked at; it ends earlier when all is known (30s)");
  bind_chaining(app, request.chain_injection);
}

}  // namespace rangescope::cli
