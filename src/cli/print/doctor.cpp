#include "cli/print/doctor.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "cli/print/doctor_program.hpp"
#include "report/document/findings.hpp"

namespace rangescope::cli {
namespace {

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
  json.field("schema", "rangescope.doctor/1");
  json.field("asked", answer.asked);
  json.field("verdict", model::verdict_name(worst(answer)));
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

}  // namespace

void print_doctor(const doctor::Answer& answer, bool json, bool color, report::Sink& sink) {
  json ? write_json(answer, sink) : write_text(answer, color, sink);
}

}  // namespace rangescope::cli
