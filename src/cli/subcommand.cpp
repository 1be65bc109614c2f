#include "cli/subcommand.hpp"

namespace rangescope::cli {

std::vector<std::unique_ptr<Subcommand>> subcommands() {
  std::vector<std::unique_ptr<Subcommand>> all;
  for (const auto make :
       {make_profile, make_attach, make_ctl, make_report, make_compare, make_gate, make_query, make_export, make_runs,
        make_config, make_ncu, make_metrics, make_doctor, make_mcp, make_help})
    all.push_back(make());
  return all;
}

}  // namespace rangescope::cli
