// The JSON report's `ranks`, `collectives` and `messages`.
#pragma once

#include "model/report.hpp"
#include "report/document/json_writer.hpp"

namespace rangescope::report {

/// Nothing where no launcher said which process is which.
void write_json_job(const model::Report& report, JsonWriter& json);

}  // namespace rangescope::report
