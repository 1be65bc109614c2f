#include "cli/subcommands.hpp"

namespace rangescope::cli {

std::vector<std::unique_ptr<Subcommand>> subcommands() {
  std::vector<std::unique_ptr<Subcommand>> all;
  for (const auto make : {make_profile, make_watch, make_report, make_compare, make_gate, make_baseline, make_query,
                          make_export, make_import, make_runs, make_config, make_ncu, make_metrics, make_plan,
                          make_calibrate, make_doctor, make_init, make_help, make_version})
    all.push_back(make());
  return all;
}

}  // namespace rangescope::cli
