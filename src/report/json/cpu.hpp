// What a region's threads did on the CPU, as an object "cpu".
#pragma once

#include <optional>

#include "model/report.hpp"
#include "report/json_writer.hpp"

namespace rangescope::report {

/// Nothing where the CPU was not sampled.
void write_json_cpu(JsonWriter& json, const std::optional<model::CpuWork>& work);

}  // namespace rangescope::report
