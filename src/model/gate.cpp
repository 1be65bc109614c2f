#include "model/gate.hpp"

namespace rangescope::model {

std::string_view gate_verdict_name(GateVerdict verdict) {
  switch (verdict) {
    case GateVerdict::kPassed: return "passed";
    case GateVerdict::kRegressed: return "regressed";
    case GateVerdict::kUndecided: return "undecided";
  }
  return "";
}

}  // namespace rangescope::model
