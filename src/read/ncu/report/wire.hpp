// Protobuf messages of a report.
#pragma once

#include "read/ncu/report/file.hpp"
#include "read/protobuf.hpp"

namespace rangescope::read::ncu_report::proto {

using namespace read::proto;

/// A metric's value: one of 1 string, 2 float, 3 double, 4 uint32, 5 uint64.
[[nodiscard]] Value read_value(std::string_view message, std::uint64_t& unknown);

}  // namespace rangescope::read::ncu_report::proto
