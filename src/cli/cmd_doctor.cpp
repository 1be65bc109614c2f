#include <unistd.h>

#include <cstdio>

#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "cli/destination.hpp"
#include "cli/subcommands.hpp"
#include "collect/tools.hpp"
#include "config/compose.hpp"
#include "doctor/causes.hpp"
#include "doctor/command/explain.hpp"
#include "doctor/machine/checks.hpp"
#include "doctor/machine/facts.hpp"
#include "doctor/probe.hpp"
#include "pages/doctor.hpp"
#include "profile/look.hpp"
#include "report/sink.hpp"
#include "runs/layout.hpp"
#include "sample/cpu/recorder.hpp"

namespace rangescope::cli {
namespace {

/// Nothing on the line is run; the tool that it names is asked what it can do, where it is installed.
base::Result<pages::DoctorAnswer> explained(const std::string& command) {
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

int print_answer(const pages::DoctorAnswer& answer, bool json) {
  report::DescriptorSink sink(STDOUT_FILENO, "standard output");
  pages::print_doctor(answer, json, style_on(STDOUT_FILENO, {}).color, sink);
  if (auto written = sink.finish(); !written) return say(written.error());
  return doctor::exit_code_of(answer.findings);
}

class Doctor final : public Subcommand {
 public:
  Doctor()
      : Subcommand(
            "doctor", "Say what is wrong, and what to do about it",
            "Looks at this machine: driver, GPUs, permissions, tools and their versions, the environment, limits. "
            "Each\n"
            "line is ok, warn, fail or skip, with what was found; below it what that means and what to do.\n\n"
            "  rangescope doctor\n"
            "  rangescope doctor --json\n\n"
            "With --explain, reads a command line of ncu or nsys without running it, names every mistake in it, and "
            "prints\n"
            "the line that was meant as the last one.\n\n"
            "  rangescope doctor --explain \"ncu --nvtx-include 'layer*/' --set brief ./app\"\n\n"
            "With a program behind --, looks at the program: it is run once under rangescope's own library, and every "
            "range\n"
            "that was meant is held against what was seen. Then: which ways of measuring work, with their command "
            "lines.\n\n"
            "  rangescope doctor --include decode/ -- python serve.py\n"
            "  rangescope doctor -- ./app\n\n"
            "The exit code is 0 unless something failed. docs/manual/causes.md lists every cause.") {}
  [[nodiscard]] bool takes_program() const override { return true; }
  void set_program(std::vector<std::string> argv) override { program_ = std::move(argv); }

  void options(const Arguments& app) override {
    app_ = app;
    app.prefix_command();  // the words behind --explain ncu ... are not ours
    app.add_flag("--explain", explain_, "Read the command line of ncu or nsys that follows, and run nothing");
    app.add_flag("--json", json_, "Answer with one JSON object");
    app.add_flag("--causes", causes_, "Print every cause that the doctor knows, as Markdown, and look at nothing");
    app.add_option("--runs", runs_, "Folder of the runs (rangescope-runs)").type_name("DIR");
    bind_look(app, look_);
    bind_kernels(app, look_.kernels, "Program");
  }

  [[nodiscard]] int run() override {
    if (causes_) {
      print(doctor::causes_page());
      return 0;
    }
    std::vector<std::string> words = app_.remaining();
    if (explain_) return explain(std::move(words));
    if (!words.empty()) return say(unknown_argument(app_.app(), name()));
    if (!program_.empty()) return look_at_it();
    if (!look_.ranges.empty() || !look_.kernels.empty())
      return say({base::Code::kUsage,
                  "there is no program to look at",
                  {},
                  "Put it behind --: rangescope doctor --include decode/ -- ./app"});
    doctor::MachineSources sources = doctor::this_machine();
    sources.runs = runs_;
    doctor::MachineFacts facts = doctor::gather_machine(sources);
    const auto allowed = sample::cpu::allowed();
    facts.cpu_sampling = allowed ? doctor::CpuSamplingSeen{{}, {}, allowed->kernel, allowed->switches}
                                 : doctor::CpuSamplingSeen{allowed.error().what, allowed.error().hint};
    doctor::Probe probe;
    probe.machine = &facts;
    return print_answer({"machine", doctor::run_checks(doctor::machine_checks(), probe)}, json_);
  }

 private:
  [[nodiscard]] int look_at_it() {
    look_.command = program_;
    const auto look = profile::look_at_program(look_);
    if (!look) return say(look.error());
    const auto ways = doctor::ways(*look, profile::tools_here());
    return print_answer({"program", doctor::diagnose(*look), {}, &*look, ways}, json_);
  }

  // One argument with a whole line in it, or the words of one; `--` may stand before them or within.
  [[nodiscard]] int explain(std::vector<std::string> words) {
    if (!words.empty() && words.front().starts_with("-")) return say(unknown_argument(app_.app(), name()));
    if (!words.empty() && !program_.empty()) words.emplace_back("--");
    words.insert(words.end(), program_.begin(), program_.end());
    if (words.empty())
      return say({base::Code::kUsage, "there is no command line to explain", "--explain",
                  "Write it behind --explain, in quotes: rangescope doctor --explain 'ncu --set full ./app'"});
    const bool whole = words.front().find_first_of(" \t\n") != std::string::npos;
    if (whole && words.size() > 1)
      return say({base::Code::kUsage, "unexpected argument '" + base::printable(words[1]) + "'", "--explain",
                  "Put options of the doctor before --explain"});
    const auto answer = explained(whole ? words.front() : base::shell_quote(words));
    return answer ? print_answer(*answer, json_) : say(answer.error());
  }

  Arguments app_;  // what it stands for lives as long as run() does
  std::vector<std::string> program_;
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
