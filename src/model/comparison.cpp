#include "model/comparison.hpp"

namespace rangescope::model {

std::string_view standing_name(Standing standing) {
  switch (standing) {
    case Standing::kUntested: return "untested";
    case Standing::kNoise: return "noise";
    case Standing::kMore: return "more";
    case Standing::kLess: return "less";
  }
  return "";
}

}  // namespace rangescope::model
