#include "base/result.hpp"

#include <cerrno>

namespace rangescope::base {

bool is_permission_error(int error) noexcept {
  return error == EACCES || error == EPERM;
}

bool is_write_permission_error(int error) noexcept {
  return is_permission_error(error) || error == EROFS;
}

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
