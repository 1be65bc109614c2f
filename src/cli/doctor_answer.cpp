#include "cli/doctor_answer.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/units.hpp"
#include "cli/app.hpp"
#include "cli/present.hpp"
#include "doctor/causes.hpp"
#include "report/findings.hpp"
#include "report/sink.hpp"
#include "report/view.hpp"

namespace rangescope::cli {
namespace {

using model::Verdict;

std::size_t count(const DoctorAnswer& answer, Verdict verdict) {
  return static_cast<std::size_t>(std::count_if(answer.findings.begin(), answer.findings.end(),
                                                [&](const auto& finding) { return finding.verdict == verdict; }));
}

Verdict worst(const DoctorAnswer& answer) {
  return count(answer, Verdict::kFail) ? Verdict::kFail : count(answer, Verdict::kWarn) ? Verdict::kWarn : Verdict::kOk;
}

void write_json(const DoctorAnswer& answer, report::Sink& sink) {
  report::JsonWriter json(sink);
  json.open_object();
  json.field("schema", "rangescope.doctor/1");
  json.field("asked", answer.asked);
  json.field("verdict", model::verdict_name(worst(answer)));
  report::write_findings(json, answer.findings);
  if (answer.command) json.field("command", *answer.command);
  if (answer.more_json) answer.more_json(json);
  json.close();
  json.finish();
}

void write_text(const DoctorAnswer& answer, bool color, report::Sink& sink) {
  for (const model::Finding& finding : answer.findings) sink.write(report::finding_text(finding, color));
  sink.write(answer.more_text);
  const std::size_t failed = count(answer, Verdict::kFail), warned = count(answer, Verdict::kWarn);
  if (failed + warned == 0)
    sink.write("nothing to complain of\n");
  else
    sink.write(base::counted(failed, "failure") + ", " + base::counted(warned, "warning") + "\n");
  if (answer.command) sink.write(*answer.command + "\n");
}

}  // namespace

int answer(const DoctorAnswer& told, bool json) {
  report::DescriptorSink sink(STDOUT_FILENO, "standard output");
  if (json)
    write_json(told, sink);
  else
    write_text(told, style_on(STDOUT_FILENO, {}).color, sink);
  if (auto written = sink.finish(); !written) return say(written.error());
  return doctor::exit_code_of(told.findings);
}

}  // namespace rangescope::cli
