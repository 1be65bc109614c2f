#include <CLI/CLI.hpp>

#include "cli/bind.hpp"

namespace rangescope::cli {

void bind_read(CLI::App& app, read::Options& options) {
  app.add_option("--nsys", options.nsys_path, "nsys to export .nsys-rep, .qdrep and .qdstrm with")
      ->type_name("PATH")
      ->group("Reading");
  app.add_option("--number-format", options.number_format,
                 "How CSV of ncu writes numbers, where it can be read in two ways: C, en, de, fr")
      ->check(CLI::IsMember({"C", "en", "de", "fr"}))
      ->group("Reading");
}

}  // namespace rangescope::cli
