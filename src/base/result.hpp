// Errors as values: the only way a failure crosses from one room to another.
//
// A function that can fail returns Result<T>. An Error says what went wrong, where
// (file:line:column, path+offset, table.column or argv index) and, as an imperative sentence, what
// to do about it. Codes are the process exit codes, so that the command line needs no second table.
// Exceptions of libraries are caught where the library is called.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace rangescope::base {

/// What kind of failure; the value is the exit code (sysexits.h where it has one, 80 to 83 are
/// ours).
enum class Code : int {
  kUsage = 64,            ///< the command line cannot be understood
  kBadData = 65,          ///< an input is damaged, foreign or of a version that cannot be read
  kNoInput = 66,          ///< an input does not exist or cannot be opened
  kToolMissing = 69,      ///< an external tool or library is not there
  kInternal = 70,         ///< a bug of ours
  kIo = 74,               ///< writing or reading failed in the middle
  kPermission = 77,       ///< the operating system or the driver refused
  kConfig = 78,           ///< the configuration is wrong
  kNothingCaptured = 80,  ///< it ran, and nothing matched
  kRegression = 81,       ///< the gate found a regression
  kNotComparable = 82,    ///< two runs cannot be compared
  kDataLoss = 83,         ///< captured, but with losses, under --strict
};

/// Does this errno say that the user lacks a permission?
[[nodiscard]] bool is_permission_error(int error) noexcept;
/// The same of an errno of writing: read-only file systems count too.
[[nodiscard]] bool is_write_permission_error(int error) noexcept;

/// The process exit code of `code`.
[[nodiscard]] constexpr int exit_code(Code code) noexcept {
  return static_cast<int>(code);
}

/// A failure. `where` and `hint` may be empty; `what` never is.
struct Error {
  Code code = Code::kInternal;
  std::string what;
  std::string where;
  std::string hint;
};

template <class T>
using Result = tl::expected<T, Error>;

/// Builds the failing branch of a Result: `return fail(Code::kIo, "cannot write", path);`
[[nodiscard]] inline tl::unexpected<Error> fail(Code code,
                                                std::string what,
                                                std::string place = {},
                                                std::string hint = {}) {
  return tl::make_unexpected(Error{code, std::move(what), std::move(place), std::move(hint)});
}

/// Hands the failure of one Result on as the failure of another.
template <class T>
[[nodiscard]] tl::unexpected<Error> fail(Result<T>&& result) {
  return tl::make_unexpected(std::move(result).error());
}

/// What TRY gives of a Result that holds something.
template <class T>
T value_of(Result<T>&& result) {
  return std::move(*result);
}
inline void value_of(Result<void>&& /*result*/) {}

/// `where: what`, and the hint on its own line, as it is shown to people.
[[nodiscard]] std::string to_string(const Error& error);

}  // namespace rangescope::base

/// `auto file = TRY(open(path));` is what a Result holds; where it failed, the function returns
/// that failure from here. A statement, or the whole initializer of a variable: nothing else is
/// then left half done. It takes GNU's statement expressions, as SerenityOS's macro of this name.
#define TRY(...)                                          \
  __extension__({                                         \
    auto tried_ = (__VA_ARGS__);                          \
    if (!tried_)                                          \
      return ::rangescope::base::fail(std::move(tried_)); \
    ::rangescope::base::value_of(std::move(tried_));      \
  })
