// rangescope: what each NVTX range of a program costs, and why.
//
//   profile   run a program and report           cmd_profile.cpp
//   report    report on what was recorded        cmd_report.cpp
//   runs      list, show, prune, verify runs     cmd_runs.cpp
//   help      this, man pages, completion        cmd_help.cpp
//
// app.cpp finds the subcommand and gives it its options; every other command is one line in subcommands.cpp.
#include <string_view>
#include "base/signals.hpp"

#include "cli/app.hpp"
#include "sample/helper.hpp"

int main(int argc, char** argv) {
  rangescope::base::outlive_file_limit();
  if (argc > 1 && std::string_view(argv[1]) == rangescope::sample::kHelperWord)
    return rangescope::sample::run_helper({argv + 2, argv + argc});
  return rangescope::cli::run_app(argc, argv);
}
