#include "profile/answers.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "collect/nsight/explain/explain.hpp"
#include "collect/nsight/explain/line.hpp"
#include "collect/nsight/outcome.hpp"
#include "collect/nsight/tools.hpp"
#include "config/compose.hpp"
#include "doctor/causes.hpp"
#include "doctor/machine/checks.hpp"
#include "sample/cpu/recorder.hpp"

namespace rangescope::profile {

doctor::Answer machine_answer(const std::filesystem::path& runs) {
  doctor::MachineSources sources = doctor::this_machine();
  sources.runs = runs;
  doctor::MachineFacts facts = doctor::gather_machine(sources);
  const auto allowed = sample::cpu::allowed();
  facts.cpu_sampling = allowed ? doctor::CpuSamplingSeen{{}, {}, allowed->kernel, allowed->switches}
                               : doctor::CpuSamplingSeen{allowed.error().what, allowed.error().hint};
  return {"machine", doctor::run_checks(doctor::kMachineChecks, facts)};
}

base::Result<doctor::Answer> command_answer(const std::string& command) {
  auto named = TRY(collect::command::named_tool(command));
  collect::ToolSearch search = collect::tool_search();
  // The executable of the line itself where it names one, else whatever this shell would find.
  if (named.executable.find('/') != std::string::npos) search.configured = named.executable;
  auto tool = collect::probe_tool(named.tool, search);
  if (!tool && !search.configured.empty()) {
    search.configured.clear();
    tool = collect::probe_tool(named.tool, search);
  }
  collect::command::ExplainOptions options;
  options.environment = search.environment;
  if (tool) {
    if (named.tool == "ncu" && command.find("--metrics") != std::string::npos) collect::probe_metrics(*tool, search);
    options.tool = &*tool;
  }
  auto newest = base::Result<collect::Abilities>();
  if (!tool)
    if (const auto conf = config::shipped_folder())
      if (newest = collect::newest_known(named.tool, *conf / "tools"); newest) options.tool = &*newest;
  auto line = TRY(collect::command::explain(command, options));
  model::Finding basis =
      tool ? doctor::well("held against " + named.tool + " " + to_string(tool->version) + " at " + tool->path.string())
      : options.tool
          ? doctor::well("no " + named.tool + " was found here; held against " + named.tool + " " +
                         to_string(newest->version) + ", the newest version that is known")
          : doctor::skipped("no " + named.tool +
                            " was found here, so options, sets and values that depend on its version were not judged");
  basis.id = "command.version";
  basis.question = "Which version was the line held against?";
  doctor::Answer answer{"command", {std::move(basis)}, std::move(line.corrected)};
  for (model::Finding& finding : line.findings) answer.findings.push_back(doctor::explained(std::move(finding)));
  return answer;
}

namespace {

/// The first line of a log that runs nsys or ncu, behind a prompt or `+ `; "" where none does.
std::string line_in(std::string_view log) {
  for (const std::string_view raw : base::split(log, '\n')) {
    std::string_view line = base::trim(raw);
    if (line.starts_with("==") || line.size() > 4000) continue;
    for (const std::string_view prompt : {"$ ", "# ", "+ ", "> "})
      if (const auto at = line.find(prompt); at != std::string_view::npos && at < 60)
        if (const std::string_view rest = base::trim(line.substr(at + 2));
            rest.starts_with("ncu ") || rest.starts_with("nsys ") || rest.starts_with("sudo "))
          line = rest;
    if (!line.starts_with("ncu ") && !line.starts_with("nsys ") && !line.starts_with("sudo ")) continue;
    if (collect::command::named_tool(line)) return std::string(line);
  }
  return {};
}

/// The line with what would mend it.
std::string mended(const std::string& line, const collect::Complaint& cause) {
  auto shell = collect::command::split_shell(line);
  if (!shell || cause.option.empty()) return {};
  auto parsed = collect::command::parse_line(*shell, nullptr);
  if (!parsed || !cause.id.starts_with(parsed->tool + ".")) return {};
  parsed->set(cause.option, cause.value);
  return parsed->text();
}

}  // namespace

base::Result<doctor::Answer> log_answer(std::string_view log, const std::string& line) {
  const auto said = collect::read_log(log);
  const std::string run = line.empty() ? line_in(log) : line;
  doctor::Answer answer{"log", {}};
  std::string corrected;
  if (!run.empty()) {
    auto explained = command_answer(run);
    if (!explained && !line.empty()) return explained;
    if (explained) {
      answer.findings = std::move(explained->findings);
      corrected = explained->corrected.value_or("");
    }
  }
  std::vector<model::Finding> found;
  for (const collect::Complaint& cause : said) {
    model::Finding finding = doctor::finding_of(cause.id, found.empty() ? model::Grade::kFail : model::Grade::kWarn,
                                                cause.explanation, cause.cure);
    finding.question = "What does the log say?";
    finding.why = cause.evidence;
    if (!corrected.empty())
      if (const std::string better = mended(corrected, cause); !better.empty()) {
        corrected = better;
        finding.commands = {better};
      }
    found.push_back(std::move(finding));
  }
  const bool line_wrong = std::any_of(answer.findings.begin(), answer.findings.end(), [](const model::Finding& each) {
    return each.verdict == model::Grade::kFail || each.verdict == model::Grade::kWarn;
  });
  if (found.empty() && run.empty())
    return base::fail(base::Code::kBadData, "nothing in it is known: no message of nsys, ncu, CUDA or PyTorch", {},
                      "Keep what the tool printed, standard output and error: ncu ... ./app > log 2>&1");
  // A tool that only says that nothing matched: the line says why.
  const bool empty =
      !found.empty() && (found.front().id == "ncu.nothing_matched" || found.front().id == "ncu.only_start_end" ||
                         found.front().id == "nsys.never_started");
  if (empty && line_wrong)
    answer.findings.insert(answer.findings.end(), found.begin(), found.end());
  else
    answer.findings.insert(answer.findings.begin(), found.begin(), found.end());
  if (!corrected.empty()) answer.corrected = corrected;
  return answer;
}

}  // namespace rangescope::profile
