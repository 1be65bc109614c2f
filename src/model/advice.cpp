#include "model/advice.hpp"

#include <limits>
#include <string>

#include "base/embedded.hpp"
#include "base/text.hpp"

RANGESCOPE_EMBED(advice, RANGESCOPE_TSV);

namespace rangescope::model {

std::string advice_for(const Verdict& verdict) {
  if (!verdict.attempt.empty())
    return verdict.attempt;
  constexpr double kAny = std::numeric_limits<double>::infinity();
  const std::string in_lower_case = base::lower(verdict.path + " " + verdict.text);
  std::string advice;
  std::size_t first = std::string::npos;
  for (const auto& [kind, evidence, from, below, word, text] : base::rows<6>(rangescope_advice)) {
    if (verdict.kind != kind &&
        !(verdict.kind == "dominant_kernel" && verdict.evidence.contains(std::string(kind))))
      continue;
    const std::size_t place = in_lower_case.find(word);
    if (place == std::string::npos || (!advice.empty() && (word.empty() || place >= first)))
      continue;
    if (!evidence.empty()) {
      const auto found = verdict.evidence.find(std::string(evidence));
      if (found == verdict.evidence.end() ||
          !(found->second >= base::to_double(from).value_or(-kAny) &&
            found->second < base::to_double(below).value_or(kAny)))
        continue;
    }
    advice = text;
    if (word.empty())
      break;
    first = place;
  }
  return advice;
}

}  // namespace rangescope::model
