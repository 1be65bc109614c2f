#include "cli/subcommands.hpp"

namespace rangescope::cli {

std::vector<std::unique_ptr<Subcommand>> subcommands() {
  std::vector<std::unique_ptr<Subcommand>> all;
  all.push_back(make_profile());
  all.push_back(make_watch());
  all.push_back(make_report());
  all.push_back(make_compare());
  all.push_back(make_gate());
  all.push_back(make_baseline());
  all.push_back(make_query());
  all.push_back(make_export());
  all.push_back(make_import());
  all.push_back(make_runs());
  all.push_back(make_config());
  all.push_back(make_ncu());
  all.push_back(make_metrics());
  all.push_back(make_plan());
  all.push_back(make_calibrate());
  all.push_back(make_doctor());
  all.push_back(make_init());
  all.push_back(make_help());
  all.push_back(make_version());
  return all;
}

}  // namespace rangescope::cli
