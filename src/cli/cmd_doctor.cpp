#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/fs.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "cli/destination.hpp"
#include "cli/print/doctor_program.hpp"
#include "cli/subcommand.hpp"
#include "collect/nsight/explain/explain.hpp"
#include "collect/nsight/explain/line.hpp"
#include "collect/nsight/outcome.hpp"
#include "collect/nsight/tools.hpp"
#include "config/compose.hpp"
#include "doctor/causes.hpp"
#include "doctor/machine/checks.hpp"
#include "doctor/program/advice.hpp"
#include "profile/look.hpp"
#include "report/document/findings.hpp"
#include "report/exporter.hpp"
#include "report/sink.hpp"
#include "runs/layout.hpp"
#include "sample/cpu/recorder.hpp"

namespace rangescope::cli {
namespace {

/// About this machine, a command line, a program or a log.
struct Answer {
  std::string_view subject;  ///< "machine", "command", "program", "log"
  std::vector<model::Finding> findings;
  std::optional<std::string> corrected =
      {};  ///< the command line that was meant; the last line for people
  const doctor::ProgramLook* program =
      nullptr;  ///< what was seen of a program, with every way to measure it
  std::span<const doctor::Way> ways = {};
};

doctor::CpuSamplingSeen cpu_sampling_here() {
  const auto allowed = sample::cpu::allowed();
  if (!allowed)
    return {allowed.error().what, allowed.error().hint};
  return {{}, {}, allowed->kernel, allowed->switches};
}

/// `runs`: folder of the runs, whose room on the disk is asked for.
Answer machine_answer(const std::filesystem::path& runs) {
  doctor::MachineSources sources = doctor::this_machine();
  sources.runs = runs;
  doctor::MachineFacts facts = doctor::gather_machine(sources);
  facts.cpu_sampling = cpu_sampling_here();
  return {"machine", doctor::run_checks(doctor::kMachineChecks, facts)};
}

/// Nothing on the line is run; the tool that it names is asked what it can do, where it is
/// installed, else the newest version that is known. kUsage for a line that names no tool.
base::Result<Answer> command_answer(const std::string& command) {
  auto named = TRY(collect::command::named_tool(command));
  collect::ToolSearch search = collect::tool_search();
  // The executable of the line itself where it names one, else whatever this shell would find.
  if (named.executable.find('/') != std::string::npos)
    search.configured = named.executable;
  auto tool = collect::probe_tool(named.tool, search);
  if (!tool && !search.configured.empty()) {
    search.configured.clear();
    tool = collect::probe_tool(named.tool, search);
  }
  collect::command::ExplainOptions options;
  options.environment = search.environment;
  if (tool) {
    if (named.tool == "ncu" && command.find("--metrics") != std::string::npos)
      collect::probe_metrics(*tool, search);
    options.tool = &*tool;
  }
  auto newest = base::Result<collect::Abilities>();
  if (!tool)
    if (const auto conf = config::shipped_folder())
      if (newest = collect::newest_known(named.tool, *conf / "tools"); newest)
        options.tool = &*newest;
  auto line = TRY(collect::command::explain(command, options));
  model::Finding basis;
  if (tool)
    basis = doctor::well("checked against " + named.tool + " " + to_string(tool->version) + " at " +
                         tool->path.string());
  else if (options.tool != nullptr)
    basis = doctor::well("no " + named.tool + " was found here; checked against " + named.tool +
                         " " + to_string(newest->version) + ", the newest version that is known");
  else
    basis = doctor::skipped("no " + named.tool +
                            " was found here, so options, sets and values that depend on its "
                            "version were not checked");
  basis.id = "command.version";
  basis.question = "Which version was the command checked against?";
  Answer answer{"command", {std::move(basis)}, std::move(line.corrected)};
  for (model::Finding& finding : line.findings)
    answer.findings.push_back(doctor::explained(std::move(finding)));
  return answer;
}

/// Does the line run a tool, or does it talk about one ("ncu command failed!")? A command has an
/// option, a path or a file, one of nsys's verbs, or a launcher behind the tool.
bool is_command(std::string_view line) {
  constexpr std::string_view kWords[] = {"profile",
                                         "launch",
                                         "start",
                                         "stop",
                                         "stats",
                                         "export",
                                         "analyze",
                                         "python",
                                         "python3",
                                         "mpirun",
                                         "mpiexec",
                                         "srun",
                                         "torchrun",
                                         "bash"};
  bool is_first = true;
  for (const std::string_view word : base::split(line, ' ')) {
    if (std::exchange(is_first, false) || word.empty())
      continue;
    const bool has_dot_inside = word.find('.') != std::string_view::npos && !word.ends_with('.');
    if (word.front() == '-' || word.find('/') != std::string_view::npos || has_dot_inside)
      return true;
    if (std::ranges::find(kWords, word) != std::end(kWords))
      return true;
  }
  return false;
}

bool runs_tool(std::string_view line) {
  return line.starts_with("ncu ") || line.starts_with("nsys ") || line.starts_with("sudo ");
}

/// The line without a shell's prompt in front of a tool: "user@host$ ncu ...", "+ nsys ...".
std::string_view without_prompt(std::string_view line) {
  constexpr std::size_t kLongestPrompt = 60;
  for (const std::string_view prompt : {"$ ", "# ", "+ ", "> "}) {
    const auto prompt_begin = line.find(prompt);
    if (prompt_begin == std::string_view::npos || prompt_begin >= kLongestPrompt)
      continue;
    const std::string_view rest = base::trim(line.substr(prompt_begin + prompt.size()));
    if (runs_tool(rest))
      line = rest;
  }
  return line;
}

/// The first line of a log that runs nsys or ncu, behind a prompt or `+ `; "" where none does.
std::string line_in(std::string_view log) {
  for (const std::string_view raw : base::split(log, '\n')) {
    std::string_view line = base::trim(raw);
    if (line.starts_with("==") || line.size() > 4000)
      continue;
    line = without_prompt(line);
    if (runs_tool(line) && is_command(line) && collect::command::named_tool(line))
      return std::string(line);
  }
  return {};
}

/// The line with what would mend it.
std::string mended(const std::string& line, const collect::Complaint& cause) {
  auto shell = collect::command::split_shell(line);
  if (!shell || cause.option.empty())
    return {};
  auto parsed = collect::command::parse_line(*shell, nullptr);
  if (!parsed || !cause.id.starts_with(parsed->tool + "."))
    return {};
  parsed->set(cause.option, cause.value);
  return parsed->text();
}

/// What a log says of nsys, ncu, CUDA or PyTorch. `line`: the command line that was run; "" to look
/// for it in the log. kBadData if nothing in the log is understood.
base::Result<Answer> log_answer(std::string_view log, const std::string& line) {
  const auto log_findings = collect::read_log(log);
  std::string run = line;
  if (run.empty())
    run = line_in(log);
  Answer answer{"log", {}};
  std::string corrected;
  if (!run.empty()) {
    auto explained = command_answer(run);
    if (!explained && !line.empty())
      return explained;
    if (explained) {
      answer.findings = std::move(explained->findings);
      corrected = explained->corrected.value_or("");
    }
  }
  std::vector<model::Finding> found;
  for (const collect::Complaint& cause : log_findings) {
    const auto grade = found.empty() ? model::Grade::kFail : model::Grade::kWarn;
    model::Finding finding = doctor::finding_of(cause.id, grade, cause.explanation, cause.cure);
    finding.question = "What does the log show?";
    finding.why = cause.evidence;
    if (!corrected.empty())
      if (const std::string better = mended(corrected, cause); !better.empty()) {
        corrected = better;
        finding.commands = {better};
      }
    found.push_back(std::move(finding));
  }
  const bool line_wrong =
      std::any_of(answer.findings.begin(), answer.findings.end(), [](const model::Finding& each) {
        return each.verdict == model::Grade::kFail || each.verdict == model::Grade::kWarn;
      });
  if (found.empty() && run.empty())
    return base::fail(
        base::Code::kBadData,
        "it contains no known message of nsys, ncu, CUDA or PyTorch",
        {},
        "Save the tool's standard output and standard error: ncu ... ./app > log 2>&1");
  // A tool that only says that nothing matched: the line says why.
  const bool empty = !found.empty() && (found.front().id == "ncu.nothing_matched" ||
                                        found.front().id == "ncu.only_start_end" ||
                                        found.front().id == "nsys.never_started");
  if (empty && line_wrong)
    answer.findings.insert(answer.findings.end(), found.begin(), found.end());
  else
    answer.findings.insert(answer.findings.begin(), found.begin(), found.end());
  if (!corrected.empty())
    answer.corrected = corrected;
  return answer;
}

// What `rangescope doctor` prints, whatever it was asked: findings, for people or as one object of
// rangescope.doctor/1.

using model::Grade;

std::size_t count(const Answer& answer, Grade verdict) {
  return static_cast<std::size_t>(
      std::count_if(answer.findings.begin(), answer.findings.end(), [&](const auto& finding) {
        return finding.verdict == verdict;
      }));
}

Grade worst(const Answer& answer) {
  if (count(answer, Grade::kFail) > 0)
    return Grade::kFail;
  if (count(answer, Grade::kWarn) > 0)
    return Grade::kWarn;
  return Grade::kOk;
}

void write_json(const Answer& answer, report::Sink& sink) {
  report::JsonWriter json(sink);
  json.open_object();
  json.field("schema", "rangescope.doctor/1");
  json.field("asked", answer.subject);
  json.field("verdict", model::verdict_name(worst(answer)));
  report::write_findings(json, answer.findings);
  if (answer.corrected)
    json.field("command", *answer.corrected);
  if (answer.program != nullptr)
    write_program(json, *answer.program, answer.ways);
  json.close();
  json.finish();
}

void write_text(const Answer& answer, bool color, report::Sink& sink) {
  for (const model::Finding& finding : answer.findings)
    sink.write(report::finding_text(finding, color));
  if (answer.program != nullptr)
    sink.write(program_text(*answer.program, answer.ways));
  const std::size_t failed = count(answer, Grade::kFail), warned = count(answer, Grade::kWarn);
  if (failed + warned == 0)
    sink.write("No problems found\n");
  else
    sink.write(base::counted(failed, "failure") + ", " + base::counted(warned, "warning") + "\n");
  if (answer.corrected)
    sink.write(*answer.corrected + "\n");
}

base::Result<int> print_answer(const Answer& answer, bool json) {
  report::DescriptorSink sink(STDOUT_FILENO, "standard output");
  if (json)
    write_json(answer, sink);
  else
    write_text(answer, style_on(STDOUT_FILENO, {}).color, sink);
  TRY(sink.finish());
  return doctor::exit_code_of(answer.findings);
}

class Doctor final : public Subcommand {
 public:
  Doctor() : Subcommand("doctor", true) {}

