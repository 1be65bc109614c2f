// A regular expression over names of ranges and kernels: RE2's syntax, searched for (use ^ and $).
// Linear time, no back-references. Names are bytes: a pattern that is no UTF-8 is read as Latin-1.
// Copies share what was compiled.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.hpp"

namespace re2 {
class RE2;
}

namespace rangescope::model {

class NameRegex {
 public:
  /// What is wrong, in RE2's words, as the error's `what`.
  [[nodiscard]] static base::Result<NameRegex> parse(std::string_view pattern);
  [[nodiscard]] bool found_in(std::string_view name) const;

 private:
  std::shared_ptr<const re2::RE2> compiled_;
};

}  // namespace rangescope::model
