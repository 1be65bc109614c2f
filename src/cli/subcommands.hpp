// The makers of all subcommands; each stands in its cmd_*.cpp.
#pragma once

#include <memory>

#include "cli/subcommand.hpp"
#include "profile/digests.hpp"

namespace rangescope::cli {

[[nodiscard]] std::unique_ptr<Subcommand> make_profile();
[[nodiscard]] std::unique_ptr<Subcommand> make_report();
/// One whose digests are merged so (rangescope-mpi).
[[nodiscard]] std::unique_ptr<Subcommand> make_report(profile::MergeRuns merge);
[[nodiscard]] std::unique_ptr<Subcommand> make_compare();
[[nodiscard]] std::unique_ptr<Subcommand> make_gate();
[[nodiscard]] std::unique_ptr<Subcommand> make_query();
[[nodiscard]] std::unique_ptr<Subcommand> make_export();
[[nodiscard]] std::unique_ptr<Subcommand> make_runs();
[[nodiscard]] std::unique_ptr<Subcommand> make_config();
[[nodiscard]] std::unique_ptr<Subcommand> make_ncu();
[[nodiscard]] std::unique_ptr<Subcommand> make_metrics();
[[nodiscard]] std::unique_ptr<Subcommand> make_doctor();
[[nodiscard]] std::unique_ptr<Subcommand> make_mcp();
[[nodiscard]] std::unique_ptr<Subcommand> make_help();

}  // namespace rangescope::cli
