// What a person names on the command line of compare, gate and baseline, as runs to compare.
#pragma once

#include <string>

#include "base/result.hpp"
#include "model/digest.hpp"

namespace rangescope::profile {

struct SideOptions {
  std::string root;  ///< folder of the runs
  std::string nsys;  ///< to export .nsys-rep with, "" looks for one
  int threads = 0;
};

/// A run (directory, name, `latest`; repetitions where it was made with --repeat), a folder of runs or of report.json
/// files, a report.json, a baseline, or a capture of any format. kNoInput, kBadData, kNothingCaptured as of the
/// readers.
[[nodiscard]] base::Result<model::Side> load_side(const std::string& said, const SideOptions& options);

}  // namespace rangescope::profile
