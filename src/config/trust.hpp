// Whether a rangescope.yaml that was found may be read, and what it may set.
//
// A project file is found, not named: any user who can write into a folder above the current one
// could otherwise decide what a user (or root) runs. So it must belong to this user or root, as git
// wants of a repository; and even then it sets what is measured, not what is run: the program,
// tools' paths and arguments, and variables that load code need trust. `rangescope config trust
// FILE` gives it, to the file as it is: a changed file is asked about again. A file named with
// --config is trusted by that.
//
// Kept in <state folder>/trusted, a line `sha256  path` each.
#pragma once

#include <filesystem>

#include "base/result.hpp"
#include "config/value.hpp"

namespace rangescope::config {

/// Did this user trust the file with these bytes?
[[nodiscard]] bool is_trusted(const std::filesystem::path& file);
/// Trusts it as it is now. kIo, kNoInput.
[[nodiscard]] base::Result<void> trust(const std::filesystem::path& file);
/// kPermission where the file or its folder belongs to somebody else or can be written by
/// everybody, kNoInput where it is no regular file. Under sudo the user who called it counts as
/// this one.
[[nodiscard]] base::Result<void> check_owner(const std::filesystem::path& file);
/// kPermission at the first value, in a whole project file, that only a trusted one may set.
[[nodiscard]] base::Result<void> check_untrusted(const Value& root,
                                                 const std::filesystem::path& file);

}  // namespace rangescope::config
