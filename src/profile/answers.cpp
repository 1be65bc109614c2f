#include "profile/answers.hpp"

#include "collect/tools.hpp"
#include "config/compose.hpp"
#include "doctor/causes.hpp"
#include "doctor/command/explain.hpp"
#include "doctor/machine/checks.hpp"
#include "doctor/machine/facts.hpp"
#include "doctor/probe.hpp"
#include "sample/cpu/recorder.hpp"

namespace rangescope::profile {

pages::DoctorAnswer machine_answer(const std::filesystem::path& runs) {
  doctor::MachineSources sources = doctor::this_machine();
  sources.runs = runs;
  doctor::MachineFacts facts = doctor::gather_machine(sources);
  const auto allowed = sample::cpu::allowed();
  facts.cpu_sampling = allowed ? doctor::CpuSamplingSeen{{}, {}, allowed->kernel, allowed->switches}
                               : doctor::CpuSamplingSeen{allowed.error().what, allowed.error().hint};
  doctor::Probe probe;
  probe.machine = &facts;
  return {"machine", doctor::run_checks(doctor::machine_checks(), probe)};
}

base::Result<pages::DoctorAnswer> command_answer(const std::string& command) {
  auto named = doctor::named_tool(command);
  if (!named) return base::fail(std::move(named));
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
  auto newest = base::Result<collect::Abilities>();
  if (!tool)
    if (const auto conf = config::shipped_folder())
      if (newest = collect::newest_known(named->tool, *conf / "tools"); newest) options.tool = &*newest;
  auto line = doctor::explain(command, options);
  if (!line) return base::fail(std::move(line));
  model::Finding basis =
      tool ? doctor::well("held against " + named->tool + " " + to_string(tool->version) + " at " + tool->path.string())
      : options.tool
          ? doctor::well("no " + named->tool + " was found here; held against " + named->tool + " " +
                         to_string(newest->version) + ", the newest version that is known")
          : doctor::skipped("no " + named->tool +
                            " was found here, so options, sets and values that depend on its version were not judged");
  basis.id = "command.version";
  basis.question = "Which version was the line held against?";
  pages::DoctorAnswer answer{"command", {std::move(basis)}, std::move(line->corrected)};
  std::move(line->findings.begin(), line->findings.end(), std::back_inserter(answer.findings));
  return answer;
}

}  // namespace rangescope::profile
