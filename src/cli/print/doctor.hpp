// What `rangescope doctor` prints, whatever it was asked: findings, for people or as one object of rangescope.doctor/1.
#pragma once

#include "doctor/answer.hpp"
#include "report/exporter.hpp"

namespace rangescope::cli {

void print_doctor(const doctor::Answer& answer, bool json, bool color, report::Sink& sink);

}  // namespace rangescope::cli