  void options(const Arguments& app) override {
    app_ = app;
    app.prefix_command();  // the words behind --explain ncu ... are not ours
    app.add_flag("--explain", explain_);
    app.add_flag("--json", json_);
    app.add_flag("--causes", causes_);
    app.add_option("--runs", runs_);
    bind_look(app, look_);
    bind_kernels(app.under("Program"), look_.kernels);
  }

  [[nodiscard]] base::Result<int> run() override {
    if (causes_) {
      print(doctor::causes_page());
      return 0;
    }
    std::vector<std::string> words = app_.remaining();
    if (explain_)
      return explain(std::move(words));
    std::error_code ignored;
    const auto file = [&](const std::string& word) {
      return word == "-" || word.find_first_of("./") != std::string::npos ||
             std::filesystem::exists(word, ignored);
    };
    if (!words.empty() && !words.front().starts_with("--") && file(words.front()))
      return read_log(std::move(words));
    if (!words.empty())
      return tl::make_unexpected(unknown_argument(app_.app(), name()));
    if (!program_.empty())
      return look_at_it();
    if (!look_.ranges.empty() || !look_.kernels.empty())
      return base::fail(base::Code::kUsage,
                        "no program was given",
                        {},
                        "Put it after --: rangescope doctor --include decode/ -- ./app");
    return print_answer(machine_answer(runs_), json_);
  }

