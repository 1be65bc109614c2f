// What the gate says: lines for people, JSON, JUnit XML for build servers, Markdown for a pull request.
#pragma once

#include "model/gate.hpp"
#include "report/exporter.hpp"

namespace rangescope::report {

void write_gate_table(const model::Gate& gate, const Style& style, Sink& sink);
void write_gate_json(const model::Gate& gate, Sink& sink);
void write_gate_junit(const model::Gate& gate, Sink& sink);
void write_gate_markdown(const model::Gate& gate, Sink& sink);

}  // namespace rangescope::report
