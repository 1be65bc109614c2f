#include "model/peaks.hpp"

namespace rangescope::model {

const Peaks* find_peaks(std::span<const Peaks> all, std::string_view device_name) {
  const Peaks* best = nullptr;
  std::size_t longest = 0;
  for (const Peaks& candidate : all) {
    for (const std::string& match : candidate.match) {
      if (match.size() > longest && device_name.find(match) != std::string_view::npos) {
        best = &candidate;
        longest = match.size();
      }
    }
  }
  return best;
}

}  // namespace rangescope::model
