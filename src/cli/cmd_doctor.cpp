#include <unistd.h>

#include <algorithm>

#include "base/fs.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "cli/destination.hpp"
#include "cli/print/doctor_program.hpp"
#include "cli/subcommand.hpp"
#include "doctor/answer.hpp"
#include "doctor/causes.hpp"
#include "profile/answers.hpp"
#include "profile/look.hpp"
#include "report/document/findings.hpp"
#include "report/exporter.hpp"
#include "report/sink.hpp"
#include "runs/layout.hpp"

namespace rangescope::cli {
namespace {

// What `rangescope doctor` prints, whatever it was asked: findings, for people or as one object of rangescope.doctor/1.

using model::Grade;

std::size_t count(const doctor::Answer& answer, Grade verdict) {
  return static_cast<std::size_t>(std::count_if(answer.findings.begin(), answer.findings.end(),
                                                [&](const auto& finding) { return finding.verdict == verdict; }));
}

Grade worst(const doctor::Answer& answer) {
  return count(answer, Grade::kFail) ? Grade::kFail : count(answer, Grade::kWarn) ? Grade::kWarn : Grade::kOk;
}

void write_json(const doctor::Answer& answer, report::Sink& sink) {
  report::JsonWriter json(sink);
  json.open_object();
  json.fields("schema", "rangescope.doctor/1", "asked", answer.asked, "verdict", model::verdict_name(worst(answer)));
  report::write_findings(json, answer.findings);
  if (answer.corrected) json.field("command", *answer.corrected);
  if (answer.program != nullptr) write_program(json, *answer.program, answer.ways);
  json.close();
  json.finish();
}

void write_text(const doctor::Answer& answer, bool color, report::Sink& sink) {
  for (const model::Finding& finding : answer.findings) sink.write(report::finding_text(finding, color));
  if (answer.program != nullptr) sink.write(program_text(*answer.program, answer.ways));
  const std::size_t failed = count(answer, Grade::kFail), warned = count(answer, Grade::kWarn);
  if (failed + warned == 0)
    sink.write("No problems found\n");
  else
    sink.write(base::counted(failed, "failure") + ", " + base::counted(warned, "warning") + "\n");
  if (answer.corrected) sink.write(*answer.corrected + "\n");
}

base::Result<int> print_answer(const doctor::Answer& answer, bool json) {
  report::DescriptorSink sink(STDOUT_FILENO, "standard output");
  json ? write_json(answer, sink) : write_text(answer, style_on(STDOUT_FILENO, {}).color, sink);
  TRY(sink.finish());
  return doctor::exit_code_of(answer.findings);
}

class Doctor final : public Subcommand {
 public:
  Doctor() : Subcommand("doctor") {}
  [[nodiscard]] bool takes_program() const override { return true; }
  void set_program(std::vector<std::string> argv) override { program_ = std::move(argv); }

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
    if (explain_) return explain(std::move(words));
    std::error_code ignored;
    const auto file = [&](const std::string& word) {
      return word == "-" || word.find_first_of("./") != std::string::npos || std::filesystem::exists(word, ignored);
    };
    if (!words.empty() && !words.front().starts_with("--") && file(words.front())) return read_log(std::move(words));
    if (!words.empty()) return tl::make_unexpected(unknown_argument(app_.app(), name()));
    if (!program_.empty()) return look_at_it();
    if (!look_.ranges.empty() || !look_.kernels.empty())
      return base::fail(base::Code::kUsage, "there is no program to look at", {},
                        "Put it behind --: rangescope doctor --include decode/ -- ./app");
    return print_answer(profile::machine_answer(runs_), json_);
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
    if (std::erase(words, "--json") > 0) json_ = true;
    const bool line = !words.empty() && words.front() == "--explain";
    if ((!words.empty() && !line) || (!program_.empty() && !line))
      return base::fail(base::Code::kUsage, "a log and '" + base::printable(words.empty() ? "--" : words.front()) + "'",
                        {}, "Give the log alone, or the line that was run behind --explain");
    if (line) words.erase(words.begin());
    auto text = TRY(base::read_file(file == "-" ? "/dev/stdin" : file));
    const bool whole = words.size() == 1;
    const auto answer = TRY(profile::log_answer(text, words.empty() ? ""
                                                      : whole       ? words.front()
                                                                    : base::shell_quote(words)));
    return print_answer(answer, json_);
  }

  // One argument with a whole line in it, or the words of one; `--` may stand before them or within.
  [[nodiscard]] base::Result<int> explain(std::vector<std::string> words) {
    if (!words.empty() && words.front().starts_with("-"))
      return tl::make_unexpected(unknown_argument(app_.app(), name()));
    if (!words.empty() && !program_.empty()) words.emplace_back("--");
    words.insert(words.end(), program_.begin(), program_.end());
    if (words.empty())
      return base::fail(base::Code::kUsage, "there is no command line to explain", "--explain",
                        "Write it behind --explain, in quotes: rangescope doctor --explain 'ncu --set full ./app'");
    const bool whole = words.front().find_first_of(" \t\n") != std::string::npos;
    if (whole && words.size() > 1)
      return base::fail(base::Code::kUsage, "unexpected argument '" + base::printable(words[1]) + "'", "--explain",
                        "Put options of the doctor before --explain");
    const auto answer = TRY(profile::command_answer(whole ? words.front() : base::shell_quote(words)));
    return print_answer(answer, json_);
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
