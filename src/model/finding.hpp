// One finding of the doctor: what was asked, what was found, what it means, what to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rangescope::model {

enum class Grade : std::uint8_t { kOk, kWarn, kFail, kSkip };
inline constexpr std::string_view kVerdictNames[] = {"ok", "warn", "fail", "skip"};
[[nodiscard]] constexpr std::string_view verdict_name(Grade verdict) {
  return kVerdictNames[static_cast<std::size_t>(verdict)];
}

struct Finding {
  std::string
      id;  ///< stable: "command.missing_slash"; documented in docs/manual/causes.md under this id
  std::string question;  ///< "Does every include expression match a range that was seen?"
  Grade verdict = Grade::kOk;
  std::string found;  ///< evidence, with numbers
  std::string hint;   ///< imperative cure, no full stop; empty when the verdict is ok
  std::vector<std::string>
      commands;          ///< corrected command lines, shell-quoted, that run as they stand
  std::string why = {};  ///< what it means, one or two sentences; empty when the verdict is ok
};

}  // namespace rangescope::model
