#include "model/name_regex.hpp"

#include <re2/re2.h>

#include "base/text.hpp"

namespace rangescope::model {

base::Result<NameRegex> NameRegex::parse(std::string_view pattern) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_encoding(base::is_utf8(pattern) ? re2::RE2::Options::EncodingUTF8
                                              : re2::RE2::Options::EncodingLatin1);
  NameRegex regex;
  const auto compiled =
      std::make_shared<re2::RE2>(re2::StringPiece(pattern.data(), pattern.size()), options);
  if (!compiled->ok())
    return base::fail(base::Code::kUsage, compiled->error());
  regex.compiled_ = compiled;
  return regex;
}

bool NameRegex::found_in(std::string_view name) const {
  return re2::RE2::PartialMatch(re2::StringPiece(name.data(), name.size()), *compiled_);
}

}  // namespace rangescope::model
