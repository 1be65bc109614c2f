#include "cli/bind.hpp"

namespace rangescope::cli {

void bind_read(const Arguments& app, read::Options& options) {
  app.add_option("--nsys", options.nsys_path, "nsys to export .nsys-rep, .qdrep and .qdstrm with")
      .type_name("PATH")
      .group("Reading");
  app.add_option("--number-format", options.number_format,
                 "How CSV of ncu writes numbers, where it can be read in two ways: C, en, de, fr")
      .one_of({"C", "en", "de", "fr"})
      .group("Reading");
}

}  // namespace rangescope::cli
