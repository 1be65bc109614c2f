#include "base/result.hpp"

namespace rangescope::base {

std::string to_string(const Error& error) {
  std::string text;
  if (!error.where.empty())
    text += error.where + ": ";
  text += error.what;
  if (!error.hint.empty())
    text += "\nhint: " + error.hint;
  return text;
}

}  // namespace rangescope::base
