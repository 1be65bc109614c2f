// Reads a command line of ncu or nsys without running it, names every mistake in it, and corrects
// them.
//
// What an installed tool can do is taken from its own help (Abilities), never guessed from its
// version; without an installed tool, only what holds for every version is judged. A correct line
// gets no complaint, and so does every corrected one. Findings bear the id of a cause; what it
// means, and its cure where a finding has no hint, are in the catalogue (conf/doctor/command.yaml).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "collect/nsight/abilities.hpp"
#include "model/finding.hpp"

namespace rangescope::collect::command {

struct ExplainOptions {
  const Abilities* tool =
      nullptr;  ///< of the tool that the line names; null where none is installed
  std::map<std::string, std::string> environment;  ///< of the shell that would run it
};

struct Explained {
  std::vector<model::Finding>
      findings;  ///< what is wrong, in the order in which it was found; empty: nothing is
  std::optional<std::string>
      corrected;  ///< runs as it is; absent where nobody can know what was meant
};

/// A command line as it was typed. kUsage where it is no line of ncu or nsys, or a quote is open.
[[nodiscard]] base::Result<Explained> explain(std::string_view command,
                                              const ExplainOptions& options);

/// The tool that a line names, "ncu" or "nsys", and as which executable; kUsage as above.
struct NamedTool {
  std::string tool, executable;
};
[[nodiscard]] base::Result<NamedTool> named_tool(std::string_view command);

}  // namespace rangescope::collect::command
