// What `rangescope doctor -- program` prints in addition to its findings: every selected range, and
// every way to measure.
#pragma once

#include <span>
#include <string>

#include "doctor/program/advice.hpp"
#include "doctor/program/program.hpp"
#include "report/document/json_writer.hpp"

namespace rangescope::cli {

/// For people.
[[nodiscard]] std::string program_text(const doctor::ProgramLook& look,
                                       std::span<const doctor::Way> ways);
/// The keys "program", "ranges" and "ways" of rangescope.doctor/1 (docs/formats/doctor-json.md).
void write_program(report::JsonWriter& json,
                   const doctor::ProgramLook& look,
                   std::span<const doctor::Way> ways);

}  // namespace rangescope::cli
