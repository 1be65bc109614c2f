#include "base/text.hpp"
#include "cli/bind.hpp"

namespace rangescope::cli {

void bind_sides(const Arguments& app, profile::SideOptions& from) {
  app.add_option("--runs", from.root, "Folder of the runs (rangescope-runs)").type_name("DIR");
  app.add_option("--nsys", from.nsys, "nsys to export .nsys-rep, .qdrep and .qdstrm with").type_name("PATH");
}

void bind_comparison(const Arguments& command, analyze::CompareOptions& options, std::vector<std::string>& renames) {
  const Arguments app = command.under("Comparison");
  const auto list = [&](const std::string& name, std::vector<std::string>& into, const std::string& type,
                        const std::string& text) { app.add_option(name, into, text).type_name(type).repeated(); };
  list("--metric", options.values, "VALUE",
       "What is compared: wall_ns.median, gpu.busy_ns, metrics.NAME (rangescope help columns); may be repeated");
  bind_terms(app, "--region", options.regions, options.ranges.notes,
             "Only the regions of these ranges themselves; may be repeated");
  bind_ranges(app, options.ranges);
  list("--rename", renames, "OLD=NEW", "A range's name, or path with ' > ', in the first side and in the others");
}

base::Result<void> finish_comparison(analyze::CompareOptions& options, const std::vector<std::string>& renames) {
  for (const std::string& rename : renames) {
    const auto equals = rename.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == rename.size())
      return base::fail(base::Code::kUsage, "'" + base::printable(rename) + "' is no renaming", "--rename",
                        "Write --rename 'old name=new name'");
    options.renames[rename.substr(0, equals)] = rename.substr(equals + 1);
  }
  return {};
}

}  // namespace rangescope::cli