 private:
  [[nodiscard]] base::Result<int> look_at_it() {
    look_.command = program_;
    const auto look = TRY(profile::look_at_program(look_));
    const auto ways = doctor::ways(look, profile::tools_here());
    return print_answer({"program", doctor::diagnose(look), {}, &look, ways}, json_);
  }

  [[nodiscard]] base::Result<int> read_log(std::vector<std::string> words) {
    const std::string file = words.front();
    words.erase(words.begin());
    if (std::erase(words, "--json") > 0)
      json_ = true;
    std::string next_word;
    if (!words.empty())
      next_word = words.front();
    else if (!program_.empty())
      next_word = "--";
    const bool has_line = next_word == "--explain";
    const bool is_alone = words.empty() && program_.empty();
    if (!is_alone && !has_line)
      return base::fail(base::Code::kUsage,
                        "a log and '" + base::printable(next_word) + "'",
                        {},
                        "Give the log alone, or the command line after --explain");
    std::string command;
    if (has_line) {
      words.erase(words.begin());
      command = TRY(line_to_explain(std::move(words)));
    }
    auto text = TRY(base::read_file(file == "-" ? "/dev/stdin" : file));
    const auto answer = TRY(log_answer(text, command));
    return print_answer(answer, json_);
  }

  /// What stands behind --explain: one argument with a whole line in it, or the words of one; `--`
  /// may stand before them or within.
  [[nodiscard]] base::Result<std::string> line_to_explain(std::vector<std::string> words) const {
    if (!words.empty() && !program_.empty())
      words.emplace_back("--");
    words.insert(words.end(), program_.begin(), program_.end());
    if (words.empty())
      return base::fail(base::Code::kUsage,
                        "there is no command line to explain",
                        "--explain",
                        "Write it after --explain, in quotes: rangescope doctor --explain 'ncu "
                        "--set full ./app'");
    const bool is_whole_line = words.front().find_first_of(" \t\n") != std::string::npos;
    if (!is_whole_line)
      return base::shell_quote(words);
    if (words.size() > 1)
      return base::fail(base::Code::kUsage,
                        "unexpected argument '" + base::printable(words[1]) + "'",
                        "--explain",
                        "Put options of the doctor before --explain");
    return words.front();
  }

  [[nodiscard]] base::Result<int> explain(std::vector<std::string> words) {
    if (!words.empty() && words.front().starts_with("-"))
      return tl::make_unexpected(unknown_argument(app_.app(), name()));
    const std::string line = TRY(line_to_explain(std::move(words)));
    const auto answer = TRY(command_answer(line));
    return print_answer(answer, json_);
  }

  Arguments app_;  // its options live as long as run()
  bool explain_ = false;
  profile::LookRequest look_;
  bool json_ = false, causes_ = false;
  std::string runs_{runs::kDefaultRoot};
};

}  // namespace

std::unique_ptr<Subcommand> make_doctor() {
  return std::make_unique<Doctor>();
}

}  // namespace rangescope::cli
