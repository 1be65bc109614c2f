#include "cli/explain_answer.hpp"

#include "cli/app.hpp"
#include "cli/doctor_answer.hpp"
#include "collect/tools.hpp"
#include "doctor/causes.hpp"
#include "doctor/command/explain.hpp"

namespace rangescope::cli {

int explain_answer(const std::string& command, bool json) {
  const auto named = doctor::named_tool(command);
  if (!named) return say(named.error());
  collect::ToolSearch search = collect::tool_search();
  // The executable of the line itself where it names one, else whatever this shell would find.
  if (named->executable.find('/') != std::string::npos) search.configured = named->executable;
  auto tool = collect::probe_tool(named->tool, search);
  if (!tool && !search.configured.empty()) {
    search.configured.clear();
    tool = collect::probe_tool(named->tool, search);
  }
  doctor::ExplainOptions options;
  options.environment = search.environment;
  if (tool) {
    if (named->tool == "ncu" && command.find("--metrics") != std::string::npos) collect::probe_metrics(*tool, search);
    options.tool = &*tool;
  }
  auto explained = doctor::explain(command, options);
  if (!explained) return say(explained.error());
  DoctorAnswer told;
  told.asked = "command";
  model::Finding basis =
      tool ? doctor::well("held against " + named->tool + " " + to_string(tool->version) + " at " + tool->path.string())
           : doctor::skipped("no " + named->tool +
                             " was found here, so options, sets and values that depend on its version "
                             "were not judged");
  basis.id = "command.version";
  basis.question = "Which version was the line held against?";
  told.findings.push_back(std::move(basis));
  told.findings.insert(told.findings.end(), explained->findings.begin(), explained->findings.end());
  told.command = explained->corrected;
  return answer(told, json);
}

}  // namespace rangescope::cli
