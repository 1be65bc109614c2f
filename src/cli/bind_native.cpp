
#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "config/schema.hpp"
#include "wire/names.hpp"

namespace rangescope::cli {

void bind_native(const Arguments& app, collect::native::Options& options) {
  app.add_option(
         "--max-capture-size",
         [&options](const std::string& said) {
           const auto bytes = config::parse_size(said);
           if (!bytes || *bytes < (1u << 20))
             refuse("--max-capture-size", "'" + base::printable(said) + "' is no size of at least 1 MiB",
                    "Write a number and a unit: 512M, 4GiB");
           options.max_capture_bytes = *bytes;
         },
         "Largest capture of one process; later events are dropped, counted and reported (4GiB)")
      .type_name("SIZE")
      .group("Capture");
  app.add_option(
         "--cuda-graphs",
         [&options](const std::string& said) {
           if (said != "node" && said != "graph")
             refuse("--cuda-graphs", "'" + base::printable(said) + "' is no way to trace graphs",
                    "Write node (each kernel of a graph) or graph (each launch as a whole, cheaper)");
           options.extra_env[wire::kCudaGraphs] = said;
         },
         "CUDA graphs: each kernel with the ranges it was captured in (node), or each launch as a whole (graph)")
      .type_name("node|graph")
      .group("Capture");
  app.add_duration(
         "--flush-interval",
         [&options](std::int64_t ns) { options.extra_env[wire::kFlushInterval] = std::to_string(ns / 1000000) + "ms"; },
         0, kLongest, "How often GPU activity is written out: what a killed process may lose of it (1s)")
      .group("Capture");
  app.add_flag("--chain-injection", options.chain_injection,
               "Load the injection library that the environment names as well: ours hands every call on to it")
      .group("Capture");
}

}  // namespace rangescope::cli
