// Reads a command line of ncu or nsys without running it, reports its mistakes and corrects them.
//
// What an installed tool can do is taken from its own help (Abilities), never guessed from its
// version; without an installed tool, only rules that apply to every version are used. A correct
// line has no findings, nor has a corrected one. A finding has the id of a cause; the catalogue
// (conf/doctor/command.yaml) explains the cause and has the cure for findings without a hint.
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
  std::vector<model::Finding> findings;  ///< the mistakes, as they were found
  std::optional<std::string>
      corrected;  ///< the line to run; absent if it is unknown what was meant
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
