#include "base/text.hpp"
#include "cli/bind.hpp"

namespace rangescope::cli {

void bind_comparison(const Arguments& command, profile::SideOptions& from, analyze::CompareOptions& options,
                     std::vector<std::string>& renames) {
  command.add_option("--runs", from.root);
  command.add_option("--nsys", from.nsys);
  const Arguments app = command.under("Comparison");
  app.add_option("--metric", options.values).repeated();
  bind_terms(app, "--region", options.regions, options.ranges.notes);
  bind_ranges(app, options.ranges);
  app.add_option("--rename", renames).repeated();
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
