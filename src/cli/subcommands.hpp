// The makers of all subcommands; each stands in its cmd_*.cpp.
#pragma once

#include <memory>

#include "cli/subcommand.hpp"
#include "profile/digests.hpp"

namespace rangescope::cli {

[[nodiscard]] std::unique_ptr<Subcommand> make_profile();
[[nodiscard]] std::unique_ptr<Subcommand> make_watch();
[[nodiscard]] std::unique_ptr<Subcommand> make_report();
/// One whose digests are merged so (rangescope-mpi).
[[nodiscard]] std::unique_ptr<Subcommand> make_report(profile::MergeRuns merge);
[[nodiscard]] std::unique_ptr<Subcommand> make_compare();
[[nodiscard]] std::unique_ptr<Subcommand> make_gate();
[[nodiscard]] std::unique_ptr<Subcommand> make_baseline();
[[nodiscard]] std::unique_ptr<Subcommand> make_query();
[[nodiscard]] std::unique_ptr<Subcommand> make_export();
[[nodiscard]] std::unique_ptr<Subcommand> make_import();
[[nodiscard]] std::unique_ptr<Subcommand> make_runs();
[[nodiscard]] std::unique_ptr<Subcommand> make_config();
[[nodiscard]] std::unique_ptr<Subcommand> make_ncu();
[[nodiscard]] std::unique_ptr<Subcommand> make_metrics();
[[nodiscard]] std::unique_ptr<Subcommand> make_plan();
[[nodiscard]] std::unique_ptr<Subcommand> make_calibrate();
[[nodiscard]] std::unique_ptr<Subcommand> make_doctor();
[[nodiscard]] std::unique_ptr<Subcommand> make_init();
[[nodiscard]] std::unique_ptr<Subcommand> make_help();
[[nodiscard]] std::unique_ptr<Subcommand> make_version();

}  // namespace rangescope::cli
