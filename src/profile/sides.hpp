// What a person names on the command line of compare, gate and baseline, as runs to compare.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.hpp"
#include "model/digest.hpp"
#include "runs/layout.hpp"

namespace rangescope::profile {

struct SideOptions {
  std::string root{runs::kDefaultRoot};  ///< folder of the runs
  std::string nsys;                      ///< to export .nsys-rep with, "" looks for one
  int threads = 0;
};

/// A push in a team's store, postgresql://host/database#RUN (runs/store.hpp), a run (directory,
/// name, `latest`; repetitions where it was made with --repeat), a folder of runs or of report.json
/// files, a report.json, a baseline, or a capture of any format. kNoInput, kBadData,
/// kNothingCaptured as of the readers.
[[nodiscard]] base::Result<model::Side> load_side(const std::string& written,
                                                  const SideOptions& options);

/// The newest push in a store, of the name or commit behind '#', that can be the baseline of `now`.
[[nodiscard]] base::Result<model::Side> load_stored(const std::string& written,
                                                    const std::vector<model::Digest>* now);
/// As load_side(), and a job as one run; labelled as a store is to call it.
[[nodiscard]] base::Result<model::Side> load_pushed(const std::string& written,
                                                    const SideOptions& options);

/// Keeps them as the baseline `name` in `folder`: its file. kNotComparable for runs that are not of
/// one program on one machine, or that failed.
[[nodiscard]] base::Result<std::filesystem::path> save_baseline(const std::filesystem::path& folder,
                                                                const std::string& name,
                                                                model::Side side);

}  // namespace rangescope::profile
