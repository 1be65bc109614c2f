// How a program is captured: the native library, sampling, counters, and the doctor's look.
#include <fmt/format.h>

#include <filesystem>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fs.hpp"
#include "base/text.hpp"
#include "cli/bind.hpp"
#include "config/schema.hpp"
#include "wire/names.hpp"

namespace rangescope::cli {
namespace {

/// For the library: one pattern a line.
std::string lines_of(const std::string& option, const std::vector<std::string>& patterns) {
  if (patterns.size() > wire::kMostFunctions)
    refuse(
        option,
        fmt::format("{} are {} too many", patterns.size(), patterns.size() - wire::kMostFunctions),
        "Use one pattern for many functions: mypkg.engine.*");
  return base::join(patterns, "\n");
}

std::string why_unreadable(const std::string& path, const base::Error& error) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return "there is no file '" + base::printable(path) + "' to read";
  if (std::filesystem::is_directory(path, ignored))
    return base::printable(path) + ": Is a directory";
  return base::printable(path) + ": " + error.what;
}

std::string phases_of(const std::string& path) {
  constexpr std::uint64_t kMostBytes = 1 << 20;
  const auto file = base::read_regular(path, kMostBytes);
  if (!file)
    refuse("--phases",
           why_unreadable(path, file.error()),
           "Write auto, off, or a file of lines NAME=PATTERN");
  std::vector<std::string> phases;
  int number = 0;
  for (const std::string_view line : base::split(*file, '\n')) {
    const std::string_view phase = base::trim(line);
    ++number;
    if (phase.empty() || phase.starts_with('#'))
      continue;
    const std::size_t equals = std::min(phase.find('='), phase.size() - 1);
    const std::string_view name = base::trim(phase.substr(0, equals)),
                           pattern = base::trim(phase.substr(equals + 1));
    if (name.empty() || pattern.empty())
      refuse("--phases",
             fmt::format("{}:{}: this is not a phase", base::printable(path), number),
             "Write NAME=PATTERN: decode step=mypkg.engine.Engine.step");
    phases.push_back(fmt::format("{}={}", name, pattern));
  }
  return lines_of("--phases", phases);
}

/// [NAME=]PATTERN, both of them something.
void check_function_pattern(const std::string& written) {
  const auto equals = written.find('=');
  std::string_view pattern = written;
  if (equals != std::string::npos)
    pattern.remove_prefix(equals + 1);
  if (base::trim(pattern).empty() || equals == 0)
    refuse(
        "--functions",
        "'" + base::printable(written) + "' names no function",
        "Write a pattern, 'mypkg.engine.*', or a name for it too: step=mypkg.engine.Engine.step");
}

}  // namespace

void bind_native(const Arguments& command, collect::native::Options& options) {
  const Arguments app = command.under("Capture");
  app.add_option("--max-capture-size", [&options](const std::string& text) {
    const auto bytes = config::parse_size(text);
    if (!bytes || *bytes < (1u << 20))
      refuse("--max-capture-size",
             "'" + base::printable(text) + "' is not a size of at least 1 MiB",
             "Write a number and a unit: 512M, 4GiB");
    options.max_capture_bytes = *bytes;
  });
  app.add_option("--cuda-graphs", [&options](const std::string& text) {
    options.extra_env[wire::kCudaGraphs] = text;
  });
  app.add_option("--modules", [&options](const std::string& text) {
    const auto levels = base::to_int(text);
    if (text == "auto")
      return;
    if (text != "off" && !(levels && *levels >= 1 && *levels <= 64))
      refuse(
          "--modules",
          "'" + base::printable(text) + "' is not a depth of modules",
          "Write auto (all of a PyTorch program), off, or how many levels from the outermost: 3");
    options.extra_env[wire::kModules] = text;
  });
  app.add_option("--memory", [&options](const std::string& text) {
    if (text != "auto")
      options.extra_env[wire::kMemory] = text;
  });
  const std::function<void(const std::vector<std::string>&)> choose =
      [&options](const auto& patterns) {
        for (const std::string& pattern : patterns)
          check_function_pattern(pattern);
        options.extra_env[wire::kFunctions] = lines_of("--functions", patterns);
      };
  app.add_option("--functions", choose).type_name("[NAME=]PATTERN").repeated();
  app.add_option("--phases", [&options](const std::string& text) {
    if (text == "off")
      options.extra_env[wire::kPhases] = text;
    else if (text != "auto")
      options.extra_env[wire::kPhases] = phases_of(text);
  });
  app.add_duration(
      "--flush-interval",
      [&options](std::int64_t ns) {
        options.extra_env[wire::kFlushInterval] = std::to_string(ns / 1000000) + "ms";
      },
      0,
      kLongest);
  app.add_flag("--light", [&options] { options.extra_env[wire::kLight] = "1"; });
  app.add_flag("--chain-injection", options.chain_injection);
}

void bind_cpu(const Arguments& app, profile::SampleChoice& choice) {
  app.add_option("--cpu",
                 [&choice](const std::string& text) {
                   choice.cpu_off = text == "off";
                   choice.cpu_hz.reset();
                   if (text.empty())
                     choice.cpu_hz = profile::kAutoCpu_hz;
                   if (text.empty() || text == "off" || text == "auto")
                     return;
                   std::string_view number = text;
                   if (number.ends_with("Hz"))
                     number.remove_suffix(2);
                   const auto hz = base::to_int(number);
                   if (!hz || *hz < 1 || *hz > 10'000)
                     refuse("--cpu",
                            "'" + base::printable(text) + "' is not a rate between 1Hz and 10000Hz",
                            "Write auto, off, or samples a second: 199Hz");
                   choice.cpu_hz = *hz;
                 })
      .expected(0, 1);
}

void bind_sampling(const Arguments& command, profile::SampleChoice& choice) {
  const Arguments app = command.under("Capture");
  app.add_option("--sample", [&choice](const std::string& text) {
    choice.off = text == "off";
    choice.interval_ns.reset();
    if (text == "off" || text == "auto")
      return;
    const auto ns = config::parse_duration(text);
    if (!ns || *ns < 10'000 || *ns > 1'000'000'000)
      refuse("--sample",
             "'" + base::printable(text) + "' is not a time between 10us and 1s",
             "Write auto, off, or a number and a unit: 1ms, 100us");
    choice.interval_ns = *ns;
  });
  bind_cpu(app, choice);
  app.add_option("--cpu-counters", choice.cpu_counters);
  app.add_option("--sample-metrics", choice.metrics);
}

void bind_counters(const Arguments& command, collect::native::CounterRequest& request) {
  const Arguments app = command.under("Counters");
  app.add_option("--per", request.per);
  app.add_option("--pc", request.pc);
  app.add_option("--rounds", request.rounds);
  app.add_option("--chip", request.chip);
  app.add_option("--passes", request.passes);
  app.add_flag("--flush-caches", [&request] { request.cache = "flush"; });
  app.add_duration(
      "--arm-wait",
      [&request](std::int64_t ns) {
        request.arm_wait_ms = static_cast<std::uint32_t>(ns / 1'000'000);
      },
      0,
      60'000'000'000);
  app.add_option("--skip-first", request.skip_first);
  app.add_option("--trace-first", request.trace_first);
}

void bind_look(const Arguments& command, profile::LookRequest& request) {
  const Arguments app = command.under("Program");
  bind_ranges(app, request.ranges);
  app.add_duration("--for", request.limit, 1, kLongest);
  app.add_flag("--chain-injection", request.chain_injection);
}

}  // namespace rangescope::cli
