#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "profile/jobs.hpp"

namespace rangescope::cli {

void bind_read(const Arguments& app, read::Options& options) {
  app.add_option(
         "--rank",
         [&options](const std::string& said) {
           const auto ranks = profile::parse_ranks({said}, "--rank");
           if (!ranks) refuse("--rank", ranks.error().what, ranks.error().hint);
           options.ranks.insert(options.ranks.end(), ranks->begin(), ranks->end());
         },
         "Only these ranks of a parallel job: 7, or 0,8,16-23")
      .type_name("N,...")
      .repeated()
      .group("Reading");
  app.add_option("--nsys", options.nsys_path, "nsys to export .nsys-rep, .qdrep and .qdstrm with")
      .type_name("PATH")
      .group("Reading");
  app.add_option("--number-format", options.number_format,
                 "How CSV of ncu writes numbers, where it can be read in two ways: C, en, de, fr")
      .one_of({"C", "en", "de", "fr"})
      .group("Reading");
}

}  // namespace rangescope::cli
