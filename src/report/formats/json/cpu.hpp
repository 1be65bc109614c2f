// What a region's threads did on the CPU, as an object.
#pragma once

#include <string_view>

#include "model/report.hpp"
#include "report/document/json_writer.hpp"

namespace rangescope::report {

/// Nothing where the CPU was not sampled.
void write_json_cpu(JsonWriter& json, std::string_view name, const base::Held<model::CpuWork>& work);

}  // namespace rangescope::report
