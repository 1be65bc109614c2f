#include "base/removed.hpp"

#include <algorithm>

#include "base/embedded.hpp"
#include "base/text.hpp"

RANGESCOPE_EMBED(removed, RANGESCOPE_TSV);

namespace rangescope::base {

std::string removal_hint(std::string_view written) {
  for (const auto& [spellings, instead] : rows<2>(rangescope_removed))
    if (std::ranges::count(split(spellings, ','), written) > 0)
      return std::string(written) + " was removed: " + std::string(instead);
  return {};
}

}  // namespace rangescope::base
